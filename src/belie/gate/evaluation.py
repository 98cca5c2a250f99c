"""From runs and rules to a verdict on each rule.

Knows: run folders, the scores and the comparison that rules ask for, when a rule is met.
Does not know: how a verdict is shown (junit, markdown).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from belie.comparison import Comparison, compare, runs_in
from belie.csq.run import score_run
from belie.csq.scores import Scores, plain
from belie.gate.grammar import Rule
from belie.gate.measures import Measured, csq_coverage, knownlie_coverage, of_contrast, of_csq, of_knownlie
from belie.gate.rules import Entry
from belie.knownlie.journal import read_rounds
from belie.knownlie.scores import KnownLieScores, score
from belie.respondents.base import BadInput
from belie.runs import RunFolder
from belie.runs.manifest import Instrument

Verdict = Literal["met", "unmet", "thin"]
Runs = dict[Instrument, RunFolder]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on one rule. ``tested``: the number that was compared; ``why``: one sentence. "thin": the data do
    not suffice, and so the rule is not met."""

    name: str
    rule: Rule
    verdict: Verdict
    measured: Measured
    tested: float
    why: str
    line: int


@dataclass(frozen=True, slots=True)
class GateResult:
    """Every rule's verdict; ``passed`` where all are met. ``runs``, ``baseline``: (folder, respondent)."""

    outcomes: tuple[Outcome, ...]
    runs: tuple[tuple[str, str], ...]
    baseline: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return all(one.verdict == "met" for one in self.outcomes)

    def to_json(self) -> dict[str, Any]:
        """A plain dict: nan → null."""
        return plain(
            {
                "passed": self.passed,
                "runs": [{"path": path, "respondent": name} for path, name in self.runs],
                "baseline": [{"path": path, "respondent": name} for path, name in self.baseline],
                "rules": [
                    {
                        "name": one.name,
                        "rule": one.rule.text,
                        "verdict": one.verdict,
                        "tested": one.tested,
                        "why": one.why,
                        "line": one.line,
                        **{key: value for key, value in asdict(one.measured).items() if key != "thin"},
                    }
                    for one in self.outcomes
                ],
                "notes": list(self.notes),
            }
        )


def gate(
    runs: str | Path | Sequence[str | Path],
    rules: Sequence[Entry],
    baseline: str | Path | Sequence[str | Path] | None = None,
) -> GateResult:
    """Evaluates rules on a run, or on one run of each instrument. A rule without data is "thin", never met.

    Raises BadInput where a folder holds no run, or two runs of one instrument are given.
    """
    return _Evaluation(_gathered(runs), _gathered(baseline) if baseline is not None else {}).result(rules)


def _gathered(paths: str | Path | Sequence[str | Path]) -> Runs:
    found: Runs = {}
    for path in [paths] if isinstance(paths, str | Path) else paths:
        for instrument, run in runs_in(path).items():
            if instrument in found:
                raise BadInput(
                    f"{found[instrument].path} and {run.path} are both {instrument} runs: give one run of each "
                    "instrument."
                )
            found[instrument] = run
    return found


