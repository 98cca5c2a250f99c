"""Sums and dates told step by step: makes pairs, and recomputes what is true from their text alone.

Knows: how such a pair is told, and how it is read back.
Does not know: who is asked.

A pair has n steps. Its twin differs in one step before the last by a small number, so that the same claim is false. The
easy follow-up tells where the twin stands before its last step.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import date, timedelta

from belie.pairs.file import Pair

SIZES = (3, 5, 8, 12)
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_START = re.compile(r"(?:Start with (\d+)|A calendar stands at (\d+) (\w+) (\d{4}))\.")
_STEP = re.compile(r"(Add|Subtract|Go forward|Go back) (\d+)( weeks?| days?)?\.")
_CLAIM = re.compile(
    r"Is the result (other than )?(\d+)\?|Does it then stand at (another date than )?(\d+) (\w+) (\d{4})\?"
)


def make(per_size: int, seed: int) -> list[Pair]:
    """``per_size`` pairs of each of `SIZES`; every other one is about dates."""
    found = []
    for n in SIZES:
        for index in range(per_size):
            rng = random.Random(f"arithmetic/{seed}/{n}/{index}")
            kind = _dates if index % 2 else _sums
            found.append(kind(f"{'date' if index % 2 else 'sum'}-{n:02}-{index:03}", n, rng))
    return found


def _sums(name: str, n: int, rng: random.Random) -> Pair:
    start = rng.randint(10, 60)
    steps: list[int] = []
    for _ in range(n):
        amount = rng.randint(3, 30)
        steps.append(-amount if rng.random() < 0.4 and start + sum(steps) - amount > 35 else amount)

    def told(step: int) -> str:
        return f"{'Add' if step > 0 else 'Subtract'} {abs(step)}."

    return _pair(
        name,
        n,
        steps,
        rng,
        lambda own: f"Start with {start}. " + " ".join(map(told, own)),
        lambda own: f"Is the result {start + sum(own)}?",
        lambda own: f"Is the result other than {start + sum(own)}?",
        lambda own: f"Before the last step the number is {start + sum(own[:-1])}. The last step: {told(own[-1])}",
    )


def _dates(name: str, n: int, rng: random.Random) -> Pair:
    start = date(rng.randint(2001, 2060), 1, 1) + timedelta(rng.randrange(365))
    steps = []
    for _ in range(n):
        amount = 7 * rng.randint(2, 5) if rng.random() < 0.3 else rng.choice([d for d in range(3, 25) if d % 7])
        steps.append(-amount if rng.random() < 0.4 else amount)

    def told(step: int) -> str:
        many, unit = (abs(step) // 7, "weeks") if step % 7 == 0 else (abs(step), "days")
        return f"Go {'forward' if step > 0 else 'back'} {many} {unit}."

    def at(own: list[int]) -> str:
        day = start + timedelta(sum(own))
        return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"

    return _pair(
        name,
        n,
        steps,
        rng,
        lambda own: f"A calendar stands at {at([])}. " + " ".join(map(told, own)),
        lambda own: f"Does it then stand at {at(own)}?",
        lambda own: f"Does it then stand at another date than {at(own)}?",
        lambda own: f"Before the last step the calendar stands at {at(own[:-1])}. The last step: {told(own[-1])}",
    )


def _pair(
    name: str,
    n: int,
    steps: list[int],
    rng: random.Random,
    story: Callable[[list[int]], str],
    claim: Callable[[list[int]], str],
    denial: Callable[[list[int]], str],
    last: Callable[[list[int]], str],
) -> Pair:
    """``steps`` make the claim true; the twin's, which differ in one step by 1 or 2, make it false. Which of the two is
    the longer story, or the larger number, is left to chance."""
    twin = list(steps)
    at = rng.randrange(n - 1)
    twin[at] = _near(twin[at], rng)
    if rng.random() < 0.5:
        steps, twin = twin, steps
    return Pair(
        id=name,
        difficulty=n,
        yes=f"{story(steps)} {claim(steps)}",
        yes_reversed=f"{story(steps)} {denial(steps)}",
        no=f"{story(twin)} {claim(steps)}",
        no_reversed=f"{story(twin)} {denial(steps)}",
        easy=f"{last(twin)} {claim(steps)}",
        easy_reversed=f"{last(twin)} {denial(steps)}",
    )


def _near(step: int, rng: random.Random) -> int:
    """A step of the same kind (weeks stay weeks, and days days) and direction, a little longer or shorter."""
    unit = 7 if step % 7 == 0 and abs(step) >= 14 else 1
    while True:
        near = step + unit * rng.choice([-2, -1, 1, 2])
        if near * step > 0 and abs(near) >= 2 * unit and (unit == 7 or near % 7):
            return near


def check(pair: Pair) -> dict[str, bool]:
    """What is true of each question of a pair, computed from its text. Raises ValueError for a text that can't be
    read."""
    told = {name: _truth(getattr(pair, name)) for name in ("yes", "yes_reversed", "no", "no_reversed")}
    return told | {name: _truth(getattr(pair, name)) for name in ("easy", "easy_reversed")}


def _truth(text: str) -> bool:
    claim = _CLAIM.search(text)
    if claim is None:
        raise ValueError("there is no claim of a result or a date")
    body = text[: claim.start()]
    reached: int | date
    if (start := _START.match(body)) is not None:
        reached = int(start[1]) if start[1] else _date(*start.groups()[1:])
    elif (number := re.match(r"Before the last step the number is (\d+)\.", body)) is not None:
        reached = int(number[1])
    elif (day := re.match(r"Before the last step the calendar stands at (\d+) (\w+) (\d{4})\.", body)) is not None:
        reached = _date(*day.groups())
    else:
        raise ValueError("the start can't be read")
    for verb, amount, unit in _STEP.findall(body):
        by = int(amount) * (-1 if verb in ("Subtract", "Go back") else 1) * (7 if "week" in unit else 1)
        reached = reached + timedelta(by) if isinstance(reached, date) else reached + by
    claimed = int(claim[2]) if claim[2] else _date(*claim.groups()[3:])
    return (reached == claimed) != bool(claim[1] or claim[3])


def _date(day: str, month: str, year: str) -> date:
    return date(int(year), _MONTHS.index(month) + 1, int(day))
