"""Calls that were answered in rounds which have not ended: what a killed run need not ask again.

Knows: one file in the run folder, an answer a line, written before the answer is used.
Does not know: what is asked, or when a round has ended.

A call is known by a name (run, trajectory, round, role, number) and by what was asked: a round that is played again but
asks something else gets no old answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from inspect_ai.model import ChatMessage, ModelOutput
from pydantic import ValidationError

FILE = "answered-calls.jsonl"


class Answered:
    """The answers of one run folder. ``get`` and ``put`` take the key that ``key`` makes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._held = dict(_read(self._path)) if self._path.exists() else {}
        # Unbuffered: a line that was written outlives the process.
        self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115 (open as long as the run)
        if self._file.tell():
            self._file.write(b"\n")  # ends a line that was cut short

    def get(self, key: str) -> ModelOutput | None:
        """The answer to a call, or None; each is given once."""
        held = self._held.pop(key, None)
        return None if held is None else ModelOutput.model_validate_json(held)

    def put(self, key: str, output: ModelOutput) -> None:
        """Keeps an answer. A disk that refuses it, or text that no file can hold, is lost to a killed run, no more."""
        try:
            self._file.write(f'["{key}",{json.dumps(output.model_dump_json())}]\n'.encode())
        except (OSError, ValueError):
            return

    def close(self) -> None:
        self._file.close()

    def drop(self) -> None:
        """Removes the file of a run that is complete."""
        self.close()
        self._path.unlink(missing_ok=True)


def key(name: str, messages: Sequence[ChatMessage]) -> str:
    """The name of a call and what it asked, as one digest."""
    told = hashlib.blake2b(name.encode(), digest_size=16)
    for message in messages:
        calls = getattr(message, "tool_calls", None) or ()
        made = "".join(f"\x1e{call.function}{call.arguments}" for call in calls)
        told.update(f"\x1f{message.role}\x1e{message.text}{made}".encode("utf-8", "surrogatepass"))
    return told.hexdigest()


def _read(path: Path):
    """(key, answer) of every whole line; the last line of a killed run may be cut short."""
    with path.open("rb") as lines:
        for line in lines:
            try:
                found, answer = json.loads(line)
                ModelOutput.model_validate_json(answer)
            except (ValueError, TypeError, ValidationError):
                continue
            yield str(found), str(answer)
