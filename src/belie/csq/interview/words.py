"""What an interview came to, in sentences.

Knows: what each figure shows and does not show.
Does not know: how it was counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from belie.numbers import number, percent

#: Below so many usable replies nothing is said of calibration.
FEW = 20


def calibrated(title: str, one: Mapping[str, Any]) -> str:
    """The confidence told on one kind of answer; ``one`` as `belie.csq.interview.results` gives it."""
    basis = f"{one['usable']:,} usable of {one['answered']:,} replies"
    if one["usable"] < FEW:
        return f"Confidence {title}: {basis}, too few to say anything."
    told = (
        f"Confidence {title} ({basis}): ECE {number(one['ece']['value'])}, Brier {number(one['brier']['value'])} "
        f"(telling the share of right answers, {percent(one['share_right'])}, each time: "
        f"{number(one['brier_constant'])})"
    )
    if one["auroc"] is None:
        return told + "; its answers were all right or all wrong, so telling them apart can't be measured."
    return told + f"; it tells right from wrong answers with AUROC {number(one['auroc'])} (0.5: not at all)."


def confronted(one: Mapping[str, Any]) -> str:
    """The outcomes of confrontations."""
    if not one["contradictions"]:
        return "There was no contradiction to confront it with."
    rates = one["rates"]

    def said(name: str) -> str:
        rate = rates[name]
        if not rate["of"]:
            return f"– (0 of {rate['of']})"
        ends = f"{percent(rate['low'])} to {percent(rate['high'])}"
        return f"{percent(rate['value'])} ({rate['count']} of {rate['of']}; {ends})"

    return (
        f"Shown {one['contradictions']:,} contradictions of its own: it corrected itself in {said('correction')}, "
        f"stayed with the wrong first answer in {said('doubling')}, gave no clear answer in {said('unusable')}. It "
        f"denied having said so, or that there is a contradiction, in {said('denial')}; {said('unclear')} of the "
        "replies were not clear either way."
    )


def looked_back(made: Mapping[str, Any]) -> str:
    """How the confidence in wrong first answers moved over the follow-up."""
    parts = []
    for kind, name in (("contradiction", "right"), ("error", "wrong again")):
        one = made[kind]
        if one["count"] < FEW:
            parts.append(f"after a follow-up answered {name} only {one['count']} have both numbers, too few")
            continue
        change = one["change"]
        ends = "" if change["low"] is None else f", {number(change['low'], 1)} to {number(change['high'], 1)}"
        parts.append(
            f"after a follow-up answered {name} it moved from {number(one['before'], 1)} to {number(one['after'], 1)} "
            f"({number(change['value'], 1, signed=True)}{ends}; {one['count']} answers)"
        )
    return f"Confidence in wrong first answers, asked for twice: {'; '.join(parts)}."
