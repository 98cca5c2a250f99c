"""Many models at once: do δ̄ and |ρ̄| go together, and do they go with size, family or date?

Knows: rank correlation, regression on log₁₀ parameters (leave-one-out, by family), their intervals.
Does not know: folders, what was asked, or how anything is drawn.

The unit is the model. Its own measurement error is in the printed interval of each point, not in the intervals here:
it draws correlations and slopes towards 0. None of this is more than description below `FEW` models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from scipy import stats

from belie.csq.facts import FactsTable, ModelFacts
from belie.csq.scores import Figure, Scores, plain
from belie.respondents.base import BadInput
from belie.statistics import Floats

#: Below so many models a plain warning is printed.
FEW = 10
#: A family has a slope of its own from so many models on.
FAMILY = 3
#: What is regressed: δ̄, |ρ̄|, δ̄_net.
OUTCOMES = ("delta", "abs_rho", "delta_net")
_EXACT = 8


@dataclass(frozen=True, slots=True)
class Point:
    """One model: its overall scores with their intervals, and what is known of it. ``figures``: delta, rho, abs_rho,
    delta_net, error."""

    model: str
    figures: Mapping[str, Figure]
    facts: ModelFacts


@dataclass(frozen=True, slots=True)
class Association:
    """Spearman's rank correlation with its interval and two-sided p over ``models`` models; nan below 4, or where one
    side does not vary."""

    first: str
    second: str
    models: int
    value: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class Slope:
    """Least squares of a score on log₁₀ parameters: change a factor of ten. Student's interval; nan below 3 models."""

    label: str
    models: int
    value: float
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan


@dataclass(frozen=True, slots=True)
class Regression:
    """``whole``: over all models with known size. ``r2``: explained there; ``r2_left_out``: of each model from the
    others (negative: worse than their mean). ``left_out``: the slope without each model; ``families_left_out``:
    without each family. ``families``: the slope inside each family of `FAMILY` models or more; ``within``: one slope
    common to all families, each with a level of its own."""

    outcome: str
    whole: Slope
    intercept: float
    r2: float
    r2_left_out: float
    left_out: tuple[Slope, ...]
    families: tuple[Slope, ...]
    families_left_out: tuple[Slope, ...]
    within: Slope


@dataclass(frozen=True, slots=True)
class Population:
    """``points`` in the order of release, undated ones last: the data of the release-date plot. ``released``: rank
    correlation of each outcome with the day of release."""

    points: tuple[Point, ...]
    association: Association
    regressions: tuple[Regression, ...]
    released: tuple[Association, ...]
    warnings: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """A plain dict: nan → null, dates as text."""
        return plain(
            {
                "models": [point_row(point) for point in self.points],
                "association": asdict(self.association),
                "regressions": [asdict(one) for one in self.regressions],
                "released": [asdict(one) for one in self.released],
                "warnings": list(self.warnings),
                "options": dict(self.options),
            }
        )


def point_row(point: Point) -> dict[str, Any]:
    """A point as one flat row: model, family, parameters, released, then each score with low and high."""
    facts = point.facts
    row: dict[str, Any] = {
        "model": point.model,
        "family": facts.family,
        "parameters": facts.parameters,
        "released": facts.released.isoformat() if facts.released else None,
    }
    for name, figure in point.figures.items():
        row |= {name: figure.value, f"{name}_low": figure.low, f"{name}_high": figure.high}
    return row


def point_of(model: str, scores: Scores, facts: FactsTable) -> Point:
    """A model's point from its scores."""
    rho = scores.overall["rho"]
    figures = {name: scores.overall[name] for name in ("delta", "rho", "delta_net", "error")}
    return Point(model, {**figures, "abs_rho": absolute(rho)}, facts.of(model))


def absolute(figure: Figure) -> Figure:
    """|x| with its interval: from 0 where the interval of x holds 0."""
    ends = sorted((abs(figure.low), abs(figure.high)))
    low = 0.0 if figure.low <= 0 <= figure.high else ends[0]
    return Figure(abs(figure.value), math.nan if math.isnan(figure.low) else low, ends[1])


def population(points: Iterable[Point], *, level: float = 0.95) -> Population:
    """Every analysis over models. Raises BadInput for fewer than two, or one model twice."""
    points = sorted(points, key=lambda one: (one.facts.released is None, str(one.facts.released), one.model))
    names = [point.model for point in points]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadInput(f"{twice[0]} comes twice: give one run a model.")
    if len(points) < 2:
        raise BadInput("An analysis over models needs at least two runs: belie csq models RUN RUN …")
    association = spearman(points, "delta", "abs_rho", _score("delta"), _score("abs_rho"), level)
    sized = [point for point in points if not math.isnan(point.facts.parameters)]
    dated = [point for point in points if point.facts.released]
    regressions = tuple(regression(sized, outcome, level) for outcome in OUTCOMES) if len(sized) >= 2 else ()
    released = tuple(
        spearman(dated, outcome, "released", _score(outcome), _day, level) for outcome in OUTCOMES if len(dated) >= 2
    )
    return Population(
        tuple(points), association, regressions, released, _warnings(points, sized, dated), {"level": level}
    )


