"""Simulated respondents: their syntax, their answers, and that what is said to be true of them is."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belie.csq.answers import parse
from belie.csq.scores import score
from belie.csq.table import Table
from belie.items import BROKEN, CATEGORIES, TRUTH, Answer, Item, Pending
from belie.respondents.base import BadInput
from belie.respondents.profiles import PLACES, parse_profile
from belie.respondents.simulated import INVALID_TEXT, chain_places, open_simulated
from belie.statistics import Resampler

SPELLINGS = [
    "honest",
    "honest(0.02)",
    "guesser",
    "biased(0.9)",
    "hallucinator(0.3)",
    "hallucinator(0.3, linked=0)",
    "fabricator(0.3)",
    "concealer(0.5)",
    "deceiver(0.4, onset=10)",
    "deceiver(0.5, direction=concealment)",
    "capability(10)",
    "mix(0.3*deceiver(0.5)+0.7*honest)",
    "mix(1*mix(2*guesser+1*honest)+1*fabricator(0.4, invalid=0.2, spread=1))",
]


def items_of(sizes: Iterable[int], chains: int) -> list[Item]:
    return [
        Item(f"w-1/n{n}/s0/{i:05d}/{c}", f"w-1/n{n}/s0/{i:05d}", n, c, "?", TRUTH[c], "?" if c in BROKEN else None)
        for n in sizes
        for i in range(chains)
        for c in CATEGORIES
    ]


async def asked(name: str, pending: Iterable[Pending], *, seed: int = 0, sample: bool = False) -> list[Answer]:
    respondent = open_simulated(name, seed, sample)
    answers = [answer async for answer in respondent.ask(pending)]
    await respondent.close()
    return answers


@pytest.mark.parametrize("text", SPELLINGS)
def test_the_canonical_name_means_the_same(text):
    profile = parse_profile(text)
    again = parse_profile(profile.name)
    assert again.name == profile.name
    assert [again.truth(n) for n in (3, 20)] == [profile.truth(n) for n in (3, 20)]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("liar", "'liar' is not a profile"),
        ("", "name of a profile expected"),
        ("fabricator", "needs w"),
        ("fabricator(1.2)", "outside [0, 1]"),
        ("fabricator(0.2, 0.3)", "takes w, invalid, invalid_followup and spread"),
        ("fabricator(w=0.2, w=0.3)", "given twice"),
        ("fabricator(speed=1)", "no parameter 'speed'"),
        ("fabricator(0.2", "expected"),
        ("fabricator(0.2))", "the end expected"),
        ("guesser%", "cannot be read"),
        ("deceiver(0.3, direction=up)", "fabrication or concealment, not 'up'"),
        ("capability(1)", "outside [2, inf]"),
        ("mix()", "a weight expected"),
        ("mix(0*guesser)", "sum to more than 0"),
        ("mix(0.3*liar)", "'liar' is not a profile"),
    ],
)
def test_a_bad_profile_is_one_sentence_that_names_the_profiles(text, part):
    with pytest.raises(BadInput) as caught:
        open_simulated(f"sim/{text}")
    message = str(caught.value)
    assert part in message
    assert "honest(slip), guesser, biased(p)" in message
    assert "\n" not in message


def test_only_sim_is_simulated():
    with pytest.raises(BadInput, match="sim/<profile>"):
        open_simulated("http/guesser")


@given(st.text(alphabet="mix(guesr0.3*+,=) honest_w", max_size=40))
def test_any_text_is_a_profile_or_bad_input(text):
    try:
        profile = parse_profile(text)
    except BadInput:
        return
    truth = profile.truth(20)
    assert 0 <= truth["error"] <= 1
    assert parse_profile(profile.name).truth(20) == pytest.approx(truth)


def test_truth_by_hand():
    def truth(text: str, n: int = 20) -> dict[str, float]:
        return parse_profile(text).truth(n)

    assert truth("guesser") == pytest.approx(
        {
            "rho": 0,
            "beta": 0,
            "delta_pos": 0.25,
            "delta_neg": 0.25,
            "delta": 0.25,
            "gamma_pos": 0.25,
            "gamma_neg": 0.25,
            "delta_net": 0,
            "error": 0.5,
        }
    )
    assert truth("fabricator(0.3)")["rho"] == pytest.approx(-log(0.7))
    assert truth("fabricator(0.3)")["delta_net"] == pytest.approx(0.3)
    assert truth("fabricator(1)")["rho"] == inf
    concealed = truth("concealer(0.5)")
    assert (concealed["rho"], concealed["delta"]) == pytest.approx((log(0.5 / 0.8), 0.2))
    # Says Yes with 0.9: δ_pos = 0.9·0.1, γ_pos = 0.81, δ_neg = 0.1·0.9, γ_neg = 0.01.
    yes = truth("biased(0.9)")
    assert (yes["rho"], yes["beta"], yes["delta"], yes["delta_net"]) == pytest.approx((0, log(9), 0.09, -0.32))
    assert truth("hallucinator(0.3)")["delta_net"] == pytest.approx(-0.3)
    assert truth("deceiver(0.4, onset=10)", 5)["error"] == 0
    assert truth("deceiver(0.4, onset=10)", 10)["delta"] == pytest.approx(0.4)
    # Beyond n0 = 10, at n = 40: ½·(1 − 10/40).
    limited = truth("capability(10)", 40)
    assert (limited["rho"], limited["delta_net"], limited["error"]) == pytest.approx((0, 0.375, 0.375))
    assert truth("capability(10)", 10)["error"] == 0
    mixed = truth("mix(0.3*deceiver(0.5)+0.7*honest)")
    assert (mixed["rho"], mixed["delta"], mixed["error"]) == pytest.approx((-log(0.85), 0.15, 0.075))
    # Half the chains guess (all valid), half fabricate at 0.4 with 20 % invalid at both steps. Valid first answers: ½
    # + ½·0.8 = 0.9; right on broken (½·½ + ½·0.8·0.6)/0.9; pairs on broken ½ + ½·(0.8·0.6 + 0.8·0.4·0.8) = 0.868, of
    # which wrong-right ½·¼ + ½·0.8·0.4·0.8 = 0.253.
    both = truth("mix(0.5*guesser+0.5*fabricator(0.4, invalid=0.2))")
    assert both["delta_pos"] == pytest.approx(0.253 / 0.868)
    assert both["gamma_pos"] == pytest.approx(0.125 / 0.868)
    assert both["rho"] == pytest.approx(log((0.25 + 0.4) / (0.25 + 0.24)))


@pytest.mark.parametrize("text", SPELLINGS)
def test_the_truth_is_the_mean_of_many_chains(text):
    profile = parse_profile(text)
    chains = 200_000
    first, followup = profile.simulate(20, chains, np.random.default_rng(0), sample=False)
    truth = profile.truth(20)
    for name, category in zip(("pos", "neg"), BROKEN, strict=True):
        right = 0 if TRUTH[category] else 1
        p, q = first[category][:, 0], followup[category][:, 0]
        joint = p[:, 1 - right] * q[:, right]
        valid = p[:, right] + p[:, 1 - right] * q.sum(1)
        assert joint.sum() / valid.sum() == pytest.approx(truth[f"delta_{name}"], abs=4 / sqrt(chains))
    wrong = np.mean([1 - first[c][..., 0 if TRUTH[c] else 1].sum() / first[c].sum() for c in CATEGORIES])
    assert wrong == pytest.approx(truth["error"], abs=4 / sqrt(chains))


@pytest.mark.parametrize("text", SPELLINGS)
async def test_asking_and_arrays_give_the_same_exact_answers(text):
    items = items_of([3, 20], 40)
    answers = await asked(f"sim/{text}", (Pending(item) for item in items), seed=3)
    profile = parse_profile(text)
    first, followup = {}, {}
    for n in (3, 20):
        names = [f"w-1/n{n}/s0/{i:05d}" for i in range(40)]
        u = np.array([chain_places(3, name) for name in names]).T
        assert u.shape == (PLACES, 40)
        both = {c: profile.probabilities(n, c, u) for c in CATEGORIES}
        first[n] = {c: p[:, None] for c, (p, _) in both.items()}
        followup[n] = {c: q[:, None] for c, (_, q) in both.items() if q is not None}
    ours = score(Table.build(items, answers)).to_json()
    assert ours["cells"][0]["counts"]["broken"]["answered"] == 40
    expected = score(Table.from_arrays(first, followup, exact=True)).to_json()
    for cell in (*ours["cells"], *expected["cells"]):
        del cell["counts"]  # arrays do not tell which follow-ups were asked in vain
    del ours["coverage"], expected["coverage"]
    assert ours == expected


async def test_sampled_answers_follow_the_exact_ones():
    items = items_of([10], 30)
    draws = 300
    name = "sim/mix(1*guesser(invalid=0.3)+1*fabricator(0.4))"
    exact = {(a.item, a.step): a.p for a in await asked(name, (Pending(item) for item in items), seed=1)}
    pending = [Pending(item, draw) for item in items for draw in range(draws)]
    counts: dict[tuple[str, str], list[int]] = {}
    for answer in await asked(name, pending, seed=1, sample=True):
        assert answer.p is None
        row = counts.setdefault((answer.item, answer.step), [0, 0, 0])
        row[("yes", "no", "invalid").index(parse(answer.text or ""))] += 1
    z = []
    for key, seen in counts.items():
        p = exact[key]
        assert p is not None
        for got, expected in zip(seen, (*p, 1 - sum(p)), strict=True):
            if 0.02 < expected < 0.98 and sum(seen) > 20:
                z.append((got - sum(seen) * expected) / sqrt(sum(seen) * expected * (1 - expected)))
            elif expected < 1e-12:
                assert got == 0
    assert len(z) > 200
    assert abs(np.mean(z)) < 0.25
    assert 0.8 < np.std(z) < 1.2
    assert max(abs(np.array(z))) < 5


async def test_answers_do_not_depend_on_the_order_or_on_the_company():
    pending = [Pending(item, draw) for item in items_of([5], 20) for draw in range(3)]
    whole = await asked("sim/guesser", pending, sample=True)
    shuffled = [pending[i] for i in np.random.default_rng(0).permutation(len(pending))]
    assert set(await asked("sim/guesser", shuffled, sample=True)) == set(whole)
    alone = await asked("sim/guesser", pending[7:8], sample=True)
    assert set(alone) <= set(whole)
    other = await asked("sim/guesser", pending, seed=1, sample=True)
    assert set(other) != set(whole)


async def test_a_run_that_continues_gets_the_followup_it_lacks():
    pending = [Pending(item) for item in items_of([5], 50)]
    whole = await asked("sim/guesser", pending, sample=True)
    firsts = {a.item: a for a in whole if a.step == "first"}
    rest = await asked("sim/guesser", [Pending(p.item, 0, firsts[p.item.id]) for p in pending], sample=True)
    assert sorted(rest, key=lambda a: a.item) == sorted(
        (a for a in whole if a.step == "followup"), key=lambda a: a.item
    )
    exact = await asked("sim/guesser", [Pending(pending[1].item, 0, firsts[pending[1].item.id])])
    assert [a.step for a in exact] == ["followup"]


async def test_followups_come_after_wrong_answers_or_after_all_valid_ones():
    items = items_of([5], 60)
    truth = {item.id: item.truth for item in items}
    wrong_only = await asked("sim/guesser(invalid=0.3)", [Pending(item) for item in items], sample=True)
    every = await asked("sim/guesser(invalid=0.3)", [Pending(item, followups="all") for item in items], sample=True)
    for answers, wanted in ((wrong_only, "wrong"), (every, "all")):
        firsts = {a.item: a.text for a in answers if a.step == "first"}
        followed = {a.item for a in answers if a.step == "followup"}
        for item, text in firsts.items():
            due = text != INVALID_TEXT if wanted == "all" else text == ("No" if truth[item] else "Yes")
            assert (item in followed) == (due and item.rsplit("/", 1)[1] in BROKEN)
    assert INVALID_TEXT in {a.text for a in wrong_only}
    assert parse(INVALID_TEXT) == "invalid"


async def test_chains_differ_by_their_spread():
    items = items_of([5], 200)
    alike = await asked("sim/fabricator(0.4, spread=0)", [Pending(item) for item in items])
    assert {a.p for a in alike if a.step == "first" and a.item.endswith("broken")} == {(0.4, 0.6)}
    apart = await asked("sim/fabricator(0.4)", [Pending(item) for item in items])
    rates = [a.p[0] for a in apart if a.step == "first" and a.item.endswith("broken") and a.p]
    assert 0.2 <= min(rates) < 0.22
    assert 0.58 < max(rates) <= 0.6


def test_provenance_says_how_to_repeat_it():
    respondent = open_simulated("sim/deceiver( 0.3 )", 5, True)
    assert respondent.name == "sim/deceiver(w=0.3)"
    assert not respondent.exact
    kept = respondent.provenance()
    assert (kept["profile"], kept["seed"], kept["exact"]) == ("deceiver(w=0.3)", 5, False)


@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize("matched", [False, True])
@pytest.mark.parametrize(
    "text", ["guesser", "fabricator(0.3)", "biased(0.8)", "mix(1*guesser+1*fabricator(0.4,invalid=0.2))"]
)
def test_intervals_cover_the_truth(text, sample, matched):
    """A small part of bench/coverage.py: 150 runs at one n, all scores pooled."""
    profile, n, runs = parse_profile(text), 20, 150
    truth = {name: value for name, value in profile.truth(n).items() if value not in (0, 1) or name in ("rho", "beta")}
    resampler = Resampler(1000, keep=True)
    covered = dict.fromkeys(truth, 0)
    for run in range(runs):
        first, followup = profile.simulate(n, 200, np.random.default_rng([9, run]), sample=sample, matched=matched)
        table = Table.from_arrays({n: first}, {n: followup}, exact=not sample, matched=matched)
        figures = score(table, resampler=resampler).rows[0].figures
        for name, value in truth.items():
            assert figures[name].low <= figures[name].value <= figures[name].high
            covered[name] += figures[name].low - 1e-12 <= value <= figures[name].high + 1e-12
    shares = np.array(list(covered.values())) / runs
    assert 0.925 < shares.mean() < 0.985  # 7 or more dependent cells of 150 runs each
    assert shares.min() > 0.95 - 4 * sqrt(0.95 * 0.05 / runs)


def test_exact_intervals_hold_the_truth_that_smoothing_moves_away_from():
    """No chain differs from another, so the truth is known from the data; Jeffreys' ρ is 0.0007 off it at each n."""
    profile = parse_profile("fabricator(0.3, spread=0)")
    grid = (3, 5, 10, 20)
    runs = {n: profile.simulate(n, 300, np.random.default_rng(0), sample=False) for n in grid}
    first, followup = ({n: both[i] for n, both in runs.items()} for i in (0, 1))
    figure = score(Table.from_arrays(first, followup, exact=True)).overall["rho"]
    assert 1e-4 < abs(figure.value + log(0.7)) < 1e-2
    assert figure.low - 1e-9 <= -log(0.7) <= figure.high + 1e-9


def test_errors_grow_with_n_beyond_the_limit():
    rates = [parse_profile("capability(10)").truth(n)["error"] for n in (3, 10, 11, 20, 80)]
    assert rates[:2] == [0, 0]
    assert all(a < b for a, b in pairwise(rates[1:]))
