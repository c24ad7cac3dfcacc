"""The experts that ship with the package: policies that collect the robots' datasets.

They act in NumPy, in float64, and round their actions: a dataset comes out the same on every
machine, with any number of threads.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import numpy as safetensors
from threadpoolctl import ThreadpoolController

from goatrl.robots import Family
from goatrl.types import GoatError

CLIP = 10.0
DECIMALS = 6


@dataclasses.dataclass(frozen=True, eq=False)
class Expert:
    """A policy network with its input statistics, and the card that says how it came to be."""

    robot: str  # its name
    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    observation: tuple[np.ndarray, np.ndarray]  # mean, standard deviation
    goal: tuple[np.ndarray, np.ndarray]
    card: dict[str, Any]

    def checksum(self) -> str:
        """SHA-256 over all numbers that decide its actions."""
        digest = hashlib.sha256()
        for array in (
            *(part for layer in self.layers for part in layer),
            *self.observation,
            *self.goal,
        ):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def act(self, observations: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """(N, observation_dim), (N, goal_dim) → (N, action_dim) in [-1, 1]."""
        parts = [
            np.clip((x - mean) / std, -CLIP, CLIP)
            for x, (mean, std) in ((observations, self.observation), (goals, self.goal))
        ]
        x = np.concatenate(parts, axis=1)
        with _matrix_library().limit(limits=1):
            for weight, bias in self.layers[:-1]:
                x = np.maximum(x @ weight + bias, 0.0)
            weight, bias = self.layers[-1]
            return np.round(np.tanh(x @ weight + bias), DECIMALS)


@cache
def _matrix_library() -> ThreadpoolController:
    """NumPy's. It is to keep to one thread: others would wait for the next product, busily, on the
    cores that robots need.
    """
    return ThreadpoolController().select(user_api="blas")


@cache
def get(family: Family) -> Expert:
    """The expert of a robot."""
    if family.expert is None:
        raise GoatError(f"{family.name} has no expert; see `goat expert list`")
    try:
        return load(resources.files("goatrl") / "experts", family.name)
    except OSError:
        raise GoatError(
            f"the expert of {family.name} is missing from this installation; reinstall goatrl"
        ) from None


def of_run(folder: Path, family: Family) -> Expert:
    """The expert that `goat expert train` wrote at its end."""
    try:
        return load(folder, family.name)
    except OSError:
        raise GoatError(
            f"{folder} does not contain {family.name}.safetensors and {family.name}.json; `goat "
            f"expert train {family.name}` writes both when it finishes"
        ) from None
    except Exception as error:
        raise GoatError(
            f"the expert in {folder} is damaged ({type(error).__name__}: {error}); train it again"
        ) from error


def load(folder: Traversable, robot: str) -> Expert:
    weights, card = (
        (folder / f"{robot}.safetensors").read_bytes(),
        json.loads((folder / f"{robot}.json").read_text()),
    )
    return from_bytes(robot, weights, card)


def from_bytes(robot: str, weights: bytes, card: dict[str, Any]) -> Expert:
    arrays = {name: array.astype(np.float64) for name, array in safetensors.load(weights).items()}
    depth = sum(name.endswith("/w") for name in arrays)
    layers = tuple(
        (arrays[f"policy/{layer}/w"], arrays[f"policy/{layer}/b"]) for layer in range(depth)
    )
    observation, goal = (
        (arrays[f"{name}/mean"], arrays[f"{name}/std"]) for name in ("observation", "goal")
    )
    return Expert(robot, layers, observation, goal, card)
