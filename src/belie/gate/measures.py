"""What a rule's operand is in a run: the figure, its interval, and whether it rests on enough.

Knows: which figure of the scores a name means, what each rests on, and the least that is asked.
Does not know: how a verdict is reached or shown, or where the scores come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from belie.comparison import Contrast
from belie.csq.scores import Figure, Row, Scores
from belie.gate.grammar import End, Rule
from belie.gate.rules import Minimum
from belie.items import CATEGORIES
from belie.knownlie.rates import Rate
from belie.knownlie.scores import KnownLieScores, Slice

_MACRO = {"dr": "dr_macro", "excess": "excess_macro", "dr_pooled": "dr", "excess_pooled": "excess"}
_OF_LIES = ("dsr", "detect")
_UNKNOWING = ("false_claims", "trust_change")


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure with its interval (nan where it has none). ``basis``: what it rests on, in words. ``thin``: why that is
    not enough, or None."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    basis: str = ""
    thin: str | None = None

    def at(self, end: End) -> float:
        """The number that the rule is about."""
        return {"value": self.value, "lower": self.low, "upper": self.high}[end]


def of_csq(rule: Rule, scores: Scores, least: Minimum) -> Measured:
    """A CSQ score, over all n or at one."""
    name = rule.score.split(".")[1]
    rows = scores.rows
    if "n" in rule.arguments:
        n = int(rule.arguments["n"])
        rows = tuple(row for row in rows if row.n == n)
        if not rows:
            asked = ", ".join(str(row.n) for row in scores.rows)
            return Measured(thin=f"the run asked no chains of n = {n} (it asked n = {asked})")
    if name == "coverage":
        share, asked = _valid_share(rows)
        per_cell = asked / (len(rows) * len(CATEGORIES))
        basis = f"{asked:,} questions asked"
        return _checked(Measured(share, basis=basis), "value", [(per_cell, least.chains, "chains asked at each n")])
    figure: Figure | None = rows[0].figures.get(name) if "n" in rule.arguments else scores.overall.get(name)
    if figure is None:
        return Measured(thin=f"there is no overall {name}")
    chains = min(_chains(row, name) for row in rows)
    share, _ = _valid_share(rows)
    basis = f"{chains:,.0f} chains{'' if len(rows) == 1 else ' at the thinnest n'}, coverage {share:.1%}"
    measured = Measured(figure.value, figure.low, figure.high, basis)
    return _checked(measured, rule.end, [(chains, least.chains, "chains")], [(share, least.coverage, "coverage")])


def of_knownlie(rule: Rule, scores: KnownLieScores, status: str, least: Minimum) -> Measured:
    """A KnownLie score of one condition, KPR, or coverage. A run that was broken off is too thin for any."""
    _, name, *rest = rule.score.split(".")
    if status in ("running", "interrupted"):
        return Measured(thin=f"the run is {status}: finish it with --resume")
    domain = rule.arguments.get("domain")
    if domain is not None and domain not in scores.knowing_by_domain:
        played = ", ".join(scores.knowing_by_domain)
        return Measured(thin=f"the run played no case of the domain {domain} (it played {played})")
    knowing = scores.knowing if domain is None else scores.knowing_by_domain[domain]
    if name == "kpr":
        rate = knowing.kpr[rest[0] if rest else "all"]
        basis = f"{rate.denominator:,.0f} cases probed"
        measured = Measured(rate.value, rate.low, rate.high, basis)
        return _checked(measured, rule.end, [(rate.denominator, least.cases, "cases probed")])
    if name == "coverage":
        slices = [s for s in scores.conditions if not rest or s.condition == rest[0]]
        if domain is not None or "trust" in rule.arguments:
            every = scores.by_domain if domain is not None else scores.by_trust
            slices = [s for s in every if _is(s, rule) and (not rest or s.condition == rest[0])]
        share, rounds = _judged_share(slices)
        return _checked(Measured(share, basis=f"{rounds:,} rounds"), "value", [(rounds, least.rounds, "rounds")])
    every = scores.conditions if not rule.arguments else scores.by_domain if domain is not None else scores.by_trust
    own = next((s for s in every if s.condition == rest[0] and _is(s, rule)), None)
    if own is None:
        where = "".join(f", {key} {value}" for key, value in rule.arguments.items())
        return Measured(thin=f"the run played no round under condition {rest[0]}{where}")
    rate = _rate(own, name)
    counted, unit, asked = _resting(own, name, least)
    share, _ = _judged_share([own])
    known = knowing.kpr["owed"]
    basis = f"{counted:,.0f} {unit}, coverage {share:.1%}"
    shares = [(share, least.coverage, "coverage (rounds with a verdict)")]
    if name not in _UNKNOWING:
        basis += f", KPR {known.value:.1%}"
        shares.append((known.value, least.knowledge, "knowledge-pass rate (KPR on owed cases)"))
    measured = Measured(rate.value, rate.low, rate.high, basis)
    return _checked(measured, rule.end, [(counted, asked, unit)], shares)


def of_contrast(rule: Rule, one: Contrast, coverage: tuple[float, float], knowledge: float, least: Minimum) -> Measured:
    """A paired difference, run − baseline. ``coverage``: of the two runs; ``knowledge``: the lower KPR of the two."""
    name = rule.score.split(".")[1]
    counted = min(one.denominators)
    shares = [(min(coverage), least.coverage, "coverage")]
    if rule.instrument == "csq":
        counts = [(float(one.units), least.chains, "chains shared")]
        basis = f"{one.units:,} chains shared"
    elif name == "kpr":
        counts, shares = [(float(one.units), least.cases, "cases probed in both runs")], []
        basis = f"{one.units:,} cases probed in both"
    else:
        lies = name in _OF_LIES
        unit = "trajectories" if name == "trust_change" else "lies" if lies else "rounds scored in both runs"
        asked = least.trajectories if name == "trust_change" else least.lies if lies else least.rounds
        counts = [(counted, asked, unit), (float(one.units), least.trajectories, "pairs of trajectories")]
        basis = f"{counted:,.0f} {unit}, {one.units:,} pairs of trajectories"
        if name not in _UNKNOWING:
            shares.append((knowledge, least.knowledge, "knowledge-pass rate (KPR on owed cases)"))
    return _checked(Measured(one.difference, one.low, one.high, basis), rule.end, counts, shares)


def csq_coverage(scores: Scores) -> float:
    """Valid answers over questions asked."""
    return _valid_share(scores.rows)[0]


def knownlie_coverage(scores: KnownLieScores) -> float:
    """Rounds with a verdict, or a failed gate, over rounds."""
    return _judged_share(list(scores.conditions))[0]


def _checked(
    measured: Measured,
    end: End,
    counts: list[tuple[float, float, str]],
    shares: list[tuple[float, float, str]] | None = None,
) -> Measured:
    """The same, with the first reason why it is too thin."""
    thin = None
    for have, wanted, what in counts:
        if not have >= wanted:
            thin = f"it rests on {_count(have)} {what}, and {_count(wanted)} are needed"
            break
    else:
        for have, wanted, what in shares or []:
            if not have >= wanted:
                told = "unknown" if math.isnan(have) else f"{have:.1%}"
                thin = f"{what} is {told}, and {wanted:.1%} is needed"
                break
        else:
            if math.isnan(measured.at(end)):
                thin = "the figure is undefined" if end == "value" else f"there is no {end} end of an interval"
    return Measured(measured.value, measured.low, measured.high, measured.basis, thin)


def _count(value: float) -> str:
    return "no" if value == 0 else f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def _valid_share(rows: tuple[Row, ...]) -> tuple[float, int]:
    """Valid first answers over questions that were to be asked, failed and missing ones included; and how many."""
    valid, asked = 0.0, 0
    for row in rows:
        for category in CATEGORIES:
            counts = row.counts[category]
            covered = row.coverage[category]
            valid += 0.0 if math.isnan(covered) else covered * counts["answered"]
            asked += counts["expected"]
    return (valid / asked if asked else math.nan), asked


def _chains(row: Row, name: str) -> float:
    """The chains that a score at one n rests on: of the kind of question, or pair, that has fewest."""
    if name.startswith(("delta", "gamma")):
        return min(row.denominators["pairs_pos"], row.denominators["pairs_neg"])
    return min(row.denominators[category] for category in CATEGORIES)


def _judged_share(slices: list[Slice]) -> tuple[float, int]:
    rounds = sum(s.counts.rounds for s in slices)
    lost = sum(s.counts.missing + s.counts.unscored for s in slices)
    return ((rounds - lost) / rounds if rounds else math.nan), rounds


def _is(one: Slice, rule: Rule) -> bool:
    return one.trust == rule.arguments.get("trust") and one.domain == rule.arguments.get("domain")


def _rate(own: Slice, name: str) -> Rate:
    """``dr`` is the mean over domains; inside one domain that is the rate itself."""
    key = _MACRO.get(name, name)
    return own.rates[key] if key in own.rates else own.rates[name.removesuffix("_pooled")]


def _resting(own: Slice, name: str, least: Minimum) -> tuple[float, str, float]:
    """(how many, of what, how many are needed)."""
    down = own.rates[name.removesuffix("_pooled")].denominator
    if name in _OF_LIES:
        return down, "lies", least.lies
    if name == "trust_change":
        return down, "trajectories", least.trajectories
    if name.startswith("excess"):
        return down, "rounds paired with the control", least.rounds
    return down, "calibration rounds" if name == "false_claims" else "rounds scored", least.rounds
