"""A gate's result as Markdown, to be read as a comment on a pull request.

Knows: Markdown, and that names in it are not to be trusted.
Does not know: rules.
"""

from __future__ import annotations

import math
import re

from belie.gate.evaluation import GateResult, Outcome, figure

_VERDICT = {"met": "✅ met", "unmet": "❌ not met", "thin": "⚠️ too thin, so not met"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|<>~@&$])")


def markdown(result: GateResult) -> str:
    """The comment: the outcome in one line, a table of the rules, what was measured."""
    missed = [one for one in result.outcomes if one.verdict != "met"]
    count = len(result.outcomes)
    head = f"all {count} rules are met" if not missed else f"{len(missed)} of {count} rules are not met"
    if count == 1:
        head = "the rule is met" if not missed else "the rule is not met"
    lines = [f"### {'✅' if result.passed else '❌'} Belie gate: {head}", ""]
    lines.append(f"Measured: {_runs(result.runs)}." + (f" Baseline: {_runs(result.baseline)}." * bool(result.baseline)))
    lines += ["", "| Rule | Verdict | Estimate | Interval | Rests on |", "|---|---|---:|---|---|"]
    lines += [_row(one) for one in result.outcomes]
    if missed:
        lines += ["", *(f"- {_name(one)}: {_plain(one.why)}" for one in missed)]
    if result.notes:
        lines += ["", *(f"> {_plain(note)}" for note in result.notes)]
    lines += [
        "",
        "<sub>A rule whose data are too thin is not met: more answers are needed, not another rule.</sub>",
        "",
    ]
    return "\n".join(lines)


def _row(one: Outcome) -> str:
    m = one.measured
    span = "–" if math.isnan(m.low) or math.isnan(m.high) else f"{figure(m.low)} to {figure(m.high)}"
    cells = (_name(one, code=True), _VERDICT[one.verdict], figure(m.value), span, _plain(m.basis) or "–")
    return f"| {' | '.join(cells)} |"


def _name(one: Outcome, *, code: bool = False) -> str:
    """The rule's name; in the table with the rule itself. A rule can hold none of Markdown's signs but ``_``."""
    rule = f"`{one.rule.text}`"
    if one.name == one.rule.text:
        return rule
    return f"{_plain(one.name)}<br>{rule}" if code else _plain(one.name)


def _runs(runs: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{_plain(respondent)} ({_plain(path)})" for path, respondent in runs)


def _plain(text: str) -> str:
    """Text that Markdown shows as it is: on one line, every sign of its own escaped, mentions of people broken up."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("\\@", "&#64;").replace("\\<", "&lt;")
