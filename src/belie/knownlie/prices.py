"""What calls cost: prices by role, as the user gives them, made prices by model, as Inspect keeps them.

Knows: which model sits in which role, and Inspect's table of models.
Does not know: any price by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspect_ai.model import Model, ModelCost, ModelInfo, get_model_info, set_model_cost, set_model_info

from belie.respondents.base import BadInput

#: US dollars for a million tokens read and written.
Price = tuple[float, float]
#: Roles that have a price of their own; the agent also answers the gate.
ROLES = ("agent", "customer", "judge")


def prices_of(texts: Sequence[str]) -> dict[str, Price]:
    """``["3,15"]`` for every role, ``["agent=3,15", "judge=0.1,0.4"]`` for some. Raises BadInput."""
    prices: dict[str, Price] = {}
    for text in texts:
        role, equals, numbers = text.rpartition("=")
        try:
            read, written = (float(part) for part in numbers.split(","))
            if not (0 <= read < float("inf") and 0 <= written < float("inf")) or (equals and role not in ROLES):
                raise ValueError
        except ValueError:
            raise BadInput(
                f"--price takes two numbers, as 0.15,0.6, or as ROLE=0.15,0.6 with a role of {', '.join(ROLES)}; "
                f"not {text!r}."
            ) from None
        prices |= dict.fromkeys([role] if equals else ROLES, (read, written))
    return prices


def priced(models: Mapping[str, Sequence[Model]], prices: Mapping[str, Price]) -> dict[str, Price]:
    """Prices by Inspect's model name, made known to Inspect. Raises BadInput where one model gets two prices."""
    told: dict[str, Price] = {}
    for role, price in prices.items():
        for model in models.get(role, ()):
            if told.setdefault(str(model), price) != price:
                raise BadInput(f"{model} has two prices, {told[str(model)]} and {price}: one model has one price.")
    for name, (read, written) in told.items():
        if not _known(name):
            set_model_info(name, ModelInfo(model=name))
        set_model_cost(name, ModelCost(input=read, output=written, input_cache_write=read, input_cache_read=read))
    return told


def _known(name: str) -> bool:
    try:
        return get_model_info(name) is not None
    except Exception:  # a look-up may try to make the model anew, without the arguments that it needs
        return False
