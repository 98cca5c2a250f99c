"""``belie csq``: ask, show, and look at the questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from belie.cli import cluster, population
from belie.cli import options as o
from belie.cli.asking import run_csq
from belie.cli.embed import EPILOG as EMBED_EPILOG
from belie.cli.embed import embed
from belie.cli.experiment import EPILOG as EXPERIMENT_EPILOG
from belie.cli.experiment import all_worlds, experiment
from belie.cli.explain import EPILOG as EXPLAIN_EPILOG
from belie.cli.explain import explain
from belie.cli.interview import EPILOG as INTERVIEW_EPILOG
from belie.cli.interview import interview_run
from belie.cli.output import out, print_json, say
from belie.cli.paraphrase import EPILOG as PARAPHRASE_EPILOG
from belie.cli.paraphrase import paraphrase
from belie.cli.plan import EPILOG as PLAN_EPILOG
from belie.cli.plan import plan
from belie.cli.scores import show_scores
from belie.cli.traces import EPILOG as TRACES_EPILOG
from belie.cli.traces import traces
from belie.cluster.storage import url_of
from belie.csq.questions import chain_items
from belie.csq.run import score_run
from belie.csq.scores import Scores
from belie.items import CATEGORIES
from belie.respondents.base import BadInput
from belie.respondents.opening import Options
from belie.runs import RunFolder

app = typer.Typer(
    help="CSQ: lies nobody asked for, on harmless yes/no questions.",
    epilog="Example:  belie csq run local/smollm2-135m",
    no_args_is_help=True,
)
app.command("plan", epilog=PLAN_EPILOG)(plan)
app.command("embed", epilog=EMBED_EPILOG)(embed)
app.command("interview", epilog=INTERVIEW_EPILOG)(interview_run)
app.command("experiment", epilog=EXPERIMENT_EPILOG)(experiment)
app.command("paraphrase", epilog=PARAPHRASE_EPILOG)(paraphrase)
app.command("explain", epilog=EXPLAIN_EPILOG)(explain)
app.command("traces", epilog=TRACES_EPILOG)(traces)


@app.command(epilog="Example:  belie csq run local/smollm2-135m --preset quick")
def run(
    context: typer.Context,
    models: o.Models,
    preset: Annotated[
        str | None, typer.Option(help="quick (n = 3,5,10,20 × 100; the default) or paper (7 × 1,000).")
    ] = None,
    n: Annotated[
        str | None, typer.Option("--n", help="Chain lengths, such as 3,5,10.", rich_help_panel=o.DESIGN)
    ] = None,
    chains: Annotated[int | None, typer.Option(help="Chains at each n.", rich_help_panel=o.DESIGN)] = None,
    world: o.World = "contacts",
    k: o.K = 2,
    separate: o.Separate = False,
    phrasing: o.Phrasing = "0",
    treatment: o.Treatment = "none",
    treated: o.Treated = "first",
    order: o.Order = "hard_first",
    style: o.Style = "word",
    seed: o.Seed = 0,
    sample: o.Sample = False,
    draws: o.Draws = None,
    temperature: o.Temperature = 1.0,
    max_tokens: o.MaxTokens = None,
    followups: o.Followups = "wrong",
    half_width: o.HalfWidth = None,
    stop_on: o.StopOn = "overall",
    max_items: o.MaxItems = None,
    base_url: o.BaseUrl = None,
    concurrency: o.Concurrency = None,
    timeout: o.Timeout = None,
    max_time: o.MaxTime = None,
    max_cost: o.MaxCost = None,
    price: o.Price = None,
    batch_tokens: o.BatchTokens = None,
    threads: o.Threads = None,
    device: o.Device = None,
    engine: cluster.Engine = None,
    address: cluster.Address = None,
    shards: cluster.Shards = None,
    gpus_per_worker: cluster.Gpus = 0.0,
    out: o.Out = None,
    resume: o.Resume = None,
    json: o.Json = False,
) -> None:
    """Ask a model, and print how its errors lean and whether it knew better.

    With --resume, options that are not named are those of the run. With --half-width, chains are added where they
    narrow the intervals most until that is reached; --chains is then the pilot at each n (default 100). A finished run
    goes on to a narrower one with --resume RUN --half-width. With --engine ray several models may be named: each is a
    run in the folder. --world all is the experiment "worlds" (belie csq experiment).
    """
    if resume is not None and out not in (None, resume):
        raise BadInput("--resume continues in the folder of the run: leave --out away.")
    if world == "all":
        all_worlds(context)
        return
    cluster.check_engine(engine, resume or out, models, shards=shards, gpus_per_worker=gpus_per_worker)
    kept_chains: int | tuple[int, ...] | None = None
    if resume is not None and len(models) == 1:
        with cluster.readable(resume) as folder:
            kept = o.kept_options(context, folder)
        n, kept_chains = kept.get("n", n), kept.get("chains")
        half_width, stop_on = kept.get("half_width", half_width), kept.get("stop_on", stop_on)
        max_items = kept.get("max_items", max_items)
        world, k, separate = kept.get("world", world), kept.get("k", k), kept.get("separate", separate)
        phrasing, seed = kept.get("phrasing", phrasing), kept.get("seed", seed)
        treatment, treated = kept.get("treatment", treatment), kept.get("treated", treated)
        order, style = kept.get("order", order), kept.get("style", style)
        sample, draws, followups = (
            kept.get("sample", sample),
            kept.get("draws", draws),
            kept.get("followups", followups),
        )
        temperature, max_tokens = kept.get("temperature", temperature), kept.get("max_tokens", max_tokens)
    design = o.design_of(
        world,
        k,
        separate,
        phrasing,
        seed,
        preset,
        n,
        chains if chains is not None else kept_chains,
        treatment=treatment,
        treated=treated,
        order=order,
        style=style,
    )
    wanted = o.wanted_of(half_width, stop_on, max_items, chains)
    options = Options(
        sample or bool(draws and draws > 1),
        temperature,
        max_tokens,
        seed,
        base_url,
        concurrency,
        timeout,
        max_time,
        max_cost,
        o.price_of(price),
        batch_tokens,
        threads,
        device,
    )
    options, note = o.fitted(options, design, models)
    if note is not None:
        say(note)
    asking = o.asking_of(options, draws, followups)
    if engine is not None:
        if wanted is not None:
            raise BadInput("--half-width decides round after round, in one process: it can't be had with --engine.")
        cluster.run_csq_in_shards(
            engine,
            models,
            design,
            options,
            asking,
            out=out,
            resume=resume,
            shards=shards,
            address=address,
            gpus=gpus_per_worker,
            json=json,
        )
        return
    run_csq(models[0], design, options, asking, wanted=wanted, out=out, resume=resume, json=json)


app.command("shard", epilog="Example:  belie csq shard runs/my-run --index 0 --count 16")(cluster.shard)
app.command("models", epilog=population.EPILOG)(population.models)
app.command("merge", epilog="Example:  belie csq merge runs/my-run")(cluster.merge)


@app.command(epilog="Example:  belie csq show runs/csq-smollm2-135m-20261130-101500 --rule linear")
def show(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    rule: Annotated[str, typer.Option(help="How n is integrated: log or linear (METHOD §1.4).")] = "log",
    hold: Annotated[bool, typer.Option(help="Hold the first value from n = 2 on (log rule).")] = True,
    invalid: Annotated[str, typer.Option(help="Invalid answers: leave_out, or wrong.")] = "leave_out",
    method: Annotated[str, typer.Option(help="Intervals: bca or percentile.")] = "bca",
    t: Annotated[
        float | None, typer.Option("--t", help="Where the integral over n ends (default: the largest n).")
    ] = None,
    skip_damaged: o.SkipDamaged = False,
    json: o.Json = False,
) -> None:
    """Score a run again and print it. Asks nothing."""
    with cluster.readable(run) as path:
        folder = RunFolder.open(path)
        for notice in folder.notices:
            say(notice)
        scores: Scores = score_run(
            folder, skip_damaged=skip_damaged, rule=rule, hold=hold, invalid=invalid, method=method, t=t
        )
        show_scores(folder, scores, json=json, place=url_of(run))


@app.command(epilog="Example:  belie csq questions --world contacts --n 5 --index 0")
def questions(
    n: Annotated[int, typer.Option("--n", help="Chain length.")] = 5,
    index: Annotated[int, typer.Option(help="Number of the chain, from 0.")] = 0,
    category: Annotated[str | None, typer.Option(help=f"Only one of: {', '.join(CATEGORIES)}.")] = None,
    world: o.World = "contacts",
    k: o.K = 2,
    separate: o.Separate = False,
    phrasing: o.Phrasing = "0",
    treatment: o.Treatment = "none",
    treated: o.Treated = "first",
    order: o.Order = "hard_first",
    style: o.Style = "word",
    seed: o.Seed = 0,
    json: o.Json = False,
) -> None:
    """Print the very text that is asked, with what is true."""
    if index < 0:
        raise BadInput(f"--index {index}: chains are numbered from 0.")
    if category is not None and category not in CATEGORIES:
        raise BadInput(f"There is no category {category!r}. Categories: {', '.join(CATEGORIES)}.")
    design = o.design_of(
        world,
        k,
        separate,
        phrasing,
        seed,
        None,
        str(n),
        index + 1,
        treatment=treatment,
        treated=treated,
        order=order,
        style=style,
    )
    items = [i for i in chain_items(design.variant, n, seed, index) if category in (None, i.category)]
    if json:
        from dataclasses import asdict

        print_json([asdict(item) for item in items])
        return
    for item in items:
        out.rule(Text(f"{item.id}   truth: {'Yes' if item.truth else 'No'}"), align="left")
        out.print(Text(item.question), soft_wrap=True)
        if item.followup:
            then = "The hard question" if item.order == "easy_first" else "Follow-up"
            out.print(Text(f"\n{then}, in the same conversation:", style="dim"))
            out.print(Text(item.followup), soft_wrap=True)
        out.print()
