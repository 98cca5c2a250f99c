"""CSQ on many machines: ``belie csq run --engine``, ``belie csq shard``, ``belie csq merge``.

Knows: the options of an engine, and what is printed.
Does not know: what a shard does, or Ray (`belie.cluster`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from belie.cli import options as o
from belie.cli.asking import ROOT
from belie.cli.output import Watch, print_json, say
from belie.cli.output import out as printed
from belie.cli.scores import show_scores
from belie.csq.asked import Asking
from belie.csq.questions import Design
from belie.csq.run import score_run
from belie.respondents.base import BadInput
from belie.respondents.opening import Options
from belie.runs import RunFolder
from belie.runs.folder import short_name

if TYPE_CHECKING:
    from belie.cluster import Outcome

_PANEL = "Many machines"
Engine = Annotated[
    str | None,
    typer.Option(
        help="ray: ask in shards on a Ray cluster. shards: only create the run, for belie csq shard (a SLURM array).",
        rich_help_panel=_PANEL,
    ),
]
PlayEngine = Annotated[
    str | None,
    typer.Option(
        help="ray: play domains on a Ray cluster. shards: only create the run, for belie knownlie shard.",
        rich_help_panel=_PANEL,
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="The Ray cluster, such as auto or host:6379 (default: this machine).",
        envvar="RAY_ADDRESS",
        rich_help_panel=_PANEL,
    ),
]
Shards = Annotated[
    int | None, typer.Option(help="Parts of a run (default: as many as go at once).", rich_help_panel=_PANEL)
]
Gpus = Annotated[
    float, typer.Option("--gpus-per-worker", help="GPUs of each worker; 0.5 puts two on one.", rich_help_panel=_PANEL)
]
Place = Annotated[str, typer.Argument(help="The run's folder, or its fsspec URL.", metavar="RUN")]


@contextmanager
def readable(place: Path) -> Iterator[Path]:
    """A folder in which a run can be read: the place itself, or a copy of what lies at a URL."""
    from belie.cluster.storage import is_url, open_store

    if not is_url(place):
        yield place
        return
    with closing(open_store(place)) as store:
        store.manifest()
        yield store.folder()


def check_engine(engine: str | None, place: Path | None, models: Sequence[str] = (), **told: Any) -> None:
    """Raises BadInput for an engine that is none, and for what needs one: options, a URL, several models."""
    from belie.cluster.storage import is_url, url_of

    if engine not in (None, "ray", "shards"):
        raise BadInput(f"--engine takes ray or shards, not {engine!r}.")
    if engine is None and len(models) > 1:
        raise BadInput(f"{len(models)} models are named: add --engine ray to ask them together, or ask one at a time.")
    if engine is None and place is not None and is_url(place):
        raise BadInput(
            f"{url_of(place)} is a URL: one process writes to a folder; add --engine ray or --engine shards."
        )
    needless = [f"--{name.replace('_', '-')}" for name, value in told.items() if value]
    if engine != "ray" and needless:
        raise BadInput(f"{', '.join(needless)} needs --engine ray.")


def places(
    instrument: str, models: Sequence[str], out: Path | None, resume: Path | None
) -> list[tuple[str, str, bool]]:
    """Where the run of each model lies, and whether it goes on there: (model, path or URL, resumed).

    One model's run is ``out`` or ``resume`` itself. Several lie in that folder, each by its model's name; those that
    are not there yet are begun. Raises BadInput where two models have the same name.
    """
    from belie.cluster import open_store, url_of

    if len(models) == 1:
        place = resume or out or RunFolder.new_path(ROOT, instrument, models[0])
        return [(models[0], url_of(place), resume is not None)]
    if len({short_name(model) for model in models}) < len(models):
        raise BadInput(
            "Two of the models have the same name, so their runs would lie in the same place: ask them apart."
        )
    root = url_of(resume or out or RunFolder.new_path(ROOT, instrument, f"{len(models)}-models"))
    told = [(model, f"{root.rstrip('/')}/{short_name(model)}") for model in models]

    def there(place: str) -> bool:
        with closing(open_store(place)) as store:
            return store.exists()

    return [(model, place, resume is not None and there(place)) for model, place in told]


def show_many(outcomes: Sequence[Outcome], *, json: bool) -> None:
    """Prints how each of several runs ended. Exits with 2 where all failed, with 3 where one is not complete."""
    if json:
        print_json([asdict(outcome) for outcome in outcomes])
    for outcome in outcomes:
        if not json:
            printed.print(Text(f"{outcome.status:<11} {outcome.model}  {outcome.place}"), soft_wrap=True)
        for why in outcome.why:
            say(f"{outcome.model}: {why}")
    done = [outcome.place for outcome in outcomes if outcome.status == "complete"]
    if done and not json:
        printed.print(Text(f"\nreport: belie report {' '.join(done)}"), soft_wrap=True)
    statuses = {outcome.status for outcome in outcomes}
    if statuses != {"complete"}:
        say("Incomplete: continue with the same command, and --resume in place of --out.")
        raise typer.Exit(2 if statuses == {"failed"} else 3)


def run_csq_in_shards(
    engine: str,
    models: Sequence[str],
    design: Design,
    options: Options,
    asking: Asking,
    *,
    out: Path | None,
    resume: Path | None,
    shards: int | None,
    address: str | None,
    gpus: float,
    json: bool,
) -> None:
    """Makes a run of each model on a Ray cluster and prints it (exit code 3 where one stays incomplete), or only
    creates them. A limit of cost is shared evenly by the models, as it is by the shards of each."""
    from belie.cluster import Work, prepare, run_many

    if options.max_cost is not None:
        options = replace(options, max_cost=options.max_cost / len(models))
    works = [
        Work(model, design, options, asking, place, again) for model, place, again in places("csq", models, out, resume)
    ]
    many = len(design) * asking.draws
    if engine == "shards":
        for work in works:
            prepare(work)
        told = [{"run": work.place, "questions": many} for work in works]
        if json:
            print_json(told if len(told) > 1 else told[0])
            return
        for work in works:
            say(f"Created {work.place}: {many:,} questions to {work.model}. Next, for each i from 0 to N − 1:")
            say(f"  belie csq shard {work.place} --index i --count N")
            say(f"and then:  belie csq merge {work.place}")
        return
    if not json:
        for work in works:
            say(f"{many:,} questions to {work.model}, kept in {work.place}")
    with Watch("Asking", quiet=json) as watch:
        outcomes = run_many(works, shards=shards, address=address, gpus_per_worker=gpus, watch=watch)
    if len(outcomes) > 1:
        show_many(outcomes, json=json)
        return
    (outcome,) = outcomes
    place = outcome.place
    if outcome.status == "failed":
        raise BadInput(" ".join(outcome.why) or f"{place} could not be asked.")
    _show(place, json=json)
    if outcome.status != "complete":
        say(f"Incomplete: {' '.join(outcome.why)} Continue with the same command and --resume {place}")
        raise typer.Exit(3)


def shard(
    run: Place,
    index: Annotated[int, typer.Option(help="Number of the shard, from 0.")],
    count: Annotated[int, typer.Option(help="How many shards the run has.")],
    base_url: o.BaseUrl = None,
    concurrency: o.Concurrency = None,
    max_time: o.MaxTime = None,
    threads: o.Threads = None,
    device: o.Device = None,
    json: o.Json = False,
) -> None:
    """Ask one shard of a run that exists (--engine shards creates one). A shard that was stopped goes on.

    Options that are not named are those of the run.
    """
    from belie.cluster import open_store, run_shard
    from belie.cluster.shards import options_of

    with closing(open_store(run)) as store:
        options = options_of(store.manifest())
    told = {
        "base_url": base_url,
        "concurrency": concurrency,
        "max_time": max_time,
        "threads": threads,
        "device": device,
    }
    options = replace(options, **{name: value for name, value in told.items() if value is not None})
    report = run_shard(run, index, count, options=options)
    if json:
        print_json(asdict(report))
    else:
        say(
            f"Shard {report.shard} of {run} is {report.state}: {report.first:,} questions, "
            f"{report.followups:,} follow-ups answered here."
        )
    if report.state != "complete":
        say(f"{report.why} Run the same command again.")
        raise typer.Exit(3)


def merge(run: Place, json: o.Json = False) -> None:
    """Score a run whose shards are done, and print it. Asks nothing."""
    from belie.cluster import merge as merge_run

    manifest = merge_run(run, patience=1.0)
    _show(run, json=json)
    if manifest.status != "complete":
        counts = manifest.counts
        say(
            f"Incomplete: {counts['first']:,} of {counts['questions']:,} questions are answered; "
            "run the shards that are not done again, then merge."
        )
        raise typer.Exit(3)


def _show(place: str, *, json: bool) -> None:
    with readable(Path(place)) as path:
        folder = RunFolder.open(path)
        show_scores(folder, score_run(folder), json=json, place=place)
