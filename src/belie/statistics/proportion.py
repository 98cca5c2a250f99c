"""The interval of one proportion.

Knows: Wilson's interval (METHOD §3).
Does not know: what is counted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from belie.statistics.bootstrap import Floats


def wilson(successes: ArrayLike, total: ArrayLike, level: float = 0.95) -> Floats:
    """Wilson's score interval: shapes (…) → (…, 2), each in [0, 1]; nan where ``total`` is 0.

    ``successes`` and ``total`` may be masses, not counts, and ``total`` an effective number of units.
    """
    from statsmodels.stats.proportion import proportion_confint

    successes, total = np.broadcast_arrays(np.asarray(successes, float), np.asarray(total, float))
    known = total > 0
    n = np.where(known, total, 1.0)
    low, high = proportion_confint(np.clip(successes, 0, n), n, alpha=1 - level, method="wilson")
    interval = np.clip(np.stack([np.asarray(low, float), np.asarray(high, float)], axis=-1), 0, 1)
    return np.where(known[..., None], interval, np.nan)
