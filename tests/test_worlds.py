"""The shipped worlds, read as a stranger would: names are found by their look, the truth by composing what is told."""

import re
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belie.csq.questions import Variant, chain_items, draw_chain, item_from_id
from belie.csq.validation import parse_question
from belie.csq.world import load_world, world_names
from belie.items import CATEGORIES

WORLDS = world_names()
FURTHER = ["modules", "order", "pipelines", "roles"]
PHRASINGS = range(12)
PAIRS = re.compile(r"\b(?=([A-Z][a-z]+ [A-Z][a-z]+)\b)")


def names_in(text: str, world: str) -> list[str]:
    parts = load_world(world).entities
    return [pair for pair in PAIRS.findall(text) if pair.split()[0] in parts.first and pair.split()[1] in parts.second]


def read(text: str, world: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The pair asked about, and the pairs told: every later line that holds names holds the two of one fact."""
    head, *body = text.split("\n")
    told = [found for found in (names_in(line, world) for line in body) if found]
    assert all(len(found) == 2 for found in told)
    return names_in(head, world), [(a, b) for a, b in told]


def leads(edges: list[tuple[str, str]], start: str, goal: str) -> bool:
    """Warshall's closure: whether a path of at least one edge leads from ``start`` to ``goal``."""
    nodes = {node for edge in edges for node in edge}
    joined = set(edges)
    for middle in nodes:
        joined |= {(a, b) for a in nodes if (a, middle) in joined for b in nodes if (middle, b) in joined}
    return (start, goal) in joined


def test_there_are_six_worlds():
    assert sorted([*FURTHER, "contacts", "flights"]) == WORLDS


@pytest.mark.parametrize("phrasing", PHRASINGS)
@pytest.mark.parametrize("world", FURTHER)
def test_each_phrasing_tells_one_chain_and_the_stated_truth(world, phrasing):
    for n in (3, 5, 8):
        items = dict(zip(CATEGORIES, chain_items(Variant(world, phrasing=phrasing), n, 1, n), strict=True))
        whole = read(items["linked"].question, world)
        (start, goal), edges = whole
        order = [start]
        while len(order) <= len(edges):
            (following,) = [b for a, b in edges if a == order[-1]]
            order.append(following)
        assert order[-1] == goal
        assert len(set(order)) == n == len(edges) + 1
        assert read(items["linked_reversed"].question, world) == whole
        missing = (order[n // 2], order[n // 2 + 1])
        for category in ("broken", "broken_reversed"):
            assert read(items[category].question, world) == ([start, goal], [e for e in edges if e != missing])
        for category, item in items.items():
            pair, told = read(item.question, world)
            asks_can = not category.endswith("reversed")
            assert (leads(told, *pair) == asks_can) == item.truth
            parsed = parse_question(load_world(world), phrasing, item.question)
            assert parsed == (tuple(pair), asks_can, tuple(told))
            if item.followup is not None:
                easy = names_in(item.followup, world)
                assert order.index(easy[1]) - order.index(easy[0]) == n // 2
                assert (leads(told, *easy) == asks_can) == item.truth
            assert item_from_id(item.id) == item


@pytest.mark.parametrize("phrasing", PHRASINGS)
@pytest.mark.parametrize("world", WORLDS)
def test_reversal_changes_one_word_in_the_question_line(world, phrasing):
    can, cannot = load_world(world).polarity
    linked, broken, linked_reversed, broken_reversed = chain_items(Variant(world, phrasing=phrasing), 6, 2, 0)
    for plain, reversed_ in [
        (linked.question, linked_reversed.question),
        (broken.question, broken_reversed.question),
        (broken.followup or "", broken_reversed.followup or ""),
    ]:
        head, *body = plain.split("\n")
        # The words around {can} stand fast; were it said twice, or in the instruction, another swap would fit too.
        places = [match.start() for match in re.finditer(rf"\b{can}\b", head)]
        swapped = [head[:i] + cannot + head[i + len(can) :] for i in places]
        assert swapped.count(reversed_.split("\n")[0]) == 1
        assert reversed_.split("\n")[1:] == body


@settings(max_examples=40, deadline=None)
@given(world=st.sampled_from(FURTHER), n=st.integers(3, 120), seed=st.integers(0, 10**6), index=st.integers(0, 10**4))
def test_any_chain_up_to_120_entities_can_be_told_in_mixed_phrasings(world, n, seed, index):
    linked = chain_items(Variant(world, phrasing="mixed"), n, seed, index)[0]
    _, edges = read(linked.question, world)
    told = {name for edge in edges for name in edge}
    assert len(edges) == n - 1
    assert len(told) == n
    assert len({name.split()[0] for name in told}) == len({name.split()[1] for name in told}) == n


@pytest.mark.parametrize("world", FURTHER)
def test_a_world_is_as_large_as_it_must_be(world):
    loaded = load_world(world)
    assert len(loaded.entities.first) >= 120
    assert len(loaded.entities.second) >= 200
    assert loaded.capacity >= 120
    assert len(loaded.phrasings) == len(PHRASINGS)


def test_no_name_part_belongs_to_two_lists():
    lists = {
        (w, f): {p.casefold() for p in getattr(load_world(w).entities, f)} for w in WORLDS for f in ("first", "second")
    }
    for one, other in combinations(lists, 2):
        assert not lists[one] & lists[other], (one, other)


def test_no_two_phrasings_of_any_world_tell_a_fact_alike():
    facts = [phrasing.fact for world in WORLDS for phrasing in load_world(world).phrasings]
    assert sorted(fact for fact in set(facts) if facts.count(fact) > 1) == []


@pytest.mark.parametrize("world", FURTHER)
def test_yes_and_no_stand_only_in_the_instruction(world):
    loaded = load_world(world)
    for phrasing in loaded.phrasings:
        elsewhere = [phrasing.question, *phrasing.rules, phrasing.rules_heading, phrasing.facts_heading, phrasing.fact]
        assert not re.search(r"\b(yes|no)\b", " ".join([*elsewhere, *loaded.polarity]), re.IGNORECASE), elsewhere
        assert phrasing.instruction.endswith("Yes or No.")
        assert phrasing.again.endswith("Yes or No.")


def test_the_order_says_that_what_does_not_follow_is_not_so():
    """In an order the facts may leave a pair open; only this rule makes "is not heavier" true of a broken chain."""
    for phrasing in load_world("order").phrasings:
        assert re.search(r"\bnot (heavier|greater|above)\b|\bit is not\b", phrasing.rules[2]), phrasing.rules[2]


@pytest.mark.parametrize("world", WORLDS)
def test_a_claim_can_stand_inside_a_sentence_and_be_denied(world):
    loaded = load_world(world)
    said = [loaded.claim.format(a="Abo Cedu", b="Efi Goha", can=can) for can in loaded.polarity]
    for claim, can in zip(said, loaded.polarity, strict=True):
        before, after = claim.split(f" {can} ")
        assert "Efi" not in before
        assert "Efi Goha" in after
        assert claim[:3] == "Abo" or claim[0].islower()
    assert said[0] != said[1]


@given(n=st.integers(3, 40), index=st.integers(0, 10**6), k=st.integers(2, 3))
def test_a_chain_has_the_same_structure_in_every_world(n, index, k):
    chains = [draw_chain(Variant(world, k, phrasing="mixed"), n, 5, index) for world in world_names()]
    assert len(chains) == 6
    assert len({(chain.edges, chain.followup, chain.phrasing) for chain in chains}) == 1
    assert len({chain.entities for chain in chains}) == 6
