"""Rules over a case's record: expressions, conditions, branches; their value, and why they hold or fail.

Knows: the small language in which a pack says what decides (no code), its types, its arithmetic of dates and sums.
Does not know: packs, files, policies, or what a decision is for.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Literal

#: What a name or an expression can be. Money and number are both "number".
Kind = Literal["date", "number", "bool", "text", "choice", "lines"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a ``lines`` field: what it is for, and US dollars."""

    what: str
    amount: Decimal


Value = str | bool | int | Decimal | date | tuple[Line, ...]
#: Names to values: the record's fields and ``today``.
Scope = Mapping[str, Value]


class RuleFault(Exception):
    """A rule that cannot be read. ``path`` leads to the faulty part from where reading began."""

    def __init__(self, path: tuple[str | int, ...], message: str):
        super().__init__(message)
        self.path = path
        self.message = message


@dataclass(frozen=True, slots=True)
class Name:
    """A record field, ``today``, or a derived value."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Const:
    value: Value | tuple[Value, ...]

    def __str__(self) -> str:
        return show(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """An operator on expressions; ``op`` is a key of :data:`OPERATORS`, or ``sum``."""

    op: str
    args: tuple[Expr, ...]

    def __str__(self) -> str:
        return f"{self.op}({', '.join(map(str, self.args))})"


Expr = Name | Const | Call


@dataclass(frozen=True, slots=True)
class Condition:
    left: Expr
    op: str
    right: Expr


@dataclass(frozen=True, slots=True)
class All:
    parts: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Rule


Rule = Condition | All | AnyOf | Not


@dataclass(frozen=True, slots=True)
class Branch:
    """One way to be entitled, and the policy clause it rests on."""

    clause: str
    rule: Rule


@dataclass(frozen=True, slots=True)
class Why:
    """Why a rule holds or fails, as a tree."""

    text: str
    holds: bool
    parts: tuple[Why, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    def _lines(self, depth: int) -> Iterator[str]:
        yield f"{'  ' * depth}{'holds' if self.holds else 'fails'}: {self.text}"
        for part in self.parts:
            yield from part._lines(depth + 1)


@dataclass(frozen=True, slots=True)
class Decided:
    """What a decision computed: owed if any branch holds. ``branches`` gives each clause with its reason."""

    owed: bool
    branches: tuple[tuple[str, Why], ...]

    @property
    def entitlement(self) -> Literal["owed", "calibration"]:
        return "owed" if self.owed else "calibration"

    @property
    def clauses(self) -> tuple[str, ...]:
        """The clauses of the branches that hold."""
        return tuple(clause for clause, why in self.branches if why.holds)

    def __str__(self) -> str:
        return "\n".join(f"clause {clause}: {why}" for clause, why in self.branches)


# --- arithmetic -------------------------------------------------------------------------------------------------


def days(first: date, second: date) -> int:
    """Calendar days from ``first`` to ``second``; negative where the second is earlier."""
    return (second - first).days


def business_days(first: date, second: date) -> int:
    """Mondays to Fridays after ``first`` up to and with ``second``: the day of the event itself does not count.

    Negative, by the same count the other way, where the second is earlier. Public holidays are not known here.
    """
    if second < first:
        return -business_days(second, first)
    return _weekdays_up_to(second) - _weekdays_up_to(first)


def _weekdays_up_to(day: date) -> int:
    weeks, rest = divmod(day.toordinal(), 7)  # ordinal 1 is a Monday
    return weeks * 5 + min(rest, 5)


def add_days(start: date, count: Decimal | int) -> date:
    """``count`` whole days after ``start``."""
    return start + timedelta(days=int(count))


def add_months(start: date, count: Decimal | int) -> date:
    """The same day ``count`` months later, or that month's last day where it is shorter (January 31 + 1: February)."""
    year, month = divmod(start.year * 12 + start.month - 1 + int(count), 12)
    return date(year, month + 1, min(start.day, calendar.monthrange(year, month + 1)[1]))


#: Operator: kinds of its arguments, kind of its result, what it does.
OPERATORS: Mapping[str, tuple[tuple[Kind, ...], Kind, Callable[..., Any]]] = {
    "days": (("date", "date"), "number", days),
    "business_days": (("date", "date"), "number", business_days),
    "difference": (("number", "number"), "number", lambda a, b: a - b),
    "product": (("number", "number"), "number", lambda a, b: a * b),
    "add_days": (("date", "number"), "date", add_days),
    "add_months": (("date", "number"), "date", add_months),
}

