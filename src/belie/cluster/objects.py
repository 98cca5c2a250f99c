"""A run in an object store, through fsspec: whole objects only, no appending, no locks of its own.

Knows: parts of a journal, leases in place of locks, the local copy that journals are read from.
Does not know: what is asked, or Ray.
"""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from belie.cluster.storage import PATIENCE, Writer, read_manifest
from belie.items import Answer
from belie.respondents.base import BadInput
from belie.runs import Journal, JournalWriter, RunFolder
from belie.runs.folder import LOCK, MANIFEST
from belie.runs.manifest import Manifest

#: A part is closed after so many seconds; later parts last longer, up to a minute, so that long runs leave few.
PART_SECONDS, LONGEST_PART = 5.0, 60.0
#: A lease that has not been renewed for so long (seconds, by the clock of who waits) belongs to nobody.
LEASE_SECONDS = 30.0
_PART = re.compile(r"answers-(?P<shard>[A-Za-z0-9_]+)(?:-(?P<part>\d+))?\.jsonl")


class ObjectStore:
    """A run under an fsspec URL. Its local copy lies in a temporary folder until ``close``."""

    def __init__(
        self,
        url: str,
        options: Mapping[str, Any] | None = None,
        *,
        lease_seconds: float = LEASE_SECONDS,
        part_seconds: float = PART_SECONDS,
    ) -> None:
        try:
            import fsspec
        except ModuleNotFoundError:
            raise BadInput(f"{url} needs fsspec, which is not installed: pip install 'belie[ray]'.") from None
        try:
            self._fs, self._root = fsspec.core.url_to_fs(url, **(options or {}))
        except (ImportError, ValueError) as error:
            raise BadInput(f"{url} is no place that can be opened: {error}") from error
        self.url = url.rstrip("/")
        self._local = self._fs.protocol in ("file", "local") or "file" in self._fs.protocol
        self._lease_seconds = lease_seconds
        self._part_seconds = part_seconds
        self._copy = Path(mkdtemp(prefix="belie-"))

    def exists(self) -> bool:
        return self.read(MANIFEST) is not None

    def begin(self, manifest: Manifest) -> None:
        folder = self._copy / "new"
        shutil.rmtree(folder, ignore_errors=True)
        RunFolder.create(folder, manifest).close()
        if not self.create(MANIFEST, (folder / MANIFEST).read_bytes()):
            raise BadInput(f"{self.url} already holds a run: continue it with --resume, or choose another place.")

    def manifest(self) -> Manifest:
        return read_manifest(self)

    def names(self, start: str) -> list[str]:
        self._fs.invalidate_cache()
        try:
            entries = self._fs.ls(self._root, detail=False)
        except FileNotFoundError:
            return []
        return sorted(name for entry in entries if (name := str(entry).rstrip("/").split("/")[-1]).startswith(start))

    def read(self, name: str) -> bytes | None:
        try:
            return self._fs.cat_file(self._at(name))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._sentence(error, name, "reading") from error

    def write(self, name: str, data: bytes) -> None:
        try:
            if not self._local:  # a put is whole or not at all
                self._fs.pipe_file(self._at(name), data)
                return
            self._fs.makedirs(self._root, exist_ok=True)
            aside = self._at(f".{uuid.uuid4().hex}.tmp")
            self._fs.pipe_file(aside, data)
            self._fs.mv(aside, self._at(name))
        except OSError as error:
            raise self._sentence(error, name, "writing") from error

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(OSError):
                self._fs.rm_file(self._at(name))

    @contextmanager
    def lock(self, name: str, patience: float = PATIENCE) -> Iterator[Callable[[], None]]:
        lease = Lease(self, f"{LOCK}-{name}", self._lease_seconds)
        lease.acquire(patience)
        try:
            yield lease.check
        finally:
            lease.release()

    def create(self, name: str, data: bytes) -> bool:
        """Writes a new object; False where there is one (the file system decides, where it can)."""
        try:
            if self._local:
                self._fs.makedirs(self._root, exist_ok=True)
                with self._fs.open(self._at(name), "xb") as file:
                    file.write(data)
            else:
                self._fs.pipe_file(self._at(name), data, mode="create")
        except FileExistsError:
            return False
        except OSError as error:
            raise self._sentence(error, name, "writing") from error
        return True

    def journal(self, only: Callable[[str], bool] | None = None) -> Journal:
        return Journal(self._fetched(only), only)

    def writer(self, shard: str) -> Writer:
        taken = [int(match["part"] or -1) for match in map(_PART.fullmatch, self.names(f"answers-{shard}-")) if match]
        return PartWriter(self, shard, max(taken, default=-1) + 1, self._part_seconds)

    def folder(self) -> Path:
        folder = self._fetched(None)
        (folder / MANIFEST).write_bytes(self._must_read(MANIFEST))
        return folder

    def publish(self, *names: str) -> None:
        for name in names:
            if (self._copy / "run" / name).exists():
                self.write(name, (self._copy / "run" / name).read_bytes())

    def close(self) -> None:
        shutil.rmtree(self._copy, ignore_errors=True)

    def _fetched(self, only: Callable[[str], bool] | None) -> Path:
        """A local folder with the journals as they are now, the parts of a shard joined in their order."""
        folder = self._copy / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        found = [(m["shard"], int(m["part"] or -1), m[0]) for m in map(_PART.fullmatch, self.names("answers-")) if m]
        for shard, _, name in sorted(found):
            if only is None or only(shard):
                with open(folder / f"answers-{shard}.jsonl", "ab") as file:
                    file.write(self._must_read(name))
        return folder

    def _must_read(self, name: str) -> bytes:
        data = self.read(name)
        if data is None:
            raise BadInput(f"{self.url}/{name} is gone: somebody removed it.")
        return data

    def _at(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def _sentence(self, error: OSError, name: str, doing: str) -> BadInput:
        return BadInput(f"Failed while {doing} {self.url}/{name}: {error}. Check the URL and what your key may do.")


class Lease:
    """A lock as an object that its holder renews.

    Whoever waits watches whether it changes, by a clock of its own: clocks of machines need not agree. If two who wait
    take over a dead lease in the same instant, one of them notices at its next renewal and stops: what both asked in
    between is doubled in the journal (the first answer counts), never wrong.
    """

    def __init__(self, store: ObjectStore, name: str, seconds: float) -> None:
        self._store, self._name, self._seconds = store, name, seconds
        self._owner = uuid.uuid4().hex
        self._count = 0
        self._lost: str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="belie-lease", daemon=True)

    def acquire(self, patience: float) -> None:
        """Raises BadInput where another holder is still alive after ``patience`` seconds."""
        start = changed = time.monotonic()
        seen: bytes | None = None
        while not self._store.create(self._name, self._content()):
            now = time.monotonic()
            held = self._store.read(self._name)
            if held != seen:
                seen, changed = held, now
            elif now - changed >= self._seconds:
                self._store.remove([self._name])
                continue
            if now - start >= patience:
                raise BadInput(f"Another process holds {self._store.url}/{self._name}: wait for it, or stop it.")
            time.sleep(min(1.0, self._seconds / 5))
        self._thread.start()

    def check(self) -> None:
        """Raises BadInput where the lease has been taken over meanwhile."""
        if self._lost is not None:
            raise BadInput(f"{self._store.url}/{self._name} was lost: {self._lost}. Continue with --resume.")

    def release(self) -> None:
        """Gives the lease back, if it is still ours."""
        self._stop.set()
        self._thread.join()
        if self._lost is None:
            self._store.remove([self._name])

    def _renew(self) -> None:
        while not self._stop.wait(self._seconds / 4):
            try:
                held = self._store.read(self._name)
                if held is None or json.loads(held).get("owner") != self._owner:
                    self._lost = "another process took it over"
                    return
                self._count += 1
                self._store.write(self._name, self._content())
            except (BadInput, ValueError):  # the store is away for a moment, or another is writing: look again
                continue

    def _content(self) -> bytes:
        return json.dumps({"owner": self._owner, "count": self._count}).encode()


