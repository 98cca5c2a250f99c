"""The texts of an interview, from ``prompts.yaml``.

Knows: the texts and their slots.
Does not know: to whom they are put.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from belie.data import load_data, sha256

Text = Annotated[str, Field(min_length=1)]
_SLOTS = {"sure": set(), "sure_back": set(), "reconcile": {"first", "followup"}, "final": set()}


class Prompts(BaseModel):
    """See ``prompts.yaml``. ``version`` is written into every result."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Annotated[int, Field(ge=1)]
    sure: Text
    sure_back: Text
    reconcile: Text
    final: Text

    @model_validator(mode="after")
    def _slots(self) -> Self:
        for name, slots in _SLOTS.items():
            text = getattr(self, name)
            if set(re.findall(r"\{(\w*)\}", text)) != slots:
                raise ValueError(f"`{name}` must use exactly the slots {', '.join(sorted(slots)) or '(none)'}: {text}")
        return self


def _path() -> Path:
    return Path(str(resources.files("belie.csq.interview") / "prompts.yaml"))


@lru_cache(maxsize=1)
def load_prompts() -> Prompts:
    """The texts that ship. Raises BadInput where the file is damaged."""
    return load_data(_path(), Prompts)


@lru_cache(maxsize=1)
def prompts_hash() -> str:
    """Hex SHA-256 of the file."""
    return sha256(_path())
