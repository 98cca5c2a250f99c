"""Experiments beside ordinary runs: what one thing varied does, as a figure with intervals and one table.

Knows: which folders hold experiments, which of their runs stands for them in the rest of the page, and how each
analysis becomes a figure.
Does not know: how anything was computed or worded (csq.experiments).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from belie.csq.experiments import ExperimentFolder, Outcome, analyse, is_experiment
from belie.csq.experiments.agreement import SCORES, Agreement
from belie.csq.experiments.phrasing import Components
from belie.csq.experiments.shifts import OVERALL, Shifts
from belie.csq.experiments.words import MEASURES, SIGNS, findings, p_value
from belie.numbers import number, percent, raw
from belie.report.chart import Chart, Estimate, Row, rows
from belie.report.hostile import plain
from belie.report.reading import Model
from belie.report.tables import Cell, Illustration, figure, share, table, words
from belie.respondents.base import BadInput

_SIGNED = ("rho", "delta_net", "beta")
#: The scores that are drawn; all are in the table.
_DRAWN = ("rho", "delta", "delta_net", "error")
_SOURCES = {"chain": "chain", "phrasing": "phrasing", "chain×phrasing": "both together", "sampling": "drawing"}


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment of the page. ``problem``: why there is no figure, None where there is one."""

    title: str
    name: str
    lead: str
    findings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    illustration: Illustration | None = None
    problem: str | None = None


def with_references(paths: Sequence[Path]) -> list[Path]:
    """The folders of runs among ``paths``, and for each experiment the run that the others are compared with.

    Raises BadInput for an experiment that holds no run yet.
    """
    found: list[Path] = []
    for path in paths:
        if not is_experiment(path):
            found.append(path)
            continue
        runs = ExperimentFolder.open(path).runs
        if not runs:
            raise BadInput(f"{path} holds no answers yet: ask it, belie csq experiment … --resume {path}.")
        first = next(iter(runs.values())).path
        if first.resolve() not in [one.resolve() for one in (*paths, *found)]:
            found.append(first)
    return found


def experiments(paths: Sequence[Path], models: Sequence[Model]) -> list[Experiment]:
    """The experiments among ``paths``. ``models`` gives the colour of each: that of its first run."""
    return [_experiment(path, models, i) for i, path in enumerate(p for p in paths if is_experiment(p))]


def _experiment(path: Path, models: Sequence[Model], which: int) -> Experiment:
    folder = ExperimentFolder.open(path)
    kind, name = folder.plan.kind, plain(path.resolve().name, 60)
    try:
        outcome = analyse(folder, skip_damaged=True)
    except BadInput as problem:
        return Experiment(kind.title, name, "", problem=plain(str(problem).replace(str(path), name), 400))
    colour = next(
        (m.number for m in models if m.csq and m.csq.folder.path.parent.resolve() == path.resolve()),
        next((m.number for m in models if m.name == outcome.respondent), 0),
    )
    sizes = ", ".join(map(str, outcome.sizes))
    lead = (
        f"{plain(outcome.respondent, 80)}, n = {sizes}, the same {outcome.chains:,} chains at each n under every "
        f"condition: {', '.join(plain(one, 40) for one in outcome.conditions)}."
    )
    key = f"experiment-{which + 1}"
    told = outcome.told
    if isinstance(told, Shifts):
        drawn = _shifts(told, colour, key)
    elif isinstance(told, Agreement):
        drawn = _agreement(outcome, told, colour, key)
    else:
        drawn = _components(told, colour, key)
    return Experiment(
        kind.title, name, lead, tuple(findings(outcome)), tuple(plain(note, 400) for note in outcome.notes), drawn
    )


def _shifts(told: Shifts, colour: int, key: str) -> Illustration:
    first = told.conditions[0]
    charts, said = [], []
    for score in _DRAWN:
        content = []
        for name in told.conditions[1:]:
            one = told.of(name, score)
            shown = percent if score == "error" else number
            title = f"{plain(name, 40)} less {first}, {SIGNS[score]}: {shown(one.value, signed=True)}"
            said.append(title)
            content.append(Row(plain(name, 20), [Estimate(colour, one.value, one.low, one.high, title)]))
        charts.append(_chart(content, f"{SIGNS[score]} less that of {plain(first, 20)}", score == "error"))
    lines = []
    for name in told.conditions[1:]:
        for score in OVERALL:
            one, made = told.of(name, score), share if score == "error" else figure
            signed = score in _SIGNED
            lines.append(
                [
                    words(plain(name, 40), colour),
                    words(SIGNS[score]),
                    made(one.first, signed=signed),
                    made(one.second, signed=signed),
                    made(one.value, signed=True, key=f"{key}/{plain(name, 40)}/{score}"),
                    made(one.low, signed=True),
                    made(one.high, signed=True),
                    _p(one.p),
                    _p(one.p_holm),
                ]
            )
    heads = ("Condition", "Score", plain(first, 20), "this one", "difference", "from", "to", "p", "p (Holm)")
    note = (
        f"Paired chain by chain; p of the swap test, Holm over all {told.comparisons} shown. Scores over all n "
        "(METHOD §1.4)."
    )
    title = f"Differences from {plain(first, 40)}"
    lead = "To the right of the line the score is higher than without the condition. Each chart has its own scale."
    return Illustration(key, title, lead, ". ".join(said[:24]) + ".", table(heads, lines, note), tuple(charts), True)


