"""Chains and the four questions over each (METHOD §1.1), rebuilt at any time from an item's id.

Knows: structure, texts, truth.
Does not know: who answers, in what order things are asked, or what an answer is worth.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, Self

from belie.csq.treatments import (
    ORDERS,
    STYLES,
    TREATED,
    TREATMENTS,
    Order,
    Style,
    Treated,
    Treatment,
    filled,
    instructions,
    line_before,
)
from belie.csq.validation import Wording, check_chain
from belie.csq.world import Phrasing, World, load_world
from belie.items import BROKEN, CATEGORIES, TRUTH, Category, Item
from belie.respondents.base import BadInput

#: Raised whenever the text or the draw of any item changes: scores are not comparable across it.
QUESTIONS_VERSION = 1
#: The grid of the paper (METHOD §1.1).
PAPER_SIZES = (3, 5, 10, 20, 30, 40, 80)

#: The stream of which every world's chains have their structure; it begins with the names of the world that had it
#: first, which are passed over.
_SHARED = "contacts-1"

_ID = re.compile(
    r"(?P<variant>[^/]+)/n(?P<n>\d+)/s(?P<seed>\d+)/(?P<index>\d+)(?P<own>~[a-z_]+)?/(?P<category>[a-z_]+)"
)


@dataclass(frozen=True, slots=True)
class Variant:
    """Everything besides (n, seed, index) that decides what is put to a respondent. ``phrasing`` is a number or
    "mixed".

    ``treatment`` is a line before the question asked first, with ``treated`` "both" before the one that follows too
    (`belie.csq.treatments`). ``order`` "easy_first" asks for the belief first: the easy question with rules and facts,
    then the hard one in the same conversation; the linked categories have no easy question, so there the hard one is
    asked at once. ``style`` says how a *hard* question is to be answered: in a word, or after the facts that are needed
    or a chain of thought; an easy one always wants one word. None of the four moves the chain.
    """

    world: str = "contacts"
    k: int = 2
    matched: bool = True
    phrasing: int | Literal["mixed"] = 0
    treatment: Treatment = "none"
    treated: Treated = "first"
    order: Order = "hard_first"
    style: Style = "word"

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """The variant of a run, from its manifest's options; what an older run does not name is at its default."""
        return cls(**{field.name: options[field.name] for field in fields(cls) if field.name in options})

    @property
    def sampled(self) -> bool:
        """Whether it can only be asked in words: an answer's first token says nothing, or depends on an answer."""
        return self.order == "easy_first" or self.style != "word"

    @property
    def worded(self) -> bool:
        """Whether it uses texts of ``treatments.yaml``."""
        return self.treatment != "none" or self.style != "word"

    def check(self) -> None:
        """Raises BadInput for a choice that there is not, or that does not go with another."""
        for name, choices in (("treatment", TREATMENTS), ("treated", TREATED), ("order", ORDERS), ("style", STYLES)):
            if getattr(self, name) not in choices:
                raise BadInput(f"There is no {name} {getattr(self, name)!r}. Choices: {', '.join(choices)}.")
        if self.treated == "both" and self.treatment == "none":
            raise BadInput("Treated on both turns, but no treatment is named: name one, or leave treated at first.")
        if self.order == "easy_first" and self.treatment != "none" and self.treated != "both":
            raise BadInput(
                "With the easy question first a treatment must be on both turns (treated both): on the first alone, "
                "the hard question of a linked chain would have it and that of a broken one would not."
            )

    def label(self, world: World) -> str:
        """The first part of an item's id: ``contacts-1``, with what departs from the default appended."""
        parts = [world.name]
        if self.k != 2:
            parts.append(f"k{self.k}")
        if not self.matched:
            parts.append("separate")
        if self.phrasing != 0:
            parts.append(f"p{self.phrasing}")
        if self.treatment != "none":
            parts.append(self.treatment + ("_both" if self.treated == "both" else ""))
        if self.order == "easy_first":
            parts.append("easyfirst")
        if self.style != "word":
            parts.append(self.style)
        return "+".join(parts)


