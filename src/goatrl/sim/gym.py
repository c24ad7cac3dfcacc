"""The robots' tasks as Gymnasium environments: gymnasium.make("goatrl/PushRight2Left-v0"), once
goatrl is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium.spaces import Box, Dict

from goatrl import tasks
from goatrl.robots.physics import models
from goatrl.robots.physics.camera import Camera
from goatrl.robots.physics.simulator import SECONDS
from goatrl.types import GoatError, reached, unknown

GoalEnv: Any = models.library("core").GoalEnv
PICTURE_SIZE = 480
Observation = dict[str, np.ndarray]


class RobotTask(GoalEnv):  # type: ignore[misc]
    """One robot on one task: a simulator with a single member, so that there is one physics.

    The reward is 1 at every step whose achieved goal is within the group's threshold, otherwise 0.
    Their sum is the return of the tables. Nothing ends an episode but its length.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": ["rgb_array"],
        "render_fps": round(1 / SECONDS),
    }

    def __init__(self, group: str, task: str, render_mode: str | None = None) -> None:
        self.group = tasks.get(group)
        self.task = self.group.task(task)
        self.render_mode = render_mode
        spec = self.group.spec
        sizes = {
            "observation": spec.observation_dim,
            "achieved_goal": spec.goal_dim,
            "desired_goal": spec.goal_dim,
        }
        self.observation_space = Dict(
            {name: Box(-np.inf, np.inf, (size,), np.float64) for name, size in sizes.items()}
        )
        self.action_space = Box(-1.0, 1.0, (spec.action_dim,), np.float32)
        self._simulator = self.group.family.simulator(count=1, threads=1)
        self._goal = np.zeros(spec.goal_dim)
        self._camera: Camera | None = None

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Draw start and goal from the task's regions, or take either from `options`: {"start": …,
        "goal": …}.
        """
        super().reset(seed=seed)
        given = {} if options is None else dict(options)
        # Both are always drawn: a seed's goal is the same whether its start is replaced or not.
        start = self.task.start.sample(self.np_random, 1)[0]
        goal = self.task.goal.sample(self.np_random, 1)[0]
        if "start" in given:
            if not self._simulator.robot.start_dim:
                raise GoatError(
                    f"{self.group.label} has no object to place and always starts in the same "
                    "pose; omit the start"
                )
            start = numbers(given.pop("start"), len(start), "a start")
        if "goal" in given:
            goal = numbers(given.pop("goal"), len(goal), "a goal")
        for name in given:
            raise unknown("option", str(name), ("start", "goal"))
        self._goal = goal
        observations, achieved = self._simulator.reset(start[None])
        return self._observation(observations, achieved), {}

    def step(self, action: np.ndarray) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        observations, achieved = self._simulator.step(
            numbers(action, self.group.spec.action_dim, "an action")[None]
        )
        reward = float(self.compute_reward(achieved[0], self._goal))
        return (
            self._observation(observations, achieved),
            reward,
            False,
            False,
            {"is_success": reward == 1.0},
        )

    def compute_reward(
        self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: Any = None
    ) -> np.ndarray:
        """1 where the goal is met, otherwise 0: (…, goal_dim), (…, goal_dim) → (…)."""
        met = reached(
            np.asarray(achieved_goal), np.asarray(desired_goal), self.group.spec.goal_threshold
        )
        return np.asarray(met, np.float64)

    def compute_terminated(
        self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: Any = None
    ) -> bool:
        return False

    def compute_truncated(
        self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: Any = None
    ) -> bool:
        return False

    def render(self) -> np.ndarray | None:
        if self.render_mode is None:
            return None
        if self._camera is None:
            self._camera = Camera(self._simulator.robot, PICTURE_SIZE)
        return self._camera.draw(self._simulator.states[0], self._goal)

    def close(self) -> None:
        self._simulator.close()
        if self._camera is not None:
            self._camera.close()
            self._camera = None

    def _observation(self, observations: np.ndarray, achieved: np.ndarray) -> Observation:
        return {
            "observation": observations[0],
            "achieved_goal": achieved[0],
            "desired_goal": self._goal.copy(),
        }


def numbers(value: Any, size: int, what: str) -> np.ndarray:
    """A vector from outside, checked."""
    try:
        vector = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise GoatError(f"{what} must have {size} numbers, not {value!r}") from None
    if vector.shape != (size,):
        raise GoatError(f"{what} must have {size} numbers, not shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise GoatError(f"{what} must have {size} finite numbers, not {vector.tolist()}")
    return vector
