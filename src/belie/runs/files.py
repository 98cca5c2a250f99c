"""The files under a run folder: the one place in ``runs`` that touches a file system.

Knows: whole-file replacement, appending that survives a kill and a full disk, the lock, reading lines.
Does not know: what the bytes mean.

Durability. A line reaches the kernel in one unbuffered ``write``, so a killed process (``kill -9``) loses
nothing that was written; only a power cut or a crash of the machine can. Against those the file is synced
once a second by a background thread (never in the way of asking: an ``fsync`` takes 1–100 ms, and one for
every line would cap a run at a few hundred answers a second) and at close. A power cut thus costs at most
about one second of answers, which the next ``--resume`` asks again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from belie.respondents.base import BadInput

SYNC_SECONDS = 1.0
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_BLOCK = 1 << 16


def sentence(error: OSError, path: Path, doing: str) -> BadInput:
    """The sentence for a failed file operation; a full disk is named as such."""
    if error.errno in _FULL:
        return BadInput(
            f"The disk is full ({error.strerror}) while {doing} {path}: what was written before is intact; "
            "free some space, then continue with --resume."
        )
    return BadInput(f"Failed while {doing} {path}: {error.strerror or error}; check the path and its permissions.")


def make_folder(path: Path) -> None:
    """Create a folder and its parents. Raises ``BadInput``."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise sentence(error, path, "creating the folder") from error


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary path beside ``path``; on success it is synced and takes the place of ``path``.

    Readers see the old file or the new one, never a mixture, also when the process is killed in between.
    On failure the temporary file is removed and ``path`` is as it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise sentence(error, path, "writing") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def replace(path: Path, data: bytes) -> None:
    """Write a whole file atomically. Raises ``BadInput``."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems cannot sync a folder
            os.fsync(fd)
    finally:
        os.close(fd)


def lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, each with its newline; only the last may lack it."""
    try:
        with open(path, "rb", buffering=1 << 20) as file:
            yield from file
    except OSError as error:
        raise sentence(error, path, "reading") from error


def tail(path: Path) -> tuple[int, bytes]:
    """Where the last newline ends, and the bytes after it (empty in a file that ends well)."""
    with open(path, "rb") as file:
        end = position = file.seek(0, os.SEEK_END)
        after = b""
        while position:
            start = max(0, position - _BLOCK)
            file.seek(start)
            block = file.read(position - start)
            cut = block.rfind(b"\n")
            if cut >= 0:
                after = block[cut + 1 :] + after
                break
            after = block + after
            position = start
        return end - len(after), after


class AppendFile:
    """A file that only grows by whole lines. One writer; see the module's docstring for what survives what."""

    def __init__(self, path: Path, keep: int | None = None) -> None:
        """Opens or creates ``path``; everything after the first ``keep`` bytes is cut away (None: nothing is)."""
        self.path = path
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            if keep is not None:
                os.ftruncate(self._fd, keep)
            self.size = os.fstat(self._fd).st_size
        except OSError as error:
            raise sentence(error, path, "opening") from error
        self._dirty = False
        self._failure: OSError | None = None
        self._stop = threading.Event()
        self._syncer: threading.Thread | None = None

    def append(self, data: bytes) -> None:
        """Hands one whole line to the kernel. If it does not fit, none of it stays. Raises ``BadInput``."""
        if self._failure is not None:
            raise sentence(self._failure, self.path, "writing to") from self._failure
        try:
            written = os.write(self._fd, data)
            while written < len(data):
                written += os.write(self._fd, data[written:])
            self.size += len(data)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self.size)
            if isinstance(error, OSError):
                self._failure = error
                raise sentence(error, self.path, "writing to") from error
            raise
        self._dirty = True
        if self._syncer is None:
            self._syncer = threading.Thread(target=self._sync_now_and_then, name="belie-journal-sync", daemon=True)
            self._syncer.start()

    def _sync_now_and_then(self) -> None:
        while not self._stop.wait(SYNC_SECONDS):
            if self._dirty:
                self._dirty = False
                try:
                    os.fsync(self._fd)
                except OSError as error:
                    self._failure = error
                    return

    def close(self) -> None:
        """Syncs and closes; a second call does nothing. Raises ``BadInput`` where the sync failed."""
        if self._fd < 0:
            return
        self._stop.set()
        if self._syncer is not None:
            self._syncer.join()
        fd, self._fd = self._fd, -1
        try:
            if self._dirty:
                os.fsync(fd)
        except OSError as error:
            raise sentence(error, self.path, "syncing") from error
        finally:
            os.close(fd)


class Lock:
    """An exclusive lock on a folder, held by an open file: it ends with the process, however that ends.

    ``flock`` rather than a lock file's existence, so that a kill -9 leaves nothing to clear away. The file keeps
    the holder's process id, only to name it in the refusal.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1

    def acquire(self, patience: float = 0.3) -> bool:
        """True if the lock is ours now. ``patience`` (seconds) outlasts a reader that looks whether a run is live."""
        until = time.monotonic() + patience
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() >= until:
                        os.close(fd)
                        return False
                    time.sleep(0.02)
                else:
                    break
        except OSError as error:
            raise sentence(error, self.path, "locking") from error
        self._fd = fd
        with contextlib.suppress(OSError):
            os.ftruncate(fd, 0)
            os.pwrite(fd, str(os.getpid()).encode(), 0)
        return True

    def holder(self) -> str:
        """The process id that the file names, or ``"?"``."""
        with contextlib.suppress(OSError, ValueError):
            return str(int(self.path.read_text() or "?"))
        return "?"

    def held_by_anyone(self) -> bool:
        """Whether some process (this one too) holds the lock now. Takes nothing away from a holder."""
        try:
            fd = os.open(self.path, os.O_RDONLY)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(fd)
        return False

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
