"""Options of the KnownLie commands, and how they become a protocol, players and prices.

Knows: names, help texts, and what a run that continues was asked with. An option that was not named is None.
Does not know: what the commands do with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from belie.cli.options import SERVER
from belie.respondents.base import BadInput
from belie.runs import RunFolder

if TYPE_CHECKING:
    from belie.knownlie.protocol import Protocol

PLAYERS, CASES, JUDGING = "Players", "Cases", "Judging"

Model = Annotated[
    str,
    typer.Argument(
        help="The agent: local/NAME, http/NAME, belie/scripted-NAME, or an Inspect AI model string.", metavar="MODEL"
    ),
]
Models = Annotated[
    list[str],
    typer.Argument(
        help="The agent: local/NAME, http/NAME, belie/scripted-NAME, or an Inspect AI model string. "
        "Several with --engine.",
        metavar="MODEL…",
    ),
]
Customer = Annotated[
    str | None, typer.Option("--customer", help="Who plays the customers.", metavar="MODEL", rich_help_panel=PLAYERS)
]
Judge = Annotated[
    list[str] | None,
    typer.Option(
        "--judge", help="Who judges; given several times, the majority.", metavar="MODEL", rich_help_panel=PLAYERS
    ),
]
NewJudge = Annotated[
    list[str], typer.Option("--judge", help="Who judges; given several times, the majority.", metavar="MODEL")
]
Domains = Annotated[
    str | None,
    typer.Option(help="Such as airline,debt, or folders of packs (default: all 8).", rich_help_panel=CASES),
]
Conditions = Annotated[
    str | None,
    typer.Option(help="Of none,incentive,instructed (default: all).", rich_help_panel=CASES),
]
Trust = Annotated[
    str | None, typer.Option(help="Initial trust, of low,neutral,high (default: all).", rich_help_panel=CASES)
]
Seeds = Annotated[
    int | None,
    typer.Option(help="Trajectories of each domain, condition and trust level (default: 1).", rich_help_panel=CASES),
]
Limit = Annotated[
    int | None, typer.Option(help="Cases a trajectory (default: all 14 of a domain).", rich_help_panel=CASES)
]
Order = Annotated[
    str | None, typer.Option(help="seed shuffles the cases (default); paper: owed first.", rich_help_panel=CASES)
]
GateSamples = Annotated[
    int | None,
    typer.Option(help="Further knowledge checks a case, for p_know (default: 0).", rich_help_panel=CASES),
]
TrustRule = Annotated[
    str | None,
    typer.Option(help="method (default), flat, soft, harsh or gentle.", rich_help_panel=CASES),
]
Emulated = Annotated[
    bool | None,
    typer.Option(
        "--emulated/--native", help="Tools as JSON text, or native (default: as it can).", rich_help_panel=PLAYERS
    ),
]
Temperature = Annotated[
    float | None, typer.Option(help="Temperature of the agent (default: 0.7).", rich_help_panel=PLAYERS)
]
MaxTokens = Annotated[int | None, typer.Option(help="Tokens of one reply at most.", rich_help_panel=PLAYERS)]
Judges = Annotated[
    int | None,
    typer.Option(help="How often the judge judges a round; the majority counts.", rich_help_panel=JUDGING),
]
PerClaim = Annotated[
    bool | None,
    typer.Option("--per-claim", help="List the agent's statements, check each by itself.", rich_help_panel=JUDGING),
]
SecondLook = Annotated[
    bool | None,
    typer.Option("--second-look", help="Check each flagged quote once more by itself.", rich_help_panel=JUDGING),
]
Structured = Annotated[
    bool | None,
    typer.Option(
        "--structured/--unstructured", help="Hold replies to a schema (default), or only ask.", rich_help_panel=JUDGING
    ),
]
Prices = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        help="US dollars per million tokens, for all or by role: judge=0.15,0.6.",
        metavar="[ROLE=]IN,OUT",
        rich_help_panel=SERVER,
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(help="US dollars after which the run stops (checked as rounds end).", rich_help_panel=SERVER),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        help="Where the OpenAI-compatible server of http/… players listens.",
        envvar="OPENAI_BASE_URL",
        rich_help_panel=SERVER,
    ),
]
Timeout = Annotated[int | None, typer.Option(help="Seconds for one call, retries included.", rich_help_panel=SERVER)]


@dataclass(frozen=True, slots=True)
class Seating:
    """Who plays what. ``packs``: domains or folders, None for all of Belie's."""

    model: str
    customer: str
    judges: tuple[str, ...]
    packs: tuple[str, ...] | None
    protocol: Protocol


def seating(
    model: str,
    customer: str | None,
    judge: Sequence[str] | None,
    domains: str | None,
    named: Mapping[str, Any],
    resume: Path | None = None,
) -> Seating:
    """Who plays what, checked: options that were not named are those of the run that continues, if there is one.

    ``named``: fields of ``Protocol``, None where the user said nothing. Raises BadInput.
    """
    from belie.knownlie.protocol import Protocol
    from belie.knownlie.run import made_protocol

    stored = played_options(resume) if resume is not None else {}
    customer, judges = customer or stored.get("customer"), tuple(judge or stored.get("judge") or ())
    if not customer or not judges:
        lacking = " and ".join(
            word for word, there in (("--customer MODEL", customer), ("--judge MODEL", judges)) if not there
        )
        raise BadInput(f"KnownLie is played by an agent, a customer and a judge: add {lacking} (one model may be all).")
    for role, one in (("agent", model), ("customer", customer), *(("judge", judge) for judge in judges)):
        if one.startswith("sim/"):
            raise BadInput(
                f"{one} answers CSQ questions only and can't be the {role}: "
                "the players without a network are belie/scripted-honest and others."
            )
    seeds = named.get("seeds")
    if seeds is not None and seeds < 1:
        raise BadInput(f"--seeds {seeds}: at least 1.")
    kept = {field.name: stored[field.name] for field in fields(Protocol) if field.name in stored}
    protocol = made_protocol(**{**kept, **{name: value for name, value in named.items() if value is not None}})
    packs = stored.get("packs") if domains is None else [part.strip() for part in domains.split(",") if part.strip()]
    if packs is not None and not packs:
        raise BadInput("--domains names no domain: leave it out for all of them.")
    return Seating(model, customer, judges, None if packs is None else tuple(packs), protocol)


def played_options(run: Path) -> Mapping[str, Any]:
    """The options of a run that was played. Raises BadInput for one of another kind."""
    manifest = RunFolder.open(run).manifest
    if manifest.instrument != "knownlie":
        raise BadInput(f"{run} is a run of {manifest.instrument}: continue it with belie {manifest.instrument} run.")
    if (first := manifest.options.get("transcripts_of")) is not None:
        raise BadInput(f"{run} was judged again, not played: continue it with belie knownlie rejudge {first} --resume.")
    return manifest.options
