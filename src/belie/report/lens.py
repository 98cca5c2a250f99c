"""The Jacobian lens on the page: by layer, what the states told of the truth before the answer.

Knows: ``lens-knownlie.json``, ``lens-csq.json`` and ``lens-ablation-….json`` in a run's folder (`belie.lens.written`).
Does not know: how they were made; a run without such files has nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from belie.lens.result import METHODS, Ablation, Curve, Reading
from belie.lens.words import (
    MEASURES,
    PLACES,
    ablation_verdicts,
    asked,
    condition_name,
    peak_words,
    spans,
    verdicts,
)
from belie.lens.written import load_ablation, load_reading
from belie.numbers import number
from belie.report.chart import Chart, Point, Series, curves
from belie.report.reading import Model
from belie.report.tables import Cell, Illustration, counted, figure, share, table, words
from belie.respondents.base import BadInput

_INSTRUMENTS = ("csq", "knownlie")
_KINDS = {"lens": "main", "logit lens": "second", "probe": "track"}
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class LensSection:
    """What was found in words, model by model, and the figures."""

    sentences: tuple[tuple[Model, tuple[str, ...]], ...]
    figures: tuple[Illustration, ...]


def lens(models: Sequence[Model]) -> LensSection | None:
    """None where no run holds a reading or an ablation."""
    sentences: list[tuple[Model, tuple[str, ...]]] = []
    figures: list[Illustration] = []
    for model in models:
        told: list[str] = []
        for run in model.runs:
            for instrument in _INSTRUMENTS:
                reading = _held(run.folder.path / f"lens-{instrument}.json", load_reading, told)
                if reading is not None:
                    told += [*verdicts(reading), _fitted(reading)]
                    figures += [
                        _by_layer(model, reading, question)
                        for question in dict.fromkeys(c.question for c in reading.curves)
                    ]
                ablation = _held(run.folder.path / f"lens-ablation-{instrument}.json", load_ablation, told)
                if ablation is not None:
                    told += ablation_verdicts(ablation)
                    figures.append(_ablated(model, ablation))
        if told:
            sentences.append((model, tuple(told)))
    return LensSection(tuple(sentences), tuple(figures)) if sentences else None


def _held(path: Path, load: Callable[[Path], Made], told: list[str]) -> Made | None:
    """What a file holds; a damaged one is told and left out."""
    if not path.exists():
        return None
    try:
        return load(path)
    except BadInput as problem:
        told.append(str(problem))
        return None


def _fitted(reading: Reading) -> str:
    told = reading.settings.get("lens") or {}
    halves = [value for value in told.get("halves_cosine") or () if isinstance(value, float | int)]
    least = (
        f"; its vectors from either half of them agree with a cosine of {number(min(halves))} or more" if halves else ""
    )
    return f"The lens was fitted on {told.get('prompts', '–')} neutral texts{least}."


def _by_layer(model: Model, reading: Reading, question: str) -> Illustration:
    own = [c for c in reading.curves if c.question == question]
    what = asked(reading.instrument, question)
    places = list(dict.fromkeys((c.condition, c.place) for c in own))
    charts, lines, said = [], [], []
    for condition, place in places:
        three = [reading.curve(question, condition, place, method) for method in METHODS]
        if any(c.peak is not None for c in three):
            charts.append(_chart(model, reading, three, f"{condition_name(condition)}, {PLACES[place]}"))
        lines += [_line(model, curve) for curve in three]
        said.append(f"{condition_name(condition)}, {PLACES[place]}: {peak_words(three[0])}")
    heads = ("Model", "condition", "place", "through", "AUROC furthest from 0.5", "from", "to", "at layer")
    heads += ("signal at layers", "difference there (sd)", "from", "to", "cases", "against")
    return Illustration(
        f"lens-{model.number}-{reading.instrument}-{question}",
        f"The lens, {what}: {model.name}",
        f"AUROC of {what} by layer, from the embeddings (0) to the last: 0.5 is chance. Marks with intervals: the "
        "Jacobian lens; the lines without: the logit lens, and a linear probe that was tested on cases it had not "
        "seen. Only cases of the same domain, or questions of the same kind and length, are compared.",
        ". ".join(said) + ".",
        table(heads, lines, "Layers with a signal: after Holm over layers, places and conditions."),
        tuple(charts),
        wide=True,
    )


def _chart(model: Model, reading: Reading, three: Sequence[Curve], title: str) -> Chart:
    series = []
    for curve in three:
        found = curve.separation
        points = [
            Point(layer, value, low, high, f"{title}, layer {layer}: {number(value, 2)}")
            for layer, (value, (low, high)) in enumerate(zip(found.auroc, found.interval, strict=True))
        ]
        series.append(Series(model.number, points, curve.method, _KINDS[curve.method]))
    step = max(1, 5 * round(reading.layers / 30)) or 1
    ticks = sorted({*range(0, reading.layers, step), reading.layers})
    return curves(
        series, x_title="layer", x_ticks=ticks, include=(0.5,), limits=(0.0, 1.0), log=False, title=title, height=190.0
    )


def _line(model: Model, curve: Curve) -> list[Cell]:
    found, at = curve.separation, curve.peak
    nan = math.nan
    peak = (nan, nan, nan) if at is None else (float(found.auroc[at]), *map(float, found.interval[at]))
    moved = (nan, nan, nan) if at is None else (float(found.difference[at]), *map(float, found.difference_interval[at]))
    layers = spans([i for i, seen in enumerate(found.signal) if seen])
    return [
        words(model.name, model.number), words(condition_name(curve.condition)), words(PLACES[curve.place]),
        words(curve.method), *(figure(value, 2) for value in peak), words("–" if at is None else at),
        words(layers or "none"), *(figure(value, 2, signed=True) for value in moved), counted(found.positives),
        counted(found.negatives),
    ]  # fmt: skip


def _ablated(model: Model, done: Ablation) -> Illustration:
    lines = []
    for effect in done.effects:
        ends = [share(end(effect.random[name]), signed=True) for name in ("removed", "moved") for end in (min, max)]
        lines.append(
            [
                words(model.name, model.number), words(condition_name(effect.condition)),
                words(MEASURES[effect.measure]), share(effect.before), share(effect.after),
                share(effect.change, signed=True), share(effect.low, signed=True), share(effect.high, signed=True),
                *ends, figure(effect.p.get("removed"), 2), figure(effect.p.get("moved"), 2),
            ]
        )  # fmt: skip
    heads = ("Model", "condition", "of the answers", "before", "after", "change", "from", "to", "removed: least")
    heads += ("most", "moved: least", "most", "p removed", "p moved")
    where = "every position" if done.where == "all" else "the last position"
    return Illustration(
        f"lens-ablation-{model.number}-{done.instrument}",
        f"The contrast taken out at layers {done.band[0]} to {done.band[1]}: {model.name}",
        f"Answers to {done.probes} probes with the direction of yes against no projected out at {where}. Beside it "
        "what random directions of the same length do: removed in its place, or moved along as far as the removal "
        "moves a state.",
        "",
        table(heads, lines, "p: the share of random directions that move it at least as far, itself counted."),
    )
