"""A point in a maze of OGBench, moved by OGBench's own environment.

An episode ends when its goal is first reached, as in OGBench's evaluation: what is achieved then
stays so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from goatrl.disk.files import remove
from goatrl.robots.family import Act, Drawn, OnProgress
from goatrl.robots.mujoco import SimulatedFamily
from goatrl.types import GoatError, Layout, Spec, reached


class Taken(NamedTuple):
    """Some episodes side by side."""

    observations: np.ndarray  # (N, T+1, 2)
    achieved: np.ndarray  # (N, T+1, 2)
    actions: np.ndarray  # (N, T, 2)


@dataclasses.dataclass(frozen=True, eq=False)
class MazeFamily(SimulatedFamily):
    """A point. It starts at a place, which is also what it sees and achieves."""

    maze: str  # as OGBench names it

    @cached_property
    def world(self) -> Any:
        return make_world(self.maze)

    def initial(self, starts: np.ndarray) -> np.ndarray:
        return starts

    def simulator(self, count: int, threads: int | None = None) -> Any:
        return Points(self.world, count)

    def rollouts(
        self,
        act: Act,
        agents: tuple[Any, Any],
        members: int,
        drawn: Sequence[Drawn],
        horizon: int,
        on_progress: OnProgress | None = None,
    ) -> list[np.ndarray]:
        found = super().rollouts(act, agents, members, drawn, horizon, on_progress)
        return [
            held_at_goal(achieved, each.goals.astype(np.float32), self.spec.goal_threshold)
            for achieved, each in zip(found, drawn, strict=True)
        ]


def held_at_goal(achieved: np.ndarray, goals: np.ndarray, threshold: float) -> np.ndarray:
    """Paths that stay where they first reach their goal after a step: (members, N, T+1, ·), (N, ·)
    → (members, N, T+1, ·).
    """
    met = reached(achieved, goals[None, :, None], threshold)
    met[:, :, 0] = False  # success is asked after an action
    first = np.where(met.any(axis=-1), met.argmax(axis=-1), achieved.shape[2] - 1)
    steps = np.minimum(np.arange(achieved.shape[2]), first[..., None])
    return np.take_along_axis(achieved, steps[..., None], axis=2)


def make_world(maze: str) -> Any:
    """OGBench's environment of a maze; its episodes do not end by themselves."""
    try:
        from ogbench.locomaze.maze import make_maze_env
    except ImportError:
        raise GoatError(
            "mazes need the package ogbench: run `pip install 'goatrl[ogbench]'`"
        ) from None
    world = make_maze_env("point", "maze", maze_type=maze, terminate_at_goal=False)
    remove(Path(world.fullpath))  # its model, which it has read
    return world


class Points:
    """Points in one maze that do not meet: one environment, which moves one state after the
    other.
    """

    def __init__(self, world: Any, count: int) -> None:
        import mujoco

        self.world = world
        self.states = [mujoco.MjData(world.model) for _ in range(count)]

    def reset(self, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What is seen and achieved at the start: (N, 2) each."""
        for state, start in zip(self.states, starts, strict=True):
            self.world.data = state
            self.world.set_state(np.asarray(start, np.float64), np.zeros(2))
        return self._places()

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        for state, action in zip(self.states, np.clip(actions, -1.0, 1.0), strict=True):
            self.world.data = state
            self.world.step(action)
        return self._places()

    def rollout(
        self, starts: np.ndarray, act: Callable[[np.ndarray], np.ndarray], steps: int
    ) -> Taken:
        """Reset all points and let `act` choose their actions from what they see."""
        places, actions = [self.reset(starts)[0]], []
        for _ in range(steps):
            actions.append(act(places[-1]))
            places.append(self.step(actions[-1])[0])
        seen = np.stack(places, axis=1)
        return Taken(seen, seen, np.stack(actions, axis=1))

    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        places = np.stack([state.qpos for state in self.states])
        return places, places

    def __enter__(self) -> Points:
        return self

    def __exit__(self, *_: object) -> None:
        pass


MEDIUM = MazeFamily(
    "pointmaze-medium",
    Spec(observation_dim=2, goal_dim=2, action_dim=2, horizon=1_000, goal_threshold=1.0),
    "medium",
    physics="ogbench 1.2.1",
    layout=Layout((0, 1)),
)
