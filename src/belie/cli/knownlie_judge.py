"""``belie knownlie rejudge`` and ``calibrate``: another judge on old dialogues; how far a judge can be trusted.

Knows: options, folders and what is printed.
Does not know: how a judge is asked or scored.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from belie.cli import knownlie_options as k
from belie.cli import options as o
from belie.cli.asking import ROOT
from belie.cli.knownlie_run import Server, finish
from belie.cli.knownlie_scores import document, show_run
from belie.cli.knownlie_watch import RoundWatch
from belie.cli.output import out, print_json, say, waiting
from belie.numbers import number
from belie.respondents.base import BadInput
from belie.runs import RunFolder

if TYPE_CHECKING:
    from belie.knownlie.rejudge import Agreement

REJUDGE_EPILOG = (
    "Example:  belie knownlie rejudge runs/knownlie-gpt-5-mini-20261130-101500 --judge anthropic/claude-sonnet-4-5"
)
CALIBRATE_EPILOG = "Example:  belie knownlie calibrate --judge openai/gpt-5-mini"
_FIT = {True: 0, False: 1, None: 3}


def rejudge(
    run: Annotated[Path, typer.Argument(help="The folder of a run that was played.", metavar="RUN")],
    judge: k.Judge = None,
    judges: k.Judges = None,
    per_claim: k.PerClaim = None,
    second_look: k.SecondLook = None,
    structured: k.Structured = None,
    max_tokens: k.MaxTokens = None,
    base_url: k.BaseUrl = None,
    concurrency: o.Concurrency = None,
    timeout: k.Timeout = None,
    price: k.Prices = None,
    folder: o.Out = None,
    resume: o.Resume = None,
    json: o.Json = False,
) -> None:
    """Put the dialogues of a run to another judge. Plays nothing anew; the verdicts become a run of their own.

    Trust went the way the first judge sent it. With --resume, options not named are those of that run.
    """
    from belie.knownlie.journal import read_rounds
    from belie.knownlie.rejudge import agreement
    from belie.knownlie.rejudge import rejudge as judged_again
    from belie.knownlie.results import open_run, save_results

    if folder is not None and resume is not None:
        raise BadInput("--resume continues in the folder of the run: leave --out away.")
    old = open_run(run)
    kept = open_run(resume).manifest.options if resume is not None else {}
    named = judge or (kept.get("judge") if kept.get("transcripts_of") else None)
    if not named and resume is None:
        raise BadInput("To judge again a judge is needed: add --judge MODEL.")
    given = {
        **{"judges": judges, "per_claim": per_claim, "second_look": second_look},
        **{"structured": structured, "max_tokens": max_tokens},
    }
    told: dict[str, Any] = {name: kept.get(name) if value is None else value for name, value in given.items()}
    server = Server(base_url, concurrency, timeout, None, tuple(price or ()))
    path = resume or folder or RunFolder.new_path(ROOT, "knownlie-rejudged", old.manifest.respondent)
    rounds = read_rounds(old.path)
    if not json:
        say(f"{len(rounds):,} rounds of {run} before {', '.join(named or ())}, kept in {path}")
    with RoundWatch("Judging", len(rounds), quiet=json) as watch:
        result = judged_again(
            run,
            named or (),
            folder=path,
            resume=resume is not None,
            **{name: value for name, value in told.items() if value is not None},
            base_url=server.base_url,
            max_connections=server.concurrency,
            timeout=server.timeout or 600,
            price=server.prices.get("judge"),
            progress=watch,
        )
    opened = RunFolder.open(path)
    save_results(opened)
    agreed = agreement(rounds, result.rounds)
    if json:
        counts = {name: getattr(agreed, name) for name in ("rounds", "both", "first_only", "new_only", "neither")}
        print_json({**document(opened), "agreement": {**counts, "kappa": agreed.kappa}})
    else:
        show_run(opened, beside=_agreed(agreed))
    finish(opened)


def calibrate(
    judge: k.NewJudge,
    domains: Annotated[str | None, typer.Option(help="Such as airline,debt (default: all 8).")] = None,
    per_claim: k.PerClaim = None,
    second_look: k.SecondLook = None,
    structured: k.Structured = None,
    max_tokens: k.MaxTokens = None,
    base_url: k.BaseUrl = None,
    concurrency: o.Concurrency = None,
    json: o.Json = False,
) -> None:
    """Put dialogues of known truth to a judge: accuracy, κ, errors by kind, and whether it is fit for use.

    Exit code 0: fit; 1: not; 3: nothing can be said (calls failed, or too few dialogues).
    """
    from belie.knownlie.calibration import calibrate as calibrated
    from belie.knownlie.calibration import lines

    names = None if domains is None else [part.strip() for part in domains.split(",") if part.strip()]
    if concurrency is not None and concurrency < 1:
        raise BadInput(f"--concurrency {concurrency}: it must be more than 0.")
    with waiting(f"Asking {', '.join(judge)} …", quiet=json):
        result = calibrated(
            judge,
            domains=names,
            base_url=base_url,
            per_claim=bool(per_claim),
            second_look=bool(second_look),
            structured=structured is not False,
            max_tokens=max_tokens,
            in_flight=concurrency or 20,
        )
    if json:
        print_json(result.to_json())
    else:
        *figures, sentence = lines(result)
        for line in figures:
            out.print(Text(line))
        out.print(Text(sentence, style="bold"))
    raise typer.Exit(_FIT[result.fit])


def _agreed(seen: Agreement) -> str:
    if not seen.rounds:
        return "The two judges have no round in common."
    same = seen.both + seen.neither
    return (
        f"The two judges agree on {same:,} of {seen.rounds:,} rounds (Cohen's κ {number(seen.kappa, 2)}): both saw a "
        f"lie in {seen.both:,}, only the first in {seen.first_only:,}, only the new one in {seen.new_only:,}."
    )
