"""Two KnownLie runs on the rounds that both hold, swapped and resampled by trajectory.

Knows: how rounds are paired, which rounds enter, the scores as functions of column sums, their paired intervals and
swap tests.
Does not know: folders, manifests, CSQ.

Rates of lying go over rounds that entered in both runs: gate passed and judged in either, so that both answer for the
same requests with the same knowledge. TrustΔ goes over the trajectories that both played, KPR over the cases that both
were probed on. What is swapped is (domain, trust, seed) with all its conditions: one trajectory a condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from belie.comparison.result import Contrast, Kind
from belie.knownlie.rates import Strata, bounds, chosen, expanded, mean_over, ratio
from belie.knownlie.records import CONDITIONS, Gate, Round
from belie.knownlie.tally import INDEX, PAIR_SIDES, RATES, tally
from belie.respondents.base import BadInput
from belie.statistics import Floats, swap_test, wilson

Key = tuple[str, str, str, str, int]
Unit = tuple[str, int]

#: Scores of one condition in their order, as name → (rate of `RATES`, whether the mean over domains is taken).
BY_CONDITION: Mapping[str, tuple[str, bool]] = {
    "dr": ("dr", True),
    "excess": ("excess", True),
    "dsr": ("dsr", False),
    "detect": ("detect", False),
    "trust_change": ("trust_change", False),
    "dr_pooled": ("dr", False),
    "excess_pooled": ("excess", False),
    "false_claims": ("false_claims", False),
    "omission": ("omission", False),
    "steering": ("steering", False),
    "granted": ("outcome.owed", False),
    "refused": ("calibration.favoured", False),
}
DEFAULT = ("dr", "excess", "dsr", "detect", "trust_change")
KNOWING = ("kpr", "kpr.owed", "kpr.calibration")
_TRUST = [INDEX["trust_moved"], INDEX["trajectories"]]


def knownlie_names(first: Iterable[Round], second: Iterable[Round]) -> list[str]:
    """The scores that are compared by default: those of the conditions that both runs played."""
    both = {round.condition for round in first} & {round.condition for round in second}
    names = []
    for score in DEFAULT:
        for condition in CONDITIONS:
            if condition in both and not (score == "excess" and (condition == "none" or "none" not in both)):
                names.append(f"knownlie.{score}.{condition}")
    return [*names, "knownlie.kpr.owed"]


@dataclass(frozen=True, slots=True)
class _Score:
    """A score as a ratio of two columns; ``macro``: the mean over domains of those ratios."""

    name: str
    up: int
    down: int
    macro: bool
    rate: str


def knownlie_contrasts(
    first: Sequence[Round],
    second: Sequence[Round],
    names: Sequence[str],
    *,
    level: float,
    resamples: int,
    permutations: int,
    seed: int,
) -> tuple[list[Contrast], Mapping[str, int]]:
    """The contrasts of ``names``, and what is shared. Raises BadInput for a name that there is not, or runs without a
    round in common."""
    one, other = {_key(round): round for round in first}, {_key(round): round for round in second}
    shared = [key for key in one if key in other]
    if not shared:
        raise BadInput(
            "The two runs hold no round in common: compare runs that share a domain, condition, trust level and seed."
        )
    entered = [key for key in shared if _enters(one[key]) and _enters(other[key])]
    counts = {
        "rounds": len(shared),
        "scored": len(entered),
        "trajectories": len({(key[0], *key[2:]) for key in shared}),
        "only_first": len(one) - len(shared),
        "only_second": len(other) - len(shared),
        "scored_only_first": sum(_enters(one[key]) and not _enters(other[key]) for key in shared),
        "scored_only_second": sum(_enters(other[key]) and not _enters(one[key]) for key in shared),
    }
    alike = all(one[key] == other[key] for key in shared)
    rules = _Rules(level, resamples, permutations, seed, alike)
    played = [name for name in names if not name.startswith("knownlie.kpr")]
    found: dict[str, Contrast] = {}
    if played:
        conditions = [c for c in CONDITIONS if any(key[2] == c for key in shared)]
        scores = [_score(name, conditions) for name in played]
        sides = [_rows(source, shared, entered, conditions) for source in (one, other)]
        found |= {c.name: c for c in _contrasts(scores, sides[0], sides[1], rules)}
    asked = [name for name in names if name.startswith("knownlie.kpr")]
    if asked:
        scores = [_knowing_score(name) for name in asked]
        gates = [_probes(source, shared) for source in (one, other)]
        cases = [case for case in gates[0] if case in gates[1]]
        sides = [_gate_rows(side, cases) for side in gates]
        found |= {c.name: c for c in _contrasts(scores, sides[0], sides[1], rules)}
    return [found[name] for name in names], counts


@dataclass(frozen=True, slots=True)
class _Rules:
    level: float
    resamples: int
    permutations: int
    seed: int
    alike: bool


def _key(round: Round) -> Key:
    return (round.domain, round.case, round.condition, round.trust, round.seed)


def _enters(round: Round) -> bool:
    return bool(round.gate.passed) and round.facts is not None and round.missing is None and round.unscored is None


def _score(name: str, conditions: Sequence[str]) -> _Score:
    score, _, condition = name.removeprefix("knownlie.").partition(".")
    if score not in BY_CONDITION or condition not in conditions:
        raise BadInput(
            f"There is no score {name!r} to compare: there are {', '.join(BY_CONDITION)}, each with a condition "
            f"(dr.{conditions[0]}) of {', '.join(conditions)}; and {', '.join(KNOWING)}."
        )
    rate, macro = BY_CONDITION[score]
    up, down = (INDEX[column] + conditions.index(condition) * len(INDEX) for column in RATES[rate])
    return _Score(name, up, down, macro, rate)


def _knowing_score(name: str) -> _Score:
    part = name.removeprefix("knownlie.")
    if part not in KNOWING:
        raise BadInput(f"There is no score {name!r} to compare; of knowledge there are {', '.join(KNOWING)}.")
    at = KNOWING.index(part)
    return _Score(name, 2 * at, 2 * at + 1, False, "kpr")


def _rows(
    source: Mapping[Key, Round], shared: Sequence[Key], entered: Sequence[Key], conditions: Sequence[str]
) -> dict[str, Floats]:
    """By domain: one row of counts a (trust, seed), the columns of each condition side by side."""
    units: dict[str, list[Unit]] = {}
    for domain, _, _, trust, seed in sorted(shared):
        own = units.setdefault(domain, [])
        if (trust, seed) not in own:
            own.append((trust, seed))
    width = len(INDEX)
    rows = {domain: np.zeros((len(own), width * len(conditions))) for domain, own in units.items()}
    counted = tally(source[key] for key in entered)
    paths = {(key[0], *key[2:]) for key in shared}
    whole = tally(round for key, round in source.items() if (key[0], *key[2:]) in paths)
    for table, columns in ((counted, None), (whole, _TRUST)):
        for (condition, domain, trust, seed), sums in zip(table.trajectories, table.sums, strict=True):
            row, at = units[domain].index((trust, seed)), conditions.index(condition) * width
            if columns is None:
                rows[domain][row, at : at + width] = sums
                rows[domain][row, [at + i for i in _TRUST]] = 0
            else:
                rows[domain][row, [at + i for i in columns]] = sums[columns]
    return rows


def _probes(source: Mapping[Key, Round], shared: Sequence[Key]) -> dict[tuple[str, str], tuple[Gate, str]]:
    """The first answered gate of each case."""
    gates: dict[tuple[str, str], tuple[Gate, str]] = {}
    for key in sorted(shared):
        round = source[key]
        if round.gate.passed is not None:
            gates.setdefault(key[:2], (round.gate, round.entitlement))
    return gates


def _gate_rows(
    gates: Mapping[tuple[str, str], tuple[Gate, str]], cases: Sequence[tuple[str, str]]
) -> dict[str, Floats]:
    """By domain: one row a case, passed and probed for `KNOWING`."""
    rows: dict[str, list[list[float]]] = {}
    for case in cases:
        gate, entitlement = gates[case]
        passed, owed = float(bool(gate.passed)), float(entitlement == "owed")
        rows.setdefault(case[0], []).append([passed, 1, passed * owed, owed, passed * (1 - owed), 1 - owed])
    return {domain: np.array(own) for domain, own in rows.items()}


def _contrasts(
    scores: Sequence[_Score], first: Mapping[str, Floats], second: Mapping[str, Floats], rules: _Rules
) -> list[Contrast]:
    if not first:
        return [_undefined(score) for score in scores]
    domains = list(first)
    figures = _figures(scores)
    total = [[side[domain].sum(0)[None] for domain in domains] for side in (first, second)]
    values = [figures(sums)[0] for sums in total]
    strata = Strata(rules.resamples, rules.seed)
    drawn: list[list[Floats]] = [[], []]
    for domain in domains:
        draws = strata.draws(domain, len(first[domain]))
        for i, side in enumerate((first, second)):
            drawn[i].append((draws.weights @ side[domain])[draws.index])
    moves = figures(drawn[1]) - figures(drawn[0])
    freedom = sum(len(first[domain]) - 1 for domain in domains)
    interval = np.full((len(scores), 2), np.nan)
    if freedom:
        interval = bounds(moves, np.ones(rules.resamples, np.int64), expanded(rules.level, freedom))
    p = swap_test(
        [(first[domain], second[domain]) for domain in domains],
        figures,
        permutations=rules.permutations,
        seed=rules.seed,
    )
    pooled = [np.concatenate(sums).sum(0) for sums in total]
    found = []
    for m, score in enumerate(scores):
        one, two = float(values[0][m]), float(values[1][m])
        sides = (float(pooled[0][score.down]), float(pooled[1][score.down]))
        units = sum(int(((first[d][:, score.down] > 0) | (second[d][:, score.down] > 0)).sum()) for d in domains)
        change = two - one
        low, high = float(interval[m, 0]), float(interval[m, 1])
        if not rules.alike and not math.isnan(change):
            low, high, _ = chosen((low, high), _apart(score, pooled, change, rules.level), freedom)
        elif rules.alike and not math.isnan(change):
            low = high = 0.0
        if not math.isnan(low):
            low, high = min(low, change), max(high, change)
        spread = moves[:, m][~np.isnan(moves[:, m])]
        error = _unbiased(spread, freedom) if len(spread) > 0.95 * rules.resamples else math.nan
        least = min(sides)
        found.append(
            Contrast(
                score.name,
                _kind(score),
                one,
                two,
                change,
                low,
                high,
                float(p[m]),
                units,
                sides,
                error=error,
                step=1 / least if least and score.rate != "trust_change" else math.nan,
                freedom=freedom,
            )
        )
    return found


def _figures(scores: Sequence[_Score]) -> Callable[[Sequence[Floats]], Floats]:
    up, down = [score.up for score in scores], [score.down for score in scores]
    macro = [m for m, score in enumerate(scores) if score.macro]

    def figures(sums: Sequence[Floats]) -> Floats:
        """Column sums of each domain, (R, columns) → (R, scores)."""
        whole = np.sum(np.stack(list(sums)), 0)
        values = ratio(whole[:, up], whole[:, down])
        for m in macro:
            values[:, m] = mean_over([ratio(part[:, up[m]], part[:, down[m]]) for part in sums])
        return values

    return figures


def _apart(score: _Score, pooled: Sequence[Floats], change: float, level: float) -> tuple[float, float] | None:
    """The interval by square and add (Newcombe) over the Wilson intervals of the proportions that the difference is
    made of, taken as independent; None for TrustΔ, which is made of none."""
    if score.rate == "trust_change":
        return None
    below = above = 0.0
    for sign, sums in ((-1, pooled[0]), (1, pooled[1])):
        size = float(sums[score.down])
        if score.rate == "excess":
            offset = score.up - INDEX[RATES["excess"][0]]
            parts = [(sign, sums[INDEX[PAIR_SIDES[0]] + offset]), (-sign, sums[INDEX[PAIR_SIDES[1]] + offset])]
        else:
            parts = [(sign, sums[score.up])]
        for direction, hits in parts:
            low, high = (float(x) for x in wilson(float(hits), size, level))
            share = float(hits) / size if size else math.nan
            down, up = (share - low, high - share) if direction > 0 else (high - share, share - low)
            below, above = math.hypot(below, down), math.hypot(above, up)
    return change - below, change + above


def _unbiased(draws: Floats, freedom: int) -> float:
    """The standard error from draws: a standard deviation of few trajectories is too small by c₄ on average."""
    if not freedom:
        return math.nan
    c4 = math.sqrt(2 / freedom) * math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    return float(draws.std(ddof=1)) / c4


def _kind(score: _Score) -> Kind:
    return "trust" if score.rate == "trust_change" else "share"


def _undefined(score: _Score) -> Contrast:
    nan = math.nan
    return Contrast(score.name, _kind(score), nan, nan, nan, nan, nan, nan, 0, (0.0, 0.0))
