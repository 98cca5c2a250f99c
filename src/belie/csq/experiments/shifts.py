"""What a condition does to the scores: each condition against the first, paired chain by chain.

Knows: which scores are compared, over all n and at each n; Holm over all that is shown over all n.
Does not know: what the conditions are, or who was asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from belie.csq.difference import DIFFERENCE_VERSION, Change, chain_key, difference
from belie.csq.formulas import INTEGRATED
from belie.csq.scores import plain
from belie.csq.table import Table
from belie.statistics import holm

#: The scores over all n, and those that are also compared at each n.
OVERALL = (*INTEGRATED, "beta", "error")
BY_N = OVERALL


@dataclass(frozen=True, slots=True)
class Shift:
    """One score under one condition less the same under the first, over all n (``n`` None) or at one.

    ``p``: of the swap test; ``p_holm``: adjusted over all shifts over all n of the experiment, and at one n over the n
    of this score and condition.
    """

    condition: str
    score: str
    n: int | None
    first: float
    second: float
    value: float
    low: float
    high: float
    p: float
    p_holm: float


@dataclass(frozen=True, slots=True)
class Shifts:
    """``conditions``: all names, the first being what the others are compared with. ``chains``: how many chains each
    shares with it. ``comparisons``: how many p-values Holm went over."""

    conditions: tuple[str, ...]
    overall: tuple[Shift, ...]
    by_n: tuple[Shift, ...]
    chains: Mapping[str, int]
    comparisons: int

    def of(self, condition: str, score: str, n: int | None = None) -> Shift:
        """One shift. Raises KeyError."""
        for one in self.overall if n is None else self.by_n:
            if (one.condition, one.score, one.n) == (condition, score, n):
                return one
        raise KeyError(f"{condition}, {score}, {n}")

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return plain(
            {
                "kind": "shifts",
                "difference_version": DIFFERENCE_VERSION,
                "conditions": list(self.conditions),
                "chains": dict(self.chains),
                "comparisons": self.comparisons,
                "overall": [asdict(one) for one in self.overall],
                "by_n": [asdict(one) for one in self.by_n],
            }
        )


def shifts(
    tables: Mapping[str, Table],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    permutations: int = 5000,
    seed: int = 0,
) -> Shifts:
    """Each table against the first one, over the chains that both hold whatever their words (`chain_key`)."""
    names = list(tables)
    first = tables[names[0]]
    overall: list[Shift] = []
    by_n: list[Shift] = []
    chains: dict[str, int] = {}
    for name in names[1:]:
        told = difference(
            first,
            tables[name],
            level=level,
            resamples=resamples,
            permutations=permutations,
            seed=seed,
            key=chain_key,
            overall=OVERALL,
        )
        chains[name] = sum(told.chains.values())
        overall += [_shift(name, score, None, told.overall[score]) for score in OVERALL]
        by_n += [_shift(name, score, n, told.cells[n][score]) for score in BY_N for n in told.cells]
    adjusted = holm([one.p for one in overall]).tolist() if overall else []
    found = tuple(replace(one, p_holm=p) for one, p in zip(overall, adjusted, strict=True))
    counted = sum(one.p == one.p for one in overall)
    return Shifts(tuple(names), found, tuple(by_n), chains, counted)


def _shift(condition: str, score: str, n: int | None, change: Change) -> Shift:
    return Shift(condition, score, n, **asdict(change))
