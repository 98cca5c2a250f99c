"""A linear probe: how well *any* direction tells two kinds of states apart, as a bound on what one direction can.

Knows: a ridge classifier that never scores what it was trained on, and how such scores scatter by chance.
Does not know: lenses, what the labels mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]

#: Ridge, as a share of the mean squared length of the training states.
RIDGE = 0.1
#: Folds where the probes' own folds are fewer than three.
FOLDS = 5
#: Permutations of the labels from which the scatter by chance is taken.
PERMUTATIONS = 200


@dataclass(frozen=True, slots=True)
class Probed:
    """``scores`` (N, M), a column a layer; ``strata`` (N,): a group in a fold, within which they can be compared.

    ``chance`` (M,): the standard deviation of their AUROC when the labels are permuted and the probe is trained anew.
    That of a rank test would be too small: two folds' scores are not independent, since each is trained on the other.
    """

    scores: Floats
    strata: tuple[str, ...]
    chance: Floats


def linear_probe(
    states: NDArray[np.float32], labels: NDArray[np.bool_], groups: Sequence[str], folds: Sequence[int], seed: int = 0
) -> Probed:
    """A ridge classifier's score of each state, trained on the other folds: states (N, M, width).

    Features are standardised on the training states. Labels are permuted within groups. A fold whose training states
    hold one kind only gets nan.
    """
    which = np.asarray(folds)
    strata = np.array([f"{group}\0{fold}" for group, fold in zip(groups, folds, strict=True)], dtype=object)
    kinds = _permuted(labels, np.asarray(groups, dtype=object), seed)
    known = np.ones(len(labels), bool)
    scores = np.full(states.shape[:2], np.nan)
    chance = np.full(states.shape[1], np.nan)
    splits = []
    for fold in np.unique(which):
        train = which != fold
        if labels[train].all() or not labels[train].any():
            known[~train] = False
        else:
            splits.append((train, ~train))
    for layer in range(states.shape[1]):
        held = states[:, layer].astype(np.float64)
        every = np.full(kinds.shape, np.nan)
        for train, test in splits:
            every[test] = _ridge(held[train], held[test], kinds[train])
        scores[:, layer] = every[:, 0]
        chance[layer] = _aurocs(every[known], kinds[known], strata[known])[1:].std()
    return Probed(scores, tuple(strata), chance)


def _permuted(labels: NDArray[np.bool_], groups: NDArray[np.object_], seed: int) -> NDArray[np.bool_]:
    """The labels, and `PERMUTATIONS` columns of them permuted within groups."""
    draw = np.random.default_rng([seed, 23])
    kinds = np.repeat(labels[:, None], 1 + PERMUTATIONS, 1)
    for group in dict.fromkeys(groups.tolist()):
        at = np.flatnonzero(groups == group)
        kinds[at, 1:] = draw.permuted(kinds[at, 1:], axis=0)
    return kinds


def _ridge(known: Floats, asked: Floats, kinds: NDArray[np.bool_]) -> Floats:
    """Scores of ``asked`` (T, width) by classifiers trained on ``known`` (N, width), a column of ``kinds`` each."""
    centre, spread = known.mean(0), known.std(0)
    spread[spread <= 1e-9 * max(spread.max(), 1e-300)] = np.inf
    known, asked = (known - centre) / spread, (asked - centre) / spread
    gram = known @ known.T
    ridge = RIDGE * max(float(np.trace(gram)) / len(gram), 1e-12)
    sides = kinds - kinds.mean(0)
    return (asked @ known.T) @ np.linalg.solve(gram + ridge * np.eye(len(gram)), sides)


def _aurocs(scores: Floats, kinds: NDArray[np.bool_], strata: NDArray[np.object_]) -> Floats:
    """The AUROC of each column within strata, 0.5 where a column has no pair to compare."""
    won, pairs = np.zeros(scores.shape[1]), np.zeros(scores.shape[1])
    for stratum in dict.fromkeys(strata.tolist()):
        at = strata == stratum
        yes = kinds[at].sum(0)
        won += (rankdata(scores[at], axis=0) * kinds[at]).sum(0) - yes * (yes + 1) / 2
        pairs += yes * (at.sum() - yes)
    return np.where(pairs > 0, won / np.where(pairs > 0, pairs, 1), 0.5)


def folds_of(keys: Sequence[str], units: Sequence[str]) -> list[int]:
    """A fold number each: one a key where keys are few but at least three, else units dealt out over `FOLDS` folds."""
    names = sorted(set(keys))
    if 3 <= len(names) <= 2 * FOLDS:
        return [names.index(key) for key in keys]
    order = {unit: i % FOLDS for i, unit in enumerate(dict.fromkeys(units))}
    return [order[unit] for unit in units]
