"""Own questions in pairs of twins: asked, scored, reported and gated as CSQ's are."""

from belie.pairs.file import Pair, PairSet, read_pairs, set_names
from belie.pairs.validation import examine

__all__ = ["Pair", "PairSet", "examine", "read_pairs", "set_names"]
