"""An experiment's folder: its plan, its runs, its analysis.

Knows: ``experiment.json``, and that each condition is an ordinary run in a subfolder of its own.
Does not know: how a run is asked or kept (csq.run, runs), or what the figures mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from belie.csq.asked import TASK_VERSION
from belie.csq.experiments.conditions import Condition, Kind, kind_of
from belie.respondents.base import BadInput
from belie.runs import RunFolder, files
from belie.runs.folder import LOCK, MANIFEST, short_name
from belie.runs.redaction import redact

NAME = "experiment.json"
#: Raised whenever the same runs of an experiment would give another analysis.
EXPERIMENT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked of whom. ``options``: those of the command, by name, so that it can go on with the same."""

    experiment: str
    model: str
    conditions: tuple[Condition, ...]
    values: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        return kind_of(self.experiment)


@dataclass(frozen=True, slots=True)
class ExperimentFolder:
    """An experiment on disk. ``runs`` are those that were begun, by condition, in the plan's order."""

    path: Path
    plan: Plan

    @staticmethod
    def new_path(root: Path, experiment: str, model: str) -> Path:
        """A free name under ``root``, such as ``worlds-smollm2-135m-20261130-101500``."""
        stem = f"{experiment}-{short_name(model)}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        path, count = root / stem, 1
        while path.exists():
            count += 1
            path = root / f"{stem}-{count}"
        return path

    @classmethod
    def create(cls, path: Path, plan: Plan) -> ExperimentFolder:
        """Starts an experiment in a new or empty folder. Raises BadInput where there is something already."""
        if (path / NAME).exists():
            raise BadInput(f"{path} already holds an experiment: continue it with --resume, or choose another folder.")
        if path.exists() and (not path.is_dir() or any(not entry.name.startswith(LOCK) for entry in path.iterdir())):
            raise BadInput(f"{path} is not empty: choose another folder for the experiment.")
        files.make_folder(path)
        folder = cls(path, plan)
        folder._write({"created": datetime.now(UTC).isoformat(timespec="seconds"), "analysis": None})
        return folder

    @classmethod
    def open(cls, path: Path) -> ExperimentFolder:
        """Opens an experiment. Raises BadInput where there is none, or its plan can't be read."""
        told = _read(path)
        try:
            conditions = tuple(Condition(one["name"], one["variant"], one["asking"]) for one in told["conditions"])
            for one in conditions:
                if Path(one.name).name != one.name or one.name.startswith("."):
                    raise ValueError(f"{one.name!r} is no name for a folder")
            plan = Plan(told["experiment"], told["model"], conditions, tuple(told["values"]), told["options"])
            kind_of(plan.experiment)
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"{path / NAME} is damaged ({error!r}): restore it, or begin the experiment anew.") from None
        return cls(path, plan)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the experiment while it is asked. Raises BadInput where another process has it."""
        lock = files.Lock(self.path / LOCK)
        if not lock.acquire():
            raise BadInput(f"Another process (id {lock.holder()}) is asking {self.path}: wait for it, or stop it.")
        try:
            yield
        finally:
            lock.release()

    def run_path(self, condition: Condition) -> Path:
        """Where a condition's run lies."""
        return self.path / condition.name

    @property
    def runs(self) -> dict[str, RunFolder]:
        paths = {one.name: self.run_path(one) for one in self.plan.conditions}
        return {name: RunFolder.open(path) for name, path in paths.items() if (path / MANIFEST).exists()}

    @property
    def complete(self) -> bool:
        """Whether every condition has all its answers."""
        runs = self.runs
        return len(runs) == len(self.plan.conditions) and all(run.status == "complete" for run in runs.values())

    def save(self, analysis: Mapping[str, Any]) -> None:
        """Writes the analysis beside the plan."""
        self._write({"created": _read(self.path).get("created"), "analysis": dict(analysis)})

    def _write(self, more: Mapping[str, Any]) -> None:
        plan = self.plan
        content = {
            "schema": 1,
            "experiment": plan.experiment,
            "model": plan.model,
            "conditions": [asdict(one) for one in plan.conditions],
            "values": list(plan.values),
            "options": redact(dict(plan.options)),
            "versions": {"experiment": EXPERIMENT_VERSION, "task": TASK_VERSION, "belie": version("belie")},
            **more,
        }
        files.replace(self.path / NAME, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def is_experiment(path: Path) -> bool:
    """Whether a folder holds an experiment."""
    return (path / NAME).is_file()


def _read(path: Path) -> dict[str, Any]:
    where = path / NAME
    try:
        return dict(json.loads(where.read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(f"{path} holds no experiment (there is no {NAME}): name the folder of one.") from None
    except OSError as error:
        raise files.sentence(error, where, "reading") from error
    except ValueError as error:
        raise BadInput(f"{where} is damaged ({error}): restore it, or begin the experiment anew.") from None
