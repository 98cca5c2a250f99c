"""A world: the clothes that the reachability structure wears. Data in ``worlds/*.yaml``.

Knows: entity names, sentences, and how to read a sentence back.
Does not know: chains, breaks or categories (questions).
"""

from __future__ import annotations

import hashlib
import re
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from belie.data import load_data
from belie.respondents.base import BadInput

_SLOTS = {"question": {"a", "b", "can"}, "fact": {"a", "b"}}
#: The line of a world file that only treated items use (treatments): it is hashed with their texts.
_CLAIM_LINE = re.compile(rb"^claim:.*\n", re.MULTILINE)
_SLOT = re.compile(r"\{(\w+)\}")
Text = Annotated[str, Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Phrasing(_Strict):
    """One way of saying everything. Slots: ``{a}``, ``{b}`` entities, ``{can}`` the polarity word."""

    question: Text
    instruction: Text
    rules: Annotated[tuple[Text, ...], Field(min_length=3, max_length=3)]
    rules_heading: Text
    facts_heading: Text
    fact: Text
    again: Text

    @model_validator(mode="after")
    def _slots(self) -> Self:
        for field, wanted in _SLOTS.items():
            text = getattr(self, field)
            found = _SLOT.findall(text)
            if set(found) != wanted or len(found) != len(wanted):
                raise ValueError(f"`{field}` must use each of {{{'}, {'.join(sorted(wanted))}}} once; it reads: {text}")
            if re.search(r"[{}]", _SLOT.sub("", text)):
                raise ValueError(f"`{field}` holds a brace that belongs to no slot; it reads: {text}")
        for field in ("instruction", "again", "rules_heading", "facts_heading"):
            if _SLOT.search(getattr(self, field)):
                raise ValueError(f"`{field}` takes no slots")
        for field in ("question", "fact", "instruction", "again", "rules_heading", "facts_heading"):
            if len(f"{getattr(self, field)}.".splitlines()) != 1:
                raise ValueError(f"`{field}` must be a single line")
        if self.facts_heading == self.rules_heading or self.facts_heading in {f"- {rule}" for rule in self.rules}:
            raise ValueError(f"`facts_heading` must differ from every line above it; it reads: {self.facts_heading}")
        return self


class Names(_Strict):
    """Two lists of parts; an entity is one of each: ``first second``."""

    first: Annotated[tuple[Text, ...], Field(min_length=100)]
    second: Annotated[tuple[Text, ...], Field(min_length=200)]

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        for field in ("first", "second"):
            parts = getattr(self, field)
            if len({part.casefold() for part in parts}) != len(parts):
                twice = sorted({p for p in parts if [q.casefold() for q in parts].count(p.casefold()) > 1})
                raise ValueError(f"`{field}` holds {', '.join(twice)} twice")
            for part in parts:
                if not re.fullmatch(r"[A-Z][a-z]+", part):
                    raise ValueError(f"`{field}`: {part!r} is not one capitalised word of plain letters")
        return self


class World(_Strict):
    """A world of METHOD §1.7. ``polarity`` holds the words that fill ``{can}``: (can, cannot). ``claim`` says
    so of two entities ("{a} {can} contact {b}"): a clause, as it stands after "that" and before a full stop."""

    schema_version: Literal[1] = Field(alias="schema")
    world: Annotated[str, Field(pattern=r"^[a-z]+(_[a-z]+)*$")]
    version: Annotated[int, Field(ge=1)]
    title: Text
    claim: Text
    polarity: tuple[Text, Text]
    entities: Names
    phrasings: Annotated[tuple[Phrasing, ...], Field(min_length=12)]

    @model_validator(mode="after")
    def _polarity_differs(self) -> Self:
        if self.polarity[0] == self.polarity[1]:
            raise ValueError(f"`polarity` needs two different words, for can and cannot; both read: {self.polarity[0]}")
        return self

    @field_validator("claim")
    @classmethod
    def _is_a_clause(cls, text: str) -> str:
        if sorted(_SLOT.findall(text)) != ["a", "b", "can"] or re.search(r"[{}]", _SLOT.sub("", text)):
            raise ValueError(f"must use each of {{a}}, {{b}}, {{can}} once; it reads: {text}")
        if text[-1] in ".!?" or len(text.splitlines()) != 1:
            raise ValueError(f"must be a clause on one line, without a full stop; it reads: {text}")
        return text

    @model_validator(mode="after")
    def _phrasings_differ(self) -> Self:
        if len({phrasing.question for phrasing in self.phrasings}) != len(self.phrasings):
            raise ValueError("`phrasings`: two phrasings ask the same question line")
        return self

    @property
    def name(self) -> str:
        """World and version, as it stands in item ids: ``contacts-1``."""
        return f"{self.world}-{self.version}"

    @property
    def capacity(self) -> int:
        """How many entities of which no two share a part: the longest chain this world can hold."""
        return min(len(self.entities.first), len(self.entities.second))

    @cached_property
    def readers(self) -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
        """For each phrasing, patterns that read a fact line and a question line back."""
        return tuple(
            (_reader(phrasing.fact, self.polarity), _reader(phrasing.question, self.polarity))
            for phrasing in self.phrasings
        )

    @cached_property
    def claim_reader(self) -> re.Pattern[str]:
        """Reads a claim or denial back."""
        return _reader(self.claim, self.polarity)


def _reader(template: str, polarity: tuple[str, str]) -> re.Pattern[str]:
    pattern = re.escape(template)
    for slot in ("a", "b"):
        pattern = pattern.replace(re.escape(f"{{{slot}}}"), rf"(?P<{slot}>[A-Z][a-z]+ [A-Z][a-z]+)")
    choices = "|".join(re.escape(word) for word in sorted(polarity, key=len, reverse=True))
    return re.compile(pattern.replace(re.escape("{can}"), f"(?P<can>{choices})"))


def world_names() -> list[str]:
    """The worlds that ship with Belie."""
    folder = resources.files("belie.csq") / "worlds"
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def world_path(name: str) -> Path:
    """Path of a world: a shipped name, or a path to a YAML file of the same schema."""
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    if name not in world_names():
        raise BadInput(f"There is no world {name!r}. Worlds: {', '.join(world_names())}, or a path to a .yaml file.")
    return Path(str(resources.files("belie.csq") / "worlds" / f"{name}.yaml"))


@lru_cache(maxsize=32)
def load_world(name: str) -> World:
    """Read a world by name or path. Raises BadInput naming file, line and field."""
    return load_data(world_path(name), World)


def world_hash(name: str) -> str:
    """SHA-256 of the world's file without its claim (see `belie.csq.treatments`): goes into the manifest."""
    return hashlib.sha256(_CLAIM_LINE.sub(b"", world_path(name).read_bytes(), count=1)).hexdigest()
