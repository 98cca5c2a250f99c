"""What calls cost, by role.

Knows: the four roles, and how usage adds up.
Does not know: who makes the calls (calls).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Role = Literal["agent", "gate", "customer", "judge"]
ROLES: tuple[Role, ...] = ("agent", "gate", "customer", "judge")


@dataclass(slots=True)
class Usage:
    """What calls cost. ``cost`` in US dollars, 0 without a price. ``models``: ids as the servers returned them."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    models: tuple[str, ...] = ()

    def add(self, other: Usage | Mapping[str, Any]) -> None:
        told = other if isinstance(other, Mapping) else asdict(other)
        for name in ("calls", "input_tokens", "output_tokens", "cost"):
            setattr(self, name, getattr(self, name) + told.get(name, 0))
        self.models = tuple(sorted({*self.models, *told.get("models", ())}))


class Ledger(dict[str, Usage]):
    """Usage by role: agent, gate, customer and judge are counted apart."""

    def book(self, role: Role, usage: Usage) -> None:
        self.setdefault(role, Usage()).add(usage)

    def merge(self, other: Mapping[str, Usage | Mapping[str, Any]]) -> None:
        for role, usage in other.items():
            self.setdefault(role, Usage()).add(usage)

    def plain(self) -> dict[str, dict[str, Any]]:
        return {role: asdict(usage) for role, usage in self.items()}
