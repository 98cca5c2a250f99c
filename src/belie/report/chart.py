"""Charts as plain geometry: what is drawn where, in the units of an SVG's own view box.

Knows: scales, ticks, dodging, labels that keep apart. Three kinds: curves over n, rows of estimates, a plane.
Does not know: colours (the style sheet has them, by model number), SVG syntax (charts.html), or what is measured.

A chart is drawn once, when the page is made: it needs no script, prints, and follows the reader's colour scheme.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

#: The width that a chart is designed for: a phone held upright. Wider screens enlarge it a little.
WIDTH = 360.0
_GAP = 11.5
SHAPES = ("circle", "square", "triangle", "diamond", "down", "cross", "plus", "ring")


@dataclass(frozen=True, slots=True)
class Text:
    x: float
    y: float
    text: str
    kind: str = "tick"
    anchor: str = "middle"
    model: int | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """One estimate: its place, its shape, its interval as a line from ``a`` to ``b``; ``title`` is told on hovering."""

    x: float
    y: float
    model: int
    title: str
    bar: tuple[float, float, float, float] | None = None

    @property
    def shape(self) -> str:
        return SHAPES[self.model % len(SHAPES)]


@dataclass(frozen=True, slots=True)
class Path:
    """A line (or, with ``kind`` "cloud" or "dots", a set of dots) as SVG path data."""

    d: str
    kind: str
    model: int | None = None


@dataclass(frozen=True, slots=True)
class Box:
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    width: float
    height: float
    grid: tuple[Path, ...]
    boxes: tuple[Box, ...] = ()
    paths: tuple[Path, ...] = ()
    marks: tuple[Mark, ...] = ()
    texts: tuple[Text, ...] = ()
    title: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to places: ``place(v)``; logarithmic where ``log``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, value: float) -> float:
        low, high, v = (math.log(x) for x in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        return round(self.start + (v - low) / (high - low) * (self.end - self.start), 1)


@dataclass(frozen=True, slots=True)
class Point:
    """One estimate at ``x``. nan values are not drawn; ``title`` is told on hovering."""

    x: float
    value: float
    low: float = math.nan
    high: float = math.nan
    title: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """The points of one model. ``kind`` "main", or a lighter "second" line."""

    model: int
    points: Sequence[Point]
    label: str = ""
    kind: str = "main"


@dataclass(frozen=True, slots=True)
class Estimate:
    """One row's estimate of one model."""

    model: int
    value: float
    low: float = math.nan
    high: float = math.nan
    title: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of estimates under one name; ``others`` are values of published models, drawn in grey. ``heading`` starts a
    group."""

    name: str
    estimates: Sequence[Estimate]
    others: Sequence[float] = field(default=())
    heading: str = ""


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers from ``low`` to ``high``, about so many."""
    span = max(high - low, 1e-9)
    raw = span / max(about, 1)
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * m for m in (1, 2, 2.5, 5, 10) if size * m >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 10) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def spread(values: Sequence[float], include: Sequence[float], least: float) -> tuple[float, float]:
    """A range that holds all finite values and ``include``, at least ``least`` wide, with a little air."""
    finite = [v for v in (*values, *include) if math.isfinite(v)] or [0.0]
    low, high = min(finite), max(finite)
    air = max(0.06 * (high - low), (least - (high - low)) / 2, 0.0)
    return (low if low in include else low - air), (high if high in include and high > low else high + air)


