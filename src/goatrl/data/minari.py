"""Datasets in the format of Minari, in and out.

A step of an episode with T actions, as Minari stores it::

    observations/observation      o_0 … o_T     (T+1, observation_dim)
    observations/achieved_goal    φ_0 … φ_T     (T+1, goal_dim)
    observations/desired_goal     g … g         (T+1, goal_dim)
    actions                       a_0 … a_T-1   (T, action_dim)
    rewards                       1 where φ_t+1 is within the threshold of g, otherwise 0
    terminations, truncations     none, and the last step
"""

from __future__ import annotations

import difflib
import errno
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import goatrl
from goatrl.files import WriteError
from goatrl.tasks import TaskGroup
from goatrl.types import Episodes, GoatError

if TYPE_CHECKING:
    pass

PREFIX = "minari:"
KEYS = ("observation", "achieved_goal", "desired_goal")
# What HDF5 adds to the numbers of an episode, generously.
OVERHEAD_BYTES = 32_000


def is_id(source: Path | str) -> bool:
    """Whether a dataset is named by its Minari id (minari:NAMESPACE/NAME-v0) and not by a file."""
    return str(source).startswith(PREFIX)


def load(name: str) -> Episodes:
    """A dataset of this machine by its Minari id. Nothing is downloaded."""
    minari, path = _library(), _folder(name)
    if not (path / "data").is_dir():
        near = difflib.get_close_matches(name, _local_ids(), n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}? Otherwise " if near else ""
        raise GoatError(f"no Minari dataset '{name}' on this machine; {hint}fetch it with `minari download {name}`")
    try:
        return _read(minari.load_dataset(name))
    except GoatError as error:
        raise GoatError(f"{PREFIX}{name}: {error}") from None
    except Exception as error:  # metadata of any kind, environments that are not installed, damaged HDF5
        raise GoatError(f"{PREFIX}{name} cannot be read ({type(error).__name__}: {_one_line(error)})") from error


def export(
    episodes: Episodes,
    name: str,
    *,
    goal_threshold: float,
    description: str | None = None,
    author: str | None = None,
    algorithm: str | None = None,
    group: TaskGroup | None = None,
) -> bool:
    """Write a Minari dataset. False: it is there already, with the same content.

    The group says in which environment the data was collected, and in which agents are judged.
    """
    minari, path = _library(), _folder(name)
    checksum = episodes.checksum()
    if path.exists():
        if _same(name, path, checksum, goal_threshold):
            return False
        raise GoatError(f"{path} exists and holds something else; choose another name or version, or `minari delete {name}`")
    about = {
        "dataset_id": name,
        "minari_version": minari.__version__,
        "description": description or f"{episodes.count} episodes of {episodes.horizon} actions with goals, converted by goatrl",
        "author": None if author is None else {author},
        "algorithm_name": algorithm,
        "goal_threshold": goal_threshold,
        "episodes_sha256": checksum,
        "goatrl_version": goatrl.__version__,
        **_environments(group),
    }
    try:
        _check_space(path, episodes)
        # Folders with a dot are invisible to Minari; the dataset gets its name when it is complete.
        with tempfile.TemporaryDirectory(dir=_root(), prefix=".goatrl-") as temporary:
            unfinished = Path(temporary, "dataset")
            unfinished.mkdir()
            _write(episodes, unfinished / "data", goal_threshold, {key: value for key, value in about.items() if value is not None})
            # HDF5 does not report every write that failed.
            if _read(minari.MinariDataset(unfinished / "data")).checksum() != checksum:
                raise OSError(errno.EIO, "what was written does not come back")
            _make_namespace(name)
            os.rename(unfinished, path)
    except (OSError, RuntimeError) as error:  # h5py raises either
        raise WriteError(path, OSError(getattr(error, "errno", None), _one_line(error))) from error
    return True


def describe(group: TaskGroup) -> dict[str, str]:
    """What the dataset that goatrl makes for a task group says about itself: description, author, algorithm."""
    seen = [task.name for task in group.tasks if task.split == "iid"]
    unseen = [task.name for task in group.tasks if task.split != "iid"]
    judged = f"agents are judged on {', '.join(seen + unseen)}"
    if group.collection is None:
        about = f"PointReach {group.label}: a point in the plane walks to goals on the upper half of a circle; {judged}"
        return {"description": about, "author": "goatrl", "algorithm": "a scripted walk"}
    collection = group.collection
    about = f"{group.label}: a robot reaches goals of a seen region ({', '.join(seen)}); {judged}"
    how = f"expert with Gaussian noise of {collection.noise:g} and {collection.random:.0%} random actions"
    return {"description": about, "author": "goatrl", "algorithm": how}


def _library() -> Any:
    """Minari is slow to import, and not on every machine."""
    try:
        import h5py  # noqa: F401
        import minari.namespace
    except ImportError:
        raise GoatError("Minari datasets need the package minari: pip install 'minari[hdf5]'") from None
    return minari


def _root() -> Path:
    from minari.storage import get_dataset_path

    return get_dataset_path()


def _folder(name: str) -> Path:
    """Where Minari keeps a dataset."""
    from minari.dataset.minari_dataset import parse_dataset_id

    try:
        parse_dataset_id(name)
    except (ValueError, TypeError):  # the latter where no version is given
        raise GoatError(f"'{name}' is not a Minari id; write NAMESPACE/NAME-v0") from None
    return _root() / name
