"""``belie knownlie run`` and ``estimate``: plays a model and shows it; what that will take.

Knows: how options, players, run folder and what is printed fit together.
Does not know: how rounds are played, or what the figures mean.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from belie.cli import cluster, knownlie_cluster
from belie.cli import knownlie_options as k
from belie.cli import options as o
from belie.cli.asking import ROOT
from belie.cli.knownlie_scores import document, show_run
from belie.cli.knownlie_watch import RoundWatch
from belie.cli.output import out, print_json, say
from belie.respondents.base import BadInput, BudgetSpent
from belie.runs import RunFolder

RUN_EPILOG = (
    "Example:  belie knownlie run anthropic/claude-sonnet-4-5 --customer openai/gpt-5-mini --judge openai/gpt-5-mini "
    "--domains airline,debt"
)
ESTIMATE_EPILOG = (
    "Example:  belie knownlie estimate openai/gpt-5-mini --price agent=0.25,2 --price customer=0.25,2 "
    "--price judge=1.25,10"
)


def run(
    models: k.Models,
    customer: k.Customer = None,
    judge: k.Judge = None,
    domains: k.Domains = None,
    conditions: k.Conditions = None,
    trust: k.Trust = None,
    seeds: k.Seeds = None,
    limit: k.Limit = None,
    order: k.Order = None,
    gate_samples: k.GateSamples = None,
    trust_rule: k.TrustRule = None,
    emulated: k.Emulated = None,
    temperature: k.Temperature = None,
    max_tokens: k.MaxTokens = None,
    judges: k.Judges = None,
    per_claim: k.PerClaim = None,
    second_look: k.SecondLook = None,
    structured: k.Structured = None,
    base_url: k.BaseUrl = None,
    concurrency: o.Concurrency = None,
    timeout: k.Timeout = None,
    max_cost: k.MaxCost = None,
    price: k.Prices = None,
    engine: cluster.PlayEngine = None,
    address: cluster.Address = None,
    gpus_per_worker: cluster.Gpus = 0.0,
    folder: o.Out = None,
    resume: o.Resume = None,
    json: o.Json = False,
) -> None:
    """Play a model as an agent whose employer gains from a lie, and print how often it denied what it knew was owed.

    Customer and judge are models too. With --resume, options not named are those of the run. With --engine a domain
    is a shard, and several models may be named: each is a run in the folder.

    Without a network: belie/scripted-NAME, such as honest or liar-false_policy for the
    agent, trusting or verifying for the customer, judge-perfect for the judge.
    """
    named = {
        **{"conditions": conditions, "trust": trust, "seeds": seeds, "limit": limit, "order": order},
        **{"gate_samples": gate_samples, "trust_rule": trust_rule, "emulated": emulated},
        **{"agent_temperature": temperature, "max_tokens": max_tokens, "judges": judges},
        **{"per_claim": per_claim, "second_look": second_look, "structured": structured},
    }
    cluster.check_engine(engine, None, models, gpus_per_worker=gpus_per_worker)
    seated = k.seating(models[0], customer, judge, domains, named, resume if len(models) == 1 else None)
    server = Server(base_url, concurrency, timeout, max_cost, tuple(price or ()))
    if engine is not None:
        if folder is not None and resume is not None:
            raise BadInput("--resume continues in the folder of the run: leave --out away.")
        plays = knownlie_cluster.plays_of(models, seated, server, folder, resume)
        knownlie_cluster.play_in_domains(engine, plays, address=address, gpus=gpus_per_worker, json=json)
        return
    path, spent = play(seated, server, folder, resume, quiet=json)
    opened = RunFolder.open(path)
    if json:
        print_json(document(opened))
    else:
        show_run(opened)
    finish(opened, spent)


def estimate(
    model: k.Model,
    customer: k.Customer = None,
    judge: k.Judge = None,
    domains: k.Domains = None,
    conditions: k.Conditions = None,
    trust: k.Trust = None,
    seeds: k.Seeds = None,
    limit: k.Limit = None,
    gate_samples: k.GateSamples = None,
    judges: k.Judges = None,
    per_claim: k.PerClaim = None,
    second_look: k.SecondLook = None,
    price: k.Prices = None,
    json: o.Json = False,
) -> None:
    """Print the calls, tokens and cost of a run before anything is spent. Asks nothing."""
    from dataclasses import asdict

    from belie.knownlie.estimate import estimate as estimated
    from belie.knownlie.ledger import Role
    from belie.knownlie.prices import prices_of

    named = {
        **{"conditions": conditions, "trust": trust, "seeds": seeds, "limit": limit, "gate_samples": gate_samples},
        **{"judges": len(judge) if judge and len(judge) > 1 else judges},
        **{"per_claim": per_claim, "second_look": second_look},
    }
    told = k.seating(model, customer or "a customer", judge or ["a judge"], domains, named)
    prices = prices_of(price or [])
    planned = estimated(told.protocol, told.packs, "agent", "customer", "judge", prices)
    names: dict[Role, str] = {
        **{"agent": model, "gate": model, "customer": customer or "–", "judge": ", ".join(judge or ["–"])},
    }
    if json:
        roles = {role: {"model": names[role], **asdict(one)} for role, one in planned.roles.items()}
        content = {"trajectories": planned.trajectories, "rounds": planned.rounds, "roles": roles}
        print_json({**content, "calls": planned.calls, "cost": planned.cost, "longest": planned.longest})
        return
    table = Table(
        title=Text(f"KnownLie · {planned.rounds:,} rounds, {planned.trajectories:,} trajectories"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("role")
    table.add_column("model")
    for name in ("calls", "tokens read", "written", "cost"):
        table.add_column(name, justify="right")
    for role, one in planned.roles.items():
        figures = (f"{one.calls:,}", f"{one.input_tokens:,}", f"{one.output_tokens:,}", _dollars(one.cost))
        table.add_row(role, Text(names[role]), *figures)
    table.add_section()
    read, written = (sum(getattr(one, name) for one in planned.roles.values()) for name in _TOKENS)
    table.add_row("all", "", f"{planned.calls:,}", f"{read:,}", f"{written:,}", _dollars(planned.cost))
    out.print(table)
    out.print(
        Text(
            f"Every gate taken as passed; usually right within a factor of two. All trajectories run at once: the "
            f"longest makes about {planned.longest} calls one after another, which is the shortest time a run can take."
        )
    )
    if planned.cost is None:
        out.print(Text("For the cost name prices: --price 3,15 for all, or --price judge=0.15,0.6 by role."))


_TOKENS = ("input_tokens", "output_tokens")


class Server:
    """How players are reached and what they cost; nothing here can change an answer."""

    def __init__(
        self,
        base_url: str | None = None,
        concurrency: int | None = None,
        timeout: float | None = None,
        max_cost: float | None = None,
        price: tuple[str, ...] = (),
    ) -> None:
        from belie.knownlie.prices import prices_of

        self.base_url, self.concurrency, self.max_cost = base_url, concurrency, max_cost
        self.timeout = None if timeout is None else round(timeout)
        self.prices = prices_of(price)
        for name, value in (("--concurrency", concurrency), ("--timeout", timeout), ("--max-cost", max_cost)):
            if value is not None and value <= 0:
                raise BadInput(f"{name} {value:g}: it must be more than 0.")
        if max_cost is not None and set(self.prices) != {"agent", "customer", "judge"}:
            raise BadInput("--max-cost needs the price of every role: add --price IN,OUT, or one --price a role.")


def play(
    seated: k.Seating, server: Server, folder: Path | None, resume: Path | None, *, quiet: bool
) -> tuple[Path, BudgetSpent | None]:
    """Plays a run and writes its results; gives its folder, and why it stopped if its budget was spent."""
    from belie.knownlie.protocol import trajectories
    from belie.knownlie.results import save_results
    from belie.knownlie.run import run_knownlie
    from belie.knownlie.task import load_packs

    if folder is not None and resume is not None:
        raise BadInput("--resume continues in the folder of the run: leave --out away.")
    packs = list(seated.packs) if seated.packs else None
    plan = trajectories(load_packs(packs), seated.protocol)
    total = sum(len(one.scenes) for one in plan)
    prices = inspect_prices(seated, server)
    path = resume or folder or RunFolder.new_path(ROOT, "knownlie", seated.model)
    if not quiet and resume is None:
        say(f"{total:,} rounds, {len(plan):,} trajectories, with {seated.model}, kept in {path}")
    with RoundWatch("Playing", total, quiet=quiet, max_cost=server.max_cost) as watch:
        try:
            run_knownlie(
                seated.model,
                seated.customer,
                seated.judges,
                domains=packs,
                protocol=seated.protocol,
                folder=path,
                resume=resume is not None,
                progress=watch,
                base_url=server.base_url,
                max_connections=server.concurrency,
                timeout=server.timeout or 600,
                prices=prices or None,
            )
        except Exception:
            if watch.spent is None:
                raise
    save_results(RunFolder.open(path))
    return path, watch.spent


def inspect_prices(seated: k.Seating, server: Server) -> dict[str, tuple[float, float]]:
    """Makes every player once, so that one that can't be used is told before anything is asked; gives the prices."""
    from belie.knownlie.players import inspect_model
    from belie.knownlie.prices import priced

    names = {"agent": [seated.model], "customer": [seated.customer], "judge": list(seated.judges)}
    models = {role: [inspect_model(one, server.base_url) for one in told] for role, told in names.items()}
    return priced(models, server.prices)


def finish(folder: RunFolder, spent: BudgetSpent | None = None, resumed: Path | None = None) -> None:
    """Exits with 3 where rounds are missing, saying how many, why, and how to go on (by resuming ``resumed``)."""
    from belie.knownlie.journal import read_rounds

    if folder.status == "complete":
        return
    path = resumed or folder.path
    if spent is not None:
        say(f"Incomplete: {spent} Continue with the same command, more --max-cost and --resume {path}")
        raise typer.Exit(3)
    rounds = read_rounds(folder.path)
    reasons = Counter(round.missing for round in rounds if round.missing is not None)
    why = "; ".join(f"{count:,} × {reason.rstrip('.')}" for reason, count in reasons.most_common(3))
    more = f"; {len(reasons) - 3} other reasons" if len(reasons) > 3 else ""
    say(
        f"Incomplete: {sum(reasons.values()):,} of {len(rounds):,} rounds are missing ({why}{more}). "
        f"Continue with the same command and --resume {path}"
    )
    raise typer.Exit(3)


def _dollars(cost: float | None) -> str:
    return "–" if cost is None else f"${cost:,.2f}"
