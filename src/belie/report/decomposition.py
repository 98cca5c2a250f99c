"""What the errors of a CSQ run are made of, for the page: the pattern in words, three figures and their tables.

Knows: which figures of an explanation are shown, and how each is read.
Does not know: how they are computed (csq.decomposition), or how charts are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from belie.csq.decomposition import Explanation
from belie.csq.explaining import explain_run
from belie.csq.pattern_words import NAMES, explained
from belie.csq.patterns import EASY_MARGIN
from belie.csq.scores import Figure
from belie.numbers import number, percent
from belie.report.chart import Point, Series, curves
from belie.report.reading import Model
from belie.report.tables import Cell, Illustration, counted, figure, share, table, words
from belie.respondents.base import BadInput


@dataclass(frozen=True, slots=True)
class Told:
    """One model's explanation: the name of its pattern, the paragraphs, and why figures are missing."""

    model: Model
    explanation: Explanation
    pattern: str
    paragraphs: tuple[str, ...]


def told(models: Sequence[Model]) -> list[Told]:
    """The explanations of the models that have CSQ pairs; a run without them is passed over."""
    found = []
    for model in models:
        run = model.csq
        if run is None or run.table is None or run.scores is None:
            continue
        try:
            explanation = explain_run(run.folder, table=run.table, scores=run.scores, skip_damaged=True)
        except BadInput:
            continue
        pattern = explanation.standing.pattern
        name = NAMES[pattern] if pattern else "undecided"
        found.append(Told(model, explanation, name, tuple(explained(explanation, model.name))))
    return found


def illustrations(all_told: Sequence[Told]) -> list[Illustration]:
    """The figures; none where nothing was explained."""
    return [_parts(all_told), _departures(all_told), _split(all_told)] if all_told else []


def _parts(all_told: Sequence[Told]) -> Illustration:
    series, lines, said = [], [], []
    for one in all_told:
        model, rows = one.model, one.explanation.rows
        series.append(Series(model.number, [_point(r.n, r.figures["knowing"]) for r in rows], model.label))
        second = [_point(r.n, r.figures["unknowing"]) for r in rows]
        series.append(Series(model.number, second, kind="second"))
        for row in rows:
            f = row.figures
            lines.append(
                [
                    words(model.name, model.number),
                    counted(row.n),
                    share(f["right"].value, key=f"explain/{model.number}/right/{row.n}"),
                    *_shares(f["knowing"], f"explain/{model.number}/knowing/{row.n}"),
                    *_shares(f["unknowing"], f"explain/{model.number}/unknowing/{row.n}"),
                    share(f["invalid"].value),
                    counted(row.pairs),
                ]
            )
        over = one.explanation.overall
        said.append(
            f"{model.name}: {percent(over['knowing'].value)} knowing and {percent(over['unknowing'].value)} unknowing "
            "errors over all n"
        )
    heads = ["Model", "n", "right", "knowing", "from", "to", "unknowing", "from", "to", "invalid", "pairs"]
    return Illustration(
        "explained-parts",
        "Knowing and unknowing errors",
        "Of all pairs on broken questions, the share with the hard question wrong and the easy one right (line), and "
        "with both wrong (dashed).",
        ". ".join(said) + ".",
        table(heads, lines),
        (curves(series, x_title="n, the length of the chain", x_ticks=_sizes(all_told), percent=True),),
    )


def _departures(all_told: Sequence[Told]) -> Illustration:
    series, lines, said = [], [], []
    for one in all_told:
        model = one.model
        points = [_point(row.n, row.figures["own_departure"]) for row in one.explanation.rows]
        series.append(Series(model.number, points, model.label))
        for row in one.explanation.rows:
            f = row.figures
            lines.append(
                [
                    words(model.name, model.number),
                    counted(row.n),
                    words("–") if row.own is None else counted(row.own),
                    counted(row.wrong),
                    share(f["easy_right"].value, key=f"explain/{model.number}/easy_right/{row.n}"),
                    *(share(f[f"linked_{part}"].value) for part in ("low", "high")),
                    *(share(f[f"own_{part}"].value) for part in ("low", "high")),
                    *_shares(f["own_departure"], f"explain/{model.number}/own_departure/{row.n}", signed=True),
                ]
            )
        away = one.explanation.overall["own_departure"]
        said.append(f"{model.name}: {percent(away.value, signed=True)} over all n")
    heads = ["Model", "n", "its length", "wrong pairs", "easy right", "as linked", "to", "as own broken", "to"]
    reasons = [f"{one.model.name}: {reason}." for one in all_told for reason in one.explanation.reasons]
    return Illustration(
        "explained-length",
        "The easy question, against what its length explains",
        "How much more often the easy question was right after a wrong answer than hard broken questions of its own "
        "length are. Inside the grey band length explains it; above, it knew better than that.",
        ". ".join(said) + ".",
        table([*heads, "departure", "from", "to"], lines, "–: " + " ".join(reasons) if reasons else ""),
        (
            curves(
                series,
                x_title="n, the length of the chain",
                x_ticks=_sizes(all_told),
                percent=True,
                band=(-EASY_MARGIN, EASY_MARGIN),
                include=(-0.2, 0.0, 0.2),
            ),
        ),
    )


def _split(all_told: Sequence[Told]) -> Illustration:
    names = (("can", "can"), ("cannot", "cannot"), ("rho", "structure ρ"), ("beta", "word β"), ("polarity", "left κ"))
    lines = []
    for one in all_told:
        model = one.model
        for row in one.explanation.rows:
            f = row.figures
            lines.append(
                [
                    words(model.name, model.number),
                    counted(row.n),
                    *(figure(f[name].value, signed=True) for name, _ in names),
                    *(figure(end, signed=True) for end in (f["polarity"].low, f["polarity"].high)),
                    figure(f["rho_odds"].value, signed=True, key=f"explain/{model.number}/rho_odds/{row.n}"),
                    *(figure(end, signed=True) for end in (f["rho_odds"].low, f["rho_odds"].high)),
                ]
            )
    heads = ["Model", "n", *(head for _, head in names), "from", "to", "ρ, log-odds", "from", "to"]
    return Illustration(
        "explained-split",
        "Linked against broken: structure, word, and what is left",
        "ln of the rates of right answers. What is seen in the two wordings, can = ρ + β and cannot = ρ − β, is split "
        "into structure and word; κ, “can” against “cannot”, is what they leave unexplained. A ρ that is not there on "
        "log-odds is no lean to rely on.",
        "",
        table(heads, lines),
        wide=True,
    )


def _sizes(all_told: Sequence[Told]) -> list[int]:
    return sorted({row.n for one in all_told for row in one.explanation.rows})


def _point(n: int, f: Figure) -> Point:
    title = f"n = {n}: {percent(f.value)}"
    if not math.isnan(f.low):
        title += f", {number(100 * f.low, 1)} to {percent(f.high)}"
    return Point(n, f.value, f.low, f.high, title)


def _shares(f: Figure, key: str, *, signed: bool = False) -> list[Cell]:
    ends = [share(end, signed=signed) for end in (f.low, f.high)]
    return [share(f.value, signed=signed, key=key), *ends]