def curves(
    series: Sequence[Series],
    *,
    x_title: str,
    x_ticks: Sequence[float],
    include: Sequence[float] = (0.0,),
    least: float = 0.2,
    band: tuple[float, float] | None = None,
    percent: bool = False,
    log: bool = True,
    limits: tuple[float, float] | None = None,
    title: str = "",
    labelled: bool = True,
    height: float = 220.0,
) -> Chart:
    """Values over n, models side by side at each n, with their intervals. ``band``: an equivalence margin."""
    ends = [v for s in series for p in s.points for v in (p.value, p.low, p.high)]
    low, high = limits or spread(ends, (*include, *(band or ())), least)
    labels = [s for s in series if s.label] if labelled else []
    right = WIDTH - (92.0 if labels else 14.0)
    left, top, bottom = 44.0, 12.0 + 14 * bool(title), height - 36.0
    y = Scale(low, high, bottom, top)
    xs = sorted(set(x_ticks))
    inset = 16.0
    x_low, x_high = (xs[0], xs[-1]) if len(xs) > 1 else (xs[0] * 0.8, xs[0] * 1.25)
    x = Scale(x_low, x_high, left + inset, right - inset, log)
    grid, texts = _y_axis(y, left, right, percent)
    texts += [Text(x.place(v), bottom + 14, f"{v:g}") for v in _apart(xs, x)]
    texts.append(Text((left + right) / 2, height - 6, x_title, "axis"))
    if title:
        texts.append(Text(left, 13, title, "head", "start"))
    boxes = [Box(left, y.place(band[1]), right - left, y.place(band[0]) - y.place(band[1]))] if band else []
    # Models stand side by side at each n, so that no interval hides another; never further than to the next n.
    models = sorted({s.model for s in series})
    room = min((x.place(b) - x.place(a) for a, b in itertools.pairwise(xs)), default=40.0)
    step = min(6.0, 0.7 * room / max(len(models), 1)) if labelled else 0.0
    shift = {m: round((i - (len(models) - 1) / 2) * step, 1) for i, m in enumerate(models)}
    paths: list[Path] = []
    marks: list[Mark] = []
    tags: list[tuple[float, Series]] = []
    for s in series:
        places = [
            (round(x.place(p.x) + shift[s.model], 1), y.place(p.value), p) for p in s.points if math.isfinite(p.value)
        ]
        if len(places) > 1:
            line = " ".join(f"{'L' if i else 'M'}{a:g} {b:g}" for i, (a, b, _) in enumerate(places))
            paths.append(Path(line, s.kind, s.model))
        if s.kind == "main":
            for a, b, p in places:
                bar = (a, _held(p.low, y), a, _held(p.high, y)) if math.isfinite(p.low) else None
                marks.append(Mark(a, b, s.model, p.title, bar))
        if places and s in labels:
            tags.append((places[-1][1], s))
    for place, s in _keep_apart(tags, top, bottom):
        texts.append(Text(right + 4, place + 3.5, s.label, "label", "start", s.model))
    return Chart(WIDTH, height, tuple(grid), tuple(boxes), tuple(paths), tuple(marks), tuple(texts), title)


def rows(
    content: Sequence[Row],
    *,
    models: int,
    include: Sequence[float] = (0.0,),
    least: float = 0.2,
    band: tuple[float, float] | None = None,
    percent: bool = True,
    limits: tuple[float, float] | None = None,
    names: float = 100.0,
) -> Chart:
    """A row a name: each model's estimate with its interval, published models in grey above them."""
    values = [v for r in content for e in r.estimates for v in (e.value, e.low, e.high)]
    values += [v for r in content for v in r.others]
    low, high = limits or spread(values, (*include, *(band or ())), least)
    left, right, top = names, WIDTH - 20.0, 6.0
    x = Scale(low, high, left, right)
    pitch = 9.0
    texts: list[Text] = []
    marks: list[Mark] = []
    grey: list[str] = []
    lines: list[Path] = []
    at = top
    groups: list[tuple[float, float]] = []
    for row in content:
        if row.heading:
            at += 18
        if row.heading or not groups:
            groups.append((at, at))
            texts.append(Text(4, at - 4, row.heading, "head", "start"))
        others = bool(row.others)
        tall = pitch * (models + others) + 7
        lines.append(Path(f"M{left:g} {at:.1f}H{right:g}", "rule"))
        texts.append(Text(left - 8, at + tall / 2 + 3.5, row.name, "row", "end"))
        for v in row.others:
            if math.isfinite(v):
                grey.append(f"M{x.place(v):g} {at + 4:.1f}v7")
        if not any(math.isfinite(e.value) for e in row.estimates):
            texts.append(Text(left + 8, at + tall / 2 + 3.5, "none to count", "none", "start"))
        for i, e in enumerate(row.estimates):
            if not math.isfinite(e.value):
                continue
            y = round(at + 3.5 + pitch * (others + i) + pitch / 2, 1)
            bar = (_held(e.low, x), y, _held(e.high, x), y) if math.isfinite(e.low) else None
            marks.append(Mark(x.place(e.value), y, e.model, e.title, bar))
        at += tall
        groups[-1] = (groups[-1][0], at)
    bottom = round(at, 1)
    height = bottom + 22
    grid = list(lines)
    for v in ticks(low, high, 4):
        place = x.place(v)
        line = "".join(f"M{place:g} {start:.1f}V{end:.1f}" for start, end in groups)
        grid.append(Path(line, "zero" if v == 0 else "grid"))
        texts.append(Text(place, bottom + 14, _tick(v, percent)))
    boxes = [Box(x.place(band[0]), top, x.place(band[1]) - x.place(band[0]), bottom - top)] if band else []
    paths = [Path("".join(grey), "others")] if grey else []
    return Chart(WIDTH, height, tuple(grid), tuple(boxes), tuple(paths), tuple(marks), tuple(texts))


