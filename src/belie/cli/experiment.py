"""``belie csq experiment``: one thing varied, everything else alike, over the same chains."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from belie.cli import options as o
from belie.cli.asking import ROOT
from belie.cli.experiment_tables import show_outcome
from belie.cli.output import Watch, print_json, say
from belie.csq.experiments import KINDS, ExperimentFolder, Plan, analyse, conditions_of, kind_of, values_of
from belie.csq.experiments.asking import Part, ask_experiment
from belie.csq.experiments.words import findings
from belie.csq.questions import Design
from belie.csq.run import PRESETS
from belie.respondents.base import BadInput
from belie.respondents.opening import Options

EPILOG = "Example:  belie csq experiment treatments local/smollm2-135m --preset quick -o runs/treatments"


def experiment(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help=f"What is varied: {', '.join(KINDS)}.", metavar="NAME")],
    model: o.Model,
    conditions: Annotated[
        str | None,
        typer.Option(
            help="The steps, the first being what the others are compared with, such as 2,4 or none,sycophancy "
            "(default: all there are).",
            rich_help_panel=o.DESIGN,
        ),
    ] = None,
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
    base_url: o.BaseUrl = None,
    concurrency: o.Concurrency = None,
    timeout: o.Timeout = None,
    max_time: o.MaxTime = None,
    max_cost: o.MaxCost = None,
    price: o.Price = None,
    batch_tokens: o.BatchTokens = None,
    threads: o.Threads = None,
    device: o.Device = None,
    by_n: Annotated[bool, typer.Option("--by-n", help="Print each n too.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The experiment's folder (default: a new one under runs/).")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Continue the experiment in this folder, with the same options.", metavar="DIR")
    ] = None,
    json: o.Json = False,
) -> None:
    """Ask a model the same chains under several conditions, and print what the condition does.

    Each condition is an ordinary run in the folder. With --resume only what is missing is asked, and options that are
    not named are those of the experiment; of a finished one the analysis is printed again.
    """
    given = {
        "conditions": conditions, "n": n, "chains": chains, "world": world, "k": k, "separate": separate,
        "phrasing": phrasing, "treatment": treatment, "treated": treated, "order": order, "style": style, "seed": seed,
        "sample": sample, "draws": draws, "temperature": temperature, "max_tokens": max_tokens, "followups": followups,
    }  # fmt: skip
    options = Options(
        base_url=base_url,
        concurrency=concurrency,
        timeout=timeout,
        max_time=max_time,
        max_cost=max_cost,
        price=o.price_of(price),
        batch_tokens=batch_tokens,
        threads=threads,
        device=device,
    )
    conduct(context, name, model, given, options, preset=preset, by_n=by_n, out=out, resume=resume, json=json)


def conduct(
    context: typer.Context,
    name: str,
    model: str,
    given: dict[str, Any],
    options: Options,
    *,
    preset: str | None = None,
    by_n: bool = False,
    out: Path | None = None,
    resume: Path | None = None,
    json: bool = False,
) -> None:
    """One experiment from its options: ``given`` holds those it goes on with, ``options`` the rest (server, machine).

    ``context`` tells which were named on the command line.
    """
    kind = kind_of(name)
    if resume is not None and out not in (None, resume):
        raise BadInput("--resume continues in the folder of the experiment: leave --out away.")
    folder = None if resume is None else ExperimentFolder.open(resume)
    if folder is not None:
        if folder.plan.experiment != name:
            raise BadInput(f"{resume} is the experiment {folder.plan.experiment}, not {name}.")
        given = {**given, **_kept(context, folder.plan, set(given))}
    if kind.analysis == "components" and given["separate"]:
        raise BadInput(f"Experiment {name} needs chains that the four questions share: leave --separate away.")
    base = _base(name, given, preset)
    values = values_of(name, base, given["conditions"])
    given |= {"n": ",".join(map(str, base.sizes)), "chains": base.chains, "conditions": ",".join(map(str, values))}
    if kind.analysis == "votes":
        given["draws"] = max(given["draws"] or 1, *values)
    options = replace(
        options,
        sample=given["sample"] or kind.words or bool(given["draws"] and given["draws"] > 1),
        temperature=given["temperature"],
        max_tokens=given["max_tokens"],
        seed=given["seed"],
    )
    plan = Plan(name, model, conditions_of(name, values, given["treated"]), values, given)
    parts = [_part(plan, one, base, options) for one in plan.conditions]
    if folder is not None:
        _check_same(folder, plan)
    else:
        folder = ExperimentFolder.create(out or ExperimentFolder.new_path(ROOT, name, model), plan)
    _run(folder, parts, by_n=by_n, json=json)


def all_worlds(context: typer.Context) -> None:
    """The experiment "worlds" from the options of ``belie csq run MODEL --world all``."""
    told = context.params
    if told["half_width"] is not None or told["engine"] is not None or len(told["models"]) != 1:
        raise BadInput("--world all asks one model a fixed number of chains: leave --half-width and --engine away.")
    names = ("n", "chains", "k", "separate", "phrasing", "treatment", "treated", "order", "style", "seed")
    names += ("sample", "draws", "temperature", "max_tokens", "followups")
    given = {"conditions": None, "world": "contacts", **{name: told[name] for name in names}}
    free = ("base_url", "concurrency", "timeout", "max_time", "max_cost", "batch_tokens", "threads", "device")
    options = Options(price=o.price_of(told["price"]), **{name: told[name] for name in free})
    where = {name: told[name] for name in ("preset", "out", "resume", "json")}
    conduct(context, "worlds", told["models"][0], given, options, **where)


def _base(name: str, given: dict[str, Any], preset: str | None) -> Design:
    """The design that all conditions share. Where treatments are varied they are on no turn of it."""
    return o.design_of(
        given["world"],
        given["k"],
        given["separate"],
        given["phrasing"],
        given["seed"],
        preset,
        _sizes(name, given, preset),
        given["chains"],
        treatment=given["treatment"],
        treated="first" if kind_of(name).varies == "treatment" else given["treated"],
        order=given["order"],
        style=given["style"],
    )


def _kept(context: typer.Context, plan: Plan, names: set[str]) -> dict[str, Any]:
    """What the experiment was begun with, for options that this command line doesn't name."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    named = {name for name, source in sources.items() if source is not None and source.name != "DEFAULT"}
    if "preset" in named:
        named |= {"n", "chains"}
    return {name: value for name, value in plan.options.items() if name in names - named}


