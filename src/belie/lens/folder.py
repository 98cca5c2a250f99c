"""A lens on disk: ``lens.json``, the contrast vectors, and the blocks of the full Jacobian where they were asked for.

Knows: names, shapes and checks of these files; what was saved of a fit that was stopped.
Does not know: how anything is fitted.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belie.lens import LENS_VERSION
from belie.respondents.base import BadInput
from belie.runs import files

Floats32 = NDArray[np.float32]

SETTINGS, CONTRAST, PART = "lens.json", "contrast.npz", "contrast.part.npz"
#: Settings that must be the same when a fit goes on.
BINDING = ("lens_version", "weights_sha256", "texts_sha256", "prompts", "tokens", "contrast")


@dataclass(frozen=True, slots=True)
class Lens:
    """A fitted lens. ``direction`` is u, shape (width,): the contrast in the last layer, the norm folded in.

    ``contrast[ℓ]`` = J_ℓᵀ u, shape (L + 1, width). ``blocks``: the files of the full J, rows in order, each
    (L, rows, width); empty where only the contrast was fitted.
    """

    settings: Mapping[str, Any]
    direction: Floats32
    contrast: Floats32
    blocks: tuple[Path, ...] = field(default=())

    @property
    def layers(self) -> int:
        return len(self.contrast) - 1

    @property
    def full(self) -> bool:
        return bool(self.blocks)

    def jacobian(self, layer: int) -> Floats32:
        """J_ℓ, shape (width, width): row i holds the derivatives of output i. The identity at the last layer."""
        if layer == self.layers:
            return np.eye(len(self.direction), dtype=np.float32)
        return np.concatenate([np.load(path, mmap_mode="r")[layer] for path in self.blocks])


def load_lens(folder: Path) -> Lens:
    """A finished lens. Raises BadInput where there is none, or it was fitted by another version."""
    settings = settings_of(folder)
    if settings is None:
        raise BadInput(f"{folder} holds no lens: fit one with belie lens fit MODEL -o {folder}.")
    if settings.get("lens_version") != LENS_VERSION:
        raise BadInput(
            f"The lens in {folder} was fitted by version {settings.get('lens_version')} of the lens, this belie has "
            f"{LENS_VERSION}: fit it again."
        )
    if not settings.get("complete"):
        raise BadInput(f"The lens in {folder} is not finished: continue belie lens fit with --resume.")
    try:
        with np.load(folder / CONTRAST, allow_pickle=False) as held:
            contrast, direction = held["contrast"], held["direction"]
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(f"{folder / CONTRAST} can't be read ({error}): fit the lens again.") from error
    blocks = tuple(sorted(folder.glob("full-*.npy"))) if settings.get("full") else ()
    return Lens(settings, direction, contrast, blocks)


def settings_of(folder: Path) -> dict[str, Any] | None:
    """What ``lens.json`` holds, None where there is none. Raises BadInput for a damaged one."""
    path = folder / SETTINGS
    if not path.exists():
        return None
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} can't be read ({error}): fit the lens again in another folder.") from error
    if not isinstance(told, dict):
        raise BadInput(f"{path} holds no JSON object: fit the lens again in another folder.")
    return told


def save_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    text = json.dumps(settings, indent=2, ensure_ascii=False, allow_nan=False)
    files.replace(folder / SETTINGS, (text + "\n").encode())


def begin(folder: Path, settings: dict[str, Any], *, resume: bool) -> dict[str, Any]:
    """Opens a folder for a fit: the settings to go on with.

    Raises BadInput where it holds a lens and ``resume`` is not said, or a lens fitted otherwise.
    """
    stored = settings_of(folder)
    if stored is None:
        held = [] if not folder.is_dir() else [one for one in folder.iterdir() if not one.name.startswith(".")]
        if held or (folder.exists() and not folder.is_dir()):
            raise BadInput(f"{folder} is not an empty folder and holds no lens: choose another.")
        files.make_folder(folder)
        save_settings(folder, settings)
        return settings
    if not resume:
        raise BadInput(f"{folder} already holds a lens: continue it with --resume, or choose another folder.")
    unlike = [f"{k} was {stored.get(k)}, now {settings[k]}" for k in BINDING if stored.get(k) != settings[k]]
    if unlike:
        raise BadInput(f"The lens in {folder} was begun otherwise: {'; '.join(unlike)}. Choose another folder.")
    return stored


def save_arrays(path: Path, **arrays: NDArray[Any]) -> None:
    """An ``.npz`` file, written whole or not at all."""
    held = io.BytesIO()
    np.savez(held, **arrays)  # type: ignore[arg-type]
    files.replace(path, held.getvalue())


def save_array(path: Path, array: NDArray[Any]) -> None:
    """An ``.npy`` file, written whole or not at all, without a second copy in memory."""
    with files.replacing(path) as temporary, open(temporary, "wb") as file:
        np.save(file, array)


def block_paths(folder: Path, block: int, width: int) -> list[tuple[range, Path]]:
    """The rows of each block of the full J, and its file."""
    return [
        (range(start, min(start + block, width)), folder / f"full-{start:06d}.npy") for start in range(0, width, block)
    ]