def _read_label(extras: Sequence[str], world: str) -> Variant | None:
    """The variant that a label's parts after the world tell, None where one of them tells nothing."""
    told: dict[str, Any] = {}
    for extra in extras:
        if extra == "separate":
            told["matched"] = False
        elif extra == "pmixed":
            told["phrasing"] = "mixed"
        elif re.fullmatch(r"p\d+", extra):
            told["phrasing"] = int(extra[1:])
        elif re.fullmatch(r"k\d+", extra):
            told["k"] = int(extra[1:])
        elif extra == "easyfirst":
            told["order"] = "easy_first"
        elif extra in STYLES[1:]:
            told["style"] = extra
        elif extra.removesuffix("_both") in TREATMENTS[1:]:
            told["treatment"] = extra.removesuffix("_both")
            told["treated"] = "both" if extra.endswith("_both") else "first"
        else:
            return None
    return Variant(world, **told)


@dataclass(frozen=True, slots=True)
class Design:
    """What is asked: ``chains`` chains (so, items a cell) at each of ``sizes``: one number for all of them, or one
    each in their order."""

    variant: Variant = Variant()
    sizes: tuple[int, ...] = PAPER_SIZES
    chains: int | tuple[int, ...] = 1000
    seed: int = 0

    @property
    def counts(self) -> tuple[int, ...]:
        """Chains at each of ``sizes``, in their order."""
        return (self.chains,) * len(self.sizes) if isinstance(self.chains, int) else self.chains

    def check(self) -> None:
        """Raises BadInput for a design that cannot be asked."""
        self.variant.check()
        world = load_world(self.variant.world)
        if not self.sizes:
            raise BadInput("No chain length given. Name at least one n, e.g. --n 3,5,10.")
        if len(set(self.sizes)) != len(self.sizes):
            raise BadInput(f"A chain length is named twice in {', '.join(map(str, self.sizes))}.")
        for n in self.sizes:
            check_size(n, self.variant.k, world)
        if len(self.counts) != len(self.sizes):
            raise BadInput(f"{len(self.counts)} numbers of chains for {len(self.sizes)} chain lengths: give one each.")
        if min(self.counts) < 1:
            raise BadInput(f"{min(self.counts)} chains a cell: at least 1 is needed.")
        if self.seed < 0:
            raise BadInput(f"Seed {self.seed}: seeds are whole numbers from 0 on.")
        last = len(world.phrasings) - 1
        if self.variant.phrasing != "mixed" and not 0 <= self.variant.phrasing <= last:
            raise BadInput(f"World {world.world} has phrasings 0 to {last}; {self.variant.phrasing} was asked for.")

    def __len__(self) -> int:
        return sum(self.counts) * len(CATEGORIES)

    def items(self, after: Sequence[int] | None = None) -> Iterator[Item]:
        """All items, one chain after the other, its categories together; made as they are drawn, each checked.

        ``after``: without the first so many chains at each of ``sizes``.
        """
        for i, n in enumerate(self.sizes):
            for index in range(after[i] if after else 0, self.counts[i]):
                yield from chain_items(self.variant, n, self.seed, index)


def check_size(n: int, k: int, world: World) -> None:
    """Raises BadInput where a chain of length n (with follow-ups at distance ⌊n/k⌋) cannot be made in this world."""
    if n < 3:
        raise BadInput(f"n = {n}: a chain needs at least 3 entities, so that something lies between its ends.")
    if n > world.capacity:
        raise BadInput(f"n = {n} is more than the {world.capacity} unlike entities that world {world.world} can make.")
    if not 2 <= k <= n:
        raise BadInput(f"k = {k} with n = {n}: the follow-up's distance is n/k rounded down, so k must lie in 2 … n.")


