"""What a run's errors are made of: is it guessing, difficulty, the word, or more? (METHOD §1.3, §1.5)

Knows: the parts of all pairs of answers, δ against independence, the split of the right rates into structure, word and
polarity, what length alone would give (capability), each by n and over all n with intervals.
Does not know: what a pattern means in words (patterns), how anything is shown.

All rates of pairs here are *means over the two kinds of broken question*, so that they add up: ``knowing`` is the mean
of δ_pos and δ_neg, of which METHOD's δ is the geometric mean.

*Independence.* With e the rate of wrong first answers, u that of right easy answers at all, independent answers give
δ = e·u: ``independent``; ``excess`` is what was seen beyond it, e(1 − e)(u_wrong − u_right) with u after wrong and
after right first answers. It needs the easy question after right answers too (``followups=all``, words). Without them
u_right may be anything in [0, 1], and the bounds of the excess, ``excess_low`` and ``excess_high``, always hold 0. What
can always be had is ``again``: e(1 − e), the hard question answered twice by independent draws; ``easier`` is what δ
has beyond that for each wrong answer: how much righter easy answers are then than hard ones are.

*Split.* ln of the right rate in the four cells, on three contrasts with +1 and −1, halves of which add up to each cell:
structure ρ (linked against broken), word β (truth Yes against No), polarity κ ("can" against "cannot"). They use up
all there is: κ is what ρ and β leave unexplained. ``rho_odds`` is the structure contrast on ln(p/(1 − p)). A word bias
alone leaves both ρ at 0 on any scale; a word bias in one who also finds "cannot" harder moves ρ, and not ``rho_odds``,
if it adds to the log-odds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from belie.csq.capability import capability_terms, own_length
from belie.csq.easy_answers import EasyAnswers
from belie.csq.intervals import rate_interval, widened
from belie.csq.modes import Margins
from belie.csq.overall import weights
from belie.csq.patterns import Found, Standing, stand
from belie.csq.scores import Figure, Scores, plain
from belie.csq.table import Level, Table
from belie.items import BROKEN, CATEGORIES, TRUTH
from belie.statistics import Floats, Resampler, percentile, wilson

#: Raised whenever the same answers would be explained otherwise.
DECOMPOSITION_VERSION = 1

#: Figures about what follows a wrong answer are left out where fewer than so many wrong answers were followed up.
FEW_WRONG = 5.0

# Columns by category, in the order of CATEGORIES: right mass and valid mass of the first answer; for broken ones also
# wrong-right, wrong-wrong, valid pairs, answered pairs, and the four of `EasyAnswers`.
_HIT, _TOTAL = [0, 2, 12, 14], [1, 3, 13, 15]
_WRONG_RIGHT, _WRONG_WRONG, _VALID, _ANSWERED, _BOTH, _EASY, _BOTH_WRONG, _BOTH_KNOWING = (
    [start + i for start in (2, 14)] for i in range(2, 10)
)

SHARES = ("right", "knowing", "unknowing", "invalid")
_FOLLOWED = (
    *("easy_right", "linked_low", "linked_high", "linked_departure", "own_low", "own_high", "own_departure"),
    *("easier", "after_wrong", "after_right", "turning"),
)
_PREDICTED = ("delta_low", "delta_high", "delta_departure")
#: What each dash means, by the figure that it stands for.
REASONS: Mapping[str, str] = {
    "exact": (
        "exact answers to the easy question are had on the branch of the wrong answer alone, so its rate after right "
        "answers, and with it δ under independence, is not known"
    ),
    "wrong_only": (
        "the easy question was asked after wrong answers only, so its rate after right answers, and with it δ under "
        "independence, is not known: run with --sample --followups all"
    ),
    "below": "the easy question is shorter than the shortest chain that was asked, so length predicts nothing of it",
    "few": f"fewer than {FEW_WRONG:g} wrong answers with a valid easy answer after them",
    "pairs": "the easy question of these pairs has no length of its own, so length predicts nothing of it",
}


@dataclass(frozen=True, slots=True)
class ExplainedRow:
    """One n. ``figures`` by name (see the module and `capability_terms`), nan where they can't be had; ``pairs`` and
    ``wrong`` the mass of answered pairs and of wrong first answers with a valid easy answer after them; ``own``: the
    easy question's own length, None where it has none; ``missing``: easy answers that were due and did not come."""

    n: int
    own: int | None
    figures: Mapping[str, Figure]
    pairs: float
    wrong: float
    missing: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """The result of explaining one run; ``overall`` holds means over ln n (those about the easy question after a wrong
    answer weigh each n by its errors too). ``reasons``: why figures are missing, as sentences without a full stop."""

    rows: tuple[ExplainedRow, ...]
    overall: Mapping[str, Figure]
    standing: Standing
    reasons: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values: nan → null."""
        return plain(
            {
                "decomposition_version": DECOMPOSITION_VERSION,
                "options": dict(self.options),
                "pattern": self.standing.pattern,
                "shares": dict(self.standing.shares),
                "overall": {name: asdict(figure) for name, figure in self.overall.items()},
                "cells": [
                    {
                        "n": row.n,
                        "own_length": row.own,
                        "pairs": row.pairs,
                        "wrong_followed": row.wrong,
                        "easy_missing": row.missing,
                        **{name: asdict(figure) for name, figure in row.figures.items()},
                    }
                    for row in self.rows
                ],
                "reasons": list(self.reasons),
            }
        )


def explain(
    table: Table,
    scores: Scores,
    *,
    k: int | None,
    easy: EasyAnswers | None = None,
    margins: Margins | None = None,
    level: float = 0.95,
    resampler: Resampler | None = None,
) -> Explanation:
    """Explain a run from its table and its scores (for direction, and ρ, β as they are printed elsewhere).

    ``k``: the easy question spans n/k steps; None where it has no length. ``easy``: the pairs after right answers too
    (`easy_answers`); None where they were not asked.
    """
    margins = margins or Margins()
    resampler = resampler or Resampler(2000, 0)
    grid = table.grid
    sums, drawn = [], []
    for at_n in table.levels:
        strata = _columns(at_n, table.matched, easy)
        sums.append(np.concatenate([stratum.sum(0) for stratum in strata]))
        drawn.append(np.concatenate([resampler.sums(stratum, at_n.n, i) for i, stratum in enumerate(strata)], axis=-1))
    total, draws = np.stack(sums), np.stack(drawn, 1)
    values, spread = terms(total, grid, k), terms(draws, grid, k)
    w = weights(grid)
    over, over_draws = _overall(values, w), _overall(spread, w)

    followed = (total[:, _WRONG_RIGHT] + total[:, _WRONG_WRONG]).sum(-1)
    few = followed < FEW_WRONG
    rows = []
    for i, at_n in enumerate(table.levels):
        one = {name: float(value[i]) for name, value in values.items()}
        interval = _intervals({name: draw[:, i] for name, draw in spread.items()}, one, level)
        pairs = float(total[i, _ANSWERED].sum())
        _rates(interval, one, {name: spread[name][:, i] for name in SHARES}, pairs, table.exact, level)
        if not table.exact:
            _widen(interval, one, total[i], level)
        figures = {name: Figure(one[name], *interval[name]) for name in one}
        if few[i]:
            figures |= {name: Figure(math.nan) for name in _FOLLOWED}
        figures |= {name: scores.rows[i].figures[name] for name in ("rho", "beta")}
        counts = [at_n.cells[category].counts for category in BROKEN]
        missing = sum(count.followups_errors + count.followups_absent for count in counts)
        own = None if k is None else own_length(at_n.n, k)
        rows.append(ExplainedRow(at_n.n, own, figures, pairs, float(followed[i]), missing))

    interval = _intervals(over_draws, {name: float(value) for name, value in over.items()}, level)
    pairs = sum(row.pairs for row in rows)
    _rates(interval, over, {name: over_draws[name] for name in SHARES}, pairs, table.exact, level)
    if not table.exact:
        _widen(interval, over, total.sum(0), level)
    overall = {name: Figure(float(over[name]), *interval[name]) for name in over}
    overall |= {"rho": scores.overall["rho"], "error": scores.overall["error"]}
    sign = _signs(scores)
    found = Found(
        error=over_draws["error"],
        rho=_signed(spread["rho"], sign, w),
        rho_odds=_signed(spread["rho_odds"], sign, w),
        beta=_signed(spread["beta"], np.ones(len(w)), w),
        net=over_draws["net"],
        own=over_draws["own_departure"],
        easier=over_draws["easier"],
        turning=over_draws["turning"],
    )
    options = {
        "k": k,
        "level": level,
        "resamples": resampler.resamples,
        "seed": resampler.seed,
        "margins": asdict(margins),
        "exact": table.exact,
        "direction": scores.placement.direction,
        "mode": scores.placement.mode,
    }
    return Explanation(tuple(rows), overall, stand(found, margins), _reasons(rows, table, k, easy), options)


def terms(sums: Floats, grid: Sequence[int], k: int | None) -> dict[str, Floats]:
    """Every figure from column sums (…, n, 24): name → (…, n). The estimate and each draw go through these lines."""
    hit, total = sums[..., _HIT], sums[..., _TOTAL]
    total = np.where(total > 0, total, np.nan)
    right = hit / total
    return {
        "error": 1 - right.mean(-1),
        **_pair_terms(sums),
        **_split(hit, total),
        **capability_terms(
            right,
            np.nan_to_num(total),
            _rate(sums[..., _WRONG_RIGHT], sums[..., _VALID]),
            _rate(sums[..., _WRONG_WRONG], sums[..., _VALID]),
            grid,
            k,
        ),
    }


def _rate(part: Floats, whole: Floats) -> Floats:
    return part / np.where(whole > 0, whole, np.nan)


def _pair_terms(sums: Floats) -> dict[str, Floats]:
    valid, answered = sums[..., _VALID], sums[..., _ANSWERED]
    knew, held = sums[..., _WRONG_RIGHT], sums[..., _WRONG_WRONG]
    parts = (valid - knew - held, knew, held, answered - valid)
    shares = {
        name: np.clip(_rate(part, answered).mean(-1), 0, 1) for name, part in zip(SHARES, parts, strict=True)
    }  # fmt: skip
    wrong, knowing = _rate(knew + held, valid), _rate(knew, valid)
    again = wrong * (1 - wrong)
    both = sums[..., _BOTH]
    e, u = _rate(sums[..., _BOTH_WRONG], both), _rate(sums[..., _EASY], both)
    seen = _rate(sums[..., _BOTH_KNOWING], both)
    after_wrong, after_right = _rate(seen.sum(-1), e.sum(-1)), _rate((u - seen).sum(-1), (1 - e).sum(-1))
    return {
        **shares,
        "delta_mean": knowing.mean(-1),
        "net": (knowing - _rate(held, valid)).mean(-1),
        "again": again.mean(-1),
        "excess_again": (knowing - again).mean(-1),
        "easier": _rate((knowing - again).sum(-1), wrong.sum(-1)),
        "independent": (e * u).mean(-1),
        "excess": (seen - e * u).mean(-1),
        "excess_low": ((1 - wrong) * (knowing - wrong)).mean(-1),
        "excess_high": ((1 - wrong) * knowing).mean(-1),
        "after_wrong": after_wrong,
        "after_right": after_right,
        "turning": after_wrong - after_right,
    }


def _split(hit: Floats, total: Floats) -> dict[str, Floats]:
    """The contrasts of METHOD's log rates, Jeffreys-smoothed, and the structure contrast of the log-odds."""
    hit = np.maximum(hit, 0)
    log = np.moveaxis(np.log((hit + 0.5) / (total + 1)), -1, 0)
    odds = np.moveaxis(np.log((hit + 0.5) / (np.maximum(total - hit, 0) + 0.5)), -1, 0)
    linked, broken, linked_reversed, broken_reversed = log
    return {
        "can": linked - broken,
        "cannot": linked_reversed - broken_reversed,
        "rho": (linked - broken + linked_reversed - broken_reversed) / 2,
        "beta": (linked - broken - linked_reversed + broken_reversed) / 2,
        "polarity": (linked + broken - linked_reversed - broken_reversed) / 2,
        "rho_odds": (odds[0] - odds[1] + odds[2] - odds[3]) / 2,
    }


