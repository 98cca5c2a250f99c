"""One rate with its numerator, its denominator and its interval; a resampling of trajectories within their domain.

Knows: ratios of column sums, their mean over domains, the bootstrap over trajectories stratified by domain (METHOD §3),
and what stands in its place where it can't tell anything.
Does not know: what the columns mean (tally), which slices there are (scores).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from belie.statistics import Floats, wilson

Interval = Literal["bootstrap", "rounds", "hull", "none"]

#: A rate whose denominator is smaller is called small in the notes.
SMALL = 10
#: With fewer trajectories (less one a domain) than this, a bootstrap alone is not to be trusted.
FEW = 10


@dataclass(frozen=True, slots=True)
class Rate:
    """``value`` = ``numerator`` / ``denominator``; nan where the denominator is 0, never 0.

    ``low``, ``high``: the interval, and ``interval`` how it was had. "bootstrap": trajectories resampled within their
    domain. "rounds": rounds (KPR: probes) taken as independent, by Wilson's interval (a difference: by Newcombe's); it
    stands where every resample gives the same value, so that 0 of 64 does not look like certainty. "hull": the hull of
    both, where fewer than `FEW` trajectories tell how much they differ. ``wilson_low``,
    ``wilson_high``: beside every proportion. A macro rate has the sum of the domains' rates over the number of domains;
    its Wilson interval goes by the effective number of rounds, K² / Σ(1/n_k).
    """

    value: float
    numerator: float
    denominator: float
    low: float = math.nan
    high: float = math.nan
    interval: Interval = "none"
    wilson_low: float = math.nan
    wilson_high: float = math.nan


def proportion(numerator: float, denominator: float, level: float, effective: float | None = None) -> Rate:
    """A single proportion with Wilson's interval; ``effective`` replaces the denominator as the number of units."""
    if not denominator:
        return Rate(math.nan, numerator, denominator)
    value = numerator / denominator
    units = denominator if effective is None else effective
    low, high = map(float, wilson(value * units, units, level))
    return Rate(value, numerator, denominator, low, high, "rounds", low, high)


def newcombe(one: float, other: float, pairs: float, level: float) -> tuple[float, float]:
    """Interval of (one − other)/pairs by Newcombe's square-and-add of two Wilson intervals, taken as independent."""
    p, q = one / pairs, other / pairs
    (l1, u1), (l2, u2) = wilson([one, other], [pairs, pairs], level)
    difference = p - q
    low = difference - math.hypot(p - l1, u2 - q)
    high = difference + math.hypot(u1 - p, q - l2)
    return max(-1.0, float(low)), min(1.0, float(high))


def chosen(
    bootstrap: tuple[float, float], rounds: tuple[float, float] | None, freedom: int
) -> tuple[float, float, Interval]:
    """Which interval stands; see `Rate`. ``rounds`` is None where there is no such interval."""
    tells = not math.isnan(bootstrap[0]) and bootstrap[1] - bootstrap[0] > 1e-12
    if rounds is None:
        return (*bootstrap, "bootstrap") if tells else (math.nan, math.nan, "none")
    if not tells:
        return *rounds, "rounds"
    if freedom < FEW:
        return min(bootstrap[0], rounds[0]), max(bootstrap[1], rounds[1]), "hull"
    return *bootstrap, "bootstrap"


@dataclass(frozen=True, slots=True)
class Draws:
    """B resamples of one domain's trajectories; three trajectories, for one, have only six different ones.

    ``weights`` (D, trajectories): the different ones; ``times`` (D,): how often each came; ``index`` (B,): which when.
    """

    weights: Floats
    times: NDArray[np.int64]
    index: NDArray[np.int64]


class Strata:
    """Resamples trajectories within their domain (METHOD §3).

    From each domain's n trajectories n − 1 are drawn with replacement and weighted n/(n − 1), so that the variance is
    right for the few trajectories that a domain has (Rao and Wu 1988); n of n would make it too small by 1/n, a third
    with three. A domain with one trajectory is left as it is. ``seed`` and the domain's name give its stream: two
    conditions with as many trajectories in a domain are resampled alike, so that their differences are paired.
    """

    def __init__(self, resamples: int, seed: int) -> None:
        self.resamples = resamples
        self.seed = seed
        self._draws: dict[tuple[str, int], Draws] = {}
        self._side_by_side: dict[tuple[tuple[str, int], ...], Floats] = {}

    def draws(self, domain: str, trajectories: int) -> Draws:
        """The resamples of a domain with that many trajectories; the same whenever asked."""
        key = (domain, trajectories)
        if key not in self._draws:
            self._draws[key] = self._made(domain, trajectories)
        return self._draws[key]

    def sums(self, rows: Mapping[str, Floats]) -> Floats:
        """Column sums over all domains of every resample: each (trajectories, K) → (B, K)."""
        key = tuple((domain, len(own)) for domain, own in rows.items())
        if key not in self._side_by_side:
            parts = [self.draws(*one) for one in key]
            self._side_by_side[key] = np.concatenate([part.weights[part.index] for part in parts], axis=1)
        return self._side_by_side[key] @ np.concatenate(list(rows.values()))

    def _made(self, domain: str, units: int) -> Draws:
        if units == 1:
            return Draws(np.ones((1, 1)), np.array([self.resamples]), np.zeros(self.resamples, np.int64))
        rng = np.random.default_rng([self.seed, zlib.crc32(domain.encode()), units])
        drawn = rng.integers(0, units, size=(self.resamples, units - 1))
        drawn += np.arange(self.resamples)[:, None] * units
        times = np.bincount(drawn.ravel(), minlength=self.resamples * units).reshape(self.resamples, units)
        different, index, count = np.unique(times, axis=0, return_inverse=True, return_counts=True)
        weights = different.astype(np.float64) * (units / (units - 1))
        return Draws(weights, count, index.reshape(-1))


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Element by element; nan where the denominator is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)


def mean_over(domains: Sequence[Floats]) -> Floats:
    """The unweighted mean over domains, of those that have a rate: arrays (B,) → (B,); nan where none has."""
    stacked = np.stack(domains)
    known = ~np.isnan(stacked)
    return ratio(np.where(known, stacked, 0.0).sum(0), known.sum(0).astype(float))


def expanded(level: float, freedom: int) -> float:
    """The level at which a percentile interval of few units holds ``level``: Student's t in place of the normal.

    ``freedom``: trajectories less domains (Hesterberg 2015, "expanded percentile interval"). 16 turns 0.95 into 0.966.
    """
    return float(2 * ndtr(stdtrit(max(freedom, 1), (1 + level) / 2)) - 1)


def bounds(values: Floats, times: NDArray[np.int64], level: float) -> Floats:
    """Percentile interval of each column: ``values`` (D, M) that came ``times`` (D,) each → (M, 2).

    Linear quantiles. nan draws are left out; a column with more than 5 % of them has no interval.
    """
    order = np.argsort(values, axis=0)  # nan comes last
    ordered = np.take_along_axis(values, order, axis=0)
    upto = np.cumsum(times[order], axis=0)
    finite = (~np.isnan(values) * times[:, None]).sum(0)
    result = np.full((values.shape[1], 2), np.nan)
    for m in np.flatnonzero(finite >= 0.95 * times.sum()):
        at = np.array([(1 - level) / 2, (1 + level) / 2]) * (finite[m] - 1)
        below, above = (
            ordered[np.searchsorted(upto[:, m], place, side="right"), m] for place in (np.floor(at), np.ceil(at))
        )
        result[m] = below + (at - np.floor(at)) * (above - below)
    return result