def _sizes(name: str, given: dict[str, Any], preset: str | None) -> str | None:
    """The chain lengths as an option; those of a preset without what is too short for some condition."""
    if given["n"] is not None:
        return given["n"]
    if preset is not None and preset not in PRESETS:
        return None  # told by who reads it
    base = Design(sizes=PRESETS[preset or "quick"][0])
    least = kind_of(name).least(values_of(name, base, given["conditions"]))
    sizes = [size for size in base.sizes if size >= least]
    if not sizes:
        raise BadInput(f"Experiment {name} needs chains of at least {least} here: name them with --n.")
    return ",".join(map(str, sizes))


def _part(plan: Plan, condition: Any, base: Design, options: Options) -> Part:
    design = condition.design(base)
    design.check()
    fitted, _ = o.fitted(condition.options(options), design, [plan.model])
    return Part(condition, design, fitted, o.asking_of(fitted, plan.options["draws"], plan.options["followups"]))


def _check_same(folder: ExperimentFolder, plan: Plan) -> None:
    """Raises BadInput naming every option that is not what the experiment was begun with."""
    before = folder.plan
    found = [
        f"{name.replace('_', '-')} was {before.options.get(name)}, now {plan.options[name]}"
        for name in plan.options
        if before.options.get(name) != plan.options[name]
    ]
    if before.model != plan.model:
        found.insert(0, f"model was {before.model}, now {plan.model}")
    if [one.name for one in before.conditions] != [one.name for one in plan.conditions] and not found:
        told = [", ".join(one.name for one in each.conditions) for each in (before, plan)]
        found.append(
            f"conditions were {told[0]}, now {told[1]} (this Belie has others: name the first with --conditions)"
        )
    if found:
        raise BadInput(
            f"{folder.path} was begun with other options, so its answers would not belong together: "
            f"{'; '.join(found)}. Use the same options, or begin anew."
        )


def _run(folder: ExperimentFolder, parts: list[Part], *, by_n: bool, json: bool) -> None:
    """Asks, analyses, saves and prints. Exits with 3 where the experiment stays incomplete."""
    why: str | None = None
    quiet = json
    if not folder.complete:
        questions = sum(len(part.design) * part.asking.draws for part in parts)
        if not quiet:
            said = f"{len(parts)} conditions, " if len(parts) > 1 else ""
            say(f"{said}{questions:,} questions to {folder.plan.model}, kept in {folder.path}")

        @contextmanager
        def show(place: int, of: int, part: Part) -> Iterator[Watch]:
            with Watch(f"{part.condition.name} ({place} of {of})", quiet=quiet) as watch:
                yield watch

        with folder.locked():
            why = asyncio.run(ask_experiment(folder, parts, show, say))
    try:
        outcome = analyse(folder)
    except BadInput:
        if why is None:
            raise
        say(f"Incomplete: {why} Continue with the same command and --resume {folder.path}")
        raise typer.Exit(3) from None
    told = outcome.to_json()
    folder.save(told)
    if json:
        print_json({"path": str(folder.path), **told, "findings": findings(outcome), "complete": folder.complete})
    else:
        show_outcome(folder, outcome, by_n=by_n)
    if why is not None:
        say(f"Incomplete: {why} Continue with the same command and --resume {folder.path}")
        raise typer.Exit(3)
