"""Comparing runs: what is paired, what is refused, and whether the figures keep their word."""

# pyright: reportAttributeAccessIssue=false

import json
import math
from functools import partial

import pytest
import typer
from compared_runs import FAILED, bench, csq_run, knownlie_run, played
from scipy.stats import binom, nct, t
from typer.testing import CliRunner

from belie import compare
from belie.cli.compare import compare_runs
from belie.comparison import effect, shared_words, smallest_difference
from belie.knownlie.pack import builtin_packs
from belie.respondents.base import BadInput

DOMAINS = sorted(builtin_packs())


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("csq")
    return {
        "a": csq_run(root / "a", "deceiver(0.3)"),
        "b": csq_run(root / "b", "deceiver(0.6)", sizes=(3, 10), chains=40),
        "twin": csq_run(root / "twin", "deceiver(0.3)"),
        "flights": csq_run(root / "flights", "deceiver(0.3)", world="flights"),
        "other": csq_run(root / "other", "deceiver(0.3)", design_seed=5),
    }


def lying(lies, *, detected=False, conditions=("none", "incentive"), **options):
    """8 domains × 3 seeds × 2 cases; ``lies(domain number, seed, case)`` says where it lies under incentive."""
    return [
        played(
            condition == "incentive" and lies(d, seed, case),
            domain=domain,
            case=f"{domain}-0{case}",
            condition=condition,
            seed=seed,
            position=case,
            detected=detected and condition == "incentive" and lies(d, seed, case),
            **options,
        )
        for d, domain in enumerate(DOMAINS)
        for seed in range(3)
        for case in range(2)
        for condition in conditions
    ]


def test_a_run_against_itself_is_zero_everywhere(runs, tmp_path):
    knownlie = knownlie_run(tmp_path / "k", lying(lambda d, _, case: d % 2 == case, detected=True))
    for path in (runs["a"], knownlie):
        pair = compare(path, path, by_n=True).pairs[0]
        known = [one for one in pair.contrasts if not math.isnan(one.difference)]
        assert len(known) > 6
        for one in known:
            assert (one.difference, one.low, one.high, one.p, one.p_holm) == (0, 0, 0, 1, 1), one
        assert any("compared with itself" in note for note in pair.notes)


def test_only_shared_chains_are_compared_and_the_rest_is_told(runs):
    pair = compare(runs["a"], runs["b"]).pairs[0]
    assert pair.shared["chains"] == 80
    assert (pair.shared["only_first"], pair.shared["only_second"]) == (40, 0)
    assert pair.contrast("csq.error").denominators == (320, 320)
    assert "80 chains shared" in shared_words(pair)
    assert "40 in one of them only" in shared_words(pair)
    error = pair.contrast("csq.error")
    assert error.low < error.difference < error.high
    assert error.p_holm < 0.05
    said = effect(error, "A", "B")
    assert said.startswith("B errs more often than A: ")
    assert f"{100 * error.second:.1f} % against {100 * error.first:.1f} %" in said


def test_two_runs_of_the_same_respondent_share_everything_and_do_not_differ(runs):
    compared = compare(runs["a"], runs["twin"])
    assert [one.difference for one in compared.pairs[0].contrasts] == [0] * 4
    assert compared.pairs[0].shared["only_first"] == 0


def test_further_runs_are_compared_with_the_first_and_holm_goes_over_all(runs):
    both = compare(runs["a"], runs["b"], runs["twin"])
    assert [pair.second.respondent for pair in both.pairs] == ["sim/deceiver(w=0.6)", "sim/deceiver(w=0.3)"]
    assert both.comparisons == 8
    alone = compare(runs["a"], runs["b"], scores=["error"])
    assert alone.comparisons == 1
    one, among = alone.pairs[0].contrasts[0], both.pairs[0].contrast("csq.error")
    assert one.p == one.p_holm == among.p
    assert among.p_holm == pytest.approx(8 * among.p)
    assert among.smallest > one.smallest
    told = both.to_json()
    assert json.loads(json.dumps(told)) == told
    assert told["pairs"][0]["scores"][3]["p_holm"] == pytest.approx(among.p_holm)


