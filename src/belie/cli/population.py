"""``belie csq models``: analyses over many models."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from belie.cli import options as o
from belie.cli.output import out, print_json
from belie.csq.facts import load_facts
from belie.csq.population import Association, Population, Regression, Slope, point_of, point_row, population
from belie.csq.questions import Variant
from belie.csq.release_plot import release_plot
from belie.csq.run import score_run
from belie.numbers import number
from belie.respondents.base import BadInput
from belie.runs import RunFolder

EPILOG = "Example:  belie csq models runs/csq-* --facts models.csv --plot released.svg"
_NAMES = {"delta": "δ̄", "abs_rho": "|ρ̄|", "delta_net": "δ̄_net", "released": "day of release"}


def models(
    runs: Annotated[list[Path], typer.Argument(help="Folders of CSQ runs, one a model.")],
    facts: Annotated[
        Path | None,
        typer.Option(help="Family, parameters and release of models: YAML, or CSV (name,family,parameters,released)."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write the release-date plot here, as SVG.", metavar="FILE")] = None,
    csv_out: Annotated[bool, typer.Option("--csv", help="Print the points as CSV: the data of the plot.")] = False,
    json: o.Json = False,
) -> None:
    """Over many models: do δ̄ and |ρ̄| go together, and with size, family or date?"""
    told = over_models(runs, facts)
    if plot is not None:
        try:
            plot.write_text(release_plot(told), encoding="utf-8")
        except OSError as error:
            raise BadInput(f"{plot} can't be written ({error.strerror or error}): choose another file.") from None
    if json:
        print_json(told.to_json())
    elif csv_out:
        rows = [point_row(point) for point in told.points]
        writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        _show(told)


def over_models(runs: list[Path], facts: Path | None = None) -> Population:
    """The analysis of run folders. Raises BadInput where they are not alike: other questions, other n."""
    table = load_facts(facts)
    points, designs = [], {}
    for path in runs:
        run = RunFolder.open(path)
        manifest = run.manifest
        if manifest.instrument != "csq":
            raise BadInput(f"{path} is a {manifest.instrument} run: this analysis is over csq runs.")
        scores = score_run(run)
        asked = Variant.of(manifest.options)
        sizes = "/".join(str(row.n) for row in scores.rows)
        design = (manifest.versions.get("world"), manifest.options.get("k"), sizes)
        design = (*design, asked.treatment, asked.treated, asked.order, asked.style)
        designs.setdefault(design, path)
        if len(designs) > 1:
            (one, first), (other, second) = list(designs.items())[:2]
            raise BadInput(
                f"{second} was asked otherwise than {first} (world, k, n, treatment, its turns, order, style: "
                f"{', '.join(map(str, other))} against {', '.join(map(str, one))}), so their overall scores can't be "
                "set side by side: ask all models alike."
            )
        points.append(point_of(manifest.respondent, scores, table))
    return population(points)


def _show(told: Population) -> None:
    for warning in told.warnings:
        out.print(Text(warning, style="bold yellow"))
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("model", "family", "parameters", "released", "δ̄", "|ρ̄|", "δ̄_net", "error"):
        table.add_column(name, justify="left" if name in ("model", "family") else "right", overflow="fold")
    for point in told.points:
        f = point.facts
        size = "–" if f.parameters != f.parameters else f"{f.parameters / 1e9:.3g} B"
        figures = [point.figures[name] for name in ("delta", "abs_rho", "delta_net", "error")]
        cells = [f"{number(g.value)}\n[{number(g.low, 2)}, {number(g.high, 2)}]" for g in figures]
        table.add_row(Text(point.model), f.family or "–", size, str(f.released or "–"), *(Text(cell) for cell in cells))
    out.print(table)
    out.print(Text(_association(told.association)))
    for one in told.regressions:
        _regression(one)
    for one in told.released:
        out.print(Text(_association(one)))


def _association(one: Association) -> str:
    span = f"[{number(one.low, 2)}, {number(one.high, 2)}], p = {number(one.p)}" if one.value == one.value else ""
    pair = f"{_NAMES[one.first]} and {_NAMES[one.second]}"
    return f"Spearman of {pair} over {one.models} models: {number(one.value, 2, signed=True)} {span}".rstrip()


def _regression(one: Regression) -> None:
    out.print(
        Text(
            f"{_NAMES[one.outcome]} on log₁₀ parameters: {_slope(one.whole)} a tenfold; R² {number(one.r2, 2)}, each "
            f"model told from the others {number(one.r2_left_out, 2)}"
        )
    )
    known = [left for left in one.left_out if left.value == left.value]
    if known:
        low, high = min(known, key=lambda s: s.value), max(known, key=lambda s: s.value)
        out.print(
            Text(
                f"  without one model: {number(low.value, signed=True)} (without {low.label}) to "
                f"{number(high.value, signed=True)} (without {high.label})",
                style="dim",
            )
        )
    for part in (*one.families, *([one.within] if one.within.models else [])):
        out.print(Text(f"  {part.label} ({part.models} models): {_slope(part)}", style="dim"))
    for part in one.families_left_out:
        out.print(Text(f"  without family {part.label}: {_slope(part)}", style="dim"))


def _slope(one: Slope) -> str:
    if one.low != one.low:
        return number(one.value, signed=True)
    span = f"[{number(one.low, signed=True)}, {number(one.high, signed=True)}]"
    return f"{number(one.value, signed=True)} {span}"
