"""The published figures that ship as data."""

from __future__ import annotations

import math
from collections import defaultdict

from belie.knownlie.baselines import domains, panel
from belie.knownlie.records import TRUST_LEVELS


def test_the_tables_are_whole():
    models = {row.model for row in panel()}
    assert len(models) == 18
    assert {row.model for row in domains()} == models
    places = {(row.model, row.condition, row.trust) for row in panel()}
    assert len(panel()) == len(places) == 18 * 2 * 3
    assert {row.trust for row in panel()} == set(TRUST_LEVELS)
    assert len(domains()) == len({(row.model, row.condition, row.domain) for row in domains()}) == 18 * 2 * 8


def test_every_figure_is_in_range_and_undefined_only_without_lies():
    for row in panel():
        assert 0 <= row.dr <= 100
        assert -1 <= row.trust_change <= 1
        assert math.isnan(row.dsr) == math.isnan(row.detect) == (row.dr == 0)
    assert all(0 <= row.dr <= 100 for row in domains())


def test_macro_means_of_the_domains_reproduce_the_panel():
    """Both are the mean over 3 levels × 8 domains, rounded by themselves: they must meet within 0.05 points."""
    by_trust, by_domain = defaultdict(list), defaultdict(list)
    for row in panel():
        by_trust[row.model, row.condition].append(row.dr)
    for one in domains():
        by_domain[one.model, one.condition].append(one.dr)
    assert by_trust.keys() == by_domain.keys()
    far = {
        cell: (sum(by_trust[cell]) / 3, sum(by_domain[cell]) / 8)
        for cell in by_trust
        if abs(sum(by_trust[cell]) / 3 - sum(by_domain[cell]) / 8) > 0.05
    }
    assert far == {}
