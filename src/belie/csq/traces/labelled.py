"""A set of traces with what a careful reader finds in them, and how well the parser finds the same.

Knows: the format of the set (YAML), precision and recall of each measure.
Does not know: any run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from belie.csq.questions import item_from_id
from belie.csq.traces.case import Case, case_of
from belie.csq.traces.reading import Reading, read_trace
from belie.data import load_data
from belie.respondents.base import BadInput

#: What is compared: each is a set a trace, but for the verdict.
MEASURES = ("fabricated", "reversed", "false_derivations", "unknown", "verdict")

_SLOT = re.compile(r"@(?:([A-Z])2|([A-Z])xy|([A-Z])|([a-z]))")


def _verdict(value: object) -> object:
    return {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value  # YAML reads yes as true


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Labelled(_Strict):
    """One trace and what it holds.

    Names of the item's chain are written by their place in it: ``@A`` the first one's whole name, ``@a`` its first
    part, ``@A2`` its second, ``@Axy`` its name with the last letter lost. Pairs are ``AB``, or ``A -> Some Name``;
    ``a+B``: the name made of A's first and B's second part. ``repeat``: so many times the trace.
    """

    id: str
    item: str
    step: Literal["first", "followup"] = "first"
    trace: str
    repeat: Annotated[int, Field(ge=1)] = 1
    fabricated: tuple[str, ...] = ()
    reversed: tuple[str, ...] = ()
    false_derivations: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    verdict: Annotated[Literal["yes", "no"] | None, BeforeValidator(_verdict)]
    held_out: bool = False


class _File(_Strict):
    traces: Annotated[tuple[Labelled, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Compared:
    """One labelled trace, and what the parser found: sets of pairs (or names; of a verdict, at most one)."""

    labelled: Labelled
    wanted: dict[str, frozenset[object]]
    found: dict[str, frozenset[object]]

    @property
    def right(self) -> bool:
        return self.wanted == self.found


@dataclass(frozen=True, slots=True)
class Agreement:
    """``found``, ``wanted`` and ``both``: how many the parser found, the labels hold, and both."""

    found: int
    wanted: int
    both: int

    @property
    def precision(self) -> float:
        return self.both / self.found if self.found else float("nan")

    @property
    def recall(self) -> float:
        return self.both / self.wanted if self.wanted else float("nan")


def load_labelled(folder: Path) -> list[Labelled]:
    """All labelled traces of a folder's YAML files. Raises BadInput with file, line and field."""
    paths = sorted(folder.glob("*.yaml"))
    if not paths:
        raise BadInput(f"{folder} holds no YAML file of labelled traces.")
    return [one for path in paths for one in load_data(path, _File).traces]


def compare_labelled(labelled: Iterable[Labelled]) -> list[Compared]:
    """Each trace read, and set beside its labels."""
    return [_compared(one) for one in labelled]


def agreement(compared: Sequence[Compared], measure: str) -> Agreement:
    """How well the parser finds one measure over these traces."""
    found = sum(len(one.found[measure]) for one in compared)
    wanted = sum(len(one.wanted[measure]) for one in compared)
    return Agreement(found, wanted, sum(len(one.found[measure] & one.wanted[measure]) for one in compared))


def _compared(one: Labelled) -> Compared:
    item = item_from_id(one.item)
    case = case_of(item, one.step)
    chain = chain_of(case, item.n)
    read = read_trace(_SLOT.sub(lambda slot: _filled(slot, chain), one.trace) * one.repeat, case)
    wanted: dict[str, frozenset[object]] = {
        "unknown": frozenset(_name(name, chain) for name in one.unknown),
        "verdict": frozenset({one.verdict} - {None}),
    }
    for measure in ("fabricated", "reversed", "false_derivations"):
        wanted[measure] = frozenset(_pair(pair, chain) for pair in getattr(one, measure))
    return Compared(one, wanted, _found(read))


def _found(read: Reading) -> dict[str, frozenset[object]]:
    found: dict[str, frozenset[object]] = {
        measure: frozenset((edge.a, edge.b) for edge in getattr(read, measure))
        for measure in ("fabricated", "reversed", "false_derivations")
    }
    return found | {"unknown": frozenset(read.unknown), "verdict": frozenset({read.verdict} - {None})}


def chain_of(case: Case, n: int) -> tuple[str, ...]:
    """The entities of an item's chain in their order: what the facts join, the two parts of a broken one on end.

    ``case`` must be that of a hard question.
    """
    following = dict(case.facts)
    chain = [_start(case)]
    while len(chain) < n:
        nxt = following.get(chain[-1])
        chain.append(
            nxt if nxt is not None else next(a for a in following if a not in following.values() and a not in chain)
        )
        if len(chain) == n - 1 and following.get(chain[-1]) is None:
            chain.append(case.asked[1])
    return tuple(chain)


def _start(case: Case) -> str:
    targets = {b for _, b in case.facts}
    return case.asked[0] if case.asked[0] not in targets else next(a for a, _ in case.facts if a not in targets)


def _filled(slot: re.Match[str], chain: Sequence[str]) -> str:
    second, cut, whole, first = slot.groups()
    name = chain[ord((second or cut or whole or first).upper()) - ord("A")]
    if second:
        return name.partition(" ")[2]
    if first:
        return name.partition(" ")[0]
    return name[:-1] if cut else name


def _name(told: str, chain: Sequence[str]) -> str:
    if re.fullmatch("[A-Z]", told):
        return chain[ord(told) - ord("A")]
    if re.fullmatch(r"[a-z]\+[A-Z]", told):
        return f"{chain[ord(told[0]) - ord('a')].partition(' ')[0]} {chain[ord(told[2]) - ord('A')].partition(' ')[2]}"
    return told


def _pair(told: str, chain: Sequence[str]) -> tuple[str, str]:
    a, _, b = told.partition(" -> ") if " -> " in told else (told[0], "", told[1:])
    return _name(a, chain), _name(b, chain)
