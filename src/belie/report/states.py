"""Hidden states on the page: what each layer tells at equal n, and its picture in two dimensions.

Knows: ``states.json`` in a run's folder (`belie.csq.embedding`), and how it becomes figures.
Does not know: how states are read or tested; a run without that file has nothing here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from belie.csq.branch import KINDS
from belie.csq.embedding.words import told
from belie.numbers import number, percent
from belie.report.chart import WIDTH, Chart, Path, Point, Scale, Series, Text, curves
from belie.report.reading import Model
from belie.report.tables import Illustration, counted, figure, share, table, words

_COLUMNS, _SIDE, _GAP = 4, 76.0, 12.0
_TITLES = {
    "contradiction_error": "Contradiction against plain error, before the first answer",
    "honest_contradiction": "Right against contradiction, before the first answer",
    "contradiction_error_followup": "Contradiction against plain error, before the follow-up's answer",
}


@dataclass(frozen=True, slots=True)
class States:
    """The models that were looked into, what was found in words, and the figures."""

    sentences: tuple[tuple[Model, tuple[str, ...]], ...]
    figures: tuple[Illustration, ...]


def states(models: Sequence[Model]) -> States | None:
    """None where no run holds states."""
    known = [(model, made) for model in models if (made := _read(model)) is not None]
    if not known:
        return None
    sentences = tuple((model, tuple(told(one) for one in made["comparisons"])) for model, made in known)
    figures = [one for name in _TITLES if (one := _by_layer(name, known)) is not None]
    figures += [_picture(model, made) for model, made in known]
    return States(sentences, tuple(figures))


def _read(model: Model) -> Mapping[str, Any] | None:
    if model.csq is None:
        return None
    try:
        made = json.loads((model.csq.folder.path / "states.json").read_bytes())
        return made if made["comparisons"] and made["pictures"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _by_layer(name: str, known: Sequence[tuple[Model, Mapping[str, Any]]]) -> Illustration | None:
    series, lines, said, layers = [], [], [], set()
    for model, made in known:
        one = next((c for c in made["comparisons"] if c["name"] == name and c["layers"]), None)
        if one is None:
            continue
        points = []
        for row in one["layers"]:
            at, value = int(row["layer"]), _float(row["auroc"])
            low, high = _float(row["low"]), _float(row["high"])
            points.append(Point(at, value, low, high, f"{model.name}, layer {at}: {number(value)}"))
            layers.add(at)
            key = f"states/{model.number}/{name}/{at}"
            lines.append([
                words(model.name, model.number), counted(at), figure(value, key=key), figure(low), figure(high),
                figure(_float(row["p"]), 4), figure(_float(row["p_holm"]), 4, key=f"{key}.p"), counted(row["pairs"]),
            ])  # fmt: skip
        series.append(Series(model.number, points, model.label))
        best = max(points, key=lambda p: p.value if math.isfinite(p.value) else -1)
        said.append(f"{model.name}: highest at layer {best.x:g}, {number(best.value)}")
    if not series:
        return None
    chart = curves(
        series, x_title="layer", x_ticks=sorted(layers), include=(0.5,), log=False, band=(0.495, 0.505),
        limits=(0.0, 1.0),
    )  # fmt: skip
    return Illustration(
        f"states-{name.replace('_', '-')}",
        _TITLES[name],
        "How often a linear reading of the layer, fitted on other chains, puts an item of the one class above one of "
        "the other, of the same length and category: 0.5 is nothing, the grey line.",
        ". ".join(said) + ".",
        table(
            ("Model", "layer", "AUROC", "from", "to", "p", "p (Holm)", "pairs"),
            lines,
            "p: classes permuted among chains of the same length; Holm over the layers. AUROC: out of fold; pairs "
            "of one fold are compared, over all ways of dealing out the folds.",
        ),
        (chart,),
    )


def _picture(model: Model, made: Mapping[str, Any]) -> Illustration:
    pictures = made["pictures"]
    rows = -(-len(pictures) // _COLUMNS)
    top = 26.0
    texts = [Text(4 + 96.0 * i, 12, kind, "label", "start", i) for i, kind in enumerate(KINDS)]
    frames, paths, lines = [], [], []
    for place, one in enumerate(pictures):
        left = 4 + (place % _COLUMNS) * (_SIDE + _GAP)
        above = top + (place // _COLUMNS) * (_SIDE + _GAP + 12) + 12
        frames.append(Path(f"M{left:g} {above:g}h{_SIDE:g}v{_SIDE:g}h-{_SIDE:g}z", "grid"))
        texts.append(Text(left, above - 3, f"layer {int(one['layer'])}", "tick", "start"))
        x, y = Scale(-1.05, 1.05, left, left + _SIDE), Scale(-1.05, 1.05, above + _SIDE, above)
        for i in (0, 2, 1):  # contradictions are few, and lie on top
            d = "".join(f"M{x.place(float(a)):g} {y.place(float(b)):g}h0" for k, a, b in one["dots"] if k == i)
            if d:
                paths.append(Path(d, "dots", i))
        shares = [_float(value) for value in one["shares"]]
        lines.append([words(model.name, model.number), counted(int(one["layer"])), *(share(v) for v in shares)])
    first = pictures[0]["dots"]
    counts = ", ".join(f"{sum(dot[0] == i for dot in first)} {kind}" for i, kind in enumerate(KINDS))
    return Illustration(
        f"states-pictures-{model.number}",
        f"{model.name}: the states before the first answer, layer by layer",
        f"The two main directions of each layer, n and category taken out; a dot is an item ({counts}). Colours are "
        "classes here, not models.",
        f"{len(pictures)} small pictures, one a layer, of the items' states in two dimensions; the two directions hold "
        f"{percent(_float(pictures[-1]['shares'][0]))} and {percent(_float(pictures[-1]['shares'][1]))} of the "
        "variance in the last.",
        table(("Model", "layer", "first direction", "second direction"), lines, "Shares of the variance."),
        (Chart(WIDTH, top + rows * (_SIDE + _GAP + 12) + 4, tuple(frames), (), tuple(paths), (), tuple(texts)),),
        wide=True,
    )


def _float(value: object) -> float:
    return math.nan if value is None else float(value)  # type: ignore[arg-type]