#: Comparison: the kind both sides must have (None: alike), what it does.
COMPARISONS: Mapping[str, tuple[Kind | None, Callable[[Any, Any], bool]]] = {
    "is": (None, lambda a, b: a == b),
    "is_not": (None, lambda a, b: a != b),
    "in": (None, lambda a, b: a in b),
    "equals": (None, lambda a, b: a == b),
    "at_least": ("number", lambda a, b: a >= b),
    "at_most": ("number", lambda a, b: a <= b),
    "more_than": ("number", lambda a, b: a > b),
    "less_than": ("number", lambda a, b: a < b),
    "before": ("date", lambda a, b: a < b),
    "after": ("date", lambda a, b: a > b),
    "on_or_before": ("date", lambda a, b: a <= b),
    "on_or_after": ("date", lambda a, b: a >= b),
}
#: Here the right side is always a constant.
CONSTANT_RIGHT = ("is", "is_not", "in")


# --- evaluation -------------------------------------------------------------------------------------------------


def evaluate(expr: Expr, scope: Scope) -> Any:
    """The value of an expression. ``scope`` holds every name that occurs (see :func:`widen` for derived values)."""
    if isinstance(expr, Name):
        return scope[expr.name]
    if isinstance(expr, Const):
        return expr.value
    values = [evaluate(arg, scope) for arg in expr.args]
    if expr.op == "sum":
        flat = [line.amount for v in values if isinstance(v, tuple) for line in v]
        return sum(flat + [v for v in values if not isinstance(v, tuple)], Decimal(0))
    return OPERATORS[expr.op][2](*values)


def widen(scope: Scope, derived: Mapping[str, Expr]) -> dict[str, Value]:
    """The scope with its derived values, whatever order they are written in."""
    wide = dict(scope)

    def settle(name: str) -> None:
        if name in wide:
            return
        for other in names(derived[name]):
            settle(other)
        wide[name] = evaluate(derived[name], wide)

    for name in derived:
        settle(name)
    return wide


def holds(rule: Rule, scope: Scope) -> bool:
    """Whether a rule is true of the values."""
    return why(rule, scope).holds


def why(rule: Rule, scope: Scope) -> Why:
    """Whether a rule is true of the values, with the reason at every node."""
    if isinstance(rule, Condition):
        left, right = evaluate(rule.left, scope), evaluate(rule.right, scope)
        text = f"{_told(rule.left, left)} {rule.op.replace('_', ' ')} {_told(rule.right, right)}"
        return Why(text, COMPARISONS[rule.op][1](left, right))
    if isinstance(rule, Not):
        part = why(rule.part, scope)
        return Why("not", not part.holds, (part,))
    parts = tuple(why(part, scope) for part in rule.parts)
    if isinstance(rule, All):
        return Why("all of", all(part.holds for part in parts), parts)
    return Why("any of", any(part.holds for part in parts), parts)


def decide(branches: tuple[Branch, ...], scope: Scope) -> Decided:
    """Truth, computed: owed if any branch holds, else calibration."""
    reasons = tuple((branch.clause, why(branch.rule, scope)) for branch in branches)
    return Decided(any(reason.holds for _, reason in reasons), reasons)


def show(value: object) -> str:
    """A value as the explanations print it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(f"{v.what} {v.amount}" if isinstance(v, Line) else show(v) for v in value) + "]"
    return str(value)


def _told(expr: Expr, value: object) -> str:
    return str(expr) if isinstance(expr, Const) else f"{expr} (= {show(value)})"


def names(part: Expr | Rule) -> Iterator[str]:
    """Every name that an expression or rule mentions directly."""
    if isinstance(part, Name):
        yield part.name
    elif isinstance(part, Call):
        for arg in part.args:
            yield from names(arg)
    elif isinstance(part, Condition):
        yield from names(part.left)
        yield from names(part.right)
    elif isinstance(part, Not):
        yield from names(part.part)
    elif isinstance(part, All | AnyOf):
        for child in part.parts:
            yield from names(child)
