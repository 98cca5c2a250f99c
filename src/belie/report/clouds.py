"""The bootstrap draws of (|ρ̄|, δ̄) behind the plane: the same draws that the intervals of the scores come from.

Knows: how `belie.csq.scores.score` makes its draws.
Does not know: how they are drawn on a page.
"""

from __future__ import annotations

import numpy as np

from belie.csq.formulas import across, columns, formulas
from belie.csq.intervals import pseudo
from belie.csq.overall import weights
from belie.csq.scores import Scores
from belie.csq.table import Table
from belie.statistics import Floats, Resampler


def draws(table: Table, scores: Scores) -> Floats:
    """|ρ̄| and δ̄ of every bootstrap draw: (B, 2). Draws in which either is undefined are left out."""
    options = scores.options
    resampler = Resampler(options["resamples"], options["seed"])
    drawn = []
    for level in table.levels:
        strata = columns(level, matched=table.matched, invalid=options["invalid"])
        sums = [resampler.sums(stratum, level.n, i) for i, stratum in enumerate(strata)]
        drawn.append(formulas(sums, pseudo(strata, exact=table.exact)))
    w = weights(table.grid, t=scores.t, rule=options["rule"], hold=options["hold"])
    over = across(np.stack(drawn, 1), w)[:, :2]
    over = over[np.isfinite(over).all(1)]
    over[:, 0] = np.abs(over[:, 0])
    return over
