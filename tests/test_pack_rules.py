"""The rule language: golden values by hand, laws by hypothesis, and every way a rule can be written wrongly."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belie.knownlie.pack import load_pack
from belie.knownlie.rule import (
    All,
    AnyOf,
    Branch,
    Condition,
    Const,
    Line,
    Name,
    Not,
    Rule,
    RuleFault,
    add_months,
    business_days,
    days,
    decide,
    evaluate,
    holds,
    why,
    widen,
)
from belie.knownlie.rule_reader import RuleReader, reach

KINDS = {
    "sent": "date",
    "came": "date",
    "price": "number",
    "count": "number",
    "used": "bool",
    "state": "choice",
    "name": "text",
    "other_name": "text",
    "lines": "lines",
    "today": "date",
}
SCOPE = {
    "sent": date(2026, 3, 16),  # a Monday
    "came": date(2026, 3, 28),  # a Saturday
    "price": Decimal("84.50"),
    "count": 3,
    "used": False,
    "state": "new",
    "name": "Ada",
    "other_name": "Ada",
    "lines": (Line("seat", Decimal("60.00")), Line("bag", Decimal("24.50"))),
    "today": date(2026, 4, 1),
}
day = st.dates(date(1990, 1, 1), date(2060, 12, 31))


def reader() -> RuleReader:
    return RuleReader(KINDS, {"state": ("new", "worn")})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("price", Decimal("84.50")),
        ({"const": "sent"}, "sent"),
        ({"days": ["sent", "came"]}, 12),
        ({"days": ["came", "sent"]}, -12),
        ({"business_days": ["sent", "came"]}, 9),  # Tue 17 … Fri 20, Mon 23 … Fri 27
        ({"business_days": ["came", date(2026, 3, 30)]}, 1),  # the Monday after the Saturday
        ({"business_days": ["came", "came"]}, 0),
        ({"sum": "lines"}, Decimal("84.50")),
        ({"sum": ["price", "count", Decimal("0.50")]}, Decimal("88.00")),
        ({"difference": ["price", {"sum": "lines"}]}, Decimal(0)),
        ({"product": ["price", Decimal("0.1")]}, Decimal("8.450")),
        ({"add_days": ["sent", 16]}, date(2026, 4, 1)),
        ({"add_days": ["sent", {"product": ["count", -1]}]}, date(2026, 3, 13)),
        ({"add_months": [date(2026, 1, 31), 1]}, date(2026, 2, 28)),
        ({"add_months": [date(2023, 11, 30), 3]}, date(2024, 2, 29)),
        ({"add_months": ["sent", -15]}, date(2024, 12, 16)),
        ({"days": ["today", {"add_days": ["came", 30]}]}, 26),
    ],
)
def test_expressions(raw: object, value: object) -> None:
    assert evaluate(reader().expr(raw), SCOPE) == value


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ({"value": "state", "is": "new"}, True),
        ({"value": "state", "is_not": "new"}, False),
        ({"value": "state", "in": ["new", "worn"]}, True),
        ({"value": "used", "is": False}, True),
        ({"value": "name", "equals": "other_name"}, True),
        ({"value": "name", "is": "other_name"}, False),  # a constant, not the field
        ({"value": "name", "equals": "Ada"}, True),
        ({"value": "price", "equals": {"sum": "lines"}}, True),
        ({"value": {"days": ["sent", "came"]}, "at_most": 12}, True),
        ({"value": {"days": ["sent", "came"]}, "less_than": 12}, False),
        ({"value": "price", "at_least": Decimal("84.50")}, True),
        ({"value": "price", "more_than": Decimal("84.50")}, False),
        ({"value": "sent", "before": "came"}, True),
        ({"value": "sent", "after": date(2026, 3, 16)}, False),
        ({"value": "sent", "on_or_before": date(2026, 3, 16)}, True),
        ({"value": "sent", "on_or_after": date(2026, 3, 17)}, False),
        ({"all": [{"value": "used", "is": False}, {"value": "count", "equals": 3}]}, True),
        ({"any": [{"value": "used", "is": True}, {"value": "count", "equals": 4}]}, False),
        ({"not": {"any": [{"value": "used", "is": True}, {"value": "count", "equals": 4}]}}, True),
    ],
)
def test_rules(raw: object, value: bool) -> None:
    assert holds(reader().rule(raw), SCOPE) is value


@pytest.mark.parametrize(
    ("raw", "path", "says"),
    [
        ({"value": "prize", "is": 1}, ("value",), "neither a record field nor a derived value"),
        ({"value": "price", "above": 1}, ("above",), "one comparison"),
        ({"value": "price", "at_least": 1, "at_most": 2}, (), "one comparison"),
        ({"value": "price", "before": 1}, ("value",), "price is a number; before compares dates"),
        ({"value": "sent", "before": "price"}, ("before",), "price is a number; sent is a date"),
        ({"value": "price", "at_least": "a lot"}, ("at_least",), "neither"),
        ({"value": "state", "is": "old"}, ("is",), "not a choice of state"),
        ({"value": "state", "in": ["new", "old"]}, ("in", 1), "not a choice of state"),
        ({"value": "state", "in": "new"}, ("in",), "list of constants"),
        ({"value": "used", "is": "no"}, ("is",), "used is a bool"),
        ({"value": "price", "is": True}, ("is",), "price is a number"),
        ({"value": "price", "is": {"const": 1}}, ("is",), "must be a constant"),
        ({"value": "lines", "equals": "lines"}, ("value",), "lines"),
        ({"value": {"days": ["sent"]}, "is": 1}, ("value", "days"), "list of 2"),
        ({"value": {"sum": "price"}, "is": 1}, ("value", "sum"), "price is a number; a lines is needed"),
        ({"value": {"sum": []}, "is": 1}, ("value", "sum"), "takes a lines field or a list"),
        ({"value": {"days": ["sent", "came"], "sum": "lines"}, "is": 1}, ("value",), "a name or one"),
        ({"all": []}, ("all",), "takes a list of rules"),
        ({"all": [{"not": []}]}, ("all", 0, "not"), "a rule is"),
        ({"all": [], "any": []}, (), "one of all, any, not"),
        ({"every": []}, (), "found every"),
        (True, (), "a rule is"),
    ],
)
def test_faulty_rules_name_the_place(raw: object, path: tuple[object, ...], says: str) -> None:
    with pytest.raises(RuleFault) as caught:
        reader().rule(raw)
    assert caught.value.path == path
    assert says in caught.value.message


def test_derived_values_in_any_order_and_what_they_rest_on() -> None:
    one = reader()
    derived, faults = one.derived(
        {"late_by": {"difference": ["took", 10]}, "took": {"days": ["sent", "came"]}, "half": {"product": ["price", 2]}}
    )
    assert faults == []
    wide = widen(SCOPE, derived)
    assert (wide["late_by"], wide["took"], wide["half"]) == (2, 12, Decimal("169.00"))
    assert reach(one.rule({"not": {"value": "late_by", "at_least": "count"}}), derived) == {"sent", "came", "count"}


def test_a_derived_value_may_not_hide_a_field_nor_rest_on_itself() -> None:
    _, faults = reader().derived(
        {"price": {"sum": "lines"}, "a": {"sum": ["b"]}, "b": {"sum": ["a"]}, "c": {"const": "b"}}
    )
    assert [(fault.path, fault.message) for fault in faults] == [
        (("price",), "price is already a record field"),
        (("a",), "rests on itself, directly or in a circle"),
        (("b",), "rests on itself, directly or in a circle"),
    ]


def test_decision_explains_which_branch_held() -> None:
    one = reader()
    branches = (
        one.branch({"clause": "2", "all": [{"value": "state", "is": "new"}, {"value": "used", "is": True}]}),
        one.branch({"clause": 3, "value": {"days": ["sent", "came"]}, "at_most": 30}),
    )
    decided = decide(branches, SCOPE)
    assert (decided.entitlement, decided.clauses) == ("owed", ("3",))
    assert str(decided) == (
        "clause 2: fails: all of\n"
        "  holds: state (= new) is new\n"
        "  fails: used (= false) is true\n"
        "clause 3: holds: days(sent, came) (= 12) at most 30"
    )
    assert decide(branches[:1], SCOPE).entitlement == "calibration"
    with pytest.raises(RuleFault, match="number of the clause"):
        one.branch({"value": "used", "is": True})


# --- laws -------------------------------------------------------------------------------------------------------

_leaf = st.builds(
    lambda op, n: Condition(Name("count"), op, Const(n)), st.sampled_from(["at_least", "equals"]), st.integers(0, 6)
)
rules: st.SearchStrategy[Rule] = st.recursive(
    _leaf,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(All, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=8,
)


@given(st.lists(rules, min_size=1, max_size=4), st.integers(0, 6))
def test_de_morgan(parts: list[Rule], count: int) -> None:
    scope = {"count": count}
    turned = tuple(Not(part) for part in parts)
    assert holds(Not(All(tuple(parts))), scope) == holds(AnyOf(turned), scope)
    assert holds(Not(AnyOf(tuple(parts))), scope) == holds(All(turned), scope)


@given(rules, st.integers(0, 6))
def test_the_reason_agrees_with_its_parts(rule: Rule, count: int) -> None:
    reason = why(rule, {"count": count})
    inner = [part.holds for part in reason.parts]
    match rule:
        case Not():
            assert inner == [not reason.holds]
        case All():
            assert reason.holds == (False not in inner)
        case AnyOf():
            assert reason.holds == (True in inner)
        case Condition(op=op, right=Const(value=int(limit))):
            assert reason.holds == (count >= limit if op == "at_least" else count == limit)


@given(day, day)
def test_days_are_antisymmetric(first: date, second: date) -> None:
    assert days(first, second) == -days(second, first)
    assert first + timedelta(days=days(first, second)) == second
    assert business_days(first, second) == -business_days(second, first)


@given(day, st.integers(0, 3000))
def test_business_days_against_numpy(first: date, span: int) -> None:
    """numpy counts the first day and not the last; a term counts the last and not the first: hence one day on."""
    second = first + timedelta(days=span)
    one = timedelta(days=1)
    assert business_days(first, second) == int(np.busday_count(first + one, second + one))


@given(day, st.integers(-60, 60))
def test_months_land_in_the_right_month(start: date, count: int) -> None:
    end = add_months(start, count)
    assert end.year * 12 + end.month == start.year * 12 + start.month + count
    assert end.day == start.day or (end.day < start.day and (end + timedelta(days=1)).day == 1)


@given(st.lists(st.decimals("-9999.99", "9999.99", places=2), max_size=8))
def test_sums_are_exact_to_the_cent(amounts: list[Decimal]) -> None:
    expr = reader().expr({"sum": "lines"})
    lines = tuple(Line("x", amount) for amount in amounts)
    assert int(evaluate(expr, {**SCOPE, "lines": lines}) * 100) == sum(int(amount * 100) for amount in amounts)


@given(st.sets(st.sampled_from("ab"), max_size=2), st.integers(0, 6))
def test_owed_is_any_branch(held: set[str], count: int) -> None:
    branches = tuple(
        Branch(c, Condition(Name("count"), "equals" if c in held else "is_not", Const(count))) for c in "ab"
    )
    decided = decide(branches, {"count": count})
    assert set(decided.clauses) == held
    assert (decided.entitlement == "owed") == bool(held)


# --- what the agent reads ---------------------------------------------------------------------------------------


def test_record_and_policy_as_the_agent_reads_them() -> None:
    pack = load_pack(Path(__file__).parent / "data" / "pack_good")
    case = pack.case("ferry-01")
    assert pack.record_text(case).split("\n") == [
        "Today: 2026-05-06 (Wednesday)",
        "Ticket number: SF-1001",
        "Traveller: Ada Brill",
        "Paid with: Visa ending 1101",
        "Kind of fare: saver",
        "Charges:",
        "  - Passage: $60.00",
        "  - Cabin: $24.50",
        "Fare paid: $84.50",
        "Booked on: 2026-04-01 (Wednesday)",
        "Date of sailing: 2026-05-04 (Monday)",
        "Status of the sailing: cancelled",
        "Took a later boat: no",
        "Refund asked for on: 2026-05-05 (Tuesday)",
        "Cars on the ticket: 0",
    ]
    text = pack.policy_text()
    assert text.startswith("# Fare conditions of Saltmarsh Ferries\n\n1. **Scope.** These conditions hold")
    assert "at least 7 calendar days before the sailing (the day of sailing is not counted). (company rule)" in text
    assert pack.policy.clause("4").cite == "46 CFR 999.2(b); company rule"
    assert (pack.reference(case), pack.customer(case)) == ("SF-1001", "Ada Brill")
    assert pack.scope(case)["half_fare"] == Decimal("42.25")
