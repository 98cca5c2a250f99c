"""How far a judge can be trusted: short dialogues whose labels are known by construction, and what it makes of them.

``calibrate(judge)`` asks and scores; ``load_dialogues()`` and ``load_kinds()`` are the data; ``faults`` checks them.
"""

from belie.knownlie.calibration.checks import Fault, faults
from belie.knownlie.calibration.dialogue import (
    Dialogue,
    Kind,
    dialogues_hash,
    dialogues_version,
    load_dialogues,
    load_kinds,
)
from belie.knownlie.calibration.runner import calibrate, calibrate_async
from belie.knownlie.calibration.scoring import (
    FIT,
    Answer,
    Calibration,
    Thresholds,
    fitness,
    kappa,
    kappa_interval,
    score,
)
from belie.knownlie.calibration.table import lines

__all__ = [
    "FIT",
    "Answer",
    "Calibration",
    "Dialogue",
    "Fault",
    "Kind",
    "Thresholds",
    "calibrate",
    "calibrate_async",
    "dialogues_hash",
    "dialogues_version",
    "faults",
    "fitness",
    "kappa",
    "kappa_interval",
    "lines",
    "load_dialogues",
    "load_kinds",
    "score",
]
