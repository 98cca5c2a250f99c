"""Captured states on disk: files of some hundred items each in the run's folder, made once.

Knows: which file holds which items, and when a file is no longer true.
Does not know: where states come from, what they show.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from belie.csq.embedding.capture import State
from belie.runs import RunFolder
from belie.statistics import Floats

#: Raised whenever the same weights and items would give other files.
CAPTURE_VERSION = 1
#: Items a file: what a stopped capture loses at most.
BLOCK = 128
POSITIONS = ("first", "followup")


class Store:
    """The states of ``items`` (ids with what was said first, None where there is no follow-up) under one ``key``.

    ``missing()`` names the blocks that are still to be captured; ``layer`` reads one layer of all items. Memory is that
    of one block while writing, of one layer while reading.
    """

    def __init__(self, run: RunFolder, items: Sequence[tuple[str, str | None]], key: str) -> None:
        self._run = run
        self._items = list(items)
        self._key = key

    def blocks(self) -> list[range]:
        return [range(at, min(at + BLOCK, len(self._items))) for at in range(0, len(self._items), BLOCK)]

    def path(self, block: range) -> Path:
        return self._run.path / f"states-{block.start // BLOCK:04d}.npz"

    def missing(self) -> list[range]:
        return [block for block in self.blocks() if self._held(block) != self._mark(block)]

    def write(self, block: range, states: dict[tuple[int, str], State]) -> None:
        """All states of a block, by (place in the block, position). Atomic."""
        arrays: dict[str, NDArray[np.generic]] = {"mark": np.array(self._mark(block))}
        for position in POSITIONS:
            places = sorted(i for i, where in states if where == position)
            arrays[f"{position}_places"] = np.array(places, np.int64)
            if not places:
                continue
            hidden = np.stack([states[i, position].hidden for i in places], 1)
            arrays[f"{position}_p"] = np.array([states[i, position].p for i in places])
            for layer, own in enumerate(hidden, 1):
                arrays[f"{position}_{layer}"] = own
        held = io.BytesIO()
        np.savez(held, **arrays)  # type: ignore[arg-type]
        self._run.save(self.path(block).name, held.getvalue())

    def layer(self, position: str, layer: int) -> Floats:
        """States after block ``layer`` (from 1): (N, d), nan for an item without this position."""
        return self._read(position, str(layer))

    def masses(self, position: str) -> Floats:
        """Next-token masses of Yes and No: (N, 2), nan where there is none."""
        return self._read(position, "p")

    def drop_others(self) -> None:
        """Removes the files of an earlier, longer list of items."""
        for path in self._run.path.glob("states-*.npz"):
            if path not in {self.path(block) for block in self.blocks()}:
                path.unlink()

    def _read(self, position: str, what: str) -> Floats:
        found: Floats | None = None
        for block in self.blocks():
            with np.load(self.path(block), allow_pickle=False) as held:
                places = held[f"{position}_places"]
                if not len(places):
                    continue
                values = held[f"{position}_{what}"]
            if found is None:
                found = np.full((len(self._items), values.shape[1]), np.nan, values.dtype)
            found[block.start + places] = values
        return np.full((len(self._items), 1), np.nan) if found is None else found

    def _mark(self, block: range) -> str:
        told = json.dumps([CAPTURE_VERSION, self._key, [self._items[i] for i in block]])
        return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()

    def _held(self, block: range) -> str | None:
        try:
            with np.load(self.path(block), allow_pickle=False) as held:
                return str(held["mark"])
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            return None
