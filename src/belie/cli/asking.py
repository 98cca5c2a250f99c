"""Runs a design against a model and shows it: what ``belie csq run`` and ``belie audit`` share."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import typer

from belie.cli.output import Watch, say, waiting
from belie.cli.scores import show_scores
from belie.csq.asked import Asking, manifest_for
from belie.csq.questions import Design
from belie.csq.run import ask, ask_until, first_pending, open_folder, pilot, save_results, score_run
from belie.csq.stopping import LEAST_PILOT, Decision, Wanted
from belie.pairs.file import PairSet
from belie.respondents.base import BadInput, BudgetSpent
from belie.respondents.opening import Options, open_respondent
from belie.runs import RunFolder

#: Where runs go unless told otherwise.
ROOT = Path("runs")


def run_csq(
    model: str,
    design: Design | PairSet,
    options: Options,
    asking: Asking,
    *,
    wanted: Wanted | None = None,
    out: Path | None = None,
    resume: Path | None = None,
    json: bool = False,
) -> Path:
    """Asks, saves and prints one run; gives its folder. Exits with 3 where the run stays incomplete."""
    path, why = ask_csq(model, design, options, asking, wanted=wanted, out=out, resume=resume, quiet=json)
    folder = RunFolder.open(path)
    show_scores(folder, score_run(folder), json=json)
    if why is not None:
        say(f"Incomplete: {why} Continue with the same command and --resume {path}")
        raise typer.Exit(3)
    return path


def ask_csq(
    model: str,
    design: Design | PairSet,
    options: Options,
    asking: Asking,
    *,
    wanted: Wanted | None = None,
    out: Path | None = None,
    resume: Path | None = None,
    quiet: bool = False,
) -> tuple[Path, str | None]:
    """Asks and saves one run; gives its folder, and why it is incomplete (None where it is not).

    With ``wanted`` the run stops at that half-width; a new one begins with the pilot, not with the design's chains.
    """
    if wanted is not None:
        if isinstance(design, PairSet):
            raise BadInput("A half-width is reached by making more chains; own pairs are as many as their file holds.")
        if resume is None:
            design = pilot(design, wanted)
        else:
            replace(wanted, pilot=LEAST_PILOT).check(design.sizes)  # its own pilot is behind it
    path, spent = asyncio.run(_run(model, design, options, asking, wanted, out, resume, quiet=quiet))
    manifest = RunFolder.open(path).manifest
    if manifest.status == "complete":
        return path, None
    if spent is not None:
        return path, str(spent)
    failed = manifest.counts["failed"]
    return path, f"{failed} calls failed after their retries." if failed else "Some questions have no answer."


async def _run(
    model: str,
    design: Design | PairSet,
    options: Options,
    asking: Asking,
    wanted: Wanted | None,
    out: Path | None,
    resume: Path | None,
    *,
    quiet: bool,
) -> tuple[Path, BudgetSpent | None]:
    spent: BudgetSpent | None = None
    with waiting(f"Opening {model} …", quiet=quiet):
        respondent = await open_respondent(model, options, first_pending(design, asking, resume))
    try:
        path = (
            resume
            or out
            or RunFolder.new_path(ROOT, "csq" if isinstance(design, Design) else design.header.name, model)
        )
        with open_folder(manifest_for(respondent, design, asking, wanted), path, resume=resume is not None) as run:
            if not quiet:
                until = "" if wanted is None else f" to begin with, until ±{wanted.half_width:g} is reached"
                say(f"{len(design) * asking.draws:,} questions to {model}{until}, kept in {path}")
            decision: Decision | None = None
            with Watch("Asking", quiet=quiet) as watch:
                try:
                    if wanted is None or isinstance(design, PairSet):
                        await ask(respondent, run, design, asking, watch)
                    else:
                        _, decision = await ask_until(respondent, run, design, asking, wanted, watch)
                except BudgetSpent as reason:
                    spent = reason
            save_results(run, score_run(run))
            if wanted is not None and decision is not None:
                say(told(decision, wanted))
            for notice in run.notices:
                say(notice)
    finally:
        await respondent.close()
    return path, spent


def told(decision: Decision, wanted: Wanted) -> str:
    """Why asking stopped, as a sentence."""
    parts = []
    for name, sign in (("rho", "ρ"), ("delta", "δ")):
        width, n = decision.widths.get(name), decision.widest.get(name)
        if width is not None:
            parts.append(f"{sign} ±{width:.4f}" + (f" (n = {n})" if n is not None else ""))
    now = ", ".join(parts)
    if decision.reason == "reached":
        return f"Stopped: the wanted half-width of {wanted.half_width:g} is reached ({now})."
    if decision.reason == "max_items":
        return (
            f"Stopped at the most items allowed, not at a half-width of {wanted.half_width:g} ({now}): go on with "
            "--resume and a larger --max-items."
        )
    if decision.reason == "undefined":
        n = decision.widest["rho"]
        return f"Stopped: at n = {n} a kind of question has no valid or no right answer, so ρ or δ has no width there."
    return "Stopped: too many calls of a round failed to decide on the next one."
