"""Two CSQ runs on the chains that both hold.

Knows: which scores are compared, and what `belie.csq.difference` gives for them.
Does not know: folders, manifests, KnownLie.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.special import ndtri

from belie.comparison.result import Contrast, Kind
from belie.csq.difference import Change, Difference, difference
from belie.csq.formulas import NAMES
from belie.csq.table import Table
from belie.items import BROKEN
from belie.respondents.base import BadInput

#: What is compared unless told otherwise, over all n and, on demand, at each n.
OVERALL = ("rho", "delta", "delta_net", "error")
BY_N = ("rho", "delta", "delta_net")
_LOGS = ("rho", "beta")
_RATES = ("error", "delta_pos", "delta_neg", "gamma_pos", "gamma_neg")


def csq_names(table: Table, *, by_n: bool) -> list[str]:
    """The scores that are compared by default: over all n, and at each n where ``by_n``."""
    names = [f"csq.{name}" for name in OVERALL]
    if by_n:
        names += [f"csq.{name}(n={n})" for name in BY_N for n in table.grid]
    return names


def csq_contrasts(
    first: Table,
    second: Table,
    names: list[str],
    *,
    level: float,
    resamples: int,
    permutations: int,
    seed: int,
    same: bool = False,
) -> tuple[list[Contrast], Mapping[str, int]]:
    """The contrasts of ``names``, and how many chains are shared. ``same``: both tables are one and the same run.
    Raises BadInput for a name that there is not, or runs without a chain in common."""
    told = difference(first, second, level=level, resamples=resamples, permutations=permutations, seed=seed, same=same)
    shared = sum(told.chains.values())
    counts = {
        "chains": shared,
        "only_first": _chains(first) - shared,
        "only_second": _chains(second) - shared,
        **{f"chains_n{n}": count for n, count in told.chains.items()},
    }
    return [_contrast(name, told, first, second, level) for name in names], counts


def _chains(table: Table) -> int:
    return sum(len(level.chains) for level in table.levels)


def _contrast(name: str, told: Difference, first: Table, second: Table, level: float) -> Contrast:
    score, _, at = name.removeprefix("csq.").removesuffix(")").partition("(n=")
    if at:
        n = int(at) if at.isdecimal() else -1
        changes, units = told.cells.get(n), told.chains.get(n, 0)
    else:
        n, changes, units = None, told.overall, sum(told.chains.values())
    if changes is None or score not in changes:
        grid = ", ".join(map(str, told.chains))
        raise BadInput(
            f"There is no score {name!r} to compare: over all n there are {', '.join(told.overall)}, at n = {grid} "
            f"(written delta_net(n={next(iter(told.chains))})) {', '.join(NAMES)}."
        )
    change: Change = changes[score]
    sides = (_basis(first, second, score, n), _basis(second, first, score, n))
    kind: Kind = "log" if score in _LOGS else "share"
    wide = (change.high - change.low) / (2 * float(ndtri((1 + level) / 2)))
    step = 1 / max(sides) if score in _RATES and n is not None and max(sides) > 0 else math.nan
    return Contrast(
        name,
        kind,
        change.first,
        change.second,
        change.value,
        change.low,
        change.high,
        change.p,
        units,
        sides,
        error=wide,
        step=step,
    )


def _basis(table: Table, other: Table, score: str, n: int | None) -> float:
    """What the score rests on in one run's shared chains: valid pairs for δ and γ, valid first answers for the rest."""
    held = {level.n: frozenset(level.chains) for level in other.levels}
    total = 0.0
    for level in table.levels:
        if n not in (None, level.n) or level.n not in held:
            continue
        rows = np.array([chain in held[level.n] for chain in level.chains], bool)
        for category, cell in level.cells.items():
            if not score.startswith(("delta", "gamma")):
                total += float((cell.yes + cell.no)[rows].sum())
            elif category in BROKEN:
                total += float(cell.pair_valid[rows].sum())
    return total
