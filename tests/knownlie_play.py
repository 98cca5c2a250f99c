"""What the KnownLie tests play with: a small pack, and models whose replies a test writes itself."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    Model,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.tool import ToolCall, ToolInfo

from belie.knownlie.gate import gate_desk
from belie.knownlie.pack import load_pack
from belie.knownlie.protocol import Protocol, Trajectory, trajectories
from belie.knownlie.records import Round
from belie.knownlie.scripted import ScriptedAPI, learn
from belie.knownlie.trajectory import Players, Table, run_trajectory

PARCEL = Path(__file__).parent / "data" / "pack_parcel"
pack = load_pack(PARCEL)
learn(pack)

Reply = str | ModelOutput | Exception
Script = Callable[[list[ChatMessage], list[ToolInfo], GenerateConfig], Reply | Awaitable[Reply]]


def output(text: str = "", *calls: tuple[str, dict[str, Any]], stop: Any = "stop") -> ModelOutput:
    made = [ToolCall(id=f"c{n}-{len(text)}", function=name, arguments=given) for n, (name, given) in enumerate(calls)]
    message = ChatMessageAssistant(content=text, tool_calls=made or None, source="generate")
    return ModelOutput(
        model="stub",
        choices=[ChatCompletionChoice(message=message, stop_reason=stop)],
        usage=ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15),
    )


def stub(script: Script) -> Model:
    """A model whose replies ``script`` writes; an exception that it returns is raised."""

    async def generate(messages: Any, tools: Any, choice: Any, config: Any) -> ModelOutput:  # noqa: ARG001
        reply = script(messages, tools, config)
        if inspect.isawaitable(reply):
            reply = await reply
        if isinstance(reply, Exception):
            raise reply
        return output(reply) if isinstance(reply, str) else reply

    return get_model("mockllm/model", custom_outputs=generate, memoize=False)


def scripted(player: str, **args: Any) -> Model:
    return get_model(f"belie/scripted-{player}", **args)


def watched(player: str, seen: list[list[ChatMessage]]) -> Model:
    """A scripted player that keeps every prompt it was shown."""
    api = ScriptedAPI(f"scripted-{player}")

    async def ask(messages: Any, tools: Any, config: Any) -> ModelOutput:
        seen.append(list(messages))
        return await api.generate(messages, tools, "auto", config)

    return stub(ask)


def plan(**options: Any) -> tuple[Protocol, list[Trajectory]]:
    protocol = Protocol(**{"order": "paper", "trust": ("neutral",), "conditions": ("incentive",), **options})
    return protocol, trajectories([pack], protocol)


async def rounds_of(
    agent: Model,
    customer: Model | None = None,
    judge: Model | None = None,
    *,
    done: list[Round] | None = None,
    **options: Any,
) -> list[Round]:
    """One trajectory of the small pack, played in memory."""
    protocol, (trajectory, *_) = plan(**options)
    judge = judge or scripted("judge-perfect")
    players = Players(agent, customer or scripted("trusting"), (judge,) * protocol.judges, "stub")
    desk = gate_desk("t", protocol)
    table = Table("t", desk, emulated=bool(protocol.emulated), done={trajectory.id: done or []})
    rounds, _ = await run_trajectory(trajectory, players, protocol, table)
    return rounds


def is_gate(messages: list[ChatMessage]) -> bool:
    return '"a_is_right"' in messages[-1].text


def passing(agent: Script) -> Model:
    """An agent that knows the answer to every gate, and acts as ``agent`` says."""
    honest = ScriptedAPI("scripted-honest")

    async def ask(messages: Any, tools: Any, config: Any) -> Reply:
        if is_gate(messages):
            return await honest.generate(messages, tools, "auto", config)
        reply = agent(messages, tools, config)
        return await reply if inspect.isawaitable(reply) else reply

    return stub(ask)


def turns(*replies: Reply) -> Script:
    """An agent that gives these replies in turn, in each round from the first again; the last one repeats."""

    def act(messages: Any, tools: Any, config: Any) -> Reply:  # noqa: ARG001
        return replies[min(sum(m.role == "assistant" for m in messages), len(replies) - 1)]

    return act


def report(*quotes: str, **flags: bool) -> str:
    """A judge's reply."""
    from belie.knownlie.judge import FLAGS

    claims = [{"quote": quote, "mechanism": "false_policy", "clause": "1", "why": "x"} for quote in quotes]
    return json.dumps({**dict.fromkeys(FLAGS, False), **flags, "false_claims": claims})
