"""The published benchmark's files: its trajectories, its scores, its cases.

Knows: the formats of KnownLieBench.
Does not know: how a round is played. METHOD's own figures come from `belie.knownlie.scores`.
"""

from belie.knownlie.interop.cases import Imported, import_published_cases
from belie.knownlie.interop.published import published_scores
from belie.knownlie.interop.rows import PublishedRows, read_rows
from belie.knownlie.interop.trajectories import Published, read_published

__all__ = [
    "Imported",
    "Published",
    "PublishedRows",
    "import_published_cases",
    "published_scores",
    "read_published",
    "read_rows",
]
