"""What every script of this folder prints: one JSON line a figure, measured in turn with what it is compared to.

Knows: pairs of measurements, medians, the machine and its load, the versions of what was measured.
Does not know: what any figure is about.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

#: Repetitions of every measurement; the median is told.
REPEATS = 5
_PACKAGES = ("belie", "aiohttp", "inspect-ai", "numpy", "torch", "transformers")


@dataclass(frozen=True, slots=True)
class Figure:
    """One line. ``ratio`` is held against ``goal``; "≥": at least, "≤": at most, None: no goal, told for its own sake.

    ``ours`` and ``theirs`` are medians in ``unit``; ``spread`` the lowest and the highest ratio of the repetitions.
    ``row`` is the row of the speed table in DESIGN, 0 where none.
    """

    name: str
    ratio: float
    unit: str
    ours: float
    theirs: float | None = None
    sense: Literal["≥", "≤"] | None = None
    goal: float | None = None
    row: int = 0
    spread: tuple[float, float] | None = None
    runs: int = 1
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        if self.goal is None or self.sense is None:
            return None
        return self.ratio >= self.goal if self.sense == "≥" else self.ratio <= self.goal

    def show(self) -> None:
        """Prints the line; numbers with four significant digits."""
        told = {**asdict(self), "met": self.met, "machine": machine(), "versions": versions()}
        print(json.dumps(_rounded(told), ensure_ascii=False), flush=True)


def compared(
    name: str,
    ours: Sequence[float],
    theirs: Sequence[float],
    *,
    more_is_better: bool,
    unit: str,
    **more: Any,
) -> Figure:
    """The median over the repetitions of ours over theirs (rates, sizes) or, for times of which the ratio shall say
    how many times faster, theirs over ours: ``more_is_better`` says that these are times to be turned round."""
    pairs = list(zip(ours, theirs, strict=True))
    ratios = [b / a if more_is_better else a / b for a, b in pairs]
    return Figure(
        name,
        statistics.median(ratios),
        unit,
        statistics.median(ours),
        statistics.median(theirs),
        spread=(min(ratios), max(ratios)),
        runs=len(ratios),
        **more,
    )


def in_turn(repeats: int, *measures: Callable[[], float]) -> list[list[float]]:
    """Every measure once a repetition, one after the other, so that what the machine does meanwhile meets all alike.

    The order turns from one repetition to the next. A line on stderr tells each repetition.
    """
    results: list[list[float]] = [[] for _ in measures]
    for repeat in range(repeats):
        order = range(len(measures)) if repeat % 2 == 0 else reversed(range(len(measures)))
        for index in order:
            gc.collect()
            results[index].append(measures[index]())
        say(f"  {repeat + 1}/{repeats}: " + ", ".join(f"{each[-1]:.4g}" for each in results))
    return results


def say(text: str) -> None:
    """Tells how far a measurement is, beside its lines."""
    print(text, file=sys.stderr, flush=True)


def machine() -> dict[str, Any]:
    """Cores, processor, and the load averages of the last 1 and 5 minutes (this measurement's own load included)."""
    one, five, _ = os.getloadavg()
    return {"cores": os.cpu_count(), "processor": _processor(), "load_1": one, "load_5": five}


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return (
        float(f"{value:.4g}")
        if isinstance(value, float) and abs(value) < 1000
        else (round(value) if isinstance(value, float) else value)
    )
