"""Writing files so that none is ever half-written, and nothing that others write meanwhile
is lost.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from goatrl.disk.targets import target
from goatrl.types import GoatError


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
    """`path` gets the whole new content or keeps its old one, also on a crash or a full disk."""
    temporary, path = None, target(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            temporary = Path(file.name)
            write(file)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise WriteError(path, error) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda file: file.write(text.encode()))


def _open_lock(path: Path) -> BinaryIO:
    """Made by whoever comes first; who shares the folder may lock a file that is another user's."""
    try:
        return path.open("ab")
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
        folder.mkdir(parents=True, exist_ok=True)
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
        yield
