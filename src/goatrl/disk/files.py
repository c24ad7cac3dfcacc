"""Writing files so that none is ever half-written, and nothing that others write meanwhile
is lost.

Everything that goatrl writes itself goes through the calls of `os` in this module and in `claims`:
tests let each of them fail, or stop the process there.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from goatrl.disk.targets import target
from goatrl.types import GoatError

UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP)  # said of folders by file systems that keep no cache


class WriteError(GoatError):
    """A file cannot be written."""

    exit_code = 1

    def __init__(self, path: Path, error: OSError) -> None:
        reason = (
            "no space left on the disk"
            if error.errno == errno.ENOSPC
            else error.strerror or str(error)
        )
        super().__init__(f"cannot write {path}: {reason}; what was saved before is untouched")


def cache_folder(name: str) -> Path:
    """A folder of things that can be made again, in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "goatrl" / name


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """`path` gets the whole new content or keeps its old one, also on a crash, a power cut or a
    full disk. When this returns, the new content is on the disk.
    """
    temporary, path = None, target(path)
    try:
        make_folder(path.parent)
        remove_left_overs(path.parent)
        temporary, opened = _create(path.parent)
        with opened as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, path)  # before it is closed: until then nobody takes it away
        _sync_folder(path.parent)
    except OSError as error:
        raise WriteError(path, error) from error
    finally:
        if temporary is not None:
            with suppress(OSError):  # the next write into this folder removes it
                os.unlink(temporary)


def write_text(path: Path, text: str) -> None:
    """As UTF-8. The name of a file, which a text may mention, need not be text."""
    write_atomically(path, lambda file: file.write(text.encode(errors="backslashreplace")))


def append(path: Path, text: str) -> None:
    """Add to the end of a file. A crash may leave a part of it; `sync` makes it last."""
    try:
        with _file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
            file.write(text.encode())
    except OSError as error:
        raise WriteError(path, error) from error


def sync(path: Path) -> None:
    """What was appended is on the disk when this returns, if the file is."""
    try:
        with _file(path, os.O_WRONLY) as file:
            os.fsync(file.fileno())
    except OSError as error:
        raise WriteError(path, error) from error


def remove(path: Path) -> None:
    try:
        with suppress(FileNotFoundError):
            os.unlink(path)
    except OSError as error:
        raise WriteError(path, error) from error


def make_folder(folder: Path) -> None:
    """With those above it. They are on the disk when this returns."""
    if folder.is_dir():
        return
    try:
        os.mkdir(folder)
    except FileNotFoundError:
        if folder.parent.is_dir():  # where nothing can be made, as in /proc
            raise
        make_folder(folder.parent)
        make_folder(folder)
        return
    except FileExistsError:
        if folder.is_dir():
            return  # made by another process
        behind = Path(os.path.realpath(folder))
        if not folder.is_symlink() or os.path.lexists(behind):
            raise GoatError(f"{folder} is not a folder; choose another place") from None
        make_folder(behind)  # to which the link leads
        return
    _sync_folder(folder.parent)


def move_folder(folder: Path, to: Path) -> None:
    """A folder of files gets its name when all of it is on the disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            with _file(path, os.O_RDONLY) as file:
                os.fsync(file.fileno())
        else:
            _sync_folder(path)
    _sync_folder(folder)
    os.rename(folder, to)
    _sync_folder(to.parent)


class _File(io.FileIO):
    """Writes by `os.write`, like everything here."""

    def write(self, data: Any, /) -> int:
        return os.write(self.fileno(), data)


def _file(path: Path, flags: int) -> BinaryIO:
    descriptor = os.open(path, flags, 0o666)
    return io.BufferedWriter(_File(descriptor, "wb"))


def _create(folder: Path) -> tuple[Path, BinaryIO]:
    """A temporary file, locked while it is open, so that others see whether it is left over."""
    while True:
        path = folder / f".goatrl-{secrets.token_hex(8)}.tmp"
        file = _file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with suppress(OSError):  # without locks, nobody removes it
            fcntl.flock(file, fcntl.LOCK_EX)
        if path.exists():
            return path, file
        file.close()  # taken for a left-over one before it was locked


def remove_left_overs(folder: Path) -> None:
    """What writes of processes that have ended left behind."""
    for path in folder.glob(".goatrl-*.tmp"):
        with suppress(OSError), _file(path, os.O_WRONLY | os.O_NOFOLLOW) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)


def _sync_folder(folder: Path) -> None:
    """Names of files are a folder's content, and last when that does."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # it may be written, but not read
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
    finally:
        os.close(descriptor)


def _open_lock(path: Path) -> BinaryIO:
    """Made by whoever comes first; who shares the folder may lock a file that is another user's."""
    try:
        return _file(path, os.O_RDWR | os.O_CREAT)
    except PermissionError:
        return path.open("rb")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One at a time, among all processes and threads, for the moment in which something is read,
    added to and written again.

    The lock is the kernel's (flock), on a hidden file that stays. It ends with its process, however
    that ends, and binds only those who ask for it. The file system must have such locks, and if
    machines share it, count them between machines (NFS does).
    """
    path = folder / ".lock"
    try:
        make_folder(folder)
        file = _open_lock(path)
    except OSError as error:
        raise WriteError(path, error) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            raise GoatError(
                f"cannot lock {path}: {error.strerror}; choose a folder on a file system that "
                "supports locks (flock)"
            ) from error
        remove_left_overs(folder)
        yield
