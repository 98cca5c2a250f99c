"""What an experiment found, in sentences for the terminal and the page.

Knows: the scores' signs and names, what stands after Holm and what does not.
Does not know: how a figure was computed, or where the sentence is shown.
"""

from __future__ import annotations

import math

from belie.csq.experiments.agreement import Agreement
from belie.csq.experiments.analysis import Outcome
from belie.csq.experiments.phrasing import Components
from belie.csq.experiments.shifts import Shift, Shifts
from belie.csq.modes import Margins
from belie.numbers import number, percent

#: The signs of the scores over all n.
SIGNS = {"rho": "ρ̄", "delta": "δ̄", "delta_net": "δ̄_net", "beta": "β̄", "error": "error"}
#: The chance of a false alarm that is accepted.
ALPHA = 0.05
#: Inside these a score counts as none (METHOD §1.5).
MARGINS = {"rho": Margins().rho, "delta_net": Margins().delta_net}
MEASURES = {"wrong": "a first answer being wrong", "yes": "leaning to Yes"}


def findings(outcome: Outcome) -> list[str]:
    """What stands, a sentence each; one that says so where nothing does."""
    told = outcome.told
    if isinstance(told, Shifts):
        return _shifts(told)
    if isinstance(told, Agreement):
        return _agreement(told)
    return _components(told)


def shifted(one: Shift) -> str:
    """A shift with its interval: ``+0.120 [+0.050, +0.190]``."""
    text = number(one.value, signed=True)
    if math.isnan(one.low):
        return text
    return f"{text} [{number(one.low, signed=True)}, {number(one.high, signed=True)}]"


def p_value(p: float) -> str:
    """``< 0.001`` or three digits."""
    return "< 0.001" if p < 0.001 else number(p)


def _shifts(told: Shifts) -> list[str]:
    first = told.conditions[0]
    said = []
    for name in told.conditions[1:]:
        standing = [one for one in told.overall if one.condition == name and one.p_holm <= ALPHA]
        if standing:
            moves = ", ".join(
                f"{SIGNS[one.score]} {shifted(one)} (p {p_value(one.p_holm)}{_small(one)})" for one in standing
            )
            said.append(f"{name} against {first}: {moves}.")
    if not said:
        return [
            f"Nothing differs from {first} after Holm's correction for {told.comparisons} looks; "
            "the intervals say how much could still be there."
        ]
    return said


def _small(one: Shift) -> str:
    """Said of a shift that is sure and yet inside METHOD's equivalence margin (§1.5)."""
    margin = MARGINS.get(one.score)
    inside = margin is not None and -margin <= one.low and one.high <= margin
    return f"; less than the ±{margin:g} that counts as none" if inside else ""


def _near(told: Agreement, score: str) -> str:
    """The same of worlds that differ and yet all lie inside that margin of their mean."""
    margin = MARGINS.get(score)
    mean = told.summaries[score].value
    if margin is None or any(abs(told.figures[world][score].value - mean) > margin for world in told.worlds):
        return ""
    return f", but none is farther than {margin:g} from the mean"


def _agreement(told: Agreement) -> list[str]:
    said = []
    for score, one in told.summaries.items():
        sign, p = SIGNS[score], told.p_holm[score]
        if math.isnan(p):
            said.append(f"{sign}: not known in every world.")
            continue
        value, low, high = (number(each, signed=score in MARGINS) for each in (one.value, one.low, one.high))
        mean = f"{sign} over the worlds {value} [{low}, {high}]"
        if p <= ALPHA:
            said.append(
                f"{mean}: the worlds differ (p {p_value(p)}; standard deviation between them {number(one.tau)}, "
                f"{percent(one.i2, 0)} of what is seen between them is more than chance){_near(told, score)}."
            )
        else:
            said.append(f"{mean}: no sign that the worlds differ (p {p_value(p)}).")
    away = [one for one in told.departures if one.departs]
    for world in dict.fromkeys(one.world for one in away):
        parts = ", ".join(f"{SIGNS[one.score]} {number(one.value, signed=True)}" for one in away if one.world == world)
        said.append(f"{world} departs from the mean of the others that do not: {parts}.")
    return said


def _components(told: Components) -> list[str]:
    said = []
    for measure, parts in told.all.items():
        total = sum(one.variance for one in parts if not math.isnan(one.variance))
        if not total > 0:
            said.append(f"{_capital(MEASURES[measure])}: no variance at all.")
            continue
        deviation, low, high = parts[1].deviation
        stands = "phrasing makes a difference" if told.p_holm[measure] <= ALPHA else "no sign that phrasing matters"
        said.append(
            f"{_capital(MEASURES[measure])}: {stands} (p {p_value(told.p_holm[measure])}); from one phrasing to "
            f"another the mean moves by a standard deviation of {percent(deviation)} [{percent(low)}, "
            f"{percent(high)}], {percent(parts[1].share)} of the variance of one answer."
        )
    return said


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
