"""Progress of KnownLie runs: a bar on a terminal, a line every ten seconds elsewhere, nothing where quiet.

Knows: the terminal, and what ``Progress`` counts.
Does not know: how rounds are played or judged.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from belie.cli.output import err, say
from belie.respondents.base import BudgetSpent

if TYPE_CHECKING:
    from belie.knownlie.session import Progress as Standing

_BAR_SECONDS, _LINE_SECONDS = 0.2, 10.0


class RoundWatch:
    """Shows how far rounds are, and stops a run whose calls cost ``max_cost`` US dollars or more.

    ``spent`` is the reason once it did. ``doing`` names what goes on: "Playing", "Judging".
    """

    def __init__(self, doing: str, total: int, *, quiet: bool, max_cost: float | None = None) -> None:
        self.spent: BudgetSpent | None = None
        self._doing, self._total, self._quiet, self._max_cost = doing, total, quiet, max_cost
        self._before: int | None = None
        self._started = self._shown = time.monotonic()
        self._bar: Progress | None = None
        self._task: Any = None
        if not quiet and err.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=16),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}", markup=False),
                TimeRemainingColumn(),
                TextColumn("{task.fields[spent]}", markup=False),
                console=err,
            )
            self._task = self._bar.add_task(doing, total=total, rate="–/s", spent="")

    def __call__(self, at: Standing) -> None:
        if self._before is None:
            self._before = at.rounds - 1
        self._show(at, at.rounds - self._before)
        cost = sum(used.cost for used in at.usage.values())
        if self._max_cost is not None and cost >= self._max_cost and at.rounds < at.rounds_total:
            self.spent = BudgetSpent(f"${cost:.2f} of ${self._max_cost:.2f} are spent.")
            raise self.spent

    def __enter__(self) -> RoundWatch:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def _show(self, at: Standing, fresh: int) -> None:
        now = time.monotonic()
        pause = _BAR_SECONDS if self._bar else _LINE_SECONDS
        over = at.rounds == at.rounds_total
        if self._quiet or (now - self._shown < pause and not (over and self._bar)):
            return
        self._shown = now
        rate = fresh / max(now - self._started, 1e-9)
        if self._bar:
            self._bar.update(self._task, completed=at.rounds, rate=f"{rate:.1f}/s", spent=_spent(at))
            return
        left = (at.rounds_total - at.rounds) / max(rate, 1e-9)
        say(
            f"{self._doing}: {at.rounds:,} of {at.rounds_total:,} rounds, {rate:.1f}/s, about {left:.0f} s left, "
            f"{_spent(at)}"
        )


class DomainWatch:
    """Shows how many domains of runs on a cluster are done: a bar on a terminal, a line a change elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet, self._told = quiet, -1
        self._bar: Progress | None = None
        self._task: Any = None
        if not quiet and err.is_terminal:
            self._bar = Progress(
                TextColumn("Playing"), BarColumn(bar_width=16), MofNCompleteColumn(), TextColumn("domains"), console=err
            )
            self._task = self._bar.add_task("", total=None)

    def __call__(self, done: int, total: int) -> None:
        if self._bar:
            self._bar.update(self._task, completed=done, total=total)
        elif not self._quiet and done != self._told:
            say(f"Playing: {done:,} of {total:,} domains")
        self._told = done

    def __enter__(self) -> DomainWatch:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()


def _spent(at: Standing) -> str:
    tokens = sum(used.input_tokens + used.output_tokens for used in at.usage.values())
    cost = sum(used.cost for used in at.usage.values())
    parts = [f"{tokens:,} tokens"]
    if cost:
        parts.append(f"${cost:.2f}")
    if at.missing:
        parts.append(f"{at.missing:,} missing")
    return ", ".join(parts)
