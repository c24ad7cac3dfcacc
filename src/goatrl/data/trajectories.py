"""Recorded trajectories without goals, as OGBench and robomimic keep them.

Both say what was observed and done, not what was achieved. A whole observation counts as the
achieved goal, as in OGBench, and the last one of an episode as the goal that it was after;
`goal_from_columns` chooses less.

OGBench's npz                 observations (S, ·), actions (S, ·), terminals (S,): 1 where one ends
robomimic's HDF5, data/demo_N actions (T, ·), obs/KEY (T, ·), and often next_obs/KEY (T, ·)

The action at the end of an OGBench trajectory leads nowhere that was seen, and neither does
robomimic's last one without next_obs. They are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from goatrl.data.sizes import check_fits_memory
from goatrl.disk.reading import unusable
from goatrl.episodes import make_episodes
from goatrl.types import Episodes, GoatError

OGBENCH = ("observations", "actions", "terminals")


def from_ogbench(arrays: Mapping[str, np.ndarray]) -> Episodes:
    """Episodes of the arrays of an OGBench file."""
    seen, actions, terminals = (np.asarray(arrays[name]) for name in OGBENCH)
    if seen.ndim != 2:
        raise GoatError(f"observations has shape {seen.shape}, but goatrl reads rows of numbers")
    if terminals.shape != (len(seen),) or not len(seen):
        raise GoatError(
            f"terminals has shape {terminals.shape}, but {len(seen)} observations need one each"
        )
    ends = np.flatnonzero(terminals)
    if not len(ends) or ends[-1] != len(seen) - 1:
        ends = np.append(ends, len(seen) - 1)  # the file was cut there
    return make_episodes(seen, seen, actions, seen[ends], lengths=np.diff(ends, prepend=-1) - 1)


def from_robomimic(path: Path) -> Episodes:
    """Episodes of a robomimic file; observations are its keys of numbers in alphabetical order."""
    try:
        import h5py
    except ImportError:
        raise GoatError("HDF5 files need the package h5py: run `pip install h5py`") from None
    try:
        # Opened by Python first: what h5py says of a file that it may not read has no number.
        with path.open("rb"), h5py.File(path) as file:
            return _demos(file["data"], path)
    except GoatError as error:
        raise GoatError(f"{path}: {error}") from None
    except Exception as error:  # a damaged file can fail in many ways
        damaged = (
            f"{path} is damaged or not a robomimic dataset ({type(error).__name__}); copy or make "
            "it again"
        )
        raise unusable(path, error, damaged) from error


def _demos(data: Any, path: Path) -> Episodes:
    names = sorted(data, key=lambda name: [int(each) for each in re.findall(r"\d+", name)])
    if not names:
        raise GoatError("it has no demonstrations")
    keys = sorted(key for key, array in data[names[0]]["obs"].items() if array.ndim == 2)
    if not keys:
        raise GoatError("its observations are no rows of numbers (images are not read)")
    wanted = [data[name][part] for name in names for part in ("actions", *_keys(data[name], keys))]
    if any(array.is_virtual or array.external for array in wanted):
        raise GoatError("it takes its numbers from other files, which are not read")
    check_fits_memory(sum(array.size * array.dtype.itemsize for array in wanted), path)
    observations, actions = [], []
    for name in names:
        demo = data[name]
        seen = np.concatenate([demo["obs"][key][()] for key in keys], axis=-1)
        done = demo["actions"][()]
        if "next_obs" in demo:
            last = np.concatenate([demo["next_obs"][key][-1:] for key in keys], axis=-1)
            seen = np.concatenate([seen, last])
        else:
            done = done[:-1]
        observations.append(seen)
        actions.append(done)
    return make_episodes(observations, observations, actions, [each[-1] for each in observations])


def _keys(demo: Any, keys: Sequence[str]) -> list[str]:
    parts = [part for part in ("obs", "next_obs") if part in demo]
    return [f"{part}/{key}" for part in parts for key in keys]


def goal_from_columns(episodes: Episodes, columns: Sequence[int]) -> Episodes:
    """The same episodes, in which these columns of an observation are what is achieved, and those
    of the last one the goal.
    """
    size = episodes.observations.shape[-1]
    if not columns or len(set(columns)) != len(columns) or not set(columns) <= set(range(size)):
        raise GoatError(
            f"goal columns must be different ones of 0 to {size - 1}, not "
            f"{' '.join(map(str, columns))}"
        )
    achieved = np.asarray(episodes.observations)[..., list(columns)]
    every = np.arange(episodes.count)
    goals = achieved[episodes.at(every, episodes.length(every))]
    return make_episodes(**episodes.arrays() | {"achieved": achieved, "goals": goals})
