"""Two runs on the same items: what differs, by how much, and whether chance would do it (METHOD §3, paired).

Knows: how to pair two tables chain by chain; paired intervals, the swap test, Holm.
Does not know: who was asked in either run, or which of them is better.

A rate that is 0 or 1 in both runs has nothing to resample, yet two sampled runs that never erred may differ all the
same: what either may have missed is added to the interval of the difference, as it is to that of a single run
(`belie.csq.intervals`). One and the same run has missed nothing against itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from belie.csq.formulas import INTEGRATED, NAMES, Invalid, columns, formulas, influence
from belie.csq.intervals import pseudo, unseen, unseen_rates, widened
from belie.csq.overall import Rule, weights
from belie.csq.scores import SCORES_VERSION, plain
from belie.csq.table import Cell, Level, Table
from belie.items import Category
from belie.respondents.base import BadInput
from belie.statistics import Floats, Resampler, bca, holm, swap_test

OVERALL = (*INTEGRATED, "error")
#: Raised whenever the same two tables would give another difference.
DIFFERENCE_VERSION = 2

_COMPOSITE = [NAMES.index(name) for name in ("rho", "delta", "delta_net", "beta")]
_RATES = [NAMES.index(name) for name in ("delta_pos", "delta_neg", "gamma_pos", "gamma_neg", "error")]


def chain_key(chain: str) -> str:
    """A chain's id without world and variant: ``n5/s0/00000``. Pairs runs that put the same chains in other words."""
    return chain.partition("/")[2]


@dataclass(frozen=True, slots=True)
class Change:
    """One score in two runs: ``value`` = second − first with its paired interval; ``p`` of the swap test, ``p_holm``
    the same adjusted over the n of one score, or over the overall scores."""

    first: float
    second: float
    value: float
    low: float
    high: float
    p: float
    p_holm: float


@dataclass(frozen=True, slots=True)
class Difference:
    """``cells[n][name]`` for the scores of `belie.csq.scores.NAMES`, ``overall[name]`` for ρ̄, δ̄, δ̄_net and error
    (or what else was asked for); ``chains[n]``: how many chains both runs hold."""

    cells: Mapping[int, Mapping[str, Change]]
    overall: Mapping[str, Change]
    chains: Mapping[int, int]

    def to_json(self) -> dict[str, Any]:
        """A plain dict, as `belie.csq.scores.Scores.to_json` makes it."""
        return plain(
            {
                "scores_version": SCORES_VERSION,
                "difference_version": DIFFERENCE_VERSION,
                "overall": {name: asdict(change) for name, change in self.overall.items()},
                "cells": [
                    {"n": n, "chains": self.chains[n], **{name: asdict(change) for name, change in changes.items()}}
                    for n, changes in self.cells.items()
                ],
            }
        )


