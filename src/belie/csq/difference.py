"""Two runs on the same items: what differs, by how much, and whether chance would do it (METHOD §3, paired).

Knows: how to pair two tables chain by chain; paired intervals, the swap test, Holm.
Does not know: who was asked in either run, or which of them is better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from belie.csq.formulas import INTEGRATED, NAMES, Invalid, across, columns, formulas, influence
from belie.csq.intervals import pseudo
from belie.csq.overall import Rule, weights
from belie.csq.scores import SCORES_VERSION, plain
from belie.csq.table import Cell, Level, Table
from belie.respondents.base import BadInput
from belie.statistics import Floats, Resampler, bca, holm, swap_test

OVERALL = (*INTEGRATED, "error")


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
    """``cells[n][name]`` for the scores of `belie.csq.scores.NAMES`, ``overall[name]`` for ρ̄, δ̄, δ̄_net and error;
    ``chains[n]``: how many chains both runs hold."""

    cells: Mapping[int, Mapping[str, Change]]
    overall: Mapping[str, Change]
    chains: Mapping[int, int]

    def to_json(self) -> dict[str, Any]:
        """A plain dict, as `belie.csq.scores.Scores.to_json` makes it."""
        return plain(
            {
                "scores_version": SCORES_VERSION,
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
) -> Difference:
    """Compare two runs over the chains that both hold, by chain id. Overall figures go over the n that both hold.

    The swap test exchanges the two runs within each chain; the interval is BCa with the same chains drawn for both.
    Raises BadInput where the runs share no chain, or one draws its categories apart and the other does not.
    """
    if first.matched != second.matched:
        raise BadInput("One run shares its chains between the four questions and the other does not: not comparable.")
    pairs = [pair for pair in (_shared(a, b) for a in first.levels for b in second.levels if a.n == b.n) if pair]
    if not pairs:
        raise BadInput("The two runs hold no question in common: compare runs of the same world, seed and n.")
    grid = [a.n for a, _ in pairs]
    w = weights(grid, t=t, rule=rule, hold=hold)
    sides = [
        [columns(pair[side], matched=first.matched, invalid=invalid) for pair in pairs] for side in (0, 1)
    ]  # [side][n][stratum]
    resampler = Resampler(resamples, seed)

    values, centres, draws, slopes = [], [], [], []
    for side, table in zip(sides, (first, second), strict=True):
        values.append(np.stack([formulas([s.sum(0) for s in strata]) for strata in side]))
        smoothing = [pseudo(strata, exact=table.exact) for strata in side]
        centres.append(np.stack([formulas([s.sum(0) for s in x], d) for x, d in zip(side, smoothing, strict=True)]))
        drawn = [
            formulas([resampler.sums(s, n, i) for i, s in enumerate(strata)], d)
            for n, strata, d in zip(grid, side, smoothing, strict=True)
        ]
        draws.append(np.stack(drawn, 1))
        slopes.append([influence(strata, value) for strata, value in zip(side, values[-1], strict=True)])
    estimates = [np.concatenate([value.ravel(), across(value, w)]) for value in values]

    scores = len(NAMES)
    moves = [[b - a for a, b in zip(*strata, strict=True)] for strata in zip(*slopes, strict=True)]  # [n][stratum]
    interval = np.concatenate(
        [bca(draws[1][:, i] - draws[0][:, i], centres[1][i] - centres[0][i], moves[i], level) for i in range(len(grid))]
    )
    share = np.stack([w, w, w, np.full(len(w), 1 / len(w))], 1)
    chosen = [NAMES.index(name) for name in OVERALL]
    parts = [part[:, chosen] * share[i] for i, strata in enumerate(moves) for part in strata]
    over = bca(across(draws[1], w) - across(draws[0], w), across(centres[1], w) - across(centres[0], w), parts, level)
    interval = np.concatenate([interval, over])

    width = [len(strata) for strata in sides[0]]

    def statistic(sums: Sequence[Floats]) -> Floats:
        stacked, at = [], 0
        for size in width:
            stacked.append(formulas(sums[at : at + size]))
            at += size
        by_n = np.stack(stacked, 1)
        return np.concatenate([by_n.reshape(len(by_n), -1), across(by_n, w)], 1)

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
        {name: change(len(grid) * scores + j) for j, name in enumerate(OVERALL)},
        {a.n: len(a.chains) for a, _ in pairs},
    )


def _shared(a: Level, b: Level) -> tuple[Level, Level] | None:
    """Both levels cut to the chains, and in unmatched designs to the items, that both hold."""
    at = {chain: i for i, chain in enumerate(b.chains)}
    rows = [(i, at[chain]) for i, chain in enumerate(a.chains) if chain in at]
    if not rows:
        return None
    left, right = np.array(rows).T
    cells_a, cells_b = {}, {}
    for category, cell in a.cells.items():
        other = b.cells[category]
        both = cell.expected[left] & other.expected[right]
        cells_a[category], cells_b[category] = _cut(cell, left, both), _cut(other, right, both)
    chains = tuple(a.chains[i] for i in left)
    return Level(a.n, chains, cells_a), Level(b.n, chains, cells_b)


def _cut(cell: Cell, rows: np.ndarray, held: np.ndarray) -> Cell:
    arrays = {f.name: np.where(held, getattr(cell, f.name)[rows], 0.0) for f in fields(cell) if f.name != "counts"}
    return replace(cell, **{**arrays, "expected": held})
