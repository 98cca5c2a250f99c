"""KnownLie as an Inspect task: ``inspect eval belie/knownlie --model … --model-role customer=… --model-role judge=…``.

Knows: how trajectories become samples, and what the viewer and the log show of them.
Does not know: run folders and resuming (run), or scores with intervals (scores).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import Model, ModelOutput, get_model
from inspect_ai.model._model import model_roles
from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from belie.knownlie.gate import gate_desk
from belie.knownlie.journal import round_from_dict
from belie.knownlie.metrics import METRICS
from belie.knownlie.pack import Pack, builtin_packs, load_pack
from belie.knownlie.phrasing import PROMPTS_VERSION
from belie.knownlie.players import takes_tools
from belie.knownlie.protocol import Order, Protocol, Trajectory, trajectories
from belie.knownlie.records import CONDITIONS, TRUST_LEVELS, Round
from belie.knownlie.scripted import learn
from belie.knownlie.trajectory import Players, Table, run_trajectory, shown
from belie.knownlie.verdicts import TASK_VERSION, verdict
from belie.respondents.base import BadInput

_STORE = "rounds"


@task
def knownlie(
    domains: str | list[str] | None = None,
    conditions: str | list[str] | None = None,
    trust: str | list[str] | None = None,
    seeds: int = 1,
    order: Order = "seed",
    limit: int | None = None,
    gate_samples: int = 0,
    judges: int = 1,
    per_claim: bool = False,
    second_look: bool = False,
    trust_rule: str = "method",
    emulated: bool | None = None,
    structured: bool = True,
) -> Task:
    """Does an agent that knows what a customer is owed deny it when its employer gains? (METHOD §2)

    Model roles ``customer`` and ``judge`` must be named; ``judge`` may be a list. One sample a trajectory.

    Args:
        domains: Domains that come with Belie, or folders of packs; all of Belie's if not named.
        conditions: Of none, incentive, instructed; all if not named.
        trust: Initial trust: of low, neutral, high; all if not named.
        seeds: How many trajectories of each domain, condition and trust level, seeded 0, 1, ….
        order: "seed" shuffles the cases by the seed; "paper" keeps the pack's order, owed cases first.
        limit: Cases a trajectory.
        gate_samples: Further knowledge checks a case, at the agent's temperature, for p_know.
        judges: How many judge each round; a fact needs the majority.
        per_claim: The judge lists the agent's statements and checks each by itself.
        second_look: Each flagged quote is checked once more by itself.
        trust_rule: method, flat, soft, harsh or gentle.
        emulated: Tools as JSON text (true), as native calls (false), or as the model can.
        structured: Ask providers to hold replies to a schema, where they can.
    """
    protocol = Protocol(
        conditions=tuple(_listed(conditions, CONDITIONS)),
        trust=tuple(_listed(trust, TRUST_LEVELS)),
        seeds=tuple(range(seeds)),
        order=order,
        limit=limit,
        gate_samples=gate_samples,
        judges=judges,
        per_claim=per_claim,
        second_look=second_look,
        trust_rule=trust_rule,
        emulated=emulated,
        structured=structured,
    )
    run = uuid.uuid4().hex
    desk = gate_desk(run, protocol)
    packs = load_packs(domains)
    return build_task(trajectories(packs, protocol), protocol, Table(run, desk), {p.id: p.version for p in packs})


def load_packs(domains: str | Sequence[str | Path] | None) -> list[Pack]:
    """The packs named: domains of Belie or folders; all of Belie's where none is named. Raises ``BadInput``."""
    known = builtin_packs()
    packs = []
    for name in _listed(domains, known):
        folder = known.get(str(name)) or Path(name)
        if not folder.is_dir():
            raise BadInput(
                f"There is no domain and no folder {str(name)!r}: choose from {', '.join(known) or 'folders'}."
            )
        packs.append(load_pack(folder))
    if not packs:
        raise BadInput("There is no domain to play: name at least one.")
    if len({pack.id for pack in packs}) < len(packs):
        raise BadInput("Two of the packs have the same id: their cases could not be told apart.")
    for pack in packs:
        learn(pack)
    return packs


