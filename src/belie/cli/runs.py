"""``belie runs``: what runs there are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from belie.cli import options as o
from belie.cli.output import out, print_json, say
from belie.runs import RunFolder, list_runs
from belie.runs.listing import ROOT, RunSummary

EPILOG = "Example:  belie runs"
_STYLES = {"complete": "green", "running": "cyan", "unreadable": "red"}


def runs(
    root: Annotated[Path, typer.Argument(help="Where the runs are.")] = ROOT,
    json: o.Json = False,
) -> None:
    """List the runs with their status, oldest first."""
    found = list_runs(root)
    if not found and (root / "manifest.json").exists():
        found = [run for run in list_runs(root.resolve().parent) if run.path.resolve() == root.resolve()]
    if json:
        print_json([_row(run) for run in found])
        return
    if not found:
        say(f"There are no runs in {root}. Make one:  belie audit local/smollm2-135m")
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("run", "instrument", "respondent", "status", "created (UTC)", "counts"):
        table.add_column(name, overflow="fold")
    for run in found:
        style = _STYLES.get(run.status, "yellow")
        what = run.problem or _counts(run)
        created = run.created.replace("T", " ").removesuffix("+00:00")
        table.add_row(
            Text(run.name), run.instrument, Text(run.respondent), Text(run.status, style=style), created, Text(what)
        )
    out.print(table)
    for run in found:
        if run.status in ("interrupted", "incomplete"):
            say(f"{run.path} is {run.status}: continue it with the same command and --resume {run.path}")


def _counts(run: RunSummary) -> str:
    counts = run.counts or _journal_counts(run)
    return ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in counts.items() if isinstance(value, int))


def _journal_counts(run: RunSummary) -> dict[str, int]:
    """What an unfinished run holds so far; its manifest does not tell yet."""
    if run.instrument != "csq" or run.problem:
        return {}
    held = RunFolder.open(run.path).journal.state(skip=True).counts
    return {"first": held.first, "followups": held.followup, "failed": held.missing}


def _row(run: RunSummary) -> dict[str, Any]:
    return {
        "run": run.name,
        "path": str(run.path),
        "instrument": run.instrument,
        "respondent": run.respondent,
        "status": run.status,
        "created": run.created,
        "counts": dict(run.counts),
        "problem": run.problem,
    }
