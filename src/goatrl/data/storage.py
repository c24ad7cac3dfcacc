"""Datasets on disk: npz in and out, other formats in, and those that Minari keeps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.lib import format as npy

from goatrl.data import goat_pickle, minari, parquet
from goatrl.data.sizes import check_fits_memory
from goatrl.data.trajectories import OGBENCH, from_ogbench, from_robomimic
from goatrl.disk.files import write_atomically
from goatrl.disk.reading import unusable
from goatrl.episodes import make_episodes
from goatrl.tasks import groups
from goatrl.types import ActionBounds, Episodes, GoatError, check_goal_threshold

# what an npz may declare beside its episodes
BOUNDS = ("action_low", "action_high")
THRESHOLD = "goal_threshold"


def save(
    episodes: Episodes,
    path: Path | str,
    action_bounds: ActionBounds | tuple[Any, Any] | None = None,
    goal_threshold: float | None = None,
) -> None:
    """Write a dataset as npz, with what is known of it: the lowest and the highest action (numbers,
    or one for each dimension) and the goal threshold.
    """
    path = Path(path)
    check_name(path)
    arrays = episodes.arrays()
    if action_bounds is not None:
        ends = (
            dataclasses.astuple(action_bounds)
            if isinstance(action_bounds, ActionBounds)
            else action_bounds
        )
        size = arrays["actions"].shape[-1]
        checked = ActionBounds.of(*(np.broadcast_to(each, size) for each in ends))
        arrays |= dict(zip(BOUNDS, map(np.array, dataclasses.astuple(checked)), strict=True))
    if goal_threshold is not None:
        check_goal_threshold(goal_threshold)
        arrays[THRESHOLD] = np.array(goal_threshold)
    write_atomically(path, lambda file: np.savez_compressed(file, **arrays))  # type: ignore[arg-type]


def check_name(path: Path) -> None:
    if path.suffix != ".npz":
        raise GoatError(f"cannot write {path.name}: name a file that ends in .npz")


def load(source: Path | str) -> Episodes:
    """Read a dataset: a file of one of `READERS`, such as .npz with observations, achieved, actions
    and goals (or OGBench's), or minari:ID.
    """
    if minari.is_id(source):
        return minari.load(str(source).removeprefix(minari.PREFIX))
    path = Path(source)
    known = f"goatrl reads {', '.join(READERS)} and minari:ID (docs/own-data.md)"
    if path.is_dir():
        raise GoatError(f"{path} is a folder, and a dataset is a file; {known}")
    if not path.is_file():
        group = f"; to use that task group, say --group {path}" if str(path) in groups() else ""
        raise GoatError(f"no such file: {path}{group}")
    if path.suffix not in READERS:
        raise GoatError(f"cannot read {path.name}: {known}")
    return READERS[path.suffix](path)


def _load_npz(path: Path) -> Episodes:
    names = ["observations", "achieved", "actions", "goals"]
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            ogbench = "achieved" not in file and all(name in file for name in OGBENCH)
            names = list(OGBENCH) if ogbench else names
            missing = [name for name in names if name not in file]
            if missing:
                raise GoatError(
                    f"{path} is missing {', '.join(missing)}; a dataset has {', '.join(names)}"
                )
            given = [name for name in ("lengths", "terminated") if name in file]
            wanted = [*names, *given]
            arrays = _read(file, wanted, path)
    except GoatError:
        raise
    except Exception as error:
        # A damaged archive can fail in as many ways as zip files and array headers have fields.
        damaged = (
            f"{path} is damaged or not an npz dataset ({type(error).__name__}); copy or make "
            "it again"
        )
        raise unusable(path, error, damaged) from error
    try:
        return from_ogbench(arrays) if ogbench else make_episodes(**arrays)
    except GoatError as error:
        raise GoatError(f"{path}: {error}") from None


def _read(file: Any, names: Sequence[str], path: Path) -> dict[str, np.ndarray]:
    """Arrays of an open npz, if this machine can hold what they declare."""
    check_fits_memory(sum(_declared_bytes(file.zip, f"{name}.npy") for name in names), path)
    return {name: file[name] for name in names}


def _declared_bytes(archive: ZipFile, name: str) -> int:
    """What an array takes by its own header, or by the archive's if that is more."""
    with archive.open(name) as member:
        readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        shape, _, dtype = readers[npy.read_magic(member)](member)
    return max(math.prod(shape) * dtype.itemsize, archive.getinfo(name).file_size)


# A further format is a further reader: whatever takes a dataset then takes it too.
READERS: dict[str, Callable[[Path], Episodes]] = {
    ".npz": _load_npz,
    ".pkl": goat_pickle.import_episodes,
    ".pickle": goat_pickle.import_episodes,
    ".parquet": parquet.load,
    ".hdf5": from_robomimic,
    ".h5": from_robomimic,
}


def goal_threshold(source: Path | str) -> float | None:
    """How near to a goal counts as reached, if a dataset itself says it."""
    if minari.is_id(source):
        return minari.goal_threshold(str(source).removeprefix(minari.PREFIX))
    found = _declared(source, [THRESHOLD]).get(THRESHOLD)
    if found is None:
        return None
    try:
        if found.size != 1:
            raise GoatError("the goal threshold must be one number")
        check_goal_threshold(found.item())
    except GoatError as error:
        raise GoatError(f"{source}: {error}") from None
    return float(found.item())


def action_bounds(source: Path | str, episodes: Episodes) -> ActionBounds | None:
    """The bounds of the actions of a dataset that was loaded, if it declares them."""
    if minari.is_id(source):
        largest = float(np.abs(np.asarray(episodes.actions)).max())
        return minari.action_bounds(str(source).removeprefix(minari.PREFIX), largest)
    found = [np.atleast_1d(each) for each in _declared(source, BOUNDS).values()]
    try:
        if len(found) == 1:
            raise GoatError(f"it has only one of {' and '.join(BOUNDS)}; give both or neither")
        return ActionBounds.of(*found) if found else None
    except GoatError as error:
        raise GoatError(f"{source}: {error}") from None


def _declared(source: Path | str, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Those of these numbers that a file has beside its episodes. Only npz has any."""
    path = Path(source)
    if path.suffix != ".npz":
        return {}
    try:
        with np.load(path, allow_pickle=False) as file:
            found = _read(file, [name for name in names if name in file], path)
        return {name: np.asarray(array, np.float64) for name, array in found.items()}
    except GoatError:
        raise
    except Exception as error:
        raise GoatError(f"{path}: {' and '.join(names)} are no arrays of numbers") from error


def location(source: Path | str) -> str:
    """Where a dataset is, in words that mean the same from every folder."""
    return str(source) if minari.is_id(source) else str(Path(source).resolve())
