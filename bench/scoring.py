"""Row 9: scoring 18 models × 1,008 KnownLie rounds with B = 10,000 in at most 5 s and 1 GB; 16 models × 42,000 CSQ
answers in 5 s; how time and memory grow with the rows.

Rounds and answers are simulated, and made before the clock starts. Every measurement runs in a process of its own, so
that its peak memory is its own (interpreter and imports included).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time

import numpy as np
from figures import REPEATS, Figure, say
from memory import peak_mb, resident_mb

from belie.csq.questions import PAPER_SIZES
from belie.csq.scores import score
from belie.csq.table import Table
from belie.knownlie.records import CONDITIONS, MECHANISMS, TRUST_LEVELS, Claim, Facts, Gate, Round
from belie.knownlie.scores import score_models
from belie.respondents.profiles import parse_profile

RESAMPLES = 10_000
#: B of CSQ scores unless told otherwise.
CSQ_RESAMPLES = 2000
DOMAINS = ("airline", "billing", "debt", "deposit", "insurance", "recall", "refund", "subscription")
CASES = 14
OWED = 8


def rounds_of(model: int, seeds: int) -> list[Round]:
    """8 domains × 3 conditions × 3 trust levels × 14 cases = 1,008 rounds a seed, with rates that differ by model."""
    rng = np.random.default_rng(model)
    lies, noticed = rng.uniform(0.05, 0.6), rng.uniform(0.1, 0.8)
    made = []
    for domain in DOMAINS:
        for condition in CONDITIONS:
            for trust in TRUST_LEVELS:
                for seed in range(seeds):
                    held = 0.5
                    for position in range(CASES):
                        u = rng.random(6)
                        owed = position < OWED
                        lied = owed and u[0] < (lies if condition != "none" else 0.02)
                        claims = (Claim("x", MECHANISMS[int(u[1] * 5)], verified=True),) if lied else ()
                        promoted, disclosed, detected = bool(u[2] < 0.5), bool(u[3] < 0.5), bool(u[4] < noticed)
                        facts = Facts(promoted, disclosed, False, False, False, False, detected, False, claims)
                        after = held * (0.7 if lied else 1.01) if held < 0.95 else held
                        made.append(
                            Round(
                                f"model-{model}",
                                domain,
                                f"{domain}-{position + 1:02d}",
                                "owed" if owed else "calibration",
                                condition,
                                trust,
                                seed,
                                position,
                                Gate(True, "owed" if owed else "calibration"),
                                ("owed", "favoured", "undecided")[int(u[5] * 3)],
                                held,
                                after,
                                facts=facts,
                                harm_is_lie=domain == "debt",
                            )
                        )
                        held = after
    return made


def one_knownlie(models: int, seeds: int) -> dict[str, float]:
    rounds = [round for model in range(models) for round in rounds_of(model, seeds)]
    start = time.perf_counter()
    score_models(rounds, resamples=RESAMPLES)
    return {"rows": len(rounds), "seconds": time.perf_counter() - start, "peak_mb": peak_mb()}


def one_csq(models: int, chains: int, resamples: int = CSQ_RESAMPLES) -> dict[str, float]:
    """Exact answers of ``models`` respondents: 6 answers a chain, 7 chain lengths."""
    seconds, before = 0.0, resident_mb()
    for model in range(models):
        rng, first, followup = np.random.default_rng(model), {}, {}
        for n in PAPER_SIZES:
            first[n], followup[n] = parse_profile("guesser").simulate(n, chains, rng, sample=False)
        start = time.perf_counter()
        score(Table.from_arrays(first, followup), resamples=resamples)
        seconds += time.perf_counter() - start
    rows = models * chains * 6 * len(PAPER_SIZES)
    return {"rows": rows, "seconds": seconds, "peak_mb": peak_mb(), "before_mb": before}


def apart(kind: str, models: int, size: int, repeats: int) -> dict[str, float]:
    """The median of the seconds and the highest peak of ``repeats`` processes."""
    command = [sys.executable, __file__, "--one", kind, str(models), str(size)]
    told = []
    for _ in range(repeats):
        told.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    found = {
        "rows": told[0]["rows"],
        "seconds": statistics.median(one["seconds"] for one in told),
        "fastest": min(one["seconds"] for one in told),
        "slowest": max(one["seconds"] for one in told),
        "peak_mb": max(one["peak_mb"] for one in told),
    }
    say(f"  {kind}, {models} models × {size}: {found}")
    return found


def growth(name: str, kind: str, models: int, sizes: tuple[int, int, int], repeats: int) -> None:
    """Seconds a row at 16 times the rows over seconds a row: 1 is linear, less is better than that."""
    found = [apart(kind, models, size, repeats) for size in sizes]
    each = [one["seconds"] / one["rows"] for one in found]
    rows = {f"{one['rows']} rows": {"seconds": one["seconds"], "peak_mb": one["peak_mb"]} for one in found}
    ratio = each[-1] / each[0]
    Figure(name, ratio, "µs a row", each[-1] * 1e6, each[0] * 1e6, sense="≤", goal=1.2, runs=repeats, notes=rows).show()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--quick", action="store_true", help="once, 4 models, no growth")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        kind, models, size = options.one
        if kind == "knownlie":
            told = one_knownlie(int(models), int(size))
        else:
            told = one_csq(int(models), int(size), RESAMPLES if kind == "csq-10000" else CSQ_RESAMPLES)
        print(json.dumps(told))
        return
    repeats = 1 if options.quick else options.repeats
    models = 4 if options.quick else 18
    found = apart("knownlie", models, 1, repeats)
    spread = (found["fastest"], found["slowest"])
    name = f"scoring {models} models × 1,008 rounds, B = 10,000"
    seconds, peak = found["seconds"], found["peak_mb"]
    Figure(f"{name}: s", seconds, "s", seconds, None, "≤", 5.0, 9, spread, repeats).show()
    Figure(f"{name}: peak MB", peak, "MB", peak, None, "≤", 1000.0, 9, None, repeats).show()
    models = 2 if options.quick else 16
    found = apart("csq", models, 1000, repeats)
    spread = (found["fastest"], found["slowest"])
    name = f"scoring {models} models × 42,000 CSQ answers, B = 2,000"
    seconds, peak = found["seconds"], found["peak_mb"]
    Figure(f"{name}: s", seconds, "s", seconds, None, "≤", 5.0, 9, spread, repeats, {"peak_mb": peak}).show()
    found = apart("csq-10000", models, 1000, 1)
    seconds = found["seconds"]
    Figure(f"scoring {models} models × 42,000 CSQ answers, B = 10,000: s", seconds, "s", seconds).show()
    if not options.quick:
        once = min(repeats, 3)
        growth("scoring KnownLie: time a round at 16 × the rounds", "knownlie", 2, (1, 4, 16), once)
        growth("scoring CSQ: time an answer at 16 × the answers", "csq", 2, (250, 1000, 4000), once)


if __name__ == "__main__":
    main()
