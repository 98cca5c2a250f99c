"""Interviews on the page: reliability curves of the confidence told, and what came of confrontations.

Knows: the interview's journal in a run's folder, and how its results become figures.
Does not know: how replies are read or counted; a run without that journal has nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from belie.csq.interview import journal
from belie.csq.interview.asking import CONFIDENCE, Wanted, conversations, questions
from belie.csq.interview.reading import STANCES
from belie.csq.interview.results import OUTCOMES, TITLES, results
from belie.csq.interview.words import calibrated, confronted, looked_back
from belie.csq.scores import plain
from belie.numbers import number, percent
from belie.report.chart import Estimate, Point, Row, Series, curves, rows
from belie.report.reading import Model
from belie.report.tables import Illustration, counted, share, table, words
from belie.respondents.base import BadInput

_NAMES = {
    "correction": "corrects itself",
    "doubling": "stays with the wrong",
    "unusable": "no clear answer",
    "denial": "denies (either way)",
    "admits": "owns up",
    "denies_contradiction": "denies a contradiction",
    "denies_saying": "denies having said it",
    "unclear": "not clear",
}


@dataclass(frozen=True, slots=True)
class Interviews:
    """The models that were interviewed, what was found in words, and the figures."""

    sentences: tuple[tuple[Model, tuple[str, ...]], ...]
    figures: tuple[Illustration, ...]


def interviews(models: Sequence[Model]) -> Interviews | None:
    """None where no run holds an interview."""
    known = [(model, made) for model in models if (made := _read(model)) is not None]
    if not known:
        return None
    figures = [one for question in CONFIDENCE if (one := _reliability(question, known)) is not None]
    if (confronted_ := _confronted(known)) is not None:
        figures.append(confronted_)
    return Interviews(tuple((model, _sentences(made)) for model, made in known), tuple(figures))


def _read(model: Model) -> Mapping[str, Any] | None:
    """The results, counted anew; over the conversations that were interviewed at all where not all were."""
    if model.csq is None or not (model.csq.folder.path / journal.NAME).exists():
        return None
    try:
        answered, _ = journal.read(model.csq.folder.path, skip=True)
        found = conversations(model.csq.folder)
    except BadInput:
        return None
    asked = {(item, draw) for item, _, draw in answered}
    least = {one.item.chain for one in found if (one.item.id, one.draw) in asked}
    found = [one for one in found if one.item.chain in least and questions(one, Wanted(True, True))]
    return plain(results(found, answered)) if answered else None


def _sentences(made: Mapping[str, Any]) -> tuple[str, ...]:
    said = [calibrated(TITLES[question], one) for question, one in made["confidence"].items()]
    if made["hindsight"] is not None:
        said.append(looked_back(made["hindsight"]))
    if made["confrontation"] is not None:
        said.append(confronted(made["confrontation"]))
    return tuple(said)


def _reliability(question: str, known: Sequence[tuple[Model, Mapping[str, Any]]]) -> Illustration | None:
    series, lines, said = [], [], []
    for model, made in known:
        one = made["confidence"].get(question)
        if one is None or not one["usable"]:
            continue
        points = []
        for row in one["bins"]:
            if not row["count"]:
                continue
            at, right = _float(row["confidence"]), _float(row["right"])
            title = f"{model.name}: said {percent(at)} on average, {percent(right)} right, {row['count']} answers"
            points.append(Point(at, right, _float(row["low"]), _float(row["high"]), title))
            lines.append([
                words(model.name, model.number), words(f"{100 * row['from']:.0f}–{100 * row['to']:.0f}"),
                counted(row["count"]), share(at),
                share(right, key=f"interview/{model.number}/{question}/{row['from']:g}"),
                share(_float(row["low"])), share(_float(row["high"])),
            ])  # fmt: skip
        series.append(Series(model.number, points, model.label))
        said.append(
            f"{model.name}: ECE {number(_float(one['ece']['value']))}, Brier {number(_float(one['brier']['value']))}"
        )
    if not series:
        return None
    diagonal = Series(6, [Point(0.0, 0.0), Point(1.0, 1.0)], kind="second")
    chart = curves(
        [*series, diagonal], x_title="confidence said", x_ticks=(0.0, 0.25, 0.5, 0.75, 1.0), limits=(0.0, 1.0),
        log=False, percent=True,
    )  # fmt: skip
    return Illustration(
        f"interview-{question.replace('_', '-')}",
        f"How sure {TITLES[question]}",
        "The share of right answers among those of about the same confidence; on the dashed line it is as often right "
        "as it says.",
        ". ".join(said) + ".",
        table(("Model", "said", "answers", "mean said", "right", "from", "to"), lines, "Wilson intervals."),
        (chart,),
    )


def _confronted(known: Sequence[tuple[Model, Mapping[str, Any]]]) -> Illustration | None:
    told = [(model, made["confrontation"]) for model, made in known if made["confrontation"] is not None]
    told = [(model, one) for model, one in told if one["contradictions"]]
    if not told:
        return None
    content, lines, said = [], [], []
    for name in (*OUTCOMES, "denial", *STANCES):
        estimates = []
        for model, one in told:
            rate = one["rates"][name]
            value, low, high = (_float(rate[key]) for key in ("value", "low", "high"))
            title = f"{model.name}, {_NAMES[name]}: {percent(value)} ({rate['count']} of {rate['of']})"
            estimates.append(Estimate(model.number, value, low, high, title))
            said.append(title)
            lines.append([
                words(model.name, model.number), words(_NAMES[name]),
                share(value, key=f"interview/{model.number}/{name}"), share(low), share(high), counted(rate["count"]),
                counted(rate["of"]),
            ])  # fmt: skip
        if name in (*OUTCOMES, "denial"):
            content.append(Row(_NAMES[name], estimates))
    return Illustration(
        "interview-confronted",
        "Shown its own contradictions",
        "Wrong on the hard question, right on the easy one: both answers are shown, it is asked whether they agree, "
        "and then the hard question again.",
        ". ".join(said) + ".",
        table(("Model", "it …", "rate", "from", "to", "times", "of"), lines, "Wilson intervals over chains."),
        (rows(content, models=len(told), names=140.0, limits=(0.0, 1.0)),),
    )


def _float(value: object) -> float:
    return math.nan if value is None else float(value)  # type: ignore[arg-type]
