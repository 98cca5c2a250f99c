"""The replies of a model, kept as they come: one line an attempt, so that nothing is paid for twice.

Knows: the file beside a world file, its first line (what was asked of whom), and how a torn last line is dropped.
Does not know: what a reply is worth: that is judged again each time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from belie.respondents.base import BadInput
from belie.runs.files import AppendFile, make_folder, tail

#: Of the first line: with another one of these, other replies would have come.
BINDING = ("model", "world", "world_sha256", "seed", "temperature", "max_tokens", "prompt_version")


@dataclass(frozen=True, slots=True)
class Reply:
    """One attempt's reply as it came. ``tokens``: (prompt, completion); ``cost`` in US dollars."""

    attempt: int
    text: str
    tokens: tuple[int, int] = (0, 0)
    cost: float = 0.0


def replies_path(world_file: Path) -> Path:
    """Where the replies for a world file are kept: ``contacts-x.replies.jsonl`` beside ``contacts-x.yaml``."""
    return world_file.with_suffix(".replies.jsonl")


class Replies:
    """The replies so far, and the file that new ones go to. Use as a context manager.

    Raises BadInput: the file is there and ``resume`` is not asked for, it was made with other options, or a line of it
    is damaged.
    """

    def __init__(self, path: Path, head: Mapping[str, Any], *, resume: bool) -> None:
        self.path = path
        self.kept: dict[int, Reply] = {}
        make_folder(path.parent)
        there = path.exists() and path.stat().st_size > 0
        if there and not resume:
            raise BadInput(f"{path} holds replies already: continue with --resume, or choose another -o.")
        whole = 0
        if there:
            whole, _ = tail(path)
            self._read(path.read_bytes()[:whole])
        self.head: dict[str, Any] = dict(head) if not whole else self.head
        for name in BINDING:
            if self.head.get(name) != head.get(name):
                raise BadInput(
                    f"{path} was made with {name} {self.head.get(name)!r}, not {head.get(name)!r}: "
                    "name the same, or choose another -o."
                )
        self._file = AppendFile(path, whole)
        if not whole:
            self._write({"head": self.head})

    def add(self, reply: Reply) -> None:
        """Keeps a reply; it is on the file when this returns."""
        self.kept[reply.attempt] = reply
        line = {"attempt": reply.attempt, "text": reply.text, "tokens": list(reply.tokens), "cost": reply.cost}
        self._write(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._file.close()

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.append((json.dumps(line, ensure_ascii=False) + "\n").encode("utf-8", "replace"))

    def _read(self, content: bytes) -> None:
        self.head = {}
        for number, raw in enumerate(content.splitlines(), 1):
            try:
                line = json.loads(raw)
                if number == 1:
                    self.head = dict(line["head"])
                    continue
                reply = Reply(int(line["attempt"]), str(line["text"]), tuple(line["tokens"]), float(line["cost"]))
            except (ValueError, KeyError, TypeError):
                raise BadInput(f"{self.path}:{number}: not a line that belie wrote; remove it to go on.") from None
            self.kept[reply.attempt] = reply