class _Evaluation:
    """Scores each run once, however many rules ask for it."""

    def __init__(self, runs: Runs, baseline: Runs) -> None:
        self._runs, self._baseline = runs, baseline
        self._csq: dict[Path, Scores] = {}
        self._knownlie: dict[Path, KnownLieScores | None] = {}

    def result(self, rules: Sequence[Entry]) -> GateResult:
        compared = {name: self._compared(name, rules) for name in ("csq", "knownlie")}
        outcomes = tuple(_outcome(entry, self._measured(entry, compared)) for entry in rules)
        notes = [
            f"{run.path} is {run.status}: what is missing counts against coverage."
            for run in (*self._runs.values(), *self._baseline.values())
            if run.status != "complete"
        ]
        return GateResult(outcomes, _named(self._runs), _named(self._baseline), tuple(notes))

    def _measured(self, entry: Entry, compared: dict[str, Comparison | str | None]) -> Measured:
        rule = entry.rule
        run = self._runs.get(rule.instrument)
        if run is None:
            return Measured(thin=f"no {rule.instrument} run was given")
        if rule.baseline:
            return self._contrast(entry, run, compared[rule.instrument])
        if rule.instrument == "csq":
            return of_csq(rule, self._csq_scores(run), entry.minimum)
        scores = self._knownlie_scores(run)
        if scores is None:
            return Measured(thin="the run holds no rounds")
        return of_knownlie(rule, scores, run.status, entry.minimum)

    def _contrast(self, entry: Entry, run: RunFolder, pair: Comparison | str | None) -> Measured:
        rule, before = entry.rule, self._baseline.get(entry.rule.instrument)
        if before is None:
            return Measured(thin=f"no {rule.instrument} baseline was given (--baseline RUN)")
        if isinstance(pair, str) or pair is None:
            return Measured(thin=f"it can't be compared with the baseline: {pair or 'nothing to compare'}")
        one = next((c for c in pair.contrasts if c.name == _contrast_name(rule)), None)
        if one is None:
            return Measured(thin="the two runs hold nothing in common for this score")
        if rule.instrument == "csq":
            coverage = (csq_coverage(self._csq_scores(before)), csq_coverage(self._csq_scores(run)))
            return of_contrast(rule, one, coverage, math.nan, entry.minimum)
        sides = [self._knownlie_scores(each) for each in (before, run)]
        broken = [each for each in (before, run) if each.status in ("running", "interrupted")]
        if broken or sides[0] is None or sides[1] is None:
            return Measured(thin=f"{broken[0].path} is {broken[0].status}" if broken else "a run holds no rounds")
        coverage = (knownlie_coverage(sides[0]), knownlie_coverage(sides[1]))
        known = min(side.knowing.kpr["owed"].value for side in (sides[0], sides[1]))
        return of_contrast(rule, one, coverage, known, entry.minimum)

    def _compared(self, instrument: str, rules: Sequence[Entry]) -> Comparison | str | None:
        """The comparison that the rules of an instrument ask for; why there is none; None where none is asked for."""
        run = self._runs.get(instrument)  # type: ignore[call-overload]
        before = self._baseline.get(instrument)  # type: ignore[call-overload]
        asked = [e.rule for e in rules if e.rule.baseline and e.rule.instrument == instrument]
        if not asked or run is None or before is None:
            return None
        names = list(dict.fromkeys(_contrast_name(rule) for rule in asked))
        found: list[Comparison] = []
        reason = None
        try:
            found += compare(before.path, run.path, scores=names).pairs
        except BadInput as error:
            reason = str(error)
        for name in names if reason and len(names) > 1 else ():
            # A score that one of the runs lacks must not take the others with it.
            with contextlib.suppress(BadInput):
                found += compare(before.path, run.path, scores=[name]).pairs
        if not found:
            return reason.rstrip(".") if reason else None
        contrasts = tuple(one for pair in found for one in pair.contrasts)
        return Comparison(
            found[0].instrument, found[0].first, found[0].second, found[0].shared, contrasts, (), found[0].notes
        )

    def _csq_scores(self, run: RunFolder) -> Scores:
        if run.path not in self._csq:
            self._csq[run.path] = score_run(run)
        return self._csq[run.path]

    def _knownlie_scores(self, run: RunFolder) -> KnownLieScores | None:
        if run.path not in self._knownlie:
            rounds = read_rounds(run.path)
            self._knownlie[run.path] = score(rounds) if rounds else None
        return self._knownlie[run.path]


def _contrast_name(rule: Rule) -> str:
    return f"{rule.score}(n={rule.arguments['n']})" if "n" in rule.arguments else rule.score


def _named(runs: Runs) -> tuple[tuple[str, str], ...]:
    return tuple((str(run.path), run.manifest.respondent) for run in runs.values())


def _outcome(entry: Entry, measured: Measured) -> Outcome:
    rule = entry.rule
    tested = measured.at(rule.end)
    if measured.thin is not None:
        return Outcome(entry.name, rule, "thin", measured, tested, f"Too thin: {measured.thin}.", entry.line)
    met = rule.holds(tested)
    what = {"value": "It", "lower": "The lower end", "upper": "The upper end"}[rule.end]
    why = f"{what} is {figure(tested)}, which is {'' if met else 'not '}{rule.comparator} {figure(rule.number)}."
    return Outcome(entry.name, rule, "met" if met else "unmet", measured, tested, why, entry.line)


def figure(value: float) -> str:
    """A figure to four digits; "–" where it is undefined."""
    if math.isnan(value):
        return "–"
    return f"{value:.4g}".replace("-", "−")
