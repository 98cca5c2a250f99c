"""``belie models``: the open-weights models that Belie knows by name."""

from __future__ import annotations

from typing import Annotated

import typer
from rich import box
from rich.table import Table

from belie.cli.options import Json
from belie.cli.output import out, print_json, say, waiting

app = typer.Typer(
    help="Models that Belie knows by name and can fetch.", epilog="Example:  belie models list", no_args_is_help=True
)


@app.command("list", epilog="Example:  belie models list")
def list_(json: Json = False) -> None:
    """List the models, where they come from, and whether they are here."""
    from belie.models import catalogue, fetched

    entries = catalogue()
    if json:
        print_json([{**entry.model_dump(), "fetched": fetched(entry.name)} for entry in entries])
        return
    table = Table("Model", "Download", "Licence", "From", "Here", box=box.SIMPLE_HEAD)
    for entry in entries:
        size = f"{entry.download_bytes / 1e6:.0f} MB"
        table.add_row(f"local/{entry.name}", size, entry.licence, entry.source, "yes" if fetched(entry.name) else "no")
    out.print(table)


@app.command(epilog="Example:  belie models fetch smollm2-135m")
def fetch(name: Annotated[str, typer.Argument(help="A name from `belie models list`.")], json: Json = False) -> None:
    """Fetch a model into the cache, check it, and convert it once."""
    from belie.models import fetch as fetch_model

    with waiting(f"Fetching {name} …", quiet=json):
        path = fetch_model(name)
    if json:
        print_json({"model": name, "path": str(path)})
    else:
        say(f"{name} is ready: belie audit local/{name}")
