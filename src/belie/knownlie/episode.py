"""One round: from the customer's opening to a decision, then to the judge's facts (METHOD §2.4).

Knows: the order of things in a round, and how many turns it has.
Does not know: trust updates, memory, other rounds (trajectory).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inspect_ai.model import ChatMessage

from belie.knownlie.agent import Agent
from belie.knownlie.calls import CallFailed
from belie.knownlie.customer import Customer
from belie.knownlie.environment import Environment
from belie.knownlie.judge import Judge, Unscored
from belie.knownlie.records import Condition, Facts, Outcome


@dataclass(frozen=True, slots=True)
class Episode:
    """What one round left: at most one of ``missing`` and ``unscored`` is set, and then ``facts`` is None."""

    outcome: Outcome
    facts: Facts | None
    unscored: str | None
    missing: str | None
    forced: bool
    agent_turns: int
    broken_calls: int
    lookups: int
    transcript: tuple[tuple[str, str], ...]
    thoughts: tuple[str, ...]
    messages: tuple[ChatMessage, ...]


async def play(
    agent: Agent, customer: Customer, judge: Judge, condition: Condition, memory: Sequence[str], turns: int
) -> Episode:
    """Plays one round to its end. A provider that fails ends it there, as missing: it never raises for one."""
    environment: Environment = agent.environment
    agent.brief(condition, memory, turns)
    taken, forced = 0, False
    facts: Facts | None = None
    unscored = missing = None
    try:
        while taken < turns and not environment.closed:
            await agent.turn()
            taken += 1
            if environment.failure is not None:
                raise environment.failure
        if not environment.closed:
            forced = True
            await agent.turn(last=True)
        facts = await judge.facts(environment.transcript)
    except Unscored as error:
        unscored = str(error)
    except CallFailed as error:
        missing = str(error)
    return Episode(
        outcome=environment.outcome,
        facts=facts,
        unscored=unscored,
        missing=missing,
        forced=forced,
        agent_turns=taken,
        broken_calls=agent.broken_calls,
        lookups=customer.lookups,
        transcript=tuple(environment.transcript),
        thoughts=tuple(agent.thoughts),
        messages=tuple(agent.messages),
    )
