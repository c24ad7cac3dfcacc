"""The module `os` as goatrl writes by it, but for a step at which the process ends or the disk
fails.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from goatrl.disk import claims, files

STOP = "stop"  # the process ends; what was written so far, half of a write included, stays
CUT = "power cut"  # nor is anything there that was not synced, but for names of files
CUT_NAMES = "power cut, names lost"  # nor are names of files that were not synced
ERRORS = {name: getattr(errno, name) for name in ("ENOSPC", "EIO", "EACCES")}
FAULTS = (STOP, CUT, CUT_NAMES, *ERRORS)


class Stopped(BaseException):
    """The process has ended here. Nothing that it does later reaches the disk."""


class Layer:
    """Counts the steps of all writes, and lets the one of a number fail."""

    def __init__(self, at: int = 0, fault: str = STOP, delays: random.Random | None = None) -> None:
        self.at, self.fault, self.delays = at, fault, delays
        self.steps = 0
        self.stopped = False
        self.promised: dict[Path, bytes] = {}  # what a write that has returned left
        self.latest: dict[Path, bytes] = {}  # what the last one that has begun wants to leave
        self._synced: dict[int, int] = {}  # inode → bytes of it that would survive
        self._written: dict[int, Path] = {}
        self._names: list[tuple[int, Callable[[], object]]] = []  # folder, how to undo a change
        self._lock = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _step(self, half: Callable[[], object] = lambda: None) -> None:
        if self.delays is not None:
            time.sleep(self.delays.choice((0.0, 0.0, 0.001, 0.01, 0.03)))
        with self._lock:
            if self.stopped:
                raise Stopped
            self.steps += 1
            if self.steps != self.at:
                return
            half()
            if self.fault in ERRORS:
                raise OSError(ERRORS[self.fault], os.strerror(ERRORS[self.fault]))
            self.stopped = True
            if self.fault != STOP:
                self._cut()
            raise Stopped

    def _cut(self) -> None:
        """The power fails: what was not synced is lost."""
        for inode, path in self._written.items():
            if path.exists() and path.stat().st_ino == inode:
                os.truncate(path, min(self._synced.get(inode, 0), path.stat().st_size))
        if self.fault == CUT_NAMES:
            for _, undo in reversed(self._names):
                undo()

    def _changes(self, path: Path, undo: Callable[[], object]) -> None:
        self._names.append((path.parent.stat().st_ino, undo))

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        self._step()
        path = Path(path).absolute()
        new = bool(flags & os.O_CREAT) and not path.exists()
        descriptor = os.open(path, flags, mode)
        if new:
            self._changes(path, lambda: path.unlink(missing_ok=True))
        if flags & (os.O_WRONLY | os.O_RDWR):
            status = os.fstat(descriptor)
            self._written[status.st_ino] = path
            # what was there before is another process's, which was given time
            self._synced.setdefault(status.st_ino, status.st_size)
        return descriptor

    def write(self, descriptor: int, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._step(lambda: os.write(descriptor, view[: len(view) // 2]))
        return os.write(descriptor, data)

    def pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        self._step(lambda: os.pwrite(descriptor, data[: len(data) // 2], offset))
        return os.pwrite(descriptor, data, offset)

    def ftruncate(self, descriptor: int, length: int) -> None:
        self._step()
        os.ftruncate(descriptor, length)

    def fsync(self, descriptor: int) -> None:
        self._step()
        status = os.fstat(descriptor)
        self._synced[status.st_ino] = status.st_size
        self._names = [each for each in self._names if each[0] != status.st_ino]

    def mkdir(self, path: Path) -> None:
        self._step()
        path = path.absolute()
        os.mkdir(path)
        self._changes(path, lambda: shutil.rmtree(path, ignore_errors=True))

    def replace(self, source: Path, target: Path) -> None:
        self._step()
        target = target.resolve()
        before = target.read_bytes() if target.is_file() else None
        self.latest[target] = source.read_bytes()
        os.replace(source, target)
        self._written[target.stat().st_ino] = target
        self._changes(target, lambda: _restore(target, before))

    def rename(self, source: Path, target: Path) -> None:
        self._step()
        os.rename(source, target)
        self._changes(target, lambda: shutil.rmtree(target, ignore_errors=True))

    def unlink(self, path: Path) -> None:
        self._step()
        path = path.resolve()
        before = path.read_bytes() if path.is_file() else None
        self.promised.pop(path, None)
        os.unlink(path)
        self._changes(path, lambda: _restore(path, before))

    def lost(self) -> list[str]:
        """Files that are not as a write that has returned left them, nor as the next one would."""
        return [
            str(path)
            for path, content in self.promised.items()
            if not path.is_file()
            or path.read_bytes() not in (content, self.latest.get(path, content))
        ]


def _restore(path: Path, content: bytes | None) -> None:
    path.unlink(missing_ok=True)
    if content is not None and path.parent.is_dir():
        path.write_bytes(content)


@contextmanager
def under(layer: Layer) -> Iterator[Layer]:
    """All writes go through the layer, which remembers what they promise."""
    write = files.write_atomically

    def remembering(path: Path, content: Any) -> None:
        write(path, content)
        layer.promised[path.resolve()] = path.read_bytes()
        layer.latest.pop(path.resolve(), None)

    writers = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("goatrl") and vars(module).get("write_atomically") is write
    ]
    for module in writers:
        module.write_atomically = remembering
    for module in (files, claims):
        vars(module)["os"] = layer
    try:
        yield layer
    finally:
        for module in (files, claims):
            vars(module)["os"] = os
        for module in writers:
            module.write_atomically = write
