"""Which pattern is named for which truth? Simulated respondents of known make, explained many times.

Every truth is simulated as arrays, scored and explained (`belie.csq.decomposition`); counted is how often each pattern
is named, beside how often METHOD's regions name a mode. Among the truths are some that no question of this kind can
tell from a lie: they are marked, and what they are called is shown all the same. Prints a Markdown table; --write puts
it between the marks in docs/validity.md.
"""

from __future__ import annotations

import argparse
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from math import exp, log
from pathlib import Path

import numpy as np

from belie.csq.capability import own_length
from belie.csq.decomposition import explain
from belie.csq.pattern_words import NAMES
from belie.csq.patterns import Pattern
from belie.csq.scores import score
from belie.csq.table import Table
from belie.items import BROKEN, CATEGORIES, TRUTH, Category
from belie.respondents.profiles import Habit, Profile, parse_profile
from belie.statistics import Floats, Resampler

GRID = (3, 5, 10, 20, 30, 40, 80)
RESAMPLES = 300
PAGE = Path(__file__).resolve().parents[1] / "docs" / "validity.md"
_MARKS = ("<!-- bench/validity.py -->", "<!-- end -->")


@dataclass(frozen=True)
class Truth:
    """``name`` says what it does. ``right``: the pattern that is true of it; ``alike``: no question of this kind can
    tell it from the pattern that it is given. ``after_right``: the easy question is asked after right answers too, and
    answered rightly then with this rate."""

    name: str
    profile: Profile
    right: Pattern
    after_right: float | None = None
    alike: bool = False


def _sigma(x: float) -> float:
    return 1 / (1 + exp(-x))


def _made(name: str, habit: Callable[[int], Habit]) -> Profile:
    return Profile(name, ((1.0, habit),))


def _by_length(n: int) -> Habit:
    """Errs at random with a rate that only length decides, in easy questions as in hard ones of their length."""

    def wrong(m: int) -> float:
        return 0.5 * max(0.0, 1 - 6 / m)

    return Habit(dict.fromkeys(CATEGORIES, wrong(n)), dict.fromkeys(BROKEN, wrong(own_length(n, 2))))


def _by_length_yes(n: int) -> Habit:
    """The same on log-odds, and says Yes too readily."""

    def wrong(m: int, truth: bool) -> float:
        return _sigma(-(4.5 - 1.2 * log(m) + (0.8 if truth else -0.8)))

    hard: dict[Category, float] = {c: wrong(n, TRUTH[c]) for c in CATEGORIES}
    return Habit(hard, {c: wrong(own_length(n, 2), TRUTH[c]) for c in BROKEN})


def _presumes(n: int) -> Habit:
    """Presumes a path wherever it can't see to the end, in easy questions as in hard ones of their length."""

    def wrong(m: int) -> float:
        return 0.5 * max(0.0, 1 - 8 / m)

    return Habit(
        {c: wrong(n) if c in BROKEN else 0.0 for c in CATEGORIES}, dict.fromkeys(BROKEN, wrong(own_length(n, 2)))
    )


def _presumes_and_sees(n: int) -> Habit:
    return replace(_presumes(n), repeats=dict.fromkeys(BROKEN, 0.0))


def _yes_and_cannot(_n: int) -> Habit:
    """Says Yes too readily and finds "cannot" harder, both added on log-odds; no lean at all."""
    odds = {"linked": 3.0, "broken": 1.0, "linked_reversed": -1.0, "broken_reversed": 1.0}
    return Habit({c: _sigma(-odds[c]) for c in CATEGORIES}, dict.fromkeys(BROKEN, 0.1))


def _truths() -> tuple[Truth, ...]:
    def known(text: str, right: Pattern, **more: object) -> Truth:
        return Truth(f"`{text}`", parse_profile(text), right, **more)  # type: ignore[arg-type]

    turner = parse_profile("fabricator(0.3)")
    return (
        known("honest", "few_errors"),
        known("honest(0.02)", "few_errors"),
        known("guesser", "guessing"),
        known("guesser(invalid=0.2)", "guessing"),
        known("biased(0.6)", "word"),
        known("biased(0.9)", "word"),
        known("hallucinator(0.3)", "consistent"),
        known("hallucinator(0.3, linked=0)", "mistaken_lean"),
        known("capability(10)", "difficulty"),
        Truth("errs by length, easy and hard alike", _made("by length", _by_length), "difficulty"),
        Truth("the same, and says Yes too readily", _made("by length, yes", _by_length_yes), "difficulty"),
        Truth("presumes a path where it can't see to the end", _made("presumes", _presumes), "one_sided"),
        Truth("says Yes too readily and finds “cannot” harder", _made("yes cannot", _yes_and_cannot), "scale"),
        known("fabricator(0.3)", "knowing_lean"),
        known("fabricator(0.3, invalid=0.3)", "knowing_lean"),
        known("concealer(0.5)", "knowing_lean"),
        known("deceiver(0.4, onset=10)", "knowing_lean"),
        known("mix(0.3*deceiver(0.5)+0.7*honest)", "knowing_lean"),
        known("mix(0.5*guesser+0.5*fabricator(0.4))", "knowing_lean"),
        Truth("`guesser`, easy question always asked", parse_profile("guesser"), "guessing", 0.5),
        Truth("`capability(10)`, easy question always asked", parse_profile("capability(10)"), "difficulty", 1.0),
        Truth("`fabricator(0.3)`, easy question always asked", turner, "knowing_lean", 1.0),
        Truth("mistaken, turns when asked again, easy question always asked", turner, "turning", 0.1),
        Truth("mistaken, turns when asked again, easy question asked after errors only", turner, "turning", alike=True),
        Truth("`deceiver(0.4, onset=80)`", parse_profile("deceiver(0.4, onset=80)"), "knowing_lean", alike=True),
        Truth("`concealer(0.5, spill=0)`", parse_profile("concealer(0.5, spill=0)"), "knowing_lean", alike=True),
        Truth(
            "presumes a path where it can't see, and sees every gap in the second question",
            _made("presumes, sees", _presumes_and_sees),
            "one_sided",
            alike=True,
        ),
    )


