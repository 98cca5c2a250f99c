"""Every item proves itself: its text is read back, searched as a graph, and must give the stated truth.

Knows: how to read an item's text with its world's sentences, and breadth-first search.
Does not know: how the text was made. It shares no code with the generator but the sentences themselves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from belie.csq.world import World


class Parsed(NamedTuple):
    """What a text says: the pair asked about, whether it asks for "can", and the told edges in order."""

    pair: tuple[str, str]
    asks_can: bool
    edges: tuple[tuple[str, str], ...]


def parse_question(world: World, phrasing: int, text: str) -> Parsed:
    """Read a first question (or a follow-up: then without edges) back from its text.

    Raises ValueError where the text is not one that this phrasing makes.
    """
    fact, question = world.readers[phrasing]
    wording = world.phrasings[phrasing]
    lines = text.split("\n")
    head = question.match(lines[0])
    if not head or lines[0][head.end() :] != f" {wording.instruction}":
        raise ValueError(f"not a question line of world {world.name}, phrasing {phrasing}: {lines[0]!r}")
    edges: list[tuple[str, str]] = []
    if len(lines) > 1:
        start = lines.index(wording.facts_heading) + 1
        for line in lines[start : lines.index("", start)]:
            told = fact.fullmatch(line)
            if not told:
                raise ValueError(f"not a fact of world {world.name}, phrasing {phrasing}: {line!r}")
            edges.append((told["a"], told["b"]))
    return Parsed((head["a"], head["b"]), head["can"] == world.polarity[0], tuple(edges))


def reaches(edges: Iterable[tuple[str, str]], start: str, goal: str) -> bool:
    """Whether a directed path leads from ``start`` to ``goal`` (rules 1 to 3 of METHOD §1.1)."""
    following: dict[str, list[str]] = {}
    for a, b in edges:
        following.setdefault(a, []).append(b)
    seen, queue = {start}, deque([start])
    while queue:
        for entity in following.get(queue.popleft(), ()):
            if entity == goal:
                return True
            if entity not in seen:
                seen.add(entity)
                queue.append(entity)
    return False


def check_chain(world: World, phrasing: int, question: str, followup: str | None, truth: bool) -> None:
    """Raises AssertionError if the printed facts do not give ``truth`` for the question and its follow-up."""
    asked = parse_question(world, phrasing, question)
    found = reaches(asked.edges, *asked.pair) == asked.asks_can
    assert found == truth, f"the printed facts give {found}, the item states {truth}: {question}"
    if followup is not None:
        easy = parse_question(world, phrasing, followup)
        assert easy.asks_can == asked.asks_can, f"the follow-up changes the polarity: {followup}"
        found = reaches(asked.edges, *easy.pair) == easy.asks_can
        assert found == truth, f"the printed facts give {found} for the follow-up, not {truth}: {followup}"
