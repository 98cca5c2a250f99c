"""Asks an experiment: one ordinary run a condition, each resumed where it stands.

Knows: which runs are still to be asked, and that conditions which ask a respondent alike share it, and its budget.
Does not know: the command line, any particular respondent, or what the answers mean.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from belie.csq.asked import Asking, manifest_for
from belie.csq.experiments.conditions import Condition
from belie.csq.experiments.folder import ExperimentFolder
from belie.csq.questions import Design
from belie.csq.run import Progress, ask, first_pending, open_folder, save_results, score_run
from belie.respondents.base import BudgetSpent, Respondent
from belie.respondents.opening import Options, open_respondent
from belie.runs import RunFolder
from belie.runs.folder import MANIFEST


@dataclass(frozen=True, slots=True)
class Part:
    """One condition, ready to be asked."""

    condition: Condition
    design: Design
    options: Options
    asking: Asking


#: Shows how far a condition is: (its place from 1 on, all of them, its part) → a context that gives the watcher.
Show = Callable[[int, int, Part], AbstractContextManager[Callable[[Progress], None]]]


async def ask_experiment(
    folder: ExperimentFolder, parts: Sequence[Part], show: Show, say: Callable[[str], None] = lambda _: None
) -> str | None:
    """Asks what is missing of every condition, in order; why something is still missing, None where nothing is.

    A run that was finished is not touched, and no model is opened for it. Limits of cost and time (US dollars, seconds)
    hold for all conditions together.
    """
    respondent: Respondent | None = None
    opened: Options | None = None
    cost, started = 0.0, time.monotonic()
    failed = 0
    try:
        for place, part in enumerate(parts, 1):
            path = folder.run_path(part.condition)
            begun = (path / MANIFEST).exists()
            if begun and RunFolder.open(path).manifest.status == "complete":
                continue
            if respondent is None or opened != part.options:
                if respondent is not None:
                    await respondent.close()
                    respondent = None
                probe = first_pending(part.design, part.asking, path if begun else None)
                respondent = await open_respondent(folder.plan.model, _left(part.options, cost, started), probe)
                opened = part.options
            manifest = manifest_for(respondent, part.design, part.asking)
            with open_folder(manifest, path, resume=begun) as run:
                before = run.journal.state().counts.cost
                spent: BudgetSpent | None = None
                with show(place, len(parts), part) as watch:
                    try:
                        progress = await ask(respondent, run, part.design, part.asking, watch)
                        cost += progress.cost - before
                        failed += progress.failed
                    except BudgetSpent as reason:
                        spent = reason
                save_results(run, score_run(run))
                for notice in run.notices:
                    say(notice)
            if spent is not None:
                return str(spent)
    finally:
        if respondent is not None:
            await respondent.close()
    if failed:
        return f"{failed} calls failed after their retries."
    return None if folder.complete else "Some questions have no answer."


def _left(options: Options, cost: float, started: float) -> Options:
    """The options with what is left of the limits."""
    changes = {}
    if options.max_cost is not None:
        changes["max_cost"] = max(options.max_cost - cost, 1e-9)
    if options.max_time is not None:
        changes["max_time"] = max(options.max_time - (time.monotonic() - started), 1e-9)
    return replace(options, **changes)
