"""Datasets in the format of Minari, in and out. An episode with T actions, as Minari stores it::

observations   observation      o_0 … o_T     (T+1, observation_dim)
               achieved_goal    φ_0 … φ_T     (T+1, goal_dim)
               desired_goal     g_0 … g_T     (T+1, goal_dim), in most datasets always the same
actions                         a_0 … a_T-1   (T, action_dim)
rewards                         1 where φ_t+1 is within the threshold of g, otherwise 0
terminations                    at the last action of an episode that its environment ended
truncations                     at the last action of any other
"""

from __future__ import annotations

import dataclasses
import difflib
import errno
import json
import math
import os
import shutil
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict

import goatrl
from goatrl.data.sizes import check_fits_memory, of_hdf5
from goatrl.disk.claims import claimed
from goatrl.disk.files import WriteError, move_folder
from goatrl.episodes import make_episodes
from goatrl.sim.registration import identifier, is_registered
from goatrl.tasks import TaskGroup
from goatrl.types import ActionBounds, Episodes, GoatError, check_goal_threshold, reached

PREFIX = "minari:"
KEYS = ("observation", "achieved_goal", "desired_goal")
OVERHEAD = 32_000  # bytes that HDF5 adds to an episode's numbers, generously


def is_id(source: Path | str) -> bool:
    """Whether a dataset is named by its Minari id, as in minari:goatrl/push-left-right-v0."""
    return str(source).startswith(PREFIX)


def require(name: str) -> None:
    """Refuse the id of a dataset that is not on this machine; nothing is downloaded."""
    _library()
    if not (_folder(name) / "data").is_dir():
        near = difflib.get_close_matches(name, _local_ids(), n=3, cutoff=0.7)
        hint = f"did you mean {' or '.join(near)}? or " if near else ""
        raise GoatError(
            f"no Minari dataset '{name}' on this machine; {hint}download it with `minari download "
            f"{name}`"
        )