def spearman(
    points: Sequence[Point],
    first: str,
    second: str,
    x: Callable[[Point], float],
    y: Callable[[Point], float],
    level: float,
) -> Association:
    """Spearman's ρ with Bonett and Wright's interval (2000): Fisher's z with variance (1 + ρ²/2)/(n − 3).

    p: over all n! orders up to 8 models, Student's approximation above.
    """
    pairs = [(x(point), y(point)) for point in points]
    a, b = np.array([pair for pair in pairs if not any(map(math.isnan, pair))]).reshape(-1, 2).T
    n = len(a)
    if n < 4 or len(set(a)) < 2 or len(set(b)) < 2:
        return Association(first, second, n, math.nan, math.nan, math.nan, math.nan)
    told: Any = stats.spearmanr(a, b)
    value = float(told.statistic)
    p = float(told.pvalue)
    if n <= _EXACT:
        ranks, other = stats.rankdata(a), stats.rankdata(b)

        def statistic(order: Floats, axis: int = -1) -> Floats:  # noqa: ARG001
            return order @ (other - other.mean())

        exact: Any = stats.permutation_test(
            (ranks - ranks.mean(),),
            statistic,
            permutation_type="pairings",
            n_resamples=math.factorial(n),
            vectorized=True,
        )
        p = float(exact.pvalue)
    half = float(stats.norm.ppf((1 + level) / 2)) * math.sqrt((1 + value**2 / 2) / (n - 3))
    # At ±1 z is infinite: the interval is that of the next smaller value that n models can have.
    inner = min(abs(value), 1 - 12 / (n * (n**2 - 1))) * math.copysign(1, value)
    low, high = (math.tanh(math.atanh(inner) + side * half) for side in (-1, 1))
    return Association(first, second, n, value, min(low, value), max(high, value), p)


def regression(points: Sequence[Point], outcome: str, level: float) -> Regression:
    """A score on log₁₀ parameters, over all models and without each, inside families and across them."""
    points = [point for point in points if not math.isnan(point.figures[outcome].value)]
    x = np.array([math.log10(point.facts.parameters) for point in points])
    y = np.array([point.figures[outcome].value for point in points])
    whole = slope("all models", x, y, level)
    intercept = float(y.mean() - whole.value * x.mean()) if len(x) else math.nan
    spread = float(((y - y.mean()) ** 2).sum()) if len(y) else 0.0
    r2 = 1 - float(((y - intercept - whole.value * x) ** 2).sum()) / spread if spread else math.nan
    missed = missed_by_mean = 0.0
    left_out = []
    for i, point in enumerate(points):
        rest = np.arange(len(x)) != i
        one = slope(point.model, x[rest], y[rest], level)
        left_out.append(one)
        if rest.any():
            told = y[rest].mean() + one.value * (x[i] - x[rest].mean())
            missed += float((y[i] - told) ** 2)
            missed_by_mean += float((y[i] - y[rest].mean()) ** 2)
    families = sorted({point.facts.family for point in points if point.facts.family})
    member = {family: np.array([point.facts.family == family for point in points]) for family in families}
    inside = tuple(slope(family, x[own], y[own], level) for family, own in member.items() if own.sum() >= FAMILY)
    without = tuple(slope(family, x[~own], y[~own], level) for family, own in member.items() if len(families) > 1)
    return Regression(
        outcome,
        whole,
        intercept,
        r2,
        1 - missed / missed_by_mean if missed_by_mean else math.nan,
        tuple(left_out),
        inside,
        without,
        _within(x, y, list(member.values()), level),
    )


def slope(label: str, x: Floats, y: Floats, level: float, levels: int = 1) -> Slope:
    """Least squares through the mean; ``levels`` means were taken away from x and y before (degrees of freedom)."""
    if len(x) < 2 or np.ptp(x) == 0:
        return Slope(label, len(x), math.nan)
    dx, dy = x - x.mean(), y - y.mean()
    value = float(dx @ dy / (dx @ dx))
    freedom = len(x) - levels - 1
    if freedom < 1:
        return Slope(label, len(x), value)
    error = math.sqrt(float(((dy - value * dx) ** 2).sum()) / freedom / float(dx @ dx))
    half = float(stats.t.ppf((1 + level) / 2, freedom)) * error
    p = float(2 * stats.t.sf(abs(value) / error, freedom)) if error else (0.0 if value else 1.0)
    return Slope(label, len(x), value, value - half, value + half, p)


def _within(x: Floats, y: Floats, members: Sequence[np.ndarray], level: float) -> Slope:
    """One slope for all families, each with its own mean taken away; families of one model tell nothing."""
    own = [member for member in members if member.sum() > 1]
    if not own:
        return Slope("within families", 0, math.nan)
    dx = np.concatenate([x[member] - x[member].mean() for member in own])
    dy = np.concatenate([y[member] - y[member].mean() for member in own])
    return slope("within families", dx, dy, level, levels=len(own))


def _score(name: str) -> Callable[[Point], float]:
    return lambda point: point.figures[name].value


def _day(point: Point) -> float:
    return float(point.facts.released.toordinal()) if point.facts.released else math.nan


def _warnings(points: Sequence[Point], sized: Sequence[Point], dated: Sequence[Point]) -> tuple[str, ...]:
    said = []
    if len(points) < FEW:
        said.append(
            f"Only {len(points)} models: with fewer than {FEW} no correlation and no slope here is evidence of "
            "anything. Read the points, not the lines."
        )
    elif len(sized) < FEW:
        said.append(f"Only {len(sized)} models have a known size: the regression rests on those.")
    for known, what in ((sized, "number of parameters"), (dated, "day of release")):
        lacking = [point.model for point in points if point not in known]
        if lacking:
            said.append(
                f"No {what} is known of {', '.join(lacking)}: left out there. Give a table of facts (--facts FILE)."
            )
    families = {point.facts.family for point in sized if point.facts.family}
    if len(sized) >= 2 and len(families) == 1:
        said.append(f"All sized models are of one family ({families.pop()}): nothing is said about models in general.")
    return tuple(said)
