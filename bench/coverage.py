"""Do the intervals cover the truth? Simulated respondents of known truth, scored many times (METHOD §3).

Prints one JSON line a profile and way of answering, then a table. A cell is one score at one n, or one overall score.
Cells whose truth lies at an edge (a rate of 0 or 1) are covered always, and cells that rest on fewer than five
expected events cannot be covered at 95 % by any interval of this kind: both are counted apart. The tolerance of
METHOD is 93–97 %; with R runs a share of 0.95 has a binomial error of √(0.95·0.05/R), 0.7 points at R = 1,000.
"""

from __future__ import annotations

import argparse
import json
import time
import zlib
from collections import Counter

import numpy as np

from belie.csq.formulas import INTEGRATED, NAMES
from belie.csq.overall import overall
from belie.csq.scores import score
from belie.csq.table import Table
from belie.respondents.profiles import Profile, parse_profile
from belie.statistics import Resampler

GRID = (3, 5, 10, 20, 30, 40, 80)
#: Profile → the failure mode that is right by METHOD §1.5.
EXPECTED = {
    "honest": "honest",
    "honest(0.02)": "honest",
    "guesser": "guessing",
    "biased(0.9)": "hallucination",
    "hallucinator(0.3)": "hallucination",
    "hallucinator(0.3, linked=0)": "hallucination",
    "fabricator(0.3)": "deception",
    "concealer(0.5)": "deception",
    "deceiver(0.4, onset=10)": "deception",
    "deceiver(0.5, direction=concealment)": "deception",
    "capability(10)": "limited",
    "mix(0.3*deceiver(0.5)+0.7*honest)": "deception",
    "mix(0.5*guesser+0.5*fabricator(0.4, invalid=0.2))": "deception",
    "guesser(invalid=0.2)": "guessing",
    "capability(10, invalid=0.3, invalid_followup=0.1)": "limited",
}


KINDS = ("regular", "rare", "edge")
_PARTS = {"delta": ("delta_pos", "delta_neg"), "delta_net": ("delta_pos", "delta_neg", "gamma_pos", "gamma_neg")}


def kind(name: str, truths: list[dict[str, float]], chains: int) -> str:
    """``edge``: the truth is a rate of 0 or 1, or made of such rates alone; an interval that ever reaches it covers
    always. ``rare``: a rate that it rests on is not 0, and fewer than five events of it are expected. Else
    ``regular``."""
    rates = [
        truth[part] for truth in truths for part in _PARTS.get(name, ("error",) if name in ("rho", "beta") else (name,))
    ]
    if all(rate in (0, 1) for rate in rates):
        return "edge"
    return "rare" if any(0 < min(rate, 1 - rate) * chains < 5 for rate in rates) else "regular"


def _label(cell: tuple[int, str]) -> str:
    return f"{cell[1]}@{cell[0] or 'all'}"


def _shares(low: Counter, high: Counter, runs: int, cells: list[tuple[int, str]]) -> dict[str, float]:
    return {_label(cell): round(1 - (low[cell] + high[cell]) / runs, 4) for cell in cells}


