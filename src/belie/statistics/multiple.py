"""Many comparisons at once.

Knows: Holm's step-down adjustment (METHOD §3).
Does not know: what is compared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from belie.statistics.bootstrap import Floats


def holm(p: ArrayLike) -> Floats:
    """Holm-adjusted p-values, in the order given: (M,) → (M,). nan stays nan and is not counted as a comparison."""
    # statsmodels has it too, but collects garbage at each call: 40 ms for seven numbers.
    p = np.asarray(p, float)
    adjusted = np.full(p.shape, np.nan)
    order = np.argsort(p)[: int((~np.isnan(p)).sum())]  # nan sorts last
    left = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * left), 1.0)
    return adjusted


def tail(draws: Floats, null: float = 0.0) -> tuple[Floats, Floats]:
    """One-sided bootstrap p-values of each column: ``draws`` (B, M) → (share at or below ``null``, at or above it).

    Each is (k + 1)/(B + 1), so never 0; nan where a column has a nan draw. Twice the smaller is the two-sided p-value.
    """
    size = len(draws) + 1
    low = ((draws <= null).sum(0) + 1) / size
    high = ((draws >= null).sum(0) + 1) / size
    lost = np.isnan(draws).any(0)
    return np.where(lost, np.nan, low), np.where(lost, np.nan, high)
