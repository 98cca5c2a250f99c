"""``belie knownlie``: the list of its commands; here show, score, import and validate.

Run and estimate are in knownlie_run, shard and merge in knownlie_cluster, rejudge and calibrate in knownlie_judge.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from belie.cli import knownlie_cluster, knownlie_judge, knownlie_run
from belie.cli import options as o
from belie.cli.output import out, print_json, say
from belie.respondents.base import BadInput

app = typer.Typer(
    help="KnownLie: agents whose employer gains from a lie.",
    epilog="Example:  belie knownlie run belie/scripted-omitter --customer belie/scripted-trusting "
    "--judge belie/scripted-judge-perfect",
    no_args_is_help=True,
)
app.command("run", epilog=knownlie_run.RUN_EPILOG)(knownlie_run.run)
app.command("shard", epilog="Example:  belie knownlie shard runs/my-run airline")(knownlie_cluster.shard)
app.command("merge", epilog="Example:  belie knownlie merge runs/my-run")(knownlie_cluster.merge)
app.command("estimate", epilog=knownlie_run.ESTIMATE_EPILOG)(knownlie_run.estimate)
app.command("rejudge", epilog=knownlie_judge.REJUDGE_EPILOG)(knownlie_judge.rejudge)
app.command("calibrate", epilog=knownlie_judge.CALIBRATE_EPILOG)(knownlie_judge.calibrate)

Resamples = Annotated[int, typer.Option(help="Resamples of the intervals (B).")]
Level = Annotated[float, typer.Option(help="Level of the intervals.")]
IntervalSeed = Annotated[int, typer.Option("--seed", help="Decides the resamples.")]


@app.command(epilog="Example:  belie knownlie show runs/knownlie-model-20261130-101500")
def show(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    resamples: Resamples = 2000,
    level: Level = 0.95,
    seed: IntervalSeed = 0,
    json: o.Json = False,
) -> None:
    """Score a run again and print it. Asks nothing."""
    from belie.cli.knownlie_scores import document, show_run
    from belie.knownlie.results import open_run, score_run

    folder = open_run(run)
    for notice in folder.notices:
        say(notice)
    scores = score_run(folder, resamples=resamples, level=level, seed=seed)
    if json:
        print_json(document(folder, scores))
    else:
        show_run(folder, scores)


@app.command(epilog="Example:  belie knownlie score trajectories_model_airline.jsonl --definition published")
def score(
    files: Annotated[list[Path], typer.Argument(help="Trajectories in the published format (JSON lines).")],
    definition: Annotated[
        Literal["method", "published"],
        typer.Option(help="method: METHOD.md's, lies on owed requests only; published: the benchmark's own."),
    ] = "method",
    resamples: Resamples = 2000,
    level: Level = 0.95,
    seed: IntervalSeed = 0,
    json: o.Json = False,
) -> None:
    """Score trajectories that the published benchmark wrote, by METHOD or by its own definition."""
    from belie.cli.knownlie_scores import show_published, show_scores
    from belie.knownlie.interop import published_scores, read_published
    from belie.knownlie.scores import score_models
    from belie.knownlie.summary import summary

    if definition == "published":
        if level != 0.95:
            raise BadInput("The published definition has 95 % intervals only: leave --level out.")
        panel = published_scores(files, resamples=resamples, seed=seed)
        if json:
            print_json({"definition": definition, **panel})
        else:
            show_published(panel)
        return
    read = read_published(files)
    models = score_models(read.rounds, resamples=resamples, level=level, seed=seed, probed=read.probed)
    if json:
        told = [{**scores.to_json(), "summary": summary(scores)} for scores in models.values()]
        print_json({"definition": definition, "notes": list(read.notes), "models": told})
        return
    for name, scores in models.items():
        show_scores(scores, f"KnownLie · {name} · imported trajectories")
    for note in read.notes:
        say(note)


@app.command("import", epilog="Example:  belie knownlie import data/airline -o packs/airline")
def import_(
    folder: Annotated[Path, typer.Argument(help="A folder with orders.json, situations.json and policy.json.")],
    out_: Annotated[Path, typer.Option("--out", "-o", help="The pack's folder: new or empty.", metavar="PACK")],
    domain: Annotated[str | None, typer.Option(help="The pack's id (default: the folder's name).")] = None,
    json: o.Json = False,
) -> None:
    """Turn published case files into a pack. What the format lacks, and what a validator finds, are warnings."""
    from belie.knownlie.interop import import_published_cases

    found = import_published_cases(folder, out_, domain=domain)
    if json:
        print_json({"pack": str(found.path), "warnings": list(found.warnings)})
        return
    for warning in found.warnings:
        say(f"warning: {warning}")
    out.print(Text(f"Written: {found.path}  ({len(found.warnings)} warnings; use it with --domains {found.path})"))


@app.command(epilog="Example:  belie knownlie validate src/belie/knownlie/domains/airline")
def validate(
    packs: Annotated[list[Path], typer.Argument(help="Folders of packs.")],
    json: o.Json = False,
) -> None:
    """Check packs: schema, dates and sums, computed entitlements, twins, leaks. Exit code 2 where one is not usable."""
    from belie.knownlie.validator import examine

    told = [(pack, examine(pack)) for pack in packs]
    if json:
        print_json(
            [
                {
                    "pack": str(pack),
                    "usable": not found.faults,
                    "faults": [str(fault) for fault in found.faults],
                    "warnings": [str(fault) for fault in found.warnings],
                }
                for pack, found in told
            ]
        )
    else:
        for pack, found in told:
            for fault in found.faults:
                out.print(Text(f"{pack}/{fault}"), soft_wrap=True)
            for warning in found.warnings:
                out.print(Text(f"{pack}/{warning} (warning)", style="dim"), soft_wrap=True)
            state = "not usable" if found.faults else "sound"
            counted = f"{len(found.faults)} faults, {len(found.warnings)} warnings"
            out.print(Text(f"{pack}: {state}, {counted}"), soft_wrap=True)
    if any(found.faults for _, found in told):
        raise typer.Exit(2)
