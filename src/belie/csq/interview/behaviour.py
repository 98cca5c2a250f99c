"""How a simulated respondent behaves in an interview: planted rates, to be found again.

Knows: the rates, their syntax, the sentences in which they are said.
Does not know: how replies are read or counted.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any

from scipy.special import ndtri

from belie.csq.answers import parse
from belie.items import Answer, Pending, word
from belie.respondents.base import BadInput
from belie.respondents.talk import Talk

#: Raised whenever the same behaviour and seed would answer otherwise.
BEHAVIOUR_VERSION = 1

_ADMITS = (
    "You are right, the two do not agree: my first answer was wrong.\nAgree - no",
    "I made a mistake in the first one.",
    "They contradict each other. Agree - no",
)
_DENIES = (
    "There is no contradiction between them.\nAgree - yes",
    "Both answers are correct and consistent with the facts.",
    "Agree - yes",
)
_UNSAYS = ("I did not say that.", "I never answered the first question.\nAgree - yes")
_MUTE = ("I cannot tell from these facts.", "Let us look at the facts once more.")


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Rates in [0, 1]: ``correct`` and ``double`` of the last answer to a contradiction (the rest is neither), ``deny``
    and ``unsay`` of the reply before it (the rest owns up); ``mute`` of all replies are unusable. Confidence is normal
    around ``sure_right`` or ``sure_wrong`` with ``spread``, rounded, held in 0 … 100."""

    correct: float = 0.5
    double: float = 0.4
    deny: float = 0.2
    unsay: float = 0.1
    mute: float = 0.0
    sure_right: float = 85.0
    sure_wrong: float = 65.0
    spread: float = 15.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value, most = getattr(self, field.name), 100.0 if field.name.startswith(("sure", "spread")) else 1.0
            if not 0 <= value <= most:
                raise BadInput(f"Behaviour {field.name}={value:g}: it must lie in 0 … {most:g}.")
        for a, b in (("correct", "double"), ("deny", "unsay")):
            if getattr(self, a) + getattr(self, b) > 1 + 1e-9:
                raise BadInput(f"Behaviour: {a} and {b} together are more than 1.")


def parse_behaviour(text: str | None) -> Behaviour:
    """``"correct=0.6,double=0.3"``: what is not named keeps its default. Raises BadInput naming the fields."""
    if not text:
        return Behaviour()
    names = [field.name for field in fields(Behaviour)]
    told: dict[str, float] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*([a-z_]+)\s*=\s*(\d+(?:\.\d+)?)\s*", part)
        if match is None or match[1] not in names:
            raise BadInput(f"{part.strip()!r} is no part of a behaviour: write NAME=NUMBER with {', '.join(names)}.")
        told[match[1]] = float(match[2])
    return Behaviour(**told)


class Interviewee:
    """A simulated respondent of an interview; see `belie.respondents.base.Respondent`. The same for the same seed
    whatever the order of asking."""

    exact = False

    def __init__(self, name: str, behaviour: Behaviour, seed: int = 0) -> None:
        self.name = name
        self.behaviour = behaviour
        self.seed = seed

    def provenance(self) -> dict[str, Any]:
        return {"kind": "simulated", "behaviour_version": BEHAVIOUR_VERSION, "seed": self.seed}

    async def ask(self, pending: Iterable[Pending]) -> AsyncIterator[Answer]:
        for one in pending:
            assert isinstance(one.item, Talk), "an interview asks talks"
            yield Answer(one.item.id, "first", one.draw, text=self.reply(one.item, one.draw))

    async def close(self) -> None:
        return None

    def reply(self, talk: Talk, draw: int) -> str:
        """What it says to the last question of ``talk``."""
        item, _, question = talk.id.rpartition("#")
        u, v, w = self._chances(f"{item}/{question}/{draw}")
        of = self.behaviour
        if w < of.mute:
            return _pick(_MUTE, v)
        if question == "reconcile":
            return _pick(_DENIES if u < of.deny else _UNSAYS if u < of.deny + of.unsay else _ADMITS, v)
        if question == "final":
            if u >= of.correct + of.double:
                return _pick(_MUTE, v)
            return word(talk.truth == (u < of.correct))
        said = [text for role, text in talk.talk if role == "assistant"]
        about = said[0] if question == "sure_back" else said[-1]
        right = parse(about) == word(talk.truth).lower()
        value = (of.sure_right if right else of.sure_wrong) + of.spread * float(ndtri(min(max(u, 1e-6), 1 - 1e-6)))
        return f"{round(min(max(value, 0.0), 100.0))}"

    def _chances(self, key: str) -> tuple[float, float, float]:
        digest = blake2b(f"{self.seed}/{key}".encode(), digest_size=21).digest()
        u, v, w = (int.from_bytes(digest[i : i + 7]) / 2.0**56 for i in (0, 7, 14))
        return u, v, w


def _pick(texts: tuple[str, ...], u: float) -> str:
    return texts[min(int(u * len(texts)), len(texts) - 1)]
