"""Training states on disk: safetensors, one file, written atomically, restored bit for bit. No
pickle.
"""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import safetensors
from safetensors.numpy import save as to_bytes

from goatrl.disk import checksum
from goatrl.disk.files import write_atomically
from goatrl.disk.reading import json_of, unusable
from goatrl.types import GoatError

AGAIN = "; delete it and rerun the command that made it"


class DoesNotFit(GoatError):
    """A file of other agents than those that are asked for."""


def _named_leaves(state: Any) -> dict[str, Any]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(state)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in leaves}


def save(path: Path, state: Any, about: dict[str, Any]) -> None:
    arrays = {name: np.asarray(leaf) for name, leaf in _named_leaves(state).items()}
    metadata = {"goatrl": json.dumps(checksum.with_place(about))}
    write_atomically(path, checksum.sealed(to_bytes(arrays, metadata=metadata)))


def describe(path: Path) -> dict[str, Any]:
    """What `save` was told about the state."""
    with _open(path) as file:
        metadata = file.metadata() or {}
    if "goatrl" not in metadata:
        raise GoatError(f"{path} is damaged or not a checkpoint (it has no metadata){AGAIN}")
    try:
        return checksum.without_place(json_of(metadata["goatrl"]))
    except ValueError as error:
        raise GoatError(f"{path} is damaged or not a checkpoint ({error}){AGAIN}") from None


def number(path: Path, name: str) -> float:
    """One of the numbers that `save` was told about the state."""
    found = describe(path).get(name)
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        raise GoatError(f"{path} is damaged or not a checkpoint of a run (it has no {name}){AGAIN}")
    return found


def restore(path: Path, like: Any, part: str = "") -> Any:
    """The state in `path`, or one part of it; `like` has the structure, shapes and types that it
    must have.
    """
    inside = f"{part}/" if part else ""
    wanted = {inside + name: leaf for name, leaf in _named_leaves(like).items()}
    with _open(path) as file:
        names = file.keys()
        found = {name for name in names if name.startswith(inside)}
        for name, leaf in wanted.items():
            shape = tuple(file.get_slice(name).get_shape()) if name in found else None
            if shape != tuple(leaf.shape):
                raise DoesNotFit(
                    f"{path} does not fit: {name} has shape {shape or 'none'}, but this dataset "
                    "and algorithm need "
                    f"{tuple(leaf.shape)}; use the algorithm, dataset and seeds that it was "
                    "trained with"
                )
        if found != set(wanted):
            raise DoesNotFit(
                f"{path} does not fit: it contains {sorted(found - set(wanted))[0]}, which this "
                "algorithm does not have; use the algorithm that it was trained with"
            )
        tensors = {name: file.get_tensor(name) for name in wanted}
    for name, array in tensors.items():
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise GoatError(f"{path} is damaged: {name} holds numbers that are none (NaN){AGAIN}")
    # What lives on the host stays there, with its own precision.
    arrays = [
        tensors[name] if isinstance(leaf, np.ndarray) else jnp.asarray(tensors[name])
        for name, leaf in wanted.items()
    ]
    return jax.tree.unflatten(jax.tree.structure(like), arrays)


def _open(path: Path) -> Any:
    if not path.is_file():
        raise GoatError(f"no checkpoint at {path}; rerun the command that makes it")
    try:
        with path.open("rb"):  # what the library says of one that may not be read has no number
            opened = safetensors.safe_open(path, framework="numpy")
        status = path.stat()
        intact = _is_intact(path, status.st_ino, status.st_mtime_ns, status.st_size)
    except (safetensors.SafetensorError, OSError) as error:
        raise unusable(
            path, error, f"{path} is damaged or not a checkpoint ({error}){AGAIN}"
        ) from error
    if not intact:
        raise GoatError(f"{path} has changed since it was written (its checksum differs){AGAIN}")
    return opened


@functools.lru_cache(maxsize=64)
def _is_intact(path: Path, *version: int) -> bool:
    """Once for each version of a file: what describes it is asked for again and again."""
    with path.open("rb") as file:
        return checksum.is_intact(file)
