"""``belie sql``: one query over all runs."""

from __future__ import annotations

import csv
import math
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from belie.cli import options as o
from belie.cli.output import out, print_json, say
from belie.respondents.base import BadInput
from belie.runs.listing import ROOT

EPILOG = 'Example:  belie sql "select respondent, category, avg(p_right) from answers group by all"'
#: Cells of the table on a terminal are cut at so many characters, rows at so many; --json and --csv give all.
CELL, ROWS = 200, 500
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def sql(
    query: Annotated[str, typer.Argument(help="A SELECT over runs, answers, items, rounds, quotes (DuckDB's SQL).")],
    root: Annotated[Path, typer.Option(help="Where the runs are.", metavar="FOLDER")] = ROOT,
    csv_out: Annotated[bool, typer.Option("--csv", help="Print the result as CSV.")] = False,
    json: o.Json = False,
) -> None:
    """Ask all runs at once. DESCRIBE answers tells a view's columns. Reads only; sees nothing but the runs."""
    if json and csv_out:
        raise BadInput("--json and --csv can't be had together: choose one.")
    from belie.runs.database import query as ask

    result, notices = ask(query, root)
    for notice in notices:
        say(notice)
    rows = result.to_pylist() if len(set(result.column_names)) == result.num_columns else None
    if json:
        if rows is None:
            raise BadInput("Two columns of the result have the same name: name them apart with AS.")
        print_json([{name: _plain(value) for name, value in row.items()} for row in rows])
        return
    columns = [result.column(i).to_pylist() for i in range(result.num_columns)]
    if csv_out:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(result.column_names)
        writer.writerows(zip(*columns, strict=True))
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name, values in zip(result.column_names, columns, strict=True):
        table.add_column(Text(_shown(name)), justify="right" if _numeric(values) else "left", overflow="fold")
    for i in range(min(result.num_rows, ROWS)):
        table.add_row(*(Text(_shown(values[i])) for values in columns))
    out.print(table)
    if result.num_rows > ROWS:
        say(f"The first {ROWS} of {result.num_rows:,} rows; --csv and --json give all.")


def _numeric(values: list[Any]) -> bool:
    return any(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _shown(value: Any) -> str:
    """A cell as text; what a model said can't move the cursor or turn the line around."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = _CONTROL.sub("\ufffd", str(value))
    return text if len(text) <= CELL else f"{text[:CELL]}…"


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    return str(value)
