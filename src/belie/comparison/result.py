"""What a comparison of runs holds: plain numbers, ready to be printed, stored or drawn.

Knows: the fields, Holm over everything that is shown, and how a result becomes JSON.
Does not know: how the figures were computed (csq, knownlie), or how they are said (words).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from belie.comparison.power import smallest_difference
from belie.csq.scores import plain
from belie.runs.manifest import Instrument
from belie.statistics import holm

Kind = Literal["share", "log", "trust"]

#: Raised whenever the same two runs would give another figure.
COMPARISON_VERSION = 2


@dataclass(frozen=True, slots=True)
class Contrast:
    """One score of two runs on the items that both hold; ``difference`` = second − first.

    ``name``: ``csq.rho``, ``csq.delta_net(n=20)``, ``knownlie.dr.incentive`` … ``low``, ``high``: its paired interval.
    ``p``: two-sided, of the permutation that swaps the two runs within a unit; ``p_holm``: adjusted over all scores
    shown. ``smallest``: the smallest true difference that this design finds with the wanted power at the first,
    strictest step of Holm; inf where it can find none, nan where that is not known. ``error``: standard error of the
    difference. ``units``: chains, trajectories or cases that are swapped. ``denominators``: what either figure rests
    on. ``step``: what one answer or round moves the figure by, nan for composite scores. ``kind``: "share" (0 to 1),
    "log" (ρ, a log ratio) or "trust". ``freedom``: degrees of freedom of ``error``, None for units − 1. Undefined
    figures are nan.
    """

    name: str
    kind: Kind
    first: float
    second: float
    difference: float
    low: float
    high: float
    p: float
    units: int
    denominators: tuple[float, float]
    error: float = math.nan
    step: float = math.nan
    freedom: int | None = None
    p_holm: float = math.nan
    smallest: float = math.nan


@dataclass(frozen=True, slots=True)
class Side:
    """One of the runs that are compared. ``label`` tells it from the others: the respondent, or respondent and
    folder."""

    path: str
    label: str
    respondent: str
    status: str
    created: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs of one instrument.

    ``shared``: what was paired and what was not, by name. ``refused``: why they are not comparable; with any, the
    comparison was forced and ``comparable`` is False. ``notes``: sentences for the reader.
    """

    instrument: Instrument
    first: Side
    second: Side
    shared: Mapping[str, int]
    contrasts: tuple[Contrast, ...]
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def comparable(self) -> bool:
        return not self.refused

    def contrast(self, name: str) -> Contrast:
        """One score by its name. Raises KeyError."""
        for one in self.contrasts:
            if one.name == name:
                return one
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Compared:
    """Each further run against the first; Holm goes over every p of every comparison.

    ``comparisons`` counts the p-values that Holm went over.
    """

    pairs: tuple[Comparison, ...]
    comparisons: int
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def comparable(self) -> bool:
        return all(pair.comparable for pair in self.pairs)

    def to_json(self) -> dict[str, Any]:
        """A plain dict: nan → null, infinities → "inf", floats at 10 significant digits."""
        return plain(
            {
                "comparison_version": COMPARISON_VERSION,
                "comparable": self.comparable,
                "comparisons": self.comparisons,
                "options": dict(self.options),
                "pairs": [
                    {
                        "instrument": pair.instrument,
                        "comparable": pair.comparable,
                        "refused": list(pair.refused),
                        "first": asdict(pair.first),
                        "second": asdict(pair.second),
                        "shared": dict(pair.shared),
                        "scores": [_contrast_json(one) for one in pair.contrasts],
                        "notes": list(pair.notes),
                    }
                    for pair in self.pairs
                ],
            }
        )


def together(pairs: list[Comparison], *, alpha: float, power: float, options: Mapping[str, Any]) -> Compared:
    """Adjusts every p over all that are shown, and says what the design could have found under that adjustment."""
    p = [one.p for pair in pairs for one in pair.contrasts]
    adjusted = iter(holm(p).tolist() if p else [])
    count = sum(not math.isnan(value) for value in p)
    done = []
    for pair in pairs:
        contrasts = tuple(
            replace(
                one,
                p_holm=next(adjusted),
                smallest=math.nan
                if math.isnan(one.p)
                else smallest_difference(
                    one.error, one.units, count, freedom=one.freedom, step=one.step, alpha=alpha, power=power
                ),
            )
            for one in pair.contrasts
        )
        done.append(replace(pair, contrasts=contrasts))
    return Compared(tuple(done), count, {"alpha": alpha, "power": power, **options})


def _contrast_json(one: Contrast) -> dict[str, Any]:
    told = asdict(one)
    del told["step"], told["freedom"]
    return {**told, "denominators": list(one.denominators)}
