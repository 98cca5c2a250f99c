"""What may be said around a question (METHOD §1.6): a line before it, and how it is to be answered. Data in
``treatments.yaml``.

Knows: the texts, their slots, and how a line before a question is read back.
Does not know: chains, worlds' sentences, or what a treatment does to a respondent.

A sycophantic line says that the pair asked about *is* joined, also before a reversed question ("Is it true that A
cannot contact B?"): the asker wants a path to exist, not to hear Yes. So it pushes ρ, the lean of the errors, and not
β, the bias towards one word. The mirror says that the pair is *not* joined, before either. ``treated="both"`` puts a
line before the question that follows too, about that question's own pair.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from belie.csq.world import World, load_world
from belie.data import load_data
from belie.items import Order

Treatment = Literal["none", "sycophancy", "mirror", "pressure", "honesty"]
Treated = Literal["first", "both"]
Style = Literal["word", "enumerate", "reason"]
#: The choices of each, the default first.
TREATMENTS: tuple[Treatment, ...] = get_args(Treatment)
TREATED: tuple[Treated, ...] = get_args(Treated)
ORDERS: tuple[Order, ...] = get_args(Order)
STYLES: tuple[Style, ...] = get_args(Style)

Text = Annotated[str, Field(min_length=1)]
_SLOT = re.compile(r"\{(\w*)\}")
_ANSWER = re.compile(r"\b(?:yes|no)\b", re.IGNORECASE)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Lines(_Strict):
    """A treatment: the line before the question asked first, and before the one that follows. Slots: ``{claim}`` or
    ``{denial}``, at most one of them, once."""

    first: Text
    followup: Text

    @model_validator(mode="after")
    def _slots(self) -> Self:
        for field in ("first", "followup"):
            text = getattr(self, field)
            slots = _SLOT.findall(text)
            if len(slots) > 1 or set(slots) - {"claim", "denial"} or re.search(r"[{}]", _SLOT.sub("", text)):
                raise ValueError(f"`{field}` may use {{claim}} or {{denial}}, once; it reads: {text}")
            if len(text.splitlines()) != 1:
                raise ValueError(f"`{field}` must be a single line")
            if _ANSWER.search(text):
                raise ValueError(f"`{field}` must not say yes or no; it reads: {text}")
        return self


class Instructions(_Strict):
    """A style of answering: both places where a question says how it is to be answered."""

    instruction: Text
    again: Text

    @model_validator(mode="after")
    def _single_lines(self) -> Self:
        for field in ("instruction", "again"):
            text = getattr(self, field)
            if len(text.splitlines()) != 1 or re.search(r"[{}]", text):
                raise ValueError(f"`{field}` must be a single line without slots; it reads: {text}")
        return self


class Treatments(_Strict):
    """All of them, by name."""

    schema_version: Literal[1] = Field(alias="schema")
    version: Annotated[int, Field(ge=1)]
    treatments: dict[Literal["sycophancy", "mirror", "pressure", "honesty"], Lines]
    styles: dict[Literal["enumerate", "reason"], Instructions]

    @model_validator(mode="after")
    def _complete(self) -> Self:
        for field, names in (("treatments", TREATMENTS[1:]), ("styles", STYLES[1:])):
            if missing := [name for name in names if name not in getattr(self, field)]:
                raise ValueError(f"`{field}` lacks {', '.join(missing)}")
        return self


def _path() -> Path:
    return Path(str(resources.files("belie.csq") / "treatments.yaml"))


@lru_cache(maxsize=1)
def load_treatments() -> Treatments:
    """The texts that ship. Raises BadInput naming file, line and field."""
    return load_data(_path(), Treatments)


def treatments_hash(world: str) -> str:
    """SHA-256 of the texts and of the world's claim: goes into the manifest of a run that uses any of them."""
    return hashlib.sha256(_path().read_bytes() + load_world(world).claim.encode()).hexdigest()


def line_before(treatment: Treatment, turn: Literal["first", "followup"]) -> str | None:
    """The treatment's line for a turn with its slot, None where there is none."""
    if treatment == "none":
        return None
    lines = load_treatments().treatments[treatment]
    return lines.first if turn == "first" else lines.followup


def filled(line: str, world: World, pair: tuple[str, str]) -> str:
    """A line about a pair of entities."""
    claim, denial = (world.claim.format(a=pair[0], b=pair[1], can=can) for can in world.polarity)
    return line.replace("{claim}", claim).replace("{denial}", denial)


def line_reader(line: str, world: World) -> re.Pattern[str]:
    """Reads a filled line back: groups ``a``, ``b`` and ``can`` where it makes a claim."""
    return _line_reader(line, world.claim_reader.pattern)


@lru_cache(maxsize=256)
def _line_reader(line: str, claim: str) -> re.Pattern[str]:
    pattern = re.escape(line)
    for slot in ("claim", "denial"):
        pattern = pattern.replace(re.escape(f"{{{slot}}}"), claim)
    return re.compile(pattern)


def instructions(style: Style, instruction: str, again: str) -> tuple[str, str]:
    """Both instructions of a hard question: a phrasing's own, or the style's in their place."""
    if style == "word":
        return instruction, again
    own = load_treatments().styles[style]
    return own.instruction, own.again
