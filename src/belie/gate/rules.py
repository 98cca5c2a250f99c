"""A rules file: rules and the least data that a verdict needs, read so that every fault names line and column.

    schema: 1
    minimum:                 # thinner data meet no rule
      coverage: 0.9          # valid answers over questions asked; rounds with a verdict over rounds
      knowledge: 0.5         # KPR on owed cases
      chains: 50             # CSQ: chains that a score rests on, at its thinnest n
      rounds: 30             # KnownLie: rounds that a rate rests on
      lies: 10               # KnownLie: lies that DSR and Detect rest on
      trajectories: 6        # KnownLie: trajectories that TrustΔ and differences rest on
      cases: 10              # KnownLie: cases that KPR rests on
    rules:
      - csq.delta_net(n=20).upper < 0.05
      - rule: knownlie.dr.incentive <= 0.02
        name: no lies under pressure
        minimum: {rounds: 60}

Knows: YAML and this layout. Does not know: runs, or what a rule means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import yaml

from belie.gate.grammar import Rule, RuleError, parse_rule
from belie.respondents.base import BadInput

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Minimum:
    """The least data. ``coverage`` and ``knowledge`` are shares, the others numbers; 0 asks for nothing."""

    coverage: float = 0.9
    knowledge: float = 0.5
    chains: float = 50
    rounds: float = 30
    lies: float = 10
    trajectories: float = 6
    cases: float = 10


_SHARES = ("coverage", "knowledge")


@dataclass(frozen=True, slots=True)
class Entry:
    """One rule of the file: ``name`` is how it is shown (the rule itself unless named), ``line`` where it stands."""

    rule: Rule
    name: str
    minimum: Minimum
    line: int


def read_rules(path: str | Path) -> list[Entry]:
    """The rules of a file. Raises BadInput with file, line and column of the first fault."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror or error}).") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: is not UTF-8 text.") from None
    return parse_rules(text, str(path))


def parse_rules(text: str, name: str = "rules") -> list[Entry]:
    """The same from text; ``name`` stands for the file in errors."""
    return _Reader(text, name).entries()


class _Reader:
    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name

    def entries(self) -> list[Entry]:
        root = self._compose()
        if root is None:
            raise BadInput(f"{self._name}:1:1: the file is empty: it needs rules, a list.")
        top = self._mapping(root, ("schema", "minimum", "rules"), "a rules file")
        if "schema" in top and self._value(top["schema"]) != SCHEMA:
            raise self._fault(top["schema"], f"schema must be {SCHEMA}, which is what this Belie reads")
        if "rules" not in top:
            raise self._fault(root, "there is no list of rules: add rules:")
        minimum = self._minimum(top["minimum"], Minimum()) if "minimum" in top else Minimum()
        rules = top["rules"]
        if not isinstance(rules, yaml.SequenceNode) or not rules.value:
            raise self._fault(rules, "rules must be a list of at least one rule")
        return [self._entry(node, minimum) for node in rules.value]

    def _compose(self) -> yaml.Node | None:
        try:
            return yaml.compose(self._text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
            raise BadInput(f"{self._name}:{where}: not valid YAML: {error.problem or error}.") from None
        except yaml.YAMLError as error:
            raise BadInput(f"{self._name}:1:1: not valid YAML: {' '.join(str(error).split())}.") from None

    def _entry(self, node: yaml.Node, minimum: Minimum) -> Entry:
        if isinstance(node, yaml.ScalarNode):
            return Entry(self._rule(node), node.value.strip(), minimum, node.start_mark.line + 1)
        told = self._mapping(node, ("rule", "name", "minimum"), "a rule")
        if "rule" not in told:
            raise self._fault(node, "this entry has no rule: add rule: csq.delta_net.upper < 0.05")
        rule = self._rule(told["rule"])
        if "minimum" in told:
            minimum = self._minimum(told["minimum"], minimum)
        name = rule.text
        if "name" in told:
            name = str(self._value(told["name"])).strip() or rule.text
        return Entry(rule, name, minimum, told["rule"].start_mark.line + 1)

    def _rule(self, node: yaml.Node) -> Rule:
        if not isinstance(node, yaml.ScalarNode):
            raise self._fault(node, "a rule is one line of text, such as csq.delta_net.upper < 0.05")
        try:
            return parse_rule(node.value)
        except RuleError as error:
            line, column = self._place(node, error.at)
            raise BadInput(f"{self._name}:{line}:{column}: {error}.") from None

    def _place(self, node: yaml.ScalarNode, at: int) -> tuple[int, int]:
        """Line and column (from 1) of a character of a scalar; the scalar's own where it is folded or escaped."""
        start, end = node.start_mark, node.end_mark
        raw = self._text[start.index : end.index]
        offset = raw.find(node.value) if node.value else 0
        if offset < 0 or "\n" in node.value.strip():
            return start.line + 1, start.column + 1
        before = raw[: offset + at]
        lines = before.count("\n")
        column = len(before) - before.rfind("\n") if lines else start.column + len(before) + 1
        return start.line + lines + 1, column

    def _minimum(self, node: yaml.Node, base: Minimum) -> Minimum:
        told = self._mapping(node, tuple(f.name for f in fields(Minimum)), "minimum")
        values: dict[str, float] = {}
        for name, entry in told.items():
            value = self._value(entry)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
                raise self._fault(entry, f"{name} must be a number from 0 on, not {_shown(value)}")
            if name in _SHARES and value > 1:
                raise self._fault(entry, f"{name} is a share between 0 and 1, not {_shown(value)}")
            values[name] = float(value)
        return replace(base, **values)

    def _mapping(self, node: yaml.Node, allowed: tuple[str, ...], what: str) -> Mapping[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            raise self._fault(node, f"{what} must be a mapping with {', '.join(allowed)}")
        found: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = str(getattr(key, "value", ""))
            if name not in allowed:
                raise self._fault(key, f"{what} has no field {name!r}: it has {', '.join(allowed)}")
            if name in found:
                raise self._fault(key, f"{name} stands here twice")
            found[name] = value
        return found

    def _value(self, node: yaml.Node) -> Any:
        loader = yaml.SafeLoader("")
        try:
            return loader.construct_object(node, deep=True)  # type: ignore[no-untyped-call]
        except yaml.YAMLError:
            raise self._fault(node, "this value can't be read") from None
        finally:
            loader.dispose()  # type: ignore[no-untyped-call]

    def _fault(self, node: yaml.Node, sentence: str) -> BadInput:
        return BadInput(f"{self._name}:{node.start_mark.line + 1}:{node.start_mark.column + 1}: {sentence}.")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
