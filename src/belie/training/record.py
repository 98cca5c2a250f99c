"""What stands beside an adapter: its record, its card, its recipe's name and warning.

Knows: the files of an adapter's folder besides the weights.
Does not know: how it was trained.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from belie.models.adapters import RECORD
from belie.runs import files
from belie.training.folder import CARD, WARNING_FILE
from belie.training.grades import Recipe, warning


def write_record(out: Path, record: Mapping[str, Any]) -> None:
    """Writes ``training.json``."""
    files.replace(out / RECORD, (json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())


def mark(out: Path, recipe: Recipe) -> None:
    """The recipe's name in the adapter's own configuration, where that is written; the warning beside it."""
    config = out / "adapter_config.json"
    if config.is_file():
        told = {**json.loads(config.read_text("utf-8")), "belie_recipe": recipe}
        files.replace(config, (json.dumps(told, indent=2, sort_keys=True) + "\n").encode())
    if (said := warning(recipe)) is not None:
        files.replace(out / WARNING_FILE, f"{said}\n".encode())


def write_card(out: Path, record: Mapping[str, Any]) -> None:
    """Writes the model card, from the record."""
    model, recipe, method, options = (record[name] for name in ("model", "recipe", "method", "options"))
    lines = [
        "---",
        "library_name: peft",
        f"tags: [belie, {recipe}, {method}]",
        "---",
        f"# {record['name']}",
        "",
        *([f"**{record['warning']}**", ""] if record["warning"] else []),
        f"A LoRA adapter (rank {options['rank']}) for {model}, trained by {method} for {options['steps']} steps on "
        f"{record['examples']['train']:,} examples of the recipe {recipe}.",
        "",
        f"Audit it: `belie audit {model}+THIS_FOLDER`. What it did: `belie train effect BEFORE AFTER --data DATA`.",
        "How it was made, with versions and hashes: training.json.",
        "",
    ]
    files.replace(out / CARD, "\n".join(lines).encode())
