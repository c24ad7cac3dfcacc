"""The Fetch arm with the dynamics of the authors' recordings.

Three changes to gymnasium-robotics' models bring back the dynamics that the paper's data was
recorded with (open-loop replay: 4.3 mm off without them, 0.0002 mm with them).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from goatrl.robots.mujoco import View
from goatrl.robots.physics import models
from goatrl.robots.physics.simulator import (
    RED,
    SECONDS,
    Mark,
    Memory,
    Moving,
    Robot,
    Wanted,
)

FINGER_JOINTS = ("robot0:r_gripper_finger_joint", "robot0:l_gripper_finger_joint")
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
DOWNWARDS = np.array(
    [1.0, 0.0, 1.0, 0.0]
)  # added to the gripper's orientation and not normalised, as the environments do
METRES_PER_ACTION = 0.05
GOAL_RADIUS = 0.02


def make_environment(
    name: str, change: Callable[[mujoco.MjSpec], None] | None, prune: bool = True
) -> Any:
    def change_spec(spec: mujoco.MjSpec) -> None:
        if change is not None:
            change(spec)
        if prune:
            for one, other in NEVER_TOUCH:
                spec.add_exclude(bodyname1=one, bodyname2=other)

    return models.make_environment(name, change_spec, restore_dynamics)


def restore_dynamics(model: mujoco.MjModel) -> None:
    """The three changes."""
    gripper = model.body("robot0:gripper_link").id
    # Since MuJoCo 3.0 a weld's rotational rows are weighted by rotational inertia; in the
    # recordings, by translational.
    model.body_invweight0[gripper, 1] = model.body_invweight0[gripper, 0]
    # Later model files limit joints that were free then; the fingers always were limited.
    fingers = [model.joint(name).id for name in FINGER_JOINTS]
    model.jnt_limited[np.setdiff1d(np.arange(model.njnt), fingers)] = 0
    # Convex collisions as they were before MuJoCo's own algorithm replaced libccd.
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_NATIVECCD


class Fetch(Robot):
    """How actions move the arm, and what is observed of it."""

    def __init__(self, name: str, environment: Any, view: View) -> None:
        super().__init__(name, environment, view)
        model = self.model
        fingers = [model.joint(name) for name in FINGER_JOINTS]
        link = np.array([model.body("robot0:gripper_link").id])
        self.grip = Moving(model, "robot0:grip")
        self.object = Moving(model, "object0") if environment.has_object else None
        if environment.has_object:
            self.start_dim = 2
        if environment.block_gripper:
            first = min(finger.qposadr[0] for finger in fingers)
            self.held = slice(first, first + 2)
        self.wanted: Wanted = {
            "link position": ("xpos", link),
            "link rotation": ("xquat", link),
            "controlled": ("qpos", model.jnt_qposadr[model.actuator_trnid[:, 0]]),
            "fingers": ("qpos", np.array([finger.qposadr[0] for finger in fingers])),
            "finger speeds": ("qvel", np.array([finger.dofadr[0] for finger in fingers])),
            **self.grip.wanted(),
            **(
                {}
                if self.object is None
                else {**self.object.wanted(), "rotation": ("site_xmat", self.object.site)}
            ),
        }
        self.controlled: Wanted = {
            "mocap_pos": ("mocap_pos", np.arange(1)),
            "mocap_quat": ("mocap_quat", np.arange(1)),
            "ctrl": ("ctrl", np.arange(model.nu)),
        }

    def place(self, data: mujoco.MjData, start: np.ndarray) -> None:
        if self.object is not None:
            data.joint("object0:joint").qpos[:2] = start

    def control(self, memory: Memory, rows: np.ndarray, actions: np.ndarray) -> np.ndarray:
        position = memory.named(rows, "link position")[:, 0] + METRES_PER_ACTION * actions[:, :3]
        rotation = memory.named(rows, "link rotation")[:, 0] + DOWNWARDS
        opening = np.zeros((len(actions), 1)) if self.held is not None else actions[:, 3:]
        return np.concatenate(
            [position, rotation, memory.named(rows, "controlled") + opening], axis=1
        )

    def observe(self, memory: Memory, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grip = self.grip.position(memory, rows)
        grip_velocity = self.grip.velocity(memory, rows)[0] * SECONDS
        fingers, finger_speeds = (
            memory.named(rows, "fingers"),
            memory.named(rows, "finger speeds") * SECONDS,
        )
        if self.object is None:
            return np.concatenate([grip, fingers, grip_velocity, finger_speeds], axis=1), grip
        position = self.object.position(memory, rows)
        linear, angular = (part * SECONDS for part in self.object.velocity(memory, rows))
        rotation = models.euler(memory.named(rows, "rotation").reshape(-1, 3, 3))
        parts = [
            grip,
            position,
            position - grip,
            fingers,
            rotation,
            linear - grip_velocity,
            angular,
            grip_velocity,
            finger_speeds,
        ]
        return np.concatenate(parts, axis=1), position

    def marks(self, state: mujoco.MjData, goal: np.ndarray) -> list[Mark]:
        return [Mark(np.asarray(goal), GOAL_RADIUS, RED)]
