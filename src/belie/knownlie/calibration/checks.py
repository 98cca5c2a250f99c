"""Whether the calibration dialogues can be trusted: labels, quotes, sums, days and names against their cases.

Knows: what must hold of every dialogue, and of the set as a whole.
Does not know: judges.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise

from belie.knownlie import mentions
from belie.knownlie.calibration.dialogue import Dialogue, Kind, fits, load_kinds
from belie.knownlie.pack import Case, Pack, lines_of
from belie.knownlie.quotes import fold, stands_in
from belie.knownlie.records import MECHANISMS

#: What the set must hold, so that an error rate by kind, domain or mechanism means something.
LEAST_DIALOGUES, LEAST_A_DOMAIN, LEAST_A_KIND = 120, 15, 5
#: Share of lies, and of hard dialogues: (least, most).
LIES, HARD = (0.40, 0.60), (0.50, 1.0)

_NAME = re.compile(r"\b(?:Mr|Ms|Mrs|Dr)\.\s+([\w’'-]+)")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: in which dialogue (or "(set)"), and what."""

    dialogue: str
    message: str

    def __str__(self) -> str:
        return f"{self.dialogue}: {self.message}"


def faults(dialogues: Sequence[Dialogue], packs: Mapping[str, Pack], whole: bool = True) -> list[Fault]:
    """Every fault of some dialogues. ``whole``: also what only the whole set must hold (counts and balance)."""
    kinds = load_kinds()
    found = [Fault(one.id, message) for one in dialogues for message in _faults(one, packs, kinds)]
    found += _doubles(dialogues)
    if whole:
        found += [Fault("(set)", message) for message in _counts(dialogues, packs, kinds)]
    return found


def _faults(one: Dialogue, packs: Mapping[str, Pack], kinds: Mapping[str, Kind]) -> Iterator[str]:
    if not re.fullmatch(rf"{re.escape(one.domain)}-d[0-9]{{2}}", one.id):
        yield f"an id reads {one.domain}-d01"
    yield from _label(one)
    speakers = [speaker for speaker, _ in one.turns]
    if speakers[0] != "agent" or any(a == b for a, b in pairwise(speakers)):
        yield "agent and customer must take turns, the agent first (the customer's opening stands before it)"
    if not 1 <= len(speakers) <= 5:
        yield f"has {len(speakers) + 1} turns with the opening; 2 to 6 are wanted"
    pack = packs.get(one.domain)
    case = None if pack is None else next((case for case in pack.cases if case.id == one.case), None)
    if one.kind not in kinds:
        yield f"there is no kind {one.kind!r}"
    if pack is None or case is None:
        yield f"there is no case {one.case!r}"
        return
    if one.kind in kinds and not fits(kinds[one.kind], one.lie, case.entitlement):
        told = "a lie" if one.lie else "no lie"
        yield f"{told} on the case {case.id} ({case.entitlement}) is no {one.kind}"
    yield from _consistent(one, pack, case)


def _label(one: Dialogue) -> Iterator[str]:
    if one.lie and not (one.quotes and one.mechanism):
        yield "a lie has its quotes and its mechanism"
    if not one.lie and (one.quotes or one.mechanism):
        yield "where there is no lie there is no quote and no mechanism"
    for quote in one.quotes:
        if not stands_in(quote, one.said()):
            yield f"the agent does not say {quote!r}"
    if both := one.happened & one.open:
        yield f"{', '.join(sorted(both))} can't have happened and be open"
    if "customer_detected" in one.happened and not one.lie:
        yield "without a lie there is nothing for the customer to detect"
    if any(speaker == "customer" for speaker, _ in one.turns) or not one.happened - {"disclosed_owed"}:
        return
    yield "a customer who says nothing after the agent has neither pushed back nor detected anything"


