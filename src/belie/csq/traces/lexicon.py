"""Which words join two entities, and in which direction: some in every world, the others from a world's own sentences.

Knows: how the joining words of a world are found in its fact sentences and question lines.
Does not know: how they stand together (grammar).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from belie.csq.traces.words import WORDS
from belie.csq.world import World, load_world

#: Words of a world's sentences that have another task.
_NEVER = WORDS.empty | WORDS.concluding | WORDS.asking | WORDS.inverting | WORDS.supposing
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|,")


@dataclass(frozen=True, slots=True)
class Template:
    """A fact sentence as its words: before, between and after the two entities. ``turn``: −1 where b stands first."""

    before: tuple[str, ...]
    between: tuple[str, ...]
    after: tuple[str, ...]
    turn: int


class Lexicon:
    """The joining words of one world."""

    def __init__(self, world: World) -> None:
        self.templates = tuple(_template(phrasing.fact) for phrasing in world.phrasings)
        questions = [_template(phrasing.question.replace("{can}", world.polarity[0])) for phrasing in world.phrasings]
        told = {word for one in self.templates for word in (*one.before, *one.between, *one.after)}
        self.supposing, self.far = WORDS.supposing - told, WORDS.far - told
        #: Every word of the world's sentences: none of them is a name.
        self.own = frozenset(told.union(*(one.before + one.between + one.after for one in questions)))
        stems = dict.fromkeys(WORDS.forward, 1) | dict.fromkeys(WORDS.backward, -1)
        for one in (*questions, *self.templates):
            turn = one.turn * (-1 if "by" in one.between else 1)
            heads = [*one.between, *(one.before[-3:] if {"from"} & set(one.before[-1:]) else ())]
            for word in heads:
                if word.isalpha() and word not in _NEVER:
                    stems[_stem(word)] = turn
        # Of a world of comparisons, all comparatives: those of its sentences, their like and their opposites.
        between = {(word, one.turn) for one in (*self.templates, *questions) for word in one.between}
        up = next((turn for word, turn in sorted(between) if word in WORDS.more), 0)
        up = up or -next((turn for word, turn in sorted(between) if word in WORDS.less), 0)
        self._exact = (dict.fromkeys(WORDS.more, up) | dict.fromkeys(WORDS.less, -up)) if up else {}
        #: Words of asking and seeking that join in this world where they follow a name: "A needs B".
        self.seeking = frozenset(word for word, _ in between if word in WORDS.asking)
        self._exact |= dict.fromkeys(self.seeking, 1)
        self._stems = stems
        self._longest = sorted(stems, key=len, reverse=True)
        self._known: dict[str, int] = {}

    def joins(self, word: str) -> int:
        """1 or −1 for a word that joins what stands before it to what stands after it, or the other way; else 0."""
        found = self._known.get(word)
        if found is None:
            found = self._exact.get(word, 0) or next((self._stems[s] for s in self._longest if word.startswith(s)), 0)
            if len(self._known) < 100_000:
                self._known[word] = found
        return found


@lru_cache(maxsize=32)
def lexicon(world: str) -> Lexicon:
    """The joining words of a world, by its name or path."""
    return Lexicon(load_world(world))


def _template(sentence: str) -> Template:
    turn = 1 if sentence.index("{a}") < sentence.index("{b}") else -1
    before, _, rest = sentence.partition("{a}" if turn == 1 else "{b}")
    between, _, after = rest.partition("{b}" if turn == 1 else "{a}")
    return Template(*(tuple(_WORD.findall(part.lower())) for part in (before, between, after)), turn)  # type: ignore[arg-type]


def _stem(word: str) -> str:
    for ending in ("ing", "ies", "ied", "es", "ed", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= (3 if ending == "s" else 4):
            return word[: -len(ending)]
    return word
