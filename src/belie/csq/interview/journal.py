"""The interview's own journal, ``interview-0.jsonl`` in the run's folder: one line an answer, append-only.

Knows: the keys of its lines, torn and damaged lines, what is already answered.
Does not know: what is asked, or what a reply means.

A line is a record of `belie.runs.record` whose item is ``<item id>#<question>``. A call that failed is written too, and
asked again by the next pass.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from belie.items import Answer
from belie.respondents.base import BadInput
from belie.runs import files, record, redact_text

NAME = "interview-0.jsonl"
Key = tuple[str, str, int]


def read(folder: Path, *, skip: bool = False) -> tuple[dict[Key, Answer], list[str]]:
    """The answers that count by (item id, question, draw), and sentences about lines that were left out.

    The first good record of a key counts, else the last failure. Raises BadInput for a damaged line unless ``skip``.
    """
    path = folder / NAME
    found: dict[Key, Answer] = {}
    notices: list[str] = []
    if not path.exists():
        return found, notices
    for number, line in enumerate(files.lines(path), 1):
        try:
            answer = record.from_line(line)
        except ValueError as error:
            if not line.endswith(b"\n"):
                notices.append(f"The last line of {path} was torn and is left out.")
            elif skip:
                notices.append(f"Line {number} of {path} is damaged ({error}) and is left out.")
            else:
                raise BadInput(f"Line {number} of {path} is damaged ({error}): remove the line to go on.") from error
            continue
        item, _, question = answer.item.rpartition("#")
        key = (item, question, answer.draw)
        if key not in found or found[key].error is not None:
            found[key] = answer
    return found, notices


class Writer:
    """Appends answers. A torn last line is cut away on opening. A context manager."""

    def __init__(self, folder: Path) -> None:
        path = folder / NAME
        keep = files.tail(path)[0] if path.exists() else None
        self._file = files.AppendFile(path, keep)

    def write(self, answer: Answer) -> None:
        """Appends one answer; secrets in an error are redacted. Raises BadInput when the disk is full."""
        if answer.error is not None:
            answer = replace(answer, error=redact_text(answer.error, ()))
        self._file.append(record.to_line(answer))

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
