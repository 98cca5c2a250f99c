"""``belie csq interview``: asks a finished run's model how sure it was, and what it says to its own contradictions."""

from __future__ import annotations

import asyncio
import json as json_
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from belie.cli import options as o
from belie.cli.output import Watch, interval, out, print_json, say, waiting
from belie.csq.branch import Branch
from belie.csq.interview import journal
from belie.csq.interview.asking import Wanted, conversations, due, interview
from belie.csq.interview.behaviour import BEHAVIOUR_VERSION, Interviewee, parse_behaviour
from belie.csq.interview.prompts import load_prompts
from belie.csq.interview.results import TITLES, results
from belie.csq.interview.words import calibrated, confronted, looked_back
from belie.csq.run import Progress
from belie.csq.scores import plain
from belie.items import Item
from belie.numbers import number, percent
from belie.respondents.base import BadInput, BudgetSpent, Respondent
from belie.respondents.opening import Options, open_respondent
from belie.runs import RunFolder

EPILOG = "Example:  belie csq interview runs/csq-smollm2-135m-20261130-101500 --confidence --confront"
#: The longest reply of a local model unless the run allowed a longer one: room for three sentences.
LONGEST = 160


def interview_run(
    run: Annotated[Path, typer.Argument(help="A finished run's folder.", metavar="RUN")],
    confidence: Annotated[bool, typer.Option("--confidence", help="Ask how sure it is, from 0 to 100.")] = False,
    confront: Annotated[bool, typer.Option("--confront", help="Show it its contradictions, then ask again.")] = False,
    limit: Annotated[int | None, typer.Option(help="Only the first so many chains at each n.")] = None,
    behaviour: Annotated[
        str | None, typer.Option(help="For sim/PROFILE: rates such as correct=0.6,double=0.3,deny=0.2,sure_right=85.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="Temperature (default: the run's).")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Longest reply (default: enough for some sentences).")] = None,
    base_url: o.BaseUrl = None,
    concurrency: o.Concurrency = None,
    timeout: o.Timeout = None,
    max_time: o.MaxTime = None,
    max_cost: o.MaxCost = None,
    price: o.Price = None,
    threads: o.Threads = None,
    device: o.Device = None,
    show: Annotated[bool, typer.Option("--show", help="Only print what was answered before. Asks nothing.")] = False,
    json: o.Json = False,
) -> None:
    """Ask the model of a finished run about its own answers, in the same conversations. Nothing is asked twice.

    Replies are kept beside the run's own answers, in interview-0.jsonl; what failed is asked again the next time.
    """
    if not (confidence or confront or show):
        raise BadInput("Name what to ask: --confidence, --confront, or both (--show prints what was answered before).")
    if limit is not None and limit < 1:
        raise BadInput(f"--limit {limit}: at least 1.")
    folder = RunFolder.open(run)
    wanted = Wanted(confidence, confront, limit)
    found = conversations(folder, limit)
    why: str | None = None
    if not show:
        if folder.status not in ("complete", "incomplete"):
            raise BadInput(f"{run} is {folder.status}: an interview needs a finished run.")
        asked = folder.manifest.options
        options = Options(
            sample=True,
            temperature=asked.get("temperature", 1.0) if temperature is None else temperature,
            max_tokens=max_tokens,
            seed=asked.get("seed", 0),
            base_url=base_url or asked.get("base_url"),
            concurrency=concurrency,
            timeout=timeout,
            max_time=max_time,
            max_cost=max_cost,
            price=o.price_of(price),
            threads=threads,
            device=device,
        )
        o.asking_of(options, None, "wrong")  # raises for what is out of range
        why = asyncio.run(_ask(folder, found, wanted, options, behaviour, quiet=json))
    answered, notices = journal.read(run, skip=show)
    for notice in notices:
        say(notice)
    if show and not answered:
        raise BadInput(f"{run} holds no interview yet: ask with --confidence or --confront.")
    made = {"run": str(run), "respondent": folder.manifest.respondent, "limit": limit, **results(found, answered)}
    made = plain({**made, "prompts_version": load_prompts().version})
    if not show:
        folder.save("interview.json", json_.dumps(made, indent=2) + "\n")
    if json:
        print_json(made)
    else:
        _show(made)
    if why is not None:
        say(f"Incomplete: {why} What was answered is kept; the same command asks the rest.")
        raise typer.Exit(3)


async def _ask(
    folder: RunFolder, found: list[Branch], wanted: Wanted, options: Options, behaviour: str | None, *, quiet: bool
) -> str | None:
    """Asks what is missing; gives why that is not all (None where it is)."""
    model = folder.manifest.respondent
    bound: dict[str, Any] = {"temperature": options.temperature, "seed": options.seed, "max_tokens": options.max_tokens}
    answered = journal.read(folder.path)[0]
    first = next(due(found, wanted, answered, load_prompts(), final=False), None)
    first = first or next(due(found, wanted, answered, load_prompts(), final=True), None)
    if first is None:
        return None
    progress: Progress | None = None
    try:
        respondent = await _open(model, options, behaviour, first.item, bound, quiet=quiet)
        try:
            with Watch("Interviewing", quiet=quiet) as watch:
                progress = await interview(respondent, folder, found, wanted, bound, watch)
        finally:
            await respondent.close()
    except BudgetSpent as spent:
        return str(spent)
    failed = progress.failed if progress else 0
    return f"{failed} calls failed after their retries." if failed else None


async def _open(
    model: str, options: Options, behaviour: str | None, probe: Item, bound: dict[str, Any], *, quiet: bool
) -> Respondent:
    """The model of the run, or its simulated interviewee; ``bound`` gets what only that kind depends on."""
    if model.startswith("sim/"):
        known = parse_behaviour(behaviour)
        bound |= {"behaviour": asdict(known), "behaviour_version": BEHAVIOUR_VERSION}
        return Interviewee(model, known, options.seed)
    if behaviour is not None:
        raise BadInput(f"--behaviour is for simulated respondents; {model} behaves as it does.")
    if model.startswith("local/") and options.max_tokens is None:
        from dataclasses import replace

        options = replace(options, max_tokens=LONGEST)
        bound["max_tokens"] = LONGEST
    with waiting(f"Opening {model} …", quiet=quiet):
        return await open_respondent(model, options, probe)


def _show(made: Mapping[str, Any]) -> None:
    for question, one in made["confidence"].items():
        table = Table(
            title=Text(f"How sure {TITLES[question]} · {made['respondent']}"),
            title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0),
        )  # fmt: skip
        for head in ("said", "answers", "mean said", "right", "interval"):
            table.add_column(head, justify="right")
        for row in one["bins"]:
            if row["count"]:
                table.add_row(
                    f"{100 * row['from']:.0f}–{100 * row['to']:.0f}",
                    f"{row['count']:,}",
                    number(100 * row["confidence"], 1),
                    percent(row["right"]),
                    interval(row["low"], row["high"]),
                )
        out.print(table)
        out.print(Text(calibrated(TITLES[question], one), style="bold"))
        out.print(
            Text(
                f"{one['due']:,} due: {one['answered']:,} answered (of these {one['unusable']:,} without a usable "
                f"number), {one['failed']:,} failed, {one['absent']:,} not asked.\n",
                style="dim",
            )
        )
    if made["hindsight"] is not None:
        out.print(Text(looked_back(made["hindsight"]) + "\n", style="bold"))
    if (one := made["confrontation"]) is not None:
        table = Table(title=Text(f"Confronted · {made['respondent']}"), title_justify="left", box=box.SIMPLE_HEAD)
        for head in ("n", "corrected", "doubled down", "no clear answer", "answers"):
            table.add_column(head, justify="right")
        for row in one["by_n"]:
            table.add_row(*(str(row[name]) for name in ("n", "correction", "doubling", "unusable", "finals")))
        out.print(table)
        out.print(Text(confronted(one), style="bold"))
    out.print(Text(f"\nResults: {made['run']}  (interview.json, interview-0.jsonl; in the report: belie report)"))
