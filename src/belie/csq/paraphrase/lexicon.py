"""The checker's English: signals of a rule's meaning, words that soften or hint, and the words allowed at each place.

Knows: ``lexicon.yaml``, its schema, and the regular forms of a word.
Does not know: how a reply is read, or which signal decides what.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from belie.csq.world import Phrasing, World, load_world, world_names
from belie.data import load_data

Place = Literal["question", "claim", "instruction", "rules", "headings", "fact"]

_WORD = re.compile(r"[A-Za-zÀ-ɏ]+(?:['-][A-Za-zÀ-ɏ]+)*")
_SLOT = re.compile(r"\{\w+\}")


def _pattern(text: str) -> str:
    re.compile(text)
    return text


Pattern = Annotated[str, Field(min_length=1), AfterValidator(_pattern)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class QuestionSignals(_Strict):
    frames: tuple[Pattern, ...]
    tails: tuple[Pattern, ...]
    strange: int
    flips: Pattern
    harmless: tuple[Pattern, ...]
    scope: Pattern


class InstructionSignals(_Strict):
    alone: Pattern
    answers: Pattern
    harmless: tuple[Pattern, ...]
    elsewhere: Pattern
    longest: int
    strange: int


class HeadingSignals(_Strict):
    longest: int
    strange: int
    suspect: Pattern


class DirectionSignals(_Strict):
    passive: Pattern
    by: Pattern
    from_: Annotated[Pattern, Field(alias="from")]
    both: tuple[Pattern, ...]
    forward: tuple[Pattern, ...]


class Transitive(_Strict):
    signals: tuple[Pattern, ...]
    forbidden: tuple[Pattern, ...]
    harmless: tuple[Pattern, ...]
    shared: Pattern
    conditions: Pattern
    ordinals: tuple[int, ...]


class OneWay(_Strict):
    signals: tuple[Pattern, ...]
    denials: tuple[Pattern, ...]
    limits: Pattern
    back: Pattern
    back_denied: tuple[Pattern, Pattern]
    both: Pattern
    back_by_person: tuple[Pattern, ...]
    lead: Pattern
    person_before: Pattern
    person_after: Pattern
    may: Pattern
    only: Pattern
    unless: Pattern
    ordinals: tuple[int, ...]


class Closed(_Strict):
    evidence: Pattern
    complete: tuple[Pattern, ...]
    only_if: Pattern
    only: Pattern
    exclusive: Pattern
    lead: Pattern
    also_missing: Pattern
    beyond: Pattern
    fragment: Pattern
    limits: Pattern
    given: Pattern
    open: Pattern
    others: Pattern
    conclusion: Pattern
    may: Pattern


class RuleSignals(_Strict):
    transitive: Transitive
    one_way: OneWay
    closed: Closed


class PlaceWords(_Strict):
    claim: str
    every: str
    meta: str
    frame: str
    rules: str
    headings: str
    instruction: str


class WorldWords(_Strict):
    """``from_is``: what "from" marks, the ``source`` of a fact a → b (that is a) or its ``object`` (b)."""

    from_is: Literal["source", "object"]
    fact: Pattern
    words: str


class Lexicon(_Strict):
    """See ``lexicon.yaml``. Patterns are tried on lower-case text."""

    version: Annotated[int, Field(ge=1)]
    negation: Pattern
    negation_units: tuple[tuple[Pattern, str], ...]
    hedges: tuple[Pattern, ...]
    hints: tuple[Pattern, ...]
    foreign_share: Annotated[float, Field(gt=0, lt=1)]
    question: QuestionSignals
    instruction: InstructionSignals
    headings: HeadingSignals
    direction: DirectionSignals
    rules: RuleSignals
    words: PlaceWords
    worlds: dict[str, WorldWords]


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """The lexicon that ships. Raises BadInput naming file, line and field."""
    return load_data(Path(str(resources.files("belie.csq.paraphrase"))) / "lexicon.yaml", Lexicon)


def found(patterns: str | Iterable[str], text: str) -> str | None:
    """What the first matching pattern matched in ``text`` (lower case), None where none does."""
    for pattern in (patterns,) if isinstance(patterns, str) else patterns:
        match = re.search(pattern, text)
        if match:
            return match[0].strip()
    return None


def words(text: str) -> list[str]:
    """The words of a text without its slots, lower case; single capitals (names of things in rules) are left out."""
    return [word.lower() for word in _WORD.findall(_SLOT.sub(" ", text)) if not re.fullmatch("[A-Z]", word)]


def of_world(world: World) -> WorldWords | None:
    """The lexicon's entry for a world, or for the shipped world that it was made from (``contacts_…``)."""
    return lexicon().worlds.get(world.world.partition("_")[0])


def unknown(text: str, world: World, place: Place) -> list[str]:
    """The words of ``text`` that are allowed nowhere at this place of a question of this world."""
    allowed = _allowed(world.world.partition("_")[0], _own(world), place)
    return [word for word in words(text) if word not in allowed]


def _own(world: World) -> tuple[Phrasing, ...]:
    """The phrasings whose words count as known: those of the shipped world that it was made from, else its own."""
    origin = world.world.partition("_")[0]
    return load_world(origin).phrasings if origin in world_names() else world.phrasings


@lru_cache(maxsize=64)
def _allowed(world: str, own: tuple[Phrasing, ...], place: Place) -> frozenset[str]:
    known = lexicon()
    lists = {
        "question": known.words.frame,
        "instruction": known.words.instruction,
        "rules": known.words.rules,
        "headings": known.words.headings,
    }
    base = set(known.words.claim.split())
    if place in lists:
        base |= {*known.words.every.split(), *lists[place].split()}
    if place in ("question", "instruction", "headings"):
        base |= set(known.words.meta.split())
    if place != "instruction" and world in known.worlds:
        base |= set(known.worlds[world].words.split())
    forms = {form for word in base for form in _forms(word)}
    for phrasing in own:
        texts = {
            "question": [phrasing.question, phrasing.fact],
            "claim": [phrasing.question, phrasing.fact],
            "instruction": [phrasing.instruction, phrasing.again],
            "rules": [*phrasing.rules, phrasing.question, phrasing.fact, phrasing.facts_heading],
            "headings": [phrasing.rules_heading, phrasing.facts_heading],
            "fact": [phrasing.fact, phrasing.question],
        }
        forms.update(word for text in texts[place] for word in words(text))
    if place == "fact":
        forms -= set(re.findall(r"\w+", "not no cannot never nobody none nothing without unless except if or"))
    return frozenset(forms)


def _forms(word: str) -> set[str]:
    stem = word[:-1] if word.endswith("e") else word
    forms = {
        word,
        f"{word}s",
        f"{word}'s",
        f"{stem}ed",
        f"{stem}ing",
        f"{stem}able",
        f"{stem}ability",
        f"{stem}er",
        f"{stem}ers",
    }
    if word.endswith(("s", "sh", "ch", "x", "o")):
        forms.add(f"{word}es")
    if word.endswith("y"):
        forms |= {f"{word[:-1]}ies", f"{word[:-1]}ied"}
    if re.search(r"[^aeiou][aeiou][bdgmnprt]$", word):
        forms |= {f"{word}{word[-1]}ed", f"{word}{word[-1]}ing"}
    return forms
