"""Whether states tell two classes of items apart at equal n: one layer's AUROC, its interval, its permutation null.

Knows: linear discriminants with ridge, folds by chain, pairs within a stratum, permutations that keep chains whole.
Does not know: models, what the classes are.

Method (all of it free of the labels but for the fit itself):

* A stratum is one (n, category). Only pairs of one stratum and one fold are compared, so what only tells n or the
  category is worth exactly 0.5, and so is what differs between folds. Features are centred within the stratum and
  scaled by their spread within strata.
* Folds are of whole chains, dealt out within each n; with few items, in up to `REPEATS` ways, since pairs of different
  folds are not compared. The discriminant is the ridge solution for the class, centred
  within strata: (X Xᵀ + γ·m·I)⁻¹ y for m training items, γ = `RIDGE`. It is Fisher's discriminant with the pooled
  covariance shrunk towards the identity.
* The null permutes the classes among chains of the same n that hold the same categories, a chain's classes together,
  so that a chain's own likeness is in the null too. p = (1 + permutations with an AUROC at least as high) / (1 + B).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from belie.statistics import Floats

Ints = NDArray[np.intp]

FOLDS = 5
#: Shrinkage γ of the pooled covariance towards the identity, in units of a feature's variance.
RIDGE = 1.0
PERMUTATIONS = 2000
#: So many ways of dealing out the folds at most, as long as ways × items stays below `_WORK`.
REPEATS = 10
_WORK = 1500


@dataclass(frozen=True, slots=True)
class Separation:
    """How far one layer tells the classes apart. ``auroc`` over ``pairs`` pairs of equal n and category (0.5: not at
    all; nan where there is no pair; a pair counts once for each way of dealing out the folds), with its interval over
    chains; ``p`` one-sided, from ``permutations``."""

    auroc: float
    low: float
    high: float
    p: float
    pairs: int
    permutations: int


@dataclass(frozen=True, slots=True)
class Cells:
    """What the tests of all layers share. ``folds`` (R, N): R ways of dealing out the chains; ``members``: for each the
    items of every (fold, stratum) cell; ``labels`` (N, 1 + B): the classes, then the permuted ones."""

    chains: Ints
    strata: Ints
    folds: Ints
    members: tuple[tuple[Ints, ...], ...]
    labels: NDArray[np.bool_]


def comparable(labels: NDArray[np.bool_], strata: Ints) -> tuple[int, int]:
    """How many items of each class (True, False) lie in strata that hold both: what a test can rest on."""
    both = [s for s in np.unique(strata) if len(np.unique(labels[strata == s])) == 2]
    inside = np.isin(strata, both)
    return int(labels[inside].sum()), int((~labels[inside]).sum())


def cells(
    labels: NDArray[np.bool_], n: Ints, category: Ints, chain: Ints, *, permutations: int = PERMUTATIONS, seed: int = 0
) -> Cells:
    """Folds, strata and permuted labels. All arguments (N,); ``labels`` True for the class that scores high."""
    rng = np.random.default_rng(seed)
    n, category, chain = (np.unique(x, return_inverse=True)[1].ravel() for x in (n, category, chain))
    width = int(category.max(initial=0)) + 1
    strata = n * width + category
    places = np.full((int(chain.max(initial=-1)) + 1, width), -1)
    places[chain, category] = np.arange(len(labels))
    size = np.zeros(len(places), int)
    size[chain] = n
    # Chains of one n that hold the same categories are exchangeable where the classes say nothing.
    blocks = np.unique(np.column_stack([size, places >= 0]), axis=0, return_inverse=True)[1].ravel()
    drawn = np.repeat(labels[:, None], permutations + 1, axis=1)
    folds = np.zeros((max(1, min(REPEATS, _WORK // max(len(labels), 1))), len(places)), int)
    dealt = 0
    for block in range(blocks.max(initial=-1) + 1):
        own = np.flatnonzero(blocks == block)
        for way in folds:
            way[rng.permutation(own)] = (dealt + np.arange(len(own))) % FOLDS
        dealt += len(own)
        order = rng.permuted(np.broadcast_to(np.arange(len(own)), (permutations, len(own))), axis=1)
        for column in np.flatnonzero(places[own[0]] >= 0):
            rows = places[own, column]
            drawn[rows, 1:] = labels[rows][order].T
    by_item = folds[:, chain]
    members = tuple(
        tuple(np.flatnonzero((way == f) & (strata == s)) for f in range(FOLDS) for s in np.unique(strata))
        for way in by_item
    )
    return Cells(chain, strata, by_item, members, drawn)


def separation(states: Floats, shared: Cells, *, level: float = 0.95) -> Separation:
    """The test of one layer: ``states`` (N, p). nan where no cell holds both classes."""
    kernel = _kernel(states, shared.strata)
    wins, pairs = np.zeros(shared.labels.shape[1]), np.zeros(shared.labels.shape[1])
    won, told = np.zeros(len(shared.labels)), np.zeros(len(shared.labels))
    for way, members in zip(shared.folds, shared.members, strict=True):
        scores = _scores(kernel, shared, way)
        for own in members:
            _count(scores[own], shared.labels[own], wins, pairs)
            _shares(scores[own, 0], shared.labels[own, 0], own, won, told)
    with np.errstate(invalid="ignore", divide="ignore"):
        auroc = wins / pairs
    if not pairs[0]:
        return Separation(np.nan, np.nan, np.nan, np.nan, 0, 0)
    null = auroc[1:][pairs[1:] > 0]
    p = (1 + int((null >= auroc[0] - 1e-9).sum())) / (1 + len(null)) if len(null) else np.nan
    value = float(auroc[0])
    low, high = _interval(value, won - value * told, float(pairs[0]), float(null.std()), shared, level)
    return Separation(value, low, high, p, int(pairs[0]), len(null))


def by_layer(layers: Sequence[int], states: Callable[[int], Floats], shared: Cells) -> dict[int, Separation]:
    """`separation` of each layer in turn, ``states(layer)`` (N, p) held one at a time."""
    return {layer: separation(states(layer), shared) for layer in layers}


def equal_n(score: Floats, labels: NDArray[np.bool_], strata: Ints) -> float:
    """AUROC of one given score over pairs of one stratum, without a fit; nan where there is no pair."""
    wins = pairs = 0.0
    for s in np.unique(strata):
        own = strata == s
        above = score[own & labels][:, None] - score[own & ~labels]
        wins += float((above > 0).sum() + 0.5 * (above == 0).sum())
        pairs += above.size
    return wins / pairs if pairs else np.nan


def _kernel(states: Floats, strata: Ints) -> NDArray[np.float32]:
    """X Xᵀ (N, N) of the states X (N, p), centred within strata and scaled by their spread there."""
    x = np.asarray(states, np.float32).copy()
    for s in np.unique(strata):
        own = strata == s
        x[own] -= x[own].mean(0)
    spread = np.sqrt((x * x).mean(0))
    varies = spread > 1e-6 * max(float(spread.max(initial=0.0)), 1e-12)
    x = x[:, varies] / spread[varies]
    return x @ x.T


def _scores(kernel: NDArray[np.float32], shared: Cells, folds: Ints) -> NDArray[np.float32]:
    """Scores out of fold for every column of labels: (N, 1 + B)."""
    scores = np.zeros(shared.labels.shape, np.float32)
    for fold in range(FOLDS):
        test, train = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        if not len(test) or not len(train):
            continue
        y = shared.labels[train].astype(np.float32)
        for s in np.unique(shared.strata[train]):
            own = shared.strata[train] == s
            y[own] -= y[own].mean(0)
        ridge = kernel[np.ix_(train, train)].astype(float)
        ridge[np.diag_indices_from(ridge)] += RIDGE * len(train)
        hat = np.linalg.solve(ridge, kernel[np.ix_(train, test)].astype(float)).T
        scores[test] = hat.astype(np.float32) @ y
    return scores


def _count(scores: NDArray[np.float32], labels: NDArray[np.bool_], wins: Floats, pairs: Floats) -> None:
    """Adds one cell's pairs in the right order (a tie counts half) and its pairs in all, of each column."""
    if len(labels) < 2:
        return
    above = labels.sum(0).astype(float)
    pairs += above * (len(labels) - above)
    wins += (_ranks(scores) * labels).sum(0) - above * (above + 1) / 2


