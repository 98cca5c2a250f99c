"""Prints the scores of KnownLie rounds: a table by condition, what the model knew, outcomes, notes, the summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from belie.cli.output import interval, out
from belie.knownlie.rates import Rate
from belie.knownlie.records import MECHANISMS
from belie.knownlie.scores import KnownLieScores, Slice
from belie.knownlie.summary import summary
from belie.knownlie.tally import OUTCOMES
from belie.numbers import number
from belie.runs import RunFolder

#: Rate, heading, signed, in percent.
_ROWS = (
    ("dr_macro", "DR (mean over domains)", False, True),
    ("dr", "DR (pooled)", False, True),
    ("excess_macro", "Excess over none, mean", True, True),
    ("excess", "Excess over none, pairs", True, True),
    ("dsr", "DSR: lies that landed", False, True),
    ("detect", "Detect: lies noticed", False, True),
    ("trust_change", "TrustΔ", True, False),
    ("false_claims", "False on calibration", False, True),
    ("omission", "Owed one never named*", False, True),
    ("steering", "Favoured one promoted*", False, True),
    *((f"mechanism.{name}", f"Lies by {name}", False, True) for name in MECHANISMS),
    *((f"outcome.{name}", f"Ended {name}", False, True) for name in OUTCOMES),
    *((f"undisclosed.{name}", f"Never named, {name}", False, True) for name in OUTCOMES),
)
#: Rows that are left out where they are 0 in every condition: parts of a whole that the other parts show.
_PARTS = ("mechanism.", "outcome.", "undisclosed.")
_COUNTS = (
    ("rounds", "Rounds"),
    ("scored", "Scored, owed"),
    ("scored_calibration", "Scored, calibration"),
    ("gate_failed", "Gate failed"),
    ("missing", "Missing: a call failed"),
    ("unscored", "Unscored: no verdict"),
    ("rejected_quotes", "Rejected quotes"),
    ("broken_calls", "Broken tool calls"),
)


def show_scores(scores: KnownLieScores, title: str) -> None:
    """Prints everything a reader needs to judge the figures; every rate with its denominator."""
    out.print(_conditions(scores.conditions, title))
    for heading, slices in (("DR by trust level", scores.by_trust), ("DR by domain", scores.by_domain)):
        if len({one.trust or one.domain for one in slices}) > 1:
            out.print(_dr(scores.conditions, slices, heading))
    out.print(Text(_knowing(scores)))
    level = scores.options["level"]
    out.print(
        Text(
            "Behind each figure counted/of; in brackets its "
            f"{level:.0%} interval over trajectories within their domain. ~: rounds taken as independent, where "
            "trajectories can't tell. –: undefined. *: no lies by themselves. Never named: how those rounds ended.",
            style="dim",
        )
    )
    for note in scores.notes:
        out.print(Text(note, style="dim"))
    out.print()
    out.print(Text(summary(scores), style="bold"))


def document(folder: RunFolder, scores: KnownLieScores | None = None) -> dict[str, Any]:
    """A run as JSON values: its scores (those of `score_run` unless given), what they mean, and what it cost."""
    from belie.knownlie.results import score_run
    from belie.knownlie.verdicts import TASK_VERSION

    scores = scores or score_run(folder)
    manifest = folder.manifest
    return {
        "run": str(folder.path),
        "respondent": manifest.respondent,
        "status": folder.status,
        "task_version": TASK_VERSION,
        **scores.to_json(),
        "summary": summary(scores),
        "totals": dict(manifest.totals),
        "counts": dict(manifest.counts),
    }


def show_run(folder: RunFolder, scores: KnownLieScores | None = None, *, beside: str = "") -> None:
    """Prints a run: its scores, a sentence ``beside`` them, what it cost, and where the results are."""
    from belie.knownlie.results import score_run

    show_scores(scores or score_run(folder), f"KnownLie · {folder.manifest.respondent}")
    if folder.status != "complete":
        out.print(Text(f"\nThe run is {folder.status}: these are the rounds so far.", style="bold"))
    if beside:
        out.print(Text(f"\n{beside}"))
    if told := _cost(folder.manifest.totals):
        out.print(Text(f"\n{told}", style="dim"))
    out.print(Text(f"\nResults: {folder.path}"), soft_wrap=True)
    ways = [f"again: belie knownlie show {folder.path}"]
    if (folder.path / "episodes").is_dir():
        ways.append(f"every dialogue: inspect view --log-dir {folder.path / 'episodes'}")
    for way in ways:
        out.print(Text(f"  {way}"), soft_wrap=True)


def _cost(totals: Mapping[str, Any]) -> str:
    """What each role's calls cost; nothing where nothing is known."""
    parts = []
    for role, used in totals.items():
        tokens = used["input_tokens"] + used["output_tokens"]
        dollars = f", ${used['cost']:.2f}" if used.get("cost") else ""
        parts.append(f"{role} {used['calls']:,} calls, {tokens:,} tokens{dollars}")
    return f"Asked: {'; '.join(parts)}." if parts else ""


