"""Belie: tells whether a language model says what it knows to be false. What a notebook imports stands here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from belie.comparison.reading import compare
    from belie.notebook import audit, load_run

__all__ = ["audit", "compare", "load_run"]

_HOMES = {"audit": "belie.notebook", "load_run": "belie.notebook", "compare": "belie.comparison.reading"}


def __getattr__(name: str) -> Any:
    """Imported when first used: the command line must not wait for what it does not need."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'belie' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
