"""How well numbers tell two kinds of cases apart: AUROC and difference, with intervals over units (METHOD §3).

Knows: groups within which scores are compared, units that are resampled, Holm over layers.
Does not know: lenses, layers' meaning, instruments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from belie.statistics import Floats, Resampler, holm, percentile

#: A separation counts as a signal where its p-value after Holm is below this.
LEVEL = 0.05
#: Units that must hold each of the two kinds, or nothing is tested.
FEWEST = 5


@dataclass(frozen=True, slots=True)
class Separation:
    """One value a column (a layer). ``interval`` (M, 2) is the percentile bootstrap over units of ``auroc``.

    ``p`` is two-sided, of "the two kinds come from one distribution"; ``p_holm`` is adjusted, over the columns unless
    `together` saw more of them.
    ``difference`` is the mean over units that hold both kinds of (mean of one − mean of the other), in units of the
    scores' standard deviation within groups; ``pairs`` counts these units. ``draws`` (B, M) are of the AUROC. All
    nan where a kind is empty.
    """

    auroc: Floats
    interval: Floats
    p: Floats
    p_holm: Floats
    difference: Floats
    difference_interval: Floats
    positives: int
    negatives: int
    pairs: int
    draws: Floats

    @property
    def signal(self) -> NDArray[np.bool_]:
        """Where the two kinds are told apart, after Holm."""
        with np.errstate(invalid="ignore"):
            return self.p_holm < LEVEL


def separation(
    scores: Floats,
    labels: Sequence[bool],
    groups: Sequence[str],
    units: Sequence[str],
    *,
    chance: Floats | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Separation:
    """``scores`` (N, M), a label, a group and a unit each.

    AUROC: the share of all (positive, negative) pairs *within a group* in which the positive scores higher, ties half.
    Units are resampled among those that lie in the same groups, so that twins, whose scores go up and down together,
    count as one. p: the distance from ½ in standard deviations of the draws, by Student's t with U − 1 degrees of
    freedom, U being the units that hold the rarer kind; never less than a sign test of U could give. With fewer than
    `FEWEST` there is no p and no interval.
    ``chance`` (M,): standard deviations of the AUROC of scores that chance alone made, where the scores depend on the
    labels (a linear probe's): then the larger of the two counts, for p and for the interval.
    """
    known = ~np.isnan(scores).any(1)
    rows = scores[known]
    label, group, unit = (np.asarray(x)[known] for x in (labels, groups, units))
    label = label.astype(bool)
    names, index = np.unique(unit, return_inverse=True)
    weights = _weights(group, index, len(names), resamples, seed)
    strata = [np.flatnonzero(group == name) for name in np.unique(group)]
    strata = [(at[label[at]], at[~label[at]]) for at in strata]
    strata = [(yes, no) for yes, no in strata if len(yes) and len(no)]
    columns = scores.shape[1]
    if not strata:
        empty, hollow = np.full(columns, np.nan), np.full((columns, 2), np.nan)
        kinds = int(label.sum()), int((~label).sum())
        return Separation(empty, hollow, empty, empty, empty, hollow, *kinds, 0, np.full((1, columns), np.nan))
    above, pairs = np.zeros(columns), 0
    drawn, drawn_pairs = np.zeros((len(weights), columns)), np.zeros((len(weights), 1))
    for yes, no in strata:
        won = (rows[yes][:, None] > rows[no][None]) + 0.5 * (rows[yes][:, None] == rows[no][None])
        above += won.sum((0, 1)) - len(yes) * len(no) / 2
        pairs += len(yes) * len(no)
        w_yes, w_no = weights[:, index[yes]], weights[:, index[no]]
        for column in range(columns):
            drawn[:, column] += ((w_yes @ won[:, :, column]) * w_no).sum(1)
        drawn_pairs[:, 0] += w_yes.sum(1) * w_no.sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        draws = drawn / drawn_pairs
    auroc, interval = 0.5 + above / pairs, percentile(draws)
    away = np.nanstd(draws, 0)
    if chance is not None:
        away = np.maximum(chance, away)
        interval = np.column_stack(
            [np.minimum(interval[:, 0], auroc - 1.96 * away), np.maximum(interval[:, 1], auroc + 1.96 * away)]
        ).clip(0, 1)
    rarer = min(len(np.unique(index[np.concatenate(side)])) for side in zip(*strata, strict=True))
    if rarer < FEWEST:
        p, interval = np.full(columns, np.nan), np.full((columns, 2), np.nan)
    else:
        far = np.divide(np.abs(auroc - 0.5), away, out=np.full(columns, np.inf), where=away > 0)
        far[auroc == 0.5] = 0.0
        p = np.clip(2 * stdtr(rarer - 1, -far), 2.0 ** (1 - rarer), 1.0)
    difference, spans, both = _difference(rows, label, group, index, weights)
    return Separation(
        auroc,
        interval,
        p,
        holm(p),
        difference,
        spans,
        int(label.sum()),
        int((~label).sum()),
        both,
        draws,
    )


def _weights(group: NDArray[np.str_], index: NDArray[np.intp], units: int, resamples: int, seed: int) -> Floats:
    """How often each unit is drawn: (B, units), units of the same groups among themselves."""
    lies: dict[int, set[str]] = {}
    for one, name in zip(index.tolist(), group.tolist(), strict=True):
        lies.setdefault(one, set()).add(name)
    blocks: dict[tuple[str, ...], list[int]] = {}
    for one in range(units):
        blocks.setdefault(tuple(sorted(lies[one])), []).append(one)
    weights = np.empty((resamples, units))
    resampler = Resampler(resamples, seed)
    for number, block in enumerate(blocks[key] for key in sorted(blocks)):
        weights[:, block] = resampler.sums(np.eye(len(block)), number)
    return weights


def _difference(
    rows: Floats, label: NDArray[np.bool_], group: NDArray[np.str_], index: NDArray[np.intp], weights: Floats
) -> tuple[Floats, Floats, int]:
    """Twins: (M,) mean difference over units that hold both kinds, its interval (M, 2), and how many these are."""
    units, columns = weights.shape[1], rows.shape[1]
    summed, counted = np.zeros((units, columns)), np.zeros(units)
    spread, free = np.zeros(columns), 0
    for name in np.unique(group):
        at = group == name
        spread += ((rows[at] - rows[at].mean(0)) ** 2).sum(0)
        free += int(at.sum()) - 1
        for one in np.unique(index[at]):
            yes, no = at & (index == one) & label, at & (index == one) & ~label
            if yes.any() and no.any():
                summed[one] += rows[yes].mean(0) - rows[no].mean(0)
                counted[one] += 1
    has = counted > 0
    if not has.any():
        return np.full(columns, np.nan), np.full((columns, 2), np.nan), 0
    scale = np.sqrt(spread / max(free, 1))
    scale[scale == 0] = 1.0
    each = summed[has] / counted[has, None] / scale
    with np.errstate(invalid="ignore", divide="ignore"):
        draws = (weights[:, has] @ each) / weights[:, has].sum(1, keepdims=True)
    return each.mean(0), percentile(draws), int(has.sum())


def together(found: Sequence[Separation]) -> list[Separation]:
    """The same with ``p_holm`` adjusted over the columns of all of them: so many looks, one claim."""
    adjusted = holm(np.concatenate([one.p for one in found]))
    ends = np.cumsum([len(one.p) for one in found])[:-1]
    return [replace(one, p_holm=p) for one, p in zip(found, np.split(adjusted, ends), strict=True)]
