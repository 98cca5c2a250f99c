"""Intervals, paired tests and multiple comparisons: numpy in, numpy out (METHOD §3).

Knows: resampling of units and the textbook methods on top.
Does not know: CSQ, KnownLie, models, files.
"""

from belie.statistics.bootstrap import Floats, Resampler, acceleration, bca, percentile
from belie.statistics.multiple import holm, tail
from belie.statistics.paired import swap_test
from belie.statistics.proportion import wilson

__all__ = ["Floats", "Resampler", "acceleration", "bca", "holm", "percentile", "swap_test", "tail", "wilson"]
