"""A reading: what the lens tells of owed and not owed, layer by layer, and what the model then answers (METHOD §5).

Knows: which comparisons are made.
Does not know: how states were taken, how anything is printed or drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belie.lens.folder import Lens
from belie.lens.linear import folds_of, linear_probe
from belie.lens.probes import PLACES, Probe
from belie.lens.readout import lens_scores, logit_lens_scores
from belie.lens.result import METHODS, Behaviour, Curve, Instrument, Question, Reading
from belie.lens.separation import separation, together
from belie.lens.states import States
from belie.statistics import percentile


def read(
    instrument: Instrument,
    model: str,
    probes: Sequence[Probe],
    states: States,
    lens: Lens,
    settings: Mapping[str, Any],
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> Reading:
    """Every comparison of the probes' states: by condition, place and method; for CSQ also contradictions."""
    conditions = tuple(dict.fromkeys(probe.condition for probe in probes))
    curves: list[Curve] = []
    behaviour: list[Behaviour] = []
    for condition in conditions:
        at = [i for i, probe in enumerate(probes) if probe.condition == condition]
        own = [probes[i] for i in at]
        labels = np.array([probe.item.truth for probe in own])
        masses, easy = states.masses[at], states.easy[at]
        knows = _contradicts(labels, masses, easy)
        behaviour.append(_behaviour(condition, labels, masses, knows))
        for number, place in enumerate(PLACES):
            held = states.states[at, number]
            told = {"lens": lens_scores(lens, held), "logit lens": logit_lens_scores(lens, held)}
            how: dict[str, Any] = {"resamples": resamples, "seed": seed}
            for question, kept, truth in _questions(instrument, place, labels, knows):
                some = [own[i] for i in kept]
                toward = np.where(labels[kept], 1.0, -1.0)[:, None] if question == "contradiction" else 1.0
                groups, units = [probe.group for probe in some], [probe.unit for probe in some]
                for method in METHODS:
                    if method == "probe":
                        folds = folds_of([probe.fold for probe in some], units)
                        probed = linear_probe(held[kept], truth[kept], groups, folds, seed)
                        scores, within, chance = probed.scores, probed.strata, probed.chance
                    else:
                        scores, within, chance = told[method][kept] * toward, groups, None
                    found = separation(scores, truth[kept].tolist(), within, units, chance=chance, **how)
                    curves.append(Curve(question, condition, place, method, found))
    curves = _adjusted(curves)
    if instrument == "knownlie":
        curves = _shifted(curves)
    return Reading(instrument, model, lens.layers, conditions, tuple(curves), tuple(behaviour), settings)


def _questions(
    instrument: Instrument, place: str, labels: NDArray[np.bool_], knows: NDArray[np.float64]
) -> list[tuple[Question, NDArray[np.intp], NDArray[np.bool_]]]:
    """What is asked of the states at a place: the question, the probes it is asked of, and their labels."""
    asked: list[tuple[Question, NDArray[np.intp], NDArray[np.bool_]]] = [("truth", np.arange(len(labels)), labels)]
    if instrument == "csq" and place == "decision":
        asked.append(("contradiction", np.flatnonzero(~np.isnan(knows)), knows == 1))
    return asked


def _contradicts(
    labels: NDArray[np.bool_], masses: NDArray[np.float64], easy: NDArray[np.float64]
) -> NDArray[np.float64]:
    """1 where the first answer is wrong and the easy one right, 0 where both are wrong, nan elsewhere (METHOD §1.2)."""
    said, then = masses[:, 0] > masses[:, 1], easy[:, 0] > easy[:, 1]
    wrong = (said != labels) & ~np.isnan(easy[:, 0])
    return np.where(wrong, (then == labels).astype(float), np.nan)


def _behaviour(
    condition: str, labels: NDArray[np.bool_], masses: NDArray[np.float64], knows: NDArray[np.float64]
) -> Behaviour:
    said = masses[:, 0] > masses[:, 1]
    wrong = ~np.isnan(knows)
    return Behaviour(
        condition,
        len(labels),
        float((said == labels).mean()),
        _mean(said[labels]),
        _mean(said[~labels]),
        float(masses.sum(1).mean()),
        int(wrong.sum()),
        int((knows[wrong] == 1).sum()),
    )


def _mean(values: NDArray[np.bool_]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _adjusted(curves: Sequence[Curve]) -> list[Curve]:
    """Holm over all layers, places and conditions of a question and a method."""
    found = {id(curve): curve for curve in curves}
    for pair in dict.fromkeys((c.question, c.method) for c in curves):
        some = [c for c in curves if (c.question, c.method) == pair]
        for curve, one in zip(some, together([c.separation for c in some]), strict=True):
            found[id(curve)] = replace(curve, separation=one)
    return [found[id(curve)] for curve in curves]


def _shifted(curves: Sequence[Curve]) -> list[Curve]:
    """Each curve with its distance from the same under ``none``: the same cases, resampled alike."""
    plain = {(c.question, c.place, c.method): c for c in curves if c.condition == "none"}
    out = []
    for curve in curves:
        base = plain.get((curve.question, curve.place, curve.method))
        if base is None or base is curve or curve.separation.draws.shape != base.separation.draws.shape:
            out.append(curve)
            continue
        moved = curve.separation.auroc - base.separation.auroc
        spans = percentile(curve.separation.draws - base.separation.draws)
        out.append(replace(curve, shift=np.column_stack([moved, spans])))
    return out
