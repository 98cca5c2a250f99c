"""The grammar of a rule: one line that a run meets or does not.

    rule     = operand comparator number
    operand  = [ "compare(baseline)." ] score [ arguments ] [ "." end ]
    score    = name { "." name }              csq.delta_net, knownlie.dr.incentive
    arguments = "(" key "=" word { "," key "=" word } ")"      (n=20), (trust=high, domain=refund)
    end      = "lower" | "upper" | "value"
    comparator = "<=" | "<" | ">=" | ">"
    number   = 0.02, -1, 5e-2 or 2%

Knows: tokens, the scores that there are, what each may be asked with; where in the line a fault stands.
Does not know: runs, files, how a score is computed. Nothing is ever evaluated as code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from belie.knownlie.records import CONDITIONS, TRUST_LEVELS

End = Literal["value", "lower", "upper"]
Comparator = Literal["<=", "<", ">=", ">"]
ENDS: tuple[End, ...] = ("value", "lower", "upper")

_OVERALL = ("rho", "delta", "delta_net", "error")
_AT_N = ("beta", "delta_pos", "delta_neg", "gamma_pos", "gamma_neg")
_BY_CONDITION = (
    *("dr", "dr_pooled", "excess", "excess_pooled", "dsr", "detect"),
    *("trust_change", "false_claims", "omission", "steering"),
)
_KNOWING = ("owed", "calibration")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*%?)(?![\w.])"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<sign><=|>=|==|!=|<|>|=|\.|\(|\)|,))"
)


class RuleError(ValueError):
    """A fault in a rule: ``at`` is its place in the line, from 0."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class Rule:
    """A parsed rule. ``score`` is the full name without arguments (``knownlie.dr.incentive``); ``arguments`` may hold
    ``n``, ``trust``, ``domain``. ``baseline``: the paired difference to the baseline is meant."""

    text: str
    baseline: bool
    score: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    end: End = "value"
    comparator: Comparator = "<="
    number: float = 0.0

    @property
    def instrument(self) -> Literal["csq", "knownlie"]:
        return "csq" if self.score.startswith("csq.") else "knownlie"

    def holds(self, value: float) -> bool:
        """Whether a value meets the rule."""
        match self.comparator:
            case "<=":
                return value <= self.number
            case "<":
                return value < self.number
            case ">=":
                return value >= self.number
            case ">":
                return value > self.number


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def parse_rule(text: str) -> Rule:
    """Reads one rule. Raises RuleError with the place of the first fault."""
    return _Parser(text).rule()


def _tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if not match or match.lastgroup is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            raise RuleError(f"{text[start : start + 12]!r} is no part of a rule", start)
        tokens.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        at = match.end()
    return [*tokens, _Token("end", "", end)]


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0

    def rule(self) -> Rule:
        baseline = self._baseline()
        path, arguments, where = self._operand()
        end: End = "value"
        if path[-1].text in ENDS and len(path) > 1:
            end = path.pop().text  # type: ignore[assignment]
        score = _score([token.text for token in path], path, baseline)
        _check_arguments(score, arguments, where, path[0].at, baseline, end)
        comparator = self._take("sign", "a comparator: <=, <, >= or >")
        if comparator.text not in ("<=", "<", ">=", ">"):
            raise RuleError(f"{comparator.text!r} is no comparator here: use <=, <, >= or >", comparator.at)
        number = self._take("number", "a number, such as 0.05 or 5%")
        rest = self._look()
        if rest.kind != "end":
            raise RuleError(f"the rule should end here, but {rest.text!r} follows: write one rule a line", rest.at)
        digits = number.text.rstrip("%").strip()
        value = float(digits) / 100 if number.text.endswith("%") else float(digits)
        told = {name: token.text for name, token in arguments.items()}
        return Rule(self._text.strip(), baseline, score, told, end, comparator.text, value)  # type: ignore[arg-type]

    def _baseline(self) -> bool:
        first = self._look()
        if first.kind == "end":
            raise RuleError("the rule is empty: write one such as csq.delta_net.upper < 0.05", first.at)
        if first.text != "compare":
            return False
        self._next()
        self._sign("(")
        what = self._take("name", "baseline")
        if what.text != "baseline":
            raise RuleError(f"compare takes baseline, not {what.text!r}", what.at)
        self._sign(")")
        self._sign(".")
        return True

    def _operand(self) -> tuple[list[_Token], dict[str, _Token], int]:
        path = [self._take("name", "the name of a score, such as csq.delta_net or knownlie.dr.incentive")]
        arguments: dict[str, _Token] = {}
        where = -1
        while True:
            sign = self._look().text
            if sign == ".":
                self._next()
                path.append(self._take("name", "a name after the dot"))
            elif sign == "(" and where < 0:
                where = self._look().at
                self._next()
                arguments = self._arguments()
            else:
                return path, arguments, where

    def _arguments(self) -> dict[str, _Token]:
        found: dict[str, _Token] = {}
        while True:
            key = self._take("name", "an argument, such as n=20")
            self._sign("=")
            value = self._look()
            if value.kind not in ("name", "number"):
                raise RuleError(f"{key.text} needs a value, such as n=20 or trust=high", value.at)
            if key.text in found:
                raise RuleError(f"{key.text} is given twice", key.at)
            found[key.text] = self._next()
            if self._look().text == ",":
                self._next()
                continue
            self._sign(")")
            return found

    def _look(self) -> _Token:
        return self._tokens[self._at]

    def _next(self) -> _Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _take(self, kind: str, wanted: str) -> _Token:
        token = self._look()
        if token.kind != kind:
            raise RuleError(f"expected {wanted}, {_found(token)}", token.at)
        return self._next()

    def _sign(self, sign: str) -> None:
        token = self._look()
        if token.text != sign:
            raise RuleError(f"expected {sign!r}, {_found(token)}", token.at)
        self._next()


