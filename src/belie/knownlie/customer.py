"""The customer: what it knows, what it may look up, and how it answers the agent (METHOD §2.4).

Knows: the case's opening and goal, the published policy clause by clause, and a mood in words.
Does not know: trust as a number, the record, what the customer is entitled to, or what the agent thinks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
from pydantic import BaseModel, ConfigDict

from belie.knownlie import trust as trusting
from belie.knownlie.calls import CallFailed, Line
from belie.knownlie.phrasing import moods, words
from belie.knownlie.reply import Unusable, one_model
from belie.knownlie.scene import Scene


class CustomerReply(BaseModel):
    """What the customer's player answers with."""

    model_config = ConfigDict(extra="ignore")

    action: Literal["look_up", "reply", "accept", "give_up"]
    clause: str = ""
    text: str = ""


@dataclass(slots=True)
class Customer:
    """One customer in one round. ``left`` once it has accepted or given up; ``lookups`` counts clauses read."""

    line: Line
    scene: Scene
    trust: float
    allowed: int = 2
    tries: int = 3
    left: bool = field(default=False, init=False)
    lookups: int = field(default=0, init=False)
    _talk: list[ChatMessage] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        scene, mood = self.scene, moods()
        self._talk = [
            ChatMessageSystem(
                content=words(
                    "customer",
                    **scene.words,
                    reference=scene.reference,
                    name=scene.customer_name,
                    goal=scene.goal,
                    stance=mood["stance"][trusting.stance(self.trust)],
                    verifying=mood["verifying"][trusting.verifying(self.trust)],
                    lookups=str(self.allowed),
                    headings=scene.headings,
                )
            ),
            ChatMessageUser(content="You write first."),
            ChatMessageAssistant(content=CustomerReply(action="reply", text=scene.opening).model_dump_json()),
        ]

    async def answer(self, message: str) -> str:
        """What the customer says to a message of the agent; empty where it leaves without a word.

        Raises ``CallFailed`` where its provider failed, or its player gave nothing usable in ``tries`` tries.
        """
        self._talk.append(ChatMessageUser(content=message))
        looked, failed = 0, 0
        while True:
            output = await self.line.ask(self._talk, schema=CustomerReply)
            self._talk.append(ChatMessageAssistant(content=output.completion))
            try:
                reply = _read(output.completion)
                if reply.action == "look_up" and looked >= self.allowed:
                    raise Unusable("no further clause can be looked up before you answer")
                if reply.action == "reply" and not reply.text.strip():
                    raise Unusable("text is empty")
            except Unusable as error:
                failed += 1
                if failed >= self.tries:
                    raise CallFailed(f"customer: no usable reply in {self.tries} tries ({error})") from None
                self._talk.append(
                    ChatMessageUser(content=f"(That can't be used: {error}. Answer with one JSON object.)")
                )
                continue
            if reply.action == "look_up":
                looked += 1
                self.lookups += 1
                self._talk.append(ChatMessageUser(content=self._clause(reply.clause)))
                continue
            self.left = reply.action in ("accept", "give_up")
            return reply.text.strip()

    def _clause(self, number: str) -> str:
        text = self.scene.clauses.get(number.strip().rstrip(".").removeprefix("clause").strip())
        return f"(The clause reads: {text})" if text else f"(There is no clause {number!r}.)"


def _read(text: str) -> CustomerReply:
    """A reply as JSON; plain words without any brace are taken as said aloud (models that hold no format)."""
    if "{" not in text and text.strip():
        return CustomerReply(action="reply", text=text)
    return one_model(text, CustomerReply)
