"""What a reading and an ablation say, in sentences and names.

Knows: what each figure is called, and when there is nothing to be seen.
Does not know: terminals, pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from belie.lens.result import Ablation, Curve, Effect, Reading
from belie.numbers import number

PLACES: Mapping[str, str] = {"case": "case in view", "reply": "before the reply", "decision": "at the answer"}
CONDITIONS: Mapping[str, str] = {"none": "no pressure", "incentive": "under pressure", "instructed": "told to lie"}
_ASKED: Mapping[tuple[str, str], str] = {
    ("knownlie", "truth"): "owed from not owed",
    ("csq", "truth"): "truth Yes from truth No",
    ("csq", "contradiction"): "wrong but knowing better from wrong throughout",
}
MEASURES: Mapping[str, str] = {
    "yes": "share of Yes",
    "yes_if_yes": "share of Yes where it is true",
    "yes_if_no": "share of Yes where it is false",
    "right": "right answers",
}


def condition_name(condition: str) -> str:
    return CONDITIONS.get(condition, condition)


def asked(instrument: str, question: str) -> str:
    """What two kinds are told apart."""
    return _ASKED[instrument, question]


def spans(layers: Iterable[int]) -> str:
    """``[3, 4, 5, 9]`` as ``3–5, 9``; empty for none."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][1] + 1:
            runs[-1][1] = layer
        else:
            runs.append([layer, layer])
    return ", ".join(f"{a}–{b}" if b > a else f"{a}" for a, b in runs)


def peak_words(curve: Curve) -> str:
    """``0.71 [0.58, 0.83] at layer 17``; "–" where nothing could be compared."""
    at = curve.peak
    if at is None:
        return "–"
    low, high = curve.separation.interval[at]
    return f"{number(curve.separation.auroc[at], 2)} [{number(low, 2)}, {number(high, 2)}] at layer {at}"


def verdicts(reading: Reading) -> list[str]:
    """A sentence for every question asked of the states: where the lens tells it, or that there is no signal."""
    told = []
    for question in dict.fromkeys(curve.question for curve in reading.curves):
        lens = [c for c in reading.curves if c.question == question and c.method == "lens"]
        seen = [c for c in lens if c.separation.signal.any()]
        what = asked(reading.instrument, question)
        if all(c.peak is None for c in lens):
            counts = sum(c.separation.positives for c in lens), sum(c.separation.negatives for c in lens)
            told.append(f"The lens, {what}: too few to compare ({counts[0]} against {counts[1]} probes).")
        elif not seen:
            told.append(
                f"The lens shows no signal of {what}: after Holm, chance (0.5) is not ruled out at any layer, at any "
                "place, in any condition."
            )
        for curve in seen:
            found = curve.separation
            layers = np.flatnonzero(found.signal)
            turned = found.auroc[layers] < 0.5
            how = "" if not turned.any() else " (turned round: less yes where it is true)" if turned.all() else ""
            told.append(
                f"The lens tells {what}{how}, {condition_name(curve.condition)}, {PLACES[curve.place]}, at "
                f"layer{'s' if len(layers) > 1 else ''} {spans(layers.tolist())}; furthest from chance: "
                f"{peak_words(curve)}."
            )
        probed = [c for c in reading.curves if c.question == question and c.method == "probe"]
        if lens and not seen and any(c.separation.signal.any() for c in probed):
            told.append(
                f"A linear probe does tell {what}: it is in the states, but not along the direction that makes the "
                "model say yes or no."
            )
    return told


def effect_words(effect: Effect) -> str:
    """What an ablation did to one measure."""
    change = f"{number(100 * effect.change, 1, signed=True)} points"
    span = f"[{number(100 * effect.low, 1, signed=True)}, {number(100 * effect.high, 1, signed=True)}]"
    return f"{change} {span}"


def ablation_verdicts(ablation: Ablation) -> list[str]:
    """A sentence a condition: whether taking the contrast out moves the answers further than random directions do."""
    told = []
    for effect in ablation.effects:
        if effect.measure != "yes":
            continue
        count = len(effect.random["moved"])
        beyond = all(abs(v) < abs(effect.change) for moves in effect.random.values() for v in moves)
        told.append(
            f"{condition_name(effect.condition)}: taking the contrast out moves the share of Yes by "
            f"{effect_words(effect)}, "
            + (
                f"further than any of {count} random directions of either kind."
                if beyond
                else f"no further than random directions do (p = {number(max(effect.p.values()), 2)}): no effect."
            )
        )
    return told
