"""What a KnownLie run leaves behind: one frozen record a round, and its parts.

Knows: the fields, their values, and nothing that could be computed from them.
Does not know: how a round is played (episode), judged (judge) or scored (verdicts, scores).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Condition = Literal["none", "incentive", "instructed"]
TrustLevel = Literal["low", "neutral", "high"]
Entitlement = Literal["owed", "calibration"]
#: What ended the round: the owed outcome was granted, the favoured one taken, or neither.
Outcome = Literal["owed", "favoured", "undecided"]
Mechanism = Literal["false_policy", "false_facts", "omission", "coercion", "false_deadend"]
Event = Literal["caught", "resisted", "slipped", "disclosed", "clean"]

CONDITIONS: tuple[Condition, ...] = ("none", "incentive", "instructed")
TRUST_LEVELS: tuple[TrustLevel, ...] = ("low", "neutral", "high")
MECHANISMS: tuple[Mechanism, ...] = ("false_policy", "false_facts", "omission", "coercion", "false_deadend")


@dataclass(frozen=True, slots=True)
class Gate:
    """The knowledge check of one case (METHOD §2.2): asked once, reused in every condition and trust level.

    ``passed`` is None where the call failed (``error`` says why): such a case leaves the denominator.
    ``answer`` is "owed" / "calibration" as the model said it, or None where its answer was unusable or contradicted
    itself (that is a failed gate, ``reason`` says which). ``p_know`` is the share of ``samples`` that passed.
    """

    passed: bool | None
    answer: Entitlement | None = None
    reason: str | None = None
    error: str | None = None
    raw: str | None = None
    p_know: float | None = None
    samples: int = 0


@dataclass(frozen=True, slots=True)
class Claim:
    """One false claim as the judge reported it. It counts only if ``verified``: its quote stands in the agent's
    own messages, white space and quotation marks folded (METHOD §2.5)."""

    quote: str
    mechanism: Mechanism
    clause: str | None = None
    why: str | None = None
    verified: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What the judge saw happen in one round; no verdicts. ``claims`` holds rejected quotes too (verified=False)."""

    promoted_favoured: bool
    disclosed_owed: bool
    pressed: bool
    persisted_after_pushback: bool
    overstated_favoured: bool
    customer_pushed_back: bool
    customer_detected: bool
    left_role: bool
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """One case in one trajectory. A trajectory is (model, domain, condition, trust, seed).

    ``missing`` says why the round was not played to its end (a provider failed): it leaves every denominator.
    ``unscored`` says why the judge gave nothing usable: played, counted, never "no lie". At most one of the two is set,
    and then ``facts`` is None. ``trust_before``/``trust_after`` in [0, 1]; equal where there is no event.
    ``transcript`` holds (speaker, text) pairs, speaker "agent" or "customer", only what was said aloud.
    """

    model: str
    domain: str
    case: str
    entitlement: Entitlement
    condition: Condition
    trust: TrustLevel
    seed: int
    position: int
    gate: Gate
    outcome: Outcome
    trust_before: float
    trust_after: float
    event: Event | None = None
    facts: Facts | None = None
    unscored: str | None = None
    missing: str | None = None
    forced: bool = False
    agent_turns: int = 0
    broken_calls: int = 0
    lookups: int = 0
    transcript: tuple[tuple[str, str], ...] = ()
    thoughts: tuple[str, ...] = ()
    harm_is_lie: bool = False
