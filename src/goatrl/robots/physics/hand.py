"""The Shadow Hand."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from goatrl.robots.mujoco import View
from goatrl.robots.physics.simulator import RED, Colour, Mark, Memory, Robot, Wanted

FINGERTIPS = tuple(f"robot0:S_{finger}tip" for finger in ("ff", "mf", "rf", "lf", "th"))
COLOURS: tuple[Colour, ...] = (
    RED,
    (0.1, 0.7, 0.1),
    (0.1, 0.3, 1.0),
    (0.9, 0.8, 0.0),
    (0.9, 0.1, 0.9),
)
FINGERTIP_RADIUS = 0.005


class Hand(Robot):
    """How actions move the fingers, and what is observed of them."""

    def __init__(self, name: str, environment: Any, view: View) -> None:
        super().__init__(name, environment, view)
        model = self.model
        low, high = model.actuator_ctrlrange.T
        self.centre, self.reach, self.low, self.high = (high + low) / 2, (high - low) / 2, low, high
        self.wanted: Wanted = {
            "joints": ("qpos", np.arange(model.nq)),
            "speeds": ("qvel", np.arange(model.nv)),
            "tips": ("site_xpos", np.array([model.site(name).id for name in FINGERTIPS])),
        }
        self.controlled: Wanted = {"ctrl": ("ctrl", np.arange(model.nu))}

    def control(self, memory: Memory, rows: np.ndarray, actions: np.ndarray) -> np.ndarray:
        return np.clip(self.centre + actions * self.reach, self.low, self.high)

    def observe(self, memory: Memory, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tips = memory.named(rows, "tips").reshape(len(rows), -1)
        return np.concatenate(
            [memory.named(rows, "joints"), memory.named(rows, "speeds"), tips], axis=1
        ), tips

    def marks(self, state: mujoco.MjData, goal: np.ndarray) -> list[Mark]:
        """Each fingertip in the colour of where it should be."""
        found = []
        for colour, place, finger in zip(
            COLOURS, np.reshape(goal, (5, 3)), FINGERTIPS, strict=True
        ):
            found.append(Mark(place, FINGERTIP_RADIUS, colour))
            found.append(Mark(state.site(finger).xpos, 2 * FINGERTIP_RADIUS, colour, goal=False))
        return found
