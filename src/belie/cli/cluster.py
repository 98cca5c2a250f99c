"""CSQ on many machines: ``belie csq run --engine``, ``belie csq shard``, ``belie csq merge``.

Knows: the options of an engine, and what is printed.
Does not know: what a shard does, or Ray (`belie.cluster`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from belie.cli import options as o
from belie.cli.output import Watch, print_json, say
from belie.cli.scores import show_scores
from belie.csq.questions import Design
from belie.csq.run import Asking, score_run
from belie.respondents.base import BadInput
from belie.respondents.opening import Options
from belie.runs import RunFolder

_PANEL = "Many machines"
Engine = Annotated[
    str | None,
    typer.Option(
        help="ray: ask in shards on a Ray cluster. shards: only create the run, for belie csq shard (a SLURM array).",
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


def check_engine(engine: str | None, place: Path | None, **told: Any) -> None:
    """Raises BadInput for an engine that is none, and for options that need one."""
    from belie.cluster.storage import is_url, url_of

    if engine not in (None, "ray", "shards"):
        raise BadInput(f"--engine takes ray or shards, not {engine!r}.")
    if engine is None and place is not None and is_url(place):
        raise BadInput(
            f"{url_of(place)} is a URL: one process writes to a folder; add --engine ray or --engine shards."
        )
    needless = [f"--{name.replace('_', '-')}" for name, value in told.items() if value]
    if engine != "ray" and needless:
        raise BadInput(f"{', '.join(needless)} needs --engine ray.")


def run_csq_in_shards(
    engine: str,
    model: str,
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
    """Makes one run on a Ray cluster and prints it (exit code 3 where it stays incomplete), or only creates it."""
    from belie.cli.asking import ROOT
    from belie.cluster import Work, prepare, run_many, url_of

    place = url_of(resume or out or RunFolder.new_path(ROOT, "csq", model))
    work = Work(model, design, options, asking, place, resume is not None)
    if engine == "shards":
        prepare(work)
        told = {"run": place, "questions": len(design) * asking.draws}
        if json:
            print_json(told)
        else:
            say(f"Created {place}: {told['questions']:,} questions to {model}. Next, for each i from 0 to N − 1:")
            say(f"  belie csq shard {place} --index i --count N")
            say(f"and then:  belie csq merge {place}")
        return
    if not json:
        say(f"{len(design) * asking.draws:,} questions to {model}, kept in {place}")
    with Watch("Asking", quiet=json) as watch:
        (outcome,) = run_many([work], shards=shards, address=address, gpus_per_worker=gpus, watch=watch)
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