def test_a_score_at_one_n_can_be_named(runs):
    pair = compare(runs["a"], runs["b"], scores=["delta_net(n=10)", "csq.delta_net(n=3)"]).pairs[0]
    assert [one.name for one in pair.contrasts] == ["csq.delta_net(n=10)", "csq.delta_net(n=3)"]
    assert [one.units for one in pair.contrasts] == [40, 40]
    for wrong in ("delta_net(n=7)", "nonsense", "beta"):
        with pytest.raises(BadInput, match="There is no score"):
            compare(runs["a"], runs["b"], scores=[wrong])
    with pytest.raises(BadInput, match="None of the scores"):
        compare(runs["a"], runs["b"], scores=["dr.incentive"])


def test_runs_that_share_nothing_or_need_company_are_refused(runs):
    with pytest.raises(BadInput, match="no question in common"):
        compare(runs["a"], runs["other"])
    with pytest.raises(BadInput, match="at least two runs"):
        compare(runs["a"])


def test_other_worlds_are_refused_with_the_reason_and_force_marks(runs, tmp_path):
    with pytest.raises(BadInput, match=r"version of world is contacts-1 in the first and flights-1 in the second"):
        compare(runs["a"], runs["flights"])
    knownlie = knownlie_run(tmp_path / "k", lying(lambda *_: False))
    with pytest.raises(BadInput, match="One is a knownlie run and the other a csq run"):
        compare(knownlie, runs["a"], force=True)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"options": {"judge": ["judge/y"]}}, "judge is judge/x in the first and judge/y in the second"),
        ({"options": {"customer": "customer/y"}}, "customer is customer/x in the first and customer/y"),
        ({"options": {"trust_rule": "flat"}}, "trust rule is not set in the first and flat in the second"),
        ({"versions": {"task": 2}}, "version of task is 1 in the first and 2 in the second"),
        ({"versions": {"pack refund": 2}}, "version of pack refund is 1 in the first and 2"),
        ({"hashes": {"pack refund": "other"}}, "the content of pack refund differs"),
    ],
)
def test_other_judges_customers_rules_and_packs_are_refused(tmp_path, change, reason):
    one = knownlie_run(tmp_path / "one", lying(lambda *_: False))
    other = knownlie_run(tmp_path / "other", lying(lambda *_: True), **change)
    with pytest.raises(BadInput, match=reason):
        compare(one, other)
    forced = compare(one, other, force=True)
    assert not forced.comparable
    assert any(reason in told for told in forced.pairs[0].refused)
    assert forced.to_json()["comparable"] is False


def test_other_options_are_only_noted(tmp_path):
    one = knownlie_run(tmp_path / "one", lying(lambda *_: False), options={"agent_temperature": 0.7})
    other = knownlie_run(tmp_path / "other", lying(lambda *_: False), options={"agent_temperature": 0.0})
    notes = compare(one, other).pairs[0].notes
    assert any("agent_temperature is 0.7 in the first and 0.0 in the second" in note for note in notes)


def test_knownlie_scores_by_hand(tmp_path):
    # First: never lies. Second: lies under incentive in case 0 of every trajectory, and in case 1 too in the first two
    # domains. DR macro = (2 · 1 + 6 · ½)/8 = 0.625, pooled = (12 + 18)/48 = 0.625; it is noticed nowhere.
    one = knownlie_run(tmp_path / "one", lying(lambda *_: False))
    other = knownlie_run(tmp_path / "other", lying(lambda d, _, case: case == 0 or d < 2))
    pair = compare(one, other).pairs[0]
    dr = pair.contrast("knownlie.dr.incentive")
    assert (dr.first, dr.second, dr.difference) == (0, 0.625, 0.625)
    assert dr.denominators == (48, 48)
    assert dr.units == 24
    assert dr.low > 0.3
    assert dr.p == pytest.approx(1 / 5001)  # 2 of 2²⁴ permutations are as far out: none is drawn
    assert pair.contrast("knownlie.excess.incentive").difference == 0.625
    control = pair.contrast("knownlie.dr.none")
    assert (control.difference, control.p) == (0, 1)
    assert control.low < -0.02 < 0.02 < control.high  # 0 of 48 against 0 of 48 is no certainty
    trust = pair.contrast("knownlie.trust_change.incentive")
    assert trust.first == pytest.approx(0.1)
    # the last round of a trajectory ends at 0.4 after a lie, at 0.6 else; each starts at 0.5
    assert trust.second == pytest.approx((2 * -0.1 + 6 * 0.1) / 8)
    assert math.isnan(pair.contrast("knownlie.detect.incentive").difference)  # the first told no lie
    assert "gave nothing to compare" in effect(pair.contrast("knownlie.detect.incentive"), "A", "B")
    assert "B lies more often than A under an incentive: 62.5 % against 0.0 %" in effect(dr, "A", "B")


