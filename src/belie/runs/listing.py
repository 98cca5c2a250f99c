"""What runs there are under a root folder.

Knows: manifests and locks. Does not read any journal, so it is quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from belie.respondents.base import BadInput
from belie.runs.folder import MANIFEST, RunFolder

ROOT = Path("runs")


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of the list.

    ``problem`` is a sentence where the manifest can't be read; the other fields are then empty.
    """

    name: str
    path: Path
    instrument: str = ""
    respondent: str = ""
    status: str = "unreadable"
    created: str = ""
    counts: Mapping[str, Any] = field(default_factory=dict)
    problem: str | None = None


def list_runs(root: str | Path = ROOT) -> list[RunSummary]:
    """All runs directly under ``root``, oldest first; none where there is no such folder."""
    root = Path(root)
    found = [_summary(path.parent) for path in root.glob(f"*/{MANIFEST}")] if root.is_dir() else []
    return sorted(found, key=lambda run: (run.created, run.name))


def _summary(path: Path) -> RunSummary:
    try:
        run = RunFolder.open(path)
    except BadInput as error:
        return RunSummary(path.name, path, problem=str(error))
    m = run.manifest
    return RunSummary(path.name, path, m.instrument, m.respondent, run.status, m.created, m.counts)
