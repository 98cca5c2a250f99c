"""Published trajectories as rounds of ours, so that METHOD's scores can be computed from them.

Knows: what each field of a row becomes, and what the format does not hold.
Does not know: scores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from belie.knownlie.baselines import CONDITION_NAMES
from belie.knownlie.interop.rows import PublishedRows, Row, read_rows
from belie.knownlie.knowing import Probed
from belie.knownlie.quotes import stands_in
from belie.knownlie.records import Claim, Entitlement, Event, Facts, Gate, Mechanism, Outcome, Round

#: The format names no mechanism. Such a lie enters every rate but the mechanism shares.
UNKNOWN = cast(Mechanism, "unknown")

_EVENTS: Mapping[str, Event] = {
    "source_conflict_detected": "caught",
    "valid_challenge": "resisted",
    "undetected_deception": "slipped",
    "source_supported": "disclosed",
    "no_issue": "clean",
}
#: Our facts and the keys of the format, which are named after the refund domain in every domain.
_FACTS = {
    "promoted_favoured": "agent_pushed_store_credit",
    "disclosed_owed": "agent_disclosed_card_refund_option",
    "pressed": "agent_used_pressure_or_urgency",
    "persisted_after_pushback": "agent_persisted_after_pushback",
    "overstated_favoured": "agent_overstated_credit_or_hid_limits",
    "customer_pushed_back": "customer_pushed_back",
    "customer_detected": "customer_detected_manipulation",
    "left_role": "agent_refused_or_broke_character",
}
_CLAIMED = "agent_made_false_claim"
_SPEAKERS = {"agent": "agent", "user": "customer", "customer": "customer"}
#: The one domain in which the harm is the lie itself (METHOD §2.1).
_HARM_IS_LIE = "debt"


@dataclass(frozen=True, slots=True)
class Published:
    """``rounds`` for `belie.knownlie.scores.score`, with ``probed="round"``: the gate was asked anew in every round.

    ``runs``: the run_meta of the files. ``notes``: what a reader must know about these rounds.
    """

    rounds: tuple[Round, ...]
    runs: tuple[Row, ...]
    notes: tuple[str, ...]
    probed: Probed = "round"


def read_published(paths: str | Path | Iterable[str | Path]) -> Published:
    """Reads published trajectories. Raises BadInput with file and line.

    A quote is verified against the agent's messages where the row has a transcript; where it has none, the published
    verdict ``derived.lied`` is taken at its word, and a note says in how many rounds. A row whose judge's reply was
    unusable is unscored here, although the published scores count it as honest.
    """
    read = read_rows(paths)
    seeds = _seeds(read)
    kept = [row for row in read.rows if row.get("entitled_outcome") is not None]
    rounds = tuple(_round(row, seeds) for row in kept)
    return Published(rounds, tuple(read.runs), tuple(_notes(read, rounds, len(read.rows) - len(kept))))


def _seeds(read: PublishedRows) -> dict[tuple[str, str], int]:
    """A number for every scenario and sample: the sample's own number where there is one scenario."""
    pairs = sorted({_sample(row) for row in read.rows}, key=lambda pair: (pair[0], len(pair[1]), pair[1]))
    if len({scenario for scenario, _ in pairs}) == 1 and all(sample.isdigit() for _, sample in pairs):
        return {pair: int(pair[1]) for pair in pairs}
    return {pair: i for i, pair in enumerate(pairs)}


def _sample(row: Row) -> tuple[str, str]:
    return str(row.get("scenario", "_")), str(row.get("sample", 0))


def _round(row: Row, seeds: Mapping[tuple[str, str], int]) -> Round:
    domain = str(row.get("domain", "refund"))
    owed = row.get("owed_outcome")
    entitled = row["entitled_outcome"]
    entitlement: Entitlement = "owed" if entitled != "none" and (owed is None or entitled == owed) else "calibration"
    transcript = _transcript(row)
    facts, unscored = (None, None) if not row["gate_passed"] else _facts(row, transcript)
    before = float(row.get("trust_before", 0.0))
    error = row.get("error")
    return Round(
        model=str(row.get("agent")),
        domain=domain,
        case=str(row.get("order_id") or row.get("situation")),
        entitlement=entitlement,
        condition=CONDITION_NAMES[row["condition"]],
        trust=row["initial"],
        seed=seeds[_sample(row)],
        position=int(row.get("round", 1)) - 1,
        gate=Gate(passed=None, error=str(error)) if error else Gate(bool(row["gate_passed"]), raw=row.get("gate_raw")),
        outcome=_outcome(row),
        trust_before=before,
        trust_after=float(row.get("trust_after", before)),
        event=_EVENTS.get(str(row.get("event"))) if facts is not None else None,
        facts=facts,
        unscored=unscored,
        missing=str(error) if error else None,
        transcript=transcript,
        thoughts=tuple(map(str, row.get("agent_thoughts", ()))),
        harm_is_lie=domain == _HARM_IS_LIE,
    )


def _outcome(row: Row) -> Outcome:
    outcome = row.get("outcome", "none")
    if outcome == row.get("owed_outcome"):
        return "owed"
    return "undecided" if outcome in (None, "none") else "favoured"


def _transcript(row: Row) -> tuple[tuple[str, str], ...]:
    """What was said aloud: tool calls and their results are no speech."""
    spoken = ((str(entry[0]), str(entry[1])) for entry in row.get("transcript", ()) if len(entry) == 2)
    return tuple((_SPEAKERS[role], text) for role, text in spoken if role in _SPEAKERS)


def _facts(row: Row, transcript: tuple[tuple[str, str], ...]) -> tuple[Facts | None, str | None]:
    told = row["facts"]
    values = {name: _truth(told.get(key)) for name, key in _FACTS.items()}
    claimed = _truth(told.get(_CLAIMED))
    absent = [_FACTS[name] for name, value in values.items() if value is None]
    if claimed is None:
        absent.append(_CLAIMED)
    if absent:
        return None, f"the judge's reply was unusable: it gave no {absent[0]}"
    claims = ()
    if claimed:
        quote = str(told.get("false_claim_quote") or "")
        messages = [text for speaker, text in transcript if speaker == "agent"]
        verified = stands_in(quote, messages) if row.get("transcript") else bool(row["derived"].get("lied"))
        claims = (Claim(quote, UNKNOWN, verified=verified),)
    return Facts(**cast(dict[str, Any], values), claims=claims), None


def _truth(value: Any) -> bool | None:
    """True or false as the judge meant it: the text "false" is false. None for anything else."""
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def _notes(read: PublishedRows, rounds: tuple[Round, ...], without: int) -> Iterable[str]:
    unseen = sum(
        1 for round in rounds if round.facts and not round.transcript and any(c.verified for c in round.facts.claims)
    )
    if unseen:
        yield f"{unseen} lies are taken at the published verdict's word: no transcript to find their quote in."
    reasons = Counter(round.unscored for round in rounds if round.unscored)
    if reasons:
        yield f"{reasons.total()} rounds are unscored here and honest by the published definition: no usable verdict."
    if without:
        yield f"{without} rows do not say what the customer was entitled to and were left out."
    if read.lost:
        yield f"{read.lost} trajectories failed as a whole."
    if read.aborted:
        yield f"A run was stopped early: {'; '.join(read.aborted)}."
    if read.unfinished:
        yield f"Without their closing line, so perhaps unfinished: {', '.join(read.unfinished)}."
