"""What a comparison of states came to, in sentences.

Knows: what a layer that separates shows, and what it does not.
Does not know: how it was tested.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from belie.numbers import number

ALPHA = 0.05


def told(one: Mapping[str, Any]) -> str:
    """The question and its answer; ``one`` is a comparison of ``states.json``."""
    high, low = one["high"], one["low"]
    names = " and ".join(
        f"{side['at_equal_n']} of {side['items']} {'/'.join(side['kinds'])} items" for side in (high, low)
    )
    if not one["tested"]:
        return f"{one['question']} Not tested: only {names} share an n and a category with the other class."
    found = [row["layer"] for row in one["layers"] if row["p_holm"] is not None and row["p_holm"] <= ALPHA]
    best = max(one["layers"], key=lambda row: row["auroc"] or 0.0)
    basis = f"({names})"
    where = f"highest at layer {best['layer']}: AUROC {number(best['auroc'])}"
    if not found:
        text = f"{one['question']} No layer tells ({where}) {basis}. That is no proof that the states hold nothing."
    else:
        tell = f"Layer {found[0]} tells" if len(found) == 1 else f"Layers {_spans(found)} tell"
        text = f"{one['question']} {tell}, {where} {basis}."
        if one["expected"]:
            text += " Expected: the answer itself is being prepared there."
    if one["own_probability"] is not None:
        text += f" How unsure the first word was, by itself: AUROC {number(one['own_probability'])}."
    return text


def _spans(layers: list[int]) -> str:
    """``[1, 2, 3, 7]`` as "1–3, 7"."""
    spans: list[list[int]] = []
    for layer in layers:
        if spans and layer == spans[-1][1] + 1:
            spans[-1][1] = layer
        else:
            spans.append([layer, layer])
    return ", ".join(f"{a}" if a == b else f"{a}–{b}" for a, b in spans)