def study(profile: Profile, *, sample: bool, runs: int, chains: int, method: str, matched: bool, seed: int = 0) -> dict:
    """Score ``runs`` simulated runs of ``chains`` chains a cell: the share of runs whose interval covers the truth by
    cell, the share of one-sided misses, and how often each failure mode was named."""
    resampler = Resampler(2000, 0, keep=True)
    truth = {n: profile.truth(n) for n in GRID}
    cells = {(n, name): truth[n][name] for n in GRID for name in NAMES}
    cells |= {(0, name): float(overall(GRID, np.array([truth[n][name] for n in GRID]))) for name in INTEGRATED}
    cells[0, "error"] = sum(truth[n]["error"] for n in GRID) / len(GRID)
    low: Counter[tuple[int, str]] = Counter()
    high: Counter[tuple[int, str]] = Counter()
    kinds = {(n, name): kind(name, [truth[n]] if n else list(truth.values()), chains) for n, name in cells}
    modes: Counter[str] = Counter()
    own = zlib.crc32(profile.name.encode())  # no two profiles share their luck
    for run in range(runs):
        rng = np.random.default_rng([seed, own, int(sample), run])
        simulated = {n: profile.simulate(n, chains, rng, sample=sample, matched=matched) for n in GRID}
        first, followup = ({n: both[i] for n, both in simulated.items()} for i in (0, 1))
        table = Table.from_arrays(first, followup, matched=matched, exact=not sample)
        scores = score(table, method=method, resampler=resampler)  # type: ignore[arg-type]
        modes[scores.placement.mode or "undecided"] += 1
        found = {(row.n, name): figure for row in scores.rows for name, figure in row.figures.items()}
        found |= {(0, name): figure for name, figure in scores.overall.items()}
        for cell, value in cells.items():
            figure = found[cell]
            slack = 1e-12
            low[cell] += not value >= figure.low - slack
            high[cell] += not value <= figure.high + slack
    return {
        "profile": profile.name,
        "answers": "sampled" if sample else "exact",
        "method": method,
        "matched": matched,
        "runs": runs,
        "chains": chains,
        "modes": {mode: count / runs for mode, count in modes.most_common()},
        **{kind: _shares(low, high, runs, [cell for cell in cells if kinds[cell] == kind]) for kind in KINDS},
        "below": {_label(cell): low[cell] for cell in cells if low[cell]},
        "above": {_label(cell): high[cell] for cell in cells if high[cell]},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--chains", type=int, default=300)
    parser.add_argument("--profiles", nargs="*", default=list(EXPECTED))
    parser.add_argument("--method", choices=("bca", "percentile"), default="bca")
    parser.add_argument("--answers", choices=("exact", "sampled", "both"), default="both")
    parser.add_argument("--separate", action="store_true", help="each category draws its own chains")
    options = parser.parse_args()
    lines = []
    for text in options.profiles:
        for sample in (False, True):
            if options.answers != "both" and sample != (options.answers == "sampled"):
                continue
            start = time.perf_counter()
            result = study(
                parse_profile(text),
                sample=sample,
                runs=options.runs,
                chains=options.chains,
                method=options.method,
                matched=not options.separate,
            )
            result["seconds"] = round(time.perf_counter() - start, 1)
            right = result["modes"].get(EXPECTED.get(text, ""), float("nan"))
            print(json.dumps(result), flush=True)
            lines.append((result, right))
    show(lines)


def show(lines: list[tuple[dict, float]]) -> None:
    print(
        f"\n{'':62} mode | regular cells: 93-97  below  above   mean    min worst       | rare: mean   min | edge: min"
    )
    every: list[float] = []
    for result, right in lines:
        regular, rare, edge = (np.array(list(result[kind].values()) or [np.nan]) for kind in KINDS)
        every += list(result["regular"].values())
        worst = min(result["regular"], key=result["regular"].__getitem__) if result["regular"] else "-"
        print(
            f"{result['profile']:53} {result['answers']:8} {right:5.3f} | {len(result['regular']):13d}: "
            f"{int(((regular >= 0.93) & (regular <= 0.97)).sum()):5d} {int((regular < 0.93).sum()):6d} "
            f"{int((regular > 0.97).sum()):6d} {regular.mean():6.3f} {regular.min():6.3f} {worst:12}| "
            f"{len(result['rare']):4d}: {rare.mean():4.3f} {rare.min():5.3f} | {len(result['edge']):4d}: "
            f"{edge.min():.3f}"
        )
    values = np.array(every)
    inside = ((values >= 0.93) & (values <= 0.97)).mean()
    print(
        f"\nRegular cells: {len(values)}, mean coverage {values.mean():.4f}, in 93-97 %: {inside:.3f}, "
        f"below: {(values < 0.93).mean():.4f}, above: {(values > 0.97).mean():.4f}, lowest {values.min():.3f}"
    )


if __name__ == "__main__":
    main()
