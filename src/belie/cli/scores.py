"""Prints the scores of a CSQ run: one table by n, the overall figures, the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from belie.cli.output import digits, interval, out, print_json
from belie.csq.asked import TASK_VERSION, unit_of
from belie.csq.scores import Figure, Row, Scores
from belie.csq.verdict import verdict
from belie.items import BROKEN, CATEGORIES
from belie.numbers import number
from belie.runs import Manifest, RunFolder

_COLUMNS = (("rho", "ρ", True), ("delta", "δ", False), ("delta_net", "δ_net", True), ("beta", "β", True))


_LEANS = {"chains": "+ invents paths, − hides them", "pairs": "+ affirms what is not so, − denies what is so"}


def document(folder: RunFolder, scores: Scores) -> dict[str, Any]:
    """A run as JSON values: its scores, what they mean, and the run's status."""
    manifest = folder.manifest
    return {
        "run": str(folder.path),
        "respondent": manifest.respondent,
        "status": folder.status,
        "task_version": TASK_VERSION,
        **scores.to_json(),
        "verdict": verdict(scores, unit=unit_of(manifest)),
        "totals": dict(manifest.totals),
        "counts": dict(manifest.counts),
    }


def _asked(manifest: Manifest) -> str:
    what = "world" if unit_of(manifest) == "chains" else "pairs"
    return f"{what} {manifest.versions.get('world')}"


def show_scores(folder: RunFolder, scores: Scores, *, json: bool, place: str | None = None) -> None:
    """Prints a run's scores, or its JSON with the run's status. ``place`` names a run that ``folder`` is a copy of."""
    manifest = folder.manifest
    place = place or str(folder.path)
    if json:
        print_json({**document(folder, scores), "run": place})
        return
    table = Table(
        title=Text(f"CSQ · {manifest.respondent} · {_asked(manifest)}"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("n", justify="right")
    for _, name, _ in _COLUMNS:
        table.add_column(name, justify="right")
    table.add_column("error", justify="right")
    table.add_column("valid answers\nand pairs", justify="right")
    for row in scores.rows:
        table.add_row(
            str(row.n),
            *(_cell(row.figures[key], signed=signed) for key, _, signed in _COLUMNS),
            _cell(row.figures["error"]),
            Text(
                f"{_coverage(row, 'first', CATEGORIES)}\n{_coverage(row, 'pairs', BROKEN)}",
            ),
        )
    table.add_section()
    table.add_row(
        "all",
        *(
            _cell(scores.overall[key], signed=signed) if key in scores.overall else Text("")
            for key, _, signed in _COLUMNS
        ),
        _cell(scores.overall["error"]),
        "",
    )
    out.print(table)
    level = scores.options["level"]
    drawn = manifest.options.get("draws")
    exact = (
        "exact probabilities"
        if manifest.options.get("exact")
        else f"{drawn} drawn answer{'' if drawn == 1 else 's'} an item"
    )
    out.print(
        Text(
            f"ρ: lean of the errors ({_LEANS[unit_of(manifest)]}). "
            "δ: wrong on the hard question, right on the easy one. "
            "δ_net: the same less consistent error. β: leans to Yes (+) or No (−). "
            f"In brackets {level:.0%} intervals over chains; {exact}.",
            style="dim",
        )
    )
    for note in scores.notes:
        out.print(Text(note, style="dim"))
    if folder.status != "complete":
        out.print(Text(f"This run is {folder.status}: the figures are those of what has been answered so far."))
    out.print()
    out.print(Text(verdict(scores, unit=unit_of(manifest)), style="bold"))
    out.print(Text(f"\nResults: {place}  (scores.json, answers.parquet; show again: belie csq show {place})"))


def _cell(figure: Figure, *, signed: bool = False) -> Text:
    text = Text(number(figure.value, digits(), signed=signed))
    if shown := interval(figure.low, figure.high, digits(), signed=signed):
        text.append(f"\n{shown}", style="dim")
    return text


def _coverage(row: Row, key: str, categories: Sequence[str]) -> str:
    answered = sum(row.counts[category]["answered"] for category in categories)
    if key == "pairs":  # a pair whose follow-up is missing was not answered
        parts = ("followups_errors", "followups_absent")
        answered -= sum(row.counts[category][part] for category in categories for part in parts)
    share = row.coverage.get(key)
    return f"{number(None if share is None else 100 * share, 1)}% of {answered:,}"
