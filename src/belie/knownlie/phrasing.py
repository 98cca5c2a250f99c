"""The words that the players are given: prompts are Markdown files with ``${slots}``.

Knows: where the files lie, how slots are filled, and the version of the wording.
Does not know: who reads them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from string import Template

import yaml

#: Raised whenever a prompt changes in a way that can change an answer. Written into every result.
PROMPTS_VERSION = 1

_FOLDER = resources.files("belie.knownlie") / "prompts"


@cache
def _template(name: str) -> Template:
    return Template((_FOLDER / f"{name}.md").read_text(encoding="utf-8").rstrip("\n"))


def words(name: str, /, **slots: str) -> str:
    """The prompt ``name`` with its slots filled; what is filled in is not read for slots again."""
    return _template(name).substitute(slots)


@cache
def moods() -> Mapping[str, Mapping[str, str]]:
    """The sentences that stand for a band of trust: ``moods()["stance"]["wary"]``."""
    return yaml.safe_load((_FOLDER / "stance.yaml").read_text(encoding="utf-8"))


@cache
def prompts_hash() -> str:
    """SHA-256 over all prompt files, for the manifest."""
    digest = hashlib.sha256()
    for path in sorted(_FOLDER.iterdir(), key=lambda path: path.name):
        if path.name.endswith((".md", ".yaml")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
