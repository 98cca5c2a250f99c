"""Many token sequences as one row without padding, in which a start that several share stands once.

Knows: token ids, common prefixes, which earlier places each token may look at.
Does not know: models, tensors, texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Tokens = Sequence[int]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Segment:
    """The tokens of one sequence that no earlier one holds: ``row[start:stop]``.

    ``path`` are the places in the row of all the sequence's tokens up to its end, in order: what its last token looks
    at. Its last ``stop - start`` places are the segment itself.
    """

    start: int
    stop: int
    path: Places

    @property
    def contiguous(self) -> bool:
        """Whether the path is one unbroken stretch of the row."""
        return bool(self.path[-1] - self.path[0] == len(self.path) - 1)


@dataclass(frozen=True, slots=True)
class Packed:
    """One row: ``ids`` and ``positions`` of shape (tokens,), the segments in row order, and each sequence's path.

    Paths count from the start of a kept earlier row where there is one (``offset`` tokens), else from 0.
    """

    ids: Places
    positions: Places
    segments: tuple[Segment, ...]
    paths: tuple[Places, ...]
    offset: int = 0


def shared(a: Tokens, b: Tokens) -> int:
    """The length of the longest common prefix."""
    size = min(len(a), len(b))
    if a[:size] == b[:size]:
        return size
    low, high = 0, size  # a[:low] == b[:low], a[:high] != b[:high]
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


def batches(sequences: Sequence[Tokens], budget: int) -> list[list[int]]:
    """The sequences' indices in lists of at most ``budget`` computed tokens each (one sequence may exceed it alone).

    Sequences with a common start come together, a sequence that begins another comes right after it, so that `pack`
    computes each shared token once a batch.
    """
    order = sorted(range(len(sequences)), key=lambda index: tuple(sequences[index]), reverse=True)
    lists: list[list[int]] = []
    before: Tokens = ()
    used = 0
    for index in order:
        sequence = sequences[index]
        new = len(sequence) - shared(before, sequence)
        if not lists or used + new > budget:
            lists.append([])
            used, new = 0, len(sequence)
        lists[-1].append(index)
        used += new
        before = sequence
    return lists


def pack(sequences: Sequence[Tokens], stems: Mapping[int, Places] | None = None, offset: int = 0) -> Packed:
    """Put sequences in one row, each token of a common start once, the order of `batches` supposed.

    ``stems`` gives for some sequences the places of their first tokens in a kept row of ``offset`` tokens. Any order
    is right; only the sharing depends on it.
    """
    ids: list[int] = []
    positions: list[int] = []
    segments: list[Segment] = []
    paths: list[Places] = []
    before: Tokens = ()
    for index, sequence in enumerate(sequences):
        common = shared(before, sequence)
        stem = paths[-1][:common] if common else np.empty(0, np.int64)
        kept = stems.get(index) if stems else None
        if kept is not None and len(kept) > common:
            common, stem = len(kept), kept
        start = len(ids)
        ids.extend(sequence[common:])
        positions.extend(range(common, len(sequence)))
        path = np.concatenate([stem, np.arange(start, len(ids), dtype=np.int64) + offset])
        if len(ids) > start:
            segments.append(Segment(start, len(ids), path))
        paths.append(path)
        before = sequence
    return Packed(np.array(ids, np.int64), np.array(positions, np.int64), tuple(segments), tuple(paths), offset)
