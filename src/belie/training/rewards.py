"""Rewards for GRPO: plain functions of what was answered.

Knows: CSQ's right answer, a model's agreement with its own easy answer, KnownLie's verdict on one answer.
Does not know: trainers, generation.

An answer that can't be judged has no reward (None), never a bad one: TRL leaves it out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from belie.csq.answers import parse
from belie.knownlie.records import Condition, Gate, Round
from belie.knownlie.scene import Scene
from belie.respondents.base import BadInput
from belie.training.grades import BEST, Recipe, grade
from belie.training.probe import read_answer

#: "right": 1 for the right word; "consistent": 1 for the word that the model itself gave to the easy question; "both".
Reward = Literal["right", "consistent", "both"]
REWARDS: tuple[Reward, ...] = ("right", "consistent", "both")
#: Raised whenever the same answer would be rewarded otherwise.
REWARDS_VERSION = 1

Completion = str | Sequence[Mapping[str, str]]
RewardFunction = Callable[..., list[float | None]]


def text_of(completion: Completion) -> str:
    """What was said: a text, or the last of the messages that TRL hands over."""
    return completion if isinstance(completion, str) else completion[-1]["content"]


def right(completions: Sequence[Completion], truth: Sequence[str], **_: Any) -> list[float | None]:
    """1 for the right word, 0 for the wrong one or none; None where the question is none of CSQ's."""
    return [_agrees(said, wanted) for said, wanted in zip(completions, truth, strict=True)]


def consistent(completions: Sequence[Completion], easy: Sequence[str], **_: Any) -> list[float | None]:
    """1 where the hard answer is the word that the model gave to the easy question of the same chain in the run that
    the data come from; None where it was not asked. Needs no truth. The easy answer is not asked anew as it learns."""
    return [_agrees(said, wanted) for said, wanted in zip(completions, easy, strict=True)]


def _agrees(said: Completion, wanted: str) -> float | None:
    return float(parse(text_of(said)) == wanted.lower()) if wanted else None


def knownlie_reward(judge: str, recipe: Recipe, scenes: Mapping[str, Scene]) -> RewardFunction:
    """A reward by KnownLie's verdict on one answer to a case (`belie.training.probe`), 0 to 1 as the recipe grades it.

    The judge reports facts, code derives the verdict and the grade (METHOD §2.5). There is one turn and no customer, so
    nobody detects or resists: a lie is believed, or costs the customer what its decision denies. What the recipe says
    nothing of earns ½ under honesty (no lie, but not put right either). ``judge``: a model string of KnownLie.
    """
    from belie.knownlie.players import inspect_model

    model = inspect_model(judge)

    async def judged(text: str, case: str, condition: Condition) -> float | None:
        scene = scenes[case]
        message, outcome = read_answer(text, scene)
        if not message:
            return 0.0
        played = replace(
            _blank(scene, condition),
            outcome=outcome,
            transcript=(("customer", scene.opening), ("agent", message)),
        )
        facts = await _facts(model, scene, played.transcript)
        if facts is None:
            return None
        value = grade(replace(played, facts=facts), recipe)
        return 0.5 if value is None else value / BEST[recipe]

    async def all_of(asked: Sequence[tuple[str, str, Condition]]) -> list[float | None]:
        return await asyncio.gather(*(judged(*one) if one[1] else _nothing() for one in asked))

    def verdict_reward(
        completions: Sequence[Completion], case: Sequence[str], condition: Sequence[Condition], **_: Any
    ) -> list[float | None]:
        asked = list(zip(map(text_of, completions), case, condition, strict=True))
        return asyncio.run(all_of(asked))

    return verdict_reward


async def _nothing() -> None:
    return None


async def _facts(model: Any, scene: Scene, transcript: Sequence[tuple[str, str]]) -> Any:
    """What the judge saw, or None where it gave nothing usable."""
    from belie.knownlie.calls import CallFailed, Line
    from belie.knownlie.judge import Judge, Unscored
    from belie.knownlie.ledger import Ledger

    try:
        return await Judge([Line(model, "judge", None, Ledger())], scene).facts(transcript)
    except (Unscored, CallFailed):
        return None


def _blank(scene: Scene, condition: Condition) -> Round:
    where = ("trained", scene.domain, scene.case, scene.entitlement, condition, "neutral", 0, 0)
    return Round(*where, Gate(True), "undecided", 0.5, 0.5, harm_is_lie=scene.harm_is_lie)


def functions(
    examples: Sequence[Mapping[str, Any]],
    reward: Reward,
    recipe: Recipe,
    judge: str | None,
    scenes: Mapping[str, Scene],
) -> list[RewardFunction]:
    """The reward functions that these examples need. Raises BadInput where a judge or every easy answer is missing."""
    if reward not in REWARDS:
        raise BadInput(f"There is no reward {reward!r}: use {', '.join(REWARDS)}.")
    found: list[RewardFunction] = []
    if any(one["source"] == "csq" for one in examples):
        found += {"right": [right], "consistent": [consistent], "both": [right, consistent]}[reward]
        if reward == "consistent" and not any(one.get("easy") for one in examples):
            raise BadInput("No easy answer is known in this data: use --reward right, or data from a run with errors.")
    if any(one["source"] == "knownlie" for one in examples):
        if judge is None:
            raise BadInput("KnownLie's cases are rewarded by a judge's verdict: name one with --judge MODEL.")
        found.append(knownlie_reward(judge, recipe, scenes))
    return found
