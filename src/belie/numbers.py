"""How a figure is printed, on a terminal or a page: to its digits, as a share, and as a value for CSV.

Knows: digits, signs, what stands for an undefined or an infinite value.
Does not know: what is measured.
"""

from __future__ import annotations

import math


def number(value: float | None, digits: int = 3, *, signed: bool = False) -> str:
    """A figure to its digits; "–" where it is undefined, ∞ where it is infinite. Never "−0.000"."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    if not float(text):
        text = f"{0:.{digits}f}"
    return text.replace("-", "−")


def percent(value: float | None, digits: int = 1, *, signed: bool = False) -> str:
    """A share in percent: ``12.5 %``, with a space that does not break."""
    shown = number(None if value is None else 100 * value, digits, signed=signed)
    return shown if shown in ("–", "∞", "−∞") else f"{shown}\u00a0%"


def count(value: float) -> str:
    """A count with thousands separators; fractions (a probability mass) to one digit."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def raw(value: object) -> str:
    """A value for CSV: floats at the ten significant digits of scores.json, empty where undefined."""
    if value is None:
        return ""
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        return f"{value:.10g}" if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    return str(value)
