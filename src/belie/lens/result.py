"""What a reading and an ablation are, as data.

Knows: their fields.
Does not know: how they are made, written or shown; torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from belie.lens.separation import Separation

Instrument = Literal["knownlie", "csq"]
Question = Literal["truth", "contradiction"]
Where = Literal["all", "last"]
METHODS = ("lens", "logit lens", "probe")


#: What is measured of the answers. ``yes`` is p_yes / (p_yes + p_no).
MEASURES = ("yes", "yes_if_yes", "yes_if_no", "right")
#: Controls. removed: a random direction is taken out instead. moved: the state is pushed along a random direction by as
#: much as the contrast's removal pushes it.
CONTROLS = ("removed", "moved")


@dataclass(frozen=True, slots=True)
class Curve:
    """One comparison over the layers 0 … L. ``shift`` (L + 1, 3): AUROC less that under ``none`` with its interval,
    paired by unit; None where there is nothing to compare with."""

    question: Question
    condition: str
    place: str
    method: str
    separation: Separation
    shift: NDArray[np.float64] | None = None

    @property
    def peak(self) -> int | None:
        """The layer where the AUROC lies furthest from ½; None where nothing could be tested."""
        away = np.abs(self.separation.auroc - 0.5)
        return None if np.isnan(self.separation.p).all() else int(np.nanargmax(away))


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What the model answered in one condition: the share of Yes where the truth is Yes and where it is No, and the
    share of right answers, each of ``probes`` by the larger mass; ``contradictions`` of ``wrong`` broken items."""

    condition: str
    probes: int
    right: float
    yes_if_yes: float
    yes_if_no: float
    covered: float
    wrong: int
    contradictions: int


@dataclass(frozen=True, slots=True)
class Reading:
    """All curves and answers of one model. ``settings`` says what was read through what."""

    instrument: Instrument
    model: str
    layers: int
    conditions: tuple[str, ...]
    curves: tuple[Curve, ...]
    behaviour: tuple[Behaviour, ...]
    settings: Mapping[str, Any]

    def curve(self, question: str, condition: str, place: str, method: str) -> Curve:
        return next(
            c
            for c in self.curves
            if (c.question, c.condition, c.place, c.method) == (question, condition, place, method)
        )


@dataclass(frozen=True, slots=True)
class Effect:
    """One measure in one condition: its value before and after, the change with its interval over units, the changes
    under each random direction by control, and p: how often a random direction moves it at least as far."""

    condition: str
    measure: str
    before: float
    after: float
    change: float
    low: float
    high: float
    random: Mapping[str, tuple[float, ...]]
    p: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Ablation:
    """``band``: first and last layer. ``settings`` says of what, through what."""

    instrument: str
    model: str
    band: tuple[int, int]
    where: Where
    probes: int
    effects: tuple[Effect, ...]
    settings: Mapping[str, Any]
