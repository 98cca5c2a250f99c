"""What a model answers when the contrast is taken out of its residual stream, and when a random direction is.

Knows: projections, bands of layers, random directions as control.
Does not know: how probes are made or how anything is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from belie.lens.anatomy import Anatomy, Edit
from belie.lens.folder import Lens
from belie.lens.probes import Probe
from belie.lens.result import CONTROLS, MEASURES, Ablation, Effect, Where
from belie.lens.states import Reader
from belie.respondents.base import BadInput
from belie.statistics import Resampler, percentile

Told = Callable[[int, int, str], None]
#: Random directions of each control at least.
FEWEST_RANDOM = 10


def band_of(text: str, layers: int) -> tuple[int, int]:
    """``"10-20"`` or ``"12"`` as a band of layers 0 … L. Raises BadInput."""
    first, _, last = text.partition("-")
    if not (first.isdecimal() and (last.isdecimal() or not last)):
        raise BadInput(f"--layers takes a layer or a band, such as 12 or 10-20; not {text!r}.")
    band = int(first), int(last or first)
    if not band[0] <= band[1] <= layers:
        raise BadInput(f"--layers {text}: this model has the layers 0 to {layers}.")
    return band


def ablate(
    instrument: str,
    model: str,
    reader: Reader,
    parts: Anatomy,
    lens: Lens,
    probes: Sequence[Probe],
    band: tuple[int, int],
    settings: Mapping[str, Any],
    *,
    where: Where = "all",
    randoms: int = FEWEST_RANDOM,
    resamples: int = 2000,
    seed: int = 0,
    told: Told | None = None,
) -> Ablation:
    """Answers with and without the contrast at the band's layers, and under ``randoms`` random directions a control.

    Directions have length one. At each layer of the band the part of the state along v_ℓ is removed, at every position
    or at the last. Raises BadInput for fewer than ten random directions.
    """
    if randoms < FEWEST_RANDOM:
        raise BadInput(f"--random {randoms}: at least {FEWEST_RANDOM}, or there is nothing to hold the change against.")
    layers = range(band[0], band[1] + 1)
    own = {layer: _unit(lens.contrast[layer]) for layer in layers}
    draw = np.random.default_rng([seed, 17])
    total = 2 + len(CONTROLS) * randoms
    passes = 0

    def run(edits: Mapping[int, Edit]) -> NDArray[np.float64]:
        nonlocal passes
        if told is not None:
            told(passes, total, "passes over the probes")
        passes += 1
        return reader.masses(probes, edits)

    before = run({})
    after = run({layer: removal(own[layer], own[layer], where, parts) for layer in layers})
    random: dict[str, list[NDArray[np.float64]]] = {name: [] for name in CONTROLS}
    for _ in range(randoms):
        other = {layer: _unit(draw.normal(size=parts.width)) for layer in layers}
        random["removed"].append(run({i: removal(other[i], other[i], where, parts) for i in layers}))
        random["moved"].append(run({i: removal(own[i], other[i], where, parts) for i in layers}))
    effects = []
    for condition in dict.fromkeys(probe.condition for probe in probes):
        at = [i for i, probe in enumerate(probes) if probe.condition == condition]
        some = [probes[i] for i in at]
        columns = [_columns(masses[at], some) for masses in (before, after)]
        others = {name: [_columns(masses[at], some) for masses in runs] for name, runs in random.items()}
        effects += _effects(condition, some, columns, others, resamples, seed)
    return Ablation(instrument, model, band, where, len(probes), tuple(effects), settings)


def removal(found: NDArray[Any], pushed: NDArray[Any], where: Where, parts: Anatomy) -> Edit:
    """h ← h − (h · found) pushed, for unit vectors, at every position or at the last only."""
    a, b = (torch.from_numpy(np.asarray(v, np.float32)).to(parts.device) for v in (found, pushed))

    def edit(state: torch.Tensor) -> torch.Tensor:
        moved = (state.float() @ a)[..., None] * b
        if where == "last":
            moved[:, :-1] = 0
        return (state.float() - moved).to(state.dtype)

    return edit


def _unit(vector: NDArray[Any]) -> NDArray[np.float64]:
    held = vector.astype(np.float64)
    length = float(np.linalg.norm(held))
    if not length:
        raise BadInput("The contrast vanishes at one of these layers, so there is no direction to take out.")
    return held / length


def _columns(masses: NDArray[np.float64], probes: Sequence[Probe]) -> NDArray[np.float64]:
    """For each probe the numerators and denominators of the `MEASURES`: (N, 2 · measures)."""
    truth = np.array([probe.item.truth for probe in probes])
    sums = masses.sum(1)
    yes = masses[:, 0] / np.where(sums > 0, sums, 1.0)
    right = (masses[:, 0] > masses[:, 1]) == truth
    one = np.ones(len(probes))
    return np.column_stack([yes, yes * truth, yes * ~truth, right, one, truth, ~truth, one]).astype(float)


def _rates(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    count = len(MEASURES)
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums[..., :count] / sums[..., count:]


def _effects(
    condition: str,
    probes: Sequence[Probe],
    columns: Sequence[NDArray[np.float64]],
    others: Mapping[str, Sequence[NDArray[np.float64]]],
    resamples: int,
    seed: int,
) -> list[Effect]:
    units = list(dict.fromkeys(probe.unit for probe in probes))
    index = np.array([units.index(probe.unit) for probe in probes])
    per_unit = [np.stack([one[index == i].sum(0) for i in range(len(units))]) for one in columns]
    before, after = (_rates(one.sum(0)) for one in columns)
    resampler = Resampler(resamples, seed)
    draws = _rates(resampler.sums(per_unit[1], 0)) - _rates(resampler.sums(per_unit[0], 0))
    spans = percentile(draws)
    moved = {name: np.stack([_rates(one.sum(0)) - before for one in runs]) for name, runs in others.items()}
    effects = []
    for i, measure in enumerate(MEASURES):
        change = float(after[i] - before[i])
        random = {name: tuple(float(v) for v in runs[:, i]) for name, runs in moved.items()}
        p = {
            name: (1 + sum(abs(v) >= abs(change) - 1e-12 for v in runs)) / (1 + len(runs))
            for name, runs in random.items()
        }
        low, high = (float(v) for v in spans[i])
        effects.append(Effect(condition, measure, float(before[i]), float(after[i]), change, low, high, random, p))
    return effects
