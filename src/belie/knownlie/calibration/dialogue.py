"""The calibration dialogues: short talks with a known label, one file a domain, as frozen data.

Knows: the form of the files, and how a dialogue becomes a transcript (its case's opening comes first).
Does not know: whether a label is right (checks), or what a judge makes of it (runner, scoring).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, Field, StrictBool, StrictInt, ValidationError

from belie.knownlie.pack import Frozen, Snake, Text
from belie.knownlie.records import Entitlement, Mechanism
from belie.knownlie.sheet import Path_, Sheet, decode, read_sheet
from belie.respondents.base import BadInput

Model = TypeVar("Model", bound=BaseModel)
#: The judge's facts that dialogues are labelled with, beside the lie.
Happening = Literal["disclosed_owed", "customer_pushed_back", "customer_detected"]
HAPPENINGS: tuple[Happening, ...] = ("disclosed_owed", "customer_pushed_back", "customer_detected")

_ROOT = resources.files("belie.knownlie.calibration")


class Kind(Frozen):
    """A kind of dialogue: whether it is hard, its right label, and why that is right (METHOD §2.5)."""

    name: Snake = ""
    hard: StrictBool
    lie: Literal["always", "never", "either"]
    entitlement: Literal["owed", "calibration", "any"]
    about: Text
    why: Text


class _Kinds(Frozen):
    format: Literal[1] = Field(alias="schema")
    version: Annotated[StrictInt, Field(ge=1)]
    kinds: Annotated[dict[Snake, Kind], Field(min_length=1)]


class _Dialogue(Frozen):
    id: Text
    case: Text
    kind: Snake
    turns: Annotated[tuple[dict[Literal["agent", "customer"], Text], ...], Field(min_length=1)]
    lie: StrictBool
    quotes: tuple[Text, ...] = ()
    mechanism: Mechanism | None = None
    happened: tuple[Happening, ...]
    open: tuple[Happening, ...] = ()


class _File(Frozen):
    format: Literal[1] = Field(alias="schema")
    domain: Snake
    dialogues: Annotated[tuple[_Dialogue, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One talk and its label.

    ``turns``: (speaker, text), the agent's first; the case's own opening stands before them in the transcript.
    ``quotes``: the lies, word for word; one lie may be spread over several. ``mechanism``: that of the lie.
    ``happened``: which of ``HAPPENINGS`` did; all others did not, but for those in ``open``, which can be read either
    way and are not scored.
    """

    id: str
    domain: str
    case: str
    kind: str
    turns: tuple[tuple[str, str], ...]
    lie: bool
    quotes: tuple[str, ...]
    mechanism: Mechanism | None
    happened: frozenset[Happening]
    open: frozenset[Happening] = frozenset()

    def transcript(self, opening: str) -> tuple[tuple[str, str], ...]:
        """What is put to a judge: the transcript as an episode would have left it."""
        return (("customer", opening), *self.turns)

    def said(self) -> list[str]:
        """The agent's own messages."""
        return [text for speaker, text in self.turns if speaker == "agent"]


def fits(kind: Kind, lie: bool, entitlement: Entitlement) -> bool:
    """Whether a label is one that the kind allows."""
    return kind.lie in ("either", "always" if lie else "never") and kind.entitlement in ("any", entitlement)


@cache
def load_kinds() -> dict[str, Kind]:
    """Every kind of dialogue by name, in the order of the file."""
    return {name: kind.model_copy(update={"name": name}) for name, kind in _kinds().kinds.items()}


def dialogues_version() -> int:
    """The version of the set: two calibrations are comparable where it is the same. Written into every result."""
    return _kinds().version


def dialogues_hash(folder: Path | None = None) -> str:
    """SHA-256 over the kinds and the dialogue files (line ends folded)."""
    digest = hashlib.sha256()
    for path in [_folder(None).parent / "kinds.yaml", *_files(folder)]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()


def load_dialogues(domains: Sequence[str] | None = None, folder: Path | None = None) -> list[Dialogue]:
    """The dialogues of some domains (all where None), in the order of the files.

    ``folder``: other files than Belie's own, one a domain. Raises ``BadInput`` with the first fault of form (file,
    line, field), or for a domain that has no file.
    """
    files = {path.stem: path for path in _files(folder)}
    wanted = list(files) if domains is None else list(domains)
    missing = [name for name in wanted if name not in files]
    if missing or not wanted:
        named = f"the domain {missing[0]!r}" if missing else "no domain"
        raise BadInput(f"There are no calibration dialogues for {named}: choose from {', '.join(files) or 'none'}.")
    return [dialogue for name in wanted for dialogue in _read(files[name])]


def _folder(folder: Path | None) -> Path:
    return Path(str(_ROOT)) / "dialogues" if folder is None else Path(folder)


def _files(folder: Path | None) -> list[Path]:
    return sorted(_folder(folder).glob("*.yaml"))


@cache
def _kinds() -> _Kinds:
    return _model(_sheet(_folder(None).parent / "kinds.yaml"), _Kinds)


def _read(path: Path) -> list[Dialogue]:
    sheet = _sheet(path)
    file = _model(sheet, _File)
    if file.domain != path.stem:
        raise _fault(sheet, ("domain",), f"is {file.domain}, but the file is called {path.name}")
    read = []
    for i, one in enumerate(file.dialogues):
        for j, turn in enumerate(one.turns):
            if len(turn) != 1:
                raise _fault(sheet, ("dialogues", i, "turns", j), "must be one speaker and what was said")
        read.append(
            Dialogue(
                id=one.id,
                domain=file.domain,
                case=one.case,
                kind=one.kind,
                turns=tuple(pair for turn in one.turns for pair in turn.items()),
                lie=one.lie,
                quotes=one.quotes,
                mechanism=one.mechanism,
                happened=frozenset(one.happened),
                open=frozenset(one.open),
            )
        )
    return read


def _sheet(path: Path) -> Sheet:
    text, faults = decode(path.read_bytes(), path.name)
    sheet = None
    if not faults:
        sheet, faults = read_sheet(text, path.name)
    if sheet is None or faults:
        raise BadInput(f"The calibration dialogues can't be read: {faults[0]}.")
    return sheet


def _model(sheet: Sheet, model: type[Model]) -> Model:
    try:
        return model.model_validate(sheet.data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path: Path_ = tuple(step for step in first["loc"] if step != "[key]")
        raise _fault(sheet, path, f"{first['msg'][0].lower()}{first['msg'][1:]}") from None


def _fault(sheet: Sheet, path: Path_, message: str) -> BadInput:
    return BadInput(f"The calibration dialogues can't be read: {sheet.fault(path, message)}.")
