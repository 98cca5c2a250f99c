"""Every item proves itself: its text is read back, searched as a graph, and must give the stated truth.

Knows: how to read an item's text with its world's sentences (and the treatments'), and breadth-first search.
Does not know: how the text was made. It shares no code with the generator but the sentences themselves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from belie.csq.treatments import line_reader
from belie.csq.world import World


class Wording(NamedTuple):
    """What a turn says that is not its phrasing's: the instruction of its question line, and the line (with its slot)
    that stands before it; None for neither."""

    instruction: str | None = None
    before: str | None = None


#: As the phrasing says it.
PLAIN = Wording()


class Parsed(NamedTuple):
    """What a text says: the pair asked about, whether it asks for "can", and the told edges in order."""

    pair: tuple[str, str]
    asks_can: bool
    edges: tuple[tuple[str, str], ...]


def parse_question(world: World, phrasing: int, text: str, turn: Wording = PLAIN) -> Parsed:
    """Read a first question (or a follow-up: then without edges) back from its text.

    Raises ValueError where the text is not one that this phrasing makes, or the line before it speaks of another pair.
    """
    fact, question = world.readers[phrasing]
    wording = world.phrasings[phrasing]
    lines = text.split("\n")
    claim = None
    if turn.before is not None:
        claim = line_reader(turn.before, world).fullmatch(lines[0])
        if not claim or lines[1:2] != [""]:
            raise ValueError(f"not the line before a question of world {world.name}: {lines[0]!r}")
        lines = lines[2:]
    head = question.match(lines[0])
    if not head or lines[0][head.end() :] != f" {turn.instruction or wording.instruction}":
        raise ValueError(f"not a question line of world {world.name}, phrasing {phrasing}: {lines[0]!r}")
    if turn.before is not None and claim is not None and "{" in turn.before:
        can = world.polarity[0 if "{claim}" in turn.before else 1]
        if (claim["a"], claim["b"], claim["can"]) != (head["a"], head["b"], can):
            raise ValueError(f"the line before the question claims something else: {text!r}")
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


def check_chain(
    world: World,
    phrasing: int,
    question: str,
    followup: str | None,
    truth: bool,
    turns: Sequence[Wording] = (PLAIN, PLAIN),
) -> None:
    """Raises AssertionError if the printed facts do not give ``truth`` for the question and its follow-up (either may
    be the hard one). ``turns``: how each is worded."""
    asked = parse_question(world, phrasing, question, turns[0])
    found = reaches(asked.edges, *asked.pair) == asked.asks_can
    assert found == truth, f"the printed facts give {found}, the item states {truth}: {question}"
    if followup is not None:
        easy = parse_question(world, phrasing, followup, turns[1])
        assert easy.asks_can == asked.asks_can, f"the follow-up changes the polarity: {followup}"
        found = reaches(asked.edges, *easy.pair) == easy.asks_can
        assert found == truth, f"the printed facts give {found} for the follow-up, not {truth}: {followup}"