def plane(
    clouds: Sequence[tuple[int, Sequence[tuple[float, float]], tuple[float, float], str, str]],
    *,
    x_title: str,
    y_title: str,
    corners: Sequence[str],
) -> Chart:
    """Two scores against each other: for each model (number, draws, estimate, label, title)."""
    draws = [point for _, cloud, centre, _, _ in clouds for point in (*cloud, centre)]
    x_high = spread([p[0] for p in draws], (0.0,), 0.3)[1]
    y_high = spread([p[1] for p in draws], (0.0,), 0.3)[1]
    height, left, right, top = 300.0, 44.0, WIDTH - 16.0, 14.0
    bottom = height - 38.0
    x, y = Scale(0.0, x_high, left, right), Scale(0.0, y_high, bottom, top)
    grid, texts = _y_axis(y, left, right, percent=False)
    for v in ticks(0.0, x_high, 4):
        grid.append(Path(f"M{x.place(v):g} {top:g}V{bottom:g}", "zero" if v == 0 else "grid"))
        texts.append(Text(x.place(v), bottom + 14, f"{v:g}"))
    texts.append(Text((left + right) / 2, height - 6, x_title, "axis"))
    texts.append(Text(left, 9, y_title, "axis", "start"))
    spots = ((left + 6, bottom - 7, "start"), (right - 4, bottom - 7, "end"))
    spots += ((left + 6, top + 14, "start"), (right - 4, top + 14, "end"))
    texts += [Text(a, b, word, "corner", c) for (a, b, c), word in zip(spots, corners, strict=True)]
    paths = [
        Path("".join(f"M{x.place(a):g} {y.place(b):g}h0" for a, b in cloud), "cloud", model)
        for model, cloud, _, _, _ in clouds
    ]
    marks, tags = [], []
    for model, _, (a, b), label, title in clouds:
        if math.isfinite(a) and math.isfinite(b):
            marks.append(Mark(x.place(a), y.place(b), model, title))
            tags.append((y.place(b), (x.place(a), label, model)))
    for place, (a, label, model) in _keep_apart(tags, top + 8, bottom - 24):
        left_side = a > (left + right) / 2
        texts.append(
            Text(a - 9 if left_side else a + 9, place + 3.5, label, "label", "end" if left_side else "start", model)
        )
    return Chart(WIDTH, height, tuple(grid), (), tuple(paths), tuple(marks), tuple(texts))


def _y_axis(y: Scale, left: float, right: float, percent: bool) -> tuple[list[Path], list[Text]]:
    grid, texts = [], []
    for v in ticks(y.low, y.high, 4):
        place = y.place(v)
        grid.append(Path(f"M{left:g} {place:g}H{right:g}", "zero" if v == 0 else "grid"))
        texts.append(Text(left - 6, place + 3.5, _tick(v, percent), anchor="end"))
    return grid, texts


def _tick(value: float, percent: bool) -> str:
    return (f"{100 * value:g}\u00a0%" if percent else f"{value:g}").replace("-", "−")


def _held(value: float, scale: Scale) -> float:
    return scale.place(min(max(value, scale.low), scale.high))


def _apart(values: Sequence[float], scale: Scale) -> list[float]:
    """The values whose labels do not run into each other, the largest always among them."""
    kept: list[float] = []
    for v in reversed(values):
        if not kept or scale.place(kept[-1]) - scale.place(v) >= 15:
            kept.append(v)
    return kept


def _keep_apart(tags: list[tuple[float, Any]], top: float, bottom: float) -> list[tuple[float, Any]]:
    """Labels by their wanted height, moved as little as needed so that none covers another."""
    ordered = sorted(tags, key=lambda tag: tag[0])
    places = [place for place, _ in ordered]
    for _ in range(40):
        for i in range(1, len(places)):
            if (short := _GAP - (places[i] - places[i - 1])) > 0:
                places[i - 1] -= short / 2
                places[i] += short / 2
        if places:
            places[0] = max(places[0], top)
            places[-1] = min(places[-1], bottom)
    return [(round(place, 1), tag) for place, (_, tag) in zip(places, ordered, strict=True)]
