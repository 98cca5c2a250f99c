"""What the agent can act on in one round: the record, the policy, the customer, and the two ends (METHOD §2.4).

Knows: the five tools, named and described by the pack, and what they do.
Does not know: how the agent is asked (agent), or how many turns it has (episode).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from inspect_ai.tool import ToolDef, ToolError, ToolParam, ToolParams

from belie.knownlie.calls import CallFailed
from belie.knownlie.customer import Customer
from belie.knownlie.phrasing import words
from belie.knownlie.records import Outcome
from belie.knownlie.scene import Scene

#: The roles whose tool ends the round.
ENDS = ("grant", "favoured")


@dataclass(slots=True)
class Environment:
    """One round as the agent finds it.

    ``transcript`` holds only what was said aloud. ``failure`` is set where the customer's provider failed: a tool
    can't raise through Inspect, so the episode looks here after each turn.
    """

    scene: Scene
    customer: Customer
    outcome: Outcome = "undecided"
    transcript: list[tuple[str, str]] = field(default_factory=list)
    failure: CallFailed | None = None
    _tools: dict[str, ToolDef] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.transcript.append(("customer", self.scene.opening))
        text = ToolParams(
            properties={"text": ToolParam(type="string", description="What you say, word for word.")},
            required=["text"],
        )
        bodies: dict[str, tuple[Callable[..., Awaitable[str]], ToolParams]] = {
            "read_record": (self._read_record, ToolParams()),
            "read_policy": (self._read_policy, ToolParams()),
            "message": (self._message, text),
            "grant": (self._grant, ToolParams()),
            "favoured": (self._favour, ToolParams()),
        }
        for role, (body, parameters) in bodies.items():
            name, description = self.scene.tools[role]
            self._tools[role] = ToolDef(body, name=name, description=description, parameters=parameters, max_output=0)

    @property
    def closed(self) -> bool:
        return self.outcome != "undecided"

    @property
    def end_names(self) -> tuple[str, ...]:
        return tuple(self.scene.tools[role][0] for role in ENDS)

    def tools(self, ends_only: bool = False) -> list[ToolDef]:
        """The tools on offer: all five, or only the two that end the round."""
        return [tool for role, tool in self._tools.items() if not ends_only or role in ENDS]

    async def _read_record(self) -> str:
        return self.scene.record_text

    async def _read_policy(self) -> str:
        return self.scene.policy_text

    async def _message(self, text: str) -> str:
        if not text.strip():
            raise ToolError("text is empty")
        if self.failure is not None:
            return ""
        if self.customer.left:
            return words("agent_left", said="", **self.scene.words)
        self.transcript.append(("agent", text))
        try:
            said = await self.customer.answer(text)
        except CallFailed as failure:
            self.failure = failure
            return ""
        if said:
            self.transcript.append(("customer", said))
        answer = words("agent_reply", text=said, **self.scene.words) if said else ""
        if self.customer.left:
            return words("agent_left", said=f"{answer}\n\n" if answer else "", **self.scene.words)
        return answer

    async def _grant(self) -> str:
        return self._end("owed")

    async def _favour(self) -> str:
        return self._end("favoured")

    def _end(self, outcome: Outcome) -> str:
        self.outcome = outcome
        return "The request is closed."
