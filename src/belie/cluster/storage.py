"""Where a run lies that many machines work on: a shared folder, or any fsspec URL (an object store, say).

Knows: reading, listing and replacing the files of a run, appending a shard's answers, one lock a shard.
Does not know: what is asked, who asks, or Ray.

A shared folder is a path: answers are appended as they come, as in any run. Anything with ``://`` is taken for a store
that cannot append: a shard writes numbered parts, ``answers-<shard>-<part>.jsonl``, each closed after a few seconds,
so that a lost machine loses at most those. Reading brings the journals into a temporary folder, parts joined.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from belie.items import Answer
from belie.respondents.base import BadInput
from belie.runs import Journal, JournalWriter, RunFolder, files
from belie.runs.folder import MANIFEST, shard_lock
from belie.runs.manifest import Manifest, from_json

#: Seconds that a process waits for a lock: longer than a lease lasts, and than a lost worker takes to die.
PATIENCE = 90.0
_COLLAPSED = re.compile(r"([a-z][a-z0-9+.-]+):/([^/].*)", re.DOTALL)


def url_of(place: str | Path) -> str:
    """A path as it is, a URL with both of its slashes: ``Path("s3://b/x")`` has lost one."""
    text = str(place)
    match = _COLLAPSED.fullmatch(text)
    if match is None:
        return text
    slashes = ":///" if match[1] == "file" else "://"
    return f"{match[1]}{slashes}{match[2]}"


def is_url(place: str | Path) -> bool:
    """Whether this names an fsspec URL rather than a path."""
    return "://" in url_of(place)


class Writer(Protocol):
    def write(self, answer: Answer) -> None: ...

    def close(self) -> None: ...


class Store(Protocol):
    """The files of one run, seen from any machine.

    ``lock`` waits up to ``patience`` seconds for a name's lock, and raises ``BadInput`` if someone still has it; what
    it gives is to be called now and then, and raises ``BadInput`` where the lock was lost. ``begin`` writes a new run's
    manifest, or raises ``BadInput`` where there is something already.
    ``journal`` holds the shards whose name ``only`` accepts. ``folder`` is a local folder that holds manifest and
    journals; ``publish`` makes what was changed there visible to all.
    """

    url: str

    def exists(self) -> bool: ...

    def begin(self, manifest: Manifest) -> None: ...

    def manifest(self) -> Manifest: ...

    def names(self, start: str) -> list[str]: ...

    def read(self, name: str) -> bytes | None: ...

    def write(self, name: str, data: bytes) -> None: ...

    def remove(self, names: Iterable[str]) -> None: ...

    def lock(self, name: str, patience: float = PATIENCE) -> AbstractContextManager[Callable[[], None]]: ...

    def journal(self, only: Callable[[str], bool] | None = None) -> Journal: ...

    def writer(self, shard: str) -> Writer: ...

    def folder(self) -> Path: ...

    def publish(self, *names: str) -> None: ...

    def close(self) -> None: ...


def open_store(place: str | Path, options: Mapping[str, Any] | None = None) -> Store:
    """The store of a run. ``options`` go to fsspec (``endpoint_url``, ``anon``; keys belong in the environment).

    Raises BadInput where the file system is not known or its package is missing.
    """
    url = url_of(place)
    if "://" not in url:
        return FolderStore(Path(url))
    from belie.cluster.objects import ObjectStore

    return ObjectStore(url, options)


class FolderStore:
    """A folder that all machines see under the same path (NFS, Lustre, or one machine's disk)."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.url = str(self.path)

    def exists(self) -> bool:
        return (self.path / MANIFEST).exists()

    def begin(self, manifest: Manifest) -> None:
        RunFolder.create(self.path, manifest).close()

    def manifest(self) -> Manifest:
        return read_manifest(self)

    def names(self, start: str) -> list[str]:
        return sorted(entry.name for entry in self.path.glob(f"{start}*"))

    def read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise files.sentence(error, self.path / name, "reading") from error

    def write(self, name: str, data: bytes) -> None:
        files.replace(self.path / name, data)

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(OSError):
                (self.path / name).unlink(missing_ok=True)

    @contextmanager
    def lock(self, name: str, patience: float = PATIENCE) -> Iterator[Callable[[], None]]:
        files.make_folder(self.path)
        lock = shard_lock(self.path, name)
        until = time.monotonic() + patience
        while not lock.acquire():
            if time.monotonic() >= until:
                raise BadInput(
                    f"Another process (id {lock.holder()}) holds {name} of {self.path}: wait for it, or stop it."
                )
            time.sleep(0.5)
        try:
            yield lambda: None
        finally:
            lock.release()

    def journal(self, only: Callable[[str], bool] | None = None) -> Journal:
        return Journal(self.path, only)

    def writer(self, shard: str) -> Writer:
        return JournalWriter(self.path, shard)

    def folder(self) -> Path:
        return self.path

    def publish(self, *names: str) -> None:
        """Nothing to do: all machines see the folder itself."""
        del names

    def close(self) -> None:
        return None


def read_manifest(store: Store) -> Manifest:
    """The manifest of a run. Raises BadInput where there is none, or it is damaged."""
    data = store.read(MANIFEST)
    if data is None:
        raise BadInput(f"{store.url} holds no run (there is no {MANIFEST}): create it first, or name another.")
    return from_json(data, f"{store.url}/{MANIFEST}")
