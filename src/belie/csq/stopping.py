"""Asking until an interval is as narrow as wanted: Chow and Robbins' fixed-width rule (METHOD §3).

Knows: how wide the intervals of ρ and δ are from the chains seen so far, how wide more chains would make them, at
which n the next chains narrow most, and when to stop.
Does not know: who is asked, or how (run); what a wanted width costs (plan).

The rule. Every n begins with ``pilot`` chains. After each round the half-widths are estimated from what each chain
adds to a score (its jackknife influence) with Student's quantile at the n with fewest chains, and, for a rate that was
0 or 1 in every chain, from Wilson's bound on what was not seen. For stopping that bound holds for exact answers too: a
kind of chain that has not been met may exist (the printed interval takes exact answers as they are). While a figure
is too wide, chains go where they take most from the figure that lacks most, per call: σ·w/√calls, Neyman's allocation.
A round at most multiplies the chains by ``growth``, so that an early misjudged variance cannot cost much. Asking stops
when the rule and the printed interval both are narrow enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from belie.csq.formulas import HITS, NAMES, columns, formulas, influence, variance
from belie.csq.intervals import unseen
from belie.csq.overall import weights
from belie.csq.scores import Scores, score
from belie.csq.table import Level, Table
from belie.items import CATEGORIES
from belie.respondents.base import BadInput
from belie.statistics import Floats

#: What must be narrow: the figures over all n (ρ̄ and δ̄), or ρ(n) and δ(n) at every n by itself.
StopOn = Literal["overall", "each"]
STOP_ON: tuple[StopOn, ...] = ("overall", "each")
#: The figures whose interval is held to the wanted half-width.
FIGURES = ("rho", "delta")
#: Items a cell of the paper: unless told otherwise, stopping never asks more than that on average.
PAPER_CHAINS = 1000

Reason = Literal["reached", "max_items", "undefined", "failed"]

_COLUMNS = [NAMES.index(name) for name in FIGURES]
#: From so many chains on, an n at which a figure is still undefined is given up.
_GIVE_UP = 200
#: A pilot of fewer chains at an n tells too little of a variance.
LEAST_PILOT = 20
#: A round aims a little below the wanted half-width, so that it need not be followed by a tiny one.
_AIM = 0.97
_STEP = 1.05


@dataclass(frozen=True, slots=True)
class Wanted:
    """A wanted half-width and what may be spent on it.

    ``half_width`` of ρ̄ and δ̄ (``stop_on="overall"``) or of ρ(n) and δ(n) at every n (``"each"``), at ``level``.
    ``max_items``: items at most, over all n and categories; None: the paper's 1,000 a cell. ``pilot``: chains at each n
    before anything is decided: with fewer than the default the printed interval of so few chains covers a little less
    than it says (92–94 % at 50, bench/stopping.py), whatever the rule.
    """

    half_width: float
    stop_on: StopOn = "overall"
    max_items: int | None = None
    level: float = 0.95
    pilot: int = 100
    growth: float = 2.0

    def check(self, sizes: Sequence[int]) -> None:
        """Raises BadInput for what cannot be wanted of a design with these chain lengths."""
        if not 0 < self.half_width < math.inf:
            raise BadInput(f"--half-width {self.half_width:g}: it must be above 0, such as 0.02.")
        if self.stop_on not in STOP_ON:
            raise BadInput(f"--stop-on takes {' or '.join(STOP_ON)}, not {self.stop_on!r}.")
        if self.pilot < LEAST_PILOT or self.growth <= 1:
            raise BadInput(
                f"A pilot of {self.pilot} chains growing by {self.growth:g}: at least {LEAST_PILOT}, by more than 1."
            )
        least = self.pilot * len(sizes) * len(CATEGORIES)
        if self.max_chains(sizes) < self.pilot * len(sizes):
            raise BadInput(
                f"--max-items {self.max_items} is less than the pilot of {least} items "
                f"({len(sizes)} n × {self.pilot} chains × {len(CATEGORIES)}): allow that many, or ask fewer n."
            )

    def max_chains(self, sizes: Sequence[int]) -> int:
        """Chains at most, over all n."""
        return PAPER_CHAINS * len(sizes) if self.max_items is None else self.max_items // len(CATEGORIES)


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do after a round. ``chains``: how many chains each n shall have, None to stop for ``reason``.

    ``widths``: half-width by figure (rho, delta): of ρ̄ and δ̄, or the widest over n. ``widest``: the n that is meant.
    """

    chains: Mapping[int, int] | None
    reason: Reason | None
    widths: Mapping[str, float]
    widest: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Spread:
    """What the chains seen at one n tell of the width of ρ(n) and δ(n) after any number of chains.

    ``chains``: how many were seen. ``variance`` (2,): of one chain's share in ρ and in δ. ``sums`` (14,): column sums
    of `formulas`. ``known`` (2,): whether the figure is defined. ``calls``: calls a chain, follow-ups included.
    ``seen``: chains that the variance was estimated from.
    """

    n: int
    chains: int
    variance: Floats
    sums: Floats
    known: tuple[bool, bool]
    calls: float
    level: float
    seen: int

    def squared(self, chains: Floats) -> Floats:
        """Squared half-widths of ρ(n) and δ(n) after so many chains: (G,) → (G, 2); infinite where undefined."""
        chains = np.asarray(chains, float)
        sampling = _quantile(self.level, self.seen) ** 2 * self.variance / chains[:, None]
        return np.where(self.known, sampling + self._missed(chains), np.inf)

    def as_if(self, chains: int) -> Spread:
        """The same, had only so many chains (or so many more) been seen, of which the same would have been found."""
        return replace(self, chains=chains, sums=self.sums * (chains / self.chains))

    def _missed(self, chains: Floats) -> Floats:
        """Mean square of both sides of what rates at their edge may have missed: (G,) → (G, 2)."""
        if not _edges(self.sums):
            return np.zeros((len(chains), 2))
        low, high = float(chains.min()), float(chains.max())
        at = np.geomspace(low, high, 1 if low == high else 6)
        bounds = [(unseen(self.sums * (count / self.chains), self.level)[:2] ** 2).mean(1) for count in at]
        logs = np.log(np.maximum(bounds, 1e-300))
        return np.stack([np.exp(np.interp(np.log(chains), np.log(at), logs[:, k])) for k in range(2)], 1)


