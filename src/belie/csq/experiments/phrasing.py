"""How much of what a respondent answers is the wording: variance components over phrasings.

Knows: which chains have valid answers in every phrasing; wrongness of a first answer, and leaning to Yes, as
measurements of a chain under a phrasing.
Does not know: what the phrasings say, or who was asked.

Two measurements. *Wrong*: one first answer is wrong; analysed within each of the four questions, components averaged.
*Yes*: how readily a chain's four questions together are answered Yes; two of them are true, so a respondent without
answer bias has ½ whatever it knows. Phrasing moves the first by being harder, the second by inviting a word.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from belie.csq.difference import chain_key, shared
from belie.csq.scores import plain
from belie.csq.table import Level, Table
from belie.items import CATEGORIES, TRUTH
from belie.respondents.base import BadInput
from belie.statistics import Floats, Resampler, holm
from belie.statistics.components import Decomposition, Variances, condition_test, decompose, variances

Measure = Literal["wrong", "yes"]
MEASURES: tuple[Measure, ...] = ("wrong", "yes")
#: The components in METHOD's words, in the order of `belie.statistics.components.SOURCES`.
SOURCES = ("chain", "phrasing", "chain×phrasing", "sampling")


@dataclass(frozen=True, slots=True)
class Component:
    """One source of variance: ``variance`` with its interval, its ``deviation`` (the square root) and its ``share`` of
    the variance of a single answer. nan: not to be told apart (one drawn answer an item holds no replicate)."""

    source: str
    variance: float
    low: float
    high: float
    share: float

    @property
    def deviation(self) -> tuple[float, float, float]:
        """Standard deviation with its interval."""
        return math.sqrt(self.variance), math.sqrt(self.low), math.sqrt(self.high)


@dataclass(frozen=True, slots=True)
class Components:
    """``all[measure]`` over all n, ``by_n[n][measure]``; ``p[measure]`` of "phrasing makes no difference", ``p_holm``
    over the measures. ``chains``: used at each n; ``left_out``: without a valid answer in some phrasing."""

    phrasings: tuple[str, ...]
    all: Mapping[Measure, tuple[Component, ...]]
    by_n: Mapping[int, Mapping[Measure, tuple[Component, ...]]]
    means: Mapping[str, Mapping[Measure, float]]
    p: Mapping[Measure, float]
    p_holm: Mapping[Measure, float]
    chains: Mapping[int, int]
    left_out: int
    exact: bool
    draws: int

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return plain(
            {
                "kind": "components",
                "phrasings": list(self.phrasings),
                "exact": self.exact,
                "draws": self.draws,
                "chains": dict(self.chains),
                "left_out": self.left_out,
                "means": {name: dict(told) for name, told in self.means.items()},
                "p": dict(self.p),
                "p_holm": dict(self.p_holm),
                "all": _json(self.all),
                "by_n": {str(n): _json(told) for n, told in self.by_n.items()},
            }
        )


def components(
    tables: Mapping[str, Table],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    permutations: int = 2000,
    seed: int = 0,
) -> Components:
    """Variance components of runs that put the same chains in several phrasings.

    Raises BadInput for fewer than two phrasings, chains that are not matched, or no n with two chains that have valid
    answers in all of them.
    """
    runs = list(tables.values())
    if len(runs) < 2:
        raise BadInput("Variance between phrasings needs at least two of them.")
    if not all(table.matched for table in runs):
        raise BadInput("Variance components need chains that the four questions share: leave --separate away.")
    if len({table.exact for table in runs}) > 1:
        raise BadInput("Some phrasings were answered with probabilities and some in words: ask all alike.")
    exact, draws = runs[0].exact, runs[0].draws
    resampler = Resampler(resamples, seed)
    parts: dict[Measure, list[Decomposition]] = {"wrong": [], "yes": []}
    sheets: dict[Measure, list[Floats]] = {"wrong": [], "yes": []}
    chains: dict[int, int] = {}
    left_out = 0
    for level_of in runs[0].levels:
        levels = [level for table in runs for level in table.levels if level.n == level_of.n]
        cut = shared(levels, chain_key) if len(levels) == len(runs) else None
        if cut is None:
            continue
        found = _sheets(cut)
        lost = len(cut[0].chains) - found["wrong"].shape[1]
        left_out += lost
        if found["wrong"].shape[1] < 2:
            continue
        chains[level_of.n] = found["wrong"].shape[1]
        for measure, sheet in found.items():
            noise, inside = _noise(found["wrong"], exact, draws)
            if measure == "yes":  # the mean of four answers
                noise = noise.sum(0, keepdims=True) / len(CATEGORIES) ** 2
            parts[measure].append(decompose(sheet, noise, inside, resampler, level_of.n))
            sheets[measure].append(sheet)
    if not chains:
        raise BadInput("At no n are there two chains with valid answers in every phrasing: nothing to compare.")
    p: dict[Measure, float] = {
        measure: condition_test(sheets[measure], permutations=permutations, seed=seed) for measure in MEASURES
    }
    adjusted = holm([p[measure] for measure in MEASURES])
    return Components(
        tuple(tables),
        {measure: _named(variances(parts[measure], level)) for measure in MEASURES},
        {
            n: {measure: _named(variances([parts[measure][i]], level)) for measure in MEASURES}
            for i, n in enumerate(chains)
        },
        {
            name: {m: float(np.mean([sheet[..., i].mean() for sheet in sheets[m]])) for m in MEASURES}
            for i, name in enumerate(tables)
        },
        p,
        dict(zip(MEASURES, map(float, adjusted), strict=True)),
        chains,
        left_out,
        exact,
        draws,
    )


def _sheets(levels: Sequence[Level]) -> dict[Measure, Floats]:
    """ "wrong" (4, C, P) by category and "yes" (1, C, P), over the chains with a valid answer everywhere."""
    yes = np.stack([[level.cells[c].yes for level in levels] for c in CATEGORIES])  # (4, P, C)
    no = np.stack([[level.cells[c].no for level in levels] for c in CATEGORIES])
    valid = yes + no
    keep = (valid > 0).all((0, 1))
    p_yes = np.moveaxis(yes[..., keep] / valid[..., keep], 1, 2)
    truth = np.array([TRUTH[c] for c in CATEGORIES])[:, None, None]
    return {"wrong": np.where(truth, 1 - p_yes, p_yes), "yes": p_yes.mean(0, keepdims=True)}


def _noise(p: Floats, exact: bool, draws: int) -> tuple[Floats, float]:
    """Variance of one drawn answer, mean over the phrasings: (K, C, P) → (K, C); its share in a cell."""
    if exact:
        return (p * (1 - p)).mean(2), 0.0
    if draws > 1:
        return (p * (1 - p)).mean(2) * draws / (draws - 1), 1 / draws
    return np.full(p.shape[:2], np.nan), 1.0


def _named(told: Variances) -> tuple[Component, ...]:
    total = float(np.nansum(told.value))
    return tuple(
        Component(
            source,
            float(value),
            float(low),
            float(high),
            float(value) / total if total > 0 else math.nan,
        )
        for source, value, (low, high) in zip(SOURCES, told.value, told.interval, strict=True)
    )


def _json(told: Mapping[Measure, tuple[Component, ...]]) -> dict[str, Any]:
    return {measure: [asdict(one) for one in found] for measure, found in told.items()}
