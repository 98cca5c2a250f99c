"""A reading as JSON and back: what ``--json`` prints and what a run folder keeps for the report.

Knows: the fields of the file.
Does not know: how a reading is made or shown.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from belie.lens.result import Ablation, Behaviour, Curve, Effect, Reading
from belie.lens.separation import Separation
from belie.respondents.base import BadInput

SCHEMA = 1


def to_json(reading: Reading) -> dict[str, Any]:
    """JSON values; nan becomes null, floats keep six significant digits."""
    return {
        "schema": SCHEMA,
        "instrument": reading.instrument,
        "model": reading.model,
        "layers": reading.layers,
        "conditions": list(reading.conditions),
        "settings": dict(reading.settings),
        "behaviour": [
            {name: plain(getattr(one, name)) for name in Behaviour.__slots__}  # type: ignore[attr-defined]
            for one in reading.behaviour
        ],
        "curves": [_curve(one) for one in reading.curves],
    }


def ablation_to_json(ablation: Ablation) -> dict[str, Any]:
    """JSON values, as above."""
    return plain({"schema": SCHEMA, **asdict(ablation)})


def from_json(content: Mapping[str, Any], where: str) -> Reading:
    """A reading from its JSON, without the bootstrap draws. Raises BadInput naming the file."""
    try:
        return Reading(
            content["instrument"],
            str(content["model"]),
            int(content["layers"]),
            tuple(map(str, content["conditions"])),
            tuple(_of_curve(one, int(content["layers"])) for one in content["curves"]),
            tuple(Behaviour(**_filled(one)) for one in content["behaviour"]),
            dict(content["settings"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{where} is no reading of the lens ({error!r}): make it again with belie lens read.") from error


def load_reading(path: Path) -> Reading:
    """A reading that was kept in a file. Raises BadInput."""
    return from_json(_content(path), path.name)


def load_ablation(path: Path) -> Ablation:
    """An ablation that was kept in a file. Raises BadInput."""
    content = _content(path)
    try:
        told = {name: value for name, value in content.items() if name not in ("schema", "effects", "band")}
        effects = tuple(Effect(**_filled(one)) for one in content["effects"])
        return Ablation(**told, band=(int(content["band"][0]), int(content["band"][1])), effects=effects)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise BadInput(f"{path.name} is no ablation ({error!r}): make it again with belie lens ablate.") from error


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path.name} can't be read ({error}): make it again with belie lens.") from error
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise BadInput(f"{path.name} is not in form {SCHEMA}, which this belie reads: make it again with belie lens.")
    return content


def _curve(one: Curve) -> dict[str, Any]:
    found = one.separation
    return {
        "question": one.question,
        "condition": one.condition,
        "place": one.place,
        "method": one.method,
        "peak": one.peak,
        "positives": found.positives,
        "negatives": found.negatives,
        "pairs": found.pairs,
        "auroc": plain(found.auroc),
        "interval": plain(found.interval),
        "p": plain(found.p),
        "p_holm": plain(found.p_holm),
        "difference": plain(found.difference),
        "difference_interval": plain(found.difference_interval),
        "shift": None if one.shift is None else plain(one.shift),
    }


def _filled(one: Mapping[str, Any]) -> dict[str, Any]:
    """null stands for nan."""
    return {name: math.nan if value is None else value for name, value in one.items()}


def _of_curve(one: Mapping[str, Any], layers: int) -> Curve:
    def array(name: str, *shape: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array(one[name], float).reshape(layers + 1, *shape)

    found = Separation(
        array("auroc"),
        array("interval", 2),
        array("p"),
        array("p_holm"),
        array("difference"),
        array("difference_interval", 2),
        int(one["positives"]),
        int(one["negatives"]),
        int(one["pairs"]),
        np.empty((0, layers + 1)),
    )
    shift = None if one["shift"] is None else array("shift", 3)
    return Curve(one["question"], one["condition"], one["place"], one["method"], found, shift)


def plain(value: Any) -> Any:
    """Arrays as lists, nan and infinities as None, floats at six significant digits; in containers too."""
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray):
        return [plain(one) for one in value.tolist()]
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