def load(name: str) -> Episodes:
    """A dataset of this machine by its Minari id."""
    require(name)
    with _reading(name):
        return _read(_open(name))


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Whatever is wrong with a dataset becomes one line that names it."""
    try:
        yield
    except GoatError as error:
        raise GoatError(f"{PREFIX}{name}: {error}") from None
    except Exception as error:  # a damaged file can fail in many ways
        raise GoatError(
            f"{PREFIX}{name} cannot be read ({type(error).__name__}: {_short(str(error))})"
        ) from error


def goal_threshold(name: str) -> float | None:
    """How near counts as reached, which `export` writes into the metadata; datasets of others do
    not say it.
    """
    with _reading(name):
        found = _open(name).storage.metadata.get("goal_threshold")
    return (
        float(found)
        if isinstance(found, int | float) and math.isfinite(found) and found > 0
        else None
    )


def action_bounds(name: str, largest: float) -> ActionBounds | None:
    """The bounds of actions of which this is the largest: as `export` writes them into the
    metadata; those of others' action spaces count only if actions exceed [-1, 1].
    """
    with _reading(name):
        dataset = _open(name)
        if "goatrl_version" in dataset.storage.metadata:
            declared = json.loads(str(dataset.storage.metadata.get("action_bounds", "null")))
            return None if declared is None else ActionBounds.of(**declared)
        space = dataset.action_space
        if (
            largest <= 1.0
            or not isinstance(space, Box)
            or not (np.isfinite(space.low) & np.isfinite(space.high)).all()
        ):
            return None
        return ActionBounds.of(space.low, space.high)


def export(
    episodes: Episodes,
    name: str,
    *,
    goal_threshold: float,
    group: TaskGroup | None = None,
    description: str | None = None,
    author: str | None = None,
    algorithm: str | None = None,
    action_bounds: ActionBounds | None = None,
) -> bool:
    """Write a Minari dataset; False if the same one is there already. A group adds the environments
    of its tasks. Without bounds, the action space is [-1, 1], or as wide as the actions.
    """
    minari = _library()
    check_goal_threshold(goal_threshold)
    path, checksum = _folder(name), episodes.checksum()
    if path.exists():
        if _holds(name, checksum, goal_threshold):
            return False
        raise GoatError(
            f"the Minari dataset {name} already exists with different episodes or goal threshold; "
            f"choose another name or version, or delete it with `minari delete {name}`"
        )
    about = {
        "dataset_id": name,
        "minari_version": minari.__version__,
        "description": description
        or f"{episodes.count} episodes of {'' if episodes.lengths is None else 'up to '}"
        f"{episodes.horizon} actions, written by goatrl",
        "author": None if author is None else {author},
        "algorithm_name": algorithm,
        "goal_threshold": goal_threshold,
        "episodes_sha256": checksum,
        "goatrl_version": goatrl.__version__,
        "action_bounds": json.dumps(action_bounds and dataclasses.asdict(action_bounds)),
        **_environments(group),
    }
    try:
        _check_space(episodes)
        # Minari does not look into folders that begin with a dot, and the dataset gets its name
        # when it is whole.
        with _unfinished(name) as unfinished:
            _write(
                episodes,
                unfinished / "data",
                goal_threshold,
                {key: about[key] for key in about if about[key] is not None},
                action_bounds,
            )
            # HDF5 does not report every write that fails.
            if _read(minari.MinariDataset(unfinished / "data")).checksum() != checksum:
                raise OSError(errno.EIO, "it reads back differently from what was written")
            _make_namespace(name)
            move_folder(unfinished, path)
    except (OSError, RuntimeError) as error:  # h5py raises both
        reason = getattr(error, "strerror", None) or str(error)
        raise WriteError(path, OSError(getattr(error, "errno", None), _short(reason))) from error
    return True


def describe(group: TaskGroup) -> dict[str, str]:
    """Description, author and algorithm of the dataset that goatrl makes for a task group."""
    source = group if group.cut_from is None else group.cut_from
    if source.collection is None:
        scripted = source.script or source.recording
        return {
            "description": group.label if scripted is None else scripted.describe(group.label),
            "author": "goatrl",
            "algorithm": "scripted",
        }
    seen, *unseen = (
        identifier(group, task) if is_registered(group, task) else task.name for task in group.tasks
    )
    stays = "ends" if source.collection.by_end else "stays"
    kept = f"{stays} in the region of {seen}" if group is source else f"a part of {source.label}"
    return {
        "description": f"{group.label}: {kept}; agents are evaluated there and on "
        f"{', '.join(unseen)}",
        "author": "goatrl",
        "algorithm": f"expert with noise {source.collection.noise:g} and "
        f"{source.collection.random:.0%} random actions",
    }


def rewards(episodes: Episodes, goal_threshold: float) -> list[np.ndarray]:
    """The sparse reward of every action, paid on what it achieves: N arrays (T,)."""
    episode, step = episodes.steps()
    after = np.asarray(episodes.achieved, np.float32)[episodes.at(episode, step + 1)]
    desired = np.asarray(episodes.desired(episode, step), np.float32)
    paid = reached(after, desired, goal_threshold).astype(np.float32)
    return np.split(paid, np.flatnonzero(step == 0)[1:])


def _library() -> Any:
    """Minari: slow to import, and not on every machine."""
    try:
        import h5py  # noqa: F401
        import minari
    except ImportError:
        raise GoatError(
            "Minari datasets need the package minari: run `pip install 'minari[hdf5]'`"
        ) from None
    return minari


def _open(name: str) -> Any:
    """A dataset as Minari reads it. It must say its spaces: to learn them, Minari would make the
    environment that a dataset names, and that is code of whoever wrote it.
    """
    from minari.dataset.minari_storage import MinariStorage

    if (
        not {"observation_space", "action_space"}
        <= MinariStorage.read_raw_metadata(_folder(name) / "data").keys()
    ):
        raise GoatError(
            "its metadata lacks observation_space and action_space, and goatrl does not create "
            "environments that a file names"
        )
    return _library().load_dataset(name)


def _root() -> Path:
    from minari.storage.datasets_root_dir import get_dataset_path

    try:
        return get_dataset_path()
    except OSError as error:
        raise GoatError(
            f"cannot create Minari's folder {error.filename}: {error.strerror}; set "
            "MINARI_DATASETS_PATH to another folder"
        ) from None


def _split(name: str) -> tuple[str | None, str, int]:
    """Namespace, name and version of an id."""
    from minari.dataset.minari_dataset import parse_dataset_id

    try:
        return parse_dataset_id(name)
    except (ValueError, TypeError):  # the latter where the version is missing
        raise GoatError(f"'{name}' is not a Minari id; write NAMESPACE/NAME-v0") from None


def _folder(name: str) -> Path:
    _split(name)  # which also keeps .. out
    return _root() / name


def _local_ids() -> list[str]:
    root = _root()
    names = (
        path.parents[1].relative_to(root).as_posix() for path in root.glob("**/data/metadata.json")
    )
    return sorted(name for name in names if not name.startswith("."))


@contextmanager
def _unfinished(name: str) -> Iterator[Path]:
    """An empty folder for a dataset that is being written, by one process at a time."""
    folder = _root() / f".goatrl-{name.replace('/', '--')}"
    with claimed(_folder(name), folder / ".in-use"):
        try:
            shutil.rmtree(folder / "dataset", ignore_errors=True)  # of a process that was stopped
            (folder / "dataset").mkdir()
            yield folder / "dataset"
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _make_namespace(name: str) -> None:
    from minari.namespace import create_namespace, list_local_namespaces

    namespace = _split(name)[0]
    if namespace is not None and namespace not in list_local_namespaces():
        create_namespace(namespace)


def _holds(name: str, checksum: str, goal_threshold: float) -> bool:
    """Whether this dataset is there as `export` would write it."""
    try:
        stored = _open(name)
        return (
            stored.storage.metadata.get("goal_threshold") == goal_threshold
            and _read(stored).checksum() == checksum
        )
    except Exception:  # whatever it is that cannot be read, it is something else
        return False


def _environments(group: TaskGroup | None) -> dict[str, Any]:
    """Where the data comes from and where agents are evaluated, for `recover_environment`; a reader
    without goatrl ignores it.
    """
    if group is None or not all(is_registered(group, task) for task in group.tasks):
        return {}
    seen, unseen = (
        gymnasium.spec(identifier(group, task)).to_json()
        for task in (group.tasks[0], group.tasks[-1])
    )
    return {
        "env_spec": seen,
        "eval_env_spec": unseen,
        "requirements": [f"goatrl>={goatrl.__version__}"],
    }


def _check_space(episodes: Episodes) -> None:
    """A full disk must be noticed before: HDF5 crashes the process."""
    arrays = (episodes.observations, episodes.achieved, episodes.actions)
    needed = 2 * sum(array.nbytes for array in arrays) + OVERHEAD * episodes.count
    if shutil.disk_usage(_root()).free < needed:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _write(
    episodes: Episodes,
    folder: Path,
    goal_threshold: float,
    about: dict[str, Any],
    bounds: ActionBounds | None,
) -> None:
    from minari.dataset.minari_storage import MinariStorage

    spec = episodes.spec(goal_threshold)
    sizes = (spec.observation_dim, spec.goal_dim, spec.goal_dim)
    observations = Dict(
        {
            key: Box(-np.inf, np.inf, (size,), np.float32)
            for key, size in zip(KEYS, sizes, strict=True)
        }
    )
    if bounds is None:
        bound = max(1.0, float(np.abs(episodes.actions).max()))  # wider only where the data is
        actions = Box(-bound, bound, (spec.action_dim,), np.float32)
    else:
        low, high = (np.array(each, np.float32) for each in (bounds.low, bounds.high))
        actions = Box(low, high, (spec.action_dim,), np.float32)
    storage = MinariStorage.new(folder, observations, actions, data_format="hdf5")
    storage.update_metadata(about)
    storage.update_episodes(_buffers(episodes, goal_threshold))


def _buffers(episodes: Episodes, goal_threshold: float) -> Iterator[Any]:
    from minari.data_collector import EpisodeBuffer

    observations, achieved, actions = (
        np.asarray(array, np.float32)
        for array in (episodes.observations, episodes.achieved, episodes.actions)
    )
    paid = rewards(episodes, goal_threshold)
    ended = np.zeros(episodes.count, bool) if episodes.terminated is None else episodes.terminated
    for n in range(episodes.count):
        length = int(episodes.length(n))
        steps = np.arange(length + 1)
        episode, last = np.full(length + 1, n), steps[:-1] == length - 1
        at = episodes.at(episode, steps)
        desired = np.asarray(episodes.desired(episode, steps), np.float32)
        yield EpisodeBuffer(
            observations=dict(zip(KEYS, (observations[at], achieved[at], desired), strict=True)),
            actions=actions[episodes.at(episode[:-1], steps[:-1])],
            rewards=paid[n],
            terminations=last & bool(ended[n]),
            truncations=last & ~bool(ended[n]),
            infos={},  # without any, Minari cannot print an episode
        )


def _read(dataset: Any) -> Episodes:
    space = dataset.observation_space
    if not isinstance(space, Dict) or not all(
        isinstance(space.spaces.get(key), Box) for key in KEYS
    ):
        raise GoatError(
            "it is not goal-conditioned: its observations are not a dictionary of the vectors "
            f"{', '.join(KEYS)}"
        )
    if not dataset.total_episodes:
        raise GoatError("it has no episodes")
    _check_memory(dataset)
    ours = "goatrl_version" in dataset.storage.metadata
    parts: list[tuple[Any, ...]] = []
    ended: list[bool] = []
    before: np.ndarray | None = None  # the goal at the end of the previous episode
    for episode in dataset.iterate_episodes():
        observation, achieved, desired = (episode.observations[key] for key in KEYS)
        goals = desired if ours or before is None else _mended(desired, before)
        parts.append((observation, achieved, episode.actions, goals[:-1]))
        ended.append(bool(episode.terminations[-1]) if len(episode.terminations) else False)
        before = desired[-1]
    observations, achieved, actions, goals = (list(each) for each in zip(*parts, strict=True))
    return make_episodes(observations, achieved, actions, goals, terminated=ended)


def _mended(desired: np.ndarray, before: np.ndarray) -> np.ndarray:
    """The goals of an episode. Where an environment draws a new goal at success and goes on, the
    first step of the next episode still shows the old one: all steps after it agree on another.
    """
    stale = np.array_equal(desired[0], before) and not np.array_equal(desired[0], desired[-1])
    if stale and (desired[1:] == desired[-1]).all():
        return np.concatenate([desired[-1:], desired[1:]])
    return desired


def _check_memory(dataset: Any) -> None:
    file = Path(dataset.storage.data_path) / "main_data.hdf5"
    if file.is_file():
        import h5py

        with h5py.File(file) as opened:
            check_fits_memory(of_hdf5(opened), "it")


def _short(text: str) -> str:
    return textwrap.shorten(text, 200, placeholder="…")
