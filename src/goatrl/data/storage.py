"""Datasets on disk: npz in and out, the authors' pickles in, and those that Minari keeps."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from goatrl.data import goat_pickle, minari
from goatrl.disk.files import write_atomically
from goatrl.types import Episodes, GoatError, make_episodes


def save(episodes: Episodes, path: Path | str) -> None:
    """Write a dataset as npz."""
    path = Path(path)
    check_name(path)
    arrays = {
        field.name: np.asarray(getattr(episodes, field.name))
        for field in dataclasses.fields(episodes)
    }
    write_atomically(path, lambda file: np.savez_compressed(file, **arrays))  # type: ignore[arg-type]


def check_name(path: Path) -> None:
    if path.suffix != ".npz":
        raise GoatError(f"cannot write {path.name}: name a file that ends in .npz")


def load(source: Path | str) -> Episodes:
    """Read a dataset: .npz with observations, achieved, actions and goals, one of the authors' .pkl
    files, or minari:ID.
    """
    if minari.is_id(source):
        return minari.load(str(source).removeprefix(minari.PREFIX))
    path = Path(source)
    if not path.is_file():
        raise GoatError(f"no such file: {path}")
    if path.suffix in (".pkl", ".pickle"):
        return goat_pickle.import_episodes(path)
    names = [field.name for field in dataclasses.fields(Episodes)]
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            missing = [name for name in names if name not in file]
            if missing:
                raise GoatError(
                    f"{path} is missing {', '.join(missing)}; a dataset has {', '.join(names)}"
                )
            arrays = {name: file[name] for name in names}
    except GoatError:
        raise
    except Exception as error:
        # A damaged archive can fail in as many ways as zip files and array headers have fields.
        raise GoatError(
            f"{path} is damaged or not an npz dataset ({type(error).__name__})"
        ) from error
    try:
        return make_episodes(**arrays)
    except GoatError as error:
        raise GoatError(f"{path}: {error}") from None


def goal_threshold(source: Path | str) -> float | None:
    """How near to a goal counts as reached, if a dataset itself says it; a file never does."""
    return (
        minari.goal_threshold(str(source).removeprefix(minari.PREFIX))
        if minari.is_id(source)
        else None
    )


def location(source: Path | str) -> str:
    """Where a dataset is, in words that mean the same from every folder."""
    return str(source) if minari.is_id(source) else str(Path(source).resolve())