def _found(token: _Token) -> str:
    return "but the rule ends" if token.kind == "end" else f"found {token.text!r}"


def _score(path: list[str], tokens: list[_Token], baseline: bool) -> str:
    """The full name of a score, checked part by part."""
    if path[0] not in ("csq", "knownlie"):
        known = path[0] in _BY_CONDITION or path[0] in (*_OVERALL, *_AT_N, "kpr", "coverage")
        if not baseline or not known:
            raise RuleError(f"{path[0]!r} is no instrument: a score begins with csq. or knownlie.", tokens[0].at)
        path = ["knownlie" if path[0] in _BY_CONDITION or path[0] == "kpr" else "csq", *path]
        tokens = [tokens[0], *tokens]
    if len(path) < 2:
        raise RuleError(f"{path[0]} alone is no score: write {path[0]}.{_example(path[0])}", tokens[0].at)
    instrument, name, *rest = path
    known = (*_OVERALL, *_AT_N, "coverage") if instrument == "csq" else (*_BY_CONDITION, "kpr", "coverage")
    if name not in known:
        raise RuleError(f"{instrument} has no score {name!r}: it has {', '.join(known)}", tokens[1].at)
    if baseline and name == "coverage":
        raise RuleError("coverage is no score that is compared with a baseline", tokens[1].at)
    allowed: tuple[str, ...] = ()
    if instrument == "knownlie":
        allowed = _KNOWING if name == "kpr" else CONDITIONS
    if name in _BY_CONDITION and not rest:
        raise RuleError(f"{name} needs a condition: {name}.incentive ({', '.join(CONDITIONS)})", tokens[1].at)
    if rest and (rest[0] not in allowed or len(rest) > 1):
        wrong = tokens[2] if rest[0] not in allowed else tokens[3]
        choice = (
            f"after {name} may stand {', '.join((*allowed, *ENDS))}" if allowed else f"after {name} may stand an end"
        )
        raise RuleError(f"{wrong.text!r} does not belong here: {choice}", wrong.at)
    return ".".join(path)


def _example(instrument: str) -> str:
    return "delta_net" if instrument == "csq" else "dr.incentive"


def _check_arguments(
    score: str, arguments: Mapping[str, _Token], where: int, start: int, baseline: bool, end: End
) -> None:
    instrument, name, *_ = score.split(".")
    allowed: tuple[str, ...] = ("n",) if instrument == "csq" else () if baseline else ("trust", "domain")
    if name == "kpr" and allowed:
        allowed = ("domain",)
    for key, value in arguments.items():
        if key not in allowed:
            takes = f"takes {', '.join(allowed)}" if allowed else "takes no arguments"
            raise RuleError(f"{score} {takes}, not {key}", where + 1)
        if key == "n" and not re.fullmatch(r"\d+", value.text):
            raise RuleError(f"n is a chain length, such as 20, not {value.text!r}", value.at)
        if key == "trust" and value.text not in TRUST_LEVELS:
            raise RuleError(f"trust is one of {', '.join(TRUST_LEVELS)}, not {value.text!r}", value.at)
    if "trust" in arguments and "domain" in arguments:
        raise RuleError("trust and domain can't be given together: there are no scores that fine", where + 1)
    if name in _AT_N and "n" not in arguments:
        raise RuleError(f"{name} has no overall value: write {name}(n=20)", start)
    if name == "coverage" and end != "value":
        raise RuleError("coverage is counted, not estimated: it has no lower and no upper end", start)
