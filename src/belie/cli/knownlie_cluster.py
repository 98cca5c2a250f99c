"""KnownLie on many machines: ``belie knownlie run --engine``, ``belie knownlie shard``, ``belie knownlie merge``.

Knows: how options become the runs that a cluster makes, and what is printed.
Does not know: how a domain is played, or Ray (`belie.cluster.knownlie`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from belie.cli import knownlie_options as k
from belie.cli import options as o
from belie.cli.cluster import Place, places, show_many
from belie.cli.knownlie_scores import document, show_run
from belie.cli.knownlie_watch import DomainWatch
from belie.cli.output import print_json, say
from belie.respondents.base import BadInput
from belie.runs import RunFolder

if TYPE_CHECKING:
    from belie.cli.knownlie_run import Server
    from belie.cluster.knownlie import Play


def plays_of(
    models: Sequence[str], seated: k.Seating, server: Server, folder: Path | None, resume: Path | None
) -> list[Play]:
    """The runs to be made, one a model; several lie in one folder. Raises BadInput for what a cluster can't do."""
    from belie.cluster.knownlie import Play

    if server.max_cost is not None:
        raise BadInput("--max-cost stops one process, and can't be had with --engine: limit the cost with --limit.")
    options = {
        "base_url": server.base_url,
        "max_connections": server.concurrency,
        "timeout": server.timeout or 600,
    }
    return [
        Play(model, seated.customer, seated.judges, str(place), seated.packs, seated.protocol, options, again)
        for model, place, again in places("knownlie", models, folder, resume)
    ]


def play_in_domains(engine: str, plays: Sequence[Play], *, address: str | None, gpus: float, json: bool) -> None:
    """Makes the runs on a Ray cluster and prints them (exit code 3 where one is not complete), or only creates them."""
    from belie.cluster.knownlie import begun, play_many

    if engine == "shards":
        for play in plays:
            with begun(play):
                pass
        if json:
            print_json([{"run": play.place, "domains": list(play.parts)} for play in plays])
            return
        for play in plays:
            say(
                f"Created {play.place}, to be played by {play.model}. Next, for each DOMAIN of {', '.join(play.parts)}:"
            )
            say(f"  belie knownlie shard {play.place} DOMAIN")
            say(f"and then:  belie knownlie merge {play.place}")
        return
    with DomainWatch(quiet=json) as watch:
        outcomes = play_many(plays, address=address, gpus_per_worker=gpus, watch=watch)
    if len(outcomes) > 1:
        show_many(outcomes, json=json)
        return
    (outcome,) = outcomes
    if outcome.status == "failed":
        raise BadInput(" ".join(outcome.why) or f"{outcome.place} could not be played.")
    _show(RunFolder.open(outcome.place), json=json)


def shard(
    run: Place,
    domain: Annotated[str, typer.Argument(help="One of the run's domains, such as airline.")],
    base_url: k.BaseUrl = None,
    concurrency: o.Concurrency = None,
    timeout: k.Timeout = None,
) -> None:
    """Play one domain of a run that exists (--engine shards creates one). A domain that was stopped goes on."""
    from belie.cluster.knownlie import play_domain

    options = {"base_url": base_url, "max_connections": concurrency, "timeout": timeout or 600}
    play = _stored(run, options)
    if domain not in play.parts:
        raise BadInput(f"{run} has no domain {domain!r}. Its domains: {', '.join(play.parts)}.")
    if not play_domain(play, domain):
        say(f"Incomplete: calls of {domain} failed after their retries. Run the same command again.")
        raise typer.Exit(3)
    say(f"{domain} of {run} is played.")


def merge(run: Place, json: o.Json = False) -> None:
    """Make one run of its domains, score and print it. Plays nothing."""
    from belie.cluster.knownlie import begun, merge_domains, unplayed

    play = _stored(run, {})
    with begun(play) as folder:
        merge_domains(play, folder)
    opened = RunFolder.open(run)
    if lacking := unplayed(play):
        say(f"Not played yet, or not to the end: {', '.join(lacking)} (belie knownlie shard {run} DOMAIN).")
    _show(opened, json=json)


def _stored(run: str, options: dict[str, object]) -> Play:
    """A run that exists, as one that goes on."""
    from belie.cluster.knownlie import Play
    from belie.knownlie.protocol import Protocol
    from belie.knownlie.run import made_protocol

    told = k.played_options(Path(run))
    protocol = made_protocol(**{field.name: told[field.name] for field in fields(Protocol) if field.name in told})
    packs = told.get("packs")
    domains = None if packs is None else tuple(packs)
    return Play(told["model"], told["customer"], tuple(told["judge"]), run, domains, protocol, options, resume=True)


def _show(folder: RunFolder, *, json: bool) -> None:
    from belie.cli.knownlie_run import finish

    if json:
        print_json(document(folder))
    else:
        show_run(folder)
    if folder.manifest.counts.get("missing"):
        finish(folder)
    elif folder.status != "complete":
        raise typer.Exit(3)
