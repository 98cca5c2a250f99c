"""Two sets of measurements on the same units.

Knows: the permutation test that swaps the two measurements of a unit, for statistics that are functions of column sums.
Does not know: what the measurements are. The paired bootstrap is `Resampler.sums` with one stream for both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from belie.statistics.bootstrap import _BLOCK, Floats


def swap_test(
    pairs: Sequence[tuple[Floats, Floats]],
    statistic: Callable[[Sequence[Floats]], Floats],
    *,
    permutations: int = 2000,
    seed: int = 0,
) -> Floats:
    """Two-sided p-values of "the two sides are exchangeable".

    ``pairs``: one (a, b) a stratum, both (units, K), row i of both the same unit. ``statistic`` takes the column sums
    of all strata (each (R, K)) and gives (R, M): it is called for side a and for side b, and what is tested is the
    difference. Each permutation swaps a and b within each unit with probability ½; all columns of a unit move
    together. Returns (M,): (1 + permutations at least as far from 0) / (1 + permutations); nan where the observed
    difference is undefined.
    """
    rng = np.random.default_rng(seed)
    observed = statistic([a.sum(0)[None] for a, _ in pairs]) - statistic([b.sum(0)[None] for _, b in pairs])
    left: list[Floats] = []
    right: list[Floats] = []
    for a, b in pairs:
        if a.shape != b.shape:
            raise ValueError(f"the two sides differ in shape: {a.shape} and {b.shape}")
        moved = np.concatenate([_swaps(rng, count, len(a)) @ (b - a) for count in _blocks(permutations, len(a))])
        left.append(a.sum(0) + moved)
        right.append(b.sum(0) - moved)
    with np.errstate(invalid="ignore"):
        difference = statistic(left) - statistic(right)
        # Sums in another order differ in the last digits: a tie is a tie.
        reached = np.abs(difference) >= np.abs(observed) * (1 - 1e-9) - 1e-12
    p = ((reached | np.isnan(difference)).sum(0) + 1) / (permutations + 1)
    return np.where(np.isnan(observed[0]), np.nan, p)


def _blocks(rows: int, units: int) -> list[int]:
    block = max(1, _BLOCK // max(units, 1))
    return [min(block, rows - start) for start in range(0, rows, block)]


def _swaps(rng: np.random.Generator, rows: int, units: int) -> Floats:
    return rng.integers(0, 2, size=(rows, units)).astype(float)
