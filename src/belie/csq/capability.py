"""What a respondent would do that knows no more than length: its errors come of n alone, whatever is true.

Knows: monotone curves of right answers over n, and what they let one expect of broken questions and of the easy one.
Does not know: intervals, what a departure is called (patterns).

The model. A question that spans m entities is answered rightly with a rate c(m) that never rises with m. Nothing more
is assumed: c is the monotone (antitonic) least-squares fit of the rates at the n that were asked, one curve for each
kind of question. The easy question spans ⌊n/k⌋ + 1 entities, its *own length*; that n is seldom in the grid, so c
there is held between c at the next smaller and at the next larger n of the grid. A rate inside this band is explained
by length; a departure is the distance to the nearer end. Below the smallest n nothing is expected.

Two curves are held against the data:
- *linked*: fitted on linked and linked_reversed, so it expects as many errors where the path is broken (ρ = 0), and of
  the easy question what a linked question of its length would get. Word bias does not disturb it: which of the two
  linked questions stands for which broken one does not matter, because only means over both are compared.
- *own*: fitted on the hard broken questions themselves. It allows that a gap is harder to see than a path, or that
  paths are presumed where sight fails, and still says what length alone makes of the easy question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from belie.statistics import Floats


def own_length(n: int, k: int) -> int:
    """Entities that the easy question spans: the pair at distance ⌊n/k⌋ and what lay between them (METHOD §1.1)."""
    return n // k + 1


def monotone(rate: Floats, weight: Floats) -> Floats:
    """The non-rising least-squares fit along the last axis: (…, n) and its weights → (…, n). nan where a weight is 0.

    fit_i = min over s ≤ i of max over t ≥ i of the weighted mean of rate_s … rate_t.
    """
    known = weight > 0
    start = np.zeros((*rate.shape[:-1], 1))
    total = np.concatenate([start, np.cumsum(np.where(known, weight, 0.0), -1)], -1)
    mass = np.concatenate([start, np.cumsum(np.where(known, rate * weight, 0.0), -1)], -1)
    size = rate.shape[-1]
    fit = np.full(rate.shape, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        for i in range(size):
            for s in range(i + 1):
                spans = (mass[..., i + 1 :] - mass[..., s, None]) / (total[..., i + 1 :] - total[..., s, None])
                fit[..., i] = np.fmin(fit[..., i], np.fmax.reduce(spans, -1))
    return np.where(known, fit, np.nan)


def between(fit: Floats, grid: Sequence[int], k: int) -> tuple[Floats, Floats]:
    """The band of c at the own length of each n's easy question: fits (…, n, kinds) → (low, high), each alike; nan
    where that length is below the grid."""
    low, high = np.full(fit.shape, np.nan), np.full(fit.shape, np.nan)
    for i, n in enumerate(grid):
        own = own_length(n, k)
        if own >= grid[0]:
            high[..., i, :] = fit[..., max(j for j, m in enumerate(grid) if m <= own), :]
            low[..., i, :] = fit[..., min(j for j, m in enumerate(grid) if m >= own), :]
    return low, high


def departure(value: Floats, low: Floats, high: Floats) -> Floats:
    """How far a value lies above (+) or below (−) a band; 0 inside, nan where either is unknown."""
    return value - np.clip(value, low, high)


def capability_terms(
    right: Floats, total: Floats, joint_right: Floats, joint_wrong: Floats, grid: Sequence[int], k: int | None
) -> Mapping[str, Floats]:
    """What length alone lets one expect, and how far the data depart: each (…, n).

    ``right``, ``total`` (…, n, 4): rates of right first answers by category (in the order of `CATEGORIES`) and their
    denominators; ``joint_right``, ``joint_wrong`` (…, n, 2): δ_p and γ_p. ``k`` None: the easy question has no length
    of its own, and nothing is expected of it.

    first_expected: errors on broken questions as the linked curve has them; first_departure: observed less expected.
    delta_low, delta_high: mean over both kinds of (1 − c(n))·c(own length); delta_departure: of the mean of δ_p.
    easy_right: rate of right easy answers after a wrong hard one, Σδ_p/Σ(δ_p + γ_p); linked_low, linked_high,
    linked_departure and own_low, own_high, own_departure: what either curve has for it.
    """
    fit = np.moveaxis(monotone(np.moveaxis(right, -1, -2), np.moveaxis(total, -1, -2)), -2, -1)
    linked, broken = fit[..., [0, 2]], fit[..., [1, 3]]
    wrong = joint_right + joint_wrong
    any_wrong = wrong.sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        easy_right = joint_right.sum(-1) / np.where(any_wrong > 0, any_wrong, np.nan)
    terms = {
        "first_expected": (1 - linked).mean(-1),
        "first_departure": (1 - right[..., [1, 3]]).mean(-1) - (1 - linked).mean(-1),
        "easy_right": easy_right,
    }
    unknown = np.full(linked.shape, np.nan)
    low, high = (unknown, unknown) if k is None else between(linked, grid, k)
    terms |= _band("delta", joint_right.mean(-1), *(((1 - linked) * c).mean(-1) for c in (low, high)))
    # A wrong first answer of the model comes from either kind as often as that kind errs.
    counts = total[..., [0, 2]]
    share = (counts * (1 - right[..., [0, 2]]) + 0.5) / (counts + 1)
    terms |= _band("linked", easy_right, *((share * c).sum(-1) / share.sum(-1) for c in (low, high)))
    low, high = (unknown, unknown) if k is None else between(broken, grid, k)
    with np.errstate(divide="ignore", invalid="ignore"):
        own = [(wrong * c).sum(-1) / np.where(any_wrong > 0, any_wrong, np.nan) for c in (low, high)]
    return terms | _band("own", easy_right, *own)


def _band(name: str, value: Floats, low: Floats, high: Floats) -> dict[str, Floats]:
    return {f"{name}_low": low, f"{name}_high": high, f"{name}_departure": departure(value, low, high)}
