"""Chains and the four questions over each (METHOD §1.1), rebuilt at any time from an item's id.

Knows: structure, texts, truth.
Does not know: who answers, in what order things are asked, or what an answer is worth.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from belie.csq.validation import check_chain
from belie.csq.world import Phrasing, World, load_world
from belie.items import BROKEN, CATEGORIES, TRUTH, Category, Item
from belie.respondents.base import BadInput

#: Raised whenever the text or the draw of any item changes: scores are not comparable across it.
QUESTIONS_VERSION = 1
#: The grid of the paper (METHOD §1.1).
PAPER_SIZES = (3, 5, 10, 20, 30, 40, 80)

_ID = re.compile(
    r"(?P<variant>[^/]+)/n(?P<n>\d+)/s(?P<seed>\d+)/(?P<index>\d+)(?P<own>~[a-z_]+)?/(?P<category>[a-z_]+)"
)


@dataclass(frozen=True, slots=True)
class Variant:
    """Everything besides (n, seed, index) that decides an item's text. ``phrasing`` is a number or "mixed"."""

    world: str = "contacts"
    k: int = 2
    matched: bool = True
    phrasing: int | Literal["mixed"] = 0

    def label(self, world: World) -> str:
        """The first part of an item's id: ``contacts-1``, with what departs from the default appended."""
        parts = [world.name]
        if self.k != 2:
            parts.append(f"k{self.k}")
        if not self.matched:
            parts.append("separate")
        if self.phrasing != 0:
            parts.append(f"p{self.phrasing}")
        return "+".join(parts)


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
    """The chain of (world version, n, seed, index); ``own`` names the category where each draws its own chain."""
    world = load_world(variant.world)
    key = f"{world.name}/n{n}/s{seed}/{index}/{own}"
    draw = _Draw(key)
    firsts = draw.some(n, len(world.entities.first))
    seconds = draw.some(n, len(world.entities.second))
    entities = tuple(
        f"{world.entities.first[i]} {world.entities.second[j]}" for i, j in zip(firsts, seconds, strict=True)
    )
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


def item_from_id(item_id: str, world: str | None = None) -> Item:
    """Rebuild an item from its id. ``world`` gives the file where the world is not one that ships.

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
    k, matched, phrasing = 2, True, 0
    for extra in extras:
        if extra == "separate":
            matched = False
        elif extra == "pmixed":
            phrasing = "mixed"
        elif re.fullmatch(r"p\d+", extra):
            phrasing = int(extra[1:])
        elif re.fullmatch(r"k\d+", extra):
            k = int(extra[1:])
        else:
            raise BadInput(f"{item_id!r}: {extra!r} is not a variant of a question.")
    variant = Variant(world or name, k, matched, phrasing)
    n, seed, index = int(match["n"]), int(match["seed"]), int(match["index"])
    Design(variant, (n,), index + 1, seed).check()
    category: Category = match["category"]  # type: ignore[assignment]
    return _item(variant, draw_chain(variant, n, seed, index, "" if matched else category), seed, index, category)


def _item(variant: Variant, chain: Chain, seed: int, index: int, category: Category) -> Item:
    world = load_world(variant.world)
    phrasing = world.phrasings[chain.phrasing]
    can = world.polarity[1 if category.endswith("reversed") else 0]
    ends = (chain.entities[0], chain.entities[-1])
    question = first_text(phrasing, ends, can, fact_lines(phrasing, chain, whole=category not in BROKEN))
    followup = None
    if category in BROKEN:
        start, end = chain.followup
        followup = question_line(phrasing, (chain.entities[start], chain.entities[end]), can)
    check_chain(world, chain.phrasing, question, followup, TRUTH[category])
    name = f"{variant.label(world)}/n{chain.n}/s{seed}/{index:05d}" + ("" if variant.matched else f"~{category}")
    return Item(f"{name}/{category}", name, chain.n, category, question, TRUTH[category], followup)


def fact_lines(phrasing: Phrasing, chain: Chain, *, whole: bool) -> list[str]:
    """One sentence an edge, in the chain's random order; without the broken edge unless ``whole``."""
    return [
        phrasing.fact.format(a=chain.entities[i], b=chain.entities[i + 1])
        for i in chain.edges
        if whole or i != chain.gap
    ]


def question_line(phrasing: Phrasing, pair: tuple[str, str], can: str) -> str:
    """The question about a pair, with the one-word instruction."""
    return f"{phrasing.question.format(a=pair[0], b=pair[1], can=can)} {phrasing.instruction}"


def first_text(phrasing: Phrasing, pair: tuple[str, str], can: str, facts: Sequence[str]) -> str:
    """The hard question, laid out as METHOD §1.1 says: question line, rules, facts, the instruction again."""
    rules = "\n".join(f"- {rule}" for rule in phrasing.rules)
    return (
        f"{question_line(phrasing, pair, can)}\n\n{phrasing.rules_heading}\n{rules}\n\n"
        f"{phrasing.facts_heading}\n" + "\n".join(facts) + f"\n\n{phrasing.again}"
    )