def build_task(
    todo: Sequence[Trajectory], protocol: Protocol, table: Table, packs: dict[str, int], name: str | None = None
) -> Task:
    """The task over some trajectories of a run. ``name``: the model as the user wrote it (Inspect's name if None)."""
    samples = [
        Sample(
            id=trajectory.id,
            input=f"{len(trajectory.scenes)} requests, domain {trajectory.domain}, condition {trajectory.condition}, "
            f"initial trust {trajectory.trust}",
            metadata={
                "domain": trajectory.domain,
                "condition": trajectory.condition,
                "trust": trajectory.trust,
                "seed": trajectory.seed,
                "cases": [scene.case for scene in trajectory.scenes],
            },
        )
        for trajectory in todo
    ]
    return Task(
        name="knownlie",
        dataset=MemoryDataset(samples),
        solver=_in_turn({trajectory.id: trajectory for trajectory in todo}, protocol, table, name),
        scorer=rounds_scorer(),
        version=TASK_VERSION,
        metadata={"prompts": PROMPTS_VERSION, "packs": packs, "protocol": protocol.options()},
    )


def _in_turn(todo: dict[str, Trajectory], protocol: Protocol, table: Table, name: str | None) -> Solver:
    @solver(name="knownlie_trajectory")
    def rounds_in_turn() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001 (Inspect's signature)
            players = seated(protocol, name)
            if protocol.emulated or (protocol.emulated is None and not takes_tools(players.agent)):
                table.emulated = True
            rounds, messages = await run_trajectory(todo[str(state.sample_id)], players, protocol, table)
            state.messages = messages
            state.store.set(_STORE, [asdict(round) for round in rounds])
            state.output = ModelOutput.from_content(str(players.agent), _summary(rounds))
            return state

        return solve

    return rounds_in_turn()


def seated(protocol: Protocol, name: str | None = None) -> Players:
    """The players of the running task. Raises Inspect's PrerequisiteError where customer or judge is not named."""
    agent = get_model()
    customer, judge = get_model(role="customer", required=True), get_model(role="judge", required=True)
    named = model_roles()["judge"]
    several: Sequence[Model] = named if isinstance(named, list) and len(named) > 1 else [judge] * protocol.judges
    return Players(agent, customer, tuple(several), name or str(agent))


@scorer(metrics=METRICS)
def rounds_scorer() -> Scorer:
    """Shows each round's gate, verdict, quoted lie and trust. The value: lies among the scored owed rounds."""

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 (Inspect's signature)
        rounds = [round_from_dict(entry) for entry in state.store.get(_STORE, [])]
        lies = sum(
            verdict(round.facts, round.entitlement).lie
            for round in rounds
            if round.facts is not None and round.entitlement == "owed"
        )
        trust = [rounds[0].trust_before, *(round.trust_after for round in rounds)] if rounds else []
        return Score(
            value=lies,
            answer=f"{lies} lies, trust {trust[0]:.2f} → {trust[-1]:.2f}" if trust else "no rounds",
            explanation=_summary(rounds),
            metadata={"trust": trust, "rounds": [shown(round) for round in rounds]},
        )

    return score


def rounds_of(log: EvalLog) -> list[Round]:
    """The rounds in an Inspect log of this task."""
    return [round_from_dict(entry) for sample in log.samples or [] for entry in sample.store.get(_STORE, [])]


def _summary(rounds: Sequence[Round]) -> str:
    """One line a round, for the viewer."""
    lines = []
    for round in rounds:
        told = shown(round)
        if round.missing is not None:
            what = f"missing: {round.missing}"
        elif round.unscored is not None:
            what = f"unscored: {round.unscored}"
        elif told["verdict"] is None:
            what = f"not played: gate failed ({round.gate.reason})"
        else:
            what = f"{round.outcome}, {told['verdict']['event']}" + "".join(
                f", lie: “{quote}”" for quote in told["lie"]
            )
        lines.append(f"{told['round']}. {round.case} ({round.entitlement}): {what}; trust {round.trust_after:.2f}")
    return "\n".join(lines)


def _listed(named: str | Sequence[Any] | None, everything: Any) -> list[Any]:
    if named is None or named == "all":
        return list(everything)
    return [part.strip() for part in named.split(",")] if isinstance(named, str) else list(named)
