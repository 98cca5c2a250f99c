"""The scores of METHOD §1.3 at each n and over all n, each with its interval and its denominators.

Knows: the formulas; what is resampled (chains; each category by itself where the design drew them apart); `Scores`, the
result that is printed and stored.
Does not know: how answers were had (table), what the figures mean for the respondent (modes, verdict).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from belie.csq.formulas import (
    INTEGRATED,
    NAMES,
    PAIRS,
    TOTALS,
    Invalid,
    across,
    columns,
    formulas,
    influence,
    raw_logs,
    variance,
)
from belie.csq.intervals import pseudo, rate_interval, unseen, unseen_error, widened
from belie.csq.modes import Margins, Placement, place
from belie.csq.overall import Rule, T, weights
from belie.csq.table import Cell, Level, Table
from belie.items import BROKEN
from belie.respondents.base import BadInput
from belie.statistics import Floats, Resampler, bca, percentile

#: Raised whenever the same answers would give another figure.
SCORES_VERSION = 1

#: With fewer chains at an n resampling is not to be trusted, and `Scores.notes` says so.
FEW_CHAINS = 20

Method = Literal["percentile", "bca"]

_RATES = [NAMES.index(name) for name in ("delta_pos", "delta_neg", "gamma_pos", "gamma_neg", "error")]
_ERROR = NAMES.index("error")
_COMPOSITE = [NAMES.index(name) for name in ("rho", "delta", "delta_net", "beta")]
_OVERALL = [NAMES.index(name) for name in (*INTEGRATED, "error")]


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its interval; nan where it is undefined."""

    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True, slots=True)
class Row:
    """All that is known at one n.

    ``figures`` by name (see `NAMES`, and ``rho_raw``, ``beta_raw`` without interval, which may be infinite).
    ``denominators``: for each category the mass of valid first answers, and ``pairs_pos``, ``pairs_neg`` that of
    valid pairs on broken and broken_reversed. ``coverage``: valid/answered under the same keys, and ``first`` and
    ``pairs`` pooled. ``counts``: for each category what was expected, answered, failed, never asked.
    """

    n: int
    figures: Mapping[str, Figure]
    denominators: Mapping[str, float]
    coverage: Mapping[str, float]
    counts: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Scores:
    """The result of scoring one run: plain numbers, the same whatever the order in which the answers came.

    ``overall`` holds rho, delta, delta_net (integrated to ``t``) and error (mean over all cells of the grid).
    """

    rows: tuple[Row, ...]
    overall: Mapping[str, Figure]
    coverage: Mapping[str, float]
    placement: Placement
    t: float
    options: Mapping[str, Any]
    notes: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """A plain dict for scores.json: nan → null, infinities → "inf" and "-inf", floats at 10 significant digits."""
        placement = asdict(self.placement)
        return plain(
            {
                "scores_version": SCORES_VERSION,
                "options": dict(self.options),
                "overall": {"t": self.t, **{name: asdict(figure) for name, figure in self.overall.items()}},
                "coverage": dict(self.coverage),
                "placement": placement,
                "cells": [
                    {
                        "n": row.n,
                        **{name: asdict(figure) for name, figure in row.figures.items()},
                        "denominators": dict(row.denominators),
                        "coverage": dict(row.coverage),
                        "counts": {category: dict(counts) for category, counts in row.counts.items()},
                    }
                    for row in self.rows
                ],
                "notes": list(self.notes),
            }
        )


