"""``belie csq embed``: hidden states before an answer, and whether they tell a contradiction from a plain error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from belie.cli import options as o
from belie.cli.asking import ask_csq
from belie.cli.output import Watch, interval, out, print_json, say, waiting
from belie.csq.embedding.words import told
from belie.numbers import number
from belie.respondents.base import BadInput
from belie.respondents.opening import Options
from belie.runs import RunFolder

EPILOG = "Example:  belie csq embed local/smollm2-135m --run runs/csq-smollm2-135m-20261130-101500"


#: Items of each class at most: the tests of N items hold a few matrices of N × N.
_MOST = 2000
_DESIGN = ("preset", "n", "chains", "world", "k", "phrasing")


def embed(
    context: typer.Context,
    model: Annotated[str, typer.Argument(help="Open weights: local/NAME.", metavar="local/NAME")],
    run: Annotated[
        Path | None, typer.Option(help="A finished run of this model (default: a new one is asked).")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="quick or paper, for a new run.", rich_help_panel=o.DESIGN)] = None,
    n: Annotated[str | None, typer.Option("--n", help="Chain lengths, such as 3,5.", rich_help_panel=o.DESIGN)] = None,
    chains: Annotated[int | None, typer.Option(help="Chains at each n.", rich_help_panel=o.DESIGN)] = None,
    world: o.World = "contacts",
    k: o.K = 2,
    phrasing: o.Phrasing = "0",
    seed: o.Seed = 0,
    most: Annotated[int, typer.Option(help="Items of each class at most.")] = 400,
    permutations: Annotated[int, typer.Option(help="Permutations of each test.")] = 2000,
    batch_tokens: o.BatchTokens = None,
    threads: o.Threads = None,
    device: o.Device = None,
    json: o.Json = False,
) -> None:
    """Read the states before the answers layer by layer, and test at equal n what they tell.

    The states are kept in the run's folder (states-*.npz, float16) and read once; states.json holds the tests.
    """
    if not model.startswith("local/"):
        raise BadInput(f"{model}: hidden states need open weights in this process, so a model local/NAME.")
    if not 1 <= most <= _MOST:
        raise BadInput(f"--most {most}: it must lie in 1 … {_MOST:,}.")
    if permutations < 99:
        raise BadInput(f"--permutations {permutations}: at least 99, or no p-value can be small.")
    try:
        from belie.csq.embedding.capture import Reader
        from belie.csq.embedding.study import check, study
    except ModuleNotFoundError as missing:
        raise BadInput(f"local/… needs {missing.name}, which is not installed: pip install 'belie[local]'.") from None
    if run is None:
        design = o.design_of(world, k, False, phrasing, seed, preset, n, chains)
        options = Options(seed=seed, batch_tokens=batch_tokens, threads=threads, device=device)
        path, why = ask_csq(model, design, options, o.asking_of(options, None, "wrong"), quiet=json)
        if why is not None:
            say(f"The run is incomplete: {why} Its states are read as far as it goes.")
        run = path
    else:
        sources = {name: context.get_parameter_source(name) for name in _DESIGN}
        named = [f"--{name}" for name, source in sources.items() if source is not None and source.name != "DEFAULT"]
        if named:
            raise BadInput(f"--run names what was asked: leave {', '.join(named)} away.")
    folder = RunFolder.open(run)
    check(folder)
    if folder.manifest.respondent != model:
        raise BadInput(f"{run} was answered by {folder.manifest.respondent}, not by {model}: name the same model.")
    asked = folder.manifest.options
    thinking = not asked.get("exact") and (asked.get("max_tokens") or 1) > 1

    def reader() -> Reader:
        with waiting(f"Opening {model} …", quiet=json):
            return Reader(model, thinking=thinking, device=device, batch_tokens=batch_tokens, threads=threads)

    with Watch("Reading states", quiet=json) as watch:
        made = study(
            folder,
            reader,
            most=most,
            permutations=permutations,
            seed=seed,
            watch=watch,
            tell=lambda text: None if json else say(text),
        )
    if json:
        print_json({"run": str(run), **made})
    else:
        _show(run, made)


def _show(run: Path, made: Mapping[str, Any]) -> None:
    counts = Table(title=Text(f"Items by class · {made['respondent']}"), title_justify="left", box=box.SIMPLE_HEAD)
    for head in ("n", "category", "honest", "contradiction", "error"):
        counts.add_column(head, justify="left" if head == "category" else "right")
    for row in made["items"]:
        counts.add_row(str(row["n"]), row["category"], str(row["honest"]), str(row["contradiction"]), str(row["error"]))
    out.print(counts)
    out.print(
        Text(
            f"Classes by {made['classes_by']}. AUROC over pairs of equal n and category (0.5: tells nothing), out of "
            f"fold, with 95% intervals over chains; p from {made['options']['permutations']:,} permutations, Holm over "
            "layers.",
            style="dim",
        )
    )
    for one in made["comparisons"]:
        out.print()
        out.print(Text(told(one), style="" if one["expected"] else "bold"))
        if not one["layers"]:
            continue
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for head in ("layer", "AUROC", "interval", "p", "p (Holm)"):
            table.add_column(head, justify="right")
        for row in one["layers"]:
            table.add_row(
                str(row["layer"]),
                number(row["auroc"]),
                interval(row["low"], row["high"]),
                number(row["p"], 4),
                number(row["p_holm"], 4),
            )
        out.print(table)
    out.print(Text(f"Results: {run}  (states.json, states-*.npz; in the report: belie report {run})"))
