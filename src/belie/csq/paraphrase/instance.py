"""The small question that a model is shown, and what must still be in it afterwards.

Knows: which chain is shown at which attempt, its names, facts and pairs.
Does not know: how it is asked for, or how a reply is judged.
"""

from __future__ import annotations

from dataclasses import dataclass

from belie.csq.questions import Variant, chain_items, draw_chain
from belie.csq.validation import parse_question
from belie.csq.world import World, load_world

#: Long enough that a sentence pattern shows in the facts (three of them), short enough to be read.
LENGTH = 5


@dataclass(frozen=True, slots=True)
class Instance:
    """One broken chain as asked: both turns, and what they say. ``edges`` in the order in which they are told;
    ``source``: the world's name or path."""

    world: World
    source: str
    first: str
    second: str
    pair: tuple[str, str]
    easy: tuple[str, str]
    edges: tuple[tuple[str, str], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that the first turn holds, each once."""
        return tuple(dict.fromkeys([*self.pair, *(name for edge in self.edges for name in edge)]))


def draw_instance(world: str, seed: int, attempt: int, phrasing: int | None = None) -> Instance:
    """The instance of one attempt, in each of the world's phrasings in turn (or in ``phrasing``).

    ``world``: a shipped name or a path. The same arguments give the same instance.
    """
    loaded = load_world(world)
    variant = Variant(world, phrasing=attempt % len(loaded.phrasings) if phrasing is None else phrasing)
    item = next(item for item in chain_items(variant, LENGTH, seed, attempt) if item.category == "broken")
    assert item.followup is not None
    number = draw_chain(variant, LENGTH, seed, attempt).phrasing
    hard = parse_question(loaded, number, item.question)
    easy = parse_question(loaded, number, item.followup)
    return Instance(loaded, world, item.question, item.followup, hard.pair, easy.pair, hard.edges)