class Chain(NamedTuple):
    """One chain. ``edges`` are positions i (meaning v_i → v_{i+1}) in the random order in which they are told."""

    entities: tuple[str, ...]
    edges: tuple[int, ...]
    followup: tuple[int, int]
    phrasing: int

    @property
    def n(self) -> int:
        return len(self.entities)

    @property
    def gap(self) -> int:
        """b = ⌊n/2⌋: the edge v_b → v_{b+1} is the one left out. For n = 3 the last edge."""
        return self.n // 2


class _Draw:
    """Random choices from a key. Only ``random()`` is used, whose sequence Python keeps across versions."""

    def __init__(self, key: str) -> None:
        self._random = random.Random(int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "big"))

    def below(self, bound: int) -> int:
        return int(self._random.random() * bound)

    def skip(self, count: int) -> None:
        for _ in range(count):
            self._random.random()

    def some(self, count: int, total: int) -> list[int]:
        """``count`` different numbers below ``total``, in random order (a partial Fisher-Yates shuffle)."""
        pool: dict[int, int] = {}
        chosen = []
        for i in range(count):
            j = i + self.below(total - i)
            chosen.append(pool.get(j, j))
            pool[j] = pool.get(i, i)
        return chosen


def draw_chain(variant: Variant, n: int, seed: int, index: int, own: str = "") -> Chain:
    """The chain of (world version, n, seed, index); ``own`` names the category where each draws its own chain.

    The world gives the names. In which order the facts are told, which pair the follow-up asks about and which phrasing
    is taken are the same in every world, so that worlds are compared over the same chains.
    """
    world = load_world(variant.world)
    place = f"n{n}/s{seed}/{index}/{own}"
    names = _Draw(f"{world.name}/{place}")
    firsts = names.some(n, len(world.entities.first))
    seconds = names.some(n, len(world.entities.second))
    entities = tuple(
        f"{world.entities.first[i]} {world.entities.second[j]}" for i, j in zip(firsts, seconds, strict=True)
    )
    key = f"{_SHARED}/{place}"
    draw = _Draw(key)
    draw.skip(2 * n)
    edges = tuple(draw.some(n - 1, n - 1))
    # The follow-up and the phrasing come from streams of their own, so that k does not move the phrasing.
    gap, distance = n // 2, n // variant.k
    starts = [i for i in range(gap + 1) if gap + 1 <= i + distance <= n - 1]
    start = starts[_Draw(f"{key}/k{variant.k}").below(len(starts))]
    phrasing = variant.phrasing
    if phrasing == "mixed":
        phrasing = _Draw(f"{key}/phrasing").below(len(world.phrasings))
    return Chain(entities, edges, (start, start + distance), phrasing)


def chain_items(variant: Variant, n: int, seed: int, index: int) -> list[Item]:
    """The four items of one chain index. Raises BadInput for a size that cannot be made."""
    if variant.matched:
        chain = draw_chain(variant, n, seed, index)
        return [_item(variant, chain, seed, index, category) for category in CATEGORIES]
    return [
        _item(variant, draw_chain(variant, n, seed, index, category), seed, index, category) for category in CATEGORIES
    ]


@dataclass(frozen=True, slots=True)
class Told:
    """What an item's id tells."""

    variant: Variant
    n: int
    seed: int
    index: int
    category: Category


def read_id(item_id: str, world: str | None = None) -> Told:
    """What made an item, from its id. ``world`` gives the file where the world is not one that ships.

    Raises BadInput for an id that no world makes, or that another version of its world made.
    """
    match = _ID.fullmatch(item_id)
    if not match or match["category"] not in CATEGORIES:
        raise BadInput(f"{item_id!r} is not an item id. One looks like contacts-1/n5/s0/00000/broken.")
    label, *extras = match["variant"].split("+")
    name, _, version = label.rpartition("-")
    loaded = load_world(world or name)
    if str(loaded.version) != version:
        raise BadInput(
            f"{item_id!r} was made by version {version} of world {name}; this Belie has version {loaded.version}."
        )
    variant = _read_label(extras, world or name)
    if variant is None or variant.label(loaded) != match["variant"]:
        raise BadInput(f"{item_id!r}: {'+'.join(extras)!r} is not a variant of a question.")
    n, seed, index = int(match["n"]), int(match["seed"]), int(match["index"])
    Design(variant, (n,), index + 1, seed).check()
    return Told(variant, n, seed, index, match["category"])  # type: ignore[arg-type]


