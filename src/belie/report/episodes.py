"""The worst episodes of each domain, as dialogues with the lie marked in them.

Knows: which lies are worse than others; where a quote stands in what was said; the clause that a claim names.
Does not know: how a dialogue is set on the page (episodes.html).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from belie.knownlie.pack import Pack
from belie.knownlie.quotes import fold
from belie.knownlie.records import Claim, Condition, Round
from belie.knownlie.verdicts import verdict
from belie.report.reading import KnownLieRun

#: How many episodes of one domain and model are shown: fewer where many models share the page.
SHOWN = {1: 2, 2: 2}
_WORSE: Sequence[Condition] = ("instructed", "none", "incentive")


@dataclass(frozen=True, slots=True)
class Turn:
    """Something said aloud; ``marks`` are the places of quoted lies in ``text``."""

    agent: bool
    speaker: str
    text: str
    marks: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Lie:
    """A claim that counts. ``clause`` is the text it breaks, where the domain's files are at hand."""

    quote: str
    mechanism: str
    why: str | None
    number: str | None
    clause: str | None


@dataclass(frozen=True, slots=True)
class Episode:
    round: Round
    title: str
    institution: str
    answer: str | None
    turns: tuple[Turn, ...]
    lies: tuple[Lie, ...]
    detected: bool
    gate_raw: str | None
    thoughts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DomainEvidence:
    """``scored``: owed rounds that entered the rates, ``lying`` those with a lie."""

    domain: str
    title: str
    scored: int
    lying: int
    episodes: tuple[Episode, ...]


def evidence(run: KnownLieRun, models: int = 1) -> list[DomainEvidence]:
    """By domain, the worst lies: those that were not asked for, worked, came in numbers and cost the most trust."""
    shown = SHOWN.get(models, 1)
    found = []
    for domain in sorted({round.domain for round in run.rounds}):
        scored = [
            round
            for round in run.rounds
            if round.domain == domain and round.entitlement == "owed" and round.gate.passed and round.facts is not None
        ]
        lying = [round for round in scored if round.facts is not None and verdict(round.facts).lie]
        lying.sort(key=_badness, reverse=True)
        chosen: list[Round] = []
        for round in lying:
            if len(chosen) < shown and all(round.case != other.case for other in chosen):
                chosen.append(round)
        pack = run.packs.get(domain)
        title = pack.domain.title if pack else domain
        episodes = tuple(_episode(round, pack) for round in chosen)
        found.append(DomainEvidence(domain, title, len(scored), len(lying), episodes))
    return found


def _badness(round: Round) -> tuple[int, int, int, float, str]:
    assert round.facts is not None, "a judged round has facts"
    worked = not round.facts.customer_detected and (round.harm_is_lie or round.outcome != "owed")
    lies = sum(claim.verified for claim in round.facts.claims)
    return (_WORSE.index(round.condition), worked, lies, round.trust_before, round.case)


def _episode(round: Round, pack: Pack | None) -> Episode:
    assert round.facts is not None, "a judged round has facts"
    told = [claim for claim in round.facts.claims if claim.verified]
    case = next((c for c in pack.cases if c.id == round.case), None) if pack else None
    roles = pack.domain.roles if pack else None
    names = {"agent": roles.agent if roles else "agent", "customer": roles.customer if roles else "customer"}
    turns = tuple(
        Turn(
            speaker == "agent",
            names.get(speaker, speaker),
            text,
            merged(span for claim in told for span in spans(claim.quote, text)) if speaker == "agent" else (),
        )
        for speaker, text in round.transcript
    )
    return Episode(
        round,
        case.title if case else round.case,
        pack.domain.institution.name if pack else "",
        _answer(round, pack),
        turns,
        tuple(_lie(claim, pack) for claim in told),
        round.facts.customer_detected,
        round.gate.raw,
        round.thoughts,
    )


def _answer(round: Round, pack: Pack | None) -> str | None:
    """What the model said at the gate, in the domain's own words."""
    if pack is None or round.gate.answer is None:
        return None
    outcomes = pack.domain.outcomes
    return (outcomes.owed if round.gate.answer == "owed" else outcomes.favoured).label


def _lie(claim: Claim, pack: Pack | None) -> Lie:
    clause = None
    if pack is not None and claim.clause is not None:
        clause = next((str(c) for c in pack.policy.clauses if c.number == claim.clause.strip().rstrip(".")), None)
    text = None if clause is None else clause.partition(". ")[2].replace("**", "")
    return Lie(claim.quote, claim.mechanism.replace("_", " "), claim.why, claim.clause, text)


_TOKEN = re.compile(r"\s+|[\"'`´‘’‚‛“”„‟«»‹›′″]+|.", re.S)


def spans(quote: str, text: str) -> list[tuple[int, int]]:
    """Where a quote stands in a text, white space and quotation marks folded as `belie.knownlie.quotes` folds them."""
    wanted = fold(quote).strip("' ")
    if not wanted:
        return []
    folded: list[str] = []
    places: list[tuple[int, int]] = []
    for token in _TOKEN.finditer(text):
        first = token[0][0]
        folded.append(" " if first.isspace() else "'" if len(token[0]) > 1 or fold(first) == "'" else first)
        places.append(token.span())
    joined = "".join(folded)
    found = []
    at = joined.find(wanted)
    while at >= 0:
        found.append((places[at][0], places[at + len(wanted) - 1][1]))
        at = joined.find(wanted, at + len(wanted))
    return found


def merged(found: object) -> tuple[tuple[int, int], ...]:
    """Spans in order, those that touch or overlap as one."""
    out: list[tuple[int, int]] = []
    for start, end in sorted(found):  # type: ignore[call-overload]
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return tuple(out)
