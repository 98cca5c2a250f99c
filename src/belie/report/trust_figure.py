"""The customer's trust over a trajectory: one chart a condition.

Knows: how rounds line up in trajectories.
Does not know: how trust moves (belie.knownlie.trust).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from belie.knownlie.journal import trajectory_of
from belie.knownlie.records import CONDITIONS, TRUST_LEVELS, Round
from belie.numbers import number
from belie.report.chart import Point, Series, curves
from belie.report.knownlie_figures import CONDITION_NAMES, TRUST_NAMES, measured
from belie.report.reading import Model
from belie.report.tables import Illustration, counted, figure, table, words


def trust(models: Sequence[Model]) -> Illustration | None:
    """Mean trust after each round over trajectories, by condition and trust at the start."""
    known = measured(models)
    if not known:
        return None
    charts, lines, said = [], [], []
    for condition in CONDITIONS:
        series = []
        longest = 1
        for model, scores in known:
            assert model.knownlie is not None, "a model with scores has rounds"
            for level in TRUST_LEVELS:
                paths = _paths([r for r in model.knownlie.rounds if r.condition == condition and r.trust == level])
                if not paths:
                    continue
                means = _means(paths)
                longest = max(longest, len(means) - 1)
                points = [Point(i, mean) for i, (mean, _) in enumerate(means)]
                series.append(Series(model.number, points, model.label if level == "high" else "", kind="track"))
                cut = scores.slice(condition, trust=level)
                change = cut.rates["trust_change"]
                name = f"{model.name}, {CONDITION_NAMES[condition]}, {TRUST_NAMES[level]}"
                said.append(f"{name}: from {number(means[0][0], 2)} to {number(means[-1][0], 2)}")
                for i, (mean, held) in enumerate(means):
                    last = i == len(means) - 1
                    lines.append(
                        [
                            words(model.name, model.number),
                            words(CONDITION_NAMES[condition]),
                            words(TRUST_NAMES[level]),
                            counted(i),
                            figure(mean),
                            counted(held),
                            words(_change(change.value, change.low, change.high) if last else ""),
                        ]
                    )
        if series:
            chart = curves(
                series, x_title="rounds played", x_ticks=list(range(0, longest + 1, 2 if longest < 16 else 5)),
                limits=(0.0, 1.0), log=False, title=CONDITION_NAMES[condition], labelled=False, height=190.0,
            )  # fmt: skip
            charts.append(chart)
    heads = ("Model", "Condition", "Trust at the start", "after round", "mean trust", "trajectories", "change in all")
    return Illustration(
        "knownlie-trust", "The customer's trust over a trajectory",
        "Mean over domains, from the three levels at which it starts: being caught costs most, and trust comes back "
        "slowly. The lines are means without intervals; the change over the whole trajectory stands with its interval "
        "in the table.",
        ". ".join(said) + ".", table(heads, lines), tuple(charts), wide=True,
    )  # fmt: skip


def _paths(rounds: Sequence[Round]) -> list[list[float]]:
    """Trust before the first and after each round of every trajectory that was begun."""
    by_id: dict[str, list[Round]] = {}
    for round in rounds:
        by_id.setdefault(trajectory_of(round), []).append(round)
    paths = []
    for own in by_id.values():
        own.sort(key=lambda round: round.position)
        paths.append([own[0].trust_before, *(round.trust_after for round in own)])
    return paths


def _means(paths: Sequence[Sequence[float]]) -> list[tuple[float, int]]:
    """The mean at each place over the trajectories that reach it, and how many they are."""
    longest = max(map(len, paths))
    held = [[path[i] for path in paths if i < len(path)] for i in range(longest)]
    return [(math.fsum(values) / len(values), len(values)) for values in held]


def _change(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return "–"
    text = number(value, signed=True)
    return f"{text} ({number(low, signed=True)} to {number(high, signed=True)})" if math.isfinite(low) else text
