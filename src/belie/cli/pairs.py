"""``belie pairs``: ask own yes/no questions, check a file of them, make new ones of the shipped kinds.

Knows: options, and what is printed.
Does not know: the format (`belie.pairs.file`), what makes a set sound (`belie.pairs.validation`).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from belie.cli import options as o
from belie.cli.asking import run_csq
from belie.cli.output import out, print_json, say
from belie.pairs.file import Pair, read_pairs
from belie.pairs.making import SHIPPED_PAIRS, make_set
from belie.pairs.validation import TRUE, examine
from belie.respondents.base import BadInput
from belie.respondents.opening import Options
from belie.runs import RunFolder, files

app = typer.Typer(
    help="Own yes/no questions in pairs of twins: asked, scored, reported and gated as CSQ's are.",
    epilog="Example:  belie pairs run arithmetic local/smollm2-135m",
    no_args_is_help=True,
)

Pairs = Annotated[str, typer.Argument(help="arithmetic, programs, or a .jsonl file.", metavar="PAIRS")]


@app.command(epilog="Example:  belie pairs run arithmetic local/smollm2-135m --limit 20")
def run(
    context: typer.Context,
    pairs: Pairs,
    model: o.Model,
    limit: Annotated[int | None, typer.Option(help="At most so many pairs of each difficulty.")] = None,
    seed: Annotated[int, typer.Option(help="Decides the draws where answers are drawn.", rich_help_panel=o.ASK)] = 0,
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
    out: o.Out = None,
    resume: o.Resume = None,
    json: o.Json = False,
) -> None:
    """Ask a model every question of a file, and print how its errors lean and whether it knew better.

    The run is one of CSQ's: belie csq show, belie report, belie compare and belie gate read it. With --resume, options
    that are not named are those of the run.
    """
    if resume is not None and out not in (None, resume):
        raise BadInput("--resume continues in the folder of the run: leave --out away.")
    kept: dict[str, Any] = {}
    if resume is not None:
        stored = RunFolder.open(resume).manifest.options
        if stored.get("pairs") is None:
            raise BadInput(f"{resume} asked chains, not own pairs: continue it with belie csq run.")
        kept = {**o.kept_options(context, resume), **_kept(context, stored)}
    seed = kept.get("seed", seed)
    asked = read_pairs(pairs, kept.get("limit", limit), seed)
    findings = examine(asked)
    if findings.faults:
        raise BadInput(f"{asked.path}:{findings.faults[0]} (belie pairs validate {pairs} tells all.)")
    for warning in findings.warnings[:3]:
        say(f"{asked.path}:{warning}")
    draws = kept.get("draws", draws)
    options = Options(
        kept.get("sample", sample) or bool(draws and draws > 1),
        kept.get("temperature", temperature),
        kept.get("max_tokens", max_tokens),
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
    asking = o.asking_of(options, draws, kept.get("followups", followups))
    run_csq(model, asked, options, asking, out=out, resume=resume, json=json)


def _kept(context: typer.Context, stored: Mapping[str, Any]) -> dict[str, Any]:
    source = context.get_parameter_source("limit")
    return {"limit": stored.get("limit")} if source is not None and source.name == "DEFAULT" else {}


@app.command(epilog="Example:  belie pairs validate my-pairs.jsonl --checker my_checker.py:truth")
def validate(
    pairs: Pairs,
    checker: Annotated[
        str | None,
        typer.Option(
            help="A Python function that tells what is true: FILE.py:NAME, called with a pair, giving {'yes': True, …}."
        ),
    ] = None,
    json: o.Json = False,
) -> None:
    """Check a file: format, truth values (where there is a checker), balance. Exit code 2 where it is not usable."""
    asked = read_pairs(pairs)
    found = examine(asked, None if checker is None else _checker(checker))
    if json:
        print_json(
            {
                "pairs": asked.path,
                "usable": not found.faults,
                "difficulties": dict(zip(map(str, asked.sizes), asked.counts, strict=True)),
                "checked": found.checked,
                "questions": found.questions,
                "faults": [str(fault) for fault in found.faults],
                "warnings": [str(fault) for fault in found.warnings],
            }
        )
    else:
        for fault in found.faults:
            out.print(Text(f"{asked.path}:{fault}"), soft_wrap=True)
        for fault in found.warnings:
            out.print(Text(f"{asked.path}:{fault} (warning)", style="dim"), soft_wrap=True)
        spread = ", ".join(
            f"{count} of difficulty {size}" for size, count in zip(asked.sizes, asked.counts, strict=True)
        )
        state = "not usable" if found.faults else "sound"
        out.print(
            Text(
                f"{asked.path}: {state}, {len(asked.pairs)} pairs ({spread}); truth recomputed of {found.checked:,} of "
                f"{found.questions:,} questions; {len(found.faults)} faults, {len(found.warnings)} warnings"
            ),
            soft_wrap=True,
        )
    if found.faults:
        raise typer.Exit(2)


@app.command(epilog="Example:  belie pairs make programs --seed 7 -o my-programs.jsonl")
def make(
    kind: Annotated[str, typer.Argument(help="arithmetic or programs.")],
    out_: Annotated[Path, typer.Option("--out", "-o", help="The file: a new one.", metavar="FILE.jsonl")],
    per: Annotated[int, typer.Option(help="Pairs of each difficulty.")] = SHIPPED_PAIRS,
    seed: Annotated[int, typer.Option(help="Decides the pairs; 0 makes the shipped ones.")] = 1,
) -> None:
    """Write new pairs of a shipped kind, which no model has seen."""
    if out_.exists():
        raise BadInput(f"{out_} is there already: name a new file.")
    if out_.suffix != ".jsonl":
        raise BadInput(f"{out_}: a file of pairs ends in .jsonl.")
    files.replace(out_, make_set(kind, per, seed).encode())
    say(f"Written: {out_}. Next: belie pairs run {out_} MODEL")


def _checker(told: str) -> Callable[[Pair], Mapping[str, bool]]:
    """The user's own function, from ``FILE.py:NAME``. Raises BadInput."""
    path, _, name = told.rpartition(":")
    if not path.endswith(".py") or not Path(path).exists():
        raise BadInput(f"--checker takes FILE.py:NAME with a file that exists, not {told!r}.")
    spec = importlib.util.spec_from_file_location("belie_checker", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadInput(f"{path} can't be loaded ({type(error).__name__}: {error}).") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise BadInput(f"{path} holds no function {name!r}.")

    def check(pair: Pair) -> dict[str, bool]:
        try:
            answer: Any = function(pair.model_dump())
            return {key: bool(answer[key]) for key in TRUE if key in answer}
        except Exception as error:
            raise ValueError(f"{name} raised {type(error).__name__}: {error}") from error

    return check
