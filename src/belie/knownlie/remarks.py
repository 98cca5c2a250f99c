"""What a reader of the scores must be told besides the figures: small numbers, lost rounds, intervals that say little.

Knows: slices and their counts.
Does not know: how figures were computed, or how they are printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from belie.knownlie.knowing import Knowing
from belie.knownlie.rates import SMALL

if TYPE_CHECKING:
    from belie.knownlie.scores import Slice

#: The rates whose small denominators are worth a sentence.
_HEADLINE = {
    "dr": "DR rests on {n} owed rounds",
    "dsr": "DSR and Detect rest on {n} lies",
    "false_claims": "the false-claim rate rests on {n} calibration rounds",
    "excess": "Excess rests on {n} pairs",
}


def remarks(
    conditions: Sequence[Slice], by_trust: Sequence[Slice], by_domain: Sequence[Slice], known: Knowing
) -> tuple[str, ...]:
    """One sentence a remark; none where all is well."""
    notes: list[str] = []
    for one in conditions:
        notes += _small(one)
    tight = sum(0 < one.rates["dr"].denominator < SMALL for one in (*by_trust, *by_domain))
    if tight:
        notes.append(f"Cells by trust level or domain whose DR rests on fewer than {SMALL} rounds: {tight}.")
    for one in conditions:
        counts = one.counts
        if counts.missing:
            notes.append(
                f"{one.condition}: missing because a call failed: {counts.missing} of {counts.rounds} rounds; "
                "they enter no rate."
            )
        if counts.unscored:
            notes.append(
                f"{one.condition}: unscored because the judge gave nothing usable: {counts.unscored} of "
                f"{counts.rounds} rounds; they enter no rate, and are not counted as honest."
            )
        if counts.rejected_quotes:
            notes.append(
                f"{one.condition}: quotes rejected because the agent never said them: {counts.rejected_quotes}."
            )
    notes += _intervals(conditions)
    if known.failed_calls:
        notes.append(f"Probes that KPR leaves out because their calls failed: {known.failed_calls}.")
    if known.disagreeing:
        notes.append(
            f"Cases whose gate passed in some rounds and not in others: {known.disagreeing}; each counts in KPR with "
            "its share of passes."
        )
    return tuple(notes)


def _small(one: Slice) -> list[str]:
    told = []
    for name, words in _HEADLINE.items():
        count = one.rates[name].denominator
        if 0 < count < SMALL:
            told.append(f"{one.condition}: {words.format(n=f'only {count:g}')}.")
    return told


def _intervals(conditions: Sequence[Slice]) -> list[str]:
    notes = []
    plain = [c.condition for c in conditions if c.rates["dr"].interval == "rounds"]
    if plain:
        notes.append(
            f"{', '.join(plain)}: resampling trajectories gives the same DR each time, so Wilson's interval stands in "
            "its place; it takes rounds as independent and may be too narrow."
        )
    single = sorted(
        {
            domain
            for one in conditions
            if max(one.trajectories.values()) > 1  # else nothing was resampled at all
            for domain, count in one.trajectories.items()
            if count == 1
        }
    )
    if single:
        notes.append(
            f"A domain with a single trajectory adds no spread to bootstrap intervals ({', '.join(single)}): "
            "they are too narrow there."
        )
    return notes
