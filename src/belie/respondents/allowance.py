"""What a run may cost and how long it may take; what it has cost so far.

Knows: prices per million tokens, the limits of cost and time. Does not know: calls, retries, answers.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import yaml

from belie.respondents.base import BudgetSpent

Price = tuple[float, float]


def list_price(host: str, model: str) -> Price | None:
    """The list price of a model at a host in US dollars per million (prompt, completion) tokens, None if unknown."""
    listed = yaml.safe_load((resources.files("belie.respondents") / "prices.yaml").read_text("utf-8"))
    price = listed["hosts"].get(host, {}).get(model)
    return None if price is None else (float(price[0]), float(price[1]))


@dataclass
class Allowance:
    """Counts tokens and cost, and says when to stop.

    ``max_cost`` in US dollars, ``total_time_s`` in seconds from ``begin``; None: no limit. The calls under way are
    taken to cost what calls have cost on average, so that the limit holds when they come back.
    """

    price: Price | None = None
    max_cost: float | None = None
    total_time_s: float | None = None
    calls: int = 0
    under_way: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    _deadline: float = field(default=math.inf, repr=False)

    def begin(self) -> None:
        """The clock of ``total_time_s`` starts here."""
        if self.total_time_s is not None:
            self._deadline = time.monotonic() + self.total_time_s

    def left_s(self) -> float:
        """Seconds left, infinite without a limit, never below 0."""
        return max(0.0, self._deadline - time.monotonic())

    def check(self) -> None:
        """Raises ``BudgetSpent`` where one more call would go over a limit."""
        if self.max_cost is not None:
            mean = self.cost / self.calls if self.calls else 0.0
            if self.cost + (self.under_way + 1) * mean > self.max_cost:
                raise BudgetSpent(
                    f"The cost limit of ${self.max_cost:g} is reached: ${self.cost:.4f} spent on {self.calls} calls. "
                    "What was answered is kept; continue with a higher limit."
                )
        if self._deadline < math.inf and time.monotonic() >= self._deadline:
            raise BudgetSpent(
                f"The time limit of {self.total_time_s:g} s is reached after {self.calls} calls. "
                "What was answered is kept; continue with a longer one."
            )

    def limits(self) -> dict[str, Any]:
        """The limits and the price, for a respondent's provenance."""
        price = None if self.price is None else list(self.price)
        return {"max_cost": self.max_cost, "total_time_s": self.total_time_s, "price": price}

    def totals(self) -> dict[str, Any]:
        """What was spent so far, for a respondent's provenance."""
        return {
            "calls": self.calls,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost": self.cost,
        }

    def add(self, tokens: tuple[int, int], usage_cost: float | None) -> float:
        """Counts one paid call; returns its cost in US dollars (the price's, else the server's own figure, else 0)."""
        if self.price is not None:
            cost = (tokens[0] * self.price[0] + tokens[1] * self.price[1]) / 1e6
        else:
            cost = usage_cost or 0.0
        self.calls += 1
        self.prompt_tokens += tokens[0]
        self.completion_tokens += tokens[1]
        self.cost += cost
        return cost
