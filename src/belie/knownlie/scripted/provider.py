"""The scripted players as an Inspect model provider: ``belie/scripted-<player>``.

Knows: who is asked for what, and how tool calls and usage travel.
Does not know: what the players say (agents, others).
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import anyio
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.tool import ToolCall, ToolChoice, ToolInfo

from belie.knownlie.records import CONDITIONS, Condition
from belie.knownlie.scene import Scene
from belie.knownlie.scripted import lines
from belie.knownlie.scripted.agents import AGENTS, Situation, Turn, gate_answer, turns
from belie.knownlie.scripted.cast import scene_in
from belie.knownlie.scripted.others import CUSTOMERS, JUDGES, customer_reply, judge_reply

_NOISY = re.compile(r"judge-noisy-(0?\.\d+|0|1)$")
_RECORD = re.compile(r"\n# The [^\n]*\n((?:(?!\n# The ).)*)\n# The message of ", re.S)


class ScriptedAPI(ModelAPI):
    """A player whose answers follow from its name and the prompt alone.

    Model arguments: ``latency`` (seconds before each answer), ``p`` and ``seed`` (of ``judge-noisy``). Every output
    carries its own usage (four characters a token), so nothing is counted by a tokenizer.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 (Inspect's own signature)
        latency: float = 0.0,
        p: float = 0.1,
        seed: int = 0,
        **model_args: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        player = model_name.removeprefix("scripted-")
        if noisy := _NOISY.match(player):
            player, p = "judge-noisy", float(noisy[1])
        known = (*AGENTS, *CUSTOMERS, *JUDGES)
        if model_name == player or player not in known:
            raise ValueError(f"there is no scripted player {model_name!r}: choose scripted-… from {', '.join(known)}")
        if model_args:
            raise ValueError(f"a scripted player takes latency, p and seed, not {', '.join(model_args)}")
        self.player, self.latency, self.p, self.seed = player, float(latency), float(p), int(seed)

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,  # noqa: ARG002 (Inspect's signature)
        config: GenerateConfig,  # noqa: ARG002
    ) -> ModelOutput:
        if self.latency:
            await anyio.sleep(self.latency)
        if self.player in JUDGES:
            return self._said(input, judge_reply(self.player, self.p, self.seed, input[0].text, input[1].text))
        if self.player in CUSTOMERS:
            return self._said(input, customer_reply(self.player, scene_in(input[0].text), input))
        if '"a_is_right"' in input[-1].text:
            record = _RECORD.search(input[-1].text)
            scene = scene_in(record[1] if record else input[-1].text, input[-1].text)
            return self._said(input, json.dumps(gate_answer(self.player, scene)))
        return self._act(input, tools)

    def _act(self, input: list[ChatMessage], tools: list[ToolInfo]) -> ModelOutput:
        system, start = input[0].text, input[1].text
        scene = scene_in(start.split("\n", 1)[0], system)
        objected = any(lines.OBJECTION in message.text for message in input[2:])
        planned = turns(self.player, Situation(scene, _condition(scene, system), objected))
        taken = sum(message.role == "assistant" for message in input)
        if not tools:
            planned = _one_by_one(planned)
        turn = planned[min(taken, len(planned) - 1)]
        if isinstance(turn, str):
            return self._said(input, turn)
        calls = [(scene.tools[role][0] if role in scene.tools else role, dict(given)) for role, given in turn]
        if tools:
            if self.player == "chatterbox" and not any(tool.name == calls[0][0] for tool in tools):
                return self._said(input, lines.CHATTER)
            stem = hashlib.sha256(f"{start}|{taken}".encode()).hexdigest()[:8]
            made = [ToolCall(id=f"{stem}-{n}", function=name, arguments=given) for n, (name, given) in enumerate(calls)]
            return self._said(input, "", made)
        objects = [json.dumps({"thought": f"private: {lines.CHATTER}", "tool": n, "arguments": a}) for n, a in calls]
        return self._said(input, " ".join(objects))

    def _said(self, input: list[ChatMessage], text: str, calls: list[ToolCall] | None = None) -> ModelOutput:
        read = sum(len(message.text) for message in input) // 4 + 1
        wrote = (len(text) + sum(len(str(call.arguments)) + 10 for call in calls or [])) // 4 + 1
        message = ChatMessageAssistant(content=text, tool_calls=calls, model=self.model_name, source="generate")
        return ModelOutput(
            model=self.model_name,
            choices=[ChatCompletionChoice(message=message, stop_reason="tool_calls" if calls else "stop")],
            usage=ModelUsage(input_tokens=read, output_tokens=wrote, total_tokens=read + wrote),
        )


def _one_by_one(planned: list[Turn]) -> list[Turn]:
    """Turns as JSON text allows them: one call each, but for the player who wants two ends at once."""
    split: list[Turn] = []
    for turn in planned:
        if isinstance(turn, str) or turn[0][0] == "grant":
            split.append(turn)
        else:
            split += [[call] for call in turn]
    return split


def _condition(scene: Scene, system: str) -> Condition:
    """The condition whose note stands in the system prompt."""
    return next(name for name in CONDITIONS if scene.notes[name] in system)
