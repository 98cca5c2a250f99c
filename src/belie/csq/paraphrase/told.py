"""The facts of a reply, read back to a graph, and the one sentence they are all made of.

Knows: names in lines, sentence templates, and which way round a sentence tells an edge.
Does not know: rules and questions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from belie.csq.paraphrase.fault import Fault
from belie.csq.paraphrase.instance import Instance
from belie.csq.paraphrase.lexicon import found, lexicon, of_world, unknown
from belie.csq.world import World

_NAME = re.compile(r"\b[A-Z][a-z]+ [A-Z][a-z]+\b")


def mentions(text: str, names: Sequence[str]) -> list[tuple[int, str]]:
    """Where the given names stand in a text, in order: (position, name)."""
    hits = [(match.start(), name) for name in names for match in re.finditer(rf"\b{re.escape(name)}\b", text)]
    return sorted(hits)


def strange_names(text: str, instance: Instance) -> str | None:
    """Part of a name that is none of the instance's: another name, or half of one; None where there is none."""
    rest = text
    for name in instance.names:
        rest = re.sub(rf"\b{re.escape(name)}\b", "·", rest)
    entities = instance.world.entities
    parts = {part.lower() for part in (*entities.first, *entities.second)}
    for word in re.findall(r"[A-Za-z]+", rest):
        if word.lower() in parts and word[0].isupper():
            return word
    pair = _NAME.search(re.sub(r"(^|[.:?!\"] )[A-Z]", lambda m: m[0].lower(), rest))
    return pair[0] if pair else None


def orientation(template: str, world: World) -> str | None:
    """Which way a sentence tells an edge: "forward" (first name → second), "backward", None (both ways, or unclear).

    ``template`` holds the first and the second name as ``{1}`` and ``{2}``.
    """
    known, text, words = lexicon().direction, template.lower(), of_world(world)
    if found(known.both, text):
        return None
    if found(known.passive, text):
        return "backward"
    if found(known.by, text):
        return None
    if (
        found(known.from_, text)
        and not re.search(r"\bfrom \{1\}", text)
        and (words is None or words.from_is == "source")
    ):
        return None if words is None else "backward"
    return "forward" if found(known.forward, text) else None


def split_pair(text: str, instance: Instance) -> tuple[str, str, str]:
    """A sentence about two names: (first name, second name, the sentence with ``{1}`` and ``{2}``).

    Raises ``Fault`` (names) where it does not hold two given names, once each, and no other.
    """
    strange = strange_names(text, instance)
    if strange:
        raise Fault("names", f"{strange!r} in: {text}")
    hits = mentions(text, instance.names)
    if len(hits) != 2 or hits[0][1] == hits[1][1]:
        raise Fault("names", f"{len(hits)} names where two are wanted: {text}")
    (at, one), (_, two) = hits
    template = text[:at] + text[at:].replace(one, "{1}", 1).replace(two, "{2}", 1)
    return one, two, template


def read_facts(lines: Sequence[str], instance: Instance) -> str:
    """The template (slots ``{a}``, ``{b}``) of which all facts are made, once they are proven to be the same graph.

    Raises ``Fault``: hint, names, merged_facts, dropped_fact, added_fact, direction, fact_changed, template.
    """
    told: list[tuple[str, str]] = []
    templates: list[str] = []
    for line in lines:
        hits = mentions(line, instance.names)
        if len(hits) > 2:
            raise Fault("merged_facts", line)
        strange = strange_names(line, instance)
        if not hits and not strange:
            raise Fault("hint", f"a line without names among the facts: {line}")
        one, two, template = split_pair(line, instance)
        told.append((one, two))
        templates.append(template)
    meant = {frozenset(edge) for edge in instance.edges}
    given = [frozenset(pair) for pair in told]
    extra = [pair for pair, edge in zip(told, given, strict=True) if edge not in meant]
    if len(given) > len(set(given)):
        raise Fault("added_fact", "a fact is told twice")
    if extra:
        raise Fault("added_fact", f"no fact joins {' and '.join(extra[0])}")
    if len(given) < len(meant):
        raise Fault("dropped_fact", f"{len(given)} facts of {len(meant)}")
    ways = {"forward" if pair in instance.edges else "backward" for pair in told}
    _refuse_changed(templates, instance)
    for pair, template in zip(told, templates, strict=True):
        way = orientation(template, instance.world)
        if way is None:
            raise Fault("direction", f"told without a clear direction: {template}")
        if way != ("forward" if pair in instance.edges else "backward"):
            raise Fault("direction", f"turned round: {template} ({' / '.join(pair)})")
    if len(set(templates)) > 1:
        raise Fault("template", f"{templates[0]} / {next(other for other in templates if other != templates[0])}")
    slots = ("{a}", "{b}") if ways == {"forward"} else ("{b}", "{a}")
    return templates[0].replace("{1}", slots[0]).replace("{2}", slots[1])


def _refuse_changed(templates: Sequence[str], instance: Instance) -> None:
    known = lexicon()
    for template in templates:
        text = template.lower()
        fault = found(known.negation, text) or found(known.hedges, text)
        if fault:
            raise Fault("fact_changed", f"{fault!r} in: {template}")
        hint = found(known.hints, text)
        if hint:
            raise Fault("hint", f"{hint!r} in: {template}")
        odd = unknown(template.replace("{1}", " ").replace("{2}", " "), instance.world, "fact")
        if odd:
            raise Fault("fact_changed", f"the checker does not know {odd[0]!r} in: {template}")
        world = of_world(instance.world)
        if world is not None and not found(world.fact, text):
            raise Fault("fact_changed", f"does not say that one can: {template}")
