"""Which records of a journal count, in 16 bytes an answer.

Knows: that of one key (item, draw, step) the first good record counts, or else the last failure.
Does not know: where the records come from, or what they are worth.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Any

import numpy as np

#: (position, length of the line in bytes, parsed record)
Entry = tuple[int, int, dict[str, Any]]
#: A position is the shard's number in the top bits and the offset of the line in the others.
SHARD_BITS = 44


class Counting:
    """A snapshot of what counts: records written later do not.

    ``read`` gives all records in the order of writing, each time it is called: twice here (once where no key comes
    twice), and once for every ``of``.
    """

    def __init__(self, read: Callable[[], Iterable[Entry]]) -> None:
        keys = array("Q")
        self._last: dict[int, int] = {}
        for position, _, entry in read():
            keys.append(_key(entry))
            self._last[position >> SHARD_BITS] = position
        ordered = np.sort(np.frombuffer(keys, dtype=np.uint64))
        # Two keys may share a hash: whether a key came twice is settled by the keys themselves.
        repeated = frozenset(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
        self._beaten = _beaten(self._then(read()), repeated) if repeated else []

    def of(self, entries: Iterable[Entry]) -> Iterator[dict[str, Any]]:
        """Of the records in the order of writing, those that count."""
        beaten = iter(self._beaten)
        skip = next(beaten, None)
        for position, entry in self._then(entries):
            if position == skip:
                skip = next(beaten, None)
            else:
                yield entry

    def _then(self, entries: Iterable[Entry]) -> Iterator[tuple[int, dict[str, Any]]]:
        """The records that were there at the first reading; a live run may have written more, to any shard."""
        for position, _, entry in entries:
            if position <= self._last.get(position >> SHARD_BITS, -1):
                yield position, entry


def digest(item: str, draw: int, followup: bool, size: int) -> bytes:
    """BLAKE2b of a key."""
    key = f"{draw}{'f' if followup else ' '}{item}".encode("utf-8", "surrogatepass")
    return blake2b(key, digest_size=size).digest()


def _key(entry: dict[str, Any]) -> int:
    return int.from_bytes(digest(entry["i"], entry.get("d", 0), "f" in entry, 8), "little")


def _beaten(entries: Iterable[tuple[int, dict[str, Any]]], repeated: frozenset[int]) -> list[int]:
    """Positions of the records that do not count, ascending. ``repeated``: hashes of the keys that come twice."""
    best: dict[tuple[str, int, bool], tuple[bool, int]] = {}
    beaten = []
    for position, entry in entries:
        if _key(entry) not in repeated:
            continue
        name = (entry["i"], entry.get("d", 0), "f" in entry)
        good = "e" not in entry
        before = best.get(name)
        if before is not None and before[0]:
            beaten.append(position)
            continue
        if before is not None:
            beaten.append(before[1])
        best[name] = (good, position)
    return sorted(beaten)
