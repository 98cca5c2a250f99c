"""Self-consistency: what the majority of m answers to a question scores, for every m, from one run of M draws.

Knows: the draws of a run one by one; the expected outcome of a vote over all subsets of m draws, exactly.
Does not know: what is scored (scores), or who was asked.

A vote is decided by its valid answers; a tie falls either way with probability ½; without a valid answer it is invalid.
The easy question was asked after each wrong draw, in that draw's own conversation: where the majority is wrong, the
follow-ups of its members vote in the same way. One vote is therefore one answer, as in METHOD §1.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from belie.csq.table import Cell, Counts, Level, Table
from belie.items import BROKEN, TRUTH, Answer, Category, Item
from belie.respondents.base import BadInput
from belie.statistics import Floats
from belie.statistics.subsets import outcomes


def draw_tables(items: Iterable[Item], answers: Iterable[Answer], draws: int) -> list[Table]:
    """One table a draw. Raises BadInput where answers are probabilities: there is nothing to vote on."""
    light = [replace(item, question="", followup=None if item.followup is None else "") for item in items]
    split: list[list[Answer]] = [[] for _ in range(draws)]
    for answer in answers:
        if answer.p is not None:
            raise BadInput("These answers are probabilities: votes need drawn answers, --sample --draws 9.")
        if answer.draw < draws:
            kept = replace(answer, draw=0, reasoning=None)
            split[answer.draw].append(kept)
    return [Table.build(light, one) for one in split]


def voted(tables: Sequence[Table], votes: int) -> Table:
    """The table of majorities of ``votes`` of the draws: each cell holds expected masses over all subsets.

    ``tables``: as `draw_tables` makes them. A chain with fewer draws than that counts as not answered.
    """
    if not 1 <= votes <= len(tables):
        raise BadInput(f"{votes} votes of {len(tables)} draws: take 1 to {len(tables)}.")
    levels = []
    for at in range(len(tables[0].levels)):
        first = tables[0].levels[at]
        cells: dict[Category, Cell] = {
            category: _cell(category, [table.levels[at].cells[category] for table in tables], votes)
            for category in first.cells
        }
        levels.append(Level(first.n, first.chains, cells))
    return replace(tables[0], levels=tuple(levels))


def _cell(category: Category, cells: Sequence[Cell], votes: int) -> Cell:
    answered = np.stack([cell.answered for cell in cells])
    yes, no = np.stack([cell.yes for cell in cells]), np.stack([cell.no for cell in cells])
    mass = _first(_counted(answered, yes, no), votes)
    zero = np.zeros(answered.shape[1])
    enough = (answered.sum(0) >= votes).astype(float)
    pairs = (zero, zero, zero, zero)
    if category in BROKEN:
        right, wrong = (yes, no) if TRUTH[category] else (no, yes)
        whole = np.stack([cell.pair_answered for cell in cells])
        wrong_right = np.stack([cell.wrong_right for cell in cells])
        wrong_wrong = np.stack([cell.wrong_wrong for cell in cells])
        counts = _counted(whole, right * whole, wrong_right, wrong_wrong, wrong * whole - wrong_right - wrong_wrong)
        pairs = (whole.sum(0) >= votes).astype(float), *_pairs(counts, votes)
    expected = cells[0].expected
    told = Counts(
        expected=int(expected.sum()), answered=int(enough.sum()), absent=int(expected.sum() - enough.sum())
    )  # fmt: skip
    return Cell(expected, enough, *mass, *pairs, counts=told)


def _counted(answered: Floats, *kinds: Floats) -> np.ndarray:
    """How many draws of each chain are of each kind, the rest (invalid) last: (draws, C) each to (C, K + 1)."""
    sums = [kind.sum(0) for kind in kinds]
    return np.rint(np.stack([*sums, answered.sum(0) - sum(sums)], 1)).astype(np.int64)


def _first(counts: np.ndarray, votes: int) -> tuple[Floats, Floats]:
    yes, no = np.zeros(len(counts)), np.zeros(len(counts))
    for (y, n, _), p in outcomes(counts, votes):
        if y or n:
            share = 1.0 if y > n else 0.5 if y == n else 0.0
            yes += np.nan_to_num(p) * share
            no += np.nan_to_num(p) * (1 - share)
    return yes, no


def _pairs(counts: np.ndarray, votes: int) -> tuple[Floats, Floats, Floats]:
    """Joint masses wrong-right and wrong-wrong, and the mass of valid pairs."""
    knew, stayed, valid = (np.zeros(len(counts)) for _ in range(3))
    for (right, wr, ww, wx, _), p in outcomes(counts, votes):
        wrong = wr + ww + wx
        if not (right or wrong):
            continue
        mass = np.nan_to_num(p)
        falls = 1.0 if wrong > right else 0.5 if wrong == right else 0.0
        valid += mass * (1 - falls)
        if wr or ww:
            easy = 1.0 if wr > ww else 0.5 if wr == ww else 0.0
            knew += mass * falls * easy
            stayed += mass * falls * (1 - easy)
            valid += mass * falls
    return knew, stayed, valid
