"""What a random subset of things of several kinds holds.

Knows: the multivariate hypergeometric distribution, listed outcome by outcome.
Does not know: what the things are, or what is made of an outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np
from numpy.typing import NDArray

from belie.statistics.bootstrap import Floats


def outcomes(counts: NDArray[np.int64], size: int) -> Iterator[tuple[tuple[int, ...], Floats]]:
    """Every way in which ``size`` things drawn without replacement fall into K kinds, with its probability.

    ``counts`` (units, K): how many of each kind a unit holds. Yields (numbers by kind, probabilities (units,)); they
    are nan for a unit that holds fewer than ``size`` things.
    """
    most = int(counts.max(initial=0))
    table = np.array([[comb(n, k) for k in range(size + 1)] for n in range(most + 1)], float)
    total = counts.sum(1)
    ways = np.array([comb(int(n), size) for n in total], float)
    ways[ways == 0] = np.nan
    for parts in _compositions(size, counts.shape[1]):
        chosen = np.ones(len(counts))
        for kind, part in enumerate(parts):
            chosen = chosen * table[counts[:, kind], part]
        yield parts, chosen / ways


def _compositions(size: int, kinds: int) -> Iterator[tuple[int, ...]]:
    if kinds == 1:
        yield (size,)
        return
    for first in range(size + 1):
        for rest in _compositions(size - first, kinds - 1):
            yield first, *rest
