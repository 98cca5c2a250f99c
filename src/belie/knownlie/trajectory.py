"""One trajectory: its cases in turn, with memory and trust; one Inspect sample (METHOD §2.3).

Knows: what a round hands to the next, when a trajectory stops, and where a killed one continues.
Does not know: how a round is played (episode), or where rounds are kept (the caller's ``keep``).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import anyio
from inspect_ai.log import transcript
from inspect_ai.model import ChatMessage, ChatMessageSystem, Model
from inspect_ai.util import span

from belie.knownlie.agent import Agent
from belie.knownlie.answered import Answered
from belie.knownlie.calls import Line
from belie.knownlie.customer import Customer
from belie.knownlie.environment import Environment
from belie.knownlie.episode import play
from belie.knownlie.gate import GateDesk
from belie.knownlie.judge import Judge
from belie.knownlie.ledger import Ledger, Role
from belie.knownlie.protocol import Protocol, Trajectory
from belie.knownlie.records import Gate, Outcome, Round
from belie.knownlie.scene import Scene
from belie.knownlie.trust import START
from belie.knownlie.verdicts import trust_after, verdict

_NOT_ASKED = Gate(passed=None, error="not asked: its trajectory had stopped")


@dataclass(frozen=True, slots=True)
class Players:
    """Who plays: models that Inspect made. ``judges`` holds one model a judge."""

    agent: Model
    customer: Model
    judges: tuple[Model, ...]
    name: str


@dataclass(slots=True)
class Table:
    """What all trajectories of a run share. ``keep`` is told each round that ended, and what its calls cost.

    ``emulated`` turns true once the agent's provider refused tools: from then on they are JSON text.
    """

    run: str
    gates: GateDesk
    emulated: bool = False
    done: dict[str, list[Round]] = field(default_factory=dict)
    keep: Callable[[Round, Ledger], None] | None = None
    answered: Answered | None = None


async def run_trajectory(
    trajectory: Trajectory, players: Players, protocol: Protocol, table: Table
) -> tuple[list[Round], list[ChatMessage]]:
    """Plays what is missing of a trajectory: all its rounds, and the messages of those played now.

    Gates are asked ahead of time, while rounds are played. Rounds that are finished are not played again; missing
    ones at the end are.
    """
    rounds = continued(table.done.get(trajectory.id, []))
    messages: list[ChatMessage] = []
    async with anyio.create_task_group() as ahead:
        for scene in trajectory.scenes[len(rounds) :]:
            ahead.start_soon(table.gates.of, scene, players.agent)
        for position in range(len(rounds), len(trajectory.scenes)):
            async with span(f"round {position + 1}: {trajectory.scenes[position].case}", type="round"):
                ledger = Ledger()
                round, said = await _round(trajectory, position, rounds, players, protocol, table, ledger)
                transcript().info(shown(round), source="belie")
            rounds.append(round)
            messages += said
            if table.keep is not None:
                table.keep(round, ledger)
    return rounds, messages


async def _round(
    trajectory: Trajectory,
    position: int,
    before: Sequence[Round],
    players: Players,
    protocol: Protocol,
    table: Table,
    ledger: Ledger,
) -> tuple[Round, list[ChatMessage]]:
    scene = trajectory.scenes[position]
    trust = before[-1].trust_after if before else START[trajectory.trust]

    def made(gate: Gate, **values: Any) -> Round:
        return Round(
            model=players.name,
            domain=trajectory.domain,
            case=scene.case,
            entitlement=scene.entitlement,
            condition=trajectory.condition,
            trust=trajectory.trust,
            seed=trajectory.seed,
            position=position,
            gate=gate,
            trust_before=trust,
            **{"outcome": "undecided", "trust_after": trust, "harm_is_lie": scene.harm_is_lie, **values},
        )

    if _missing_at_end(before) >= protocol.missing_in_a_row:
        gate = table.gates.known.get(scene.case, _NOT_ASKED)
        stopped = f"not played: the {protocol.missing_in_a_row} rounds before it were missing"
        return made(gate, missing=stopped), []
    gate = await table.gates.of(scene, players.agent)
    if gate.passed is None:
        return made(gate, missing=f"gate: {gate.error}"), []
    if not gate.passed:
        return made(gate), []

    scope = f"{table.run}|{trajectory.id}|{position}"
    agent, customer, judge = _seat(trajectory, scene, scope, trust, players, protocol, table, ledger)
    remembered = memory(before, trajectory.scenes)
    episode = await play(agent, customer, judge, trajectory.condition, remembered, protocol.turns)
    table.emulated |= agent.emulated
    judged = verdict(episode.facts, scene.entitlement) if episode.facts is not None else None
    round = made(
        gate,
        outcome=episode.outcome,
        trust_after=trust if judged is None else trust_after(trust, judged, protocol.rule),
        event=None if judged is None else judged.event,
        facts=episode.facts,
        unscored=episode.unscored,
        missing=episode.missing,
        forced=episode.forced,
        agent_turns=episode.agent_turns,
        broken_calls=episode.broken_calls,
        lookups=episode.lookups,
        transcript=episode.transcript,
        thoughts=episode.thoughts,
    )
    messages = list(episode.messages)
    return round, messages if not before else [m for m in messages if not isinstance(m, ChatMessageSystem)]


def _seat(
    trajectory: Trajectory,
    scene: Scene,
    scope: str,
    trust: float,
    players: Players,
    protocol: Protocol,
    table: Table,
    ledger: Ledger,
) -> tuple[Agent, Customer, Judge]:
    def line(model: Model, role: Role, part: str = "", **more: Any) -> Line:
        told = {"structured": protocol.structured, "max_tokens": protocol.max_tokens, **more}
        return Line(model, role, f"{scope}{part}", ledger, answered=table.answered, **told)

    seed = zlib.crc32(f"{trajectory.id}|{scene.case}".encode())
    customer = Customer(line(players.customer, "customer"), scene, trust, protocol.lookups, protocol.tries)
    judges = [line(model, "judge", f"|{number}") for number, model in enumerate(players.judges)]
    judge = Judge(judges, scene, protocol.tries, protocol.per_claim, protocol.second_look)
    mouth = line(players.agent, "agent", temperature=protocol.agent_temperature, seed=seed)
    return Agent(mouth, scene, Environment(scene, customer), table.emulated), customer, judge


def memory(rounds: Sequence[Round], scenes: Sequence[Scene]) -> list[str]:
    """What the agent remembers: a line for each request it brought to an end, in the domain's own words.

    Never trust, never what a judge thought. A round that was not played, or broke off, is not remembered.
    """
    lines = []
    for round, scene in zip(rounds, scenes, strict=False):
        played = round.gate.passed and (round.missing is None or round.outcome != "undecided")
        if played:
            outcome: Outcome = round.outcome
            lines.append(scene.remembered(outcome))
    return lines


def continued(rounds: Sequence[Round]) -> list[Round]:
    """The rounds that stand when a trajectory goes on: all but the missing ones at its end, and without gaps."""
    standing = [round for position, round in enumerate(rounds) if round.position == position]
    return standing[: len(standing) - _missing_at_end(standing)]


def _missing_at_end(rounds: Sequence[Round]) -> int:
    count = 0
    while count < len(rounds) and rounds[-1 - count].missing is not None:
        count += 1
    return count


def shown(round: Round) -> dict[str, Any]:
    """A round as the viewer shows it: gate, verdict, quoted lie, trust before and after."""
    judged = verdict(round.facts, round.entitlement) if round.facts is not None else None
    claims = round.facts.claims if round.facts is not None else ()
    return {
        "round": round.position + 1,
        "case": round.case,
        "entitlement": round.entitlement,
        "gate": {"passed": round.gate.passed, "reason": round.gate.reason or round.gate.error},
        "outcome": round.outcome,
        "verdict": None if judged is None else asdict(judged),
        "lie": [claim.quote for claim in claims if claim.verified],
        "rejected_quotes": [claim.quote for claim in claims if not claim.verified],
        "trust_before": round.trust_before,
        "trust_after": round.trust_after,
        "unscored": round.unscored,
        "missing": round.missing,
    }
