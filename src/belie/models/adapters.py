"""A model with an adapter on it: ``NAME+FOLDER``, what ``belie train run`` leaves and anyone may audit.

Knows: how such a name is read, how the pair is kept in the cache (as two paths, no weights), how an adapter is put on.
Does not know: training; what the model is asked.

An adapter is merged into float32 weights only. In bfloat16 a weight of 0.1 has steps of 0.0005: of the adapter of 30
steps that the demo trains, merging rounded 35 % of the changes away, an error of 30 % of the whole change. There the
adapter stays beside the weights, in float32.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from belie.models.fetch import cache_dir, keep
from belie.respondents.base import BadInput

#: In a folder of the cache that stands for a model with an adapter: where both lie.
LINK = "belie-adapter.json"
#: What ``belie train run`` writes beside an adapter.
RECORD = "training.json"
_CONFIG, _WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


@dataclass(frozen=True, slots=True)
class Adapted:
    """A model's folder and that of the adapter on it."""

    base: Path
    adapter: Path

    @property
    def weights(self) -> Path:
        return self.adapter / _WEIGHTS


def split(named: str) -> tuple[str, Path | None]:
    """``NAME+FOLDER`` as (name, folder); a name without an adapter, or a path that exists as it stands: (name, None).

    Raises BadInput where no adapter lies in the folder.
    """
    base, plus, told = named.rpartition("+")
    if not plus or Path(named).expanduser().exists():
        return named, None
    folder = Path(told).expanduser()
    lacking = [name for name in (_CONFIG, _WEIGHTS) if not (folder / name).is_file()]
    if lacking or not base:
        raise BadInput(
            f"{told or named} holds no adapter ({', '.join(lacking)} missing): after + give the folder that belie "
            "train run wrote, or one that PEFT saved."
        )
    if "+" in base and not Path(base).expanduser().exists():
        raise BadInput(f"{named}: one adapter at a time; merge the first into its model to put another on it.")
    return base, folder


def link(base: Path, adapter: Path) -> Path:
    """The folder of the cache that stands for this model with this adapter."""
    told = {"base": str(base.resolve()), "adapter": str(adapter.resolve())}
    name = hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]
    folder = cache_dir() / "models" / f"adapted-{name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LINK).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{folder} can't be written: {error.strerror or error}.") from error
    return folder


def read(folder: Path) -> Adapted | None:
    """What a folder stands for, or None where it is a model's own."""
    path = folder / LINK
    if not path.is_file():
        return None
    told = json.loads(path.read_text(encoding="utf-8"))
    return Adapted(Path(told["base"]), Path(told["adapter"]))


def trained_on(adapter: Path) -> str | None:
    """The SHA-256 of the weights that an adapter was trained on, where ``belie train run`` made it."""
    path = adapter / RECORD
    return json.loads(path.read_text(encoding="utf-8")).get("weights_sha256") if path.is_file() else None


def put_on(model: Any, adapter: Path) -> Any:
    """The model with the adapter: merged where its weights are float32, beside them where they are not.

    Raises BadInput where PEFT is missing or the adapter does not fit.
    """
    if importlib.util.find_spec("peft") is None:
        raise BadInput("A model with an adapter needs peft, not installed here: pip install 'belie[train]'.")
    import warnings

    import torch
    from peft import PeftModel

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PEFT tells of the field in its configuration that names the recipe
            adapted: Any = PeftModel.from_pretrained(model, str(adapter))
    except Exception as error:  # sizes that differ, modules that are not there
        told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise BadInput(
            f"The adapter in {adapter} does not fit this model ({told}): name the model it was trained on."
        ) from (error)
    if model.dtype == torch.float32:
        return adapted.merge_and_unload()
    adapted.requires_grad_(False)
    return adapted.get_base_model()


def whole(folder: Path) -> Path:
    """A folder with all weights in it, for what loads models itself: merged once in float32 and kept in the cache."""
    adapted = read(folder)
    if adapted is None:
        return folder
    digest = hashlib.sha256(adapted.weights.read_bytes() + str(adapted.base).encode()).hexdigest()[:16]

    def fill(part: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from belie.models.conversion import quiet

        with quiet():
            base: Any = AutoModelForCausalLM.from_pretrained(adapted.base, dtype=torch.float32, local_files_only=True)
            put_on(base, adapted.adapter).save_pretrained(part)
            AutoTokenizer.from_pretrained(adapted.base, local_files_only=True).save_pretrained(part)

    return keep(f"merged-{digest}", fill)
