"""The interval of one proportion.

Knows: Wilson's interval (METHOD §3).
Does not know: what is counted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from belie.statistics.bootstrap import Floats


def wilson(successes: ArrayLike, total: ArrayLike, level: float = 0.95) -> Floats:
    """Wilson's score interval: shapes (…) → (…, 2), each in [0, 1]; nan where ``total`` is 0.

    ``successes`` and ``total`` may be masses, not counts, and ``total`` an effective number of units.
    """
    # statsmodels has it too, but takes a second to import, and every score needs it.
    successes, total = np.broadcast_arrays(np.asarray(successes, float), np.asarray(total, float))
    known = total > 0
    n = np.where(known, total, 1.0)
    p = np.clip(successes / n, 0, 1)
    z = ndtri((1 + level) / 2)
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    # Rounding must not keep the interval of nothing from 0, or that of everything from 1.
    low, high = np.where(p == 0, 0.0, centre - half), np.where(p == 1, 1.0, centre + half)
    return np.where(known[..., None], np.stack([low, high], axis=-1), np.nan)
