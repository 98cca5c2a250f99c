"""``belie csq plan``: what a wanted half-width will take, before it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from belie.cli import options as o
from belie.cli.output import out, print_json
from belie.csq.plan import Load, Plan, plan_profile, plan_run
from belie.csq.questions import PAPER_SIZES
from belie.numbers import number
from belie.respondents.base import BadInput
from belie.respondents.profiles import parse_profile
from belie.runs import RunFolder

EPILOG = "Example:  belie csq plan sim/guesser --half-width 0.02 --price 0.15,0.6"


def plan(
    source: Annotated[str, typer.Argument(help="A pilot run's folder, or sim/PROFILE.", metavar="RUN|sim/PROFILE")],
    half_width: Annotated[float, typer.Option("--half-width", help="The half-width that is wanted.")] = 0.02,
    stop_on: o.StopOn = "overall",
    max_items: Annotated[int | None, typer.Option("--max-items", help="Items at most.")] = None,
    n: Annotated[str | None, typer.Option("--n", help="Chain lengths (sim only; default: the paper's).")] = None,
    sample: o.Sample = False,
    price: o.Price = None,
    rate: Annotated[float | None, typer.Option(help="Answers a second (default: the pilot's own).")] = None,
    json: o.Json = False,
) -> None:
    """Print what a half-width takes (items, calls, tokens, cost, time), beside the paper's design. Asks nothing."""
    wanted = o.wanted_of(half_width, stop_on, max_items, None)
    assert wanted is not None
    if rate is not None and rate <= 0:
        raise BadInput(f"--rate {rate:g}: it must be above 0 answers a second.")
    prices = o.price_of(price)
    if source.startswith("sim/"):
        sizes = PAPER_SIZES if n is None else o.sizes_of(n)
        o.design_of("contacts", 2, False, "0", 0, None, ",".join(map(str, sizes)), 1)  # raises for what can't be asked
        wanted.check(sizes)
        profile = parse_profile(source.removeprefix("sim/"))
        made = plan_profile(profile, wanted, sizes, sample=sample, price=prices, rate=rate)
    else:
        if n is not None or sample:
            raise BadInput("--n and --sample go with sim/PROFILE; a run is planned as it was asked.")
        folder = RunFolder.open(Path(source))
        wanted.check(folder.manifest.options.get("sizes", ()))
        made = plan_run(folder, wanted, price=prices, rate=rate)
    if json:
        print_json(made.to_json())
    else:
        _show(made)


def _show(made: Plan) -> None:
    wanted, total, paper = made.wanted, made.loads[-1], made.paper[-1]
    what = "over all n" if wanted.stop_on == "overall" else "at each n"
    table = Table(
        title=Text(f"Plan · {made.source} · ρ and δ to ±{wanted.half_width:g} {what}"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for name in ("n", "chains", "items", "calls", "tokens", "cost", "time", "ρ ±", "δ ±"):
        table.add_column(name, justify="right")
    for load in made.loads[:-1]:
        table.add_row(str(load.n), *_cells(load))
    table.add_section()
    table.add_row("all", *_cells(total))
    table.add_row("paper", *_cells(paper))
    if made.paper_way is not None:
        table.add_row("same ±", *_cells(made.paper_way))
    out.print(table)
    notes = [
        "Calls count follow-ups. paper: its design, one sampled answer an item and 1,000 items a cell. same ±: one "
        "sampled answer an item and as many chains at every n, until it is as narrow."
    ]
    if made.asked:
        notes.append(f"{made.asked:,} of the items are asked already and count.")
    if not made.reached:
        notes.append(f"±{wanted.half_width:g} is not reached with these items.")
    for note in (*notes, *made.notes):
        out.print(Text(note, style="dim"))
    if made.paper_way is not None and made.reached:
        ratio = made.paper_way.calls / total.calls
        out.print(Text(f"\n{total.calls:,.0f} calls; one sampled answer an item would take {ratio:.1f} times as many."))


def _cells(load: Load) -> tuple[str, ...]:
    return (
        f"{load.chains:,}",
        f"{load.items:,}",
        f"{load.calls:,.0f}",
        f"{sum(load.tokens):,.0f}",
        "–" if load.cost is None else f"${load.cost:,.2f}",
        "–" if load.seconds is None else _time(load.seconds),
        number(load.half_width["rho"], 4),
        number(load.half_width["delta"], 4),
    )


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
