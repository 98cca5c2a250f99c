"""How a KnownLie run is played: every option that can change a result, and the order of its cases.

Knows: the options of METHOD §2.2–§2.5 with their defaults, which trajectories a run has, which case comes when.
Does not know: models, files, or how a round goes.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from belie.knownlie.pack import Pack
from belie.knownlie.records import CONDITIONS, TRUST_LEVELS, Condition, TrustLevel
from belie.knownlie.scene import Scene, scene_of
from belie.knownlie.trust import RULES, TrustRule
from belie.respondents.base import BadInput

Order = Literal["seed", "paper"]


@dataclass(frozen=True, slots=True)
class Protocol:
    """The options of a run.

    ``seeds``: one trajectory each. ``order``: "seed" shuffles a domain's cases by the seed, alike in every condition
    and trust level, so that conditions differ in nothing else; "paper" is the pack's order, owed cases first.
    ``limit``: cases a trajectory. ``turns``: agent turns before the forced decision. ``lookups``: clauses the customer
    may read a turn.
    ``gate_samples``: further gate calls a case at the agent's temperature. ``judges``: how many judge a round; a
    fact needs the majority. ``per_claim``: the judge lists statements first and checks each by itself. ``second_look``:
    each flagged quote is checked once more by itself. ``trust_rule``: a name of ``trust.RULES``. ``emulated``: tools as
    JSON text (True), as native tool calls (False), or as the model can (None). ``structured``: ask providers to hold
    replies to a schema (those that can). ``tries``: how often customer and judge are asked for a usable reply.
    ``missing_in_a_row``: a trajectory stops after so many rounds that providers failed. ``max_tokens``: of one reply
    (None: as the provider has it).
    """

    conditions: tuple[Condition, ...] = CONDITIONS
    trust: tuple[TrustLevel, ...] = TRUST_LEVELS
    seeds: tuple[int, ...] = (0,)
    order: Order = "seed"
    limit: int | None = None
    turns: int = 10
    lookups: int = 2
    gate_samples: int = 0
    judges: int = 1
    per_claim: bool = False
    second_look: bool = False
    trust_rule: str = "method"
    emulated: bool | None = None
    structured: bool = True
    agent_temperature: float = 0.7
    tries: int = 3
    missing_in_a_row: int = 3
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        for name, values, allowed in (
            ("conditions", self.conditions, CONDITIONS),
            ("trust", self.trust, TRUST_LEVELS),
            ("order", (self.order,), get_args(Order)),
            ("trust_rule", (self.trust_rule,), tuple(RULES)),
        ):
            wrong = [value for value in values if value not in allowed]
            if wrong or not values:
                raise BadInput(f"{name} can't be {wrong[0] if wrong else 'empty'!r}: choose from {', '.join(allowed)}.")
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise BadInput("seeds must be different numbers, at least one.")
        for name, least in (("turns", 1), ("lookups", 0), ("gate_samples", 0), ("judges", 1), ("tries", 1)):
            if getattr(self, name) < least:
                raise BadInput(f"{name} must be at least {least}, not {getattr(self, name)}.")
        if self.limit is not None and self.limit < 1:
            raise BadInput(f"limit must be at least 1 case, not {self.limit}.")

    @property
    def rule(self) -> TrustRule:
        return RULES[self.trust_rule]

    def options(self) -> dict[str, Any]:
        """Every option as JSON values: all of them can change a result, so all bind a run that continues."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One domain, condition, trust level and seed: its cases in turn (METHOD §2.3). ``id`` names it in files."""

    domain: str
    condition: Condition
    trust: TrustLevel
    seed: int
    scenes: tuple[Scene, ...]

    @property
    def id(self) -> str:
        return f"{self.domain}-{self.condition}-{self.trust}-{self.seed}"


def trajectories(packs: Sequence[Pack], protocol: Protocol) -> list[Trajectory]:
    """Every trajectory of a run."""
    return [
        Trajectory(pack.id, condition, trust, seed, scenes)
        for pack in packs
        for seed in protocol.seeds
        for scenes in [case_order(pack, protocol, seed)]
        for condition in protocol.conditions
        for trust in protocol.trust
    ]


def case_order(pack: Pack, protocol: Protocol, seed: int) -> tuple[Scene, ...]:
    """The scenes of a trajectory. A ``limit`` takes owed and calibration cases in the pack's own proportion."""
    scenes = [scene_of(pack, case) for case in pack.cases]
    owed = [scene for scene in scenes if scene.entitlement == "owed"]
    others = [scene for scene in scenes if scene.entitlement != "owed"]
    if protocol.limit is not None and protocol.limit < len(scenes):
        share = max(1, round(protocol.limit * len(owed) / len(scenes)))
        owed, others = owed[:share], others[: protocol.limit - share]
    chosen = owed + others
    if protocol.order == "seed":
        random.Random(f"{pack.id}:{seed}").shuffle(chosen)
    return tuple(chosen)
