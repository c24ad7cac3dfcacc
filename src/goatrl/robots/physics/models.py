"""Models, poses and the settling of an arm, as gymnasium-robotics has them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from importlib import import_module
from typing import Any

import mujoco
import numpy as np

from goatrl.types import GoatError

MUJOCO = "3.3.7"  # 3.4 and later collide boxes differently, and no flag undoes it
WORKING_MEMORY = (
    2 << 20
)  # bytes for contacts and constraints: 14 times what was ever used, a seventh of the default


def make_environment(
    name: str,
    change_spec: Callable[[mujoco.MjSpec], None] | None = None,
    change_model: Callable[[mujoco.MjModel], None] | None = None,
) -> Any:
    """The library's environment ("module:Class") on a changed model. Changes must be made before
    the arm is settled.
    """
    if mujoco.__version__ != MUJOCO:
        raise GoatError(
            f"the tasks need mujoco {MUJOCO}, not {mujoco.__version__}; run `pip install "
            f"mujoco=={MUJOCO}`"
        )
    module, kind = name.split(":")

    class Changed(getattr(library(f"envs.{module}"), kind)):  # type: ignore[misc]
        def _initialize_simulation(self) -> None:
            spec = mujoco.MjSpec.from_file(self.fullpath)
            spec.memory = WORKING_MEMORY
            if change_spec is not None:
                change_spec(spec)
            self.model = spec.compile()
            if change_model is not None:
                change_model(self.model)
            self.data = mujoco.MjData(self.model)
            self._model_names = self._utils.MujocoModelNames(self.model)
            self._env_setup(initial_qpos=self.initial_qpos)  # type: ignore[has-type]
            self.initial_time = self.data.time
            self.initial_qpos = np.copy(self.data.qpos)
            self.initial_qvel = np.copy(self.data.qvel)

    return Changed()


def euler(rotations: np.ndarray) -> np.ndarray:
    """Euler angles of rotation matrices, in the library's convention: (…, 3, 3) → (…, 3)."""
    return library("utils.rotations").mat2euler(rotations)


def library(module: str) -> Any:
    with contextlib.redirect_stderr(io.StringIO()):  # it prints a notice about other environments
        return import_module(f"gymnasium_robotics.{module}")
