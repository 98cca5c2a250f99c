"""``belie gate``: rules on a run, for a release."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from belie.cli import options as o
from belie.cli.output import out, print_json, say
from belie.gate import GateResult, gate, junit, markdown, read_rules
from belie.gate.evaluation import figure
from belie.respondents.base import BadInput

EPILOG = "Example:  belie gate runs/csq-a --rules gate.yaml --junit gate.xml --markdown gate.md"
_STYLES = {"met": ("met", "green"), "unmet": ("not met", "bold red"), "thin": ("too thin", "bold yellow")}


def gate_run(
    runs: Annotated[list[Path], typer.Argument(help="A run's folder, or one of each instrument.")],
    rules: Annotated[Path, typer.Option(help="The rules, a YAML file.")],
    baseline: Annotated[
        list[Path] | None, typer.Option(help="The run that compare(baseline) means; may be given twice.")
    ] = None,
    junit_file: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML here.", metavar="FILE")] = None,
    markdown_file: Annotated[
        Path | None, typer.Option("--markdown", help="Write Markdown for a pull request here.", metavar="FILE")
    ] = None,
    json: o.Json = False,
) -> None:
    """Check a run against rules. Exit code 0: all met; 1: not; 2: bad input."""
    result = gate(runs, read_rules(rules), baseline or None)
    for path, text in ((junit_file, junit), (markdown_file, markdown)):
        if path is not None:
            _write(path, text(result))
    if json:
        print_json(result.to_json())
    else:
        _show(result)
    if not result.passed:
        raise typer.Exit(1)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} can't be written ({error.strerror or error}): choose another file.") from None


def _show(result: GateResult) -> None:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name, side in (("rule", "left"), ("verdict", "left"), ("estimate", "right"), ("interval", "left")):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    table.add_column("rests on")
    for one in result.outcomes:
        word, style = _STYLES[one.verdict]
        m = one.measured
        span = "–" if math.isnan(m.low) or math.isnan(m.high) else f"{figure(m.low)} to {figure(m.high)}"
        table.add_row(Text(one.name), Text(word, style=style), figure(m.value), span, Text(m.basis))
    out.print(table)
    for one in result.outcomes:
        if one.verdict != "met":
            out.print(Text(f"{one.name}: {one.why}"))
    for note in result.notes:
        say(note)
    missed = sum(one.verdict != "met" for one in result.outcomes)
    told = (
        f"All {len(result.outcomes)} rules are met." if not missed else f"{missed} of {len(result.outcomes)} not met."
    )
    out.print(Text(f"\nGate {'passed' if result.passed else 'not passed'}: {told}", style="bold"))
