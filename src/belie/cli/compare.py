"""``belie compare``: runs against the first, paired on the same items."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from belie.cli import options as o
from belie.cli.output import out, print_json
from belie.comparison import Comparison, Contrast, compare, effect, shared_words
from belie.numbers import number

EPILOG = "Example:  belie compare runs/csq-a runs/csq-b"


def compare_runs(
    runs: Annotated[list[Path], typer.Argument(help="Folders of two or more runs; each is compared with the first.")],
    scores: Annotated[
        str | None,
        typer.Option(help="Only these scores, such as dr.incentive,kpr.owed or delta_net; Holm goes over them alone."),
    ] = None,
    by_n: Annotated[bool, typer.Option("--by-n", help="CSQ: compare at each n too.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Compare what is not comparable, and mark it.")] = False,
    seed: Annotated[int, typer.Option(help="Decides the resamples and the permutations.")] = 0,
    json: o.Json = False,
) -> None:
    """Compare runs on the items they share: difference, interval, p after Holm, and what could have been found."""
    names = None if scores is None else _listed(scores)
    compared = compare(*runs, scores=names, by_n=by_n, force=force, seed=seed)
    if json:
        content = compared.to_json()
        for told, pair in zip(content["pairs"], compared.pairs, strict=True):
            for score, one in zip(told["scores"], pair.contrasts, strict=True):
                score["words"] = effect(one, pair.first.label, pair.second.label)
        print_json(content)
        return
    for pair in compared.pairs:
        _show(pair)
    out.print(
        Text(
            "Difference = second − first, with its paired 95% interval. p: swap test, Holm over all "
            f"{compared.comparisons} scores shown. Could find: the smallest true difference that this design finds in "
            f"{compared.options['power']:.0%} of tries.",
            style="dim",
        ),
    )


def _listed(text: str) -> list[str]:
    """Names with commas between them, none inside brackets."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _show(pair: Comparison) -> None:
    if not pair.comparable:
        out.print(Text(f"NOT COMPARABLE, forced: {'; '.join(pair.refused)}.", style="bold red"))
    table = Table(
        title=Text(f"{pair.second.label} against {pair.first.label} · {shared_words(pair)}"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("score")
    for name in ("first", "second", "difference", "95% interval", "p", "p (Holm)", "could find"):
        table.add_column(name, justify="right")
    for one in pair.contrasts:
        table.add_row(*(Text(cell) for cell in _cells(one)), style="bold" if one.p_holm <= 0.05 else "")
    out.print(table)
    for one in pair.contrasts:
        mark = "NOT COMPARABLE: " if not pair.comparable else ""
        if not math.isnan(one.difference):
            out.print(Text(f"{mark}{effect(one, pair.first.label, pair.second.label)}"))
    for note in pair.notes:
        out.print(Text(note, style="dim"))
    out.print()


def _cells(one: Contrast) -> list[str]:
    share = one.kind == "share"
    scale, digits, unit = (100, 1, "%") if share else (1, 3, "")

    def shown(value: float, *, signed: bool = False) -> str:
        text = number(scale * value, digits, signed=signed)
        return text if text in ("–", "∞", "−∞") else text.removeprefix("+") if not float(value) else text

    span = "" if math.isnan(one.low) else f"{shown(one.low, signed=True)} to {shown(one.high, signed=True)}"
    could = "none" if math.isinf(one.smallest) else shown(one.smallest)
    sides = [
        f"{shown(value, signed=not share)}{'' if math.isnan(value) else unit}" for value in (one.first, one.second)
    ]
    p = ["<0.001" if value < 0.001 else number(value) for value in (one.p, one.p_holm)]
    return [one.name.partition(".")[2], *sides, shown(one.difference, signed=True), span, *p, could]