def _always_asked(
    first: Mapping[Category, Floats], followup: Mapping[Category, Floats], rate: float, rng: np.random.Generator
) -> dict[Category, Floats]:
    """What `belie.csq.easy_answers` would give, had the easy question been asked after right answers too."""
    out = {}
    for category in BROKEN:
        right, wrong = (first[category][:, 0, i] > 0 for i in ((0, 1) if TRUTH[category] else (1, 0)))
        after = followup[category][:, 0]
        easy_right = np.where(wrong, after[:, 0 if TRUTH[category] else 1] > 0, rng.random(len(right)) < rate)
        valid = right | (wrong & (after.sum(1) > 0))
        parts = (valid, valid & easy_right, valid & wrong, valid & wrong & easy_right)
        out[category] = np.stack(parts, 1).astype(float)
    return out


@cache
def _resampler() -> Resampler:
    """One for all runs of a process: its weights are kept."""
    return Resampler(RESAMPLES, 0, keep=True)


def study(truth: Truth, runs: int, chains: int, *, sample: bool) -> tuple[Counter, Counter]:
    """How often each pattern, and each mode, was named in so many runs."""
    named, modes = Counter(), Counter()
    own = zlib.crc32(truth.name.encode())
    for run in range(runs):
        rng = np.random.default_rng([own, run, int(sample)])
        simulated = {n: truth.profile.simulate(n, chains, rng, sample=sample) for n in GRID}
        first, followup = ({n: both[i] for n, both in simulated.items()} for i in (0, 1))
        table = Table.from_arrays(first, followup, exact=not sample)
        easy = None
        if truth.after_right is not None:
            easy = {n: _always_asked(first[n], followup[n], truth.after_right, rng) for n in GRID}
        scores = score(table, method="percentile", resampler=_resampler())
        found = explain(table, scores, k=2, easy=easy, resampler=_resampler())
        named[found.standing.pattern] += 1
        modes[scores.placement.mode] += 1
    return named, modes


def _shares(counter: Counter, runs: int, names: Mapping | None = None) -> str:
    parts = [
        f"{(names or {}).get(name, name) if name else 'undecided'} {100 * count / runs:.0f} %"
        for name, count in counter.most_common()
        if count / runs >= 0.005
    ]
    return ", ".join(parts)


def _row(place: int, runs: int, chains: int, *, sample: bool) -> str:
    """A line of the table; the truth by its place, because the profiles hold functions that can't be sent."""
    truth = _truths()[place]
    named, modes = study(truth, runs, chains, sample=sample)
    mark = " ‡" if truth.alike else ""
    return f"| {truth.name}{mark} | {NAMES[truth.right]} | {_shares(named, runs, NAMES)} | {_shares(modes, runs)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--chains", type=int, default=300)
    parser.add_argument("--answers", choices=("sampled", "exact"), default="sampled")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="put the table into docs/validity.md")
    options = parser.parse_args()
    start = time.perf_counter()
    lines = [
        f"{options.runs} runs each, n = {', '.join(map(str, GRID))}, {options.chains} chains a cell, {options.answers} "
        "answers.",
        "",
        "| truth | pattern that is true | named by `explain` | mode (METHOD §1.5) |",
        "|---|---|---|---|",
    ]
    sample = options.answers == "sampled"
    # Exact answers are never had after right ones.
    places = [i for i, truth in enumerate(_truths()) if sample or truth.after_right is None]
    with ProcessPoolExecutor(options.workers) as pool:
        job = partial(_row, runs=options.runs, chains=options.chains, sample=sample)
        for line in pool.map(job, places):
            lines.append(line)
            print(line, flush=True)
    print(f"\n{time.perf_counter() - start:.0f} s")
    if options.write:
        before, _, rest = PAGE.read_text("utf-8").partition(_MARKS[0])
        after = rest.partition(_MARKS[1])[2]
        PAGE.write_text(f"{before}{_MARKS[0]}\n" + "\n".join(lines) + f"\n{_MARKS[1]}{after}", "utf-8")


if __name__ == "__main__":
    main()