def score(
    table: Table,
    *,
    invalid: Invalid = "leave_out",
    rule: Rule = "log",
    hold: bool = True,
    t: float | None = None,
    method: Method = "bca",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    margins: Margins | None = None,
    resampler: Resampler | None = None,
) -> Scores:
    """Every score of METHOD §1.3–1.5 with its interval.

    ``invalid="wrong"`` counts an invalid answer as a wrong one (METHOD §1.2): an invalid first answer, which has no
    follow-up, then enters the denominators of δ and γ but neither numerator. ``rule``, ``hold``, ``t``: see
    `belie.csq.overall.weights`. ``resampler`` replaces ``resamples`` and ``seed``. Raises BadInput for options out of
    range.
    """
    if invalid not in ("leave_out", "wrong"):
        raise BadInput(f"Unknown treatment of invalid answers {invalid!r}: use 'leave_out' or 'wrong'.")
    if method not in ("percentile", "bca"):
        raise BadInput(f"Unknown interval {method!r}: use 'bca' or 'percentile'.")
    if not 0 < level < 1:
        raise BadInput(f"The level of an interval must lie between 0 and 1, not {level:g}.")
    w = weights(table.grid, t=t, rule=rule, hold=hold)
    resampler = resampler or Resampler(resamples, seed)
    margins = margins or Margins()

    estimates, centres, draws, slopes, sums = [], [], [], [], []
    for at_n in table.levels:
        strata = columns(at_n, matched=table.matched, invalid=invalid)
        sums.append([stratum.sum(0) for stratum in strata])
        estimates.append(formulas(sums[-1]))
        smoothing = pseudo(strata, exact=table.exact)
        centres.append(formulas(sums[-1], smoothing))
        resampled = [resampler.sums(stratum, at_n.n, i) for i, stratum in enumerate(strata)]
        draws.append(formulas(resampled, smoothing))
        slopes.append(influence(strata, estimates[-1]))
    # (n, scores): as METHOD defines them, and as the draws, (B, n, scores), are made.
    estimate, centre, drawn = np.stack(estimates), np.stack(centres), np.stack(draws, 1)

    missed, missed_error = np.zeros((len(w), 4, 2)), np.zeros((len(w), 2))
    rows = []
    for i, at_n in enumerate(table.levels):
        flat = np.concatenate(sums[i])
        interval = _interval(drawn[:, i], estimate[i], centre[i], slopes[i], method, level)
        totals = np.append(flat[PAIRS], flat[TOTALS].min())  # in the order of _RATES
        interval[_RATES] = rate_interval(
            estimate[i, _RATES], variance(slopes[i])[_RATES], totals, exact=table.exact, level=level
        )
        if not table.exact:
            missed[i] = unseen(flat, level)
            interval[_COMPOSITE] = widened(interval[_COMPOSITE], estimate[i, _COMPOSITE], missed[i])
            missed_error[i] = unseen_error(flat, level)
            interval[_ERROR] = widened(interval[[_ERROR]], estimate[i, [_ERROR]], missed_error[[i]])[0]
        figures = _figures(NAMES, estimate[i], interval)
        raw_rho, raw_beta = raw_logs(flat)
        figures |= {"rho_raw": Figure(raw_rho), "beta_raw": Figure(raw_beta)}
        rows.append(_row(at_n, figures, invalid))

    # What a chain adds to an overall figure is what it adds at its n, times the weight of that n.
    over, over_draws = across(estimate, w), across(drawn, w)
    share = np.stack([w, w, w, np.full(len(w), 1 / len(w))], 1)
    parts = [part[:, _OVERALL] * share[i] for i, strata in enumerate(slopes) for part in strata]
    interval = _interval(over_draws, over, across(centre, w), parts, method, level)
    chains = np.array([float(sum(np.concatenate(each)[TOTALS].min() for each in sums))])
    interval[3:] = rate_interval(over[3:], variance(parts)[3:], chains, exact=table.exact, level=level)
    if not table.exact:
        interval[:3] = widened(interval[:3], over[:3], np.sqrt(np.einsum("n,nks->ks", w**2, missed[:, :3] ** 2)))
        interval[3:] = widened(interval[3:], over[3:], np.sqrt((missed_error**2).sum(0, keepdims=True)) / len(w))
    overall = _figures((*INTEGRATED, "error"), over, interval)

    placement = place(
        table.grid,
        drawn[..., NAMES.index("rho")],
        drawn[..., NAMES.index("delta_net")],
        over_draws[:, 3],
        estimate[:, NAMES.index("rho")],
        estimate[:, NAMES.index("delta_net")],
        w,
        margins=margins,
        level=level,
    )
    end = float(table.grid[-1]) if t is None else float(t)
    options = {
        "invalid": invalid,
        "rule": rule,
        "hold": hold,
        "method": method,
        "level": level,
        "resamples": resampler.resamples,
        "seed": resampler.seed,
        "matched": table.matched,
        "exact": table.exact,
        "draws": table.draws,
        "margins": asdict(margins),
    }
    return Scores(tuple(rows), overall, _coverage(table), placement, end, options, _notes(table, end))


