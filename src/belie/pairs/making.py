"""New sets of the shipped kinds, for questions that no model has seen.

Knows: which kinds there are, how a set is written down.
Does not know: how a pair of a kind is made (arithmetic, programs).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from belie.pairs import arithmetic, programs
from belie.pairs.file import Header, Pair
from belie.respondents.base import BadInput


class Kind(NamedTuple):
    title: str
    make: Callable[[int, int], list[Pair]]


KINDS: Mapping[str, Kind] = {
    "arithmetic": Kind("Sums and dates, told step by step", arithmetic.make),
    "programs": Kind("Short programs to be read", programs.make),
}
#: The seed of the shipped sets, and their pairs of each difficulty.
SHIPPED_SEED, SHIPPED_PAIRS = 0, 40


def make_set(kind: str, per_size: int = SHIPPED_PAIRS, seed: int = SHIPPED_SEED) -> str:
    """The text of a file: a header and ``per_size`` pairs of each difficulty. Raises BadInput."""
    if kind not in KINDS:
        raise BadInput(f"There is no kind of pairs {kind!r}. Kinds: {', '.join(KINDS)}.")
    if per_size < 1 or seed < 0:
        raise BadInput(f"{per_size} pairs of each difficulty with seed {seed}: at least 1 pair, and a seed from 0 on.")
    name = kind if seed == SHIPPED_SEED else f"{kind}_s{seed}"
    header = Header(pairs=1, name=name, version=1, title=KINDS[kind].title, checker=kind)
    lines = [header.model_dump_json(exclude_defaults=True)]
    lines += [json.dumps(pair.model_dump(), ensure_ascii=False) for pair in KINDS[kind].make(per_size, seed)]
    return "\n".join(lines) + "\n"