def _shares(scores: NDArray[np.float32], labels: NDArray[np.bool_], own: Ints, won: Floats, told: Floats) -> None:
    """Adds to each item of one cell the pairs that it is in, and those of them in the right order."""
    up, down = scores[labels][:, None], scores[~labels]
    right = (up > down) + 0.5 * (up == down)
    won[own[labels]] += right.sum(1)
    won[own[~labels]] += right.sum(0)
    told[own[labels]] += len(down)
    told[own[~labels]] += len(up)


def _ranks(scores: NDArray[np.float32]) -> Floats:
    """Ranks from 1 of each column, ties at their mean: (m, C) → (m, C)."""
    order = np.argsort(scores, axis=0, kind="stable")
    ordered = np.take_along_axis(scores, order, 0)
    places = np.broadcast_to(np.arange(1.0, len(scores) + 1)[:, None], scores.shape)
    ranks = np.empty(scores.shape)
    np.put_along_axis(ranks, order, places, 0)
    tied = (ordered[1:] == ordered[:-1]).any(0)
    if tied.any():
        from scipy.stats import rankdata  # half a second to import, and rarely needed

        ranks[:, tied] = rankdata(scores[:, tied], axis=0)
    return ranks


def _interval(
    auroc: float, share: Floats, pairs: float, null: float, shared: Cells, level: float
) -> tuple[float, float]:
    """The interval over chains, on logits: the error is DeLong's (``share`` (N,), each item's part in the AUROC, summed
    by chain), or that of the permutations (``null``) where it is larger: folds share their training items, which
    DeLong's does not know.

    An AUROC of 0 or 1 gets the limits that as many items all in order leave open (rule of three).
    """
    labels = shared.labels[:, 0]
    if auroc in (0.0, 1.0):
        edge = min(0.5, 3 / min(labels.sum(), (~labels).sum()))
        return (1 - edge, 1.0) if auroc else (0.0, edge)
    part = np.bincount(shared.chains, share)
    chains = len(np.unique(shared.chains))
    error = np.sqrt((part**2).sum() * chains / max(chains - 1, 1)) / pairs
    z = float(ndtri((1 + level) / 2))
    middle, half = np.log(auroc / (1 - auroc)), z * max(error / (auroc * (1 - auroc)), 4 * null)
    low, high = (float(1 / (1 + np.exp(-(middle + sign * half)))) for sign in (-1, 1))
    return low, high
