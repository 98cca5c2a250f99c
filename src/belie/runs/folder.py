"""A run folder: one run, its manifest, its journal, its lock.

Knows: how a run is created, continued, read and finished.
Does not know: what is asked, or what the answers mean.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from belie.respondents.base import BadInput
from belie.runs import files
from belie.runs.journal import Journal, JournalWriter
from belie.runs.manifest import Manifest, Status, changed, differences, from_json, now, to_json

MANIFEST = "manifest.json"
LOCK = ".lock"
#: In place of a shard's name: the lock of the process that hands the shards of a run out.
DRIVER = "driver"
_UNSAFE = re.compile(r"[^a-z0-9.]+")


def short_name(respondent: str) -> str:
    """The last part of a model string, safe in any file system: ``smollm2-135m``."""
    parts = [part for part in respondent.rstrip("/").split("/") if part]
    return _UNSAFE.sub("-", parts[-1].lower() if parts else "").strip("-.")[:60].strip("-.") or "model"


class RunFolder:
    """A run on disk. Made by ``create``, ``resume`` (both lock it) or ``open`` (reads only, needs no lock).

    A context manager: on leaving, a run that was not finished is marked interrupted, and the lock is released.
    ``journal`` reads the answers, ``writer()`` appends them, ``notices`` are sentences for the user.
    """

    def __init__(self, path: Path, manifest: Manifest, lock: files.Lock | None, secrets: Iterable[str] = ()) -> None:
        self.path = path
        self.journal = Journal(path)
        self._manifest = manifest
        self._lock = lock
        self._secrets = tuple(secrets)
        self._writers: dict[str, JournalWriter] = {}
        self._notices: list[str] = []

    @staticmethod
    def new_path(root: str | Path, instrument: str, respondent: str) -> Path:
        """A free name under ``root``, such as ``csq-smollm2-135m-20261130-101500`` (UTC), safe in any file system."""
        stem = f"{instrument}-{short_name(respondent)}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        path, count = Path(root) / stem, 1
        while path.exists():
            count += 1
            path = Path(root) / f"{stem}-{count}"
        return path

    @classmethod
    def create(cls, path: str | Path, manifest: Manifest, *, secrets: Iterable[str] = ()) -> RunFolder:
        """Starts a run in a new or empty folder and locks it.

        ``secrets`` are values to redact beyond those in the environment. Raises ``BadInput`` where the folder holds
        something already, another process has it, or it can't be written.
        """
        path = Path(path)
        unknown = sorted(set(manifest.binding) - set(manifest.options))
        if unknown:
            raise ValueError(f"binding names options that the run does not have: {', '.join(unknown)}")
        if path.exists() and not path.is_dir():
            raise BadInput(f"{path} is a file: choose another folder for the run.")
        if (path / MANIFEST).exists():
            raise BadInput(f"{path} already holds a run: continue it with --resume, or choose another folder.")
        if path.is_dir() and any(not entry.name.startswith((LOCK, f".{MANIFEST}.")) for entry in path.iterdir()):
            raise BadInput(f"{path} is not empty and holds no run: choose another folder.")
        files.make_folder(path)
        lock = _locked(path)
        run = cls(path, manifest, lock, secrets)
        try:
            if (path / MANIFEST).exists():  # another process was faster, and is done
                raise BadInput(f"{path} already holds a run: continue it with --resume, or choose another folder.")
            run._save(manifest)
        except BaseException:
            lock.release()
            raise
        return run

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """Opens a run to read it. Raises ``BadInput`` where there is none, or its manifest is damaged."""
        path = Path(path)
        return cls(path, _read(path), None)

    @classmethod
    def resume(
        cls,
        path: str | Path,
        options: Mapping[str, Any],
        *,
        respondent: str | None = None,
        versions: Mapping[str, Any] | None = None,
        hashes: Mapping[str, Any] | None = None,
        secrets: Iterable[str] = (),
        patience: float = 0.3,
        driven: bool = False,
    ) -> RunFolder:
        """Locks a run to continue it.

        ``options`` are the options of the command that continues: those the run calls binding must be the
        same. ``respondent``, ``versions`` (of what can change an answer: task, world) and ``hashes`` are compared
        too, as far as they are given. The other options are stored anew. Raises ``BadInput`` with every
        difference, old value and new; the run is then as it was. So it does where shards of the run are at work after
        ``patience`` seconds (``driven``: the process that drives them may be, for it is the caller).
        """
        path = Path(path)
        _read(path)  # no run, no lock file
        lock = _locked(path)
        try:
            _await_shards(path, patience, driven)
            manifest = _read(path)
            found = differences(manifest, options, secrets)
            if respondent is not None and respondent != manifest.respondent:
                found.insert(0, f"respondent was {manifest.respondent}, now {respondent}")
            for kind, told in (("version", versions), ("hash", hashes)):
                stored = manifest.versions if kind == "version" else manifest.hashes
                found += [
                    f"{kind} of {name} was {stored.get(name, 'not set')}, now {value}"
                    for name, value in sorted((told or {}).items())
                    if stored.get(name) != value
                ]
            if found:
                raise BadInput(
                    f"{path} was started with other options, so its answers would not belong together: "
                    f"{'; '.join(found)}. Use the same options, or start a new run."
                )
            run = cls(path, manifest, lock, secrets)
            run.update(options={**manifest.options, **options}, status="running", finished=None)
        except BaseException:
            lock.release()
            raise
        return run

    @property
    def manifest(self) -> Manifest:
        return self._manifest

    @property
    def status(self) -> Status:
        """The manifest's status, but "interrupted" for a run that says "running" and whose process is gone, and
        "running" for one that is not complete and has shards at work."""
        if self._manifest.status != "complete" and busy_shards(self.path):
            return "running"
        if self._manifest.status == "running" and not self.locked:
            return "interrupted"
        return self._manifest.status

    @property
    def locked(self) -> bool:
        """Whether some process (this one too) is writing the run as a whole."""
        return files.Lock(self.path / LOCK).held_by_anyone()

    @property
    def notices(self) -> list[str]:
        """Sentences for the user, in the order they arose."""
        return [*self._notices, *self.journal.notices]

    def writer(self, shard: str = "0") -> JournalWriter:
        """The writer of a shard: opened at the first call, closed with the run."""
        self._must_be_locked()
        if shard not in self._writers:
            writer = self._writers[shard] = JournalWriter(self.path, shard, self._secrets)
            self._notices += writer.notices
        return self._writers[shard]

    def update(self, **values: Any) -> None:
        """Changes fields of the manifest and writes it. Raises ``BadInput`` where the disk refuses."""
        self._must_be_locked()
        self._save(changed(self._manifest, **values))

    def finish(self, status: Status, **values: Any) -> None:
        """Syncs the journal, then marks the run ``complete`` or ``incomplete`` (with ``counts`` that say of what)."""
        self._must_be_locked()
        self._close_writers()
        self.update(status=status, finished=now(), **values)

    def save(self, name: str, content: str | bytes) -> Path:
        """Writes a file of the run (``scores.json``, ``report.html``) atomically, and gives its path. Needs no lock."""
        if Path(name).name != name or name in (MANIFEST, LOCK, "..", ".", ""):
            raise ValueError(f"{name!r} is no name for a file of a run")
        files.replace(self.path / name, content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
        return self.path / name

    def close(self) -> None:
        """Closes the journal, marks an unfinished run interrupted, and releases the lock."""
        if self._lock is None:
            return
        try:
            self._close_writers()
            if self._manifest.status == "running":
                self.update(status="interrupted")
        finally:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            self.close()
        except BadInput:
            if error is None:  # else the first sentence says it (a full disk refuses the manifest too)
                raise

    def _close_writers(self) -> None:
        while self._writers:
            self._writers.popitem()[1].close()

    def _save(self, manifest: Manifest) -> None:
        data = to_json(manifest, self._secrets)
        files.replace(self.path / MANIFEST, data)
        self._manifest = from_json(data, str(self.path / MANIFEST))

    def _must_be_locked(self) -> None:
        if self._lock is None:
            raise RuntimeError(f"{self.path} was opened for reading: use create or resume to write")


def shard_lock(path: Path, name: str) -> files.Lock:
    """The lock of one shard (or of the driver of all shards): held while its journal is written."""
    return files.Lock(path / f"{LOCK}-{name}")


def busy_shards(path: Path) -> list[str]:
    """The names of the shards that some process is asking now (``driver`` for the process that drives them)."""
    names = sorted(entry.name[len(LOCK) + 1 :] for entry in path.glob(f"{LOCK}-*"))
    return [name for name in names if shard_lock(path, name).held_by_anyone()]


def _await_shards(path: Path, patience: float, driven: bool) -> None:
    until = time.monotonic() + patience
    while busy := [name for name in busy_shards(path) if not (driven and name == DRIVER)]:
        if time.monotonic() >= until:
            raise BadInput(
                f"Other processes are asking shards of {path} ({', '.join(busy[:5])}{' …' if busy[5:] else ''}): "
                "wait for them, or stop them."
            )
        time.sleep(0.1)


def _read(path: Path) -> Manifest:
    where = path / MANIFEST
    try:
        data = where.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(f"{path} holds no run (there is no {MANIFEST}): name the folder of a run.") from None
    except OSError as error:
        raise files.sentence(error, where, "reading") from error
    return from_json(data, str(where))


def _locked(path: Path) -> files.Lock:
    lock = files.Lock(path / LOCK)
    if not lock.acquire():
        raise BadInput(
            f"Another process (id {lock.holder()}) is writing to {path}: "
            "wait for it, stop it, or choose another folder."
        )
    return lock
