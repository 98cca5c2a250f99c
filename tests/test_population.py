"""Analyses over many models: values by hand, intervals, warnings, and the tables of facts."""

# pyright: reportArgumentType=false

import json
import math
from datetime import date
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from compared_runs import csq_run
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from belie.cli.population import over_models
from belie.csq.facts import ModelFacts, load_facts
from belie.csq.population import Point, absolute, population
from belie.csq.release_plot import release_plot
from belie.csq.scores import Figure
from belie.respondents.base import BadInput


def point(name, delta, rho, *, family=None, size=math.nan, released=None):
    figures = {"delta": Figure(delta, delta - 0.02, delta + 0.02), "rho": Figure(rho, rho - 0.1, rho + 0.1)}
    figures |= {"abs_rho": absolute(figures["rho"]), "delta_net": Figure(delta / 2), "error": Figure(0.3)}
    return Point(name, figures, ModelFacts(family, size, released))


def test_spearman_by_hand():
    # ranks of δ̄ 1…5, of |ρ̄| 2 1 4 3 5: Σd² = 4, so ρ = 1 − 6·4/(5·24) = 0.8
    rho = (-0.2, 0.1, 0.4, -0.3, 0.5)
    told = population(point(str(i), 0.1 * i, r) for i, r in enumerate(rho)).association
    assert told.value == pytest.approx(0.8)
    # 120 orders; those with Σd² ≤ 4 (|ρ| ≥ 0.8), both ends: 1 + 4 + 3 = 8 a side, hence 16/120
    assert told.p == pytest.approx(16 / 120)
    half = 1.959964 * math.sqrt((1 + 0.8**2 / 2) / 2)
    assert told.low == pytest.approx(math.tanh(math.atanh(0.8) - half), abs=1e-6)
    assert told.high == pytest.approx(math.tanh(math.atanh(0.8) + half), abs=1e-6)


def test_a_perfect_order_is_not_certain():
    told = population(point(str(i), 0.1 * i, 0.1 * i) for i in range(12)).association
    assert told.value == 1
    assert 0.8 < told.low < 0.99
    assert told.high == 1


def test_the_regression_by_hand():
    # δ̄ = 0.1 + 0.05·log₁₀(size) exactly, but for one model 0.04 above
    sizes = (1e8, 1e9, 1e10, 1e11)
    values = [0.1 + 0.05 * math.log10(size) for size in sizes]
    values[3] += 0.04
    told = population(
        point(str(i), v, 0.1, family="AB"[i % 2], size=s) for i, (v, s) in enumerate(zip(values, sizes, strict=True))
    )
    delta = told.regressions[0]
    reference: Any = stats.linregress([8, 9, 10, 11], values)
    assert delta.whole.value == pytest.approx(reference.slope)
    assert delta.intercept == pytest.approx(reference.intercept)
    half = stats.t.ppf(0.975, 2) * reference.stderr
    assert (delta.whole.low, delta.whole.high) == pytest.approx((reference.slope - half, reference.slope + half))
    assert delta.whole.p == pytest.approx(reference.pvalue)
    assert delta.r2 == pytest.approx(reference.rvalue**2)
    assert [one.label for one in delta.left_out] == ["0", "1", "2", "3"]
    assert delta.left_out[3].value == pytest.approx(0.05)  # without the odd one the line is exact
    predicted = [np.polyval(np.polyfit(np.delete([8, 9, 10, 11], i), np.delete(values, i), 1), 8 + i) for i in range(4)]
    means = [np.delete(values, i).mean() for i in range(4)]
    press = sum((v - p) ** 2 for v, p in zip(values, predicted, strict=True))
    null = sum((v - m) ** 2 for v, m in zip(values, means, strict=True))
    assert delta.r2_left_out == pytest.approx(1 - press / null)
    # inside families: A holds 8 and 10 with slope 0.05, B 9 and 11 with (0.1 + 0.04)/2 = 0.07; together their mean
    assert delta.within.value == pytest.approx(0.06)
    assert delta.within.models == 4
    assert [(one.label, round(one.value, 9)) for one in delta.families_left_out] == [("A", 0.07), ("B", 0.05)]
    assert delta.families == ()


def test_a_family_of_three_has_a_slope_of_its_own():
    told = population(point(str(i), 0.1 * i, 0.1, family="A", size=10.0 ** (8 + i)) for i in range(3))
    (family,) = told.regressions[0].families
    assert (family.label, family.models, round(family.value, 9)) == ("A", 3, 0.1)
    assert any("all of one family" in warning or "of one family (A)" in warning for warning in told.warnings)


