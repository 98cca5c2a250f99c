"""``belie csq explain``: what a run's errors are made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from belie.cli import cluster
from belie.cli import options as o
from belie.cli.output import digits, out, print_json, say
from belie.csq.decomposition import ExplainedRow, Explanation
from belie.csq.explaining import explain_run
from belie.csq.pattern_words import NAMES, explained
from belie.csq.scores import Figure
from belie.numbers import number
from belie.runs import RunFolder

EPILOG = "Example:  belie csq explain runs/csq-smollm2-135m-20261130-101500"

#: Title, what it says, and columns (figure, head, signed, as percent; a pair of figures is a band).
_TABLES = (
    (
        "Pairs of answers to broken questions",
        "knowing: wrong, then right on the easy question. unknowing: wrong on both.",
        (
            ("right", "right", False, True),
            ("knowing", "knowing", False, True),
            ("unknowing", "unknowing", False, True),
            ("invalid", "invalid", False, True),
        ),
    ),
    (
        "δ against independent answers",
        "again: the hard question answered twice at random, e(1−e). independent: the easy one at its rate after any "
        "answer, among pairs with two clear answers.",
        (
            ("delta_mean", "δ (mean)", False, False),
            ("again", "again", False, False),
            ("excess_again", "δ − again", True, False),
            ("independent", "independent", False, False),
            ("excess", "δ − indep.", True, False),
            ("after_right", "easy right\nafter right", False, True),
        ),
    ),
    (
        "Linked against broken: structure, word, and what is left",
        "ln of the right rates. can = ρ + β and cannot = ρ − β are what is seen; κ (can against cannot) is left over.",
        (
            ("can", "can", True, False),
            ("cannot", "cannot", True, False),
            ("rho", "structure ρ", True, False),
            ("beta", "word β", True, False),
            ("polarity", "left κ", True, False),
            ("rho_odds", "ρ, log-odds", True, False),
        ),
    ),
    (
        "Against length alone: the hard question and δ, told from linked questions",
        "A departure is the distance to what length lets one expect; length alone has ρ = 0.",
        (
            ("first_expected", "errors\nexpected", False, True),
            ("first_departure", "departure\nin points", True, True),
            (("delta_low", "delta_high"), "δ expected", False, False),
            ("delta_departure", "departure", True, False),
        ),
    ),
    (
        "Against length alone: the easy question after a wrong answer",
        "Told from linked questions, and from its own hard broken ones, of the easy one's own length.",
        (
            ("easy_right", "easy right", False, True),
            (("linked_low", "linked_high"), "as linked", False, True),
            ("linked_departure", "departure\nin points", True, True),
            (("own_low", "own_high"), "as own broken", False, True),
            ("own_departure", "departure\nin points", True, True),
        ),
    ),
)


def explain(
    runs: Annotated[list[Path], typer.Argument(help="Folders of CSQ runs.", metavar="RUN…")],
    skip_damaged: o.SkipDamaged = False,
    json: o.Json = False,
) -> None:
    """Tell what a run's errors are made of: guessing, difficulty, a word, or more. Asks nothing."""
    documents = []
    for path in runs:
        with cluster.readable(path) as local:
            folder = RunFolder.open(local)
            for notice in folder.notices:
                say(notice)
            told = explain_run(folder, skip_damaged=skip_damaged)
            name = folder.manifest.respondent
            if json:
                head = {"run": str(path), "respondent": name, "status": folder.status}
                documents.append({**head, **told.to_json(), "words": explained(told, name)})
                continue
            _show(folder, told)
    if json:
        print_json({"runs": documents})


def _show(folder: RunFolder, told: Explanation) -> None:
    name = folder.manifest.respondent
    out.rule(Text(f"{name} · world {folder.manifest.versions.get('world')}"), align="left")
    for title, lead, columns in _TABLES:
        table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.add_column("n", justify="right")
        followed = title.startswith("Against length alone: the easy")
        if followed:
            table.add_column("own length\nwrong pairs", justify="right")
        for _, head, signed, percent in columns:
            table.add_column(f"{head} %" if percent and not signed else head, justify="right")
        for row in told.rows:
            extra = [f"{row.own or '–'}\n{row.wrong:,.0f}"] if followed else []
            table.add_row(str(row.n), *extra, *_cells(row, columns))
        table.add_section()
        table.add_row("all", *([""] if followed else []), *_cells(told, columns))
        out.print(table)
        out.print(Text(lead, style="dim"))
    missing = [f"–: {reason}." for reason in told.reasons]
    level = f"{told.options['level']:.0%}"
    out.print(Text("\n".join([f"In brackets {level} bootstrap intervals over chains.", *missing]), style="dim"))
    if folder.status != "complete":
        out.print(Text(f"This run is {folder.status}: the figures are those of what has been answered so far."))
    pattern = told.standing.pattern
    out.print(Text(f"\nPattern: {NAMES[pattern] if pattern else 'undecided'}", style="bold"))
    for paragraph in explained(told, name):
        out.print(Text(paragraph))
    out.print()


def _cells(row: ExplainedRow | Explanation, columns: Sequence[tuple]) -> list[Text]:
    figures = row.figures if isinstance(row, ExplainedRow) else row.overall
    return [_cell(figures, key, signed, percent) for key, _, signed, percent in columns]


def _cell(figures: Mapping[str, Figure], key: str | tuple[str, str], signed: bool, percent: bool) -> Text:
    scale, places = (100, 1) if percent else (1, digits())

    def shown(value: float) -> str:
        return number(scale * value, places, signed=signed)

    if isinstance(key, tuple):
        low, high = (shown(figures[part].value) for part in key)
        return Text(low if low == high else f"{low} to {high}")
    figure = figures[key]
    text = Text(shown(figure.value))
    if not math.isnan(figure.low):
        text.append(f"\n[{shown(figure.low)}, {shown(figure.high)}]", style="dim")
    return text
