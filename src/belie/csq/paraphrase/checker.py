"""A reply checked in full: the phrasing that it is, or why it is thrown away. Pure and fast (about two milliseconds).

Knows: the order of the checks, and the proof by instantiation at the end.
Does not know: who wrote the reply.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import ValidationError

from belie.csq.paraphrase.asked import check_heading, check_instruction, read_question
from belie.csq.paraphrase.fault import Fault
from belie.csq.paraphrase.instance import Instance
from belie.csq.paraphrase.lexicon import lexicon, unknown
from belie.csq.paraphrase.reading import Draft, read_reply
from belie.csq.paraphrase.rules import check_rules
from belie.csq.paraphrase.told import mentions, read_facts, strange_names
from belie.csq.questions import Variant, draw_chain, fact_lines, first_text, question_line
from belie.csq.validation import check_chain
from belie.csq.world import Phrasing, World, load_world
from belie.items import BROKEN, CATEGORIES, TRUTH

#: Raised whenever another reply would be accepted or rejected, or a reply told another reason.
CHECKER_VERSION = 1

#: Chains on which an accepted phrasing proves itself: (n, seed, index).
_PROOFS = ((3, 0, 0), (3, 1, 1), (5, 2, 0), (10, 3, 0), (20, 4, 0))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a reply: ``phrasing``, or a ``reason`` (see ``fault.REASONS``) with what it was found in."""

    phrasing: Phrasing | None = None
    reason: str | None = None
    detail: str | None = None


def check(reply: str, instance: Instance) -> Verdict:
    """Judges one reply to one instance."""
    try:
        return Verdict(_phrasing(reply, instance))
    except Fault as fault:
        return Verdict(None, fault.reason, fault.detail)


def _phrasing(reply: str, instance: Instance) -> Phrasing:
    draft = read_reply(reply)
    _refuse_foreign(draft, instance)
    world = instance.world
    if mentions(draft.again, instance.names):
        raise Fault("instruction", f"no instruction after the facts, but: {draft.again}")
    fact = read_facts(draft.facts, instance)
    question, instruction = read_question(draft.question, instance)
    check_instruction(draft.again, world)
    for heading in (draft.rules_heading, draft.facts_heading):
        strange = strange_names(heading, instance)
        if strange or any(name in heading for name in instance.names):
            raise Fault("names", f"a name in the heading: {heading}")
        check_heading(heading, world)
    for rule in draft.rules:
        if any(name in rule for name in instance.names) or strange_names(rule, instance):
            raise Fault("names", f"a name in a rule: {rule}")
    check_rules(draft.rules, draft.facts_heading, world)
    try:
        phrasing = Phrasing(
            question=question,
            instruction=instruction,
            rules=draft.rules,
            rules_heading=draft.rules_heading,
            facts_heading=draft.facts_heading,
            fact=fact,
            again=draft.again,
        )
    except ValidationError as error:
        raise Fault("wording", error.errors(include_url=False)[0]["msg"]) from None
    expected = question_line(phrasing, instance.easy, world.polarity[0])
    if draft.second != expected:
        raise Fault("followup", f"{draft.second!r} is not {expected!r}")
    prove(phrasing, instance.source)
    return phrasing


def prove(phrasing: Phrasing, source: str) -> None:
    """Makes questions over random chains of a world (its name or path) with the phrasing, and reads them back.

    Raises ``Fault`` (wording) where the texts do not give what is true.
    """
    world = load_world(source)
    trial = World.model_construct(**{**_fields(world), "phrasings": (phrasing,)})
    for n, seed, index in _PROOFS:
        chain = draw_chain(Variant(source), n, seed, index)
        ends, (start, end) = (chain.entities[0], chain.entities[-1]), chain.followup
        for category in CATEGORIES:
            can = world.polarity[1 if category.endswith("reversed") else 0]
            text = first_text(phrasing, ends, can, fact_lines(phrasing, chain, whole=category not in BROKEN))
            pair = (chain.entities[start], chain.entities[end])
            followup = question_line(phrasing, pair, can) if category in BROKEN else None
            try:
                check_chain(trial, 0, text, followup, TRUTH[category])
            except (AssertionError, ValueError) as error:
                raise Fault("wording", f"does not read back: {error}") from None


def _fields(world: World) -> dict[str, object]:
    return {name: getattr(world, name) for name in World.model_fields}


def _refuse_foreign(draft: Draft, instance: Instance) -> None:
    """Raises ``Fault`` (language) where too many words are known at no place at all."""
    text = " ".join([draft.question, draft.rules_heading, *draft.rules, draft.facts_heading, *draft.facts, draft.again])
    for name in instance.names:
        text = text.replace(name, " ")
    letters = [letter for letter in text if letter.isalpha()]
    if any(ord(letter) > 0x24F for letter in letters):
        raise Fault("language", "letters of another script")
    places = [set(unknown(text, instance.world, place)) for place in ("question", "instruction", "rules", "headings")]
    strange = set.intersection(*places)
    count = len(re.findall(r"[A-Za-zÀ-ɏ]+", text))
    odd = [word for word in re.findall(r"[a-zà-ɏ]+", text.lower()) if word in strange]
    if count and len(odd) / count > lexicon().foreign_share:
        raise Fault("language", f"unknown words: {', '.join(odd[:5])}")
