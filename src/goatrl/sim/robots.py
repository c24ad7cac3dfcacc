"""The five robots as MuJoCo models whose dynamics are those of the authors' recordings.

Models, poses and the settling of the arm are gymnasium-robotics' own. Three changes to its Fetch
models bring back the dynamics that the paper's data was recorded with (open-loop replay: 4.3 mm off
without them, 0.0002 mm with them).
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
from functools import cache
from importlib import import_module
from typing import Any

import mujoco
import numpy as np

from goatrl.types import GoatError, unknown

MUJOCO = "3.3.7"  # 3.4 and later collide boxes differently, and no flag undoes it
SUBSTEPS = 20
WORKING_MEMORY = (
    2 << 20
)  # bytes for contacts and constraints: 14 times what was ever used, a seventh of the default

ENVIRONMENTS = {
    "reach": "fetch.reach:MujocoFetchReachEnv",
    "push": "fetch.push:MujocoFetchPushEnv",
    "pick": "fetch.pick_and_place:MujocoFetchPickAndPlaceEnv",
    "slide": "fetch.slide:MujocoFetchSlideEnv",
    "hand": "shadow_dexterous_hand.reach:MujocoHandReachEnv",
}


# Half of a step of MuJoCo goes into distances between parts. These keep centimetres between them
# whatever the arm does: base and table stand still, and shoulder and head only turn on the torso. A
# test turns them all the way round.
NEVER_TOUCH = (
    ("robot0:base_link", "table0"),
    ("robot0:laser_link", "table0"),
    ("robot0:base_link", "robot0:shoulder_pan_link"),
    ("robot0:head_pan_link", "robot0:torso_fixed_link"),
    ("robot0:head_pan_link", "robot0:shoulder_pan_link"),
    ("robot0:head_tilt_link", "robot0:shoulder_pan_link"),
)


@dataclasses.dataclass(frozen=True, eq=False)
class Robot:
    """A model in its initial pose. `environment` is the gymnasium-robotics environment it was taken
    from.
    """

    family: str
    environment: Any
    has_object: bool
    blocked_gripper: (
        bool  # the fingers are held shut; only then are observations taken after a forward pass
    )

    finger_joints = ("robot0:r_gripper_finger_joint", "robot0:l_gripper_finger_joint")
    fingertips = tuple(f"robot0:S_{finger}tip" for finger in ("ff", "mf", "rf", "lf", "th"))

    @property
    def model(self) -> mujoco.MjModel:
        return self.environment.model

    @property
    def start_dim(self) -> int:
        return 2 if self.has_object else 0

    @property
    def finger_slice(self) -> slice:
        """Where the two fingers lie in qpos, side by side."""
        first = min(self.model.joint(name).qposadr[0] for name in self.finger_joints)
        return slice(first, first + 2)

    def reset(self, data: mujoco.MjData, start: np.ndarray) -> None:
        """Put `data` into the initial pose, an object at its start (x, y)."""
        environment = self.environment
        mujoco.mj_resetData(self.model, data)
        data.time = environment.initial_time
        data.qpos[:] = environment.initial_qpos
        data.qvel[:] = environment.initial_qvel
        if self.has_object:
            data.joint("object0:joint").qpos[:2] = start
        mujoco.mj_forward(self.model, data)


@cache
def get(family: str) -> Robot:
    environment = make_environment(family)
    fetch = family != "hand"
    return Robot(
        family, environment, fetch and environment.has_object, fetch and environment.block_gripper
    )


def make_environment(family: str, prune: bool = True) -> Any:
    """The library's environment on a model with our changes, which must be made before the arm is
    settled.

    `prune` spares the simulator the question whether parts touch that never can; no trajectory
    depends on it.
    """
    if family not in ENVIRONMENTS:
        raise unknown("robot", family, ENVIRONMENTS)
    if mujoco.__version__ != MUJOCO:
        raise GoatError(
            f"the tasks need mujoco {MUJOCO}, not {mujoco.__version__}: run `pip install "
            f"mujoco=={MUJOCO}`"
        )
    module, name = ENVIRONMENTS[family].split(":")
    kind = getattr(library(f"envs.{module}"), name)

    class Changed(kind):  # type: ignore[misc, valid-type]
        def _initialize_simulation(self) -> None:
            spec = mujoco.MjSpec.from_file(self.fullpath)
            spec.memory = WORKING_MEMORY
            if family == "push":
                enlarge_table(spec)
            if prune and family != "hand":
                for one, other in NEVER_TOUCH:
                    spec.add_exclude(bodyname1=one, bodyname2=other)
            self.model = spec.compile()
            if family != "hand":
                restore_dynamics(self.model)
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


def enlarge_table(spec: mujoco.MjSpec) -> None:
    """Far objects and goals of Push lie on the table, as in the paper. Its new edge would stand 28
    mm inside the robot's base.
    """
    spec.body("table0").geoms[0].size[:2] = 0.35, 0.35
    for part in ("robot0:base_link", "robot0:laser_link"):
        spec.add_exclude(bodyname1="table0", bodyname2=part)


def restore_dynamics(model: mujoco.MjModel) -> None:
    """The three changes to a Fetch model."""
    gripper = model.body("robot0:gripper_link").id
    # Since MuJoCo 3.0 a weld's rotational rows are weighted by rotational inertia; in the
    # recordings, by translational.
    model.body_invweight0[gripper, 1] = model.body_invweight0[gripper, 0]
    # Later model files limit joints that were free then; the fingers always were limited.
    fingers = [model.joint(name).id for name in Robot.finger_joints]
    model.jnt_limited[np.setdiff1d(np.arange(model.njnt), fingers)] = 0
    # Convex collisions as they were before MuJoCo's own algorithm replaced libccd.
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_NATIVECCD
