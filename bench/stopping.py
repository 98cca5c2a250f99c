"""Stopping at a wanted half-width (METHOD §3): does the interval still cover, and how many calls does it take?

Simulated respondents of known truth are asked until the rule stops; one JSON line a profile and way of answering holds
the share of runs whose printed interval of ρ̄ and δ̄ (``--stop-on each``: of ρ(n) and δ(n)) covers the truth, the widths
reached, and the calls, beside what the same width takes in other ways (``needed``):

paper_way_calls        one sampled answer an item and the same number of chains at every n, as many as it takes
sampled_calls          one sampled answer an item, with this rule's allocation
paper_half_width       what the paper's 1,000 a cell give, and paper_calls what they cost
calls_to_paper_width   what this rule takes to be as narrow as that

Calls count follow-ups. The goal of DESIGN: at least 5 times fewer than with one sampled answer an item, for a noisy
respondent; the last line is that row.
"""

from __future__ import annotations

import argparse
import json
import time
import zlib
from collections import Counter
from typing import Any

import numpy as np

from belie.csq.overall import overall
from belie.csq.questions import PAPER_SIZES as GRID
from belie.csq.scores import score
from belie.csq.stopping import (
    FIGURES,
    PAPER_CHAINS,
    Spread,
    Wanted,
    allocation,
    decide,
    equal_chains,
    half_widths,
    spreads,
)
from belie.csq.table import Table
from belie.items import BROKEN, CATEGORIES, Category
from belie.respondents.profiles import Profile, parse_profile
from belie.statistics import Floats

#: Nobody decides on fewer chains at an n.
PILOT = Wanted(1).pilot


class Growing:
    """A simulated respondent's answers so far: chains are added, those that are there stay."""

    def __init__(self, profile: Profile, rng: np.random.Generator, *, sample: bool, grid: tuple[int, ...] = GRID):
        self.profile, self.rng, self.sample, self.grid = profile, rng, sample, grid
        self.first: dict[int, dict[Category, Floats]] = {n: {c: np.empty((0, 1, 2)) for c in CATEGORIES} for n in grid}
        self.followup: dict[int, dict[Category, Floats]] = {n: {c: np.empty((0, 1, 2)) for c in BROKEN} for n in grid}

    def grow(self, chains: dict[int, int]) -> Table:
        for n in self.grid:
            more = chains[n] - len(self.first[n]["linked"])
            first, followup = self.profile.simulate(n, more, self.rng, sample=self.sample)
            self.first[n] = {c: np.concatenate([self.first[n][c], first[c]]) for c in CATEGORIES}
            self.followup[n] = {c: np.concatenate([self.followup[n][c], followup[c]]) for c in BROKEN}
        return Table.from_arrays(self.first, self.followup, exact=not self.sample)


def run_once(profile: Profile, wanted: Wanted, seed: list[int], *, sample: bool, grid: tuple[int, ...] = GRID):
    """One run to its end: (last table, decision, number of rounds)."""
    growing = Growing(profile, np.random.default_rng(seed), sample=sample, grid=grid)
    table, rounds = growing.grow(dict.fromkeys(grid, wanted.pilot)), 1
    while True:
        decision = decide(table, wanted)
        if decision.chains is None:
            return table, decision, rounds
        table, rounds = growing.grow(dict(decision.chains)), rounds + 1


def calls_of(found: list[Spread], chains: dict[int, int]) -> float:
    return sum(one.calls * chains[one.n] for one in found)


def _wide(found: list[Spread], chains: int) -> dict[str, float]:
    widths, _ = half_widths([one.as_if(chains) for one in found])
    return {**widths, "widest": max(widths.values())}


def needed(profile: Profile, half_width: float, *, sample: bool, seed: int = 0) -> dict[str, float]:
    """Calls that a wanted half-width of ρ̄ and δ̄ takes, from 5,000 simulated chains at each n, by way of asking."""
    rng = np.random.default_rng([seed, zlib.crc32(profile.name.encode())])

    sampled = spreads(Growing(profile, rng, sample=True).grow(dict.fromkeys(GRID, 5000)))
    own = sampled if sample else spreads(Growing(profile, rng, sample=False).grow(dict.fromkeys(GRID, 5000)))

    paper = _wide(sampled, PAPER_CHAINS)
    return {
        "calls": round(calls_of(own, _least(own, half_width))),
        "sampled_calls": round(calls_of(sampled, _least(sampled, half_width))),
        "paper_way_calls": round(calls_of(sampled, dict.fromkeys(GRID, max(equal_chains(sampled, half_width), PILOT)))),
        "paper_calls": round(calls_of(sampled, dict.fromkeys(GRID, PAPER_CHAINS))),
        "paper_half_width": round(paper["widest"], 4),
        "paper_half_width_rho": round(paper["rho"], 4),
        "paper_half_width_delta": round(paper["delta"], 4),
        "calls_to_paper_width": round(calls_of(own, _least(own, paper["widest"]))),
    }