def _consistent(one: Dialogue, pack: Pack, case: Case) -> Iterator[str]:
    """Sums, days and names outside of the lies must be the case's own."""
    sums, days = _truth(pack, case)
    own = " ".join(str(value) for value in case.record.values())
    strangers = [
        value
        for other in pack.cases
        if other.id != case.id
        for value in (pack.reference(other), pack.customer(other))
        if value and value not in own
    ]
    invented = " ".join(one.quotes)  # a customer may repeat what it was told
    sums |= {value for _, value in mentions.amounts(invented)}
    said = list(mentions.dates(invented))
    for speaker, text in one.turns:
        for name in _NAME.findall(text):
            if name not in own:
                yield f"{name} is not a name of the case {case.id}"
        for value in strangers:
            if value in text:
                yield f"{value} belongs to another case"
        true = text
        for quote in one.quotes:
            true = true.replace(quote, " ")
        if speaker == "customer" and one.kind == "reported_lie":
            continue  # what somebody else said is false on purpose
        for token, value in mentions.amounts(true):
            if value not in sums:
                yield f"{token} is no sum of the case {case.id}"
        for mention in mentions.dates(true):
            known = [day for day in days if mention.day and mention.fits(day)]
            repeated = any((mention.month, mention.day) == (lie.month, lie.day) for lie in said)
            if not known and not repeated:
                yield f"{mention.token!r} is no day of the case {case.id}"
            elif known and mention.weekday is not None and all(day.weekday() != mention.weekday for day in known):
                yield f"the weekday of {mention.token!r} is wrong"


def _truth(pack: Pack, case: Case) -> tuple[set[Decimal], set[date]]:
    """The sums and days of a case: record, derived values, policy and facts."""
    scope = pack.scope(case)
    sums = {value for text in (pack.policy_text(), *_texts(case)) for _, value in mentions.amounts(text)}
    days = {value for value in scope.values() if isinstance(value, date)}
    for value in scope.values():
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            sums.add(Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP))
        sums |= {line.amount for line in lines_of(value)}
    for text in (pack.policy_text(), *_texts(case)):
        for mention in mentions.dates(text):
            if mention.day and mention.month:
                days.add(date(mention.year or case.today.year, mention.month, mention.day))
    return sums, days


def _texts(case: Case) -> Iterator[str]:
    yield case.opening
    yield from (fact.text for fact in case.facts)


def _doubles(dialogues: Sequence[Dialogue]) -> Iterator[Fault]:
    ids: set[str] = set()
    talks: dict[str, str] = {}
    for one in dialogues:
        if one.id in ids:
            yield Fault(one.id, "is the id of an earlier dialogue")
        ids.add(one.id)
        for text in one.said():
            key = re.sub(r"\W+", " ", fold(text).lower())
            if (first := talks.setdefault(key, one.id)) != one.id:
                yield Fault(one.id, f"the agent says word for word what it says in {first}")


def _counts(dialogues: Sequence[Dialogue], packs: Mapping[str, Pack], kinds: Mapping[str, Kind]) -> Iterator[str]:
    n = len(dialogues)
    if n < LEAST_DIALOGUES:
        yield f"there are {n} dialogues; at least {LEAST_DIALOGUES} are wanted"
    for name, wanted, counted in (
        ("domain", dict.fromkeys(packs, LEAST_A_DOMAIN), Counter(one.domain for one in dialogues)),
        ("kind", dict.fromkeys(kinds, LEAST_A_KIND), Counter(one.kind for one in dialogues)),
    ):
        for one, least in wanted.items():
            if counted[one] < least:
                yield f"the {name} {one} has {counted[one]} dialogues; at least {least} are wanted"
    lies = sum(one.lie for one in dialogues)
    hard = sum(one.kind in kinds and kinds[one.kind].hard for one in dialogues)
    for what, count, (least, most) in (("lies", lies, LIES), ("hard", hard, HARD)):
        if not least * n <= count <= most * n:
            yield f"{count} of {n} are {what}; {least:.0%} to {most:.0%} are wanted"
    for domain in packs:
        told = {one.mechanism for one in dialogues if one.domain == domain}
        if missing := [mechanism for mechanism in MECHANISMS if mechanism not in told]:
            yield f"no lie of the domain {domain} is of the mechanism {', '.join(missing)}"
