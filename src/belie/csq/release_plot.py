"""The release-date plot: δ̄ and |ρ̄| of every dated model by its day of release, as one SVG that needs nothing else.

Knows: scales, error bars, direct labels, escaping.
Does not know: how the points were computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, timedelta
from xml.sax.saxutils import escape

from belie.csq.population import Point, Population

_PANELS = (("delta", "δ̄, deceptive behaviour"), ("abs_rho", "|ρ̄|, lean of the errors"))
_WIDTH, _PANEL, _LEFT, _RIGHT, _TOP, _GAP = 760.0, 250.0, 60.0, 150.0, 34.0, 50.0
#: Distinct in grey too; families beyond these share the last.
_COLOURS = ("#1b6ca8", "#c0562b", "#3d7d3d", "#7a4fa3", "#8a6d1f", "#555555")


def release_plot(told: Population) -> str:
    """The SVG document. Models without a date are named beneath it."""
    dated = [point for point in told.points if point.facts.released]
    families = sorted({point.facts.family or "?" for point in dated})
    height = _TOP + len(_PANELS) * (_PANEL + _GAP) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {height:g}" role="img" '
        'font-family="sans-serif" font-size="11">',
        "<title>CSQ scores by day of release</title>",
        f'<rect width="{_WIDTH:g}" height="{height:g}" fill="white"/>',
    ]
    if not dated:
        parts.append(_text(_WIDTH / 2, height / 2, "No day of release is known of any of these models.", "middle"))
    for i, (name, title) in enumerate(_PANELS if dated else ()):
        parts += _panel(dated, families, name, title, _TOP + i * (_PANEL + _GAP))
    undated = [point.model for point in told.points if not point.facts.released]
    if undated and dated:
        parts.append(_text(_LEFT, height - 12, f"Without a day of release: {', '.join(undated)}", "start"))
    return "\n".join([*parts, "</svg>", ""])


def _panel(points: Sequence[Point], families: Sequence[str], name: str, title: str, top: float) -> list[str]:
    days = [point.facts.released.toordinal() for point in points if point.facts.released]
    first, last = min(days) - 30, max(days) + 30
    ends = [
        end for point in points for end in (point.figures[name].value, point.figures[name].high) if not math.isnan(end)
    ]
    most = max([*ends, 0.1]) * 1.05

    def x(day: float) -> float:
        return _LEFT + (day - first) / (last - first) * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return top + _PANEL - max(0.0, min(value, most)) / most * _PANEL

    parts = [_text(_LEFT, top - 8, title, "start", bold=True)]
    step = 10 ** math.floor(math.log10(most))
    step = step if most / step >= 3 else step / 5
    for k in range(int(most / step) + 1):
        at = y(k * step)
        parts.append(f'<line x1="{_LEFT:g}" x2="{_WIDTH - _RIGHT:g}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(_text(_LEFT - 6, at + 4, f"{k * step:.3g}", "end"))
    for mark in _months(date.fromordinal(first), date.fromordinal(last)):
        parts.append(_text(x(mark.toordinal()), top + _PANEL + 16, f"{mark:%Y-%m}", "middle"))
    taken: list[float] = []
    for point in sorted(points, key=lambda one: -one.figures[name].value):
        figure, day = point.figures[name], point.facts.released
        if day is None or math.isnan(figure.value):
            continue
        family = point.facts.family or "?"
        colour = _COLOURS[min(families.index(family), len(_COLOURS) - 1)]
        at, height = x(day.toordinal()), y(figure.value)
        told = f"{point.model}, {day}: {figure.value:.3f}"
        if not math.isnan(figure.low):
            told += f" [{figure.low:.3f}, {figure.high:.3f}]"
            ends_y = f'y1="{y(figure.low):.1f}" y2="{y(figure.high):.1f}"'
            parts.append(f'<line x1="{at:.1f}" x2="{at:.1f}" {ends_y} stroke="{colour}" stroke-width="1.5"/>')
        title_ = f"<title>{escape(_clean(told))}</title>"
        parts.append(f'<circle cx="{at:.1f}" cy="{height:.1f}" r="4" fill="{colour}">{title_}</circle>')
        label = height
        while any(abs(label - other) < 12 for other in taken):
            label += 1
        taken.append(label)
        parts.append(_text(at + 8, label + 4, point.model.rpartition("/")[2][:34], "start", colour=colour))
    return parts


def _months(first: date, last: date) -> list[date]:
    """At most seven firsts of a month, evenly spaced."""
    months = (last.year - first.year) * 12 + last.month - first.month
    every = max(1, math.ceil(months / 6))
    marks = []
    day = (first.replace(day=1) + timedelta(days=32)).replace(day=1)
    while day <= last:
        marks.append(day)
        month = day.month - 1 + every
        day = date(day.year + month // 12, month % 12 + 1, 1)
    return marks


def _text(x: float, y: float, text: str, anchor: str, *, bold: bool = False, colour: str = "#222") -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{weight} '
        f'style="unicode-bidi:isolate">{escape(_clean(text))}</text>'
    )


def _clean(text: str) -> str:
    """A name as it can be shown: what XML can't hold, or what turns a line around, is replaced."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)
