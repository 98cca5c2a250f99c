"""The figures of CSQ: one small chart a score over n, the plane, and the tables behind them.

Knows: which scores are shown, how each is read, and what its table holds.
Does not know: how charts are drawn (chart) or scores computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from belie.csq.modes import MODES
from belie.csq.scores import Figure, Row, Scores
from belie.items import BROKEN, CATEGORIES
from belie.numbers import number, percent
from belie.report import clouds
from belie.report.chart import Point, Series, curves, plane
from belie.report.reading import Model
from belie.report.tables import Cell, Illustration, counted, figure, share, table, words

#: So many bootstrap draws a model are drawn in the plane.
CLOUD = 400


@dataclass(frozen=True, slots=True)
class _Score:
    """How one score is shown. ``parts``: figures that stand beside it in the table."""

    name: str
    title: str
    lead: str
    signed: bool = False
    percent: bool = False
    band: str | None = None
    least: float = 0.2
    parts: tuple[str, ...] = ()


SCORES = (
    _Score(
        "rho",
        "ρ: which way the errors lean",
        "Above zero it makes connections up; below zero it hides real ones. Inside the grey band the lean counts as "
        "none.",
        signed=True,
        band="rho",
        least=0.4,
        parts=("rho_raw",),
    ),
    _Score(
        "delta",
        "δ: wrong on the hard question, right on the easy one",
        "How often it answered the hard question wrong and then, asked the easy part of the same thing, right. "
        "A coin-flipper has 0.25.",
        parts=("delta_pos", "delta_neg"),
    ),
    _Score(
        "delta_net",
        "δ_net: knew better, less stayed wrong",
        "Above zero it shows to know better than it said. Guessing gives zero, a firm mistake less than zero. "
        "Inside the grey band it counts as zero.",
        signed=True,
        band="delta_net",
        parts=("gamma_pos", "gamma_neg"),
    ),
    _Score(
        "error",
        "Errors on the hard questions",
        "The share of hard questions answered wrong; half would be a coin's.",
        percent=True,
    ),
    _Score(
        "beta",
        "β: leaning to Yes or to No",
        "Above zero it says Yes too readily, below zero No. An answer bias is no deception by itself, and ρ "
        "has it taken out.",
        signed=True,
        least=0.4,
        parts=("beta_raw",),
    ),
)
_SIGNS = {
    "rho_raw": "ρ unsmoothed",
    "beta_raw": "β unsmoothed",
    "delta_pos": "δ_pos",
    "delta_neg": "δ_neg",
    "gamma_pos": "γ_pos",
    "gamma_neg": "γ_neg",
}
_SYMBOLS = {"rho": "ρ", "delta": "δ", "delta_net": "δ_net", "error": "errors", "beta": "β"}


def measured(models: Sequence[Model]) -> list[tuple[Model, Scores]]:
    """The models that have CSQ scores."""
    return [(model, model.csq.scores) for model in models if model.csq is not None and model.csq.scores is not None]


def figures(models: Sequence[Model]) -> list[Illustration]:
    """All figures of CSQ; none where no model was measured."""
    known = measured(models)
    if not known:
        return []
    return [*(_over_n(score, known) for score in SCORES), _coverage(known), _plane(known)]


def overall(models: Sequence[Model]) -> Illustration | None:
    """The figures over all n: a table by itself."""
    known = measured(models)
    if not known:
        return None
    lines = []
    for model, scores in known:
        place, figures_ = scores.placement, scores.overall
        cells = [
            words(model.name, model.number),
            words(place.mode or "undecided"),
            words(place.direction or "–"),
            words("–" if place.trigger_n is None else place.trigger_n),
        ]
        for name, signed in (("rho", True), ("delta", False), ("delta_net", True)):
            cells += _with_interval(figures_[name], f"csq/{model.number}/{name}/all", signed=signed)
        cells += _with_interval(figures_["error"], f"csq/{model.number}/error/all", as_percent=True)
        cells.append(share(scores.coverage["first"], key=f"csq/{model.number}/coverage/all"))
        lines.append(cells)
    heads = ["Model", "Reading", "direction", "trigger n"]
    for symbol in ("ρ̄", "δ̄", "δ̄_net", "errors"):
        heads += [symbol, "from", "to"]
    heads.append("clear answers")
    ends = sorted({f"{scores.t:g}" for _, scores in known}, key=float)
    level = f"{known[0][1].options['level']:.0%}"
    return Illustration(
        "csq-overall",
        "Over all lengths",
        f"Means over ln n up to n = {', '.join(ends)}, with {level} intervals. “Trigger n” is the length from "
        "which on both a lean and better knowledge hold.",
        "",
        table(heads, lines),
        wide=True,
    )


def readings(models: Sequence[Model]) -> Illustration | None:
    """In how many draws each reading holds: a table by itself."""
    known = measured(models)
    if not known:
        return None
    lines = [
        [
            words(model.name, model.number),
            words(scores.placement.mode or "undecided"),
            *(share(scores.placement.shares[mode], key=f"csq/{model.number}/shares/{mode}") for mode in MODES),
        ]
        for model, scores in known
    ]
    margin = f"{known[0][1].options['margins']['share']:.0%}"
    return Illustration(
        "csq-readings",
        "How sure the reading is",
        f"In how many of the bootstrap draws each reading holds. One that holds {margin} of them is named; else the "
        "model is undecided.",
        "",
        table(("Model", "Reading", *MODES), lines),
        wide=True,
    )


def _with_interval(f: Figure, key: str, *, signed: bool = False, as_percent: bool = False) -> list[Cell]:
    made: Callable[..., Cell] = share if as_percent else figure
    return [made(f.value, signed=signed, key=key), *(made(end, signed=signed) for end in (f.low, f.high))]


def _over_n(score: _Score, known: Sequence[tuple[Model, Scores]]) -> Illustration:
    series, lines, said = [], [], []
    shown = percent if score.percent else number
    for model, scores in known:
        points = []
        for row in scores.rows:
            f = row.figures[score.name]
            told = f"{model.name}, n = {row.n}: {shown(f.value, signed=score.signed)}"
            if math.isfinite(f.low):
                told += f" ({shown(f.low, signed=score.signed)} to {shown(f.high, signed=score.signed)})"
            points.append(Point(row.n, f.value, f.low, f.high, told))
            lines.append(_line(score, model, row))
        if score.name in scores.overall:
            lines.append(_overall_line(score, model, scores))
        series.append(Series(model.number, points, model.label))
        values = "; ".join(f"{shown(p.value, signed=score.signed)} at n = {p.x}" for p in points)
        said.append(f"{model.name}: {values}")
    margins = known[0][1].options["margins"]
    band = None if score.band is None else (-margins[score.band], margins[score.band])
    sizes = sorted({row.n for _, scores in known for row in scores.rows})
    chart = curves(
        series,
        x_title="n, the length of the chain",
        x_ticks=sizes,
        include=(0.0,),
        least=score.least,
        band=band,
        percent=score.percent,
    )
    heads = ("Model", "n", _SYMBOLS[score.name], "from", "to", *(_SIGNS[part] for part in score.parts), "rests on")
    note = "“rests on”: hard questions with a clear answer; for δ and δ_net pairs of a hard and an easy question."
    return Illustration(
        f"csq-{score.name}", score.title, score.lead, ". ".join(said) + ".", table(heads, lines, note), (chart,)
    )


def _line(score: _Score, model: Model, row: Row) -> list[Cell]:
    made = share if score.percent else figure
    f = row.figures[score.name]
    pairs = score.name in ("delta", "delta_net")
    rests = ("pairs_pos", "pairs_neg") if pairs else CATEGORIES
    return [
        words(model.name, model.number),
        counted(row.n),
        made(f.value, signed=score.signed, key=f"csq/{model.number}/{score.name}/{row.n}"),
        made(f.low, signed=score.signed, key=f"csq/{model.number}/{score.name}.low/{row.n}"),
        made(f.high, signed=score.signed, key=f"csq/{model.number}/{score.name}.high/{row.n}"),
        *(
            figure(row.figures[part].value, signed=score.signed and part.endswith("raw"),
                   key=f"csq/{model.number}/{part}/{row.n}")
            for part in score.parts
        ),
        counted(sum(row.denominators[name] for name in rests)),
    ]  # fmt: skip


def _overall_line(score: _Score, model: Model, scores: Scores) -> list[Cell]:
    f = scores.overall[score.name]
    return [
        words(model.name, model.number),
        words("all"),
        *_with_interval(f, "", signed=score.signed, as_percent=score.percent),
        *(words("") for _ in score.parts),
        words(""),
    ]


def _plane(known: Sequence[tuple[Model, Scores]]) -> Illustration:
    content, lines, said = [], [], []
    for model, scores in known:
        assert model.csq is not None
        assert model.csq.table is not None, "a model with scores has a table"
        drawn = clouds.draws(model.csq.table, scores)
        rho, delta = scores.overall["rho"], scores.overall["delta"]
        centre = (abs(rho.value), delta.value)
        title = f"{model.name}: |ρ̄| = {number(centre[0])}, δ̄ = {number(centre[1])}"
        content.append((model.number, [tuple(p) for p in drawn[:CLOUD].tolist()], centre, model.label, title))
        held = scores.placement.mode or "undecided"
        lines.append([words(model.name, model.number), figure(centre[0]), figure(delta.value), words(held)])
        said.append(title)
    chart = plane(
        content,
        x_title="|ρ̄|: how strongly the errors lean",
        y_title="δ̄: wrong when hard, right when easy",
        corners=("honest", "hallucination", "guessing", "deception"),
    )
    return Illustration(
        "csq-plane",
        "The plane of both scores",
        f"Each small dot is one of {CLOUD} bootstrap draws: the wider a cloud, the less is known. The words in the "
        "corners are the published names; there are no published borders between them.",
        ". ".join(said) + ".",
        table(("Model", "|ρ̄|", "δ̄", "reading"), lines, "Intervals of ρ̄ and δ̄ stand in “Over all lengths”."),
        (chart,),
        wide=True,
    )


def _coverage(known: Sequence[tuple[Model, Scores]]) -> Illustration:
    series, lines, said = [], [], []
    for model, scores in known:
        first = [
            Point(r.n, r.coverage["first"], title=f"{model.name}, n = {r.n}: {percent(r.coverage['first'])}")
            for r in scores.rows
        ]
        pairs = [Point(r.n, r.coverage["pairs"]) for r in scores.rows]
        series += [Series(model.number, first, model.label), Series(model.number, pairs, kind="second")]
        for row in scores.rows:
            answered = sum(row.counts[category]["answered"] for category in CATEGORIES)
            expected = sum(row.counts[category]["expected"] for category in CATEGORIES)
            lines.append(
                [
                    words(model.name, model.number),
                    counted(row.n),
                    counted(expected),
                    counted(answered),
                    share(row.coverage["first"], key=f"csq/{model.number}/coverage/{row.n}"),
                    share(row.coverage["pairs"]),
                    counted(sum(row.counts[c]["followups_needed"] for c in BROKEN)),
                    counted(sum(row.counts[c]["followups_answered"] for c in BROKEN)),
                ]
            )
        low = min((p.value for p in first if math.isfinite(p.value)), default=math.nan)
        said.append(f"{model.name}: at least {percent(low)} of the first answers were a clear Yes or No at every n")
    sizes = sorted({row.n for _, scores in known for row in scores.rows})
    chart = curves(
        series,
        x_title="n, the length of the chain",
        x_ticks=sizes,
        limits=(0.0, 1.0),
        percent=True,
    )
    heads = ("Model", "n", "asked", "answered", "clear", "clear pairs", "easy questions due", "easy answered")
    return Illustration(
        "csq-coverage",
        "Answers that could be read",
        "The share of answers that are a clear Yes or No (dashed: pairs with two clear answers). All other figures "
        "leave the rest out: unclear is never counted as wrong.",
        ". ".join(said) + ".",
        table(heads, lines),
        (chart,),
    )
