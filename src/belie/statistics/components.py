"""Where variation comes from, in measurements that cross units with conditions: every unit under every condition.

Knows: the balanced two-way random-effects analysis of variance, its components, their intervals, and a permutation test
of "the conditions make no difference".
Does not know: what units and conditions are.

Model: x_up = μ + unit_u + condition_p + (unit × condition)_up, plus the sampling error of one answer where the
measurements are means of answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from belie.statistics.bootstrap import _BLOCK, Floats, Resampler

#: The components in the order of the last axis of everything here.
SOURCES = ("unit", "condition", "interaction", "sampling")


@dataclass(frozen=True, slots=True)
class Variances:
    """Variance components (4,), see `SOURCES`, with intervals (4, 2). nan: part of the interaction."""

    value: Floats
    interval: Floats


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Components (4,) and their draws (B, 4) as they came out: below 0 by chance where there is little variance."""

    value: Floats
    draws: Floats


def decompose(sheets: Floats, noise: Floats, inside: float, resampler: Resampler, *stream: int) -> Decomposition:
    """Components of ``sheets`` (K, units, conditions): K measurements of the same units, analysed each by itself, their
    components averaged.

    ``noise`` (K, units): mean over the conditions of the variance of one answer; ``inside``: the share of it that is in
    a cell of ``sheets`` (0 where cells are probabilities, 1/m where they are means of m answers). With ``noise`` nan
    the interaction stands for both and sampling is nan. Units are resampled; the conditions are few, so their mean
    square is drawn as observed·(P − 1)/χ² (normal effects), which is what makes the interval of their component wide;
    the same χ² under any ``stream``, for the conditions are the same. Needs two units and two conditions.
    """
    _, units, conditions = sheets.shape
    if units < 2 or conditions < 2:
        raise ValueError(f"{units} units under {conditions} conditions: at least 2 of each are needed")
    sums = np.concatenate(
        [sheets, (sheets.mean(2) ** 2)[..., None], (sheets**2).sum(2)[..., None], noise[..., None]], 2
    )  # (K, units, P + 3)
    flat = np.moveaxis(sums, 1, 0).reshape(units, -1)
    shape = (-1, *np.moveaxis(sums, 1, 0).shape[1:])
    squares = _mean_squares(flat.sum(0).reshape(shape), units, conditions)[0]  # (K, 4)
    drawn = _mean_squares(resampler.sums(flat, *stream).reshape(shape), units, conditions)  # (B, K, 4)
    drawn[..., [0, 2]] *= units / (units - 1)  # resampling units takes one degree of freedom from what they explain
    rng = np.random.default_rng([resampler.seed, conditions])
    drawn[..., 1] = squares[:, 1] * ((conditions - 1) / rng.chisquare(conditions - 1, len(drawn)))[:, None]
    return Decomposition(
        _components(squares.mean(0), units, conditions, inside), _components(drawn.mean(1), units, conditions, inside)
    )


def variances(parts: Sequence[Decomposition], level: float = 0.95) -> Variances:
    """The mean of several decompositions, such as one a chain length; what fell below 0 is given as 0."""
    value = np.maximum(np.mean([part.value for part in parts], axis=0), 0)
    draws = np.maximum(np.mean([part.draws for part in parts], axis=0), 0)
    tail = (1 - level) / 2
    ends = np.quantile(draws, [tail, 1 - tail], axis=0).T
    return Variances(value, np.stack([np.minimum(ends[:, 0], value), np.maximum(ends[:, 1], value)], 1))


def condition_test(sheets: Sequence[Floats], *, permutations: int = 2000, seed: int = 0) -> float:
    """p of "the conditions make no difference": conditions are permuted within each unit, all its measurements alike.

    ``sheets``: arrays (K, units, conditions), such as one a chain length. Statistic: the sum over all of the squares
    between the conditions' means. (1 + as large)/(1 + permutations).
    """
    rng = np.random.default_rng(seed)
    observed = sum(_between(sheet.mean(1)) for sheet in sheets)
    drawn = np.zeros(permutations)
    for sheet in sheets:
        _, units, conditions = sheet.shape
        block = max(1, _BLOCK // (units * conditions))
        at = np.arange(units)[:, None]
        for start in range(0, permutations, block):
            size = min(block, permutations - start)
            order = np.argsort(rng.random((size, units, conditions)), axis=2)
            means = np.stack([one[at, order].mean(1) for one in sheet], 1)  # (size, K, conditions)
            drawn[start : start + size] += _between(means)
    reached = drawn >= observed * (1 - 1e-9) - 1e-15
    return float(reached.sum() + 1) / (permutations + 1)


def _between(means: Floats) -> Floats:
    """(…, K, conditions) → (…): sum of squares about the mean over conditions, over all K."""
    return ((means - means.mean(-1, keepdims=True)) ** 2).sum((-1, -2))


def _mean_squares(sums: Floats, units: int, conditions: int) -> Floats:
    """Column sums over units (…, P + 3) to (…, 4): mean squares of units, conditions, residual, and the noise."""
    total = sums[..., :conditions]
    grand = total.mean(-1) / units
    of_units = conditions * (sums[..., conditions] - units * grand**2)
    of_conditions = units * ((total / units - grand[..., None]) ** 2).sum(-1)
    everything = sums[..., conditions + 1] - units * conditions * grand**2
    rest = everything - of_units - of_conditions
    return np.stack(
        [
            of_units / (units - 1),
            of_conditions / (conditions - 1),
            rest / ((units - 1) * (conditions - 1)),
            sums[..., conditions + 2] / units,
        ],
        -1,
    )


def _components(squares: Floats, units: int, conditions: int, inside: float) -> Floats:
    """Mean squares (…, 4) to components (…, 4)."""
    unit, condition, rest, noise = np.moveaxis(squares, -1, 0)
    known = np.where(np.isnan(noise), 0.0, noise) * inside
    return np.stack([(unit - rest) / conditions, (condition - rest) / units, rest - known, noise], -1)
