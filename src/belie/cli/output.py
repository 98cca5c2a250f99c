"""What commands print: sentences, tables, progress, JSON.

Knows: the terminal.
Does not know: what the figures mean.
"""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from belie.numbers import number

#: Results go to standard output, everything else to standard error, so that ``--json`` can be piped.
out = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
err = Console(stderr=True, highlight=False)


def complain(sentence: str) -> None:
    """An error, as one sentence. Never interprets markup: it may quote what a model or a server said."""
    err.print(Text(f"belie: {sentence}", style="red"), soft_wrap=True)


def say(sentence: str) -> None:
    """A remark that is not a result."""
    err.print(Text(sentence), soft_wrap=True)


def print_json(content: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def interval(low: float | None, high: float | None, digits: int = 3, *, signed: bool = False) -> str:
    """An interval in brackets; nothing where it is undefined. With two digits it is set tight: ``[.34,.39]``."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    ends = [number(end, digits, signed=signed and digits > 2) for end in (low, high)]
    if digits > 2:
        return f"[{', '.join(ends)}]"
    return "[" + ",".join(re.sub(r"^(−?)0\.", r"\1.", end) for end in ends) + "]"


#: A table of intervals needs so many columns for three digits; narrower terminals get two.
WIDE = 112


def digits() -> int:
    """How many decimals a table of intervals has room for."""
    return 3 if out.width >= WIDE or not out.is_terminal else 2


class Count(Protocol):
    """What a progress bar shows. ``total`` and ``first`` count questions; tokens and cost are sums so far."""

    total: int
    first: int
    followups: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    cost: float


class _Rate(ProgressColumn):
    """Answers a second, follow-ups included."""

    def render(self, task: Task) -> Text:
        elapsed = task.finished_time if task.finished else task.elapsed
        done = task.fields.get("fresh", 0)
        return Text(f"{done / elapsed:.1f}/s" if elapsed and done else "–/s")


class Watch:
    """Shows a run as it goes: a bar on a terminal, a line every ten seconds elsewhere, nothing where ``quiet``."""

    def __init__(self, label: str, *, quiet: bool) -> None:
        self._label = label
        self._bar: Progress | None = None
        self._task: Any = None
        self._before: int | None = None
        self._shown = self._started = time.monotonic()
        self._quiet = quiet
        if not quiet and err.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                _Rate(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[spent]}", markup=False),
                console=err,
            )

    def __call__(self, count: Count) -> None:
        answers = count.first + count.followups
        if self._before is None:
            self._before = answers
        fresh = answers - self._before
        now = time.monotonic()
        if self._quiet or (now - self._shown < (0.2 if self._bar else 10) and count.first < count.total):
            return
        self._shown = now
        if self._bar:
            if self._task is None:
                self._task = self._bar.add_task(self._label, total=count.total, spent="", fresh=0)
            self._bar.update(self._task, total=count.total, completed=count.first, spent=_spent(count), fresh=fresh)
        elif fresh:
            rate = fresh / max(now - self._started, 1e-9)
            left = (count.total - count.first) / max(rate, 1e-9)
            say(
                f"{self._label}: {count.first:,} of {count.total:,} questions, {rate:.1f} answers/s, "
                f"about {left:.0f} s left, {_spent(count)}"
            )

    def __enter__(self) -> Watch:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()


def _spent(count: Count) -> str:
    parts = [f"{count.followups:,} follow-ups", f"{count.prompt_tokens + count.completion_tokens:,} tokens"]
    if count.cost:
        parts.append(f"${count.cost:.2f}")
    if count.failed:
        parts.append(f"{count.failed:,} failed")
    return ", ".join(parts)


@contextmanager
def waiting(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Says what is being waited for."""
    if quiet or not err.is_terminal:
        if not quiet:
            say(what)
        yield
        return
    with err.status(Text(what)):
        yield
