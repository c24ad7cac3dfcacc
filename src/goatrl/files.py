"""Writing files so that none is ever half-written."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from goatrl.types import GoatError


class WriteError(GoatError):
    """The disk refuses."""

    exit_code = 1

    def __init__(self, path: Path, error: OSError) -> None:
        reason = "no space left on the disk" if error.errno == errno.ENOSPC else error.strerror or str(error)
        super().__init__(f"cannot write {path}: {reason}; what was saved before is untouched")


def cache_folder(name: str) -> Path:
    """A folder of things that can be made again, in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "goatrl" / name


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """`path` gets the whole new content or keeps its old one, also on a crash or a full disk."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
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
