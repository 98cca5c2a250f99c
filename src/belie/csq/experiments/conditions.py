"""The experiments as data: what each varies, in which steps, and how what comes out is analysed (METHOD §1.6, §1.7).

Knows: the names of the experiments, their conditions, what a condition changes of a design or of the asking.
Does not know: how anything is asked, where it is kept, or the analyses themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from belie.csq.questions import Design
from belie.csq.treatments import ORDERS, STYLES, TREATMENTS
from belie.csq.world import load_world, world_names
from belie.respondents.base import BadInput
from belie.respondents.opening import Options

Analysis = Literal["shifts", "agreement", "components", "votes"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One run of an experiment: ``name`` is its folder's name too. ``variant``, ``asking``: what it changes of the
    design's variant and of the respondent's options."""

    name: str
    variant: Mapping[str, Any] = field(default_factory=dict)
    asking: Mapping[str, Any] = field(default_factory=dict)

    def design(self, base: Design) -> Design:
        """The base design under this condition."""
        return replace(base, variant=replace(base.variant, **self.variant))

    def options(self, base: Options) -> Options:
        """The base options under this condition."""
        return replace(base, **self.asking)


@dataclass(frozen=True, slots=True)
class Kind:
    """One experiment. ``varies``: the field of the variant or of the options that changes; ``values``: its steps for a
    base design, the first being what the others are compared with; ``read``: a step from the command line.
    ``words``: answers must be drawn. ``least``: no shorter chain can be asked under all steps."""

    title: str
    varies: str
    analysis: Analysis
    values: Callable[[Design], Sequence[Any]]
    read: Callable[[str], Any] = str
    asks: bool = False
    words: bool = False
    prefix: str = ""
    least: Callable[[Sequence[Any]], int] = lambda _: 3


def _worlds(design: Design) -> list[str]:
    """The base world first, then the others that ship."""
    first = design.variant.world
    return [first, *(name for name in world_names() if name != first)]


KINDS: Mapping[str, Kind] = {
    "worlds": Kind("The same structure in other clothes", "world", "agreement", _worlds),
    "treatments": Kind("A line before the question", "treatment", "shifts", lambda _: TREATMENTS),
    "k": Kind(
        "The follow-up's distance n/k", "k", "shifts", lambda _: (2, 4, 8), int, prefix="k", least=lambda ks: max(ks)
    ),
    "temperature": Kind(
        "Temperature", "temperature", "shifts", lambda _: (1.0, 0.5, 0.0), float, asks=True, prefix="t"
    ),
    "phrasing": Kind(
        "The same questions in other words",
        "phrasing",
        "components",
        lambda design: range(len(load_world(design.variant.world).phrasings)),
        int,
        prefix="p",
    ),
    "order": Kind("Belief asked for first", "order", "shifts", lambda _: ORDERS, words=True),
    "enumerate": Kind("Needed facts listed first", "style", "shifts", lambda _: STYLES[:2], words=True),
    "votes": Kind("The majority of m answers", "draws", "votes", lambda _: (1, 3, 5, 7, 9), int, asks=True, words=True),
}


def kind_of(name: str) -> Kind:
    """An experiment by its name. Raises BadInput naming them."""
    if name not in KINDS:
        raise BadInput(f"There is no experiment {name!r}. Experiments: {', '.join(KINDS)}.")
    return KINDS[name]


def values_of(name: str, design: Design, chosen: str | None) -> tuple[Any, ...]:
    """The steps of an experiment: its own, or those ``chosen`` with commas between. Raises BadInput."""
    kind = kind_of(name)
    if chosen is None:
        return tuple(kind.values(design))
    values = []
    for part in chosen.split(","):
        try:
            values.append(kind.read(part.strip()))
        except ValueError:
            raise BadInput(
                f"--conditions of {name} takes numbers with commas between; {part.strip()!r} is none."
            ) from None
    if len(set(values)) < len(values):
        raise BadInput(f"--conditions names a condition twice: {chosen}.")
    if len(values) < 2:
        raise BadInput(f"--conditions of {name} needs at least two, the first being what the others are compared with.")
    if name == "votes" and min(values) < 1:
        raise BadInput("--conditions of votes takes numbers of votes from 1 on.")
    return tuple(values)


def conditions_of(name: str, values: Sequence[Any], treated: str = "first") -> tuple[Condition, ...]:
    """The runs of an experiment. Votes are all taken from one run of as many draws as the largest vote. ``treated``:
    on which turns the treatments of that experiment stand."""
    kind = kind_of(name)
    if kind.analysis == "votes":
        return (Condition("draws"),)
    found = []
    for value in values:
        changed = {kind.varies: value}
        label = f"{kind.prefix}{value:g}" if isinstance(value, float) else f"{kind.prefix}{value}"
        if kind.varies == "world" and label.endswith((".yaml", ".yml")):
            changed, label = {"world": str(Path(label).resolve())}, Path(label).stem
        folder = re.sub(r"[^A-Za-z0-9._-]+", "-", label)
        if kind.varies == "treatment":
            changed["treated"] = "first" if value == "none" else treated
        found.append(Condition(folder, {} if kind.asks else changed, changed if kind.asks else {}))
    names = [one.name for one in found]
    if twice := sorted({one for one in names if names.count(one) > 1}):
        raise BadInput(f"Two conditions would share the folder {', '.join(twice)}: give the files other names.")
    return tuple(found)
