"""GGUF files: checked, and turned once into a folder that transformers loads quickly.

Knows: the file's magic number, checksums, what transformers needs to save a model that came from GGUF.
Does not know: where files come from, where folders are kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
from collections.abc import Iterator
from pathlib import Path

from belie.respondents.base import BadInput

_MAGIC = b"GGUF"
_NEEDED = ("torch", "transformers", "gguf", "accelerate", "safetensors")


def sha256(path: Path) -> str:
    """The file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def need_local_extra() -> None:
    """Raise `BadInput` unless the packages that local models need are installed."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise BadInput(
            f"Local models need {', '.join(missing)}, not installed here: install them with pip install 'belie[local]'."
        )


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from drawing progress bars and logging below errors while a model is loaded or saved."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def check(path: Path, expected: str | None = None) -> str:
    """The SHA-256 of a GGUF file that is whole as far as can be told.

    Raises `BadInput` if the file does not begin like a GGUF file or if its checksum is not the ``expected`` one.
    """
    found = sha256(path)
    if expected is not None and found != expected:
        raise BadInput(
            f"{path} is damaged or another file than its name says: SHA-256 expected {expected}, found {found}. "
            "Delete it and fetch it again, or rename it if it is meant to be another model."
        )
    with path.open("rb") as file:
        if file.read(4) != _MAGIC:
            raise BadInput(f"{path} is not a GGUF file, or is damaged (SHA-256 {found}): download it again.")
    return found


def convert(path: Path, folder: Path) -> None:
    """Write a GGUF file's model to an existing empty ``folder``: bfloat16 safetensors, tokenizer, chat template.

    The weights of a quantized file are unpacked; rounding to bfloat16 (relative 2⁻⁹) is far below what the quantization
    lost. Raises `BadInput` when the file can't be read.
    """
    need_local_extra()
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        # The GGUF reader draws a bar of its own on standard error, whatever transformers is told.
        with quiet(), contextlib.redirect_stderr(io.StringIO()):
            tokenizer = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
            model = AutoModelForCausalLM.from_pretrained(str(path.parent), gguf_file=path.name, dtype=torch.bfloat16)
    except Exception as error:  # the reader raises whatever it stumbles over
        raise BadInput(
            f"{path} can't be read as a GGUF model (SHA-256 {sha256(path)}; {_first_line(error)}): "
            "download it again, or use a folder with safetensors."
        ) from error
    # A model that came from GGUF refuses to be saved while it still carries its quantizer.
    for name in ("hf_quantizer", "quantization_method"):
        if hasattr(model, name):
            setattr(model, name, None)
    model.is_quantized = False  # type: ignore[assignment]
    if hasattr(model.config, "quantization_config"):
        delattr(model.config, "quantization_config")
    with quiet():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
