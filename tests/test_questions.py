"""Chains and questions, through what they print. The truth is worked out here by other means than the package's."""

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belie.csq.questions import PAPER_SIZES, Design, Variant, chain_items, item_from_id
from belie.csq.world import load_world, world_names
from belie.items import BROKEN, CATEGORIES
from belie.respondents.base import BadInput

SIZES = st.integers(3, 80)
WORLDS = st.sampled_from(["contacts", "flights"])
PHRASINGS = st.one_of(st.just("mixed"), st.integers(0, 11))


PAIR_OF_WORDS = re.compile(r"\b(?=([A-Z][a-z]+ [A-Z][a-z]+))")


def told_edges(text: str, names: set[str]) -> list[tuple[str, str]]:
    """The pairs of names on every line after the question line that holds exactly two: read without the package."""
    edges = []
    for line in text.split("\n")[1:]:
        found = [match for match in PAIR_OF_WORDS.findall(line) if match in names]
        if len(found) == 2:
            edges.append((found[0], found[1]))
    return edges


def closure(edges: list[tuple[str, str]]) -> set[tuple[str, str]]:
    """All pairs joined by a path: the transitive closure by repeated composition."""
    reach = set(edges)
    while True:
        more = {(a, d) for (a, b), (c, d) in itertools.product(reach, edges) if b == c} - reach
        if not more:
            return reach
        reach |= more


def asked_pair(line: str, names: set[str]) -> tuple[str, str]:
    a, b = (found for found in PAIR_OF_WORDS.findall(line) if found in names)
    return a, b


@settings(max_examples=60, deadline=None)
@given(
    world=WORLDS, n=SIZES, k=st.integers(2, 80), phrasing=PHRASINGS, matched=st.booleans(), index=st.integers(0, 999)
)
def test_the_printed_facts_give_the_stated_truth(world, n, k, phrasing, matched, index):
    if k > n:
        with pytest.raises(BadInput, match=f"k = {k} with n = {n}"):
            Design(Variant(world, k, matched, phrasing), (n,)).check()
        return
    entities = load_world(world).entities
    for item in chain_items(Variant(world, k, matched, phrasing), n, 5, index):
        names = {
            found
            for found in PAIR_OF_WORDS.findall(item.question)
            if found.split()[0] in entities.first and found.split()[1] in entities.second
        }
        assert len(names) == n
        edges = told_edges(item.question, names)
        assert len(edges) == len(set(edges)) == (n - 2 if item.category in BROKEN else n - 1)
        reach = closure(edges) if n <= 30 else None
        asked = asked_pair(item.question.split("\n")[0], names)
        cannot = item.category.endswith("reversed")
        assert ("cannot" in item.question.split("\n")[0]) == cannot
        if reach is not None:
            assert ((asked in reach) != cannot) == item.truth
        assert (item.followup is not None) == (item.category in BROKEN)
        if item.followup is not None:
            easy = asked_pair(item.followup, names)
            assert ("cannot" in item.followup) == cannot
            assert len(item.followup.split("\n")) == 1
            if reach is not None:
                assert ((easy in reach) != cannot) == item.truth
                # The easy pair's distance along the whole chain is ⌊n/k⌋, across the missing edge.
                missing = ({a for a, _ in edges} | {asked[0]}, {b for _, b in edges} | {asked[1]})
                ends = [b for b in missing[1] if b not in {a for a, _ in edges} and b != asked[1]]
                starts = [a for a in missing[0] if a not in {b for _, b in edges} and a != asked[0]]
                bridge = (ends or [asked[0]])[0], (starts or [asked[1]])[0]
                order = path_from(asked[0], [*edges, bridge])
                assert order.index(easy[1]) - order.index(easy[0]) == n // k
                assert order.index(easy[0]) <= n // 2 < order.index(easy[1])
        assert item_from_id(item.id) == item


def path_from(start: str, edges: list[tuple[str, str]]) -> list[str]:
    following = dict(edges)
    order = [start]
    while order[-1] in following:
        order.append(following[order[-1]])
    return order


@pytest.mark.parametrize("world", world_names())
def test_matched_chains_share_names_and_fact_order(world):
    linked, broken, linked_reversed, broken_reversed = chain_items(Variant(world), 10, 0, 3)
    assert [item.category for item in (linked, broken, linked_reversed, broken_reversed)] == list(CATEGORIES)
    assert [item.truth for item in (linked, broken, linked_reversed, broken_reversed)] == [True, False, False, True]
    can, cannot = (f" {words} " for words in load_world(world).polarity)
    assert linked.question.replace(can, cannot, 1) == linked_reversed.question
    assert broken.question.replace(can, cannot, 1) == broken_reversed.question
    assert broken.followup
    assert broken.followup.replace(can, cannot, 1) == broken_reversed.followup
    whole, cut = linked.question.split("\n"), broken.question.split("\n")
    assert [line for line in whole if line in cut] == cut
    assert len(whole) - len(cut) == 1


def test_separate_draws_share_nothing():
    items = chain_items(Variant(matched=False), 10, 0, 3)
    assert len({item.chain for item in items}) == 4
    assert len({item.question.split("\n")[0].replace("cannot", "can") for item in items}) == 4


def test_k_and_phrasing_leave_the_chain_as_it_is():
    plain = chain_items(Variant(), 20, 0, 7)[1]
    other_k = chain_items(Variant(k=4), 20, 0, 7)[1]
    assert plain.question == other_k.question
    assert plain.followup != other_k.followup
    pair = PAIR_OF_WORDS.findall(plain.question.split("\n")[0])
    for phrasing in range(1, 12):
        line = chain_items(Variant(phrasing=phrasing), 20, 0, 7)[1].question.split("\n")[0]
        assert all(name in line for name in pair)


