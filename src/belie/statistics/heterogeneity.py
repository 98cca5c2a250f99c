"""Several estimates of one thing: their common value, how far they differ beyond chance, and whether they do.

Knows: random effects for estimates whose sampling errors are correlated or not (Paule and Mandel's τ², Hartung and
Knapp's interval, Cochran's Q and I²).
Does not know: what is estimated, or where the covariance comes from.

With a diagonal covariance this is the textbook summary. With a full one Q is the generalised Wald statistic of "all
expected values are equal": errors that all estimates share cancel in it, and are not mistaken for agreement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.optimize import brentq

from belie.statistics.bootstrap import Floats

#: Variances below this count as this: an estimate that is known exactly would outweigh every other.
_LEAST = 1e-12


@dataclass(frozen=True, slots=True)
class Summary:
    """``value`` with its Hartung–Knapp interval, and in ``next_low`` … ``next_high`` where a further estimate's
    expected value is to be expected. ``tau``: standard deviation between expected values; ``q`` on ``freedom`` degrees
    with its ``p`` and ``i2`` = max(0, 1 − freedom/q). nan where there are fewer than two estimates (three, for a
    further one)."""

    value: float
    low: float
    high: float
    next_low: float
    next_high: float
    tau: float
    q: float
    freedom: int
    p: float
    i2: float


def summarise(estimates: ArrayLike, covariance: ArrayLike, *, units: float = math.inf, level: float = 0.95) -> Summary:
    """Random-effects summary of ``estimates`` (K,) with sampling ``covariance`` (K, K), or variances (K,).

    τ² solves Q(τ²) = K − 1 (Paule and Mandel 1982, generalised to a full covariance); the interval takes Student's t
    with K − 1 degrees of freedom and the variance scaled by q = max(1, Q(τ²)/(K − 1)) (Hartung and Knapp 2001; the 1
    keeps it from shrinking below the plain one). ``units``: independent units that the covariance was estimated from;
    Q is then compared with Hotelling's T² rather than with χ². Estimates that are nan make everything nan.
    """
    y = np.asarray(estimates, float)
    v = np.asarray(covariance, float)
    v = np.diag(v) if v.ndim == 1 else v
    size = len(y)
    if v.shape != (size, size):
        raise ValueError(f"{size} estimates need a covariance of {size} × {size}, not {v.shape}")
    if size < 2 or not np.isfinite(y).all() or not np.isfinite(v).all():
        value, none = float(y[0]) if size == 1 else math.nan, math.nan
        return Summary(value, none, none, none, none, none, none, max(size - 1, 0), none, none)
    v = _regular(v)
    freedom = size - 1
    q = _q(y, v)[0]
    # Bounded: Q(τ²) falls with τ² and lies below (K − 1) once τ² exceeds the spread of the estimates.
    top = float(y.var(ddof=1)) * 2 + _LEAST
    tau2 = 0.0
    if q > freedom:
        tau2 = float(brentq(lambda t: _q(y, v + t * np.eye(size))[0] - freedom, 0.0, top, xtol=1e-14))  # type: ignore[arg-type]
    left, mean, variance = _q(y, v + tau2 * np.eye(size))
    spread = variance * max(1.0, left / freedom)
    half = float(stats.t.isf((1 - level) / 2, freedom)) * math.sqrt(spread)
    reach = math.nan
    if size > 2:
        reach = float(stats.t.isf((1 - level) / 2, size - 2)) * math.sqrt(tau2 + spread)
    if math.isinf(units):
        p = float(stats.chi2.sf(q, freedom))
    else:
        rest = max(units - freedom, 1.0)
        p = float(stats.f.sf(q / freedom * rest / max(units - 1, 1.0), freedom, rest))
    i2 = max(0.0, 1 - freedom / q) if q > 0 else 0.0
    return Summary(
        mean, mean - half, mean + half, mean - reach, mean + reach, math.sqrt(tau2), q, freedom, p, i2
    )  # fmt: skip


def _q(y: Floats, v: Floats) -> tuple[float, float, float]:
    """(y − μ)ᵀ V⁻¹ (y − μ) at the generalised least squares mean μ, μ itself, its variance."""
    solved = np.linalg.solve(v, np.stack([y, np.ones_like(y)], 1))
    weight = float(solved[:, 1].sum())
    mean = float(solved[:, 0].sum()) / weight
    return max(float((y - mean) @ (solved[:, 0] - mean * solved[:, 1])), 0.0), mean, 1 / weight


def _regular(v: Floats) -> Floats:
    """The covariance, made positive definite by as little as numbers need."""
    scale = max(float(np.trace(v)) / len(v), _LEAST)
    return (v + v.T) / 2 + max(_LEAST, 1e-9 * scale) * np.eye(len(v))
