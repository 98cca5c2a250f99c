"""Chance that depends on nothing but names: seed, item, draw and step.

Knows: hashes, cumulative sums.
Does not know: models. A run that continues draws what an uninterrupted one would have drawn.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from belie.items import Step


def _digest(seed: int, item: str, draw: int, step: Step) -> bytes:
    return hashlib.blake2b(f"{seed}\x1f{item}\x1f{draw}\x1f{step}".encode(), digest_size=16).digest()


def uniform(seed: int, item: str, draw: int, step: Step) -> float:
    """A number in [0, 1), uniform over draws."""
    return int.from_bytes(_digest(seed, item, draw, step)[:8], "big") / 2**64


def generator(seed: int, item: str, draw: int, step: Step) -> np.random.Generator:
    """A stream of random numbers for a reply of several tokens."""
    return np.random.default_rng(int.from_bytes(_digest(seed, item, draw, step), "big"))


def pick(cumulative: NDArray[np.float64], at: float) -> int:
    """The index whose share of the cumulative mass holds ``at`` ∈ [0, 1)."""
    index = int(np.searchsorted(cumulative, at * cumulative[-1], side="right"))
    return min(index, len(cumulative) - 1)