def _figures(names: Sequence[str], value: Floats, interval: Floats) -> dict[str, Figure]:
    return {name: Figure(*map(float, (value[i], *interval[i]))) for i, name in enumerate(names)}


def _interval(
    draws: Floats, value: Floats, centre: Floats, influence: Sequence[Floats], method: Method, level: float
) -> Floats:
    """Interval of each column; stretched to hold the value where smoothing has moved that out."""
    interval = bca(draws, centre, influence, level) if method == "bca" else percentile(draws, level)
    return np.stack([np.minimum(interval[:, 0], value), np.maximum(interval[:, 1], value)], 1)


def _row(level: Level, figures: Mapping[str, Figure], invalid: Invalid) -> Row:
    denominators: dict[str, float] = {}
    coverage: dict[str, float] = {}
    for category, cell in level.cells.items():
        valid, answered = float((cell.yes + cell.no).sum()), float(cell.answered.sum())
        denominators[category] = answered if invalid == "wrong" else valid
        coverage[category] = valid / answered if answered else math.nan
    for name, category in zip(("pairs_pos", "pairs_neg"), BROKEN, strict=True):
        cell = level.cells[category]
        valid, answered = float(cell.pair_valid.sum()), float(cell.pair_answered.sum())
        denominators[name] = answered if invalid == "wrong" else valid
        coverage[name] = valid / answered if answered else math.nan
    coverage |= _pooled([level])
    return Row(level.n, figures, denominators, coverage, {c: asdict(cell.counts) for c, cell in level.cells.items()})


def _pooled(levels: Sequence[Level]) -> dict[str, float]:
    first = [(cell.yes.sum() + cell.no.sum(), cell.answered.sum()) for level in levels for cell in level.cells.values()]
    pairs = [
        (level.cells[category].pair_valid.sum(), level.cells[category].pair_answered.sum())
        for level in levels
        for category in BROKEN
    ]
    return {name: _ratio(sums) for name, sums in (("first", first), ("pairs", pairs))}


def _ratio(sums: Sequence[tuple[Any, Any]]) -> float:
    over = math.fsum(float(answered) for _, answered in sums)
    return math.fsum(float(valid) for valid, _ in sums) / over if over else math.nan


def _coverage(table: Table) -> dict[str, float]:
    """Valid/answered over all n, and ``missing``: the share of expected first answers that failed or were never
    asked."""
    counts = [cell.counts for level in table.levels for cell in level.cells.values()]
    expected = sum(count.expected for count in counts)
    missing = sum(count.errors + count.absent for count in counts)
    lost = sum(count.followups_errors + count.followups_absent for count in counts)
    needed = sum(count.followups_needed for count in counts)
    return {
        **_pooled(table.levels),
        "missing": missing / expected if expected else math.nan,
        "followups_missing": lost / needed if needed else 0.0,
    }


def _cells(level: Level) -> list[Cell]:
    return list(level.cells.values())


def _chains(level: Level) -> int:
    """The chains that were answered in the category that has fewest."""
    return min(int(cell.answered.sum()) for cell in _cells(level))


def _notes(table: Table, end: float) -> tuple[str, ...]:
    notes = []
    if end != T:
        notes.append(f"Overall figures are integrated to t = {end:g}; the paper's go to 80 and are not comparable.")
    few = [str(level.n) for level in table.levels if 0 < _chains(level) < FEW_CHAINS]
    if few:
        notes.append(f"Fewer than {FEW_CHAINS} chains at n = {', '.join(few)}: intervals there are too narrow.")
    empty = [
        str(level.n) for level in table.levels if any(not cell.yes.any() | cell.no.any() for cell in _cells(level))
    ]
    if empty:
        notes.append(
            f"A kind of question has no valid answer at n = {', '.join(empty)}: nothing is integrated over it."
        )
    if table.mixed:
        notes.append("Some answers are probabilities and some are words, which do not belong together: ask anew.")
    if table.unexpected:
        notes.append(f"Answers that belong to no item of this design, and were ignored: {table.unexpected:,}.")
    if table.repeated:
        notes.append(f"Answers that came twice, of which the first was kept: {table.repeated:,}.")
    return tuple(notes)


def plain(value: Any) -> Any:
    """Anything to JSON's own types: nan → null, infinities → "inf" and "-inf", floats at 10 significant digits."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return float(f"{value:.10g}") if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    return value
