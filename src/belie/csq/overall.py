"""One figure over all n: ρ̄, δ̄, δ̄_net (METHOD §1.4).

Knows: how values at a grid of n are weighted into the mean over ln n.
Does not know: what the values are.

Both rules are linear in the values, so a grid has one vector of weights, and a figure over all n is a dot product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from belie.respondents.base import BadInput
from belie.statistics import Floats

Rule = Literal["log", "linear"]

#: The t of the paper, and of every grid that reaches it.
T = 80.0


def weights(grid: Sequence[int], *, t: float | None = None, rule: Rule = "log", hold: bool = True) -> Floats:
    """Weights w with value̅(t) = Σ w·value(n): shape (len(grid),).

    1/ln(t/2) · ∫₂ᵗ value(n)/n dn. ``rule="log"``: piecewise linear in ln n, the first value held on [2, n_min]
    (``hold=False`` leaves that part out: it then counts as 0). ``rule="linear"``: trapezoid of value(n)/n in n from
    n_min, nothing below. ``t`` defaults to the largest n of the grid (80 for the paper's); between two n the curve is
    cut at t. A t beyond the grid is refused: nothing was measured there. ``grid`` must ascend. With one n and
    ``hold`` the weight is 1; without a part to integrate the weights are nan.
    """
    n = np.asarray(grid, float)
    if len(n) == 0 or n[0] < 2 or (np.diff(n) <= 0).any():
        raise BadInput(f"The grid of n must ascend and start at 2 or more: {list(grid)}.")
    end = float(n[-1]) if t is None else float(t)
    if not 2 < end <= n[-1]:
        raise BadInput(f"t = {end:g} is outside (2, {n[-1]:g}]: choose a t that the grid reaches.")
    if rule not in ("log", "linear"):
        raise BadInput(f"Unknown rule {rule!r}: use 'log' or 'linear'.")
    x = np.log(n) if rule == "log" else n
    height = np.ones_like(n) if rule == "log" else 1 / n  # what a value of 1 adds to the integrand at its n
    stop = np.log(end) if rule == "log" else end
    total = np.zeros_like(n)
    for i in range(len(n) - 1):
        if x[i] >= stop:
            break
        width = min(x[i + 1], stop) - x[i]
        share = width / (x[i + 1] - x[i])  # the segment is cut at t; its end is interpolated
        total[i] += width * (1 - share / 2) * height[i]
        total[i + 1] += width * share / 2 * height[i + 1]
    if rule == "log" and hold:
        total[0] += min(x[0], stop) - np.log(2)
    elif not total.any():
        return np.full_like(n, np.nan)
    return total / np.log(end / 2)


def overall(
    grid: Sequence[int], values: Floats, *, t: float | None = None, rule: Rule = "log", hold: bool = True
) -> Floats:
    """value̅(t) of curves ``values`` (…, len(grid)) → (…): see `weights`. nan if the curve has a nan."""
    return np.asarray(values, float) @ weights(grid, t=t, rule=rule, hold=hold)