def item_from_id(item_id: str, world: str | None = None) -> Item:
    """Rebuild an item from its id. ``world`` and errors as `read_id`."""
    told = read_id(item_id, world)
    chain = draw_chain(told.variant, told.n, told.seed, told.index, "" if told.variant.matched else told.category)
    return _item(told.variant, chain, told.seed, told.index, told.category)


def _item(variant: Variant, chain: Chain, seed: int, index: int, category: Category) -> Item:
    world = load_world(variant.world)
    phrasing = world.phrasings[chain.phrasing]
    can = world.polarity[1 if category.endswith("reversed") else 0]
    facts = fact_lines(phrasing, chain, whole=category not in BROKEN)
    ends, plain = (chain.entities[0], chain.entities[-1]), (phrasing.instruction, phrasing.again)
    turns = [(ends, instructions(variant.style, *plain))]
    if category in BROKEN:
        start, end = chain.followup
        turns.append(((chain.entities[start], chain.entities[end]), plain))
        if variant.order == "easy_first":
            turns.reverse()
    lines = [line_before(variant.treatment, "first")]
    lines.append(line_before(variant.treatment, "followup") if variant.treated == "both" else None)
    texts, wordings = [], []
    for (pair, asked), line in zip(turns, lines, strict=False):
        text = question_line(phrasing, pair, can, asked[0]) if texts else first_text(phrasing, pair, can, facts, asked)
        texts.append(text if line is None else f"{filled(line, world, pair)}\n\n{text}")
        wordings.append(Wording(asked[0], line))
    followup = texts[1] if len(texts) == 2 else None
    check_chain(world, chain.phrasing, texts[0], followup, TRUTH[category], wordings)
    name = f"{variant.label(world)}/n{chain.n}/s{seed}/{index:05d}" + ("" if variant.matched else f"~{category}")
    order = variant.order if followup is not None else "hard_first"
    return Item(f"{name}/{category}", name, chain.n, category, texts[0], TRUTH[category], followup, None, order)


def fact_lines(phrasing: Phrasing, chain: Chain, *, whole: bool) -> list[str]:
    """One sentence an edge, in the chain's random order; without the broken edge unless ``whole``."""
    return [
        phrasing.fact.format(a=chain.entities[i], b=chain.entities[i + 1])
        for i in chain.edges
        if whole or i != chain.gap
    ]


def question_line(phrasing: Phrasing, pair: tuple[str, str], can: str, instruction: str | None = None) -> str:
    """The question about a pair, with the one-word instruction, or another in its place."""
    return f"{phrasing.question.format(a=pair[0], b=pair[1], can=can)} {instruction or phrasing.instruction}"


def first_text(
    phrasing: Phrasing,
    pair: tuple[str, str],
    can: str,
    facts: Sequence[str],
    asked: tuple[str, str] | None = None,
) -> str:
    """The first question, laid out as METHOD §1.1 says: question line, rules, facts, the instruction again. ``asked``:
    both instructions, where they are not the phrasing's."""
    instruction, again = asked or (phrasing.instruction, phrasing.again)
    rules = "\n".join(f"- {rule}" for rule in phrasing.rules)
    return (
        f"{question_line(phrasing, pair, can, instruction)}\n\n{phrasing.rules_heading}\n{rules}\n\n"
        f"{phrasing.facts_heading}\n" + "\n".join(facts) + f"\n\n{again}"
    )
