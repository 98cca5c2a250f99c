"""``belie csq paraphrase``: phrasings written by a model, each checked, as a world file for all audited models.

Knows: the options, and how the outcome is shown.
Does not know: how a reply is checked (`belie.csq.paraphrase`).
"""

from __future__ import annotations

import asyncio
import json as json_
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from belie.cli import options as o
from belie.cli.output import Watch, out, print_json, say, waiting
from belie.csq.paraphrase import (
    Outcome,
    Replies,
    Wish,
    attempt_item,
    judged,
    make,
    next_attempt,
    replies_path,
    versions,
    write_world,
)
from belie.csq.world import load_world, world_hash
from belie.numbers import percent
from belie.respondents.base import BadInput
from belie.respondents.opening import Options, open_respondent
from belie.runs.files import replace

EPILOG = "Example:  belie csq paraphrase anthropic/NAME --world contacts --count 12 -o contacts-by-name.yaml"

#: A reply is as long as both messages; reasoning comes on top where a model shows any.
_MAX_TOKENS = 2048


def paraphrase(
    model: o.Model,
    file: Annotated[Path, typer.Option("--out", "-o", help="The world file to make, ending in .yaml.")],
    world: o.World = "contacts",
    count: Annotated[int, typer.Option(help="Phrasings wanted, at least 12.")] = 12,
    attempts: Annotated[int | None, typer.Option(help="Attempts at most (default: 10 for each phrasing).")] = None,
    seed: o.Seed = 0,
    temperature: o.Temperature = 1.0,
    max_tokens: Annotated[
        int, typer.Option(help="Longest reply, reasoning included.", rich_help_panel=o.ASK)
    ] = _MAX_TOKENS,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue: replies that are kept are not asked again.")
    ] = False,
    base_url: o.BaseUrl = None,
    concurrency: o.Concurrency = None,
    timeout: o.Timeout = None,
    max_time: o.MaxTime = None,
    max_cost: o.MaxCost = None,
    price: o.Price = None,
    threads: o.Threads = None,
    device: o.Device = None,
    json: o.Json = False,
) -> None:
    """Let a model word the questions anew, throw away what changes their meaning, and keep the rest as a world file.

    Then ask every model with it:  belie csq run MODEL --world FILE.yaml --phrasing mixed
    """
    if model.startswith("sim/"):
        raise BadInput(f"{model} has no words of its own: phrasings take a model that writes, such as http/NAME.")
    if file.suffix not in (".yaml", ".yml"):
        raise BadInput(f"-o {file}: a world file's name ends in .yaml.")
    wish = Wish(world, count, 10 * count if attempts is None else attempts, seed)
    wish.check()
    if file.exists() and not resume:
        raise BadInput(f"{file} is there already: continue with --resume, or choose another -o.")
    options = Options(
        sample=True,
        temperature=temperature,
        max_tokens=max_tokens,
        seed=seed,
        base_url=base_url,
        concurrency=concurrency,
        timeout=timeout,
        max_time=max_time,
        max_cost=max_cost,
        price=o.price_of(price),
        threads=threads,
        device=device,
    )
    head = {
        "model": model,
        "world": load_world(world).name,
        "world_sha256": world_hash(world),
        "seed": seed,
        "temperature": temperature,
        "max_tokens": max_tokens,
        "prompt_version": versions()["prompt"],
        "begun": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "belie": version("belie"),
    }
    with Replies(replies_path(file), head, resume=resume) as replies:
        outcome, provenance = asyncio.run(_ask(model, options, wish, replies, quiet=json))
        head = replies.head
    told = outcome.to_json() | {"by": head, "provenance": provenance, "stopped": outcome.stopped}
    told["file"] = str(file) if outcome.enough else None
    if outcome.enough:
        told["world"] = write_world(file, world, outcome.phrasings, _note(head, told)).name
    replace(file.with_suffix(".json"), (json_.dumps(told, indent=2, ensure_ascii=False) + "\n").encode())
    if json:
        print_json(told)
    else:
        _show(told, file)
    if not outcome.enough:
        say(
            f"Incomplete: {outcome.stopped} Continue with the same command and --resume, "
            "and with more --attempts where they are used up."
        )
        raise typer.Exit(3)


async def _ask(
    model: str, options: Options, wish: Wish, replies: Replies, *, quiet: bool
) -> tuple[Outcome, dict[str, Any]]:
    first = next_attempt(wish, replies)
    if first is None:  # nothing is asked, so nobody is needed
        return judged(wish, replies), {}
    with waiting(f"Opening {model} …", quiet=quiet):
        respondent = await open_respondent(model, options, attempt_item(wish, first))
    try:
        with Watch("Accepted", quiet=quiet) as watch:
            outcome = await make(respondent, wish, replies, watch)
        return outcome, respondent.provenance()
    finally:
        await respondent.close()


def _note(head: dict[str, Any], told: dict[str, Any]) -> dict[str, str]:
    reasons = ", ".join(f"{reason} {one['count']}" for reason, one in told["reasons"].items()) or "none"
    kept = ", ".join(f"{name} {number}" for name, number in told["versions"].items())
    return {
        "Origin": f"{head['world']}, SHA-256 {head['world_sha256']}",
        "Phrasings by": f"{head['model']}, temperature {head['temperature']}, seed {head['seed']}, {head['begun']}",
        "Replies": f"{told['replies']}, accepted {told['accepted']} (the first {told['wished']} are used)",
        "Rejected": f"{told['rejected']} ({reasons})",
        "Versions": f"belie {head['belie']}, {kept}",
    }


def _show(told: dict[str, Any], file: Path) -> None:
    share = percent(told["accepted"] / told["replies"] if told["replies"] else None)
    table = Table(
        title=Text(
            f"Paraphrases · {told['by']['model']} · {told['by']['world']} · {told['accepted']} of "
            f"{told['replies']} replies accepted ({share})"
        ),
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("Thrown away", no_wrap=True)
    table.add_column("", justify="right")
    table.add_column("Because", overflow="fold")
    table.add_column("For example", overflow="fold")
    for reason, one in told["reasons"].items():
        example = one["examples"][0]["detail"] or ""
        table.add_row(
            reason, str(one["count"]), one["meaning"], Text(example if len(example) <= 120 else f"{example[:120]}…")
        )
    out.print(table)
    for question in told["questions"]:
        out.print(Text(f"  {question}"), soft_wrap=True)
    out.print(
        Text(f"\nAll replies: {replies_path(file)}; counts and examples: {file.with_suffix('.json')}", style="dim")
    )
    if told["file"]:
        out.print(Text(f"{told['world']} is ready:  belie csq run MODEL --world {file} --phrasing mixed"))
