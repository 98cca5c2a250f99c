"""Fitting: means over prompts of what `pulled` gives, kept so that a fit that was stopped goes on (METHOD §5).

Knows: halves of the prompts, checkpoints, convergence.
Does not know: how one prompt's Jacobian is taken, the command line.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from belie.lens import LENS_VERSION
from belie.lens import folder as disk
from belie.lens.anatomy import Anatomy, anatomy, contrast
from belie.lens.folder import Lens, load_lens
from belie.lens.jacobian import FIRST_SOURCE, pulled
from belie.lens.passages import Passages, prompts
from belie.respondents.base import BadInput
from belie.respondents.local.forms import forms
from belie.respondents.local.model import Loaded, weights_sha256
from belie.runs import files

#: Called with what is done, out of what, and of which part.
Told = Callable[[int, int, str], None]
#: Seconds between two checkpoints of the contrast.
_EVERY = 5.0


def fit(
    loaded: Loaded,
    model: str,
    texts: Passages,
    folder: Path,
    *,
    count: int = 100,
    tokens: int = 128,
    full: bool = False,
    block: int = 32,
    resume: bool = False,
    told: Told | None = None,
) -> Lens:
    """Fits the contrast vectors and, with ``full``, the whole J of every layer.

    ``count`` prompts of ``tokens`` tokens; ``block`` rows of J are computed and saved at a time, which bounds the
    memory (``block`` · (L + 1) · tokens · width numbers). The weights should be float32. A fit stopped at any moment
    goes on with ``resume`` and ends with the very numbers of one that was not; ``full`` may be added to a finished
    contrast. Raises BadInput.
    """
    if block < 1:
        raise BadInput(f"--block {block}: at least 1 row.")
    parts = anatomy(loaded.model)
    loaded.model.requires_grad_(False)
    direction = contrast(parts, loaded.tokenizer)
    cut = prompts(texts, loaded.tokenizer, count, tokens)
    settings = disk.begin(folder, _settings(loaded, model, texts, parts, cut, tokens), resume=resume)
    told = told or (lambda *_: None)
    start = time.monotonic()
    if not settings.get("complete"):
        vectors, halves = _fit_contrast(parts, cut, direction, folder, told)
        disk.save_arrays(folder / disk.CONTRAST, contrast=vectors, direction=_plain(direction))
        settings |= {"complete": True, "halves_cosine": _listed(cosines(*halves))}
        settings["seconds"] = round(time.monotonic() - start, 1)
        disk.save_settings(folder, settings)
        (folder / disk.PART).unlink(missing_ok=True)
    if full and not settings.get("full"):
        start = time.monotonic()
        block = settings.setdefault("block", block)
        disk.save_settings(folder, settings)
        agreed = _fit_full(parts, cut, folder, block, told)
        settings |= {"full": True, "full_halves_cosine": _listed(agreed)}
        disk.save_settings(folder, settings)
        lens = load_lens(folder)
        pulled_back = np.stack([lens.direction @ lens.jacobian(i) for i in range(lens.layers + 1)])
        settings |= {"product_cosine": _listed(cosines(pulled_back, lens.contrast))}
        settings["full_seconds"] = round(time.monotonic() - start, 1)
        disk.save_settings(folder, settings)
    return load_lens(folder)


def _settings(
    loaded: Loaded, model: str, texts: Passages, parts: Anatomy, cut: Sequence[Sequence[int]], tokens: int
) -> dict[str, Any]:
    from importlib.metadata import version

    found = forms(loaded.tokenizer)
    return {
        "lens_version": LENS_VERSION,
        "model": model,
        "weights_sha256": weights_sha256(loaded.folder),
        "texts": texts.name,
        "texts_sha256": texts.sha256,
        "prompts": len(cut),
        "tokens": tokens,
        "tokens_used": sum(map(len, cut)),
        "first_source": FIRST_SOURCE + 1,
        "contrast": "yes/no",
        "yes_forms": [loaded.tokenizer.decode([token]) for token in found.yes],
        "no_forms": [loaded.tokenizer.decode([token]) for token in found.no],
        "layers": parts.layers,
        "width": parts.width,
        "centred": parts.centred,
        "dtype": str(loaded.model.dtype).removeprefix("torch."),
        "device": str(parts.device),
        "belie": version("belie"),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "complete": False,
        "full": False,
    }


def _fit_contrast(
    parts: Anatomy, cut: Sequence[Sequence[int]], direction: torch.Tensor, folder: Path, told: Told
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """The mean over prompts, (L + 1, width), and the means over the even and the odd ones, (2, L + 1, width)."""
    sums = np.zeros((2, parts.layers + 1, parts.width))
    done = 0
    if (folder / disk.PART).exists():
        with np.load(folder / disk.PART, allow_pickle=False) as held:
            sums, done = held["sums"], int(held["done"])
    saved = time.monotonic()
    for i in range(done, len(cut)):
        told(i, len(cut), "prompts")
        sums[i % 2] += pulled(parts, cut[i], direction[None])[0].double().cpu().numpy()
        if time.monotonic() - saved > _EVERY:
            disk.save_arrays(folder / disk.PART, sums=sums, done=np.array(i + 1))
            saved = time.monotonic()
    told(len(cut), len(cut), "prompts")
    counts = np.array([(len(cut) + 1) // 2, len(cut) // 2])
    return (sums.sum(0) / len(cut)).astype(np.float32), sums / counts[:, None, None]


def _fit_full(
    parts: Anatomy, cut: Sequence[Sequence[int]], folder: Path, block: int, told: Told
) -> NDArray[np.float64]:
    """Saves J block by block; returns the cosine between the halves' J by layer, the last layer's 1."""
    blocks = disk.block_paths(folder, block, parts.width)
    products = np.zeros((3, parts.layers))
    for number, (rows, path) in enumerate(blocks):
        kept = path.with_suffix(".json")
        if not kept.exists():
            sums = np.zeros((2, parts.layers, len(rows), parts.width))
            units = torch.eye(parts.width)[list(rows)]
            for i, prompt in enumerate(cut):
                told(number * len(cut) + i, len(blocks) * len(cut), f"prompts × {len(blocks)} blocks")
                sums[i % 2] += pulled(parts, prompt, units)[:, :-1].transpose(0, 1).double().cpu().numpy()
            one, other = sums
            dots = [np.einsum("lrd,lrd->l", a, b) for a, b in ((one, other), (one, one), (other, other))]
            disk.save_array(path, (sums.sum(0) / len(cut)).astype(np.float32))
            files.replace(kept, json.dumps([_listed(dot) for dot in dots]).encode())
        products += np.array(json.loads(kept.read_bytes()))
    told(1, 1, "blocks")
    return np.append(products[0] / np.sqrt(products[1] * products[2]), 1.0)


def cosines(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """Cosine of each row of one with that of the other: (M, width) twice → (M,)."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
    return (one * other).sum(-1) / np.where(lengths > 0, lengths, 1.0)


def _plain(tensor: torch.Tensor) -> NDArray[np.float32]:
    return tensor.detach().float().cpu().numpy()


def _listed(values: NDArray[Any]) -> list[float]:
    return [float(f"{value:.8g}") for value in values]
