"""What a sentence states of one pair.

Knows: the two, and with what force it is said.
Does not know: how it was read (grammar), or whether it is true (reading).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Force = Literal["told", "derived", "asked", "supposed"]


@dataclass(frozen=True, slots=True)
class Statement:
    """``a`` leads to ``b``, or does not (``negative``). ``direct``: it speaks of a direct link only. ``undirected``:
    "between a and b". ``start`` and ``end``: where it stands in the trace."""

    a: str
    b: str
    force: Force
    negative: bool
    start: int
    end: int
    direct: bool = False
    undirected: bool = False
