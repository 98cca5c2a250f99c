"""Experiments: the statistics against hand and independent computation, and that what is planted is found."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false

import importlib.util
import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.meta_analysis import combine_effects

from belie.csq.difference import chain_key, difference
from belie.csq.experiments.agreement import agreement
from belie.csq.experiments.phrasing import components
from belie.csq.experiments.shifts import shifts
from belie.csq.experiments.votes import draw_tables, voted
from belie.csq.scores import score
from belie.csq.table import Table
from belie.items import BROKEN, CATEGORIES, TRUTH, Answer, Item
from belie.respondents.base import BadInput
from belie.respondents.profiles import parse_profile
from belie.statistics import Resampler
from belie.statistics.components import condition_test, decompose, variances
from belie.statistics.heterogeneity import summarise
from belie.statistics.subsets import outcomes


def bench():
    path = Path(__file__).parent.parent / "bench" / "experiments.py"
    spec = importlib.util.spec_from_file_location("bench_experiments", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BENCH = bench()


def made(text: str, labels: dict[str, str], *, seed=0, chains=60, words=True, paired=True) -> dict[str, Table]:
    return BENCH.tables(parse_profile(text), labels, chains, np.random.default_rng(seed), words=words, paired=paired)


def one(text: str, seed: int, *, words=True, chains=60) -> Table:
    return made(text, {"a": "contacts-1"}, seed=seed, words=words, chains=chains)["a"]


# --- paired differences ----------------------------------------------------------------------------------------------


def test_what_neither_run_showed_may_still_differ():
    first, second = one("honest", 0), one("honest", 1)
    found = difference(first, second)
    # Nothing in 60 chains: by Wilson's bound either run may have z²/(60 + z²) that the other has not.
    z2 = 1.959964**2
    bound = z2 / (60 + z2)
    for name in ("error", "delta_pos", "gamma_neg"):
        change = found.cells[3][name]
        assert (change.value, change.p) == (0, 1)
        assert (change.low, change.high) == (pytest.approx(-bound, abs=1e-6), pytest.approx(bound, abs=1e-6))
    for change in found.overall.values():
        assert change.low < 0 < change.high
    again = difference(first, first)
    copied = difference(first, replace(first), same=True)
    for told in (again, copied):
        changes = [*told.cells[3].values(), *told.cells[10].values(), *told.overall.values()]
        assert all((change.value, change.low, change.high) == (0, 0, 0) for change in changes)


def test_exact_answers_hide_nothing():
    found = difference(one("honest", 0, words=False), one("honest", 1, words=False))
    assert all((change.low, change.high) == (0, 0) for change in found.overall.values())


def test_one_side_at_an_edge_widens_on_its_side_only():
    found = difference(one("honest", 0), one("fabricator(0.3)", 1)).cells[10]["gamma_pos"]
    assert found.value == 0  # neither stays with a wrong answer
    assert found.low < 0 < found.high
    error = difference(one("honest", 0), one("fabricator(0.3)", 1)).cells[10]["error"]
    assert 0 < error.low < error.value < error.high


def test_chains_are_paired_whatever_their_words():
    tables = made("fabricator(0.3)", {"a": "contacts-1", "b": "contacts-1+sycophancy"}, words=False)
    with pytest.raises(BadInput, match="no question in common"):
        difference(tables["a"], tables["b"])
    found = difference(tables["a"], tables["b"], key=chain_key)
    assert found.chains == {3: 60, 10: 60}
    assert all(change.value == 0 for change in found.overall.values())
    assert chain_key("contacts-1+k4/n5/s0/00007~broken") == "n5/s0/00007~broken"


def test_beta_over_all_n_is_a_mean_over_ln_n():
    tables = made("when(mirror: biased(0.7); else: biased(0.4))", {"a": "c-1", "b": "c-1+mirror"}, words=False)
    found = difference(tables["a"], tables["b"], key=chain_key, overall=("beta", "error"))
    by_n = [found.cells[n]["beta"].value for n in (3, 10)]
    held, step = math.log(3 / 2), math.log(10 / 3)
    mean = (by_n[0] * (held + step / 2) + by_n[1] * step / 2) / math.log(5)
    assert found.overall["beta"].value == pytest.approx(mean)
    assert list(found.overall) == ["beta", "error"]


# --- random effects --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "spread"), [(0, 0.0), (1, 0.3), (2, 0.05), (3, 1.0)])
def test_random_effects_against_statsmodels(seed, spread):
    rng = np.random.default_rng(seed)
    variance = rng.uniform(0.005, 0.05, 6)
    estimates = rng.normal(0.2, np.sqrt(spread**2 + variance))
    found = summarise(estimates, variance)
    told = combine_effects(estimates, variance, method_re="iterated", atol=1e-14, maxiter=1000)
    assert found.tau**2 == pytest.approx(told.tau2, abs=1e-7)
    assert found.q == pytest.approx(told.q)
    assert found.value == pytest.approx(told.mean_effect_re)
    assert found.i2 == pytest.approx(max(0, told.i2))
    # Hartung and Knapp's error, never below the plain one; Student's t with five degrees of freedom
    error = math.sqrt(max(told.var_hksj_re, told.var_eff_w_re))
    assert found.high - found.value == pytest.approx(2.5705818 * error, rel=1e-5)
    assert found.p == pytest.approx(told.test_homogeneity().pvalue, abs=1e-9)


def test_errors_that_all_share_do_not_count_as_agreement():
    estimates = [0.1, 0.2, 0.4]
    alone = summarise(estimates, np.eye(3) * 0.01)
    shared = summarise(estimates, np.eye(3) * 0.01 + 0.5)
    assert (shared.q, shared.tau, shared.p) == pytest.approx((alone.q, alone.tau, alone.p), rel=1e-5)
    assert shared.high - shared.low > 5 * (alone.high - alone.low)
    # Two estimates: (y₁ − y₂)²/(v₁ + v₂ − 2c)
    two = summarise([0.1, 0.4], [[0.02, 0.01], [0.01, 0.03]])
    assert two.q == pytest.approx(0.09 / 0.03, rel=1e-5)


def test_estimates_without_error_are_no_division_by_zero():
    alike = summarise([0.2] * 4, np.zeros((4, 4)))
    assert (alike.value, alike.tau, alike.p) == (pytest.approx(0.2), 0, pytest.approx(1))
    odd = summarise([0, 0, 0, 0.4], [0, 0, 0, 1e-4])
    assert odd.p < 1e-6
    assert odd.tau == pytest.approx(0.2, abs=0.01)  # the standard deviation of the four
    assert math.isnan(summarise([0.1], [0.1]).p)
    assert math.isnan(summarise([0.1, math.nan], [0.1, 0.1]).value)


def test_few_units_make_q_harder_to_believe():
    few, many, endless = (summarise([0.1, 0.2, 0.4], np.eye(3) * 0.01, units=n).p for n in (10, 1000, math.inf))
    assert few > many > endless
    assert many == pytest.approx(endless, abs=2e-3)


# --- variance components ---------------------------------------------------------------------------------------------


def test_components_by_hand():
    units, conditions = np.array([0.0, 0.2, 0.4]), np.array([0.0, 0.1])
    sheet = (0.1 + units[:, None] + conditions)[None]
    noise = np.array([[0.1, 0.2, 0.3]])
    found = variances([decompose(sheet, noise, 0.0, Resampler(200, 0), 3)])
    # Additive: no interaction; sample variances 0.04 and 0.005; mean noise 0.2.
    assert found.value == pytest.approx([0.04, 0.005, 0.0, 0.2])
    # One wrong cell: residuals ±e/… of a 3 × 2 table: 0.12·(1 − 1/3)(1 − 1/2) left over, sum of squares 0.12²/3.
    sheet[0, 0, 0] += 0.12
    found = decompose(sheet, np.full((1, 3), np.nan), 1.0, Resampler(50, 0), 3)
    assert found.value[2] == pytest.approx(0.12**2 / 3 / 2)
    assert math.isnan(found.value[3])


def test_components_are_recovered_and_covered():
    covered = np.zeros(4)
    truth = np.array([0.4**2 / 12, 0.03**2, 0.05**2, 0.15])
    for seed in range(60):
        rng = np.random.default_rng(seed)
        sheet = 0.5 + rng.uniform(-0.2, 0.2, (1, 80, 1)) + rng.normal(0, 0.03, (1, 1, 12))
        sheet = sheet + rng.normal(0, 0.05, (1, 80, 12))
        found = variances([decompose(sheet, rng.uniform(0.1, 0.2, (1, 80)), 0.0, Resampler(400, 0))])
        covered += (found.interval[:, 0] <= truth) & (truth <= found.interval[:, 1])
    assert (covered >= 52).all()  # 60 at 95 %: 57 expected, fewer than 52 with p < 0.01


def test_conditions_that_do_nothing_and_one_that_does():
    rng = np.random.default_rng(0)
    base = rng.random((2, 40, 5))
    assert condition_test([np.repeat(base[:, :, :1], 5, 2)], permutations=99) == 1
    small = [condition_test([rng.random((1, 30, 4))], permutations=99, seed=i) <= 0.05 for i in range(60)]
    assert sum(small) <= 8  # 3 expected
    base[:, :, 2] += 0.5
    assert condition_test([base], permutations=199) == pytest.approx(1 / 200)


def test_a_phrasing_that_invites_errors_is_found_and_none_is_not():
    found = components(made("when(p3: fabricator(0.6); else: fabricator(0.2))", BENCH.PHRASINGS), permutations=499)
    assert found.p_holm["wrong"] < 0.01
    assert found.means["p3"]["wrong"] > found.means["p2"]["wrong"] + 0.1
    wrong = found.all["wrong"]
    # One drawn answer: the drawing can't be told from the interaction, and is in it.
    assert math.isnan(wrong[3].variance)
    assert wrong[1].low <= wrong[1].variance <= wrong[1].high
    assert sum(part.share for part in wrong[:3]) == pytest.approx(1)
    nothing = components(made("fabricator(0.3)", BENCH.PHRASINGS), permutations=499)
    assert min(nothing.p_holm.values()) > 0.05
    json.dumps(found.to_json(), allow_nan=False)


def test_exact_answers_tell_the_sampling_variance_that_a_draw_would_have():
    tables = made("fabricator(0.3, spread=0)", BENCH.PHRASINGS, words=False)
    parts = components(tables, permutations=49).all["wrong"]
    # Two of four categories are wrong at a rate of 0.3 everywhere: p(1 − p) is 0.21 there, 0 elsewhere.
    assert [part.variance for part in parts] == pytest.approx([0, 0, 0, 0.105])
    assert parts[3].share == pytest.approx(1)
    yes = components(tables, permutations=49).all["yes"]
    assert yes[3].variance == pytest.approx(2 * 0.21 / 16)


def test_components_need_what_they_rest_on():
    tables = made("fabricator(0.3)", BENCH.PHRASINGS)
    with pytest.raises(BadInput, match="at least two"):
        components({"p0": tables["p0"]})
    with pytest.raises(BadInput, match="leave --separate away"):
        components({name: replace(table, matched=False) for name, table in tables.items()})
    with pytest.raises(BadInput, match="ask all alike"):
        components({**tables, "p1": replace(tables["p1"], exact=True)})


# --- votes -----------------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=3, max_size=3), st.integers(1, 5))
def test_subsets_against_all_of_them(counts, size):
    things = [kind for kind, count in enumerate(counts) for _ in range(count)]
    found = {parts: p[0] for parts, p in outcomes(np.array([counts]), size)}
    if len(things) < size:
        assert all(math.isnan(p) for p in found.values())
        return
    subsets = list(itertools.combinations(things, size))
    for parts, p in found.items():
        told = sum(all(subset.count(kind) == part for kind, part in enumerate(parts)) for subset in subsets)
        assert p == pytest.approx(told / len(subsets))


def drawn_answers(draws: int, chains: int, seed: int) -> tuple[list[Item], list[Answer]]:
    """Random answers, some invalid, follow-ups after wrong first ones; a call or two failed."""
    rng = np.random.default_rng(seed)
    items, answers = [], []
    for i, category in itertools.product(range(chains), CATEGORIES):
        chain = f"w-1/n5/s0/{i:05d}"
        item = Item(
            f"{chain}/{category}", chain, 5, category, "?", TRUTH[category], "?" if category in BROKEN else None
        )
        items.append(item)
        for draw in range(draws):
            said = rng.choice(["Yes", "No", "who knows"], p=[0.45, 0.45, 0.1])
            failed = rng.random() < 0.03
            answers.append(Answer(item.id, "first", draw, **({"error": "lost"} if failed else {"text": str(said)})))
            wrong = said == ("No" if item.truth else "Yes")
            if item.followup and wrong and not failed:
                easy = rng.choice(["Yes", "No", "who knows"], p=[0.4, 0.5, 0.1])
                answers.append(Answer(item.id, "followup", draw, text=str(easy)))
    return items, answers


def majority(item: Item, answers: list[Answer], votes: int) -> np.ndarray | None:
    """By hand, over every subset: mass of (right, wrong-right, wrong-wrong, valid pairs); None with too few draws."""
    first = {a.draw: a.text for a in answers if a.item == item.id and a.step == "first" and a.error is None}
    easy = {a.draw: a.text for a in answers if a.item == item.id and a.step == "followup"}
    if len(first) < votes:
        return None
    truth, lie = ("Yes", "No") if item.truth else ("No", "Yes")
    out = []
    for subset in itertools.combinations(sorted(first), votes):
        right = sum(first[d] == truth for d in subset)
        wrong = [d for d in subset if first[d] == lie]
        if not right and not wrong:
            out.append([0, 0, 0, 0])
            continue
        falls = 1 if len(wrong) > right else 0.5 if len(wrong) == right else 0
        knew, stayed = sum(easy.get(d) == truth for d in wrong), sum(easy.get(d) == lie for d in wrong)
        share = 0 if knew + stayed == 0 else 1 if knew > stayed else 0.5 if knew == stayed else 0
        said = falls * (knew + stayed > 0)
        out.append([1 - falls, said * share, said * (1 - share), 1 - falls + said])
    return np.mean(out, 0)


@pytest.mark.parametrize("votes", [1, 2, 3, 5])
def test_votes_against_every_subset(votes):
    items, answers = drawn_answers(5, 8, votes)
    table = voted(draw_tables(items, answers, 5), votes).levels[0]
    for item in items:
        row = table.chains.index(item.chain)
        cell = table.cells[item.category]
        told = majority(item, answers, votes)
        assert cell.answered[row] == (told is not None)
        if told is None:
            continue
        right = (cell.yes if item.truth else cell.no)[row]
        assert right == pytest.approx(told[0])
        if item.category in BROKEN:
            pair = (cell.wrong_right[row], cell.wrong_wrong[row], cell.pair_valid[row])
            assert pair == pytest.approx(tuple(told[1:]))


def test_one_vote_is_one_answer():
    items, answers = drawn_answers(5, 30, 7)
    usual = score(Table.build(items, answers, 5), resamples=50)
    vote = score(voted(draw_tables(items, answers, 5), 1), resamples=50)
    for name, figure in usual.rows[0].figures.items():
        assert vote.rows[0].figures[name].value == pytest.approx(figure.value), name


def test_votes_need_draws():
    items, answers = drawn_answers(3, 2, 0)
    with pytest.raises(BadInput, match="4 votes of 3 draws"):
        voted(draw_tables(items, answers, 3), 4)
    with pytest.raises(BadInput, match="are probabilities"):
        draw_tables(items, [Answer(items[0].id, "first", p=(0.5, 0.5))], 3)


# --- what is planted is found, and nothing else ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("when(sycophancy: guesser)", "';', and else: at the end, expected"),
        ("when(else: guesser)", "names a condition"),
        ("when(mirror: honest; mirror: guesser; else: honest)", "mirror is given twice"),
        ("when(world: honest; else: honest)", "expected"),
        ("mix(0.5*when(mirror: honest; else: guesser)+0.5*honest)", "stands around a mixture"),
        ("when(mirror: honest; else: when(k4: honest; else: guesser))", "ends in else: with a plain profile"),
    ],
)
def test_wrong_plantings_are_told(text, part):
    with pytest.raises(BadInput, match=part.replace("(", r"\(")):
        parse_profile(text)


def test_a_planted_effect_is_where_its_label_says():
    text = "when(sycophancy: fabricator(0.5); world=flights: when(k4: guesser; else: biased(0.9)); else: honest)"
    profile = parse_profile(text)
    assert parse_profile(profile.name).name == profile.name

    def error(label):
        return profile.under(label).truth(10)["error"]

    assert error("contacts-1") == error("contacts-1+k4") == error("contacts-1+sycophant") == 0
    assert error("contacts-1+sycophancy") == error("contacts-1+k4+sycophancy_both") == 0.25
    assert error("flights-2+sycophancy") == 0.25  # the first that applies
    assert error("flights-2") == pytest.approx(parse_profile("biased(0.9)").truth(10)["error"])
    assert error("flights-2+k4") == 0.5


def test_a_treatment_that_moves_rho_and_not_delta():
    truth = [parse_profile(BENCH.CLAIM).under(label).truth(10) for label in ("c-1", "c-1+sycophancy")]
    assert truth[1]["rho"] - truth[0]["rho"] == pytest.approx(math.log(0.8 / 0.6))
    assert truth[1]["delta"] == pytest.approx(truth[0]["delta"])
    found = shifts(made(BENCH.CLAIM, BENCH.TREATMENTS, chains=80, seed=2), permutations=999, resamples=600)
    moved = found.of("sycophancy", "rho")
    assert moved.p_holm < 0.05
    assert 0 < moved.low < truth[1]["rho"] - truth[0]["rho"] < moved.high
    still = found.of("sycophancy", "delta")
    assert still.p_holm > 0.05
    assert still.low < 0 < still.high
    assert {one.condition for one in found.overall if one.p_holm <= 0.05} == {"sycophancy"}
    assert found.of("sycophancy", "rho", 10).p_holm <= 2 * found.of("sycophancy", "rho", 10).p + 1e-9
    assert found.comparisons == 20
    json.dumps(found.to_json(), allow_nan=False)


def test_no_treatment_effect_is_none():
    found = shifts(made("mix(0.5*fabricator(0.4)+0.5*guesser)", BENCH.TREATMENTS, seed=4), permutations=999)
    assert not [one for one in found.overall if one.p_holm <= 0.05]


def worlds(text, **options):
    tables = made(text, BENCH.LABELS, **options)
    return agreement(tables, {name: score(table, resamples=200) for name, table in tables.items()}, resamples=600)


def test_a_world_that_is_otherwise_is_named_and_none_is_not():
    found = worlds("when(world=flights: deceiver(0.4); else: honest(0.02))", paired=False)
    assert max(found.p_holm[name] for name in ("rho", "delta", "delta_net")) < 0.001
    assert {one.world for one in found.departures if one.departs} == {"flights"}
    away = next(one for one in found.departures if (one.world, one.score) == ("flights", "delta"))
    assert away.low < 0.4 - 0.02 < away.high
    rho = found.summaries["rho"]
    assert rho.low < 0 < rho.high  # five of six worlds show nothing: the six do not speak for a seventh
    same = worlds("fabricator(0.3)", paired=False)
    assert min(same.p_holm.values()) > 0.05
    assert not [one for one in same.departures if one.departs]
    assert same.summaries["rho"].low > 0
    json.dumps(found.to_json(), allow_nan=False)


def test_worlds_that_find_the_same_chains_hard_are_correlated():
    alike = worlds("mix(0.5*honest+0.5*fabricator(0.8))", words=False)
    apart = worlds("mix(0.5*honest+0.5*fabricator(0.8))", words=False, paired=False)
    assert alike.correlation["rho"] > 0.95
    assert abs(apart.correlation["rho"]) < 0.2
    # The very same answers everywhere: no heterogeneity, and the chains' luck is not averaged away over the worlds.
    assert alike.summaries["rho"].tau == 0
    width = [told.summaries["rho"].high - told.summaries["rho"].low for told in (alike, apart)]
    assert width[0] > 1.5 * width[1]


def test_false_alarms_are_rare():
    """A few quick experiments without an effect; bench/experiments.py has the full count."""
    for study in BENCH.STUDIES:
        if "none planted" in study[0] and study[1] == "fabricator(0.3)":
            told = BENCH.study(study, 5, 30, 199, 5)
            assert told["any"] <= 0.4, told
