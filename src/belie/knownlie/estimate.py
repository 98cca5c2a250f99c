"""What a run will take before anything is spent: calls, tokens and cost by role.

Knows: the prompts' lengths, and how many calls a usual round has.
Does not know: a model's own verbosity; the figures are for planning, usually right within a factor of two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from belie.knownlie.gate import gate_question
from belie.knownlie.ledger import ROLES, Role
from belie.knownlie.phrasing import words
from belie.knownlie.protocol import Protocol, trajectories
from belie.knownlie.scene import Scene
from belie.knownlie.task import load_packs

#: A usual round: agent turns, of which so many are messages that the customer answers, and look-ups of the customer.
AGENT_TURNS, MESSAGES, LOOKUPS = 5, 2, 0.5
#: Tokens a player writes in one call, and characters a token has in English prose.
WRITTEN: Mapping[Role, int] = {"agent": 150, "gate": 60, "customer": 60, "judge": 200}
CHARACTERS = 4


@dataclass(frozen=True, slots=True)
class RoleEstimate:
    """Calls and tokens of one role. ``cost`` in US dollars; None without a price for its model."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """``longest`` is the number of calls that the longest trajectory makes one after another."""

    trajectories: int
    rounds: int
    roles: Mapping[Role, RoleEstimate]
    longest: int

    @property
    def calls(self) -> int:
        return sum(role.calls for role in self.roles.values())

    @property
    def cost(self) -> float | None:
        """The sum over the roles; None where one of them has no known price."""
        costs = [role.cost for role in self.roles.values()]
        return None if any(cost is None for cost in costs) else sum(cost for cost in costs if cost is not None)


def estimate(
    protocol: Protocol,
    domains: str | Sequence[str | Path] | None = None,
    model: str | None = None,
    customer: str | None = None,
    judge: str | None = None,
    prices: Mapping[str, tuple[float, float]] | None = None,
) -> Estimate:
    """Calls, tokens and cost of a run in which every gate passes.

    ``prices``: US dollars for a million tokens read and written, by model string. Without one the cost is None.
    """
    plan = trajectories(load_packs(domains), protocol)
    scenes = {scene.case: scene for trajectory in plan for scene in trajectory.scenes}
    rounds = [scene.case for trajectory in plan for scene in trajectory.scenes]

    @cache
    def read(case: str) -> dict[Role, float]:
        return _read(scenes[case])

    judgements = protocol.judges * (1 + 3 * protocol.per_claim + protocol.second_look)
    times: dict[Role, float] = {"agent": AGENT_TURNS, "customer": MESSAGES + LOOKUPS, "judge": judgements}
    gate_calls = len(scenes) * (1 + protocol.gate_samples)
    names: dict[Role, str | None] = {"agent": model, "gate": model, "customer": customer, "judge": judge}
    roles: dict[Role, RoleEstimate] = {}
    for role in ROLES:
        if role == "gate":
            calls, tokens = gate_calls, sum(read(case)["gate"] for case in scenes) * (1 + protocol.gate_samples)
        else:
            calls, tokens = round(times[role] * len(rounds)), times[role] * sum(read(case)[role] for case in rounds)
        written = calls * WRITTEN[role]
        roles[role] = RoleEstimate(calls, round(tokens), written, _cost(names[role], prices or {}, tokens, written))
    longest = max(len(trajectory.scenes) for trajectory in plan)
    return Estimate(len(plan), len(rounds), roles, round(longest * sum(times.values())) + 1)


def _read(scene: Scene) -> dict[Role, float]:
    """Tokens one call of each role reads, the middle of a round taken for all of its calls."""
    policy, record = len(scene.policy_text), len(scene.record_text)
    prompt = len(words("judge")) + policy + record + sum(len(text) for text, _ in scene.facts)
    talk = len(scene.opening) + MESSAGES * 2 * WRITTEN["customer"] * CHARACTERS
    tools = sum(len(name) + len(description) + 120 for name, description in scene.tools.values())
    return {
        "agent": (2000 + tools + talk + 0.8 * (policy + record)) / CHARACTERS,
        "gate": len(gate_question(scene)) / CHARACTERS,
        "customer": (2500 + len(scene.headings) + len(scene.goal) + talk) / CHARACTERS,
        "judge": (prompt + talk + 400) / CHARACTERS,
    }


def _cost(model: str | None, prices: Mapping[str, tuple[float, float]], read: float, written: float) -> float | None:
    price = prices.get(model) if model is not None else None
    return None if price is None else (read * price[0] + written * price[1]) / 1e6