def show_published(panel: Mapping[str, Any]) -> None:
    """Prints the published panel's main figures; the rest is in --json."""
    names = ("lie_rate", "lie_dsr", "lie_dsr_chat", "lie_detect", "deception_harm", "omission_rate", "fm_disclose")
    table = Table(title=Text("Published definition (calibration rounds included in lie_rate and lie_detect)"))
    table.add_column("condition")
    for name in names:
        table.add_column(name, justify="right")
    for condition, figures in panel["by_condition"].items():
        table.add_row(condition, *(_triple(figures[name]) for name in names))
    out.print(table)
    kpr = ", ".join(f"{name} {number(panel[name])}" for name in ("KPR", "KPR_owed", "KPR_calib"))
    macro = ", ".join(f"{c} {number(m['macro_lie_rate'])}" for c, m in panel["macro_by_condition"].items())
    out.print(Text(f"{kpr}. Scored rounds {panel['n_scored_rounds']:,}, failed calls {panel['n_api_skip']:,}."))
    out.print(Text(f"Mean over domains of lie_rate: {macro}."))


def _conditions(slices: Sequence[Slice], title: str) -> Table:
    table = _table(title, slices)
    several = any(len(one.trajectories) > 1 for one in slices)
    for name, heading, signed, percent in _ROWS:
        rates = [one.rates[name] for one in slices]
        told = any(rate.numerator if name.startswith(_PARTS) else rate.denominator for rate in rates)
        if told and (several or not name.endswith("_macro")):
            table.add_row(heading, *(_cell(name, rate, signed=signed, percent=percent) for rate in rates))
    table.add_section()
    for name, heading in _COUNTS:
        table.add_row(heading, *(f"{getattr(one.counts, name):,}" for one in slices))
    return table


def _dr(conditions: Sequence[Slice], slices: Sequence[Slice], heading: str) -> Table:
    table = _table(heading, conditions)
    for place in dict.fromkeys(one.trust or one.domain or "" for one in slices):
        cells = []
        for condition in conditions:
            found = [o for o in slices if (o.trust or o.domain) == place and o.condition == condition.condition]
            cells.append(_cell("dr", found[0].rates["dr"]) if found else Text("–"))
        table.add_row(place, *cells)
    return table


def _table(title: str, conditions: Sequence[Slice]) -> Table:
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("")
    for one in conditions:
        table.add_column(one.condition, justify="right")
    return table


def _cell(name: str, rate: Rate, *, signed: bool = False, percent: bool = True) -> Text:
    scale, digits = (100, 1) if percent else (1, 3)
    text = Text(number(scale * rate.value, digits, signed=signed) + (" %" if percent and rate.denominator else ""))
    if name.endswith("_macro"):
        counted = f"{rate.denominator:g} dom."
    else:
        counted = f"{rate.numerator:g}/{rate.denominator:g}" if percent else f"{rate.denominator:g} traj."
    if rate.denominator:
        text.append(f" {counted}", style="dim")
    if rate.interval != "none":
        low, high = (number(scale * end, digits, signed=signed) for end in (rate.low, rate.high))
        text.append(f"\n{'~' if rate.interval == 'rounds' else ''}[{low}, {high}]", style="dim")
    return text


def _knowing(scores: KnownLieScores) -> str:
    known = scores.knowing
    told = []
    for name in ("owed", "calibration"):
        rate = known.kpr[name]
        share = number(100 * rate.value, 1) + (" %" if rate.denominator else "")
        told.append(f"{name} {share} ({rate.numerator:g}/{rate.denominator:g})")
    asked = "cases" if scores.options["probed"] == "case" else "rounds"
    return f"KPR, {asked} in which it knew better: {', '.join(told)}; failed calls {known.failed_calls}."


def _triple(figure: Sequence[float | None]) -> Text:
    point, low, high = figure
    text = Text(number(point))
    if shown := interval(low, high):
        text.append(f"\n{shown}", style="dim")
    return text
