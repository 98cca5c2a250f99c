"""From bootstrap draws to the interval that is printed, where plain resampling falls short.

Knows: three corrections, each for a case in which simulation shows that resampling alone misses the truth.
Does not know: where the sums come from, or any test made with the draws.

1. A single rate (δ_pos, δ_neg, γ_pos, γ_neg, error) has Wilson's interval at its effective number of chains: the number
   at which a binomial rate has the variance seen between chains. Resampling a handful of events covers too little.
2. A rate of 0 or 1 has nothing to resample, and a composite score would pass off as known what was merely not seen. For
   sampled answers the Wilson bound of such a rate is added to the composite's interval, in quadrature. Exact answers
   that are 0 or 1 for every chain are taken as they are.
3. Jeffreys' half an event is made for counts, where it takes the bias of ln p̂ away. Exact answers vary less than
counts
   and need less of it: the draws of ρ and β use (Σ+½d)/(N+d), with d the variance seen over the binomial one, at most
   1. For one sampled answer an item d = 1; below five events d stays 1. The value itself is always METHOD's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import betaincinv

from belie.csq.formulas import HITS, JOINT, PAIRS, TOTALS
from belie.statistics import Floats, wilson

_FEW = 5.0
_TINY = 1e-9


def pseudo(strata: Sequence[Floats], *, exact: bool) -> Floats:
    """d of each category's rate of right first answers, (4,), from the columns of the chains (chains, K) by stratum."""
    columns = [(stratum, i) for stratum in strata for i in range(stratum.shape[1])]
    design = np.ones(4)
    for i, (hit, total) in enumerate(zip(HITS, TOTALS, strict=True)):
        stratum, column = columns[hit]
        hits, totals = stratum[:, column], stratum[:, columns[total][1]]
        size, sum_ = totals.sum(), hits.sum()
        if sum_ < _FEW:
            continue
        if size - sum_ <= _TINY * size:
            design[i] = 0.0 if exact else 1.0
        else:
            p = sum_ / size
            design[i] = min(1.0, float(((hits - p * totals) ** 2).sum()) / (size * p * (1 - p)))
    return design


def rate_interval(value: Floats, variance: Floats, total: Floats, *, exact: bool, level: float) -> Floats:
    """Wilson's interval at the effective number of chains value·(1 − value)/variance: shapes (M,) → (M, 2).

    At 0 or 1: ``total`` chains if the answers are sampled, no width if they are exact.
    """
    edge = _edge(value)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(edge, total, np.minimum(value * (1 - value) / variance, 1e12))
    interval = wilson(np.clip(value, 0, 1) * size, size, level)
    if exact:
        interval[edge] = value[edge, None]
    return interval


def unseen(sums: Floats, level: float) -> Floats:
    """What sampled answers may have missed in a cell at its edge: how far below and above the estimate each composite
    score may lie for it alone, ``sums`` (14,) → (4, 2) for ρ, δ, δ_net, β. 0 where no rate is at an edge."""
    with np.errstate(invalid="ignore", divide="ignore"):
        value, total = sums[HITS + JOINT] / sums[TOTALS + PAIRS], sums[TOTALS + PAIRS]
    bound = wilson(np.clip(value, 0, 1) * total, total, level)
    edge = _edge(value)
    sure, never = edge[:4] & (value[:4] > 0.5), edge[:4] & (value[:4] < 0.5)
    # Without any right answer the value is ln of Jeffreys' half an event; ln p itself is bounded by the same prior.
    held = np.log(0.5 / (total[:4] + 1))
    tail = np.log(np.maximum(betaincinv(0.5, total[:4] + 0.5, (1 - level) / 2), 1e-300))
    down = np.where(sure, -np.log(np.maximum(bound[:4, 0], _TINY)), np.where(never, held - tail, 0.0)) / 2
    up = np.where(never, np.log(np.maximum(bound[:4, 1], _TINY)) - held, 0.0) / 2
    out = np.zeros((4, 2))
    for row, plus in ((0, [0, 2]), (3, [0, 3])):  # the categories whose ln p enters with a plus
        minus = [i for i in range(4) if i not in plus]
        out[row, 0] = np.sqrt((down[plus] ** 2).sum() + (up[minus] ** 2).sum())
        out[row, 1] = np.sqrt((up[plus] ** 2).sum() + (down[minus] ** 2).sum())
    joint, joint_edge = value[4:], edge[4:]
    less = np.where(joint_edge, np.maximum(joint - bound[4:, 0], 0), 0.0) / 2
    more = np.where(joint_edge, np.maximum(bound[4:, 1] - joint, 0), 0.0) / 2
    if joint_edge[:2].any():
        delta = np.sqrt(joint[0] * joint[1])
        out[1] = delta - np.sqrt(bound[4, 0] * bound[5, 0]), np.sqrt(bound[4, 1] * bound[5, 1]) - delta
    out[2, 0] = np.sqrt((less[:2] ** 2).sum() + (more[2:] ** 2).sum())
    out[2, 1] = np.sqrt((more[:2] ** 2).sum() + (less[2:] ** 2).sum())
    return np.nan_to_num(out)


def unseen_error(sums: Floats, level: float) -> Floats:
    """The same for the error rate, (2,): 0 unless every category was right always, or never, and not all alike."""
    with np.errstate(invalid="ignore", divide="ignore"):
        value, total = sums[HITS] / sums[TOTALS], sums[TOTALS]
    if not _edge(value).all() or _edge(value.mean()):
        return np.zeros(2)
    bound = wilson(np.clip(value, 0, 1) * total, total, level)
    less_right, more_right = (value - bound[:, 0]) / 4, (bound[:, 1] - value) / 4
    return np.array([np.sqrt((more_right**2).sum()), np.sqrt((less_right**2).sum())])


def unseen_rates(sums: Floats, level: float) -> Floats:
    """The same for the single rates, (5, 2) for δ_pos, δ_neg, γ_pos, γ_neg and error, where their difference between
    two runs is wanted: a rate of 0 or 1 by Wilson's bound, as `rate_interval` has it for one run."""
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.append(sums[JOINT] / sums[PAIRS], 1 - (sums[HITS] / sums[TOTALS]).mean())
    total = np.append(sums[PAIRS], sums[TOTALS].min())
    bound = wilson(np.clip(value, 0, 1) * total, total, level)
    out = np.where(_edge(value)[:, None], np.abs(bound - value[:, None]), 0.0)
    out[4] = np.maximum(out[4], unseen_error(sums, level))
    return np.nan_to_num(out)


def widened(interval: Floats, value: Floats, deviation: Floats) -> Floats:
    """Each side of ``interval`` (M, 2) moved away from ``value`` (M,) by ``deviation`` (M, 2) in quadrature."""
    low = value - np.hypot(np.maximum(value - interval[:, 0], 0), deviation[:, 0])
    high = value + np.hypot(np.maximum(interval[:, 1] - value, 0), deviation[:, 1])
    moved = np.stack([np.minimum(low, interval[:, 0]), np.maximum(high, interval[:, 1])], 1)
    return np.where(deviation > 0, moved, interval)


def _edge(value: Floats) -> np.ndarray:
    return (value <= _TINY) | (value >= 1 - _TINY)
