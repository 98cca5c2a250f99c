"""What a run's errors look like when every milder explanation has been tried first.

Knows: the patterns, where each ends, and how bootstrap draws are counted in them.
Does not know: how the draws were made (decomposition), how a pattern is said (pattern_words).

`belie.csq.modes` places a run in METHOD's regions. Here the same run is held against explanations that those regions
do not look for: that answers turn whenever one asks again, that "cannot" is hard for one who leans to a word, that a
gap is merely harder to see than a path. Only what is left when all have failed is called ``knowing_lean``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from belie.csq.modes import Margins
from belie.statistics import Floats

Pattern = Literal[
    "few_errors",
    "turning",
    "knowing_lean",
    "one_sided",
    "mistaken_lean",
    "scale",
    "difficulty",
    "consistent",
    "word",
    "guessing",
]
PATTERNS: tuple[Pattern, ...] = (
    "few_errors",
    "turning",
    "knowing_lean",
    "one_sided",
    "mistaken_lean",
    "scale",
    "difficulty",
    "consistent",
    "word",
    "guessing",
)

#: How far the rate of right easy answers must lie from what length explains to count as a departure.
EASY_MARGIN = 0.05
#: The margin of the log-odds lean in those of ρ: a small change of ln p is 1/(1 − p) of it in log-odds, so at least
#: twice for whoever is right more often than a coin.
ODDS_FACTOR = 2.0
#: How much more often the easy answer must be right after wrong answers than after right ones to be called turning.
TURNING_MARGIN = 0.10


@dataclass(frozen=True, slots=True)
class Found:
    """Draws (B,) over all n: error, ρ̄ and its log-odds twin, β̄, δ̄_net; and of the easy answers after wrong ones their
    departure from the respondent's own curve, how much righter they are than hard ones, and how much righter than easy
    ones after right answers. nan: unknown."""

    error: Floats
    rho: Floats
    rho_odds: Floats
    beta: Floats
    net: Floats
    own: Floats
    easier: Floats
    turning: Floats


@dataclass(frozen=True, slots=True)
class Standing:
    """``pattern`` is None where none holds the wanted share of the draws. ``shares`` by pattern; what they lack to 1
    are draws that could not be placed."""

    pattern: Pattern | None
    shares: Mapping[str, float]


def patterns(found: Found, margins: Margins) -> NDArray[np.int64]:
    """The pattern of each draw, an index into `PATTERNS`; −1 where what would decide is unknown."""
    lean = np.abs(found.rho) > margins.rho
    # A lean that the log-odds do not share, or share the other way, hangs on the scale it is told on.
    both = lean & (np.abs(found.rho_odds) > ODDS_FACTOR * margins.rho) & (found.rho * found.rho_odds > 0)
    better, worse = found.net > margins.delta_net, found.net < -margins.delta_net
    above, below = found.own > EASY_MARGIN, found.own < -EASY_MARGIN
    word = np.abs(found.beta) > margins.rho
    lost = np.isnan(found.error) | np.isnan(found.rho) | np.isnan(found.net)
    order: tuple[tuple[Pattern | None, NDArray[np.bool_]], ...] = (
        ("few_errors", found.error < margins.honest),
        (None, lost),
        ("turning", (found.turning > TURNING_MARGIN) & better),
        (None, both & better & np.isnan(found.own)),
        ("knowing_lean", both & better & above),
        ("one_sided", both & better),
        ("mistaken_lean", both),
        ("scale", lean & better),
        ("difficulty", better | ((found.easier > EASY_MARGIN) & ~worse)),
        ("consistent", below),
        ("word", word),
        ("consistent", worse),
        ("guessing", np.ones(len(found.net), bool)),
    )
    out = np.full(len(found.net), -2)
    for pattern, holds in order:
        out[(out == -2) & holds] = -1 if pattern is None else PATTERNS.index(pattern)
    return out


def stand(found: Found, margins: Margins) -> Standing:
    """The pattern that holds at least ``margins.share`` of the draws, if one does."""
    region = patterns(found, margins)
    shares = {pattern: float((region == i).mean()) for i, pattern in enumerate(PATTERNS)}
    best = max(PATTERNS, key=lambda pattern: shares[pattern])
    return Standing(best if shares[best] >= margins.share else None, shares)