def spreads(table: Table, level: float = 0.95) -> list[Spread]:
    """One `Spread` an n of the table."""
    return [_spread(one, table, level) for one in table.levels]


def _spread(at_n: Level, table: Table, level: float) -> Spread:
    strata = columns(at_n, matched=table.matched)
    sums = np.concatenate([stratum.sum(0) for stratum in strata])
    estimate = formulas([stratum.sum(0) for stratum in strata])
    chains = max(min(int(cell.answered.sum()) for cell in at_n.cells.values()), 1)
    found = variance(influence(strata, estimate))[_COLUMNS] * chains
    asked = sum(cell.counts.expected for cell in at_n.cells.values())
    followed = sum(cell.counts.followups_needed for cell in at_n.cells.values())
    right = bool((sums[HITS] > 0).all())  # ln 0 is no figure, whatever smoothing makes of it
    known = (right and bool(np.isfinite(estimate[_COLUMNS[0]])), bool(np.isfinite(estimate[_COLUMNS[1]])))
    return Spread(at_n.n, chains, found, sums, known, (asked + followed) / max(len(at_n.chains), 1), level, chains)


def half_widths(found: Sequence[Spread], stop_on: StopOn = "overall") -> tuple[dict[str, float], dict[str, int | None]]:
    """The rule's estimate of the half-widths now, and the n of the widest (None for ``overall``)."""
    now = np.stack([one.squared(np.array([one.chains]))[0] for one in found])
    if stop_on == "overall":
        total = _over(now, weights([one.n for one in found]))
        return dict(zip(FIGURES, np.sqrt(total).tolist(), strict=True)), dict.fromkeys(FIGURES)
    widest = now.argmax(0)
    return (
        {name: float(np.sqrt(now[i, k])) for k, (name, i) in enumerate(zip(FIGURES, widest, strict=True))},
        {name: found[i].n for name, i in zip(FIGURES, widest, strict=True)},
    )


def equal_chains(found: Sequence[Spread], half_width: float, stop_on: StopOn = "overall") -> int:
    """Chains at every n alike for the wanted half-width, at least 1; ten million where it takes more."""
    low, high = 1, 10**7
    while low < high:
        middle = (low + high) // 2
        widths, _ = half_widths([one.as_if(middle) for one in found], stop_on)
        low, high = (low, middle) if max(widths.values()) <= half_width else (middle + 1, high)
    return low


def printed_widths(scores: Scores, stop_on: StopOn = "overall") -> dict[str, float]:
    """Half-widths of the intervals as they are printed: of ρ̄ and δ̄, or the widest over n."""
    if stop_on == "overall":
        figures = {name: [scores.overall[name]] for name in FIGURES}
    else:
        figures = {name: [row.figures[name] for row in scores.rows] for name in FIGURES}
    halves = {name: [(one.high - one.low) / 2 for one in each] for name, each in figures.items()}
    return {name: max(math.inf if math.isnan(half) else half for half in each) for name, each in halves.items()}