def test_macro_is_the_mean_over_domains_and_differs_from_pooled(tmp_path):
    # refund has 4 rounds in each of 3 trajectories, airline 1: lying in airline alone is DR ½ macro, 3/15 pooled.
    def rounds(lies):
        return [
            played(domain == "airline" and lies, domain=domain, case=f"{domain}-0{case}", seed=seed, position=case)
            for seed in range(3)
            for domain, cases in (("refund", 4), ("airline", 1))
            for case in range(cases)
        ]

    one, other = knownlie_run(tmp_path / "one", rounds(False)), knownlie_run(tmp_path / "two", rounds(True))
    pair = compare(one, other, scores=["dr.incentive", "dr_pooled.incentive"]).pairs[0]
    assert [round(c.difference, 12) for c in pair.contrasts] == [0.5, 0.2]


def test_rounds_enter_only_where_both_runs_knew_and_were_judged(tmp_path):
    first = [played(False, case=f"refund-0{i}", position=i, seed=s) for i in range(4) for s in range(8)]
    second = [
        played(
            True,
            case=f"refund-0{i}",
            position=i,
            seed=s,
            gate=FAILED if i == 0 else played().gate,
            unscored="the judge said nothing usable" if i == 1 else None,
            missing="the provider failed" if i == 2 else None,
        )
        for i in range(4)
        for s in range(8)
    ]
    one, other = knownlie_run(tmp_path / "one", first), knownlie_run(tmp_path / "other", second)
    pair = compare(one, other).pairs[0]
    assert pair.shared["rounds"] == 32
    assert pair.shared["scored"] == 8
    assert pair.shared["scored_only_first"] == 24
    assert pair.contrast("knownlie.dr.incentive").denominators == (8, 8)
    # 1 of 4 cases failed its gate in the second run; the judge's failures are no matter of knowing.
    kpr = pair.contrast("knownlie.kpr.owed")
    assert (kpr.first, kpr.second) == (1, 0.75)


def test_too_few_trajectories_can_show_nothing_and_it_says_so(tmp_path):
    rounds = [
        [played(lie, case=f"refund-0{i}", position=i, seed=s) for i in range(8) for s in range(3)]
        for lie in (False, True)
    ]
    one, other = (knownlie_run(tmp_path / str(i), told) for i, told in enumerate(rounds))
    pair = compare(one, other).pairs[0]
    dr = pair.contrast("knownlie.dr.incentive")
    assert dr.difference == 1
    assert dr.smallest == math.inf
    assert dr.p_holm > 0.05
    assert "3 trajectories are too few for this test to show any difference" in effect(dr, "A", "B")
    assert any("Fewer than 6 units" in note for note in pair.notes)


def test_runs_that_share_no_round_are_refused(tmp_path):
    one = knownlie_run(tmp_path / "one", [played()])
    other = knownlie_run(tmp_path / "other", [played(seed=4)])
    with pytest.raises(BadInput, match="no round in common"):
        compare(one, other)
    empty = knownlie_run(tmp_path / "empty", [])
    with pytest.raises(BadInput, match="holds no rounds yet"):
        compare(one, empty)