def _agreement(outcome: Outcome, told: Agreement, colour: int, key: str) -> Illustration:
    charts, said, lines = [], [], []
    for score in SCORES:
        one, content = told.summaries[score], []
        for world in told.worlds:
            own = told.figures[world][score]
            title = f"{plain(world, 40)}, {SIGNS[score]}: {number(own.value)}"
            content.append(Row(plain(world, 20), [Estimate(colour, own.value, own.low, own.high, title)]))
        title = f"all worlds, {SIGNS[score]}: {number(one.value)}"
        said.append(f"{title}, p of all alike {p_value(told.p_holm[score])}")
        content.append(Row("all worlds", [Estimate(colour, one.value, one.low, one.high, title)]))
        charts.append(_chart(content, SIGNS[score], score == "error"))
    for world in told.worlds:
        cells: list[Cell] = [words(plain(world, 40), colour)]
        for score in SCORES:
            own, made = told.figures[world][score], share if score == "error" else figure
            signed = score in _SIGNED
            cells += [made(own.value, signed=signed), made(own.low, signed=signed), made(own.high, signed=signed)]
        lines.append([*cells, share(outcome.scores[world].coverage["first"])])
    cells = [words("all worlds")]
    for score in SCORES:
        one, made, signed = told.summaries[score], share if score == "error" else figure, score in _SIGNED
        cells += [
            made(one.value, signed=signed, key=f"{key}/{score}"),
            made(one.low, signed=signed),
            made(one.high, signed=signed),
        ]
    lines.append([*cells, words("")])
    heads = ["World"]
    for score in SCORES:
        heads += [SIGNS[score], "from", "to"]
    spread = "; ".join(
        f"{SIGNS[score]}: τ {number(one.tau)}, I² {percent(one.i2, 0)}, Q {number(one.q, 1)} on {one.freedom}, "
        f"p (Holm) {p_value(told.p_holm[score])}"
        for score, one in told.summaries.items()
    )
    note = f"{spread}. Worlds are resampled together: the same chain numbers in all of them."
    lead = (
        "Each world by itself, and what random effects make of all: a common value with the interval that it has if "
        "worlds differ as these do."
    )
    return Illustration(
        key, "The worlds side by side", lead, ". ".join(said) + ".", table([*heads, "clear answers"], lines, note),
        tuple(charts), True,
    )  # fmt: skip


def _components(told: Components, colour: int, key: str) -> Illustration:
    charts, said, lines = [], [], []
    for measure, parts in told.all.items():
        content = []
        for one in parts:
            deviation, low, high = one.deviation
            title = f"{MEASURES[measure]}, {_SOURCES[one.source]}: {percent(deviation)}"
            said.append(title)
            content.append(Row(_SOURCES[one.source], [Estimate(colour, deviation, low, high, title)]))
        charts.append(_chart(content, MEASURES[measure], True))
    for n, measures in ((None, told.all), *told.by_n.items()):
        for measure, parts in measures.items():
            for one in parts:
                deviation, low, high = one.deviation
                where = "all" if n is None else str(n)
                lines.append(
                    [
                        words(MEASURES[measure]),
                        words(where),
                        words(_SOURCES[one.source]),
                        share(deviation, key=f"{key}/{measure}/{where}/{one.source}"),
                        share(low),
                        share(high),
                        share(one.share),
                    ]
                )
    p = ", ".join(f"{MEASURES[m]}: {p_value(value)}" for m, value in told.p_holm.items())
    apart = "" if told.exact or told.draws > 1 else " One drawn answer an item: “both together” holds the drawing too."
    note = f"Square roots of variance components, {len(told.phrasings)} phrasings; p of no effect: {p}.{apart}"
    lead = "How far answers move, as standard deviations, from chain to chain, phrasing to phrasing, and draw to draw."
    heads = ("What", "n", "source", "standard deviation", "from", "to", "share of variance")
    return Illustration(
        key,
        "Where the variation comes from",
        lead,
        ". ".join(said) + ".",
        table(heads, lines, note),
        tuple(charts),
        True,
    )


def _p(value: float) -> Cell:
    return Cell(p_value(value), raw(value))


def _chart(content: Sequence[Row], heading: str, percent: bool) -> Chart:
    first, *rest = content
    return rows(
        [Row(first.name, first.estimates, heading=heading), *rest],
        models=1,
        names=110.0,
        percent=percent,
        least=0.02,
        include=(0.0,),
    )


def renamed(names: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """Names of run folders as they are named on the command line: an experiment's for that of its first run."""
    of: Mapping[str, str] = {}
    for path in paths:
        if is_experiment(path):
            runs = ExperimentFolder.open(path).runs
            of = {**of, next(iter(runs.values())).path.name: plain(path.resolve().name)}
    return list(dict.fromkeys(of.get(name, name) for name in names)) if of else list(names)
