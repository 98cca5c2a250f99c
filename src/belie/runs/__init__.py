"""A run on disk: manifest, journal, lock, what continues it, and its tables."""

from belie.runs.folder import RunFolder
from belie.runs.journal import Journal, JournalWriter
from belie.runs.listing import RunSummary, list_runs
from belie.runs.manifest import Manifest
from belie.runs.redaction import looks_secret, redact, redact_text
from belie.runs.state import Counts, JournalState

__all__ = [
    "Counts",
    "Journal",
    "JournalState",
    "JournalWriter",
    "Manifest",
    "RunFolder",
    "RunSummary",
    "list_runs",
    "looks_secret",
    "redact",
    "redact_text",
]
