"""The formulas of METHOD §1.3 and what they are applied to.

Knows: the columns a chain adds up in, each score as a function of column sums, what one chain adds to a score.
Does not know: intervals, results, what the scores mean.

`formulas` is the only place where a score is computed: it takes column sums with any number of leading axes, so that
the estimate, every bootstrap draw, every leave-one-out estimate and every permutation go through the same lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from belie.csq.table import Level
from belie.items import BROKEN, CATEGORIES, TRUTH
from belie.statistics import Floats

Invalid = Literal["leave_out", "wrong"]

#: Columns of the sums, see `columns`: first answers by category, then δ_pos, δ_neg, γ_pos, γ_neg.
HITS, TOTALS = [0, 2, 7, 9], [1, 3, 8, 10]
JOINT, PAIRS = [4, 11, 5, 12], [6, 13, 6, 13]

#: The scores of one n, in the order of the last axis of `formulas`.
NAMES = ("rho", "delta_pos", "delta_neg", "delta", "gamma_pos", "gamma_neg", "delta_net", "beta", "error")
#: The scores that are integrated over n (METHOD §1.4).
INTEGRATED = ("rho", "delta", "delta_net")
_OVER = [NAMES.index(name) for name in INTEGRATED]
_ERROR = NAMES.index("error")


def columns(level: Level, *, matched: bool, invalid: Invalid = "leave_out") -> list[Floats]:
    """What `formulas` sums: one array (chains, K) a stratum; strata are resampled each by itself.

    Matched: one stratum of K = 14. Otherwise one stratum a category. In order of `CATEGORIES`: right mass and
    denominator of the first answer; for the broken ones then joint masses wrong-right, wrong-wrong and the
    denominator of pairs.
    """
    parts = []
    for category in CATEGORIES:
        cell = level.cells[category]
        right = cell.yes if TRUTH[category] else cell.no
        part = [right, cell.answered if invalid == "wrong" else cell.yes + cell.no]
        if category in BROKEN:
            pairs = cell.pair_answered if invalid == "wrong" else cell.pair_valid
            part += [cell.wrong_right, cell.wrong_wrong, pairs]
        stacked = np.stack(part, 1)
        parts.append(stacked if matched else stacked[cell.expected])
    return [np.concatenate(parts, 1)] if matched else parts


def formulas(strata: Sequence[Floats], pseudo: Floats | float = 1.0) -> Floats:
    """METHOD §1.3 from column sums: arrays (…, K) whose last axes together are 14 → (…, 9), see `NAMES`.

    Probabilities in ρ and β are Jeffreys-smoothed, (Σ+½)/(N+1), the others plain. An empty denominator gives nan.
    ``pseudo`` stands in place of the 1, one number a category (see `belie.csq.intervals`).
    """
    s = np.concatenate(strata, axis=-1)
    hits, totals = s[..., HITS], s[..., TOTALS]  # linked, broken, linked_reversed, broken_reversed
    totals = np.where(totals > 0, totals, np.nan)
    log_p = np.log((np.maximum(hits, 0) + np.asarray(pseudo) / 2) / (totals + pseudo))
    log_r1, log_r2 = log_p[..., 0] - log_p[..., 1], log_p[..., 2] - log_p[..., 3]
    over = s[..., PAIRS]
    joint = np.maximum(s[..., JOINT], 0) / np.where(over > 0, over, np.nan)
    delta_pos, delta_neg, gamma_pos, gamma_neg = np.moveaxis(joint, -1, 0)
    return np.stack(
        [
            (log_r1 + log_r2) / 2,
            delta_pos,
            delta_neg,
            np.sqrt(delta_pos * delta_neg),
            gamma_pos,
            gamma_neg,
            (delta_pos - gamma_pos + delta_neg - gamma_neg) / 2,
            (log_r1 - log_r2) / 2,
            1 - (hits / totals).mean(-1),
        ],
        axis=-1,
    )


def influence(strata: Sequence[Floats], estimate: Floats) -> list[Floats]:
    """(units − 1)·(estimate − estimate without the unit), one array (units, scores) a stratum; 0 where undefined."""
    totals = [stratum.sum(0) for stratum in strata]
    parts = []
    for i, stratum in enumerate(strata):
        without = [np.broadcast_to(total, (len(stratum), len(total))) for total in totals]
        without[i] = totals[i] - stratum
        parts.append(np.nan_to_num((len(stratum) - 1) * (estimate - formulas(without))))
    return parts


def across(values: Floats, w: Floats) -> Floats:
    """(…, n, scores) → (…, 4): ρ̄, δ̄, δ̄_net and the mean error."""
    used = w != 0  # an n of no weight (beyond t) must not spoil a figure with its nan
    integrated = np.moveaxis(values[..., used, :], -2, -1)[..., _OVER, :] @ w[used]
    return np.concatenate([integrated, values[..., _ERROR].mean(-1)[..., None]], axis=-1)


def variance(influence: Sequence[Floats]) -> Floats:
    """Jackknife variance over the strata: list of (units, M) → (M,)."""
    variance = np.zeros(influence[0].shape[1])
    for part in influence:
        variance += (part**2).sum(0) / max(len(part), 1) ** 2
    return variance


def raw_logs(s: Floats) -> tuple[float, float]:
    """ρ and β without smoothing: infinite where one side is empty, nan where both are."""
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.log(s[HITS] / s[TOTALS])
        one, two = p[0] - p[1], p[2] - p[3]
        return float((one + two) / 2), float((one - two) / 2)