def difference(
    first: Table,
    second: Table,
    *,
    invalid: Invalid = "leave_out",
    rule: Rule = "log",
    hold: bool = True,
    t: float | None = None,
    level: float = 0.95,
    resamples: int = 2000,
    permutations: int = 2000,
    seed: int = 0,
    key: Callable[[str], str] = str,
    same: bool = False,
    overall: Sequence[str] = OVERALL,
) -> Difference:
    """Compare two runs over the chains that both hold. Overall figures go over the n that both hold.

    The swap test exchanges the two runs within each chain; the interval is BCa with the same chains drawn for both.
    ``key`` makes of a chain's id what must be alike for two chains to be one (default: the whole id; see `chain_key`).
    ``same``: both tables hold one and the same run, so that nothing went unseen (so it is for one table twice).
    ``overall``: scores that are taken over all n, error as the mean over cells, the others as METHOD §1.4.
    Raises BadInput where the runs share no chain, or one draws its categories apart and the other does not.
    """
    if first.matched != second.matched:
        raise BadInput("One run shares its chains between the four questions and the other does not: not comparable.")
    pairs = [pair for a in first.levels for b in second.levels if a.n == b.n and (pair := shared([a, b], key))]
    if not pairs:
        raise BadInput("The two runs hold no question in common: compare runs of the same world, seed and n.")
    grid = [a.n for a, _ in pairs]
    over = _Over(overall, weights(grid, t=t, rule=rule, hold=hold))
    tables = (first, second)
    sides = [
        [columns(pair[side], matched=first.matched, invalid=invalid) for pair in pairs] for side in (0, 1)
    ]  # [side][n][stratum]
    resampler = Resampler(resamples, seed)

    values, centres, draws, slopes = [], [], [], []
    for side, table in zip(sides, tables, strict=True):
        values.append(np.stack([formulas([s.sum(0) for s in strata]) for strata in side]))
        smoothing = [pseudo(strata, exact=table.exact) for strata in side]
        centres.append(np.stack([formulas([s.sum(0) for s in x], d) for x, d in zip(side, smoothing, strict=True)]))
        drawn = [
            formulas([resampler.sums(s, n, i) for i, s in enumerate(strata)], d)
            for n, strata, d in zip(grid, side, smoothing, strict=True)
        ]
        draws.append(np.stack(drawn, 1))
        slopes.append([influence(strata, value) for strata, value in zip(side, values[-1], strict=True)])
    estimates = [np.concatenate([value.ravel(), over(value)]) for value in values]

    scores = len(NAMES)
    moves = [[b - a for a, b in zip(*strata, strict=True)] for strata in zip(*slopes, strict=True)]  # [n][stratum]
    interval = np.concatenate(
        [bca(draws[1][:, i] - draws[0][:, i], centres[1][i] - centres[0][i], moves[i], level) for i in range(len(grid))]
    )
    parts = [part[:, over.columns] * over.share[i] for i, strata in enumerate(moves) for part in strata]
    interval = np.concatenate(
        [interval, bca(over(draws[1]) - over(draws[0]), over(centres[1] - centres[0]), parts, level)]
    )
    if not (same or first is second):
        hidden = [
            np.stack([missed(strata, level, exact=table.exact) for strata in side])
            for side, table in zip(sides, tables, strict=True)
        ]  # [side], each (n, scores, 2): below and above
        either = np.hypot(hidden[1], hidden[0][..., ::-1])
        together = np.sqrt(np.einsum("ns,nsk->sk", over.share**2, either[:, over.columns] ** 2))
        value = estimates[1] - estimates[0]
        interval = widened(interval, value, np.concatenate([either.reshape(-1, 2), together]))

    width = [len(strata) for strata in sides[0]]

    def statistic(sums: Sequence[Floats]) -> Floats:
        stacked, at = [], 0
        for size in width:
            stacked.append(formulas(sums[at : at + size]))
            at += size
        by_n = np.stack(stacked, 1)
        return np.concatenate([by_n.reshape(len(by_n), -1), over(by_n)], 1)

    flat = [[s for strata in side for s in strata] for side in sides]
    p = swap_test(list(zip(*flat, strict=True)), statistic, permutations=permutations, seed=seed)
    adjusted = np.empty_like(p)
    for j in range(scores):
        adjusted[j : scores * len(grid) : scores] = holm(p[j : scores * len(grid) : scores])
    adjusted[scores * len(grid) :] = holm(p[scores * len(grid) :])

    def change(i: int) -> Change:
        value = float(estimates[1][i] - estimates[0][i])
        low, high = (float(x) for x in interval[i])
        if not math.isnan(low):
            low, high = min(low, value), max(high, value)
        return Change(float(estimates[0][i]), float(estimates[1][i]), value, low, high, float(p[i]), float(adjusted[i]))

    return Difference(
        {n: {name: change(i * scores + j) for j, name in enumerate(NAMES)} for i, n in enumerate(grid)},
        {name: change(len(grid) * scores + j) for j, name in enumerate(overall)},
        {a.n: len(a.chains) for a, _ in pairs},
    )


class _Over:
    """Scores of each n, (…, n, scores), to those over all n, (…, M): each a weighted sum."""

    def __init__(self, names: Sequence[str], w: Floats) -> None:
        self.columns = [NAMES.index(name) for name in names]
        self.share = np.stack([np.full(len(w), 1 / len(w)) if name == "error" else w for name in names], 1)  # (n, M)

    def __call__(self, values: Floats) -> Floats:
        # An n of no weight (beyond t) must not spoil a figure with its nan.
        weighted = np.where(self.share != 0, values[..., self.columns] * self.share, 0.0)
        return weighted.sum(-2)


def missed(strata: Sequence[Floats], level: float, *, exact: bool) -> Floats:
    """How far below and above its estimate each score of one cell may lie for what sampled answers never showed,
    (scores, 2). 0 everywhere for exact answers."""
    out = np.zeros((len(NAMES), 2))
    if not exact:
        sums = np.concatenate([stratum.sum(0) for stratum in strata])
        out[_COMPOSITE] = unseen(sums, level)
        out[_RATES] = unseen_rates(sums, level)
    return out


def shared(levels: Sequence[Level], key: Callable[[str], str] = str) -> list[Level] | None:
    """Levels of one n cut to the chains, and in unmatched designs to the items, that all hold; in the order of the
    first. None where they hold none in common."""
    places = [{key(chain): i for i, chain in enumerate(level.chains)} for level in levels]
    keys = [name for name in places[0] if all(name in place for place in places)]
    if not keys:
        return None
    rows = [np.array([place[name] for name in keys]) for place in places]
    cut: list[Level] = []
    held = {
        category: np.logical_and.reduce([x.cells[category].expected[at] for x, at in zip(levels, rows, strict=True)])
        for category in levels[0].cells
    }
    for level, at in zip(levels, rows, strict=True):
        cells: dict[Category, Cell] = {
            category: _cut(cell, at, held[category]) for category, cell in level.cells.items()
        }
        cut.append(Level(level.n, tuple(level.chains[i] for i in at), cells))
    return cut


def _cut(cell: Cell, rows: np.ndarray, held: np.ndarray) -> Cell:
    arrays = {f.name: np.where(held, getattr(cell, f.name)[rows], 0.0) for f in fields(cell) if f.name != "counts"}
    return replace(cell, **{**arrays, "expected": held})