class PartWriter:
    """Writes a shard's answers as numbered parts; a thread closes a part now and then and puts it in the store."""

    def __init__(self, store: ObjectStore, shard: str, first: int, seconds: float) -> None:
        self._store, self._shard, self._part, self._seconds = store, shard, first, seconds
        self._folder = Path(mkdtemp(prefix="belie-part-"))
        self._current: JournalWriter | None = None
        self._guard = threading.Lock()
        self._putting = threading.Lock()
        self._failure: BadInput | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._now_and_then, name="belie-parts", daemon=True)
        self._thread.start()

    def write(self, answer: Answer) -> None:
        """Takes one answer; it is in the store when its part is. Raises BadInput where an earlier part failed."""
        if self._failure is not None:
            raise self._failure
        with self._guard:
            if self._current is None:
                self._current = JournalWriter(self._folder, self._name())
            self._current.write(answer)

    def close(self) -> None:
        """Puts what is left. Raises BadInput where that fails."""
        self._stop.set()
        self._thread.join()
        try:
            self._put()
            if self._failure is not None:
                raise self._failure
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _name(self) -> str:
        return f"{self._shard}-{self._part:05d}"

    def _put(self) -> None:
        with self._putting:
            with self._guard:
                current, name = self._current, f"answers-{self._name()}.jsonl"
                if current is None:
                    return
                self._current = None
                self._part += 1
            current.close()
            path = self._folder / name
            self._store.write(name, path.read_bytes())
            path.unlink()

    def _now_and_then(self) -> None:
        part = 0
        while not self._stop.wait(min(self._seconds + part, max(self._seconds, LONGEST_PART))):
            try:
                self._put()
            except Exception as error:  # each store has errors of its own
                sentence = f"Failed while writing answers of shard {self._shard} to {self._store.url}: {error}"
                self._failure = error if isinstance(error, BadInput) else BadInput(sentence)
                return
            part += 1
