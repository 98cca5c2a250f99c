"""Runs a design against a model and shows it: what ``belie csq run`` and ``belie audit`` share."""

from __future__ import annotations

import asyncio
from pathlib import Path

import typer

from belie.cli.output import Watch, say, waiting
from belie.cli.scores import show_scores
from belie.csq.questions import Design
from belie.csq.run import Asking, Progress, ask, first_pending, manifest_for, open_folder, save_results, score_run
from belie.respondents.base import BudgetSpent
from belie.respondents.opening import Options, open_respondent
from belie.runs import RunFolder

#: Where runs go unless told otherwise.
ROOT = Path("runs")


def run_csq(
    model: str,
    design: Design,
    options: Options,
    asking: Asking,
    *,
    out: Path | None = None,
    resume: Path | None = None,
    json: bool = False,
) -> Path:
    """Asks, saves and prints one run; gives its folder. Exits with 3 where the run stays incomplete."""
    path, spent = asyncio.run(_run(model, design, options, asking, out, resume, quiet=json))
    folder = RunFolder.open(path)
    show_scores(folder, score_run(folder), json=json)
    manifest = folder.manifest
    if manifest.status != "complete":
        why = str(spent) if spent else f"{manifest.counts['failed']} calls failed after their retries."
        say(f"Incomplete: {why} Continue with the same command and --resume {path}")
        raise typer.Exit(3)
    return path


async def _run(
    model: str,
    design: Design,
    options: Options,
    asking: Asking,
    out: Path | None,
    resume: Path | None,
    *,
    quiet: bool,
) -> tuple[Path, BudgetSpent | None]:
    spent: BudgetSpent | None = None
    with waiting(f"Opening {model} …", quiet=quiet):
        respondent = await open_respondent(model, options, first_pending(design, asking, resume))
    try:
        path = resume or out or RunFolder.new_path(ROOT, "csq", model)
        with open_folder(manifest_for(respondent, design, asking), path, resume=resume is not None) as run:
            if not quiet:
                say(f"{len(design) * asking.draws:,} questions to {model}, kept in {path}")
            with Watch("Asking", quiet=quiet) as watch:
                try:
                    progress: Progress = await ask(respondent, run, design, asking, watch)
                    del progress
                except BudgetSpent as reason:
                    spent = reason
            save_results(run, score_run(run))
            for notice in run.notices:
                say(notice)
    finally:
        await respondent.close()
    return path, spent
