"""The journal of a run: append-only files ``answers-<shard>.jsonl``, the truth that all else is computed from.

Knows: shards, torn last lines, damaged lines, what counts.
Does not know: how a record is written down (record), what is asked (protocol), what an answer is worth (scores).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from belie.items import Answer
from belie.respondents.base import BadInput
from belie.runs import files, record
from belie.runs.counting import SHARD_BITS, Counting, Entry
from belie.runs.redaction import redact_text
from belie.runs.state import JournalState

_SHARD = re.compile(r"[A-Za-z0-9_-]{1,64}")
#: So many damaged lines are named one by one when they are skipped; the others are only counted.
NAMED_LINES = 5


def shard_path(folder: Path, shard: str) -> Path:
    """Where a shard's answers lie. Raises ``BadInput`` for a name that is not letters, digits, ``-`` and ``_``."""
    if not _SHARD.fullmatch(shard):
        raise BadInput(f"{shard!r} is no name for a shard: use up to 64 letters, digits, '-' and '_'.")
    return folder / f"answers-{shard}.jsonl"


class Journal:
    """Reads all shards of a run folder, or those whose name ``only`` accepts. Needs no lock; a run may be writing.

    ``notices`` collects sentences for the user (a torn last line left out, damaged lines skipped).
    """

    def __init__(self, folder: Path, only: Callable[[str], bool] | None = None) -> None:
        self.folder = folder
        self.notices: list[str] = []
        self._only = only

    def records(self, *, skip: bool = False) -> Iterator[Answer]:
        """Every record in the order of writing, shard by shard: failures and duplicates too.

        A torn last line is left out with a notice. A damaged line raises ``BadInput`` with file and line
        number; with ``skip`` it is left out with a notice instead. Memory is flat.
        """
        for _, _, entry in self._entries(self._paths(), skip):
            yield record.from_record(entry)

    def state(self, *, skip: bool = False) -> JournalState:
        """What is already answered, for a run that continues. Raises as ``records``."""
        paths = self._paths()
        return JournalState(paths, self._entries(paths, skip))

    def answers(self, *, skip: bool = False) -> Iterator[Answer]:
        """The records that count, one a key (item, draw, step): what scores are computed from.

        The first good record of each key; where every call failed, the last failure (``error``: missing). Reads the
        journal twice (three times where a key came twice); what a live run writes meanwhile is left out. Raises as
        ``records``.
        """
        paths = self._paths()
        counting = Counting(lambda: self._entries(paths, skip))
        for entry in counting.of(self._entries(paths, skip)):
            yield record.from_record(entry)

    def _paths(self) -> Sequence[Path]:
        found = sorted(self.folder.glob("answers-*.jsonl"))
        return found if self._only is None else [path for path in found if self._only(path.stem[len("answers-") :])]

    def _entries(self, paths: Sequence[Path], skip: bool) -> Iterator[Entry]:
        for shard, path in enumerate(paths):
            position = shard << SHARD_BITS
            damaged = 0
            for number, line in enumerate(files.lines(path), 1):
                try:
                    yield position, len(line), record.parse(line)
                except ValueError as error:
                    if not line.endswith(b"\n"):
                        self._notice(_torn(path, "is left out"))
                    elif skip:
                        damaged += 1
                        if damaged <= NAMED_LINES:
                            self._notice(f"Line {number} of {path} is damaged ({error}) and is left out.")
                    else:
                        raise BadInput(
                            f"Line {number} of {path} is damaged ({error}); to go on without such lines, "
                            "say --skip-damaged: their questions count as not asked."
                        ) from error
                position += len(line)
            if damaged > NAMED_LINES:
                self._notice(f"{damaged} lines of {path} are damaged and are left out.")

    def _notice(self, text: str) -> None:
        if text not in self.notices:
            self.notices.append(text)


class JournalWriter:
    """Appends answers to one shard; the caller holds the run's lock. A context manager.

    Each answer reaches the operating system before ``write`` returns; see ``files`` for what survives what. A torn last
    line is cut away on opening, with a notice.
    """

    def __init__(self, folder: Path, shard: str = "0", secrets: Iterable[str] = ()) -> None:
        path = shard_path(folder, shard)
        self.notices: list[str] = []
        self._secrets = tuple(secrets)
        keep, finish = _whole_lines(path)
        if keep is not None:
            self.notices.append(_torn(path, "was cut away"))
        self._file = files.AppendFile(path, keep)
        if finish:
            self._file.append(b"\n")

    def write(self, answer: Answer) -> None:
        """Appends one answer. Secrets in an ``error`` are redacted.

        Raises ``BadInput`` when the disk is full: nothing of this answer stays, all before it is intact.
        Raises ``ValueError`` for an answer that is none (not exactly one of p, text, error).
        """
        if answer.error is not None:
            answer = replace(answer, error=redact_text(answer.error, self._secrets))
        self._file.append(record.to_line(answer))

    def close(self) -> None:
        """Syncs to disk and closes. Raises ``BadInput`` where the disk refused."""
        self._file.close()

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _whole_lines(path: Path) -> tuple[int | None, bool]:
    """How many bytes to keep (None: all), and whether the last line lacks only its newline."""
    if not path.exists():
        return None, False
    try:
        size, rest = files.tail(path)
    except OSError as error:
        raise files.sentence(error, path, "reading") from error
    if not rest:
        return None, False
    try:
        record.parse(rest)
    except ValueError:
        return size, False
    return None, True


def _torn(path: Path, what: str) -> str:
    return (
        f"The last line of {path} was torn (the run was stopped while writing it) and {what}; --resume asks it again."
    )
