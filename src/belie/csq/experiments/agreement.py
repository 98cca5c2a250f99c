"""Whether a finding holds in every world: each world's scores, their common value, and how far they differ beyond
chance (METHOD §1.7).

Knows: that the worlds put chains of the same numbers, so that they are resampled together; random effects; which world
departs from the others.
Does not know: what a world says, or who was asked.

The worlds' scores rest on the same chain numbers. Where a respondent finds the same chain hard in every world their
sampling errors are correlated, and an analysis that took them for independent would miss real differences. So the
covariance is that of a bootstrap that draws the same chain numbers in all worlds at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ndtri

from belie.csq.difference import chain_key, missed, shared
from belie.csq.formulas import INTEGRATED, NAMES, across, columns, formulas
from belie.csq.intervals import pseudo
from belie.csq.overall import weights
from belie.csq.scores import Figure, Scores, plain
from belie.csq.table import Level, Table
from belie.respondents.base import BadInput
from belie.statistics import Floats, Resampler, holm
from belie.statistics.heterogeneity import Summary, summarise

#: The scores whose agreement is tested, over all n.
SCORES = (*INTEGRATED, "error")


@dataclass(frozen=True, slots=True)
class Departure:
    """One world's score less the mean of the others that do not depart, with its interval. ``p_adjusted``: Bonferroni
    over all worlds and scores. ``departs``: found so, the farthest first, each before the others are looked at again
    without it (so that one odd world does not make the rest look odd)."""

    world: str
    score: str
    value: float
    low: float
    high: float
    p: float
    p_adjusted: float
    departs: bool


@dataclass(frozen=True, slots=True)
class Agreement:
    """``figures[world][score]``: as a run of that world alone has them. ``summaries[score]`` with ``p_holm`` of its
    heterogeneity over the scores. ``correlation[score]``: mean correlation of two worlds' sampling errors.
    ``chains``: numbers that all worlds share."""

    worlds: tuple[str, ...]
    figures: Mapping[str, Mapping[str, Figure]]
    summaries: Mapping[str, Summary]
    p_holm: Mapping[str, float]
    departures: tuple[Departure, ...]
    correlation: Mapping[str, float]
    chains: int

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return plain(
            {
                "kind": "agreement",
                "worlds": list(self.worlds),
                "chains": self.chains,
                "figures": {w: {s: asdict(f) for s, f in figures.items()} for w, figures in self.figures.items()},
                "summaries": {
                    s: {**asdict(one), "p_holm": self.p_holm[s], "correlation": self.correlation[s]}
                    for s, one in self.summaries.items()
                },
                "departures": [asdict(one) for one in self.departures],
            }
        )


def agreement(
    tables: Mapping[str, Table],
    scores: Mapping[str, Scores],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Agreement:
    """Compare worlds; ``scores``: each world's own. Raises BadInput where they share no chain number, or only some draw
    their categories apart."""
    worlds = tuple(tables)
    resampler = Resampler(resamples, seed)
    if len({table.matched for table in tables.values()}) > 1:
        raise BadInput("Some worlds share their chains between the four questions and some do not: not comparable.")
    together = [
        found
        for first in next(iter(tables.values())).levels
        if (found := _shared(list(tables.values()), first.n)) is not None
    ]
    if not together:
        raise BadInput("The worlds hold no chain number in common: ask them with the same seed and n.")
    w = weights([levels[0].n for levels in together])
    sides = [
        _overall(table, [levels[i] for levels in together], w, resampler, level)
        for i, table in enumerate(tables.values())
    ]
    values, draws, extra = (np.stack(part) for part in zip(*sides, strict=True))  # (W, 4), (W, B, 4), (W, 4)
    chains = [len(levels[0].chains) for levels in together]
    units = min(chains)
    summaries: dict[str, Summary] = {}
    correlation: dict[str, float] = {}
    departures: list[Departure] = []
    for j, name in enumerate(SCORES):
        covariance, correlation[name] = _covariance(draws[..., j], extra[:, j], units)
        summaries[name] = summarise(values[:, j], covariance, units=units, level=level)
        if len(worlds) > 2:
            departures += _departures(worlds, name, values[:, j], covariance, units, level)
    adjusted = holm([one.p for one in summaries.values()])
    return Agreement(
        worlds,
        {name: {key: scores[name].overall[key] for key in SCORES} for name in worlds},
        summaries,
        dict(zip(summaries, map(float, adjusted), strict=True)),
        tuple(departures),
        correlation,
        sum(chains),
    )


def _shared(tables: Sequence[Table], n: int) -> list[Level] | None:
    levels = [level for table in tables for level in table.levels if level.n == n]
    return shared(levels, chain_key) if len(levels) == len(tables) else None


def _overall(
    table: Table, levels: Sequence[Level], w: Floats, resampler: Resampler, level: float
) -> tuple[Floats, Floats, Floats]:
    """Overall scores (4,) of one world, their draws (B, 4), and the variance of what its sampled answers never showed
    (4,). The same streams for every world: chain numbers are drawn alike in all."""
    values, draws, unseen = [], [], []
    for at_n in levels:
        strata = columns(at_n, matched=table.matched)
        smoothing = pseudo(strata, exact=table.exact)
        values.append(formulas([stratum.sum(0) for stratum in strata]))
        draws.append(formulas([resampler.sums(stratum, at_n.n, i) for i, stratum in enumerate(strata)], smoothing))
        unseen.append(missed(strata, level, exact=table.exact).max(-1))
    chosen = [NAMES.index(name) for name in SCORES]
    share = np.stack([np.full(len(w), 1 / len(w)) if name == "error" else w for name in SCORES], 1)
    deviation = np.sqrt((share**2 * np.stack(unseen)[:, chosen] ** 2).sum(0))
    return across(np.stack(values), w), across(np.stack(draws, 1), w), (deviation / ndtri((1 + level) / 2)) ** 2


def _covariance(draws: Floats, extra: Floats, units: int) -> tuple[Floats, float]:
    """Covariance (W, W) of draws (W, B), ``extra`` (W,) added to the variances; the mean correlation without it.

    Resampling ``units`` has (units − 1)/units of the variance: that is made good."""
    unbiased = units / max(units - 1, 1)
    whole = draws[:, np.isfinite(draws).all(0)]
    if whole.shape[1] < 0.95 * draws.shape[1]:
        return np.full((len(draws), len(draws)), np.nan), math.nan
    covariance = np.atleast_2d(np.cov(whole))
    spread = np.sqrt(np.diag(covariance))
    pairs = [
        covariance[i, j] / (spread[i] * spread[j])
        for i in range(len(spread))
        for j in range(i)
        if spread[i] > 0 and spread[j] > 0
    ]
    return covariance * unbiased + np.diag(extra), float(np.mean(pairs)) if pairs else math.nan


def _departures(
    worlds: Sequence[str], name: str, values: Floats, covariance: Floats, units: int, level: float
) -> list[Departure]:
    left, found = list(range(len(worlds))), []
    while True:
        each = [_departure(i, left, values, covariance, units, level) for i in left]
        told = [
            Departure(worlds[i], name, *one, min(1.0, one[3] * len(worlds) * len(SCORES)), False)
            for i, one in zip(left, each, strict=True)
        ]
        farthest = min(range(len(left)), key=lambda i: (told[i].p, -abs(told[i].value)))
        if len(left) < 3 or not told[farthest].p_adjusted <= 1 - level:
            return sorted([*found, *told], key=lambda one: worlds.index(one.world))
        found = [*found, replace(told[farthest], departs=True)]
        left.pop(farthest)


def _departure(
    world: int, among: Sequence[int], values: Floats, covariance: Floats, units: int, level: float
) -> tuple[float, float, float, float]:
    """One world against the mean of the others ``among`` them: difference, its interval, p."""
    contrast = np.zeros(len(values))
    contrast[list(among)] = -1 / (len(among) - 1)
    contrast[world] = 1.0
    value = float(contrast @ values)
    error = math.sqrt(max(float(contrast @ covariance @ contrast), 0.0))
    freedom = max(units - 1, 1)
    half = float(stats.t.isf((1 - level) / 2, freedom)) * error
    if error > 0:
        p = 2 * float(stats.t.sf(abs(value) / error, freedom))
    else:
        p = math.nan if math.isnan(error) else float(abs(value) < 1e-12)
    return value, value - half, value + half, p
