"""Robots that MuJoCo simulates. The simulator takes a second to load: it is imported on first
use.
"""

from __future__ import annotations

import abc
import dataclasses
import itertools
import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import numpy as np

from goatrl.robots.family import Act, Drawn, Family, OnProgress

if TYPE_CHECKING:
    from goatrl.robots.physics.simulator import Robot, Simulator

EPISODE_BYTES = (
    700_000  # memory that one simulated robot really uses; the largest of the five families
)


@dataclasses.dataclass(frozen=True)
class View:
    """What the camera looks at (metres), from how far, and in which direction (degrees)."""

    lookat: tuple[float, float, float]
    distance: float
    azimuth: float
    elevation: float


@dataclasses.dataclass(frozen=True, eq=False)
class MujocoFamily(Family):
    """A robot of gymnasium-robotics."""

    environment: str  # module and class of the library's environment: "fetch.push:…"
    view: View

    simulated: ClassVar[bool] = True
    records_paths: ClassVar[bool] = False  # they would be most of a record

    @abc.abstractmethod
    def make_environment(self, prune: bool = True) -> Any:
        """The library's environment on the model that we simulate.

        `prune` spares the simulator the question whether parts touch that never can; no trajectory
        depends on it.
        """

    @abc.abstractmethod
    def make_robot(self) -> Robot:
        """It, in its initial pose."""

    @cached_property
    def robot(self) -> Robot:
        return self.make_robot()

    def simulator(self, count: int, threads: int | None = None) -> Simulator:
        from goatrl.robots.physics.simulator import Simulator

        return Simulator(self.robot, count, threads)

    def rollouts(
        self,
        act: Act,
        agents: tuple[Any, Any],
        members: int,
        drawn: Sequence[Drawn],
        horizon: int,
        on_progress: OnProgress | None = None,
    ) -> list[np.ndarray]:
        """All episodes of all members side by side, in as few batches as memory allows.

        Policies act where the robots are simulated, on the processor: a GPU may be busy with
        training for longer than a step takes.
        """
        agents = jax.device_put(agents, jax.devices("cpu")[0])
        starts = np.concatenate([each.starts for each in drawn])
        goals = np.concatenate([each.goals for each in drawn])
        available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        most = max(1, int(available / 2 / EPISODE_BYTES / members))
        batches = np.array_split(np.arange(len(goals)), -(-len(goals) // most))
        total, done = len(batches) * horizon, itertools.count(1)
        parts = []
        for batch in batches:
            aims = np.tile(goals[batch], (members, 1, 1)).astype(np.float32)

            def step(observations: np.ndarray, aims: np.ndarray = aims) -> np.ndarray:
                actions = act(*agents, np.float32(observations).reshape(*aims.shape[:2], -1), aims)
                if on_progress is not None:
                    on_progress(next(done), total)
                return np.asarray(actions).reshape(len(observations), -1)

            with self.simulator(members * len(batch)) as simulator:
                taken = simulator.rollout(np.tile(starts[batch], (members, 1)), step, horizon)
            parts.append(np.float32(taken.achieved).reshape(members, len(batch), horizon + 1, -1))
        achieved = np.concatenate(parts, axis=1)
        return np.split(achieved, np.cumsum([len(each.goals) for each in drawn])[:-1], axis=1)
