"""From states to one number a state: yes against no, through the lens or the logit lens.

Knows: readouts (METHOD §5).
Does not know: labels, intervals.

A readout is the difference of the yes-logits and the no-logits of softmax(W_U · norm(J_ℓ h)), up to a constant.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from belie.lens.folder import Lens

Floats = NDArray[np.float64]


def lens_scores(lens: Lens, states: NDArray[np.float32]) -> Floats:
    """u · (J_ℓ h) / size(J_ℓ h) for states (N, L + 1, width) → (N, L + 1).

    With only the contrast fitted, J_ℓ h is not known beyond its product with u: then v_ℓ · h / size(h), which has the
    same sign, and is the same where J = I.
    """
    if not lens.full:
        return _over(_dots(states, lens.contrast), states, lens)
    scores = np.empty(states.shape[:2])
    for layer in range(lens.layers + 1):
        carried = states[:, layer] if layer == lens.layers else states[:, layer] @ lens.jacobian(layer).T
        scores[:, layer] = _over(carried @ lens.direction, carried, lens)
    return scores


def logit_lens_scores(lens: Lens, states: NDArray[np.float32]) -> Floats:
    """The same with J = I: u · h / size(h)."""
    return _over(_dots(states, np.broadcast_to(lens.direction, lens.contrast.shape)), states, lens)


def _dots(states: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.stack([states[:, layer] @ vectors[layer] for layer in range(len(vectors))], 1)


def _over(products: NDArray[np.float32], states: NDArray[np.float32], lens: Lens) -> Floats:
    """Divided by what the final norm divides by: the root mean square, about the mean for a layer norm."""
    held = states.astype(np.float64)
    if lens.settings["centred"]:
        held -= held.mean(-1, keepdims=True)
    size = np.sqrt((held**2).mean(-1))
    return products / np.where(size > 0, size, 1.0)
