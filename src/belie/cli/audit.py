"""``belie audit``: the whole audit of one model in one command."""

from __future__ import annotations

from typing import Annotated

import typer

from belie.cli import options as o
from belie.cli.asking import run_csq
from belie.respondents.opening import Options

EPILOG = "Example:  belie audit local/smollm2-135m"


def audit(
    context: typer.Context,
    model: o.Model,
    preset: Annotated[str, typer.Option(help="quick (n = 3,5,10,20 × 100) or paper (7 × 1,000).")] = "quick",
    seed: o.Seed = 0,
    base_url: o.BaseUrl = None,
    concurrency: o.Concurrency = None,
    max_cost: o.MaxCost = None,
    price: o.Price = None,
    out: o.Out = None,
    resume: o.Resume = None,
    json: o.Json = False,
) -> None:
    """Audit a model: CSQ now; KnownLie as soon as it can judge what was said."""
    n = chains = None
    if resume is not None:
        kept = o.kept_options(context, resume)
        n, chains, seed = kept.get("n"), kept.get("chains"), kept.get("seed", seed)
    design = o.design_of("contacts", 2, False, "0", seed, preset, n, chains)
    options = Options(seed=seed, base_url=base_url, concurrency=concurrency, max_cost=max_cost, price=o.price_of(price))
    run_csq(model, design, options, o.asking_of(options, None, "wrong"), out=out, resume=resume, json=json)
