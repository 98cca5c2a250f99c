"""The published trajectory format as it stands in its files: JSON lines, one a round.

Knows: which lines are rounds, which are notes of the run, which are torn.
Does not know: what a round means (trajectories, published).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from belie.respondents.base import BadInput

#: The conditions and trust levels of the format.
CONDITIONS = ("none", "lie_incentive", "instructed_lie")
LEVELS = ("high", "neutral", "low")

Row = dict[str, Any]


@dataclass(slots=True)
class PublishedRows:
    """What the files hold.

    ``rows``: the rounds, in the order of their files. ``runs``: run_meta of each file that has one. ``aborted``: why
    runs stopped early. ``unfinished``: files without their closing line. ``lost``: trajectories that failed as a whole.
    """

    rows: list[Row] = field(default_factory=list)
    runs: list[Row] = field(default_factory=list)
    usage: list[Row] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    lost: int = 0


def read_rows(paths: str | Path | Iterable[str | Path]) -> PublishedRows:
    """Reads files of rounds, sorted by path. Raises BadInput with file and line for what is not of this format.

    A last line that was torn off (no line end, no JSON) is left out: its file counts as unfinished.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    if not given:
        raise BadInput("Name at least one file of trajectories (.jsonl).")
    read = PublishedRows()
    for path in sorted(map(Path, given)):
        _read(path, read)
    if not read.rows:
        raise BadInput(f"{', '.join(map(str, given))}: no rounds in the published trajectory format.")
    sets = sorted({str(row["delta_set"]) for row in read.rows if row.get("delta_set") is not None})
    if len(sets) > 1:
        raise BadInput(f"The rounds follow {len(sets)} trust rules ({', '.join(sets)}): score one at a time.")
    return read


def _read(path: Path, read: PublishedRows) -> None:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8 text.") from None
    lines = text.split("\n")
    closed = False
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except ValueError as error:
            if number == len(lines):
                break
            raise BadInput(f"Line {number} of {path} is not JSON ({error}).") from None
        closed |= _sort(entry, f"Line {number} of {path}", read)
    if not closed:
        read.unfinished.append(path.name)


def _sort(entry: Any, where: str, read: PublishedRows) -> bool:
    """Puts a line where it belongs; True for the closing line."""
    if not isinstance(entry, dict):
        raise BadInput(f"{where} is not a round: expected a mapping of fields.")
    if "run_meta" in entry:
        read.runs.append(entry["run_meta"])
    elif "usage_summary" in entry:
        read.usage.append(entry["usage_summary"])
        return True
    elif "aborted" in entry:
        reason = entry["aborted"]
        read.aborted.append(str(reason.get("reason", reason)) if isinstance(reason, dict) else str(reason))
    elif "gate_passed" in entry:
        _check(entry, where)
        read.rows.append(entry)
    elif "error" in entry:
        read.lost += 1
    else:
        raise BadInput(f"{where} is not a round: it has no 'gate_passed'.")
    return False


def _check(row: Row, where: str) -> None:
    if row.get("condition") not in CONDITIONS:
        raise BadInput(f"{where}: condition is {row.get('condition')!r}, not one of {', '.join(CONDITIONS)}.")
    if row.get("initial") not in LEVELS:
        raise BadInput(f"{where}: initial is {row.get('initial')!r}, not one of {', '.join(LEVELS)}.")
    if row["gate_passed"] not in (True, False):
        raise BadInput(f"{where}: gate_passed is {row['gate_passed']!r}, not true or false.")
    if row["gate_passed"] and not (isinstance(row.get("facts"), dict) and isinstance(row.get("derived"), dict)):
        raise BadInput(f"{where}: a round whose gate passed needs 'facts' and 'derived'.")
