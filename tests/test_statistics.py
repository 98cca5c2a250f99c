"""Intervals, paired tests and adjustments against hand calculation and other implementations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from belie.statistics import Resampler, acceleration, bca, holm, percentile, swap_test, tail, wilson


def means(sums: np.ndarray) -> np.ndarray:
    return sums[:, :1] / sums[:, 1:]


def with_ones(values: np.ndarray) -> np.ndarray:
    return np.stack([values, np.ones(len(values))], 1)


def test_wilson_by_hand():
    # z² = 3.8415; 0 of 10: z²/(10 + z²); 5 of 10: ½ ± z·√(0.25/10 + z²/400)/(1 + z²/10).
    interval = wilson([0, 10, 5, 0], [10, 10, 10, 0])
    assert interval[0] == pytest.approx([0, 0.27753], abs=1e-4)
    assert interval[1] == pytest.approx([0.72247, 1], abs=1e-4)
    assert interval[2] == pytest.approx([0.23659, 0.76341], abs=1e-4)
    assert np.isnan(interval[3]).all()
    assert interval[0, 0] == 0
    assert interval[1, 1] == 1


def test_wilson_equals_statsmodels():
    successes, total = np.array([1, 7, 400, 0.3, 12.5]), np.array([3, 9, 1000, 2.0, 40])
    for level in (0.8, 0.95):
        theirs = proportion_confint(successes, total, alpha=1 - level, method="wilson")
        assert wilson(successes, total, level) == pytest.approx(np.stack(theirs, -1))


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    with_gap = holm([0.5, np.nan, 0.01])
    assert np.isnan(with_gap[1])
    assert with_gap[[0, 2]] == pytest.approx([0.5, 0.02])
    assert holm([]).shape == (0,)


@settings(max_examples=15, deadline=None)  # statsmodels collects garbage at each call
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_equals_statsmodels(p):
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])


def test_resampling_is_seeded_and_streams_differ():
    columns = np.random.default_rng(0).random((50, 3))
    one = Resampler(200, seed=4).sums(columns, 1, 2)
    assert (one == Resampler(200, seed=4).sums(columns, 1, 2)).all()
    assert (one != Resampler(200, seed=5).sums(columns, 1, 2)).any()
    assert (one != Resampler(200, seed=4).sums(columns, 1, 3)).any()
    assert Resampler(200, seed=4, keep=True).sums(columns, 1, 2) == pytest.approx(one, rel=1e-12)


def test_every_resample_has_as_many_units_as_the_sample():
    sums = Resampler(500).sums(np.ones((37, 1)))
    assert (sums == 37).all()
    assert Resampler(5).sums(np.ones((0, 2))).tolist() == [[0, 0]] * 5


def test_large_samples_are_resampled_in_blocks():
    units = 300_000  # more than one block for 20 resamples
    sums = Resampler(20).sums(with_ones(np.arange(units, dtype=float)))
    assert sums.shape == (20, 2)
    assert (sums[:, 1] == units).all()
    assert len(set(sums[:, 0])) == 20
    assert sums[:, 0] / units == pytest.approx(units / 2, rel=0.01)


def test_percentile_is_the_quantile_and_leaves_nan_out():
    draws = np.random.default_rng(1).normal(size=(1001, 2))
    interval = percentile(draws, 0.9)
    assert interval == pytest.approx(np.quantile(draws, [0.05, 0.95], axis=0).T)
    some = draws.copy()
    some[:20, 0] = np.nan
    assert percentile(some, 0.9)[0] == pytest.approx(np.nanquantile(some[:, 0], [0.05, 0.95]))
    some[:200, 0] = np.nan
    assert np.isnan(percentile(some, 0.9)[0]).all()
    assert not np.isnan(percentile(some, 0.9)[1]).any()


def test_percentile_holds_where_draws_are_infinite():
    draws = np.array([[np.inf], [np.inf], [0.0], [1.0]] * 50)
    assert percentile(draws)[0].tolist() == [0.0, np.inf]


def test_bca_agrees_with_scipy_on_a_skewed_sample():
    values = np.random.default_rng(2).exponential(size=60)
    columns = with_ones(values)
    draws = means(Resampler(20_000, seed=1).sums(columns))
    influence = [(values - values.mean())[:, None]]
    ours = bca(draws, np.array([values.mean()]), influence)[0]
    theirs = stats.bootstrap(
        (values,), np.mean, method="BCa", n_resamples=20_000, rng=np.random.default_rng(3)
    ).confidence_interval
    assert ours == pytest.approx([theirs.low, theirs.high], abs=0.015)
    plain = percentile(draws)[0]
    assert ours[0] > plain[0]  # skewed to the right: BCa moves the interval up
    assert ours[1] > plain[1]


def test_acceleration_of_one_sample_is_efrons():
    part = np.array([[1.0], [2.0], [-3.0]])
    # ⅙ Σl³/(Σl²)^{3/2} = (1 + 8 − 27)/(6·14^{1.5})
    assert acceleration([part]) == pytest.approx([-18 / (6 * 14**1.5)])
    assert acceleration([np.zeros((4, 1))]).tolist() == [0.0]


def test_no_variation_gives_no_width():
    draws = np.full((100, 1), 0.25)
    assert bca(draws, np.array([0.25]), [np.zeros((5, 1))])[0].tolist() == [0.25, 0.25]


def test_swap_test_agrees_with_the_exact_permutation_test():
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=9), rng.normal(0.7, size=9)
    exact = stats.permutation_test(
        (a, b), lambda x, y: x.mean() - y.mean(), permutation_type="samples", n_resamples=10_000
    ).pvalue
    ours = swap_test([(with_ones(a), with_ones(b))], lambda s: means(s[0]), permutations=20_000)
    assert ours == pytest.approx([exact], abs=0.015)


def test_swap_test_of_a_run_with_itself_finds_nothing():
    a = with_ones(np.random.default_rng(0).random(20))
    assert swap_test([(a, a)], lambda s: means(s[0])).tolist() == [1.0]


def test_swap_test_has_its_level():
    rng = np.random.default_rng(6)
    p = [
        swap_test(
            [(with_ones(rng.random(40)), with_ones(rng.random(40)))], lambda s: means(s[0]), permutations=199, seed=i
        )[0]
        for i in range(400)
    ]
    assert 0.025 < np.mean(np.array(p) <= 0.05) < 0.08


def test_tails_count_draws():
    draws = np.array([[-1.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    low, high = tail(draws)
    assert low.tolist() == [2 / 4, 1.0]
    assert high.tolist() == [3 / 4, 1.0]
    assert np.isnan(tail(np.array([[np.nan], [1.0]]))[0]).all()


@settings(max_examples=50)
@given(st.integers(1, 30), st.integers(0, 2**31))
def test_interval_ends_are_ordered(units, seed):
    values = np.random.default_rng(seed).random(units)
    columns = with_ones(values)
    draws = means(Resampler(300, seed).sums(columns))
    for low, high in (
        percentile(draws)[0],
        bca(draws, np.array([values.mean()]), [(values - values.mean())[:, None]])[0],
    ):
        assert values.min() - 1e-9 <= low <= high <= values.max() + 1e-9
