"""From answers to arrays: what was answered, one row a chain.

Knows: how an item's id names its chain and category; how an exact or a sampled answer becomes a mass of Yes and No;
which answers are missing (METHOD §1.2).
Does not know: scores, intervals, who answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from belie.csq.answers import parse
from belie.items import BROKEN, CATEGORIES, TRUTH, Answer, Category, Item, Order
from belie.respondents.base import BadInput
from belie.statistics import Floats

_INDEX: Mapping[str, int] = {category: i for i, category in enumerate(CATEGORIES)}
_PAIR: Mapping[str, int] = {category: i for i, category in enumerate(BROKEN)}
_ABSENT, _ANSWERED, _ERROR = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Counts:
    """How many answers of one cell were expected, came, failed (error) or were never asked (absent).

    What is counted are answers to the *hard* question. ``followups_needed`` counts draws whose hard answer left mass
    on the wrong side (with the easy question first: all that have a hard answer), and so need an easy one; its three
    parts follow.
    """

    expected: int = 0
    answered: int = 0
    errors: int = 0
    absent: int = 0
    followups_needed: int = 0
    followups_answered: int = 0
    followups_errors: int = 0
    followups_absent: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """One category at one n: arrays over chains (C,), each the mean over the draws that were answered; 0 where none
    was.

    ``answered`` is 1 where the chain has an answer to the hard question, ``yes`` and ``no`` its mass of valid answers
    (yes + no ≤ 1). For the broken categories: ``pair_answered`` is 1 where the pair is complete, ``wrong_right`` and
    ``wrong_wrong`` the joint mass of a wrong hard answer and a right or wrong easy one, ``pair_valid`` that of valid
    pairs (right at once, or wrong with a valid follow-up; where the easy question came first, both valid). ``expected``
    marks the chains that hold an item of this category.
    """

    expected: NDArray[np.bool_]
    answered: Floats
    yes: Floats
    no: Floats
    pair_answered: Floats
    wrong_right: Floats
    wrong_wrong: Floats
    pair_valid: Floats
    counts: Counts = field(default_factory=Counts)


@dataclass(frozen=True, slots=True)
class Level:
    """All chains of one n, in the order of their ids; ``cells`` by category."""

    n: int
    chains: tuple[str, ...]
    cells: Mapping[Category, Cell]


@dataclass(frozen=True, slots=True)
class Table:
    """Everything that scores are computed from.

    ``levels`` are sorted by n. ``matched``: the four categories share their chains, and a chain is resampled whole;
    otherwise each category is resampled by itself. ``exact``: some answers are probabilities, not words; ``mixed``: so
    are only some.
    ``unexpected`` counts answers to items that were not in the design, ``repeated`` answers to a place that had one
    (the first is kept; an answer replaces an error).
    """

    levels: tuple[Level, ...]
    draws: int = 1
    matched: bool = True
    exact: bool = False
    unexpected: int = 0
    repeated: int = 0
    mixed: bool = False

    @property
    def grid(self) -> tuple[int, ...]:
        return tuple(level.n for level in self.levels)

    @classmethod
    def build(
        cls,
        items: Iterable[Item],
        answers: Iterable[Answer],
        draws: int = 1,
        *,
        parser: Callable[[str], str] = parse,
    ) -> Table:
        """Sort the answers into the places that the items of the design span.

        ``items``: the whole design, each id "<chain>/<category>"; ``answers``: in any order, streamed once. Memory is
        about 200 bytes a chain and 100 bytes a chain and draw, whatever the length of the answers. The design is
        matched if a chain holds items of more than one category. Where the easy question came first (`Item.order`)
        the answer that followed is the expression and the first one the belief; the expression counts for ρ and the
        error whatever became of the belief, and is invalid where nothing was said to the easy question.
        Raises BadInput if there are no items, only some ask the easy question first, or ``draws`` < 1.
        """
        if draws < 1:
            raise BadInput(f"draws must be at least 1, not {draws}: give the number of draws an item was asked for.")
        place: dict[str, int] = {}
        sizes: list[int] = []
        held: list[int] = []
        orders: set[Order] = set()
        for item in items:
            if item.followup is not None:
                orders.add(item.order)
            chain, _, category = item.id.rpartition("/")
            row = place.setdefault(chain, len(place))
            if row == len(sizes):
                sizes.append(item.n)
                held.append(0)
            held[row] |= 1 << _INDEX[category]
        if not place:
            raise BadInput("There are no items to score: the design is empty.")
        if len(orders) > 1:
            raise BadInput("Some items ask the easy question first and some the hard one: score them apart.")
        easy_first = orders == {"easy_first"}

        size = len(place)
        matched = any(bits & (bits - 1) for bits in held)
        first = np.full((size, 4, draws, 2), np.nan)
        followup = np.full((size, 2, draws, 2), np.nan)
        states = (np.zeros((size, 4, draws), np.int8), np.zeros((size, 2, draws), np.int8))
        reading = lru_cache(maxsize=4096)(lambda text: _MASS[parser(text)])
        unexpected = repeated = 0
        exact = words = False
        for answer in answers:
            chain, _, category = answer.item.rpartition("/")
            row = place.get(chain)
            second = answer.step == "followup"
            column = (_PAIR if second else _INDEX).get(category)
            if row is None or column is None or not held[row] >> _INDEX[category] & 1 or not 0 <= answer.draw < draws:
                unexpected += 1
                continue
            at = (row, column, answer.draw)
            state = states[second]
            if state[at] == _ANSWERED or (state[at] == _ERROR and answer.error is not None):
                repeated += 1
                continue
            if answer.error is not None:
                state[at] = _ERROR
                continue
            state[at] = _ANSWERED
            if answer.p is not None:
                mass = answer.p
                exact = True
            else:
                words = True
                text = answer.text or ""
                mass = reading(text) if len(text) < 64 else _MASS[parser(text)]
            (followup if second else first)[at] = mass
            if easy_first and not second and category in _PAIR and not (answer.text or "").strip():
                unsaid = (row, _PAIR[category], answer.draw)  # nothing to go on from: the hard question isn't asked
                states[1][unsaid], followup[unsaid] = _ANSWERED, (0.0, 0.0)

        names = np.array(list(place))
        grid, present = np.array(sizes), (np.array(held)[:, None] >> np.arange(4) & 1).astype(bool)
        del place, sizes, held
        levels = []
        for n in sorted(set(grid.tolist())):
            rows = np.flatnonzero(grid == n)
            rows = rows[np.argsort(names[rows], kind="stable")]
            cells: dict[Category, Cell] = {}
            for category, i in _INDEX.items():
                hard, easy = (first[rows, i], states[0][rows, i]), (None, None)
                if (pair := _PAIR.get(category)) is not None:
                    easy = (followup[rows, pair], states[1][rows, pair])
                    if easy_first:
                        hard, easy = easy, hard
                        hard[1][(hard[1] == _ABSENT) & (easy[1] == _ERROR)] = _ERROR  # it could not be asked
                cells[category] = _cell(category, present[rows, i], *hard, *easy, both=easy_first)  # type: ignore
            levels.append(Level(n, tuple(names[rows].tolist()), cells))
        return cls(tuple(levels), draws, matched, exact, unexpected, repeated, exact and words)

    @classmethod
    def from_arrays(
        cls,
        first: Mapping[int, Mapping[Category, Floats]],
        followup: Mapping[int, Mapping[Category, Floats]],
        *,
        matched: bool = True,
        exact: bool = False,
    ) -> Table:
        """The same from arrays: ``first[n][category]`` (chains, draws, 2) holds the mass of Yes and of No, nan where
        there is no answer; ``followup`` likewise for the broken categories, given a wrong first answer.

        Sampled answers are masses of 0 and 1 (an invalid one 0 and 0); ``exact`` says that they are probabilities.
        """
        levels = []
        draws = 1
        for n in sorted(first):
            cells: dict[Category, Cell] = {}
            chains = 0
            for category in CATEGORIES:
                p = np.asarray(first[n][category], float)
                chains, draws = p.shape[0], p.shape[1]
                q = np.asarray(followup[n][category], float) if category in BROKEN else None
                cells[category] = _cell(
                    category,
                    np.ones(chains, bool),
                    p,
                    (~np.isnan(p[..., 0])).astype(np.int8),
                    q,
                    None if q is None else (~np.isnan(q[..., 0])).astype(np.int8),
                )
            levels.append(Level(n, tuple(f"{i:05d}" for i in range(chains)), cells))
        return cls(tuple(levels), draws, matched, exact)


_MASS: Mapping[str, tuple[float, float]] = {"yes": (1.0, 0.0), "no": (0.0, 1.0), "invalid": (0.0, 0.0)}


def _cell(
    category: Category,
    expected: NDArray[np.bool_],
    first: Floats,
    state: NDArray[np.int8],
    followup: Floats | None,
    followup_state: NDArray[np.int8] | None,
    *,
    both: bool = False,
) -> Cell:
    """Arrays (C, draws, 2) and states (C, draws) of one category's hard and easy answers to means over the draws of
    each chain. ``both``: every draw asks both questions, so that a pair is valid only where both answers are."""
    answered = state == _ANSWERED
    yes = np.where(answered, first[..., 0], 0.0)
    no = np.where(answered, first[..., 1], 0.0)
    zero = np.zeros(len(first))
    counts = {
        "expected": int(expected.sum()) * first.shape[1],
        "answered": int(answered.sum()),
        "errors": int((state == _ERROR).sum()),
    }
    counts["absent"] = counts["expected"] - counts["answered"] - counts["errors"]
    pairs = (zero, zero, zero, zero)
    if followup is not None and followup_state is not None:
        right, wrong = (yes, no) if TRUTH[category] else (no, yes)
        needed = answered & ((wrong > 0) | both)
        followed = followup_state == _ANSWERED
        complete = answered & (followed | ~needed)
        use = needed & followed
        q_yes = np.where(use, followup[..., 0], 0.0)
        q_no = np.where(use, followup[..., 1], 0.0)
        q_right, q_wrong = (q_yes, q_no) if TRUTH[category] else (q_no, q_yes)
        pairs = (
            complete.any(1).astype(float),
            _mean(wrong * q_right, complete),
            _mean(wrong * q_wrong, complete),
            _mean((right * (q_yes + q_no) if both else right) + wrong * (q_yes + q_no), complete),
        )
        counts["followups_needed"] = int(needed.sum())
        counts["followups_answered"] = int(use.sum())
        counts["followups_errors"] = int((needed & (followup_state == _ERROR)).sum())
        counts["followups_absent"] = int((needed & (followup_state == _ABSENT)).sum())
    return Cell(
        expected,
        answered.any(1).astype(float),
        _mean(yes, answered),
        _mean(no, answered),
        *pairs,
        counts=Counts(**counts),
    )


def _mean(mass: Floats, over: NDArray[np.bool_]) -> Floats:
    """Mean of (C, draws) over the marked draws; 0 where none is marked."""
    return np.where(over, mass, 0.0).sum(1) / np.maximum(over.sum(1), 1)
