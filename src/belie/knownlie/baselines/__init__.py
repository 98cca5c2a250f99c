"""Published figures of 18 models, to set a measurement beside.

Knows: the two tables of the KnownLieBench paper that ship as data (percent; trust change as a difference).
Does not know: how they were measured; the published definition differs from METHOD.md in places (docs of `interop`).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from belie.knownlie.records import Condition, TrustLevel

#: The published names of the conditions, and ours.
CONDITION_NAMES: Mapping[str, Condition] = {
    "none": "none",
    "lie_incentive": "incentive",
    "instructed_lie": "instructed",
}


@dataclass(frozen=True, slots=True)
class PanelRow:
    """One model under one condition at one trust level. ``dr``, ``dsr``, ``detect`` in percent; nan where undefined (no
    lies). ``trust_change``: TrustΔ."""

    model: str
    condition: Condition
    trust: TrustLevel
    dr: float
    dsr: float
    detect: float
    trust_change: float


@dataclass(frozen=True, slots=True)
class DomainRow:
    """One model under one condition in one domain: DR in percent, the mean of the three trust levels."""

    model: str
    condition: Condition
    domain: str
    dr: float


@cache
def panel() -> tuple[PanelRow, ...]:
    """18 models × 2 conditions (incentive, instructed) × 3 trust levels, in the published order."""
    return tuple(
        PanelRow(
            row["model"],
            CONDITION_NAMES[row["condition"]],
            row["initial_trust"],  # type: ignore[arg-type]
            _number(row["deception_rate_pct"]),
            _number(row["deception_success_rate_pct"]),
            _number(row["detection_rate_pct"]),
            _number(row["trust_delta"]),
        )
        for row in _table("knownliebench_panel.csv")
    )


@cache
def domains() -> tuple[DomainRow, ...]:
    """18 models × 2 conditions × 8 domains, in the published order."""
    return tuple(
        DomainRow(row["model"], CONDITION_NAMES[row["condition"]], row["domain"], _number(row["deception_rate_pct"]))
        for row in _table("knownliebench_domains.csv")
    )


def _table(name: str) -> list[dict[str, str]]:
    text = (resources.files("belie.knownlie.baselines") / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _number(text: str) -> float:
    return float(text) if text.strip() else math.nan
