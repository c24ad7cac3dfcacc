"""Datasets on disk: npz in and out, the authors' pickles in. Every write is atomic."""

from __future__ import annotations

import dataclasses
import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from goatrl.data import authors
from goatrl.types import Episodes, GoatError, make_episodes


class WriteError(GoatError):
    """The disk refuses; what was written before is as it was."""

    exit_code = 1

    def __init__(self, path: Path, error: OSError) -> None:
        reason = "no space left on the disk" if error.errno == errno.ENOSPC else error.strerror or str(error)
        super().__init__(f"cannot write {path}: {reason}; what was there before is untouched")


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


def save(episodes: Episodes, path: Path) -> None:
    """Write a dataset as npz."""
    arrays = {field.name: np.asarray(getattr(episodes, field.name)) for field in dataclasses.fields(episodes)}
    write_atomically(path, lambda file: np.savez_compressed(file, **arrays))  # type: ignore[arg-type]


def load(path: Path) -> Episodes:
    """Read a dataset: .npz with observations, achieved, actions and goals, or one of the authors' .pkl files."""
    if not path.is_file():
        raise GoatError(f"no such file: {path}")
    if path.suffix in (".pkl", ".pickle"):
        return authors.import_episodes(path)
    names = [field.name for field in dataclasses.fields(Episodes)]
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            missing = [name for name in names if name not in file]
            if missing:
                raise GoatError(f"{path} lacks {', '.join(missing)}; a dataset has {', '.join(names)}")
            arrays = {name: file[name] for name in names}
    except GoatError:
        raise
    except Exception as error:  # a damaged archive can fail in as many ways as zip files and array headers have fields
        raise GoatError(f"{path} is damaged or not an npz dataset ({type(error).__name__})") from error
    try:
        return make_episodes(**arrays)
    except GoatError as error:
        raise GoatError(f"{path}: {error}") from None