def test_below_ten_models_a_plain_warning():
    nine = population(point(str(i), 0.1 + 0.01 * i, 0.1, size=1e9 * (i + 1)) for i in range(9))
    assert nine.warnings[0].startswith("Only 9 models: with fewer than 10")
    ten = population(
        point(str(i), 0.1 + 0.01 * i, 0.1 * i, family=str(i), size=1e9 * (i + 1), released=date(2024, 1, 1 + i))
        for i in range(10)
    )
    assert ten.warnings == ()
    unsized = population([point(str(i), 0.1 * i, 0.1, size=1e9 if i else math.nan) for i in range(11)])
    assert any("No number of parameters is known of 0" in warning for warning in unsized.warnings)
    assert len(unsized.regressions[0].left_out) == 10


def test_too_few_and_twice_are_refused():
    with pytest.raises(BadInput, match="at least two runs"):
        population([point("a", 0.1, 0.1)])
    with pytest.raises(BadInput, match="a comes twice"):
        population([point("a", 0.1, 0.1), point("a", 0.2, 0.1)])


@given(st.lists(st.tuples(st.floats(0, 0.5), st.floats(-2, 2), st.floats(6, 12)), min_size=2, max_size=14))
@settings(max_examples=60, deadline=None)
def test_any_models_give_intervals_around_their_values(told):
    result = population(point(str(i), d, r, family=str(i % 3), size=10**s) for i, (d, r, s) in enumerate(told))
    for one in (result.association, *(r.whole for r in result.regressions), *(r.within for r in result.regressions)):
        if not math.isnan(one.value) and not math.isnan(one.low):
            assert one.low <= one.value <= one.high
            assert 0 <= one.p <= 1
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["models"][0]["model"]


def test_absolute_folds_the_interval():
    assert absolute(Figure(-0.5, -0.7, -0.2)) == Figure(0.5, 0.2, 0.7)
    assert absolute(Figure(0.1, -0.3, 0.2)) == Figure(0.1, 0.0, 0.3)


def test_the_plot_is_one_safe_document():
    points = [
        point("<script>alert(1)</script>\x1b\u202e", 0.1, 0.1, family="A&B", released=date(2024, 5, 1)),
        point("b", 0.3, -0.4, family="C", released=date(2025, 2, 1)),
        point("c", 0.2, 0.4),
    ]
    told = population(points)
    assert [one.model for one in told.points][-1] == "c"
    svg = release_plot(told)
    assert "<script" not in svg
    root = ElementTree.fromstring(svg)
    assert len(root.findall("{http://www.w3.org/2000/svg}circle")) == 4
    assert "Without a day of release: c" in svg
    assert "No day of release is known" in release_plot(population([*points[2:], point("d", 0.1, 0.1)]))


def test_facts_ship_and_a_users_own_go_first(tmp_path):
    shipped = load_facts()
    told = shipped.of("local/smollm2-135m")
    assert (told.family, told.parameters) == ("SmolLM2", 135e6)
    assert shipped.of("hf/HuggingFaceTB/SmolLM2-135M-Instruct") == told
    assert shipped.of("http/unheard-of") == ModelFacts()
    own = tmp_path / "facts.csv"
    own.write_text("name,family,parameters,released\nsmollm2-135m,Mine,2e9,2025-01-02\nx,,,\n")
    mine = load_facts(own)
    assert mine.of("local/smollm2-135m") == ModelFacts("Mine", 2e9, date(2025, 1, 2))
    assert mine.of("x").family is None
    yaml = tmp_path / "facts.yaml"
    yaml.write_text("models:\n  - names: [x]\n    parameters: 3e9\n")
    assert load_facts(yaml).of("x").parameters == 3e9


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("f.csv", "name,size\nx,1\n", "f.csv:1: the columns must be"),
        ("f.csv", "name,parameters\nx,1\ny,many\n", "f.csv:3: this row"),
        ("f.csv", "name,released\nx,May\n", "f.csv:2: this row"),
        ("f.csv", "name,parameters\nx,-1\n", "f.csv:2: this row"),
        ("f.yaml", "models:\n  - names: [x]\n    parameters: many\n", "f.yaml:3: models.0.parameters"),
        ("f.yaml", "models:\n  - family: x\n", "f.yaml:2: models.0.names"),
    ],
)
def test_a_wrong_table_names_file_line_and_field(tmp_path, name, text, place):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        load_facts(path)
    assert str(caught.value).startswith(f"{tmp_path}/{place}"), caught.value


def test_over_run_folders(tmp_path):
    paths = [csq_run(tmp_path / str(i), f"deceiver({0.2 + 0.2 * i})", chains=30) for i in range(3)]
    told = over_models(paths)
    assert [p.model for p in told.points] == ["sim/deceiver(w=0.2)", "sim/deceiver(w=0.4)", "sim/deceiver(w=0.6)"]
    assert told.points[0].figures["delta"].value < told.points[2].figures["delta"].value
    other = csq_run(tmp_path / "other", "guesser", sizes=(3,), chains=30)
    with pytest.raises(BadInput, match="was asked otherwise"):
        over_models([*paths, other])
