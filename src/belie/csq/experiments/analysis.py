"""From an experiment's runs to its figures.

Knows: which analysis an experiment has, which of its conditions have answers, what must be said about them.
Does not know: how a figure is computed (shifts, agreement, phrasing, votes), shown or kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from belie.csq.asked import design_of
from belie.csq.experiments.agreement import Agreement, agreement
from belie.csq.experiments.folder import EXPERIMENT_VERSION, ExperimentFolder, Plan
from belie.csq.experiments.phrasing import Components, components
from belie.csq.experiments.shifts import Shifts, shifts
from belie.csq.experiments.votes import draw_tables, voted
from belie.csq.run import table_of
from belie.csq.scores import FEW_CHAINS, Figure, Scores, plain, score
from belie.csq.table import Table
from belie.respondents.base import BadInput

#: Below this share of valid answers a condition's figures rest on a selection, and that is said.
LOW_COVERAGE = 0.8


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an experiment found. ``told``: its analysis; ``scores``: each condition's own, as a run of it alone has
    them; ``notes``: sentences for the reader. ``incomplete``: conditions that lack answers."""

    plan: Plan
    respondent: str
    told: Shifts | Agreement | Components
    scores: Mapping[str, Scores]
    chains: int
    sizes: tuple[int, ...]
    exact: bool
    notes: tuple[str, ...]
    incomplete: tuple[str, ...]
    options: Mapping[str, Any]

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions that were analysed."""
        return tuple(self.scores)

    def figure(self, condition: str, name: str) -> Figure:
        """One condition's score over all n."""
        return self.scores[condition].overall[name]

    def to_json(self) -> dict[str, Any]:
        """A plain dict: what ``experiment.json`` holds and ``--json`` prints."""
        return plain(
            {
                "experiment_version": EXPERIMENT_VERSION,
                "experiment": self.plan.experiment,
                "respondent": self.respondent,
                "sizes": list(self.sizes),
                "chains": self.chains,
                "exact": self.exact,
                "options": dict(self.options),
                "conditions": [
                    {
                        "name": name,
                        "overall": {key: asdict(figure) for key, figure in told.overall.items()},
                        "coverage": dict(told.coverage),
                        "mode": told.placement.mode,
                    }
                    for name, told in self.scores.items()
                ],
                "analysis": self.told.to_json(),
                "notes": list(self.notes),
                "incomplete": list(self.incomplete),
            }
        )


def analyse(
    folder: ExperimentFolder,
    *,
    level: float = 0.95,
    resamples: int = 2000,
    permutations: int = 5000,
    seed: int = 0,
    skip_damaged: bool = False,
) -> Outcome:
    """Analyse what an experiment's runs hold so far. Asks nothing. Raises BadInput where that is too little."""
    plan, runs = folder.plan, folder.runs
    if not runs:
        raise BadInput(f"{folder.path} holds no answers yet: go on with --resume {folder.path}.")
    first = next(iter(runs.values()))
    design = design_of(first.manifest)
    if plan.kind.analysis == "votes":
        drawn = draw_tables(
            design.items(), first.journal.answers(skip=skip_damaged), int(first.manifest.options["draws"])
        )
        tables = {f"{m} vote{'' if m == 1 else 's'}": voted(drawn, m) for m in plan.values}
    else:
        tables = {name: table_of(run, skip_damaged=skip_damaged) for name, run in runs.items()}
    empty = [name for name, table in tables.items() if not _answered(table)]
    tables = {name: table for name, table in tables.items() if name not in empty}
    if len(tables) < 2:
        raise BadInput(
            f"{folder.path} holds answers under fewer than two conditions: go on with --resume {folder.path}."
        )
    rules: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    scores = {name: score(table, **rules) for name, table in tables.items()}
    told: Shifts | Agreement | Components
    if plan.kind.analysis == "agreement":
        told = agreement(tables, scores, **rules)
    elif plan.kind.analysis == "components":
        told = components(tables, permutations=permutations, **rules)
    else:
        told = shifts(tables, permutations=permutations, **rules)
    incomplete = tuple(
        one.name for one in plan.conditions if one.name not in runs or runs[one.name].status != "complete"
    )
    return Outcome(
        plan,
        first.manifest.respondent,
        told,
        scores,
        min(min(len(at.chains) for at in table.levels) for table in tables.values()),
        design.sizes,
        all(table.exact for table in tables.values()),
        tuple(_notes(tables, scores, empty, incomplete)),
        incomplete,
        {**rules, "permutations": permutations},
    )


def _answered(table: Table) -> bool:
    return any(cell.answered.any() for level in table.levels for cell in level.cells.values())


def _notes(
    tables: Mapping[str, Table], scores: Mapping[str, Scores], empty: list[str], incomplete: tuple[str, ...]
) -> list[str]:
    said = []
    if incomplete:
        said.append(f"Not finished, figures rest on what is there: {', '.join(incomplete)}.")
    if empty:
        said.append(f"No answers at all, left out: {', '.join(empty)}.")
    if len({table.exact for table in tables.values()}) > 1:
        words = [name for name, table in tables.items() if not table.exact]
        said.append(
            f"Answered in words, the others with probabilities: {', '.join(words)}. Add --sample to ask all alike."
        )
    low = [
        f"{name} ({told.coverage['first']:.0%})"
        for name, told in scores.items()
        if told.coverage["first"] < LOW_COVERAGE
    ]
    if low:
        said.append(
            f"Few clear answers under {', '.join(low)}: the others are left out, so what is compared is partly another "
            "selection of questions."
        )
    few = min(len(level.chains) for table in tables.values() for level in table.levels)
    if few < FEW_CHAINS:
        said.append(f"Only {few} chains at an n: intervals there are too narrow, and nothing here is firm.")
    return said
