"""Reads rules from plain data, checking every name and type while reading.

Knows: how expressions, conditions and rules are written in domain.yaml.
Does not know: files and lines (a fault carries the path inside what was read).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from belie.knownlie.rule import (
    COMPARISONS,
    CONSTANT_RIGHT,
    OPERATORS,
    All,
    AnyOf,
    Branch,
    Call,
    Condition,
    Const,
    Expr,
    Kind,
    Name,
    Not,
    Rule,
    RuleFault,
    names,
)

Steps = tuple[str | int, ...]


class RuleReader:
    """Reads rules over ``kinds`` (every record field and ``today``); ``choices`` are the values of choice fields."""

    def __init__(self, kinds: Mapping[str, Kind], choices: Mapping[str, Iterable[str]] | None = None):
        self.kinds = dict(kinds)
        self.choices = {name: tuple(values) for name, values in (choices or {}).items()}

    def derived(self, raw: Mapping[str, Any]) -> tuple[dict[str, Expr], list[RuleFault]]:
        """Derived values, in any order; afterwards their names are known to this reader."""
        faults: list[RuleFault] = []
        done: dict[str, Expr] = {}
        waiting = dict(raw)
        while waiting:
            ready = [name for name, data in waiting.items() if not (_words(data) & (set(waiting) - set(self.kinds)))]
            if not ready:
                for name in waiting:
                    faults.append(RuleFault((name,), "rests on itself, directly or in a circle"))
                break
            for name in ready:
                data = waiting.pop(name)
                try:
                    if name in self.kinds:
                        raise RuleFault((), f"{name} is already a record field")
                    expr = self.expr(data)
                    self.kinds[name] = self.kind(expr)
                    done[name] = expr
                except RuleFault as fault:
                    self.kinds.setdefault(name, "number")
                    faults.append(RuleFault((name, *fault.path), fault.message))
        return done, faults

    def kind(self, expr: Expr) -> Kind:
        """What an expression yields."""
        if isinstance(expr, Name):
            return self.kinds[expr.name]
        if isinstance(expr, Call):
            return "number" if expr.op == "sum" else OPERATORS[expr.op][1]
        return _constant_kind(expr.value)

    def expr(self, raw: Any, path: Steps = ()) -> Expr:
        """EXPR := name | number | date | {const: X} | {operator: [EXPR, EXPR]} | {sum: lines field or [EXPR…]}."""
        if isinstance(raw, str):
            if raw not in self.kinds:
                raise RuleFault(path, f"{raw!r} is neither a record field nor a derived value")
            return Name(raw)
        if isinstance(raw, bool | int | Decimal | date):
            return Const(raw)
        if not isinstance(raw, dict) or len(raw) != 1:
            raise RuleFault(path, "an expression is a name or one {operator: …}")
        ((op, inner),) = raw.items()
        here = (*path, op)
        if op == "const":
            if not isinstance(inner, str | bool | int | Decimal | date):
                raise RuleFault(here, "a constant is a text, number, date, true or false")
            return Const(inner)
        if op == "sum":
            return self._sum(inner, here)
        if op not in OPERATORS:
            raise RuleFault(path, f"{op!r} is not an operator (const, sum, {', '.join(OPERATORS)})")
        wanted = OPERATORS[op][0]
        if not isinstance(inner, list) or len(inner) != len(wanted):
            raise RuleFault(here, f"{op} takes a list of {len(wanted)}")
        pairs = zip(inner, wanted, strict=True)
        return Call(op, tuple(self._typed(arg, kind, (*here, i)) for i, (arg, kind) in enumerate(pairs)))

    def _sum(self, inner: Any, here: Steps) -> Expr:
        if isinstance(inner, str):
            return Call("sum", (self._typed(inner, "lines", here),))
        if not isinstance(inner, list) or not inner:
            raise RuleFault(here, "sum takes a lines field or a list of expressions")
        return Call("sum", tuple(self._typed(arg, "number", (*here, i)) for i, arg in enumerate(inner)))

    def _typed(self, raw: Any, wanted: Kind, path: Steps) -> Expr:
        expr = self.expr(raw, path)
        if self.kind(expr) != wanted:
            raise RuleFault(path, f"{expr} is a {self.kind(expr)}; a {wanted} is needed here")
        return expr

    def rule(self, raw: Any, path: Steps = ()) -> Rule:
        """RULE := CONDITION | {all: […]} | {any: […]} | {not: RULE}."""
        if not isinstance(raw, dict):
            raise RuleFault(path, "a rule is {value: …, comparison: …}, {all: […]}, {any: […]} or {not: …}")
        if "value" in raw:
            return self._condition(raw, path)
        if len(raw) != 1 or next(iter(raw)) not in ("all", "any", "not"):
            found = ", ".join(raw) or "nothing"
            raise RuleFault(path, f"a rule is a condition with 'value', or one of all, any, not; found {found}")
        ((word, inner),) = raw.items()
        here = (*path, word)
        if word == "not":
            return Not(self.rule(inner, here))
        if not isinstance(inner, list) or not inner:
            raise RuleFault(here, f"{word} takes a list of rules")
        parts = tuple(self.rule(part, (*here, i)) for i, part in enumerate(inner))
        return All(parts) if word == "all" else AnyOf(parts)

    def branch(self, raw: Any, path: Steps = ()) -> Branch:
        """One branch of the decision: ``clause`` beside its rule."""
        if not isinstance(raw, dict) or "clause" not in raw:
            raise RuleFault(path, "a branch needs the number of the clause it rests on ('clause')")
        clause = raw["clause"]
        if not isinstance(clause, str | int) or isinstance(clause, bool):
            raise RuleFault((*path, "clause"), "is not the number of a clause")
        return Branch(str(clause), self.rule({k: v for k, v in raw.items() if k != "clause"}, path))

    def _condition(self, raw: dict[str, Any], path: Steps) -> Condition:
        ops = [key for key in raw if key != "value"]
        if len(ops) != 1 or ops[0] not in COMPARISONS:
            unknown = next((key for key in ops if key not in COMPARISONS), None)
            where = (*path, unknown) if unknown else path
            raise RuleFault(where, f"a condition has 'value' and one comparison ({', '.join(COMPARISONS)})")
        op = ops[0]
        left = self.expr(raw["value"], (*path, "value"))
        kind, here = self.kind(left), (*path, op)
        if op == "in":
            if not isinstance(raw[op], list) or not raw[op]:
                raise RuleFault(here, "in takes a list of constants")
            items = [self._constant(left, item, (*here, i)) for i, item in enumerate(raw[op])]
            return Condition(left, op, Const(tuple(items)))
        if op in CONSTANT_RIGHT:
            return Condition(left, op, Const(self._constant(left, raw[op], here)))
        wanted = COMPARISONS[op][0] or kind
        if wanted != kind or kind == "lines":
            raise RuleFault((*path, "value"), f"{left} is a {kind}; {op} compares {wanted}s")
        return Condition(left, op, self._right(left, kind, raw[op], here))

    def _right(self, left: Expr, kind: Kind, raw: Any, here: Steps) -> Expr:
        textual = kind in ("text", "choice")
        if textual and isinstance(raw, str) and raw not in self.kinds:
            return Const(self._constant(left, raw, here))
        right = self.expr(raw, here)
        other = self.kind(right)
        if other != kind and not (textual and other in ("text", "choice")):
            raise RuleFault(here, f"{right} is a {other}; {left} is a {kind}")
        return right

    def _constant(self, left: Expr, raw: Any, here: Steps) -> Any:
        kind = self.kind(left)
        if not isinstance(raw, str | bool | int | Decimal | date):
            raise RuleFault(here, "the right side must be a constant")
        if isinstance(left, Name) and left.name in self.choices and raw not in self.choices[left.name]:
            raise RuleFault(here, f"{raw!r} is not a choice of {left} ({', '.join(self.choices[left.name])})")
        if _constant_kind(raw) != ("text" if kind == "choice" else kind):
            raise RuleFault(here, f"{left} is a {kind}; {raw!r} is not")
        return raw


def reach(part: Expr | Rule, derived: Mapping[str, Expr]) -> set[str]:
    """Every record field that an expression or rule rests on, through derived values too."""
    found: set[str] = set()
    for name in names(part):
        found |= reach(derived[name], derived) if name in derived else {name}
    return found


def _constant_kind(value: object) -> Kind:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, date):
        return "date"
    return "number" if isinstance(value, int | Decimal) else "text"


def _words(raw: Any) -> set[str]:
    if isinstance(raw, str):
        return {raw}
    if isinstance(raw, dict):
        return set().union(*(_words(value) for key, value in raw.items() if key != "const"), set())
    return set().union(*map(_words, raw), set()) if isinstance(raw, list) else set()