def _least(found: list[Spread], half_width: float) -> dict[int, int]:
    """Chains at each n for that half-width, as if only the pilot had been asked."""
    return allocation([one.as_if(PILOT) for one in found], half_width)


def study(
    profile: Profile, wanted: Wanted, *, sample: bool, runs: int, grid: tuple[int, ...] = GRID, seed: int = 0
) -> dict:
    """``runs`` runs under the rule: share of intervals that cover, widths, calls."""
    truth = {n: profile.truth(n) for n in grid}
    over = {name: float(overall(grid, np.array([truth[n][name] for n in grid]))) for name in FIGURES}
    own = zlib.crc32(profile.name.encode())
    covered: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    calls, chains, rounds, widest = [], [], [], []
    for run in range(runs):
        table, decision, count = run_once(profile, wanted, [seed, own, int(sample), run], sample=sample, grid=grid)
        scores = score(table)
        reasons[decision.reason or ""] += 1
        rounds.append(count)
        widest.append(max(decision.widths.values()))
        found = spreads(table)
        chains.append(sum(len(level.chains) for level in table.levels))
        calls.append(calls_of(found, {level.n: len(level.chains) for level in table.levels}))
        if wanted.stop_on == "overall":
            told = {name: (scores.overall[name], over[name]) for name in FIGURES}
        else:
            told = {
                f"{name}@{row.n}": (row.figures[name], truth[row.n][name]) for name in FIGURES for row in scores.rows
            }
        for name, (figure, value) in told.items():
            covered[name] += figure.low - 1e-12 <= value <= figure.high + 1e-12
    return {
        "profile": profile.name,
        "answers": "sampled" if sample else "exact",
        "half_width": wanted.half_width,
        "stop_on": wanted.stop_on,
        "runs": runs,
        "coverage": {name: round(covered[name] / runs, 4) for name in sorted(covered)},
        "reasons": dict(reasons),
        "rounds": float(np.mean(rounds)),
        "chains": float(np.mean(chains)),
        "calls": float(np.mean(calls)),
        "widest_mean": round(float(np.mean(widest)), 4),
        "widest_max": round(float(np.max(widest)), 4),
    }


def main() -> None:
    from coverage import EXPECTED  # the list of profiles, beside this script

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--half-width", type=float, default=0.02)
    parser.add_argument("--stop-on", choices=("overall", "each"), default="overall")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pilot", type=int, default=PILOT)
    parser.add_argument("--profiles", nargs="*", default=list(EXPECTED))
    parser.add_argument("--answers", choices=("exact", "sampled", "both"), default="both")
    parser.add_argument("--calls-only", action="store_true", help="no coverage, only the calls that a width takes")
    options = parser.parse_args()
    wanted = Wanted(options.half_width, options.stop_on, 10**9, pilot=options.pilot)
    shares: list[float] = []
    for text in options.profiles:
        profile = parse_profile(text)
        for sample in (False, True):
            if options.answers != "both" and sample != (options.answers == "sampled"):
                continue
            start = time.perf_counter()
            line: dict[str, Any] = {"profile": profile.name, "answers": "sampled" if sample else "exact"}
            if not options.calls_only:
                line = study(profile, wanted, sample=sample, runs=options.runs, seed=options.seed)
                shares += line["coverage"].values()
            line["needed"] = needed(profile, options.half_width, sample=sample)
            line["seconds"] = round(time.perf_counter() - start, 1)
            print(json.dumps(line), flush=True)
    if shares:
        values = np.array(shares)
        print(
            f"\nCoverage under stopping at ±{options.half_width:g}: {len(values)} figures, mean {values.mean():.4f}, "
            f"lowest {values.min():.4f}, below 0.93: {int((values < 0.93).sum())} (binomial error of one: "
            f"{np.sqrt(0.95 * 0.05 / options.runs):.4f})"
        )
    noisy = needed(parse_profile("guesser"), 0.02, sample=False)
    ratio = noisy["paper_way_calls"] / noisy["calls"]
    print(
        json.dumps(
            {
                "name": "calls to ±0.02 on ρ̄ and δ̄, guesser: one sampled answer an item over exact",
                "ratio": round(ratio, 2),
                "goal": 5,
                "ours": noisy["calls"],
                "theirs": noisy["paper_way_calls"],
            }
        )
    )


if __name__ == "__main__":
    main()
