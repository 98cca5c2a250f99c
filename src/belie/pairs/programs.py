"""Short programs to be read: makes pairs, and runs the programs that their texts hold, in a small interpreter.

Knows: how such a pair is told, and the few kinds of statement that its programs have.
Does not know: who is asked.

A pair's program has n statements that change a number. Its twin differs in one constant before the last statement. The
easy follow-up tells the value before the twin's last statement. Programs are Python; they are never handed to Python's
own interpreter.
"""

from __future__ import annotations

import ast
import random
import re
from typing import NamedTuple

from belie.pairs.file import Pair

SIZES = (3, 5, 8, 12)
_BLOCK = re.compile(r"```\n(.*?)\n```", re.S)
_CLAIM = re.compile(r"Does (?:it|the program) print (something other than )?(-?\d+)\?")
_VALUE = re.compile(r"Just before the last line that changes it, x is (-?\d+)\. That line is `([^`\n]+)`\.")
#: No program may take more steps.
_MOST_STEPS = 10_000


class _Line(NamedTuple):
    """``x = x OP value``; with ``least`` only if x is larger; ``times`` in a loop."""

    op: str
    value: int
    least: int | None = None
    times: int = 1

    def text(self) -> list[str]:
        change = f"x = x {self.op} {self.value}"
        if self.least is not None:
            return [f"if x > {self.least}:", f"    {change}"]
        if self.times > 1:
            return [f"for i in range({self.times}):", f"    {change}"]
        return [change]

    def apply(self, x: int) -> int:
        if self.least is not None and x <= self.least:
            return x
        for _ in range(self.times):
            x = x + self.value if self.op == "+" else x - self.value if self.op == "-" else x * self.value
        return x


def make(per_size: int, seed: int) -> list[Pair]:
    """``per_size`` pairs of each of `SIZES`."""
    return [
        _pair(f"program-{n:02}-{index:03}", n, random.Random(f"programs/{seed}/{n}/{index}"))
        for n in SIZES
        for index in range(per_size)
    ]


def _pair(name: str, n: int, rng: random.Random) -> Pair:
    while True:
        start = rng.randint(2, 12)
        lines = [_line(rng) for _ in range(n - 1)] + [_Line(rng.choice("+-"), rng.randint(2, 9))]
        at = rng.randrange(n - 1)
        twin = list(lines)
        twin[at] = twin[at]._replace(value=max(2, twin[at].value + rng.choice([-2, -1, 1, 2])))
        if rng.random() < 0.5:
            lines, twin = twin, lines
        claimed, other = _run(start, lines), _run(start, twin)
        if claimed != other and max(abs(claimed), abs(other)) < 1000:
            break
    before = _run(start, twin[:-1])
    program, unlike = _program(start, lines), _program(start, twin)
    easy = f"Just before the last line that changes it, x is {before}. That line is `{twin[-1].text()[0]}`."
    claim, denial = f"Does it print {claimed}?", f"Does it print something other than {claimed}?"
    return Pair(
        id=name,
        difficulty=n,
        yes=f"{program}\n{claim}",
        yes_reversed=f"{program}\n{denial}",
        no=f"{unlike}\n{claim}",
        no_reversed=f"{unlike}\n{denial}",
        easy=f"{easy} {claim.replace('it', 'the program')}",
        easy_reversed=f"{easy} {denial.replace('it', 'the program', 1)}",
    )


def _line(rng: random.Random) -> _Line:
    kind = rng.random()
    if kind < 0.15:
        return _Line("*", rng.randint(2, 3))
    op, value = rng.choice("+-"), rng.randint(2, 9)
    if kind < 0.4:
        return _Line(op, value, least=rng.randint(0, 30))
    return _Line(op, value, times=rng.randint(2, 4) if kind < 0.65 else 1)


def _run(start: int, lines: list[_Line]) -> int:
    x = start
    for line in lines:
        x = line.apply(x)
    return x


def _program(start: int, lines: list[_Line]) -> str:
    text = [f"x = {start}", *(part for line in lines for part in line.text()), "print(x)"]
    return "Here is a program in Python:\n```\n" + "\n".join(text) + "\n```"


def check(pair: Pair) -> dict[str, bool]:
    """What is true of each question of a pair, computed from its text. Raises ValueError for a text that can't be
    read."""
    names = ("yes", "yes_reversed", "no", "no_reversed", "easy", "easy_reversed")
    return {name: _truth(getattr(pair, name)) for name in names}


def _truth(text: str) -> bool:
    claim = _CLAIM.search(text)
    if claim is None:
        raise ValueError("there is no claim of what is printed")
    if (block := _BLOCK.search(text)) is not None:
        printed = _Interpreter().print_of(block[1])
    elif (value := _VALUE.search(text)) is not None:
        printed = _Interpreter().print_of(f"x = {value[1]}\n{value[2]}\nprint(x)")
    else:
        raise ValueError("there is no program")
    return (printed == int(claim[2])) != bool(claim[1])


class _Interpreter:
    """Whole numbers, assignment, ``if``, ``for … in range(k)``, one ``print`` at the end; anything else is refused."""

    def __init__(self) -> None:
        self._values: dict[str, int] = {}
        self._printed: list[int] = []
        self._steps = 0

    def print_of(self, program: str) -> int:
        try:
            self._run(ast.parse(program).body)
        except SyntaxError as error:
            raise ValueError(f"the program is not Python ({error.msg}, line {error.lineno})") from None
        if len(self._printed) != 1:
            raise ValueError(f"the program prints {len(self._printed)} times, not once")
        return self._printed[0]

    def _run(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self._steps += 1
            if self._steps > _MOST_STEPS:
                raise ValueError("the program takes too many steps")
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._values[name] = self._value(value)
                case ast.If(test=test, body=inner, orelse=other):
                    self._run(inner if self._value(test) else other)
                case ast.For(
                    target=ast.Name(id=name),
                    iter=ast.Call(func=ast.Name(id="range"), args=[count], keywords=[]),
                    body=inner,
                    orelse=[],
                ):
                    for i in range(min(self._value(count), _MOST_STEPS + 1)):
                        self._values[name] = i
                        self._run(inner)
                case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=[value], keywords=[])):
                    self._printed.append(self._value(value))
                case _:
                    raise ValueError(f"line {statement.lineno} is of a kind that can't be read")

    def _value(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int() as value):
                return int(value)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -self._value(inner)
            case ast.Name(id=name) if name in self._values:
                return self._values[name]
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
                a, b = self._value(left), self._value(right)
                return a + b if isinstance(op, ast.Add) else a - b if isinstance(op, ast.Sub) else a * b
            case ast.Compare(left=left, ops=[ast.Gt() | ast.Lt() as op], comparators=[right]):
                a, b = self._value(left), self._value(right)
                return a > b if isinstance(op, ast.Gt) else a < b
        raise ValueError(f"line {node.lineno} holds an expression of a kind that can't be read")
