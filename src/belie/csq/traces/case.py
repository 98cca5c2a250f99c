"""One question as a trace is read against it: the facts, what follows from them, the pair asked about.

Knows: how they are read from an item's text, whatever prefix or instruction it has.
Does not know: any trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from belie.csq.world import World, load_world
from belie.items import Item, Step

Pair = tuple[str, str]


@dataclass(frozen=True)
class Case:
    """One question as a trace is read against it: ``facts`` as told, the pair ``asked`` about, in ``world``."""

    world: str
    facts: tuple[Pair, ...]
    asked: Pair
    asks_can: bool

    @cached_property
    def entities(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for pair in (*self.facts, self.asked) for name in pair))

    @cached_property
    def reach(self) -> dict[str, frozenset[str]]:
        """All that each entity leads to, itself left out."""
        following: dict[str, list[str]] = {}
        for a, b in self.facts:
            following.setdefault(a, []).append(b)
        found = {}
        for entity in self.entities:
            seen: set[str] = set()
            todo = [entity]
            while todo:
                for one in following.get(todo.pop(), ()):
                    if one not in seen:
                        seen.add(one)
                        todo.append(one)
            found[entity] = frozenset(seen)
        return found

    def follows(self, pair: Pair) -> bool:
        """Whether the facts give that the first leads to the second."""
        return pair[1] in self.reach.get(pair[0], ())

    def bridges(self, pair: Pair) -> bool:
        """Whether this edge, if it were one, would join the pair asked about."""
        (start, goal), (a, b) = self.asked, pair
        return (a == start or self.follows((start, a))) and (b == goal or self.follows((b, goal)))


def case_of(item: Item, step: Step = "first", world: str | None = None) -> Case:
    """The case of an item's hard question, or of its follow-up (the same facts, another pair).

    Reads the item's text, whatever prefix or instruction it has. ``world``: the file where the world is not one that
    ships. Raises ValueError for a text that the world's sentences do not make.
    """
    loaded, name = _world_of(item.id, world)
    lines = item.question.split("\n")
    for wording, (fact, question) in zip(loaded.phrasings, loaded.readers, strict=True):
        if wording.facts_heading not in lines:
            continue
        start = lines.index(wording.facts_heading) + 1
        told = []
        for line in lines[start:]:
            match = fact.fullmatch(line)
            if match is None:
                break
            told.append((match["a"], match["b"]))
        asked = [found for line in lines[: start - 1] for found in [question.search(line)] if found]
        if step == "followup":
            asked = [found for found in [question.search(item.followup or "")] if found]
        if told and asked:
            head = asked[-1]
            return Case(name, tuple(told), (head["a"], head["b"]), head["can"] == loaded.polarity[0])
    raise ValueError(f"{item.id}: the question's text is not one that world {loaded.name} makes")


def _world_of(item_id: str, world: str | None) -> tuple[World, str]:
    name = world or item_id.split("/", 1)[0].split("+", 1)[0].rpartition("-")[0]
    return load_world(name), name
