"""The smallest difference that a paired design would have found.

Knows: the standard error of a difference, how many units can be swapped, how strict Holm's first step is.
Does not know: what is compared.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.stats import binom, nct, norm, t

#: From so many units on the t distributions are as good as normal.
_MANY = 2000


def smallest_difference(
    error: float,
    units: int,
    comparisons: int = 1,
    *,
    freedom: int | None = None,
    step: float = math.nan,
    alpha: float = 0.05,
    power: float = 0.8,
) -> float:
    """The smallest true difference found with probability ``power``, two-sided at ``alpha`` / ``comparisons``.

    ``error``: standard error of the difference, with ``freedom`` degrees of freedom (units − 1 by default); ``units``:
    how many were swapped. The swap test behaves like a paired t test, so the difference is that at which a noncentral t
    exceeds its critical value with that probability. Half a ``step`` (what one answer or round moves the figure by) is
    added, since the test counts ties against a difference. ``alpha`` / ``comparisons`` is Holm's first step: where
    other scores differ too, Holm finds smaller differences.

    Two bounds of the swap test itself. With u units no p is below 2^(1−u): where that is above alpha / comparisons the
    result is inf, no difference can be found. And that many units must differ, each by at least a step, so nothing
    below that is promised however small ``error`` is. nan where ``error`` is undefined, or is 0 and there is no step.
    """
    if units < 1 or math.isnan(error):
        return math.nan
    strict = alpha / max(comparisons, 1)
    needed = math.ceil(1 - math.log2(strict))
    if needed > units:
        return math.inf
    floor = math.nan if math.isnan(step) else step * _expected(needed, units, power)
    if error <= 1e-12:
        return floor
    found = error * _shift(strict, max(units - 1 if freedom is None else freedom, 1), power)
    return found if math.isnan(floor) else max(found + step / 2, floor)


def _shift(strict: float, freedom: int, power: float) -> float:
    """The noncentrality at which the two-sided test at ``strict`` has that power."""
    if freedom > _MANY:
        return float(norm.isf(strict / 2) + norm.ppf(power))
    critical = float(t.isf(strict / 2, freedom))
    return float(brentq(lambda shift: float(nct.sf(critical, freedom, shift)) - power, 0.0, critical + 12.0))  # type: ignore[arg-type]


def _expected(needed: int, units: int, power: float) -> float:
    """How many units must differ on average so that at least ``needed`` do with probability ``power``."""
    if needed == units:
        return units * power ** (1 / units)
    share = brentq(lambda q: float(binom.sf(needed - 1, units, q)) - power, 1e-9, 1 - 1e-9)
    return units * float(share)  # type: ignore[arg-type]
