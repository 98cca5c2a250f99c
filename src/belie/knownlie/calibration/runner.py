"""Puts the calibration dialogues to a judge, exactly as the transcript of an episode would be.

Knows: the engine's judge, its options, and how many calls may run at once.
Does not know: labels (dialogue), or what the answers are worth (scoring).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from inspect_ai.model import GenerateConfig, Model

from belie.knownlie.calibration.checks import faults
from belie.knownlie.calibration.dialogue import Dialogue, dialogues_hash, dialogues_version, load_dialogues
from belie.knownlie.calibration.scoring import FIT, Answer, Calibration, Thresholds, score
from belie.knownlie.calls import CallFailed, Line
from belie.knownlie.judge import FLAGS, Judge, Unscored
from belie.knownlie.ledger import Ledger
from belie.knownlie.pack import Pack
from belie.knownlie.phrasing import PROMPTS_VERSION, prompts_hash
from belie.knownlie.players import inspect_model
from belie.knownlie.protocol import Protocol
from belie.knownlie.scene import scene_of
from belie.knownlie.scripted import remember
from belie.knownlie.task import load_packs
from belie.knownlie.verdicts import TASK_VERSION
from belie.respondents.base import BadInput

Progress = Callable[[int, int], None]


def calibrate(judge: str | Model | Sequence[str | Model], **options: Any) -> Calibration:
    """Calibrates a judge; see ``calibrate_async`` for the options. For callers without a running event loop."""
    return asyncio.run(calibrate_async(judge, **options))


async def calibrate_async(
    judge: str | Model | Sequence[str | Model],
    *,
    domains: Sequence[str] | None = None,
    base_url: str | None = None,
    per_claim: bool = False,
    second_look: bool = False,
    tries: int = 3,
    structured: bool = True,
    max_tokens: int | None = None,
    in_flight: int = 20,
    thresholds: Thresholds = FIT,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Puts every dialogue to the judge (several: their majority) at temperature 0, and scores what comes back.

    ``domains``: all where None. ``per_claim``, ``second_look``, ``tries``, ``structured``, ``max_tokens``: as in
    ``Protocol``, so that the judge is calibrated as it will be used. ``in_flight``: dialogues judged at once.
    ``folder``: dialogues of your own, one file a domain. ``progress``: called with (done, all).
    Raises ``BadInput`` for a judge or a domain that there is none of, and for dialogues with a fault.
    """
    Protocol(tries=tries)  # refuses what a run would refuse
    if in_flight < 1:
        raise BadInput(f"in_flight must be at least 1, not {in_flight}.")
    names = [judge] if isinstance(judge, str | Model) else list(judge)
    if not names:
        raise BadInput("A calibration needs at least one judge.")
    dialogues = load_dialogues(domains, folder)
    packs = {pack.id: pack for pack in load_packs(sorted({dialogue.domain for dialogue in dialogues}))}
    if wrong := faults(dialogues, packs, whole=False):
        raise BadInput(f"The calibration dialogues can't be used: {wrong[0]} ({len(wrong)} faults).")
    for dialogue in dialogues:
        remember(dialogue.transcript(packs[dialogue.domain].case(dialogue.case).opening), _right(dialogue))
    config = GenerateConfig(max_connections=in_flight * len(names))
    models = [inspect_model(name, base_url, config=config) if isinstance(name, str) else name for name in names]
    ledger, done = Ledger(), 0
    gate = asyncio.Semaphore(in_flight)

    async def one(dialogue: Dialogue) -> Answer:
        nonlocal done
        async with gate:
            lines = [
                Line(model, "judge", None, ledger, structured=structured, max_tokens=max_tokens) for model in models
            ]
            answer = await _answer(lines, dialogue, packs[dialogue.domain], tries, per_claim, second_look)
        done += 1
        if progress is not None:
            progress(done, len(dialogues))
        return answer

    answers = await asyncio.gather(*map(one, dialogues))
    return score(
        answers,
        " + ".join(str(name) for name in names),
        thresholds,
        versions={
            "dialogues": dialogues_version(),
            "dialogues_hash": dialogues_hash(folder),
            "task": TASK_VERSION,
            "prompts": PROMPTS_VERSION,
            "prompts_hash": prompts_hash(),
            **{f"pack {pack.id}": pack.version for pack in packs.values()},
        },
        options={
            "domains": list(packs),
            "per_claim": per_claim,
            "second_look": second_look,
            "tries": tries,
            "structured": structured,
            "max_tokens": max_tokens,
        },
        usage=ledger.plain(),
    )


async def _answer(
    lines: Sequence[Line], dialogue: Dialogue, pack: Pack, tries: int, per_claim: bool, second_look: bool
) -> Answer:
    scene = scene_of(pack, pack.case(dialogue.case))
    judge = Judge(lines, scene, tries, per_claim, second_look)
    try:
        return Answer(dialogue, await judge.facts(dialogue.transcript(scene.opening)))
    except Unscored as error:
        return Answer(dialogue, unscored=str(error))
    except CallFailed as error:
        return Answer(dialogue, missing=str(error))


def _right(dialogue: Dialogue) -> dict[str, Any]:
    """The reply that the label amounts to, for the scripted judges. What has no label is false."""
    flags = {name: name in dialogue.happened for name in FLAGS}
    claims = [
        {"quote": quote, "mechanism": dialogue.mechanism, "clause": "", "why": "label"} for quote in dialogue.quotes
    ]
    return {**flags, "false_claims": claims}
