"""The agent's turns: what it is shown, which tools it called, and what it did wrong in calling them.

Knows: native tool calls and their stand-in as JSON text; that nothing outside a message tool is delivered.
Does not know: what the tools do (environment), or when the round is over (episode).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentReasoning,
    ModelOutput,
    execute_tools,
)
from inspect_ai.tool import ToolCall, ToolDef

from belie.knownlie.calls import CallFailed, Line
from belie.knownlie.environment import Environment
from belie.knownlie.phrasing import words
from belie.knownlie.records import Condition
from belie.knownlie.reply import Unusable, one_object
from belie.knownlie.scene import Scene

#: How a provider says that a model takes no tools.
_NO_TOOLS = re.compile(
    r"(tool|function)\S*.{0,60}(not|n't|un)\s*(be )?(support|enabl|available)"
    r"|(not|n't|un)\s*support.{0,60}(tool|function)",
    re.I,
)
#: How a provider says that a call can't be forced.
_NO_CHOICE = re.compile(r"tool.?choice|thinking", re.I)


@dataclass(slots=True)
class Agent:
    """The model under test in one round. ``thoughts`` is everything it wrote that nobody heard."""

    line: Line
    scene: Scene
    environment: Environment
    emulated: bool
    messages: list[ChatMessage] = field(default_factory=list, init=False)
    thoughts: list[str] = field(default_factory=list, init=False)
    broken_calls: int = field(default=0, init=False)
    _count: int = field(default=0, init=False)
    _brief: tuple[Condition, Sequence[str], int] = field(default=("none", (), 0), init=False)

    def brief(self, condition: Condition, memory: Sequence[str], turns: int) -> None:
        """Opens the round: system prompt with the condition's note (nothing else differs), memory, opening message."""
        self._brief = (condition, memory, turns)
        scene = self.scene
        system = words(
            "agent",
            **scene.words,
            note=scene.notes[condition],
            memory="\n".join(f"- {line}" for line in memory) or "None yet.",
            turns=str(turns),
        )
        if self.emulated:
            system += words("agent_emulated", tools="\n".join(map(_described, self.environment.tools())))
        start = words("agent_start", **scene.words, reference=scene.reference, opening=scene.opening)
        self.messages = [ChatMessageSystem(content=system), ChatMessageUser(content=start)]

    async def turn(self, last: bool = False) -> None:
        """One answer of the model and what follows from it. Raises ``CallFailed`` where its provider failed."""
        if last:
            self.messages.append(ChatMessageUser(content=words("agent_forced", **self.scene.words)))
        tools = self.environment.tools(ends_only=last)
        output = await self._ask(tools, last)
        self.messages.append(output.message)
        self._think(output.message)
        calls = self._spoken(output.message.text) if self.emulated else list(output.message.tool_calls or [])
        if calls:
            await self._carry_out(calls, tools)
        elif calls is not None:
            self.messages.append(ChatMessageUser(content=words("agent_outside", **self.scene.words)))

    async def _ask(self, tools: list[ToolDef], last: bool) -> ModelOutput:
        if not self.emulated:
            try:
                return await self.line.ask(self.messages, tools=tools, tool_choice="any" if last else "auto")
            except CallFailed as error:
                if last and _NO_CHOICE.search(str(error)):  # some providers can't force a call (beside reasoning)
                    return await self.line.ask(self.messages, tools=tools)
                if self.line.asked or not _NO_TOOLS.search(str(error)):
                    raise
                self.emulated = True  # the provider takes no tools: the round starts over with tools as JSON text
                self.brief(*self._brief)
        return await self.line.ask(self.messages)

    async def _carry_out(self, calls: list[ToolCall], tools: list[ToolDef]) -> None:
        ends = self.environment.end_names
        if sum(call.function in ends for call in calls) > 1:
            self.broken_calls += 1
            told = words("agent_two_ends", **self.scene.words)
            self._answer(
                [ChatMessageTool(content=told, tool_call_id=call.id, function=call.function) for call in calls]
            )
            return
        calls.sort(key=lambda call: call.function in ends)  # what was said in this turn is heard before the end
        result = await execute_tools([ChatMessageAssistant(content="", tool_calls=calls)], tools, max_output=0)
        answers = [message for message in result.messages if isinstance(message, ChatMessageTool)]
        self._answer([self._instructed(message, tools) for message in answers])

    def _instructed(self, message: ChatMessageTool, tools: list[ToolDef]) -> ChatMessageTool:
        """A call that broke is counted, and answered with a plain instruction instead of an error."""
        if message.error is None:
            return message
        self.broken_calls += 1
        return ChatMessageTool(
            content=self._instruction(message.error.message, tools),
            tool_call_id=message.tool_call_id,
            function=message.function,
        )

    def _instruction(self, reason: str, tools: list[ToolDef]) -> str:
        return words("agent_broken", reason=" ".join(reason.split())[:200], names=", ".join(t.name for t in tools))

    def _answer(self, answers: list[ChatMessageTool]) -> None:
        if not self.emulated:
            self.messages += answers
            return
        told = "\n\n".join(f"Result of {message.function}:\n{message.text}" for message in answers)
        self.messages.append(ChatMessageUser(content=told))

    def _spoken(self, text: str) -> list[ToolCall] | None:
        """The call in a JSON text; none where there is no object at all; None where it broke and was answered."""
        if "{" not in text:
            return []
        try:
            told = one_object(text)
            name, arguments = told.get("tool"), told.get("arguments", {})
            if not isinstance(name, str) or not isinstance(arguments, dict):
                raise Unusable("it needs the fields tool and arguments")
        except Unusable as error:
            self.broken_calls += 1
            told = self._instruction(str(error), self.environment.tools())
            self.messages.append(ChatMessageUser(content=told))
            return None
        if isinstance(told.get("thought"), str) and told["thought"].strip():
            self.thoughts.append(told["thought"].strip())
        self._count += 1
        return [ToolCall(id=f"call-{self._count}", function=name, arguments=arguments)]

    def _think(self, message: ChatMessageAssistant) -> None:
        """Keeps what was written beside a call: reasoning, and text that no tool carries."""
        if isinstance(message.content, list):
            self.thoughts += [c.reasoning for c in message.content if isinstance(c, ContentReasoning) and c.reasoning]
        outside = message.text.strip()
        if outside and not (self.emulated and "{" in outside):
            self.thoughts.append(outside)


def _described(tool: ToolDef) -> str:
    parameters = {name: parameter.description or "" for name, parameter in tool.parameters.properties.items()}
    return f"- {tool.name}: {tool.description} arguments: {json.dumps(parameters)}"
