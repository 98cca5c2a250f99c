"""Prints what an experiment found: one table, what it says, where it lies."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich import box
from rich.table import Table
from rich.text import Text

from belie.cli.output import digits, interval, out
from belie.csq.experiments.agreement import SCORES, Agreement
from belie.csq.experiments.analysis import Outcome
from belie.csq.experiments.folder import ExperimentFolder
from belie.csq.experiments.phrasing import Component, Components, Measure
from belie.csq.experiments.shifts import OVERALL, Shift, Shifts
from belie.csq.experiments.words import ALPHA, MEASURES, SIGNS, findings, p_value
from belie.csq.scores import Figure
from belie.numbers import number, percent

_SIGNED = ("rho", "delta_net", "beta")


def show_outcome(folder: ExperimentFolder, outcome: Outcome, *, by_n: bool) -> None:
    """Prints an outcome; each n too where ``by_n``."""
    told, level = outcome.told, outcome.options["level"]
    if isinstance(told, Shifts):
        out.print(_shifts(outcome, told))
        if by_n:
            out.print(_shifts_by_n(told))
        note = (
            f"First line: the score itself; below: the difference from {told.conditions[0]}, with its paired "
            f"{level:.0%} interval and p of the swap test after Holm over all {told.comparisons} shown."
        )
    elif isinstance(told, Agreement):
        out.print(_agreement(outcome, told))
        note = (
            f"Random effects (Paule–Mandel, Hartung–Knapp) over worlds that are resampled together; {level:.0%} "
            "intervals. τ: standard deviation between worlds. p: all worlds alike, Holm over the scores."
        )
    else:
        out.print(_components(outcome, told))
        if by_n:
            for n, parts in told.by_n.items():
                out.print(_components(outcome, told, parts, f" · n = {n}"))
        note = (
            f"Standard deviations in points of percent with {level:.0%} intervals, and the share of the variance of "
            "one answer. p: phrasings permuted within each chain, Holm over both."
        )
    out.print(Text(note, style="dim"))
    for said in outcome.notes:
        out.print(Text(said, style="dim"))
    out.print()
    for said in findings(outcome):
        out.print(Text(said, style="bold"))
    out.print(
        Text(f"\nResults: {folder.path}  (experiment.json; a run a condition; a page: belie report {folder.path})")
    )


def _titled(outcome: Outcome, more: str = "") -> Table:
    """A table under what was asked of whom, which is printed at once: it may be longer than the table is wide."""
    plan = outcome.plan
    sizes = ", ".join(map(str, outcome.sizes))
    how = "exact probabilities" if outcome.exact else "drawn answers"
    said = f"{plan.experiment} · {outcome.respondent} · n = {sizes} · {outcome.chains:,} chains each · {how}{more}"
    out.print(Text(said, style="italic"), soft_wrap=True)
    return Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _shifts(outcome: Outcome, told: Shifts) -> Table:
    table = _titled(outcome)
    table.add_column("")
    for score in OVERALL:
        table.add_column(SIGNS[score], justify="right")
    table.add_column("valid", justify="right")
    first = told.conditions[0]
    reference = [next(one for one in told.overall if one.score == score).first for score in OVERALL]
    own = outcome.scores[first].overall
    table.add_row(
        Text(first),
        *(
            _value(Figure(value, own[score].low, own[score].high) if score in own else Figure(value), score)
            for score, value in zip(OVERALL, reference, strict=True)
        ),
        _coverage(outcome, first),
    )
    table.add_section()
    for name in told.conditions[1:]:
        table.add_row(Text(name), *(_shift(told.of(name, score)) for score in OVERALL), _coverage(outcome, name))
    return table


def _shifts_by_n(told: Shifts) -> Table:
    table = Table(title=Text("At each n"), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("")
    table.add_column("n", justify="right")
    for score in OVERALL:
        table.add_column(SIGNS[score].replace("̄", ""), justify="right")
    for name in told.conditions[1:]:
        for n in sorted({one.n for one in told.by_n if one.condition == name and one.n is not None}):
            table.add_row(Text(name), str(n), *(_shift(told.of(name, score, n)) for score in OVERALL))
        table.add_section()
    return table


def _shift(one: Shift) -> Text:
    text = Text(number(one.value, digits(), signed=True), style="bold" if one.p_holm <= ALPHA else "")
    if shown := interval(one.low, one.high, digits(), signed=True):
        text.append(f"\n{shown}", style="dim")
    if not math.isnan(one.p_holm):
        text.append(f"\np {p_value(one.p_holm)}", style="dim")
    return text


def _value(figure: Figure, score: str) -> Text:
    text = Text(number(figure.value, digits(), signed=score in _SIGNED))
    if shown := interval(figure.low, figure.high, digits(), signed=score in _SIGNED):
        text.append(f"\n{shown}", style="dim")
    return text


def _coverage(outcome: Outcome, name: str) -> Text:
    return Text(percent(outcome.scores[name].coverage["first"]))


def _agreement(outcome: Outcome, told: Agreement) -> Table:
    table = _titled(outcome)
    table.add_column("")
    for score in SCORES:
        table.add_column(SIGNS[score], justify="right")
    table.add_column("valid", justify="right")
    away = {(one.world, one.score) for one in told.departures if one.departs}
    for world in told.worlds:
        cells = []
        for score in SCORES:
            cell = _value(told.figures[world][score], score)
            if (world, score) in away:
                cell.stylize("bold")
            cells.append(cell)
        table.add_row(Text(world), *cells, _coverage(outcome, world))
    table.add_section()
    parts = [told.summaries[score] for score in SCORES]
    table.add_row(
        "all worlds", *(_value(Figure(one.value, one.low, one.high), s) for s, one in zip(SCORES, parts, strict=True))
    )
    table.add_row(
        "a further one",
        *(
            Text(interval(one.next_low, one.next_high, digits(), signed=s in _SIGNED) or "–", style="dim")
            for s, one in zip(SCORES, parts, strict=True)
        ),
    )
    table.add_row("τ", *(number(one.tau, digits()) for one in parts))
    table.add_row("I²", *(percent(one.i2, 0) for one in parts))
    table.add_row("Q", *(f"{number(one.q, 1)} on {one.freedom}" for one in parts))
    table.add_row("p (Holm)", *(p_value(told.p_holm[score]) for score in SCORES))
    return table


def _components(
    outcome: Outcome, told: Components, parts: Mapping[Measure, tuple[Component, ...]] | None = None, more: str = ""
) -> Table:
    table = _titled(outcome, f" · {len(told.phrasings)} phrasings{more}")
    table.add_column("source")
    for measure in told.all:
        table.add_column(MEASURES[measure], justify="right")
        table.add_column("share", justify="right")
    found = parts or told.all
    for i, source in enumerate(one.source for one in found["wrong"]):
        cells = []
        for measure in told.all:
            one = found[measure][i]
            deviation = [100 * value for value in one.deviation]
            cell = Text(number(deviation[0], 2))
            if shown := interval(deviation[1], deviation[2], 3):
                cell.append(f"\n{shown}", style="dim")
            cells += [cell, Text(percent(one.share))]
        separable = told.exact or told.draws > 1
        table.add_row(source if separable or source != "chain×phrasing" else "chain×phrasing\nand sampling", *cells)
    if parts is None:
        table.add_section()
        cells = []
        for measure in told.all:
            cells += [Text(f"p {p_value(told.p_holm[measure])}"), Text("")]
        table.add_row("phrasing", *cells)
    return table
