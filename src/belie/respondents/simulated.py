"""A respondent of known truth: ``sim/<profile>``.

Knows: how to answer items by a profile, exactly or by draws, the same for the same seed whatever the order of asking.
Does not know: what the profile amounts to (profiles), or what the questions say: only their category and length.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from belie.items import Answer, Pending
from belie.respondents.base import BadInput
from belie.respondents.conversation import before_followup
from belie.respondents.profiles import PLACES, Habit, Profile, first_place, followup_place, parse_profile

#: Raised whenever the same profile and seed would answer otherwise.
SIMULATION_VERSION = 2

_UNIT = 2.0**-56
#: What is said when the answer is invalid: neither Yes nor No.
INVALID_TEXT = "I cannot tell from these facts."
#: How many items are answered before others in the event loop get their turn.
_TURN = 500


def open_simulated(name: str, seed: int = 0, sample: bool = False) -> Simulated:
    """``name`` is ``sim/<profile>`` (see `belie.respondents.profiles.parse_profile`); ``sample`` answers in words,
    one draw at a time, instead of exact probabilities. Raises BadInput naming the profiles."""
    prefix, _, text = name.partition("/")
    if prefix != "sim":
        raise BadInput(f"{name!r} is not a simulated respondent: write sim/<profile>, e.g. sim/guesser.")
    return Simulated(parse_profile(text), seed, sample)


@lru_cache(maxsize=64)
def chain_places(seed: int, chain: str) -> tuple[float, ...]:
    """The `PLACES` numbers in [0, 1) that place a chain in a profile."""
    digest = blake2b(f"{seed}/{chain}".encode(), digest_size=7 * PLACES).digest()
    return tuple(int.from_bytes(digest[i : i + 7]) * _UNIT for i in range(0, 7 * PLACES, 7))


class Simulated:
    """See `belie.respondents.base.Respondent`. Never fails, costs nothing."""

    def __init__(self, profile: Profile, seed: int = 0, sample: bool = False) -> None:
        self.profile = profile
        self.seed = seed
        self.exact = not sample
        self.name = f"sim/{profile.name}"
        self._habits: dict[tuple[str, int], list[tuple[float, Habit]]] = {}

    def provenance(self) -> dict[str, Any]:
        return {
            "kind": "simulated",
            "profile": self.profile.name,
            "seed": self.seed,
            "exact": self.exact,
            "simulation_version": SIMULATION_VERSION,
        }

    async def ask(self, pending: Iterable[Pending]) -> AsyncIterator[Answer]:
        for count, asked in enumerate(pending):
            for answer in self.answers(asked):
                yield answer
            if count % _TURN == _TURN - 1:
                await asyncio.sleep(0)

    async def close(self) -> None:
        return None

    def answers(self, pending: Pending) -> list[Answer]:
        """The one or two answers to one pending item."""
        item = pending.item
        category = item.category
        label, _, where = item.chain.partition("/")
        # A chain is as hard as it is, whatever treatment or wording it comes in.
        u = chain_places(self.seed, f"{label.partition('+')[0]}/{where}")
        habit = self._habit(label, item.n, u[0])
        found: list[Answer] = []
        if self.exact:
            if pending.first is None:
                found.append(Answer(item.id, "first", pending.draw, p=habit.first(category, first_place(u, category))))
            if item.followup is not None:
                easy = habit.followup(category, followup_place(u, category))
                found.append(Answer(item.id, "followup", pending.draw, p=easy))
            return found
        digest = blake2b(f"{self.seed}/{item.id}/{pending.draw}".encode(), digest_size=14).digest()

        def say(hard: bool) -> str:
            """The answer to the hard or the easy question, whichever is asked first: each has its own draw."""
            if hard:
                return _say(habit.first(category, first_place(u, category)), int.from_bytes(digest[:7]) * _UNIT)
            return _say(habit.followup(category, followup_place(u, category)), int.from_bytes(digest[7:]) * _UNIT)

        hard_first = item.order == "hard_first"
        first = pending.first
        if first is None:
            first = Answer(item.id, "first", pending.draw, text=say(hard_first))
            found.append(first)
        if before_followup(pending, first, exact=False) is not None:
            found.append(Answer(item.id, "followup", pending.draw, text=say(not hard_first)))
        return found

    def _habit(self, label: str, n: int, part: float) -> Habit:
        habits = self._habits.get((label, n))
        if habits is None:
            habits = self._habits[label, n] = self.profile.under(label).habits(n)
        for end, habit in habits:
            if part < end:
                return habit
        raise AssertionError("the cumulated weights of a profile end at 1")


def _say(p: tuple[float, float], u: float) -> str:
    return "Yes" if u < p[0] else "No" if u < p[0] + p[1] else INVALID_TEXT
