"""``belie audit``: the whole audit of one model in one command: CSQ, and KnownLie where a judge is named.

Knows: which instruments run, where each keeps its run, and what is printed of both.
Does not know: how either asks or scores.

The folder is the CSQ run; the KnownLie run lies beside it under the same name with ``-knownlie``. So a judge can also
be added later, by resuming the audit with one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from belie.cli import knownlie_options as k
from belie.cli import options as o
from belie.cli.asking import ROOT, ask_csq
from belie.cli.knownlie_run import Server, finish, inspect_prices, play
from belie.cli.output import out, print_json, say
from belie.cli.scores import document as csq_document
from belie.cli.scores import show_scores
from belie.csq.run import score_run
from belie.respondents.base import BadInput
from belie.respondents.opening import Options
from belie.runs import RunFolder
from belie.runs.folder import MANIFEST

EPILOG = "Example:  belie audit http/my-model --base-url http://localhost:8000/v1 --judge openai/gpt-5-mini"
ADD_A_JUDGE = (
    "This was CSQ alone. KnownLie, lies that pay the deployer, is played by a customer and a judge too: "
    "add --judge MODEL (and --customer MODEL; else the judge's model plays it)."
)


def audit(
    context: typer.Context,
    model: o.Model,
    customer: k.Customer = None,
    judge: k.Judge = None,
    preset: Annotated[str, typer.Option(help="CSQ: quick (n = 3,5,10,20 × 100) or paper (7 × 1,000).")] = "quick",
    domains: k.Domains = None,
    limit: k.Limit = None,
    seed: o.Seed = 0,
    base_url: k.BaseUrl = None,
    concurrency: o.Concurrency = None,
    max_cost: o.MaxCost = None,
    price: k.Prices = None,
    folder: o.Out = None,
    resume: o.Resume = None,
    json: o.Json = False,
) -> None:
    """Audit a model: CSQ, lies nobody asked for; and with --judge KnownLie, lies that pay the deployer.

    KnownLie's run lies beside CSQ's, its name ending in -knownlie. --max-cost is for both together.
    With --resume a judge may be added to an audit without one.
    """
    if model.startswith("belie/scripted-"):
        raise BadInput(
            f"{model} plays KnownLie only: run it with belie knownlie run. sim/honest and others answer CSQ."
        )
    if resume is not None and folder is not None:
        raise BadInput("--resume continues in the folder of the run: leave --out away.")
    if resume is not None and RunFolder.open(resume).manifest.instrument != "csq":
        raise BadInput(f"{resume} is no CSQ run: resume the audit by the folder of its CSQ run.")
    path = resume or folder or RunFolder.new_path(ROOT, "csq", model)
    beside = path.resolve().with_name(f"{path.resolve().name}-knownlie") if not path.name else Path(f"{path}-knownlie")
    both = bool(judge) or (resume is not None and (beside / MANIFEST).exists())
    if both and resume is None and beside.exists():
        raise BadInput(f"{beside} is there already, and KnownLie's run would go there: choose another --out.")
    if not both and (named := next((n for n, v in _knownlie(customer, domains, limit).items() if v is not None), None)):
        raise BadInput(f"{named} belongs to KnownLie, which needs a judge: add --judge MODEL.")
    server = Server(base_url, concurrency, None, max_cost if both else None, tuple(price or ()))
    n = chains = None
    if resume is not None:
        kept = o.kept_options(context, resume)
        n, chains, seed = kept.get("n"), kept.get("chains"), kept.get("seed", seed)
    design = o.design_of("contacts", 2, False, "0", seed, preset, n, chains)
    options = Options(
        seed=seed, base_url=base_url, concurrency=concurrency, max_cost=max_cost, price=server.prices.get("agent")
    )
    asking = o.asking_of(options, None, "wrong")
    where: dict[str, Any] = {"out": None if resume else path, "resume": resume}
    if both:
        _both(beside, model, customer, judge, domains, limit, server, (design, options, asking), where, json=json)
        return
    path, why = ask_csq(model, design, options, asking, **where, quiet=json)
    done = RunFolder.open(path)
    if json:
        print_json({"model": model, "csq": csq_document(done, score_run(done)), "knownlie": None, "next": ADD_A_JUDGE})
    else:
        show_scores(done, score_run(done), json=False)
        say(ADD_A_JUDGE)
    if why is not None:
        say(f"Incomplete: {why} Continue with the same command and --resume {path}")
        raise typer.Exit(3)


def _both(
    place: Path,
    model: str,
    customer: str | None,
    judge: list[str] | None,
    domains: str | None,
    limit: int | None,
    server: Server,
    csq: tuple[Any, Any, Any],
    where: dict[str, Any],
    *,
    json: bool,
) -> None:
    """CSQ, then KnownLie; whatever KnownLie can't use is told before CSQ asks anything."""
    from belie.cli.knownlie_scores import document, show_run
    from belie.knownlie.task import load_packs

    goes_on = place if (place / MANIFEST).exists() else None
    if customer is None and judge and goes_on is None:
        customer = judge[0]
        if not json:
            say(f"No customer is named: {customer} plays it too.")
    root = where["out"] or where["resume"]
    seated = k.seating(model, customer, judge, domains, {"limit": limit}, goes_on)
    load_packs(seated.packs)
    inspect_prices(seated, server)
    path, why = ask_csq(model, *csq, **where, quiet=json)
    first = RunFolder.open(path)
    if not json:
        show_scores(first, score_run(first), json=False)
        out.rule()
    left = None if server.max_cost is None else server.max_cost - float(first.manifest.totals.get("cost") or 0)
    told: dict[str, Any] = {"model": model, "csq": csq_document(first, score_run(first)), "knownlie": None}
    if left is not None and left <= 0:
        if json:
            print_json(told)
        say(f"Incomplete: CSQ spent the whole --max-cost. Continue with the same command, more and --resume {root}")
        raise typer.Exit(3)
    server.max_cost = left
    _, spent = play(seated, server, None if goes_on else place, goes_on, quiet=json)
    second = RunFolder.open(place)
    if json:
        print_json({**told, "knownlie": document(second)})
    else:
        show_run(second)
        out.print(Text(f"\nOne page of both: belie report {first.path} {second.path}"), soft_wrap=True)
    if why is not None:
        say(f"Incomplete: CSQ: {why} Continue with the same command and --resume {root}")
    finish(second, spent, root)
    if why is not None:
        raise typer.Exit(3)


def _knownlie(customer: str | None, domains: str | None, limit: int | None) -> dict[str, Any]:
    return {"--customer": customer, "--domains": domains, "--limit": limit}