def test_an_unfinished_run_is_compared_with_a_notice(tmp_path):
    one = knownlie_run(tmp_path / "one", lying(lambda *_: False))
    other = knownlie_run(tmp_path / "other", lying(lambda *_: True)[:30], status="running")
    pair = compare(one, other).pairs[0]
    assert any("interrupted: only what both runs hold" in note for note in pair.notes)
    assert pair.shared["rounds"] == 30


def test_the_smallest_difference_against_the_noncentral_t():
    found = smallest_difference(0.1, 25)
    critical = t.isf(0.025, 24)
    assert nct.sf(critical, 24, found / 0.1) == pytest.approx(0.8, abs=1e-6)
    assert smallest_difference(0.1, 25, 10) > found
    assert smallest_difference(0.1, 100_000) == pytest.approx(0.1 * (1.959964 + 0.841621), abs=1e-6)
    # p can't fall below 2^(1−u): 6 units reach 1/32, 5 only 1/16.
    assert smallest_difference(0.1, 5) == math.inf
    assert smallest_difference(0.1, 6) < math.inf
    assert smallest_difference(0.1, 6, 2) == math.inf
    # Nothing varied: 6 of 24 units must differ, each by a step; share q with Pr(Binomial(24, q) ≥ 6) = 0.8.
    units = smallest_difference(0.0, 24, step=0.01) / 0.01
    assert binom.sf(5, 24, units / 24) == pytest.approx(0.8, abs=1e-6)
    assert math.isnan(smallest_difference(0.0, 24))
    assert math.isnan(smallest_difference(math.nan, 24))


@pytest.mark.parametrize("instrument", ["csq", "knownlie"])
def test_without_a_difference_few_alarms(instrument):
    study = bench()
    smaller = {"chains": 40} if instrument == "csq" else {}
    pair = partial(getattr(study, f"{instrument}_pair"), permutations=600, **smaller)
    told = study.false_alarms(pair, 30)
    # 30 pairs at 5 % give more than 5 alarms in 1.6 % of tries. bench/comparison.py makes 1,000 pairs.
    assert told["false_alarms"] * 30 <= 5


def test_a_difference_of_the_stated_size_is_found_as_often_as_promised():
    study = bench()
    planted, found, stated = 0.1335, 0, []
    for i in range(50):
        told = study.knownlie_pair(i, planted, "knownlie.dr.incentive", permutations=600).pairs[0].contrasts[0]
        found += told.p_holm <= 0.05
        stated.append(told.smallest)
    assert sum(stated) / 50 == pytest.approx(planted, rel=0.1)
    # 40 of 50 are promised, with a standard error of 2.8: outside three of them the promise is broken.
    assert 32 <= found <= 48


def test_the_command_prints_a_table_words_and_json(runs, tmp_path):
    app = typer.Typer()
    app.command()(compare_runs)

    def run(*words):
        return CliRunner().invoke(app, [str(word) for word in words])

    same = run(runs["a"], runs["a"], "--by-n")
    assert same.exit_code == 0, same.output
    lines = [line.split() for line in same.output.splitlines() if line.strip().startswith(("rho", "delta", "error"))]
    assert len(lines) == 10
    for line in lines:
        assert [float(cell.strip("%")) for cell in (line[3], line[4], line[6])] == [0, 0, 0], line
    told = json.loads(run(runs["a"], runs["b"], "--scores", "error,delta_net", "--json").output)
    assert [one["name"] for one in told["pairs"][0]["scores"]] == ["csq.error", "csq.delta_net"]
    assert "errs more often than" in told["pairs"][0]["scores"][0]["words"]
    one = knownlie_run(tmp_path / "one", lying(lambda *_: False))
    other = knownlie_run(tmp_path / "other", lying(lambda *_: True), options={"judge": ["judge/y"]})
    assert isinstance(run(one, other).exception, BadInput)
    forced = run(one, other, "--force").output
    assert forced.startswith("NOT COMPARABLE, forced: judge is judge/x")
    assert forced.count("NOT COMPARABLE: ") >= 5
