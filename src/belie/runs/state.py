"""What a journal already holds, small enough for a million answers.

Knows: which steps of which item and draw have an answer, and where it lies.
Does not know: what should be asked next (the protocol does).

A key (item, draw, step) is kept as a 128-bit hash (BLAKE2b) beside the position of its line: 29 bytes an
answer at rest, about 80 while it is built. Two keys of a million share a hash with a chance of 10⁻²⁷. An answer is
read back from the file when asked for.
"""

from __future__ import annotations

import os
import weakref
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from belie.items import Answer, Step
from belie.runs import record
from belie.runs.counting import SHARD_BITS, Entry, digest

_GOOD, _FOLLOWUP = 1, 2
#: So many files are held open to read answers back; a run may have thousands of shards.
_MOST_OPEN = 32


@dataclass(frozen=True, slots=True)
class Counts:
    """What a journal holds, in numbers.

    ``first`` and ``followup`` count keys that have an answer, ``missing`` keys whose every call failed.
    ``failed`` counts all records of failed calls, ``duplicates`` good records beyond the first of their key.
    Tokens and ``cost`` (US dollars) are sums over every record, the failed and doubled ones too: they were paid.
    """

    first: int = 0
    followup: int = 0
    missing: int = 0
    failed: int = 0
    duplicates: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0


class JournalState:
    """A snapshot: answers written later are not in it.

    Of one key the first good record counts; later good ones are duplicates (``counts.duplicates``: it should be
    0). A failed call counts only as long as no good record exists for its key, and of several the last.
    """

    def __init__(self, paths: Sequence[Path], records: Iterable[Entry]) -> None:
        """``records`` yields (position, length of the line in bytes, parsed record) in the order of writing."""
        digests, positions, lengths, flags = bytearray(), array("Q"), array("I"), bytearray()
        prompt = completion = 0
        cost = 0.0
        for position, length, entry in records:
            followup = "f" in entry
            digests += digest(entry["i"], entry.get("d", 0), followup, 16)
            positions.append(position)
            lengths.append(length)
            flags.append(("e" not in entry) * _GOOD + followup * _FOLLOWUP)
            if "u" in entry:
                prompt += entry["u"][0]
                completion += entry["u"][1]
            cost += entry.get("c", 0.0)

        halves = np.frombuffer(digests, dtype="<u8").reshape(-1, 2)
        flag = np.frombuffer(flags, dtype=np.uint8)
        where = np.frombuffer(positions, dtype=np.uint64)
        n = len(flag)
        good = (flag & _GOOD) > 0
        # within a key: good records first, the earliest ahead; then failures, the latest ahead
        rank = np.arange(n, dtype=np.uint32)
        rank[~good] = 2 * n - rank[~good]
        order = np.lexsort((rank, halves[:, 1], halves[:, 0]))
        del rank
        high, low = halves[order, 0], halves[order, 1]
        del halves, digests
        leads = np.ones(n, dtype=bool)
        leads[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
        chosen = order[leads]

        self._high: NDArray[np.uint64] = high[leads]
        self._low: NDArray[np.uint64] = low[leads]
        del high, low
        self._position = where[chosen]
        self._length = np.frombuffer(lengths, dtype=np.dtype("I"))[chosen]
        self._good = good[chosen]
        follow = (flag[chosen] & _FOLLOWUP) > 0
        self.counts = Counts(
            first=int((self._good & ~follow).sum()),
            followup=int((self._good & follow).sum()),
            missing=int((~self._good).sum()),
            failed=int((~good).sum()),
            duplicates=int(good.sum() - self._good.sum()),
            prompt_tokens=prompt,
            completion_tokens=completion,
            cost=cost,
        )
        self.paths = tuple(paths)
        self._open: dict[int, int] = {}
        weakref.finalize(self, _close_all, self._open)

    def first(self, item: str, draw: int = 0) -> Answer | None:
        """The first answer of an item and draw, or None where it must still be asked (or every call failed)."""
        return self._answer(item, draw, "first")

    def followup(self, item: str, draw: int = 0) -> Answer | None:
        """The answer to the follow-up of an item and draw, or None."""
        return self._answer(item, draw, "followup")

    def has_first(self, item: str, draw: int = 0) -> bool:
        """Whether the first answer is there (without reading it)."""
        return self._find(item, draw, "first") is not None

    def has_followup(self, item: str, draw: int = 0) -> bool:
        """Whether the follow-up has been answered (without reading it)."""
        return self._find(item, draw, "followup") is not None

    def _find(self, item: str, draw: int, step: Step) -> int | None:
        key = digest(item, draw, step == "followup", 16)
        high = np.uint64(int.from_bytes(key[:8], "little"))
        low = int.from_bytes(key[8:], "little")
        at = int(np.searchsorted(self._high, high))
        while at < len(self._high) and self._high[at] == high:
            if int(self._low[at]) == low:
                return at if self._good[at] else None
            at += 1
        return None

    def _answer(self, item: str, draw: int, step: Step) -> Answer | None:
        at = self._find(item, draw, step)
        if at is None:
            return None
        position = int(self._position[at])
        shard, offset = position >> SHARD_BITS, position & ((1 << SHARD_BITS) - 1)
        if shard not in self._open:
            if len(self._open) >= _MOST_OPEN:
                _close_all(self._open)
            self._open[shard] = os.open(self.paths[shard], os.O_RDONLY)
        return record.from_line(os.pread(self._open[shard], int(self._length[at]), offset))


def _close_all(descriptors: dict[int, int]) -> None:
    close: Callable[[int], None] = os.close
    for fd in descriptors.values():
        close(fd)
    descriptors.clear()