def allocation(
    found: Sequence[Spread], half_width: float, *, stop_on: StopOn = "overall", most: int | None = None
) -> dict[int, int]:
    """Chains at each n for the wanted half-width: never fewer than were seen, at most ``most`` in all.

    Where ``most`` binds, what there is goes where it narrows most. An n whose figure is undefined gets none.
    """
    start = np.array([one.chains for one in found])
    left = (most if most is not None else 10**9) - int(start.sum())
    paths = [_path(low, low + max(left, 0)) for low in start.tolist()]
    widths = [one.squared(np.array(path)).tolist() for one, path in zip(found, paths, strict=True)]
    place = [0] * len(found)
    overall = stop_on == "overall"
    # Over all n a squared half-width is a weighted sum; at each n by itself the weights are 1 and nothing is summed.
    w = (weights([one.n for one in found]) ** 2).tolist() if overall else [1.0] * len(found)
    goal = half_width**2
    while True:
        now = [
            [share * width[i][k] for k in range(len(FIGURES))] for share, width, i in zip(w, widths, place, strict=True)
        ]
        lack = [(sum if overall else max)(each) for each in zip(*now, strict=True)]
        worst = lack.index(max(lack))
        if lack[worst] <= goal:
            break
        best, gain = -1, 0.0
        for i, (path, width, at) in enumerate(zip(paths, widths, place, strict=True)):
            more = path[at + 1] - path[at] if at + 1 < len(path) else 0
            if not more or more > left:
                continue
            if overall:
                take = w[i] * (width[at][worst] - width[at + 1][worst]) / (more * found[i].calls)
            else:
                take = now[i][worst] if math.isfinite(now[i][worst]) else 0.0
            if take > gain:
                best, gain = i, take
        if best < 0:
            break
        left -= paths[best][place[best] + 1] - paths[best][place[best]]
        place[best] += 1
    return {one.n: path[i] for one, path, i in zip(found, paths, place, strict=True)}


def decide(table: Table, wanted: Wanted, *, seed: int = 0, resamples: int = 2000) -> Decision:
    """What to do after the chains in ``table`` have been asked.

    ``seed`` and ``resamples`` are those of the printed interval. The same table gives the same decision.
    """
    found = spreads(table, wanted.level)
    widths, widest = half_widths(found, wanted.stop_on)
    held = {level.n: len(level.chains) for level in table.levels}
    unknown = [one.n for one in found if not all(one.known)]
    lost = [n for n in unknown if held[n] >= _GIVE_UP]
    if lost:
        return Decision(None, "undefined", widths, dict.fromkeys(FIGURES, lost[0]))
    most = wanted.max_chains(table.grid)
    grown = {n: math.ceil(count * wanted.growth) for n, count in held.items()}
    if unknown:
        chains = {n: grown[n] if n in unknown else count for n, count in held.items()}
    else:
        aim = wanted.half_width
        if max(widths.values()) <= aim:
            printed = printed_widths(score(table, level=wanted.level, resamples=resamples, seed=seed), wanted.stop_on)
            if max(printed.values()) <= aim:
                return Decision(None, "reached", {name: max(widths[name], printed[name]) for name in FIGURES}, widest)
            # The bootstrap sees a wider interval than the rule: ask the rule for so much less.
            aim *= min(widths[name] / printed[name] for name in FIGURES if printed[name] > aim)
            widths = {name: max(widths[name], printed[name]) for name in FIGURES}
        target = allocation(found, aim * _AIM, stop_on=wanted.stop_on, most=most)
        chains = {n: max(min(target[n], grown[n]), count) for n, count in held.items()}
    if sum(chains.values()) > most or chains == held:
        return Decision(None, "max_items", widths, widest)
    return Decision(chains, None, widths, widest)


def _path(start: int, end: int) -> list[int]:
    """Whole numbers from ``start`` to ``end`` (or a million), each about a twentieth above the one before."""
    path = [start]
    while path[-1] < min(end, 10**6):
        path.append(min(end, max(path[-1] + 1, math.ceil(path[-1] * _STEP))))
    return path


def _over(squared: Floats, w: Floats) -> Floats:
    """Squared half-widths at each n (n, 2) → of the figures over all n (2,)."""
    used = w != 0
    return (w[used, None] ** 2 * squared[used]).sum(0)


def _edges(sums: Floats) -> bool:
    return bool((unseen(sums, 0.95)[:2] > 0).any())


@lru_cache(maxsize=4096)
def _quantile(level: float, chains: int) -> float:
    return float(stdtrit(max(chains - 1, 1), (1 + level) / 2))
