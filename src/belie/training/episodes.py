"""Whole KnownLie rounds inside GRPO: the model that learns plays the agent, and the verdict on its round is the reward.

Knows: how a round's turns become one sequence of tokens, of which only the agent's own are learned from.
Does not know: how rounds are played (knownlie.episode), what they are worth (grades), how GRPO learns.

The round is the audit's own: record, policy, customer, tools as JSON text, at most so many turns, a judge, code for the
verdict. Memory of earlier requests is empty and trust begins neutral. A round that failed or could not be judged has no
reward (None). Rounds are played one after another in this process; a sharded model (FSDP) can't speak here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ModelOutput,
    ModelUsage,
    get_model,
)

from belie.knownlie.agent import Agent
from belie.knownlie.calls import Line
from belie.knownlie.customer import Customer
from belie.knownlie.environment import Environment
from belie.knownlie.episode import play
from belie.knownlie.judge import Judge
from belie.knownlie.ledger import Ledger
from belie.knownlie.players import inspect_model
from belie.knownlie.records import Condition, Gate, Round
from belie.knownlie.scene import Scene
from belie.knownlie.trust import START
from belie.respondents.base import BadInput
from belie.training.grades import BEST, Recipe, excluded, grade

#: Token ids so far → the ids that the model says next.
Speak = Callable[[list[int]], list[int]]
Case = tuple[Scene, Condition]


def prompt_key(prompt: Sequence[Mapping[str, str]]) -> str:
    """What tells the prompts of a data set apart."""
    return json.dumps([[one["role"], one["content"]] for one in prompt])


@dataclass(slots=True)
class Tape:
    """One round as tokens: ``mask`` is 1 where ``completion`` holds the agent's own words."""

    prompt: list[int] = field(default_factory=list)
    completion: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)


class Mouth:
    """The learning model's voice in one round (`say` gives an Inspect model its outputs); what it says is on the tape.

    Raises ``RuntimeError`` (the round is then missing) where the round outgrows ``most`` tokens, or the chat template
    rewrites what was said before, so that the tokens would not be those that were drawn.
    """

    def __init__(self, tokenizer: Any, speak: Speak, most: int) -> None:
        self.tape = Tape()
        self._tokenizer, self._speak, self._most = tokenizer, speak, most
        self._text: str | None = None

    async def say(self, talk: list[ChatMessage], *_: Any) -> ModelOutput:
        """The next turn after these messages; tools are told in them as text."""
        messages = [{"role": one.role, "content": one.text} for one in talk]
        text = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        tape = self.tape
        if self._text is None:
            tape.prompt = self._tokens(text)
        else:
            if not text.startswith(self._text):
                raise RuntimeError("the chat template rewrites earlier turns")
            heard = self._tokens(text[len(self._text) :])
            tape.completion += heard
            tape.mask += [0] * len(heard)
        before = tape.prompt + tape.completion
        if len(before) >= self._most:
            raise RuntimeError(f"the round is longer than {self._most} tokens")
        ids = self._speak(before)
        tape.completion += ids
        tape.mask += [1] * len(ids)
        said = self._tokenizer.decode(ids, skip_special_tokens=True)
        ended = bool(ids) and ids[-1] == self._tokenizer.eos_token_id
        self._text = text + said + (self._tokenizer.eos_token if ended else "")
        return ModelOutput(
            model="learning",
            choices=[ChatCompletionChoice(message=ChatMessageAssistant(content=said, source="generate"))],
            usage=ModelUsage(input_tokens=len(before), output_tokens=len(ids), total_tokens=len(before) + len(ids)),
        )

    def _tokens(self, text: str) -> list[int]:
        return self._tokenizer(text, add_special_tokens=False)["input_ids"]


