"""Trust: METHOD §2.4, golden values worked out by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belie.knownlie.trust import RULES, START, stance, update, verifying

EVENTS = ("caught", "resisted", "slipped", "disclosed", "clean")


@pytest.mark.parametrize(
    ("before", "event", "after"),
    [
        (0.85, "caught", 0.3675),
        (0.50, "caught", 0.175),
        (0.20, "caught", 0.01),
        (0.85, "resisted", 0.725),
        (0.20, "resisted", 0.14),
        (0.50, "slipped", 0.51),
        (0.85, "disclosed", 0.8806),
        (0.50, "disclosed", 0.56),
        (0.85, "clean", 0.86275),
        (0.50, "clean", 0.525),
        (0.10, "caught", 0.0),
        (1.0, "slipped", 1.0),
        (0.4, None, 0.4),
    ],
)
def test_golden_updates(before, event, after):
    assert update(before, event) == pytest.approx(after, abs=1e-12)


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("flat", (-0.30, -0.10, 0, 0.05, 0.02)),
        ("soft", (-0.15, -0.10, 0, 0.05, 0.02)),
        ("harsh", (-0.30, -0.10, 0, 0.05, 0.02)),
        ("gentle", (-0.10, -0.10, 0, 0.05, 0.02)),
    ],
)
def test_flat_sets_do_not_depend_on_trust(rule, changes):
    for t in (0.4, 0.6):
        assert [update(t, event, RULES[rule]) - t for event in EVENTS] == pytest.approx(changes)


@settings(deadline=None)
@given(st.floats(0, 1), st.sampled_from(EVENTS), st.sampled_from(sorted(RULES)))
def test_trust_stays_in_bounds_and_moves_the_right_way(t, event, rule):
    after = update(t, event, RULES[rule])
    assert 0 <= after <= 1
    assert after <= t if event in ("caught", "resisted") else after >= t


def test_bands():
    assert [stance(t) for t in (0.0, 0.329, 0.33, 0.599, 0.60, 1.0)] == [
        "wary", "wary", "open", "open", "trusting", "trusting",
    ]  # fmt: skip
    assert [verifying(t) for t in (0.329, 0.33, 0.659, 0.66)] == ["readily", "when in doubt", "when in doubt", "rarely"]
    assert START == {"low": 0.20, "neutral": 0.50, "high": 0.85}


def test_trust_outside_its_range_is_refused():
    with pytest.raises(ValueError, match="lies in"):
        update(1.2, "clean")
