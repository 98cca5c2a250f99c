"""Options that several commands share, and how their text becomes values.

Knows: names, help texts and the parsing of lists.
Does not know: what the commands do with them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from belie.csq.asked import Asking
from belie.csq.questions import Design, Variant
from belie.csq.run import PRESETS
from belie.csq.stopping import STOP_ON, Wanted
from belie.csq.treatments import ORDERS, STYLES, TREATED, TREATMENTS
from belie.csq.world import world_names
from belie.respondents.base import BadInput
from belie.respondents.opening import Options
from belie.runs import RunFolder

ASK, DESIGN, SERVER, MACHINE = "Asking", "Questions", "Server", "Local models"
STOPPING = "Stopping"

Model = Annotated[
    str,
    typer.Argument(
        help="Who is asked: local/NAME, http/NAME, sim/PROFILE, or an Inspect AI model string.", metavar="MODEL"
    ),
]
Models = Annotated[
    list[str],
    typer.Argument(
        help="Who is asked: local/NAME, http/NAME, sim/PROFILE, or an Inspect AI model string. Several with --engine.",
        metavar="MODEL…",
    ),
]
World = Annotated[
    str, typer.Option(help=f"{', '.join(world_names())}, or a path to a world file.", rich_help_panel=DESIGN)
]
K = Annotated[int, typer.Option("--k", help="The follow-up spans n/k steps.", rich_help_panel=DESIGN)]
Separate = Annotated[
    bool,
    typer.Option("--separate", help="Draw each category's chains apart, as the paper does.", rich_help_panel=DESIGN),
]
Phrasing = Annotated[str, typer.Option(help="A phrasing's number, or mixed.", rich_help_panel=DESIGN)]
Treatment = Annotated[
    str,
    typer.Option(help=f"A line before the question: {', '.join(TREATMENTS)}.", rich_help_panel=DESIGN),
]
Treated = Annotated[
    str,
    typer.Option(
        help="Where that line stands: first, or both (before the second question too).", rich_help_panel=DESIGN
    ),
]
Order = Annotated[
    str,
    typer.Option(
        help="hard_first, or easy_first: the belief is asked for before the hard question.", rich_help_panel=DESIGN
    ),
]
Style = Annotated[
    str,
    typer.Option(
        help="How hard questions are answered: word, enumerate (the needed facts first), reason (think aloud first).",
        rich_help_panel=DESIGN,
    ),
]
Seed = Annotated[
    int, typer.Option(help="Decides the chains, and the draws where answers are drawn.", rich_help_panel=DESIGN)
]
Sample = Annotated[
    bool,
    typer.Option("--sample", help="Draw answers even where exact probabilities are to be had.", rich_help_panel=ASK),
]
Draws = Annotated[
    int | None, typer.Option(help="Answers drawn an item (default: 1); more imply --sample.", rich_help_panel=ASK)
]
Temperature = Annotated[float, typer.Option(help="Temperature of the answers.", rich_help_panel=ASK)]
MaxTokens = Annotated[int | None, typer.Option(help="Longest answer, reasoning included.", rich_help_panel=ASK)]
Followups = Annotated[
    str, typer.Option(help="wrong: after a wrong first answer; all: after any valid one.", rich_help_panel=ASK)
]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="Where an OpenAI-compatible server listens.", envvar="OPENAI_BASE_URL", rich_help_panel=SERVER),
]
Concurrency = Annotated[int | None, typer.Option(help="Calls in flight at most.", rich_help_panel=SERVER)]
Timeout = Annotated[float | None, typer.Option(help="Seconds for one call.", rich_help_panel=SERVER)]
MaxTime = Annotated[float | None, typer.Option(help="Seconds for the whole run.", rich_help_panel=SERVER)]
Price = Annotated[
    str | None,
    typer.Option(
        "--price", help="US dollars per million tokens: prompt,completion.", rich_help_panel=SERVER, metavar="IN,OUT"
    ),
]
MaxCost = Annotated[float | None, typer.Option(help="US dollars after which asking stops.", rich_help_panel=SERVER)]
BatchTokens = Annotated[int | None, typer.Option(help="Tokens a batch.", rich_help_panel=MACHINE)]
Threads = Annotated[int | None, typer.Option(help="Processor threads.", rich_help_panel=MACHINE)]
HalfWidth = Annotated[
    float | None,
    typer.Option(
        "--half-width",
        help="Ask until the intervals of ρ and δ are no wider than ± this, such as 0.02.",
        rich_help_panel=STOPPING,
    ),
]
StopOn = Annotated[
    str,
    typer.Option(
        "--stop-on", help="What must be narrow: overall (ρ and δ over all n), or each n.", rich_help_panel=STOPPING
    ),
]
MaxItems = Annotated[
    int | None,
    typer.Option(
        "--max-items", help="Items at most (default: the paper's 1,000 a cell on average).", rich_help_panel=STOPPING
    ),
]
Device = Annotated[str | None, typer.Option(help="cpu, cuda or mps.", rich_help_panel=MACHINE)]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="The run's folder (default: a new one under runs/).")]
Resume = Annotated[
    Path | None, typer.Option(help="Continue the run in this folder, with the same options.", metavar="RUN")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
SkipDamaged = Annotated[bool, typer.Option("--skip-damaged", help="Leave damaged journal lines out.")]


def price_of(text: str | None) -> tuple[float, float] | None:
    """``"0.15,0.6"`` as two prices. Raises BadInput."""
    if text is None:
        return None
    try:
        prompt, completion = (float(part) for part in text.split(","))
    except ValueError:
        raise BadInput(f"--price takes two numbers with a comma between, such as 0.15,0.6; not {text!r}.") from None
    return prompt, completion


def sizes_of(text: str) -> tuple[int, ...]:
    """``"3,5,10"`` as numbers. Raises BadInput naming what is not one."""
    sizes = []
    for part in text.split(","):
        if not part.strip().isdecimal():
            raise BadInput(f"--n takes whole numbers with commas between, such as 3,5,10; {part.strip()!r} is none.")
        sizes.append(int(part))
    return tuple(sizes)


def design_of(
    world: str,
    k: int,
    separate: bool,
    phrasing: str,
    seed: int,
    preset: str | None,
    n: str | None,
    chains: int | tuple[int, ...] | None,
    *,
    treatment: str = "none",
    treated: str = "first",
    order: str = "hard_first",
    style: str = "word",
) -> Design:
    """A checked design from options. Raises BadInput for one that cannot be asked."""
    if preset is not None and preset not in PRESETS:
        raise BadInput(f"There is no preset {preset!r}. Presets: {', '.join(PRESETS)}.")
    sizes, count = PRESETS[preset or "quick"]
    if phrasing != "mixed" and not phrasing.isdecimal():
        raise BadInput(f"--phrasing takes a number or mixed, not {phrasing!r}.")
    which: int | Literal["mixed"] = "mixed" if phrasing == "mixed" else int(phrasing)
    for name, value, choices in (
        ("treatment", treatment, TREATMENTS),
        ("treated", treated, TREATED),
        ("order", order, ORDERS),
        ("style", style, STYLES),
    ):
        if value not in choices:
            raise BadInput(f"--{name} takes {', '.join(choices[:-1])} or {choices[-1]}, not {value!r}.")
    if world.endswith((".yaml", ".yml")):
        world = str(Path(world).resolve())  # a run must find its world from any folder
    design = Design(
        Variant(world, k, not separate, which, treatment, treated, order, style),  # type: ignore[arg-type]
        sizes_of(n) if n is not None else sizes,
        chains if chains is not None else count,
        seed,
    )
    design.check()
    return design


def wanted_of(half_width: float | None, stop_on: str, max_items: int | None, chains: int | None) -> Wanted | None:
    """The wanted half-width, None where none is. ``chains`` is the pilot. Raises BadInput for options out of range."""
    if half_width is None:
        if max_items is not None or stop_on != "overall":
            raise BadInput("--max-items and --stop-on go with --half-width: name the half-width that is wanted.")
        return None
    if stop_on not in STOP_ON:
        raise BadInput(f"--stop-on takes {' or '.join(STOP_ON)}, not {stop_on!r}.")
    wanted = Wanted(half_width, stop_on, max_items)  # type: ignore[arg-type]
    return wanted if chains is None else replace(wanted, pilot=chains)


def kept_options(context: typer.Context, run: Path) -> dict[str, Any]:
    """What a run was asked with, for the options that were not named on this command line and that it holds.

    A preset or a list of n that was named stands, so that a difference is found and told.
    """
    stored = RunFolder.open(run).manifest.options
    told = {
        "n": ",".join(map(str, stored.get("sizes", ()))),
        "chains": tuple(stored["chains"]) if isinstance(stored.get("chains"), list) else stored.get("chains"),
        "world": stored.get("world"),
        "k": stored.get("k"),
        "separate": not stored.get("matched"),
        "phrasing": str(stored.get("phrasing")),
        "treatment": stored.get("treatment", "none"),
        "treated": stored.get("treated", "first"),
        "order": stored.get("order", "hard_first"),
        "style": stored.get("style", "word"),
        "seed": stored.get("seed"),
        "sample": stored.get("sample"),
        "draws": stored.get("draws"),
        "followups": stored.get("followups"),
        "temperature": stored.get("temperature"),
        "max_tokens": stored.get("max_tokens"),
        "half_width": stored.get("half_width"),
        "stop_on": stored.get("stop_on") or "overall",
        "max_items": stored.get("max_items"),
    }
    sources = {name: context.get_parameter_source(name) for name in context.params}
    named = {name for name, source in sources.items() if source is not None and source.name != "DEFAULT"}
    if "preset" in named:
        named |= {"n", "chains"}
    return {name: value for name, value in told.items() if value is not None and name not in named}


#: Tokens that a local model may take for a hard question that is answered at length.
LONG_ANSWER = 1024


def fitted(options: Options, design: Design, models: Sequence[str]) -> tuple[Options, str | None]:
    """Options under which the design can be asked, and a note on what was changed (None: nothing).

    A design that is asked in words (`Variant.sampled`) samples. A local model, which otherwise draws one token, gets
    room for an answer at length where the style wants one; others have room enough by default.
    """
    variant = design.variant
    changes: dict[str, Any] = {}
    if variant.sampled and not options.sample:
        changes["sample"] = True
    local = any(model.startswith("local/") for model in models)
    if variant.style != "word" and options.max_tokens is None and local:
        changes["max_tokens"] = LONG_ANSWER
    if not changes:
        return options, None
    why = f"--style {variant.style}" if variant.style != "word" else f"--order {variant.order}"
    told = ["--sample"] * ("sample" in changes) + [f"--max-tokens {LONG_ANSWER}"] * ("max_tokens" in changes)
    return replace(options, **changes), f"{why} is asked in words: {' and '.join(told)} taken."


def _check_ranges(options: Options) -> None:
    """Raises BadInput for a number that no kind of respondent could keep to."""
    if not (math.isfinite(options.temperature) and options.temperature >= 0):
        raise BadInput(f"--temperature {options.temperature:g}: it must be 0 or more, such as 1.")
    for name in ("max_tokens", "concurrency", "batch_tokens", "threads"):
        count = getattr(options, name)
        if count is not None and count < 1:
            raise BadInput(f"--{name.replace('_', '-')} {count}: it must be 1 or more.")
    for name in ("timeout", "max_time", "max_cost"):
        limit = getattr(options, name)
        if limit is not None and not limit > 0:
            raise BadInput(f"--{name.replace('_', '-')} {limit:g}: it must be above 0.")
    if options.price is not None and not all(math.isfinite(price) and price >= 0 for price in options.price):
        raise BadInput(f"--price {options.price[0]:g},{options.price[1]:g}: prices must be 0 or more.")


def asking_of(options: Options, draws: int | None, followups: str) -> Asking:
    """How the design is put. Raises BadInput for options out of range."""
    if followups not in ("wrong", "all"):
        raise BadInput(f"--followups takes wrong or all, not {followups!r}.")
    if draws is not None and draws < 1:
        raise BadInput(f"--draws {draws}: at least 1.")
    _check_ranges(options)
    kept = {
        "sample": options.sample,
        "temperature": options.temperature,
        "max_tokens": options.max_tokens,
        "base_url": options.base_url,
        "concurrency": options.concurrency,
        "timeout": options.timeout,
        "max_time": options.max_time,
        "max_cost": options.max_cost,
        "price": None if options.price is None else list(options.price),
        "batch_tokens": options.batch_tokens,
        "threads": options.threads,
        "device": options.device,
    }
    return Asking(draws or 1, followups, kept)  # type: ignore[arg-type]
