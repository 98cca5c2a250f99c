"""What a training did, on the page: before and after on what was not trained on.

Knows: ``effect.json`` in a run's folder (`belie.training.effect`), and how it becomes a figure.
Does not know: how runs are compared or trained; a run without that file has nothing here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from belie.report.chart import Estimate, Row, rows
from belie.report.reading import Model
from belie.report.tables import Cell, Illustration, figure, share, table, words
from belie.training.grades import RESEARCH, warning
from belie.training.words import READINGS, held_words, named, sentence, short


@dataclass(frozen=True, slots=True)
class Trained:
    """One model after a training. ``answers``: (question, sentences)."""

    model: Model
    lead: str
    warning: str | None
    answers: tuple[tuple[str, tuple[str, ...]], ...]
    figure: Illustration
    notes: tuple[str, ...]


def trainings(models: Sequence[Model]) -> tuple[Trained, ...]:
    """The models that were measured after a training; none where no run holds an effect."""
    return tuple(_trained(model, made) for model in models if (made := _read(model)) is not None)


def _read(model: Model) -> Mapping[str, Any] | None:
    for run in model.runs:
        try:
            made = json.loads((run.folder.path / "effect.json").read_bytes())
            if made["lines"] and made["before"] and made["after"]:
                return made
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def _trained(model: Model, made: Mapping[str, Any]) -> Trained:
    lines = made["lines"]
    questions = dict.fromkeys(line["question"] for line in lines)
    answers = tuple((q, tuple(sentence(line) for line in lines if line["question"] == q)) for q in questions)
    recipe = made["recipe"]
    before = made["before"][0]["respondent"]
    told = f"Trained on the recipe {recipe}. " if recipe else ""
    lead = f"{told}Compared with {before} on {held_words(made)}."
    stands = warning(recipe) if recipe in RESEARCH else None
    return Trained(model, lead, stands, answers, _figure(model, made), tuple(made["notes"]))


def _figure(model: Model, made: Mapping[str, Any]) -> Illustration:
    content, question = [], ""
    for line in made["lines"]:
        if line["kind"] != "share":
            continue
        heading = line["question"] if line["question"] != question else ""
        question = line["question"]
        value, low, high = (_float(line[name]) for name in ("difference", "low", "high"))
        estimate = Estimate(model.number, value, low, high, sentence(line))
        content.append(Row(short(line["name"]), [estimate], heading=heading))
    chart = rows(content, models=1, names=120.0, include=(0.0,)) if content else None
    return Illustration(
        f"training-{model.number}",
        "Change after the training",
        "After less before, on what was not trained on; to the right of the line it is higher. Scores that are no "
        "shares (ρ, β) stand in the table only.",
        " ".join(sentence(line) for line in made["lines"][:24]),
        table(
            ("Score", "question", "before", "after", "change", "from", "to", "p", "p (Holm)", "reading"),
            [_line(model, line) for line in made["lines"]],
            f"p: the two runs swapped within a chain or trajectory; Holm over all {made['comparisons']} scores. "
            "As before: the whole interval lies inside 5 points (0.10 for ρ, β). Better, worse, higher, lower: outside "
            "of that, on one side of no change.",
        ),
        () if chart is None else (chart,),
        wide=True,
    )


def _line(model: Model, line: Mapping[str, Any]) -> list[Cell]:
    made = share if line["kind"] == "share" else figure
    key = f"training/{model.number}/{line['name']}"
    cells = [made(line[name], signed=line["kind"] != "share") for name in ("first", "second")]
    cells.append(made(line["difference"], signed=True, key=key))
    cells += [made(line[name], signed=True, key=f"{key}.{name}") for name in ("low", "high")]
    cells += [_p(line[name]) for name in ("p", "p_holm")]
    return [words(named(line["name"]), model.number), words(line["question"]), *cells, words(READINGS[line["reading"]])]


def _p(value: float | None) -> Cell:
    cell = figure(value)
    return Cell("< 0.001", cell.raw) if value is not None and value < 0.001 else cell


def _float(value: float | None) -> float:
    return math.nan if value is None else float(value)