def _columns(level: Level, matched: bool, easy: EasyAnswers | None) -> list[Floats]:
    parts = []
    for category in CATEGORIES:
        cell = level.cells[category]
        part = [cell.yes if TRUTH[category] else cell.no, cell.yes + cell.no]
        if category in BROKEN:
            part += [cell.wrong_right, cell.wrong_wrong, cell.pair_valid, cell.pair_answered]
            part += list(easy[level.n][category].T) if easy else [np.zeros(len(cell.yes))] * 4
        stacked = np.stack(part, 1)
        parts.append(stacked if matched else stacked[cell.expected])
    return [np.concatenate(parts, 1)] if matched else parts


def _overall(values: Mapping[str, Floats], w: Floats) -> dict[str, Floats]:
    """(…, n) → (…): the mean over ln n. What length predicts passes over an n where it can't be had; what follows a
    wrong answer does so too, and there each n weighs by its errors besides."""
    over = {name: value @ w for name, value in values.items() if name not in (*_FOLLOWED, *_PREDICTED, "error")}
    over["error"] = values["error"].mean(-1)
    errors = np.nan_to_num(values["knowing"] + values["unknowing"])
    for name in (*_FOLLOWED, *_PREDICTED):
        known = ~np.isnan(values[name])
        weight = np.where(known, w * (1.0 if name in _PREDICTED else errors), 0.0)
        mass = weight.sum(-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            over[name] = np.where(known, values[name] * weight, 0.0).sum(-1) / np.where(mass > 0, mass, np.nan)
    return over


def _intervals(draws: Mapping[str, Floats], values: Mapping[str, float], level: float) -> dict[str, tuple]:
    found = percentile(np.stack(list(draws.values()), 1), level)
    return {
        name: (min(float(low), values[name]), max(float(high), values[name]))
        for name, (low, high) in zip(draws, found, strict=True)
    }


def _rates(
    interval: dict[str, tuple],
    values: Mapping[str, Any],
    draws: Mapping[str, Floats],
    pairs: float,
    exact: bool,
    level: float,
) -> None:
    """Puts Wilson's interval at the effective number of pairs in the place of the percentile one, for shares."""
    names = [name for name in draws if not math.isnan(values[name])]
    if not pairs or not names:
        return
    value, variance = np.array([float(values[name]) for name in names]), np.array([draws[name].var() for name in names])
    found = rate_interval(value, variance, np.full(len(names), pairs), exact=exact, level=level)
    interval |= {name: (float(low), float(high)) for name, (low, high) in zip(names, found, strict=True)}


def _widen(interval: dict[str, tuple], values: Mapping[str, Any], sums: Floats, level: float) -> None:
    """Adds to intervals what sampled answers may have missed in a rate that was seen to be 0 or 1: the distance to its
    Wilson bound, in quadrature (as `belie.csq.intervals` does)."""
    wrong, right = sums[_BOTH_WRONG].sum(), sums[_BOTH].sum() - sums[_BOTH_WRONG].sum()
    followed = (sums[_WRONG_RIGHT] + sums[_WRONG_WRONG]).sum()
    easy = _missed(values["easy_right"], followed, level)
    after_wrong, after_right = (
        _missed(values["after_wrong"], wrong, level),
        _missed(values["after_right"], right, level),
    )
    linked = _missed(values["first_expected"], sums[[1, 13]].sum(), level)
    apart = np.hypot(after_wrong, after_right[::-1])
    for name, missed in {
        "easy_right": easy,
        "linked_departure": easy,
        "own_departure": easy,
        "after_wrong": after_wrong,
        "after_right": after_right,
        "turning": apart,
        "excess": float(values["again"]) * apart,
        "first_expected": linked,
        "first_departure": linked[::-1],
    }.items():
        value = np.array([float(values[name])])
        interval[name] = tuple(map(float, widened(np.array([interval[name]]), value, missed[None])[0]))


def _missed(value: Any, size: float, level: float) -> Floats:
    """How far below and above a rate of 0 or 1 over ``size`` answers it may lie: (2,); 0 for another rate."""
    if not size or 1e-9 < value < 1 - 1e-9 or math.isnan(value):
        return np.zeros(2)
    low, high = wilson(round(float(value)) * size, size, level)
    return np.array([float(value) - low, high - float(value)])


def _signs(scores: Scores) -> Floats:
    """As `belie.csq.modes.place` does: where ρ has both signs for sure, each n counts with its own taken out."""
    if scores.placement.direction != "mixed":
        return np.ones(len(scores.rows))
    directed = scores.placement.directed_n
    return np.array([np.sign(row.figures["rho"].value) if row.n in directed else 0.0 for row in scores.rows])


def _signed(draws: Floats, sign: Floats, w: Floats) -> Floats:
    used = w != 0
    return (draws * sign)[:, used] @ w[used]


def _reasons(rows: Sequence[ExplainedRow], table: Table, k: int | None, easy: EasyAnswers | None) -> tuple[str, ...]:
    keys = []
    if table.exact:
        keys.append("exact")
    elif easy is None or all(math.isnan(row.figures["excess"].value) for row in rows):
        keys.append("wrong_only")
    if k is None:
        keys.append("pairs")
    told = [REASONS[key] for key in keys]
    below = [str(row.n) for row in rows if row.own is not None and row.own < table.grid[0]]
    if below:
        told.append(f"n = {', '.join(below)}: {REASONS['below']}")
    few = [str(row.n) for row in rows if row.wrong < FEW_WRONG]
    if few:
        told.append(f"n = {', '.join(few)}: {REASONS['few']}")
    return tuple(told)
