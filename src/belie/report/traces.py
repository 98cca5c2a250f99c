"""Reasoning traces on the page: how often an edge is made up, by length, the figures in a table, and examples.

Knows: how the figures of `belie.csq.traces` become a chart, a table and quotes.
Does not know: how a trace is read; a run without any has nothing here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from belie.csq.traces.figures import MEASURES, Example, Group, Traces, traces_of
from belie.numbers import percent
from belie.report.chart import Point, Series, curves
from belie.report.reading import Model
from belie.report.tables import Cell, Illustration, counted, figure, share, table, words
from belie.respondents.base import BadInput

KINDS = {
    "fabricated": "Made-up edges",
    "mismatch": "The trace comes to one answer, and another is given",
    "false_derivations": "False conclusions",
    "reversed": "Edges turned round",
    "unknown": "Names that nobody holds",
}
_SHOWN = (
    *("words", "tokens", "pairs_read", "fabricated", "bridging", "fabricated_edges", "reversed", "false_derivations"),
    *("withdrawn", "unknown", "verdicts", "mismatch", "right_then_wrong"),
)


@dataclass(frozen=True, slots=True)
class TracesShown:
    """``models``: each with what its traces show, and its examples by kind. ``figures``: chart and table."""

    models: tuple[tuple[Model, Traces, tuple[tuple[str, tuple[Example, ...]], ...]], ...]
    figures: tuple[Illustration, ...]


def traces(models: Sequence[Model]) -> TracesShown | None:
    """None where no run shows any reasoning."""
    known = [(model, found) for model in models if (found := _read(model)) is not None]
    if not known:
        return None
    shown = tuple((model, found, _by_kind(found)) for model, found in known)
    return TracesShown(shown, (_fabricated(known), _table(known)))


def _read(model: Model) -> Traces | None:
    if model.csq is None or model.csq.folder.manifest.options.get("exact", False):
        return None
    try:
        return traces_of(model.csq.folder, skip_damaged=True)
    except BadInput:
        return None


def _by_kind(found: Traces) -> tuple[tuple[str, tuple[Example, ...]], ...]:
    kinds = dict.fromkeys(example.kind for example in found.examples)
    return tuple((KINDS[kind], tuple(one for one in found.examples if one.kind == kind)) for kind in kinds)


def _fabricated(known: Sequence[tuple[Model, Traces]]) -> Illustration:
    series, said, lines, sizes = [], [], [], set()
    for model, found in known:
        points = []
        for group in found.groups:
            if group.n is None or group.category is not None or group.question != "hard":
                continue
            one = group.figures["fabricated"]
            sizes.add(group.n)
            label = f"{model.name}, n = {group.n}: {percent(one.value)} of {group.counts['traces']:,} traces"
            points.append(Point(group.n, one.value, one.low, one.high, label))
            lines.append(
                [words(model.name, model.number), counted(group.n), *_cells(one.value, one.low, one.high, model, group)]
            )
        series.append(Series(model.number, points, model.label))
        said += [point.title for point in points]
    chart = curves(series, x_title="entities in the chain (n)", x_ticks=sorted(sizes), percent=True, limits=(0.0, 1.0))
    return Illustration(
        "traces-fabricated",
        "Traces with a made-up edge",
        "Of the traces on hard questions, the share that states as a fact at least one edge that the facts do not hold."
        " Bars: 95 % intervals over chains.",
        ". ".join(said) + ".",
        table(("model", "n", "with a made-up edge", "low", "high", "traces"), lines),
        (chart,),
    )


def _cells(value: float, low: float, high: float, model: Model, group: Group) -> list[Cell]:
    key = f"traces/{model.number}/{group.n}/fabricated"
    return [share(value, key=key), share(low), share(high), counted(group.counts["traces"])]


def _table(known: Sequence[tuple[Model, Traces]]) -> Illustration:
    rows = []
    for model, found in known:
        for group in found.groups:
            if group.n is not None:
                continue
            asked = "all kinds" if group.category is None else group.category.replace("_", ", ")
            cells = [words(model.name, model.number), words(asked), words(group.question)]
            cells.append(counted(group.counts["traces"]))
            for name in _SHOWN:
                value = group.figures[name].value
                key = f"traces/{model.number}/{group.category or 'all'}/{group.question}/{name}"
                cells.append(share(value, key=key) if MEASURES[name].share else figure(value, 2, key=key))
            cells.append(counted(group.counts["compared"]))
            rows.append(cells)
    return Illustration(
        "traces-figures",
        "What the traces state",
        "Shares are of the traces in the row; of the two about verdict and answer, of those that state a verdict "
        "beside a valid answer (last column). Edges are made up if told as facts and false; false conclusions, edges "
        "turned round and what is taken back in the same trace are counted apart.",
        "A table of all measures by kind of question.",
        table(
            (
                "model",
                "kind",
                "question",
                "traces",
                *(MEASURES[name].title for name in _SHOWN),
                "verdict and answer",
            ),
            rows,
        ),
        wide=True,
    )
