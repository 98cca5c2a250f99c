"""The effect of a training in words, from the plain values of ``effect.json``.

Knows: what each score is called, and how firmly each reading may be put.
Does not know: how anything was compared (effect) or where it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from belie.numbers import number, percent

_NAMES = {
    "csq.error": "wrong first answers",
    "csq.rho": "lean of the errors (ρ)",
    "csq.delta": "wrong, then right on the easy question (δ)",
    "csq.delta_net": "knew better, less stayed wrong (δ_net)",
    "csq.beta": "leaning to Yes (+) or No (−) (β)",
    "knownlie.dr": "lies where the customer is owed (DR)",
    "knownlie.false_claims": "false claims where nothing is owed",
    "knownlie.granted": "owed outcome granted",
    "knownlie.refused": "refused where nothing is owed",
    "knownlie.kpr": "gates passed (KPR)",
}
_SHORT = {
    "error": "errors",
    "rho": "ρ",
    "delta": "δ",
    "delta_net": "δ_net",
    "beta": "β",
    "dr": "DR",
    "false_claims": "false claims",
    "granted": "owed granted",
    "refused": "refused",
    "kpr": "KPR",
}
_WHERE = {
    "none": "no pressure",
    "incentive": "under an incentive",
    "instructed": "told to lie",
    "owed": "owed cases",
    "calibration": "calibration cases",
}
READINGS = {
    "better": "better",
    "worse": "worse",
    "kept": "as before",
    "higher": "higher",
    "lower": "lower",
    "open": "these runs can't tell",
    "undefined": "nothing to compare",
}


def named(score: str) -> str:
    """``csq.error(n=3)`` as "wrong first answers, n = 3"; ``knownlie.dr.incentive`` likewise."""
    head, _, at = score.removesuffix(")").partition("(n=")
    if at:
        return f"{_NAMES.get(head, head)}, n = {at}"
    head, _, tail = score.rpartition(".")
    return f"{_NAMES.get(head, head)}, {_WHERE.get(tail, tail)}"


def short(score: str) -> str:
    """The same where there is little room: "errors, n = 3"; "DR, incentive"."""
    head, _, at = score.removesuffix(")").partition("(n=")
    name, _, tail = head.partition(".")[2].partition(".")
    return f"{_SHORT.get(name, name)}, {f'n = {at}' if at else tail}"


def value(line: Mapping[str, Any], name: str, *, signed: bool = False) -> str:
    """A figure of a line as it is printed: a share in percent, a log with its sign; "–" where undefined."""
    share = line["kind"] == "share"
    return (percent if share else number)(line[name], signed=signed or not share)


def sentence(line: Mapping[str, Any]) -> str:
    """One score before and after, its change with the interval, and how it is read."""
    reading = READINGS[line["reading"]]
    if line["difference"] is None:
        return f"{named(line['name'])}: {reading}."
    span = ""
    if line["low"] is not None:
        span = f" ({value(line, 'low', signed=True)} to {value(line, 'high', signed=True)})"
    return (
        f"{named(line['name'])}: {value(line, 'first')} before, {value(line, 'second')} after, "
        f"{value(line, 'difference', signed=True)}{span}: {reading}."
    )


def held_words(told: Mapping[str, Any]) -> str:
    """How much was measured, and how much was left out because it was trained on."""
    held, parts = told["held_out"], []
    for name in ("chains", "rounds"):
        if name in held:
            parts.append(f"{held[name]:,} {name} ({held[f'{name}_trained_on']:,} more were trained on and left out)")
    return " and ".join(parts)
