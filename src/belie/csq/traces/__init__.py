"""Reasoning traces (METHOD §1.8): what a respondent's reasoning states, read by a parser against the facts.

Knows: what a trace says (tokens → names → grammar → reading), and its rates over a run (source, figures).
Does not know: whether what is written is what was computed.
"""

from belie.csq.traces.case import Case, case_of
from belie.csq.traces.reading import TRACES_VERSION, Edge, Reading, read_trace

__all__ = ["TRACES_VERSION", "Case", "Edge", "Reading", "case_of", "read_trace"]
