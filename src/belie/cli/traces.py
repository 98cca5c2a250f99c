"""``belie csq traces``: what the reasoning of a run's answers states, against the facts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from belie.cli import cluster
from belie.cli import options as o
from belie.cli.output import err, out, print_json, say
from belie.csq.scores import Figure
from belie.csq.traces.figures import MEASURES, Group, Traces, traces_of
from belie.csq.traces.labelled import MEASURES as LABELS
from belie.csq.traces.labelled import agreement, compare_labelled, load_labelled
from belie.csq.traces.reading import TRACES_VERSION
from belie.csq.traces.source import SOURCES, Source
from belie.numbers import number, percent
from belie.respondents.base import BadInput
from belie.runs import RunFolder

EPILOG = "Example:  belie csq traces runs/csq-my-reasoning-model"
_KINDS = {
    "fabricated": "Fabricated edges",
    "mismatch": "Verdict in the trace against the answer",
    "false_derivations": "False derivations",
    "reversed": "Edges turned round",
    "unknown": "Names that nobody holds",
}
_ROWS = tuple(name for name in MEASURES if name not in ("hard_words", "easy_words"))


def traces(
    run: Annotated[Path | None, typer.Argument(help="A CSQ run's folder.")] = None,
    reasoning: Annotated[
        str,
        typer.Option(
            help="What is read: auto (the reasoning, or the visible text before the answer where --style asked for "
            "one), hidden (reasoning alone), visible (visible text alone, asked for or not)."
        ),
    ] = "auto",
    check: Annotated[
        Path | None,
        typer.Option(
            help="Instead of a run: a folder of labelled traces, on which the parser is tried.", metavar="FOLDER"
        ),
    ] = None,
    skip_damaged: o.SkipDamaged = False,
    json: o.Json = False,
) -> None:
    """Read the reasoning traces of a run: made-up edges, false conclusions, strange names, verdict against answer.

    By parsing, no judge. Nothing is asked.
    """
    if (run is None) == (check is None):
        raise BadInput("Name a run's folder, or --check with a folder of labelled traces: one of the two.")
    if reasoning not in SOURCES:
        raise BadInput(f"--reasoning {reasoning}: choose one of {', '.join(SOURCES)}.")
    if check is not None:
        _check(check, json=json)
        return
    assert run is not None
    source: Source = reasoning  # type: ignore[assignment]
    with cluster.readable(run) as path:
        folder = RunFolder.open(path)
        for notice in folder.notices:
            say(notice)
        told = traces_of(folder, source=source, skip_damaged=skip_damaged, watch=_watch(json))
        for notice in folder.journal.notices:
            say(notice)
        if json:
            print_json({"run": str(run), "respondent": folder.manifest.respondent, **told.to_json()})
        else:
            _show(folder, told)


def _watch(quiet: bool) -> Any:
    shown = time.monotonic()

    def watch(count: int) -> None:
        nonlocal shown
        if not quiet and time.monotonic() - shown > 10:
            shown = time.monotonic()
            err.print(Text(f"{count:,} answers read"))

    return watch


def _show(folder: RunFolder, told: Traces) -> None:
    groups = [g for g in told.groups if g.category is None]
    out.print(Text(f"Reasoning traces · {folder.manifest.respondent} · world {folder.manifest.versions.get('world')}"))
    out.print(
        Text(
            f"{told.answers - told.silent:,} of {told.answers:,} answers show reasoning. Intervals (95 %) over chains; "
            f"read by a parser (version {TRACES_VERSION}), no judge.",
            style="dim",
        )
    )
    by_n = sorted(groups, key=lambda g: (g.question == "easy", g.n is None, g.n or 0))
    _table([(_heading(g), g) for g in by_n])
    by_category = [g for g in told.groups if g.n is None and g.category is not None]
    _table([(f"{g.category}\n{g.question}".replace("_", "\n", 1), g) for g in by_category])
    paired = told.group()
    if paired is not None and paired.counts["both"]:
        hard, easy = (_figure(paired.figures[name], 0).replace("\n", " ") for name in ("hard_words", "easy_words"))
        out.print(
            Text(
                f"Words where both questions have a trace ({paired.counts['both']:,} pairs): {hard} on the hard one, "
                f"{easy} on the easy one."
            )
        )
    for note in told.notes:
        out.print(Text(note, style="dim"))
    kind = ""
    for example in told.examples:
        if example.kind != kind:
            kind = example.kind
            out.print(Text(f"\n{_KINDS[kind]}", style="bold"))
        out.print(Text(f"  {example.item} ({example.question} question, draw {example.draw}): {example.about}"))
        quote = Text("    " + " ".join(_printable(example.quote).split()), style="dim")
        out.print(quote, soft_wrap=True)


def _heading(group: Group) -> str:
    return f"{'all n' if group.n is None else f'n = {group.n}'}\n{group.question}"


def _table(columns: list[tuple[str, Group]]) -> None:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold")
    for heading, _ in columns:
        table.add_column(Text(heading), justify="right")
    table.add_row("traces", *(f"{g.counts['traces']:,}" for _, g in columns))
    for name in _ROWS:
        measure = MEASURES[name]
        cells = []
        for _, group in columns:
            text = Text(_figure(group.figures[name], 1 if name in ("words", "tokens") else 2, share=measure.share))
            if measure.below in ("compared", "told") and group.counts[measure.below] != group.counts["traces"]:
                text.append(f"\nof {group.counts[measure.below]:,}", style="dim")
            cells.append(text)
        table.add_row(measure.title, *cells)
    out.print(table)


def _figure(figure: Figure, digits: int, *, share: bool = False) -> str:
    if figure.value != figure.value:
        return "–"
    shown = percent if share else number
    if share:
        digits = 0 if round(100 * figure.value) in (0, 100) else 1
    span = (
        ""
        if figure.low != figure.low
        else f"\n[{shown(figure.low, digits)}, {shown(figure.high, digits)}]".replace("\u00a0%,", ",")
    )
    return f"{shown(figure.value, digits)}{span}"


def _printable(text: str) -> str:
    """Without characters that steer a terminal."""
    return "".join(char if char.isprintable() or char in "\n\t" else "�" for char in text)


def _check(path: Path, *, json: bool) -> None:
    compared = compare_labelled(load_labelled(path))
    parts = [
        ("tuned", [one for one in compared if not one.labelled.held_out]),
        ("held out", [one for one in compared if one.labelled.held_out]),
    ]
    if json:
        print_json(
            {
                "traces_version": TRACES_VERSION,
                "sets": {
                    name: {
                        "traces": len(part),
                        "read_right": sum(one.right for one in part),
                        "measures": {
                            label: {
                                "found": (a := agreement(part, label)).found,
                                "wanted": a.wanted,
                                "both": a.both,
                                "precision": None if a.precision != a.precision else a.precision,
                                "recall": None if a.recall != a.recall else a.recall,
                            }
                            for label in LABELS
                        },
                        "wrong": [one.labelled.id for one in part if not one.right],
                    }
                    for name, part in parts
                },
            }
        )
        return
    for name, part in parts:
        table = Table(
            title=Text(
                f"{name}: {sum(one.right for one in part)} of {len(part)} traces read as labelled in everything"
            ),
            title_justify="left",
            box=box.SIMPLE_HEAD,
        )
        for heading in ("measure", "labelled", "found", "both", "precision", "recall"):
            table.add_column(heading, justify="left" if heading == "measure" else "right")
        for label in LABELS:
            a = agreement(part, label)
            table.add_row(label, str(a.wanted), str(a.found), str(a.both), percent(a.precision), percent(a.recall))
        out.print(table)
        if wrong := [one.labelled.id for one in part if not one.right]:
            out.print(Text(f"Read otherwise: {', '.join(wrong)}", style="dim"))