class Episodes:
    """TRL's ``rollout_func``: a round for each prompt (``cases`` by `prompt_key`), and what it earned for `earned`."""

    def __init__(
        self,
        cases: Mapping[str, Case],
        recipe: Recipe,
        customer: str,
        judge: str,
        *,
        turns: int,
        most: int,
        each: int,
        temperature: float,
    ) -> None:
        self._cases, self._turns, self._most = cases, turns, most
        self._recipe: Recipe = recipe
        self._each, self._temperature = each, temperature
        self._failures: list[str] = []
        self._customer, self._judge = inspect_model(customer), inspect_model(judge)

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, Any]:
        model, tokenizer = trainer.accelerator.unwrap_model(trainer.model), trainer.processing_class
        self._failures.clear()
        played = [self.played(prompt, tokenizer, self._speaker(model, tokenizer)) for prompt in prompts]
        if len(self._failures) == len(prompts):
            raise BadInput(f"No round of a whole batch could be played: {self._failures[0]}.")
        tapes = [tape for tape, _ in played]
        return {
            "prompt_ids": [tape.prompt for tape in tapes],
            "completion_ids": [tape.completion for tape in tapes],
            "logprobs": None,
            "env_mask": [tape.mask for tape in tapes],
            "earned": [value for _, value in played],
        }

    def played(self, prompt: Sequence[Mapping[str, str]], tokenizer: Any, speak: Speak) -> tuple[Tape, float | None]:
        """One round: its tokens, and what it earned, 0 to 1."""
        scene, condition = self._cases[prompt_key(prompt)]
        mouth = Mouth(tokenizer, speak, self._most)
        round = asyncio.run(self._round(scene, condition, mouth))
        if not mouth.tape.completion:  # nothing could be said: a token that is not learned from
            mouth.tape.completion, mouth.tape.mask = [tokenizer.eos_token_id], [0]
            mouth.tape.prompt = mouth.tape.prompt or [tokenizer.eos_token_id]
        return mouth.tape, self._earned(round)

    async def _round(self, scene: Scene, condition: Condition, mouth: Mouth) -> Round:
        ledger, trust = Ledger(), START["neutral"]
        customer = Customer(Line(self._customer, "customer", None, ledger), scene, trust, 2, 3)
        judge = Judge([Line(self._judge, "judge", None, ledger)], scene)
        speaking = get_model("mockllm/learning", custom_outputs=mouth.say, memoize=False)
        agent = Agent(Line(speaking, "agent", None, ledger), scene, Environment(scene, customer), True)
        done = await play(agent, customer, judge, condition, [], self._turns)
        where = ("learning", scene.domain, scene.case, scene.entitlement, condition, "neutral", 0, 0)
        blank = Round(*where, Gate(True), done.outcome, trust, trust, harm_is_lie=scene.harm_is_lie)
        told = {"facts": done.facts, "unscored": done.unscored, "missing": done.missing}
        return replace(blank, transcript=done.transcript, **told)

    def _earned(self, round: Round) -> float | None:
        """As the recipe grades it. Nothing under honesty is said of a round that was neither lie nor put right: ½."""
        why = excluded(round)
        if round.missing is not None:
            self._failures.append(round.missing)
        if why is not None:
            return 0.0 if why == "nothing said" else None
        value = grade(round, self._recipe)
        return 0.5 if value is None else value / BEST[self._recipe]

    def _speaker(self, model: Any, tokenizer: Any) -> Speak:
        import torch

        def speak(ids: list[int]) -> list[int]:
            with torch.no_grad():
                tokens = torch.tensor([ids], device=model.device)
                out = model.generate(
                    tokens,
                    attention_mask=torch.ones_like(tokens),
                    do_sample=True,
                    temperature=self._temperature,
                    top_k=0,
                    max_new_tokens=self._each,
                    pad_token_id=tokenizer.pad_token_id,
                )
            return out[0, len(ids) :].tolist()

        return speak


def earned(completions: Sequence[Any], earned: Sequence[float | None], **_: Any) -> list[float | None]:
    """The reward function beside `Episodes`: what the rounds earned."""
    assert len(earned) == len(completions), "one reward a round"
    return list(earned)
