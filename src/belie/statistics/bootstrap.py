"""Bootstrap of sums over units, and the intervals read from the draws.

Knows: rows of numbers (one row a unit), how to resample rows, percentile and BCa intervals (METHOD §3).
Does not know: what a row or a statistic means; any statistic that is a function of column sums will do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]

#: Cells of a weight matrix that are held at once (about 24 MB while they are drawn).
_BLOCK = 1_000_000


class Resampler:
    """Multinomial resampling of rows, seeded: the same stream and size always give the same draws.

    ``resamples`` is B. ``keep=True`` keeps every weight matrix, for simulation studies that score thousands of
    tables of one size (B × units × 8 bytes a stream); a single scoring has no use for it.
    """

    def __init__(self, resamples: int = 2000, seed: int = 0, *, keep: bool = False) -> None:
        if resamples < 1:
            raise ValueError(f"resamples must be at least 1, not {resamples}")
        if seed < 0:
            raise ValueError(f"seed must not be negative: {seed}")
        self.resamples = resamples
        self.seed = seed
        self._kept: dict[tuple[int, ...], Floats] | None = {} if keep else None

    def sums(self, columns: Floats, *stream: int) -> Floats:
        """Column sums of B resamples of the rows.

        ``columns`` (units, K) → (B, K). ``stream``: non-negative integers that name an independent stream of random
        numbers. Two arrays with as many rows given the same stream are resampled alike (a paired bootstrap).
        """
        units = len(columns)
        if units == 0:
            return np.zeros((self.resamples, columns.shape[1]))
        if self._kept is not None:
            key = (*stream, units)
            if key not in self._kept:
                rng = np.random.default_rng([self.seed, *stream])
                self._kept[key] = _weights(rng, self.resamples, units)
            return self._kept[key] @ columns
        rng = np.random.default_rng([self.seed, *stream])
        block = max(1, _BLOCK // units)
        parts = [
            _weights(rng, min(block, self.resamples - start), units) @ columns
            for start in range(0, self.resamples, block)
        ]
        return np.concatenate(parts)


def _weights(rng: np.random.Generator, resamples: int, units: int) -> Floats:
    """How often each unit is drawn in each resample: (resamples, units), every row sums to ``units``."""
    drawn = rng.integers(0, units, size=(resamples, units), dtype=np.int64)
    drawn += np.arange(resamples)[:, None] * units
    return np.bincount(drawn.ravel(), minlength=resamples * units).reshape(resamples, units).astype(float)


def percentile(draws: Floats, level: float = 0.95) -> Floats:
    """Percentile interval of each column: ``draws`` (B, M) → (M, 2).

    Draws that are nan (an emptied denominator) are left out; a column with more than 5 % of them has no interval (nan).
    """
    tail = (1 - level) / 2
    return _quantiles(draws, np.broadcast_to(np.array([tail, 1 - tail]), (draws.shape[1], 2)))


def bca(draws: Floats, estimate: Floats, influence: Sequence[Floats], level: float = 0.95) -> Floats:
    """Bias-corrected and accelerated interval of each column: ``draws`` (B, M), ``estimate`` (M,) → (M, 2).

    ``influence``: one array (units, M) a stratum that is resampled by itself; what each unit adds to the estimate,
    (units − 1) · (estimate − estimate without it); see `acceleration`. A column whose draws are all equal has the
    interval of no width at that value.
    """
    a = acceleration(influence)
    with np.errstate(invalid="ignore"):
        below = (draws < estimate).mean(0) + 0.5 * (draws == estimate).mean(0)
    half = 0.5 / len(draws)
    z0 = ndtri(np.clip(below, half, 1 - half))
    z = ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    shifted = z0[:, None] + z
    with np.errstate(divide="ignore", invalid="ignore"):
        at = ndtr(z0[:, None] + shifted / (1 - a[:, None] * shifted))
    plain = np.broadcast_to(ndtr(z), at.shape)
    return _quantiles(draws, np.where(np.isfinite(at), at, plain))


def acceleration(influence: Sequence[Floats]) -> Floats:
    """The acceleration a of BCa for a sample of one or more strata: list of (units_i, M) → (M,).

    a = ⅙ Σᵢ cᵢ⁻³ Σⱼ l³ᵢⱼ / (Σᵢ cᵢ⁻² Σⱼ l²ᵢⱼ)^{3/2} (Davison and Hinkley 1997, §5.3.2); 0 where nothing varies.
    """
    third = sum((part**3).sum(0) / max(len(part), 1) ** 3 for part in influence)
    second = sum((part**2).sum(0) / max(len(part), 1) ** 2 for part in influence)
    third, second = np.asarray(third, float), np.asarray(second, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        a = third / (6 * second**1.5)
    return np.where(np.isfinite(a), a, 0.0)


def _quantiles(draws: Floats, at: Floats) -> Floats:
    """Linear quantiles: column m of ``draws`` (B, M) at the levels ``at[m]`` (M, Q) → (M, Q)."""
    ordered = np.sort(np.ascontiguousarray(draws.T), axis=1)  # nan sorts last
    finite = len(draws) - np.isnan(draws).sum(0)
    place = at * (finite[:, None] - 1)
    low = np.clip(np.floor(place), 0, None).astype(np.intp)
    high = np.minimum(low + 1, np.maximum(finite - 1, 0)[:, None])
    column = np.arange(draws.shape[1])[:, None]
    below, above = ordered[column, low], ordered[column, high]
    with np.errstate(invalid="ignore"):
        out = below + np.where(above > below, (place - low) * (above - below), 0.0)
    out[finite < 0.95 * len(draws)] = np.nan
    return out
