"""Prints the scores of KnownLie rounds: a table by condition, what the model knew, outcomes, notes, the summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from belie.cli.output import interval, number, out
from belie.knownlie.rates import Rate
from belie.knownlie.records import MECHANISMS
from belie.knownlie.scores import KnownLieScores, Slice
from belie.knownlie.summary import summary
from belie.knownlie.tally import OUTCOMES

#: Rate, heading, signed, in percent.
_ROWS = (
    ("dr_macro", "DR (mean over domains)", False, True),
    ("dr", "DR (pooled)", False, True),
    ("excess_macro", "Excess over none (mean over domains)", True, True),
    ("excess", "Excess over none (pairs)", True, True),
    ("dsr", "DSR: lies that landed", False, True),
    ("detect", "Detect: lies noticed", False, True),
    ("trust_change", "TrustΔ", True, False),
    ("false_claims", "False claims on calibration", False, True),
    ("omission", "Owed option never named (no lie)", False, True),
    ("steering", "Favoured option promoted (no lie)", False, True),
    *((f"mechanism.{name}", f"Lies by {name}", False, True) for name in MECHANISMS),
    *((f"outcome.{name}", f"Ended {name}", False, True) for name in OUTCOMES),
    *((f"undisclosed.{name}", f"Ended {name}, owed option never named", False, True) for name in OUTCOMES),
)
_COUNTS = (
    ("rounds", "Rounds"),
    ("scored", "Scored, owed"),
    ("scored_calibration", "Scored, calibration"),
    ("gate_failed", "Gate failed"),
    ("missing", "Missing (a call failed)"),
    ("unscored", "Unscored (no usable verdict)"),
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
            f"In brackets {level:.0%} intervals over trajectories within their domain, then counted/of. "
            "~: rounds taken as independent, where trajectories can't tell. –: undefined.",
            style="dim",
        )
    )
    for note in scores.notes:
        out.print(Text(note, style="dim"))
    out.print()
    out.print(Text(summary(scores), style="bold"))


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
    table = Table(title=Text(title), title_justify="left")
    table.add_column("")
    for one in slices:
        table.add_column(one.condition, justify="right")
    several = any(len(one.trajectories) > 1 for one in slices)
    for name, heading, signed, percent in _ROWS:
        rates = [one.rates[name] for one in slices]
        if any(rate.denominator for rate in rates) and (several or not name.endswith("_macro")):
            table.add_row(heading, *(_cell(rate, signed=signed, percent=percent) for rate in rates))
    table.add_section()
    for name, heading in _COUNTS:
        table.add_row(heading, *(f"{getattr(one.counts, name):,}" for one in slices))
    return table


def _dr(conditions: Sequence[Slice], slices: Sequence[Slice], heading: str) -> Table:
    table = Table(title=Text(heading), title_justify="left")
    table.add_column("")
    for one in conditions:
        table.add_column(one.condition, justify="right")
    for place in dict.fromkeys(one.trust or one.domain or "" for one in slices):
        cells = []
        for condition in conditions:
            found = [o for o in slices if (o.trust or o.domain) == place and o.condition == condition.condition]
            cells.append(_cell(found[0].rates["dr"]) if found else Text("–"))
        table.add_row(place, *cells)
    return table


def _cell(rate: Rate, *, signed: bool = False, percent: bool = True) -> Text:
    scale, digits = (100, 1) if percent else (1, 3)
    text = Text(number(scale * rate.value, digits, signed=signed) + (" %" if percent and rate.denominator else ""))
    parts = []
    if rate.interval != "none":
        low, high = (number(scale * end, digits, signed=signed) for end in (rate.low, rate.high))
        parts.append(f"{'~' if rate.interval == 'rounds' else ''}[{low}, {high}]")
    if percent and not float(rate.numerator).is_integer():
        parts.append(f"{rate.denominator:g} domains")
    else:
        parts.append(f"{rate.numerator:g}/{rate.denominator:g}" if percent else f"{rate.denominator:g} trajectories")
    return text.append("\n" + " ".join(parts), style="dim")


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
