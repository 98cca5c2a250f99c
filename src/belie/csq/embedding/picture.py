"""Two dimensions of many: the principal components of one layer's states.

Knows: PCA of states centred within strata.
Does not know: classes, layers, how a picture is drawn.
"""

from __future__ import annotations

import numpy as np

from belie.csq.embedding.separation import Ints
from belie.statistics import Floats


def principal(states: Floats, strata: Ints) -> tuple[Floats, tuple[float, float]]:
    """The first two principal components (N, 2) of ``states`` (N, p), centred within strata, and their shares of the
    variance that is left.

    The sign is fixed: the entry of largest size in each direction is positive. Zeros where nothing varies.
    """
    x = np.asarray(states, float).copy()
    for s in np.unique(strata):
        own = strata == s
        x[own] -= x[own].mean(0)
    values, vectors = np.linalg.eigh(x @ x.T)
    found = np.zeros((len(x), 2))
    total = max(float(values.clip(0).sum()), 0.0)
    shares = [0.0, 0.0]
    for k in range(min(2, len(x))):
        value = float(values[-1 - k])
        if total <= 0 or value <= 1e-9 * total:
            continue
        column = vectors[:, -1 - k] * np.sqrt(value)
        direction = x.T @ column
        found[:, k] = column * np.sign(direction[np.argmax(np.abs(direction))])
        shares[k] = value / total
    return found, (shares[0], shares[1])
