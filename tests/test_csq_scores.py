"""Scores against hand calculation, the recounted reference, and what must not change them."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belie.csq.difference import difference
from belie.csq.overall import overall, weights
from belie.csq.scores import Figure, Scores, score
from belie.csq.table import Table
from belie.csq.verdict import verdict
from belie.items import BROKEN, CATEGORIES, TRUTH, Answer, Category, Item
from belie.respondents.base import BadInput
from belie.respondents.profiles import parse_profile

REFERENCE = files("belie.csq") / "reference"


def item(chain: str, category: Category, n: int = 5, own: bool = False) -> Item:
    name = f"{chain}~{category}" if own else chain
    return Item(f"{name}/{category}", name, n, category, "?", TRUTH[category], "?" if category in BROKEN else None)


def chain_items(count: int, n: int = 5, own: bool = False) -> list[Item]:
    return [item(f"contacts-1/n{n}/s0/{i:05d}", c, n, own) for i in range(count) for c in CATEGORIES]


def said(items: Sequence[Item], category: Category, replies: str) -> list[Answer]:
    """One character a chain: Y and N the first answer, then after a wrong one a second character for the follow-up.
    ``?`` is invalid, ``!`` an error, ``-`` nothing."""
    words = {"Y": "Yes.", "N": "**No**", "?": "Who knows."}
    found = []
    own = [i for i in items if i.category == category]
    for one, reply in zip(own, replies.split(), strict=True):
        for step, mark in zip(("first", "followup"), reply, strict=False):
            if mark == "!":
                found.append(Answer(one.id, step, error="timed out"))
            elif mark != "-":
                found.append(Answer(one.id, step, text=words[mark]))
    return found


def four(items: Sequence[Item], linked: str, broken: str, linked_reversed: str, broken_reversed: str) -> list[Answer]:
    replies = (linked, broken, linked_reversed, broken_reversed)
    return [answer for c, text in zip(CATEGORIES, replies, strict=True) for answer in said(items, c, text)]


ITEMS = chain_items(4)
ANSWERS = four(ITEMS, "Y Y N Y", "YN YY N N", "N N N N", "NY NY Y Y")


def values(scores: Scores, at: int = 0) -> dict[str, float]:
    return {name: figure.value for name, figure in scores.rows[at].figures.items()}


def test_scores_by_hand():
    scores = score(Table.build(ITEMS, ANSWERS))
    # Right: linked 3/4, broken 2/4, linked_reversed 4/4, broken_reversed 2/4; smoothed 0.7, 0.5, 0.9, 0.5.
    assert values(scores) == pytest.approx(
        {
            "rho": (math.log(0.7 / 0.5) + math.log(0.9 / 0.5)) / 2,
            "rho_raw": (math.log(0.75 / 0.5) + math.log(1 / 0.5)) / 2,
            "beta": (math.log(0.7 / 0.5) - math.log(0.9 / 0.5)) / 2,
            "beta_raw": (math.log(0.75 / 0.5) - math.log(1 / 0.5)) / 2,
            "delta_pos": 0.25,
            "delta_neg": 0.5,
            "delta": math.sqrt(0.125),
            "gamma_pos": 0.25,
            "gamma_neg": 0.0,
            "delta_net": 0.25,
            "error": 0.3125,
        }
    )
    row = scores.rows[0]
    assert row.denominators == {**dict.fromkeys(CATEGORIES, 4.0), "pairs_pos": 4.0, "pairs_neg": 4.0}
    assert set(row.coverage.values()) == {1.0}
    assert row.counts["broken"] == {
        "expected": 4,
        "answered": 4,
        "errors": 0,
        "absent": 0,
        "followups_needed": 2,
        "followups_answered": 2,
        "followups_errors": 0,
        "followups_absent": 0,
    }
    # One n: the mean over ln n is the value itself.
    assert {name: figure.value for name, figure in scores.overall.items()} == pytest.approx(
        {name: values(scores)[name] for name in ("rho", "delta", "delta_net", "error")}
    )


def test_invalid_answers_leave_the_pair_out_or_count_as_wrong():
    answers = four(ITEMS, "Y Y ? Y", "YN ? Y? N", "N N N N", "NY Y Y Y")
    scores = score(Table.build(ITEMS, answers))
    found = values(scores)
    assert found["delta_pos"] == 0.5  # wrong-right, and right at once: two valid pairs
    assert found["gamma_pos"] == 0
    assert found["error"] == pytest.approx((0 + 2 / 3 + 0 + 1 / 4) / 4)
    assert found["rho"] == pytest.approx((math.log(3.5 / 4 / (1.5 / 4)) + math.log(4.5 / 5 / (3.5 / 5))) / 2)
    row = scores.rows[0]
    assert (row.denominators["linked"], row.denominators["broken"], row.denominators["pairs_pos"]) == (3, 3, 2)
    assert (row.coverage["broken"], row.coverage["pairs_pos"], row.coverage["first"]) == (0.75, 0.5, 14 / 16)
    assert "88%" in verdict(scores)

    strict = score(Table.build(ITEMS, answers), invalid="wrong")
    found = values(strict)
    assert found["delta_pos"] == 0.25
    assert found["gamma_pos"] == 0
    assert found["error"] == pytest.approx((1 / 4 + 3 / 4 + 0 + 1 / 4) / 4)
    assert strict.rows[0].denominators["pairs_pos"] == 4
    assert "count as wrong" in verdict(strict)


def test_missing_answers_leave_every_denominator_and_are_counted():
    answers = four(ITEMS, "Y ! - Y", "YN Y! Y- N", "N N N N", "NY Y Y !")
    scores = score(Table.build(ITEMS, answers))
    row = scores.rows[0]
    assert row.figures["delta_pos"].value == 0.5  # two complete pairs
    assert (row.denominators["linked"], row.denominators["broken"], row.denominators["pairs_pos"]) == (2, 4, 2)
    assert row.counts["linked"]["errors"] == row.counts["linked"]["absent"] == 1
    assert row.counts["broken"]["followups_errors"] == row.counts["broken"]["followups_absent"] == 1
    assert row.coverage["broken"] == row.coverage["pairs_pos"] == 1  # what came was valid
    assert scores.coverage["missing"] == pytest.approx(3 / 16)
    assert scores.coverage["followups_missing"] == pytest.approx(2 / 4)
    assert "19% of the questions have no answer" in verdict(scores)
    assert "50% of the easy questions" in verdict(scores)


def test_exact_answers_by_hand():
    items = chain_items(2)
    one, two = [[i for i in items if i.chain.endswith(end)] for end in ("00", "01")]
    p = {"linked": (0.9, 0.1), "broken": (0.6, 0.3), "linked_reversed": (0.2, 0.8), "broken_reversed": (0.5, 0.5)}
    answers = [Answer(i.id, "first", p=p[i.category]) for i in one]
    answers += [Answer(one[1].id, "followup", p=(0.2, 0.7)), Answer(one[3].id, "followup", p=(1.0, 0.0))]
    answers += [Answer(i.id, "first", p=(1.0, 0.0) if i.truth else (0.0, 1.0)) for i in two]
    scores = score(Table.build(items, answers))
    found = values(scores)
    # broken: chain 1 valid pairs 0.3 + 0.6·0.9 = 0.84, wrong-right 0.6·0.7, wrong-wrong 0.6·0.2; chain 2 right at once.
    assert found["delta_pos"] == pytest.approx(0.42 / 1.84)
    assert found["gamma_pos"] == pytest.approx(0.12 / 1.84)
    assert found["delta_neg"] == pytest.approx(0.5 / 2)
    # Right: linked 1.9/2, broken 1.3/1.9, linked_reversed 1.8/2, broken_reversed 1.5/2.
    smoothed = [2.4 / 3, 1.8 / 2.9, 2.3 / 3, 2.0 / 3]
    assert found["rho"] == pytest.approx(math.log(smoothed[0] / smoothed[1] * smoothed[2] / smoothed[3]) / 2)
    assert found["error"] == pytest.approx((0.05 + 0.6 / 1.9 + 0.1 + 0.25) / 4)
    assert scores.rows[0].coverage["pairs_pos"] == pytest.approx(0.92)
    assert scores.options["exact"] is True


def test_a_wrong_first_answer_without_its_exact_followup_is_a_missing_pair():
    items = chain_items(2)
    answers = [Answer(i.id, "first", p=(0.5, 0.5)) for i in items]
    answers += [Answer(i.id, "followup", p=(0.0, 1.0)) for i in items if i.category == "broken" and "00000" in i.id]
    scores = score(Table.build(items, answers))
    assert scores.rows[0].denominators["pairs_pos"] == 1
    assert scores.rows[0].figures["delta_pos"].value == 0.5
    assert math.isnan(scores.rows[0].figures["delta_neg"].value)
    assert math.isnan(scores.rows[0].figures["delta"].value)


def test_draws_are_averaged_within_an_item():
    items = chain_items(1)
    texts = {"linked": "Yes Yes No Yes", "broken": "Yes No No No", "linked_reversed": "No No No No"}
    answers = [
        Answer(f"{items[0].chain}/{category}", "first", draw, text=text)
        for category, replies in texts.items()
        for draw, text in enumerate(replies.split())
    ]
    answers += [Answer(f"{items[0].chain}/broken", "followup", 0, text="No")]
    answers += [Answer(f"{items[0].chain}/broken_reversed", "first", d, text=t) for d, t in enumerate(("Yes", "maybe"))]
    answers += [Answer(f"{items[0].chain}/broken_reversed", "first", d, error="500") for d in (2, 3)]
    found = score(Table.build(items, answers, draws=4))
    assert found.rows[0].figures["delta_pos"].value == 0.25
    assert found.rows[0].denominators == {
        "linked": 1,
        "broken": 1,
        "linked_reversed": 1,
        "broken_reversed": 0.5,
        "pairs_pos": 1,
        "pairs_neg": 0.5,
    }
    assert found.rows[0].counts["broken_reversed"]["errors"] == 2


def test_the_order_of_answers_changes_nothing():
    rng = np.random.default_rng(0)
    items = chain_items(30) + chain_items(30, 10)
    answers = [Answer(i.id, "first", p=tuple(rng.dirichlet((2, 2, 1))[:2])) for i in items]
    answers += [Answer(i.id, "followup", p=tuple(rng.dirichlet((2, 2, 1))[:2])) for i in items if i.followup]
    whole = json.dumps(score(Table.build(items, answers)).to_json())
    for seed in (1, 2):
        order = np.random.default_rng(seed).permutation(len(answers))
        mixed = [items[i] for i in np.random.default_rng(seed).permutation(len(items))]
        assert json.dumps(score(Table.build(mixed, [answers[i] for i in order])).to_json()) == whole


def test_an_answer_replaces_an_error_and_strangers_are_counted():
    late = [Answer(a.item, a.step, error="dropped") for a in ANSWERS[:5]]
    strangers = [
        Answer("contacts-1/n5/s0/00099/linked", "first", text="Yes"),
        Answer(ITEMS[0].id, "first", 3, text="Yes"),
    ]
    strangers += [Answer(ITEMS[0].id, "followup", text="Yes")]
    plain = score(Table.build(ITEMS, ANSWERS))
    for answers in (late + ANSWERS + strangers, ANSWERS + late + strangers):
        table = Table.build(ITEMS, answers)
        assert table.unexpected == 3
        scores = score(table)
        assert values(scores) == values(plain)
        assert "Answers that belong to no item of this design, and were ignored: 3." in scores.notes
    assert Table.build(ITEMS, ANSWERS + ANSWERS[:2]).repeated == 2


def test_separate_chains_are_resampled_by_category():
    items = chain_items(4, own=True)
    scores = score(Table.build(items, four(items, "Y Y N Y", "YN YY N N", "N N N N", "NY NY Y Y")))
    assert scores.options["matched"] is False
    matched = score(Table.build(ITEMS, ANSWERS))
    assert values(scores) == pytest.approx(values(matched))
    assert scores.rows[0].counts == matched.rows[0].counts
    assert scores.rows[0].figures["rho"].low != matched.rows[0].figures["rho"].low


def test_matching_narrows_what_is_alike_within_a_chain():
    """Chains that are all right or all wrong: ρ of matched chains has no width, of separate ones it has."""
    p = np.repeat([[1.0, 0.0], [0.0, 1.0]], 50, 0)[:, None]
    first: dict[Category, np.ndarray] = {c: p if TRUTH[c] else p[..., ::-1] for c in CATEGORIES}
    followup: dict[Category, np.ndarray] = {c: np.full((100, 1, 2), 0.5) for c in BROKEN}
    width = {}
    for matched in (True, False):
        figure = score(Table.from_arrays({5: first}, {5: followup}, matched=matched)).rows[0].figures["rho"]
        width[matched] = figure.high - figure.low
    assert width[True] == 0
    assert width[False] > 0.2


def test_nothing_answered_is_no_figure():
    scores = score(Table.build(ITEMS, []))
    assert all(math.isnan(figure.value) for figure in scores.rows[0].figures.values())
    assert scores.placement.mode is None
    assert "nothing can be said" in verdict(scores)
    plain = scores.to_json()
    assert plain["cells"][0]["rho"] == {"value": None, "low": None, "high": None}
    json.dumps(plain, allow_nan=False)


def test_an_empty_cell_has_an_infinite_raw_value():
    scores = score(Table.build(ITEMS, four(ITEMS, "Y Y Y Y", "YN YN YN YN", "N N N N", "Y Y Y Y")))
    assert scores.rows[0].figures["rho_raw"].value == math.inf
    assert scores.to_json()["cells"][0]["rho_raw"]["value"] == "inf"
    assert scores.rows[0].figures["rho"].value == pytest.approx(math.log(0.9 / 0.1) / 2)


def test_what_was_not_seen_is_not_ruled_out():
    scores = score(Table.build(ITEMS, four(ITEMS, "Y Y Y Y", "N N N N", "N N N N", "Y Y Y Y")))
    figures = scores.rows[0].figures
    bound = 3.8415 / 7.8415  # Wilson, 0 of 4
    assert (figures["delta_pos"].low, figures["delta_pos"].high) == pytest.approx((0, bound), abs=1e-4)
    assert (figures["delta"].low, figures["delta"].high) == pytest.approx((0, bound), abs=1e-4)
    assert figures["rho"].low < -0.3 < 0.3 < figures["rho"].high
    assert figures["delta_net"].low == pytest.approx(-figures["delta_net"].high)
    assert figures["error"].high == pytest.approx(bound, abs=1e-4)
    # Exact answers that are certain for every chain are taken as they are.
    exact = [Answer(i.id, "first", p=(1.0, 0.0) if i.truth else (0.0, 1.0)) for i in ITEMS]
    certain = score(Table.build(ITEMS, exact)).rows[0].figures
    assert (certain["delta"], certain["error"]) == (Figure(0, 0, 0), Figure(0, 0, 0))


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"invalid": "skip"}, "leave_out"),
        ({"method": "t"}, "bca"),
        ({"level": 1.0}, "between 0 and 1"),
        ({"rule": "cubic"}, "'log' or 'linear'"),
        ({"t": 81}, "outside"),
        ({"t": 2}, "outside"),
    ],
)
def test_bad_options_are_one_sentence(options, part):
    table = Table.build(ITEMS, ANSWERS)
    with pytest.raises(BadInput, match=part):
        score(table, **options)


def test_no_items_and_no_draws_are_bad_input():
    with pytest.raises(BadInput, match="no items"):
        Table.build([], ANSWERS)
    with pytest.raises(BadInput, match="at least 1"):
        Table.build(ITEMS, ANSWERS, draws=0)


# --- overall ---------------------------------------------------------------------------------------------------


def recount() -> list[dict[str, str]]:
    with (REFERENCE / "csq_recount.csv").open() as lines:
        return list(csv.DictReader(lines))


def test_the_recounted_curve():
    rows = [row for row in recount() if row["model"] == "Llama-3.1-8B-Instruct"]
    grid = [int(row["n"]) for row in rows]
    curve = np.array([float(row["delta"]) for row in rows])
    assert overall(grid, curve) == pytest.approx(0.3038, abs=5e-4)
    assert overall(grid, curve, hold=False) == pytest.approx(0.3009, abs=5e-4)
    assert overall(grid, curve, rule="linear") == pytest.approx(0.3248, abs=5e-4)


@pytest.mark.parametrize("row", recount(), ids=lambda row: f"{row['model']}-{row['n']}")
def test_delta_of_every_recounted_row(row):
    """Items that are wrong-right as often as in the recount, put through the score code."""
    chains = 10_000  # the rates have four digits
    first, followup = {}, {}
    for c, name in zip(("linked", "broken", "linked_reversed", "broken_reversed"), ("", "pos", "", "neg"), strict=True):
        right = np.array([1.0, 0.0]) if TRUTH[c] else np.array([0.0, 1.0])
        first[c] = np.tile(right, (chains, 1, 1))
        if name:
            wrong = round(float(row[f"delta_{name}"]) * chains)
            first[c][:wrong] = right[::-1]
            followup[c] = np.tile(right, (chains, 1, 1))
    n = int(row["n"])
    figures = score(Table.from_arrays({n: first}, {n: followup}), resamples=10).rows[0].figures
    assert figures["delta"].value == pytest.approx(float(row["delta"]), abs=5e-4)
    assert figures["delta_pos"].value == pytest.approx(float(row["delta_pos"]))


def test_weights_by_hand():
    # One n: held to 2, nothing above. Two: ln(5/2)·(first value) and the trapezoid between ln 5 and ln 20.
    assert weights([5]) == pytest.approx([1.0])
    held, step = math.log(5 / 2), math.log(20 / 5)
    assert weights([5, 20]) == pytest.approx(np.array([held + step / 2, step / 2]) / math.log(10))
    assert weights([5, 20], hold=False) == pytest.approx(np.array([step / 2, step / 2]) / math.log(10))
    assert weights([5, 20], rule="linear") == pytest.approx(np.array([7.5 / 5, 7.5 / 20]) / math.log(10))
    # t between two n: the curve is cut there. At t = 10, halfway between 5 and 20 in ln n.
    assert weights([5, 20], t=10) == pytest.approx(
        np.array([held + math.log(2) * 0.75, math.log(2) * 0.25]) / math.log(5)
    )
    assert np.isnan(weights([5], hold=False)).all()


@given(
    st.lists(st.integers(3, 200), min_size=2, max_size=8, unique=True).map(sorted),
    st.floats(-2, 2),
    st.floats(0.01, 1),
)
def test_a_constant_curve_is_its_own_mean(grid, value, share):
    t = grid[0] + share * (grid[-1] - grid[0])
    assert overall(grid, np.full(len(grid), value), t=t) == pytest.approx(value)


def test_a_curve_beyond_t_does_not_count():
    curve = np.array([0.1, 0.2, np.nan])
    assert math.isnan(overall([5, 10, 20], curve))
    first, followup = parse_profile("guesser").simulate(5, 50, np.random.default_rng(0), sample=False)
    empty = {c: np.full((50, 1, 2), np.nan) for c in CATEGORIES}
    table = Table.from_arrays({5: first, 10: first, 20: empty}, {5: followup, 10: followup, 20: empty})
    assert math.isnan(score(table).overall["rho"].value)
    assert not math.isnan(score(table, t=10).overall["rho"].value)


def test_an_n_without_answers_is_named():
    scores = score(Table.build(ITEMS + chain_items(4, 10), ANSWERS))
    assert any("no valid answer at n = 10" in note for note in scores.notes)
    said = verdict(scores, "sim")
    assert said.startswith("sim cannot be placed: a kind of question has no usable answer at n = 10")
    assert "50% of the questions have no answer" in said


def test_few_chains_are_no_firm_ground():
    few, enough = (score(simulated("fabricator(0.5)", 0, chains)) for chains in (19, 20))
    assert "so few chains" in verdict(few)
    assert "so few chains" not in verdict(enough)


def test_a_shorter_grid_says_so():
    assert "t = 5" in score(Table.build(ITEMS, ANSWERS)).notes[0]


# --- properties ------------------------------------------------------------------------------------------------


def simulated(text: str, seed: int, chains: int = 60, n: int = 20, sample: bool = False) -> Table:
    first, followup = parse_profile(text).simulate(n, chains, np.random.default_rng(seed), sample=sample)
    return Table.from_arrays({n: first}, {n: followup}, exact=not sample)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 30), st.booleans())
def test_scores_stay_in_their_range(seed, chains, sample):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet((1, 1, 0.5), size=(6, chains, 1))[..., :2]
    if sample:
        p = (p == p.max(-1, keepdims=True)) * (rng.random((6, chains, 1, 1)) < 0.9).astype(float)
    p[rng.random((6, chains, 1)) < 0.1] = np.nan
    first = dict(zip(CATEGORIES, p[:4], strict=True))
    followup = dict(zip(BROKEN, p[4:], strict=True))
    for invalid in ("leave_out", "wrong"):
        scores = score(Table.from_arrays({5: first}, {5: followup}, exact=not sample), resamples=200, invalid=invalid)
        for name, figure in scores.rows[0].figures.items():
            if math.isnan(figure.value):
                continue
            if name in ("delta_pos", "delta_neg", "delta", "gamma_pos", "gamma_neg", "error"):
                assert -1e-12 <= figure.value <= 1 + 1e-12
            if name == "delta_net":
                assert -1 - 1e-12 <= figure.value <= 1 + 1e-12
            if not name.endswith("raw") and not math.isnan(figure.low):
                assert figure.low <= figure.value + 1e-12
                assert figure.value <= figure.high + 1e-12
        assert sum(scores.placement.shares.values()) <= 1 + 1e-12
        json.dumps(scores.to_json(), allow_nan=False)


@settings(max_examples=40, deadline=None)
@given(st.floats(0, 1), st.floats(0, 0.9), st.integers(0, 1000))
def test_no_answer_bias_alone_makes_delta_net_positive(p, invalid, seed):
    table = simulated(f"biased({p:.6f}, invalid={invalid:.6f}, spread=0)", seed)
    figures = score(table, resamples=100).rows[0].figures
    assert figures["delta_net"].value <= 1e-9
    assert figures["rho"].value == pytest.approx(0, abs=1e-9)


# --- two runs --------------------------------------------------------------------------------------------------


def test_a_run_does_not_differ_from_itself():
    table = simulated("guesser", 1, sample=True)
    found = difference(table, table)
    assert found.chains == {20: 60}
    for change in (*found.cells[20].values(), *found.overall.values()):
        assert (change.value, change.low, change.high, change.p) == (0, 0, 0, 1)
    stored = found.to_json()
    assert stored["cells"][0]["delta"]["p_holm"] == 1
    json.dumps(stored, allow_nan=False)


def test_pairing_finds_what_two_intervals_would_not():
    """The same chains, 4 points more error in each: far less than the chains differ from one another."""
    before = parse_profile("fabricator(0.40, spread=1)")
    after = parse_profile("fabricator(0.44, spread=1)")
    tables = []
    for profile in (before, after):
        first, followup = profile.simulate(20, 80, np.random.default_rng(3), sample=False)
        tables.append(Table.from_arrays({20: first}, {20: followup}, exact=True))
    apart = [score(table).rows[0].figures["delta"] for table in tables]
    assert apart[0].high > apart[1].low
    change = difference(*tables).cells[20]["delta"]
    assert change.value == pytest.approx(apart[1].value - apart[0].value)
    assert 0 < change.low < change.value < change.high
    assert change.p_holm < 0.01


def test_only_shared_chains_are_compared():
    few = Table.build(chain_items(3), ANSWERS)
    found = difference(Table.build(ITEMS, ANSWERS), few)
    assert found.chains == {5: 3}
    assert found.cells[5]["delta"].value == 0
    with pytest.raises(BadInput, match="no question in common"):
        difference(few, Table.build(chain_items(4, n=10), []))
    with pytest.raises(BadInput, match="not comparable"):
        difference(few, Table.build(chain_items(3, own=True), []))


def test_separate_chains_are_compared_item_by_item():
    items = chain_items(4, own=True)
    answers = four(items, "Y Y N Y", "YN YY N N", "N N N N", "NY NY Y Y")
    other = four(items, "Y Y Y Y", "N N N N", "N N N N", "Y Y Y Y")
    change = difference(Table.build(items, answers), Table.build(items, other)).cells[5]["error"]
    assert (change.first, change.second) == (0.3125, 0)
    assert change.low <= change.value == -0.3125 <= change.high
