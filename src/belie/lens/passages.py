"""Neutral texts to fit a lens on, and the prompts cut from them.

Knows: the bundled passages, files and folders of texts, tokens.
Does not know: models.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from belie.lens.jacobian import FIRST_SOURCE
from belie.respondents.base import BadInput

#: A passage must give at least so many source positions.
FEWEST_SOURCES = 16


@dataclass(frozen=True, slots=True)
class Passages:
    """``name`` is what the user named; ``sha256`` is over the passages, each closed by a zero byte."""

    name: str
    texts: tuple[str, ...]

    @property
    def sha256(self) -> str:
        return hashlib.sha256(b"".join(text.encode() + b"\0" for text in self.texts)).hexdigest()


def passages(name: str) -> Passages:
    """``bundled``, a text file (passages apart by blank lines), or a folder of ``.txt`` files. Raises BadInput."""
    if name == "bundled":
        source = resources.files("belie.lens") / "texts" / "neutral.txt"
        return Passages(name, _split(source.read_text(encoding="utf-8")))
    path = Path(name)
    files = sorted(path.glob("*.txt")) if path.is_dir() else [path]
    if not files:
        raise BadInput(f"The folder {path} holds no .txt file: name one that does, a file, or bundled.")
    texts: list[str] = []
    for file in files:
        try:
            texts += _split(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{file} can't be read as UTF-8 text ({error}): name a file, a folder or bundled.") from None
    return Passages(path.name, tuple(texts))


def _split(text: str) -> tuple[str, ...]:
    parts = (" ".join(part.split()) for part in text.replace("\r\n", "\n").split("\n\n"))
    return tuple(part for part in parts if part)


def prompts(texts: Passages, tokenizer: Any, count: int, tokens: int) -> list[list[int]]:
    """The first ``count`` passages as token ids, cut to ``tokens``; passages that are too short are passed over.

    No chat template: they are plain text, with the token that the tokenizer itself begins a text with.
    Raises BadInput where there are not enough.
    """
    least = FIRST_SOURCE + FEWEST_SOURCES
    if count < 2:
        raise BadInput(f"{count} prompts: at least 2 are needed, so that their halves can be compared.")
    if tokens < least:
        raise BadInput(f"{tokens} tokens a prompt: at least {least}, since the first {FIRST_SOURCE} are left out.")
    cut: list[Sequence[int]] = [ids[:tokens] for ids in tokenizer(list(texts.texts))["input_ids"]]
    usable = [list(ids) for ids in cut if len(ids) >= least]
    if len(usable) < count:
        raise BadInput(
            f"{texts.name} holds {len(usable)} passages of at least {least} tokens, {count} prompts were asked for: "
            "name more text or fewer --prompts."
        )
    return usable[:count]
