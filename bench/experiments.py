"""Do the experiments find what was planted, and nothing else? Simulated respondents of known effects.

Prints one JSON line a study. An alarm is any result over all n that stands after Holm's correction; without an effect
at most 5 % of experiments may have one (with R experiments the share of 0.05 has a binomial error of √(0.05·0.95/R)).
Chains: the same places in the profile under every condition (``paired``), as one chain has for one respondent, or new
ones for each (worlds). ``words``: one drawn answer an item, else probabilities.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from belie.csq.experiments.agreement import agreement
from belie.csq.experiments.phrasing import components
from belie.csq.experiments.shifts import shifts
from belie.csq.scores import score
from belie.csq.table import Table
from belie.items import BROKEN, CATEGORIES, TRUTH
from belie.respondents.profiles import PLACES, Profile, parse_profile

GRID = (3, 10)
WORLDS = ("contacts", "flights", "modules", "order", "pipelines", "roles")
TREATMENTS = {"none": "contacts-1", **{t: f"contacts-1+{t}" for t in ("sycophancy", "mirror", "pressure", "honesty")}}
LABELS = {world: f"{world}-1" for world in WORLDS}
PHRASINGS = {f"p{i}": "contacts-1" if i == 0 else f"contacts-1+p{i}" for i in range(6)}
#: Moves ρ up and δ not at all: of the same knowing errors, half as many again stay wrong when asked easily.
CLAIM = "when(sycophancy: mix(0.5*fabricator(0.4)+0.5*hallucinator(0.4, linked=0)); else: fabricator(0.2))"


def tables(
    profile: Profile, labels: dict[str, str], chains: int, rng: np.random.Generator, *, words: bool, paired: bool
) -> dict[str, Table]:
    """One table a condition."""
    places = {n: rng.random((PLACES, chains)) for n in GRID}
    found = {}
    for name, label in labels.items():
        planted = profile.under(label)
        first: dict[int, Any] = {}
        followup: dict[int, Any] = {}
        for n in GRID:
            u = places[n] if paired else rng.random((PLACES, chains))
            first[n], followup[n] = {}, {}
            for category in CATEGORIES:
                p, q = planted.probabilities(n, category, u)
                first[n][category] = _drawn(p, rng) if words else p[:, None]
                if category in BROKEN and q is not None:
                    q = _drawn(q, rng) if words else q[:, None]
                    if words:
                        q[first[n][category][..., 1 if TRUTH[category] else 0] == 0] = np.nan
                    followup[n][category] = q
        table = Table.from_arrays(first, followup, exact=not words)
        levels = tuple(replace(at, chains=tuple(f"{label}/n{at.n}/{one}" for one in at.chains)) for at in table.levels)
        found[name] = replace(table, levels=levels)
    return found


def _drawn(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    u = rng.random((len(p), 1))
    yes = u < p[:, :1]
    return np.stack([yes, ~yes & (u < p.sum(1, keepdims=True))], -1).astype(float)


def _shifted(found: dict[str, Table], size: int) -> Iterator[str]:
    told = shifts(found, resamples=size, permutations=size)
    yield from (f"{one.condition}:{one.score}" for one in told.overall if one.p_holm <= 0.05)


def _differing(found: dict[str, Table], size: int) -> Iterator[str]:
    told = agreement(found, {name: score(table, resamples=size) for name, table in found.items()}, resamples=size)
    yield from (f"differ:{name}" for name, p in told.p_holm.items() if p <= 0.05)
    yield from (f"{one.world}:{one.score}" for one in told.departures if one.departs)


def _worded(found: dict[str, Table], size: int) -> Iterator[str]:
    told = components(found, resamples=size, permutations=size)
    yield from (f"phrasing:{measure}" for measure, p in told.p_holm.items() if p <= 0.05)


Study = tuple[str, str, dict[str, str], Callable[[dict[str, Table], int], Iterator[str]], bool, bool]
STUDIES: tuple[Study, ...] = (
    ("treatments, none planted", "mix(0.5*fabricator(0.4)+0.5*guesser)", TREATMENTS, _shifted, True, True),
    ("treatments, none planted", "honest(0.02)", TREATMENTS, _shifted, True, True),
    ("treatments, none planted", "fabricator(0.3)", TREATMENTS, _shifted, False, False),
    ("treatments, ρ moved and δ not", CLAIM, TREATMENTS, _shifted, True, True),
    ("treatments, ρ moved and δ not", CLAIM, TREATMENTS, _shifted, False, True),
    ("worlds, none planted", "fabricator(0.3)", LABELS, _differing, True, True),
    ("worlds, none planted", "mix(0.5*fabricator(0.4)+0.5*guesser)", LABELS, _differing, True, False),
    ("worlds, none planted", "honest(0.02)", LABELS, _differing, True, False),
    ("worlds, none planted", "fabricator(0.3)", LABELS, _differing, False, False),
    ("worlds, one planted", "when(world=flights: deceiver(0.4); else: honest(0.02))", LABELS, _differing, True, False),
    ("phrasing, none planted", "mix(0.5*fabricator(0.4)+0.5*guesser)", PHRASINGS, _worded, True, True),
    ("phrasing, one planted", "when(p3: fabricator(0.5); else: fabricator(0.2))", PHRASINGS, _worded, True, True),
)  # fmt: skip


def study(which: Study, runs: int, chains: int, size: int, seed: int) -> dict[str, Any]:
    """Shares of experiments with any alarm, and with each."""
    name, text, labels, look, words, paired = which
    profile = parse_profile(text)
    alarms: Counter[str] = Counter()
    some = 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        told = list(look(tables(profile, labels, chains, rng, words=words, paired=paired), size))
        alarms.update(told)
        some += bool(told)
    shares = {alarm: round(count / runs, 3) for alarm, count in alarms.most_common(12)}
    how = {"answers": "words" if words else "exact", "paired": paired, "runs": runs, "chains": chains, "n": GRID}
    return {"study": name, "profile": text, **how, "any": round(some / runs, 3), "alarms": shares}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--chains", type=int, default=60)
    parser.add_argument("--size", type=int, default=499, help="resamples and permutations")
    parser.add_argument("--only", default="", help="studies whose name begins so")
    options = parser.parse_args()
    for which in STUDIES:
        if not which[0].startswith(options.only):
            continue
        started = time.perf_counter()
        told = study(which, options.runs, options.chains, options.size, 0)
        print(json.dumps({**told, "seconds": round(time.perf_counter() - started, 1)}, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
