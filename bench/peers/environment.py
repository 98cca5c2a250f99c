"""The environment that peers run in, apart from Belie's own; and the peer as a process that runs when it is told to.

Knows: where that environment is, how it is made, how to talk to ``harness.py``.
Does not know: what is measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).resolve().parent
#: BELIE_PEERS names another folder, where such an environment is already.
FOLDER = Path(os.environ.get("BELIE_PEERS") or HERE.parents[1] / ".venv" / "peers")
PYTHON = FOLDER / "bin" / "python"


def make() -> None:
    """Makes the environment where it is missing (some minutes: torch and the harness; wheels only)."""
    mark = FOLDER / ".ready"
    if mark.exists():
        return
    subprocess.run([sys.executable, "-m", "venv", str(FOLDER)], check=True)
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    pinned = ["-c", str(HERE.parents[1] / "constraints.txt")]
    subprocess.run([*pip, *pinned, "-r", str(HERE / "requirements.txt")], check=True)
    subprocess.run([*pip, "--no-deps", "-r", str(HERE / "alone.txt")], check=True)
    mark.touch()


class Harness:
    """lm-evaluation-harness, loaded and waiting; a context manager. ``run`` does the whole work once."""

    def __init__(self, *arguments: str, work: Any) -> None:
        make()
        self._arguments, self._work = arguments, work
        self.versions: dict[str, str] = {}

    def __enter__(self) -> Harness:
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False, encoding="utf-8") as file:
            json.dump(self._work, file)
        self._file = Path(file.name)
        quiet = {"TOKENIZERS_PARALLELISM": "true", "HF_HUB_OFFLINE": "1", "OMP_WAIT_POLICY": "PASSIVE"}
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [str(PYTHON), str(HERE / "harness.py"), *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **quiet},
        )
        self.versions = self._told(str(self._file))["versions"]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait()
        self._errors.close()
        self._file.unlink(missing_ok=True)

    def run(self) -> dict[str, Any]:
        """``seconds`` and ``cpu_s`` of one run over the whole work, and its ``results``."""
        return self._told("run")

    def _told(self, line: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            self._errors.seek(0)
            raise RuntimeError(f"the harness ended: {self._errors.read()[-2000:]}")
        return json.loads(answer)
