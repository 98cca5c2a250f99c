"""Comparing runs: paired on the same items, with an interval, a test, Holm, and what the design could have found."""

from belie.comparison.power import smallest_difference
from belie.comparison.reading import compare, qualified, runs_in
from belie.comparison.result import COMPARISON_VERSION, Compared, Comparison, Contrast, Side
from belie.comparison.words import effect, power_words, shared_words

__all__ = [
    "COMPARISON_VERSION",
    "Compared",
    "Comparison",
    "Contrast",
    "Side",
    "compare",
    "effect",
    "power_words",
    "qualified",
    "runs_in",
    "shared_words",
    "smallest_difference",
]
