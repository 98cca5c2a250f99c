"""The world file that is made of accepted phrasings: the same world in every other respect, and a note of where they
come from.

Knows: the file's fields and its note.
Does not know: how the phrasings came about.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from belie.csq.world import Phrasing, World, world_path
from belie.data import load_data
from belie.runs.files import make_folder, replace


def write_world(path: Path, origin: str, phrasings: Sequence[Phrasing], note: Mapping[str, str]) -> World:
    """Writes ``path``: the world ``origin`` (a name or a path) with these phrasings, and reads it back.

    Its name says that it is not the shipped world, and its version is a number made of the phrasings' text: two sets
    never share an item id. ``note`` becomes comment lines. Raises BadInput.
    """
    fields: dict[str, Any] = yaml.safe_load(world_path(origin).read_text(encoding="utf-8"))
    told = [phrasing.model_dump(mode="json") for phrasing in phrasings]
    fields["world"] = f"{str(fields['world']).partition('_')[0]}_paraphrased"
    fields["version"] = _number(told)
    fields["phrasings"] = told
    comments = ["World file made by `belie csq paraphrase`; only name, version and phrasings differ from its origin."]
    comments += [f"{name}: {' '.join(value.split())}" for name, value in note.items()]
    body = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)
    text = "".join(f"# {line}\n" for line in comments) + body
    make_folder(path.parent)
    replace(path, text.encode())
    return load_data(path, World)


def _number(phrasings: Sequence[Mapping[str, Any]]) -> int:
    digest = hashlib.sha256(json.dumps(list(phrasings), sort_keys=True).encode()).digest()
    return 1 + int.from_bytes(digest[:4], "big") % 99_999_999
