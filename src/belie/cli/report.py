"""``belie report``: one page from runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from belie.cli.options import Json
from belie.cli.output import print_json, say
from belie.respondents.base import BadInput

#: Where the page of several runs goes unless told otherwise; that of one run goes into its folder.
NAME = "report.html"
EPILOG = "Example:  belie report runs/csq-smollm2-135m-20261130-101500 runs/knownlie-… -o report.html"


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, of either instrument.", metavar="RUN…")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help=f"The page (default: {NAME} in the run's folder, or here).")
    ] = None,
    json: Json = False,
) -> None:
    """Make one HTML page of runs: verdict, figures, evidence, method, provenance. Works offline; asks nothing."""
    try:
        from belie.report import make_report
    except ModuleNotFoundError as missing:
        raise BadInput(f"The report needs {missing.name}: install belie with its extra, belie[report].") from missing
    from belie.runs import files

    made = make_report(runs)
    path = out or (runs[0] / NAME if len(runs) == 1 else Path(NAME))
    if path.is_dir():
        raise BadInput(f"{path} is a folder: name the file of the page, such as {path / NAME}.")
    files.make_folder(path.parent)
    content = made.html.encode("utf-8")
    files.replace(path, content)
    if json:
        print_json(
            {"report": str(path), "bytes": len(content), "models": list(made.models), "notices": list(made.notices)}
        )
        return
    for notice in made.notices:
        say(notice)
    say(f"The report: {path}  ({len(content) / 1e6:.1f} MB, opens in any browser)")