def test_the_text_of_an_item_is_pinned():
    """Changing a text changes scores: then QUESTIONS_VERSION or the world's version goes up, and this with it."""
    item = item_from_id("contacts-1/n3/s0/00000/broken")
    assert item.question == PINNED
    assert item.followup == PINNED_FOLLOWUP


PINNED = """Is it true that Brennia Tuwin can contact Mudus Funford? Answer with one word, Yes or No.

Rules:
- If one person can contact a second, and the second can contact a third, then the first can contact the third.
- That one person can contact another does not mean that the other can contact them.
- If the facts give no way for one person to contact another, then they cannot.

Facts:
Brennia Tuwin can contact Lonen Mormore.

Answer with one word only: Yes or No."""
PINNED_FOLLOWUP = "Is it true that Lonen Mormore can contact Mudus Funford? Answer with one word, Yes or No."


def test_design_counts_what_it_makes():
    design = Design(Variant(), (3, 5), 4, 9)
    items = list(design.items())
    assert len(items) == len(design) == 32
    assert len({item.id for item in items}) == 32
    assert PAPER_SIZES == (3, 5, 10, 20, 30, 40, 80)


@pytest.mark.parametrize(
    ("design", "words"),
    [
        (Design(sizes=(2,)), "at least 3 entities"),
        (Design(sizes=(500,)), "more than the 120 unlike entities that world contacts can make"),
        (Design(Variant(k=4), (3,)), "k = 4 with n = 3"),
        (Design(Variant(k=1), (3,)), "k must lie in 2"),
        (Design(sizes=()), "No chain length"),
        (Design(sizes=(3, 3)), "named twice"),
        (Design(chains=0), "at least 1"),
        (Design(seed=-1), "whole numbers from 0"),
        (Design(Variant(phrasing=12)), "phrasings 0 to 11"),
        (Design(Variant("atlantis")), "There is no world 'atlantis'. Worlds: contacts"),
    ],
)
def test_a_design_that_cannot_be_asked_is_refused_in_a_sentence(design, words):
    with pytest.raises(BadInput, match=words.replace("(", r"\(")):
        design.check()


@pytest.mark.parametrize(
    "item_id",
    [
        "",
        "contacts-1",
        "contacts-1/n5/s0/0/hidden",
        "contacts-1+q9/n5/s0/00000/broken",
        "contacts-99/n5/s0/00000/broken",
    ],
)
def test_an_id_that_no_world_makes_is_refused(item_id):
    with pytest.raises(BadInput):
        item_from_id(item_id)


@pytest.mark.parametrize("name", world_names())
def test_worlds_say_what_they_must(name):
    world = load_world(name)
    assert len(world.entities.first) >= 100
    assert len(world.entities.second) >= 200
    assert len(world.phrasings) >= 12
    for field in ("question", "fact", "instruction", "again"):
        assert len({getattr(phrasing, field) for phrasing in world.phrasings}) == len(world.phrasings)
    # A fact never says "can … cannot", and no rule names an entity.
    for phrasing in world.phrasings:
        assert world.polarity[1] not in phrasing.fact
        assert not re.search(r"\{", "".join(phrasing.rules))


WORLD_FAULTS = [
    ("version: 1", "version: one", "version"),
    ("title: ", "titel: ", "title"),
    ("polarity: [can, cannot]", "polarity: [can]", "polarity"),
    ('claim: "{a} {can} contact {b}"', 'claim: "{a} can contact {b}"', "claim: must use each"),
    ('claim: "{a} {can} contact {b}"', 'claim: "{a} {can} contact {b}."', "claim: must be a clause"),
    ('claim: "{a} {can} contact {b}"', 'says: "{a} {can} contact {b}"', "claim"),
    (
        'question: "Is it true that {a} {can} contact {b}?"',
        'question: "Is it true that {a} contacts {b}?"',
        "phrasings.0",
    ),
    ('fact: "{a} can contact {b}."', 'fakt: "{a} can contact {b}."', "phrasings.0.fact"),
    ("  first: [", "  first: [Lo3la,", "entities"),
]


@pytest.mark.parametrize(("old", "new", "field"), WORLD_FAULTS)
def test_a_world_file_with_a_wrong_field_names_file_line_and_field(tmp_path, old, new, field):
    from importlib import resources

    text = (resources.files("belie.csq") / "worlds" / "contacts.yaml").read_text()
    assert old in text
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(BadInput) as caught:
        load_world(str(path))
    sentence = str(caught.value)
    assert re.match(rf"{re.escape(str(path))}:\d+: {field}", sentence), sentence
    line = int(sentence.removeprefix(f"{path}:").split(":")[0])
    stands = new if field not in ("entities", "title") else field
    if field != "title":
        near = "\n".join(path.read_text().split("\n")[line - 1 : line + 8])
        assert stands.split(":")[0].split("{")[0].strip() in near, (line, near)


def test_a_world_of_ones_own_is_asked_like_one_that_ships(tmp_path):
    from importlib import resources

    text = (resources.files("belie.csq") / "worlds" / "flights.yaml").read_text()
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("world: flights", "world: mine"))
    item = chain_items(Variant(str(path)), 5, 0, 0)[1]
    assert item.id.startswith("mine-1/")
    assert item_from_id(item.id, world=str(path)) == item
