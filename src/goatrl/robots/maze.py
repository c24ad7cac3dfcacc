"""A point in a maze of OGBench, moved by OGBench's own environment."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from goatrl.disk.files import remove
from goatrl.robots.ogbench import Copies, OgbenchFamily, missing
from goatrl.types import Layout, Spec


@dataclasses.dataclass(frozen=True, eq=False)
class MazeFamily(OgbenchFamily):
    """A point. It starts at a place, which is also what it sees and achieves."""

    maze: str  # as OGBench names it

    @cached_property
    def world(self) -> Any:
        return make_world(self.maze)

    def initial(self, starts: np.ndarray) -> np.ndarray:
        return starts

    def simulator(self, count: int, threads: int | None = None) -> Any:
        return Points(self.world, count)


def make_world(maze: str) -> Any:
    """OGBench's environment of a maze; its episodes do not end by themselves."""
    try:
        from ogbench.locomaze.maze import make_maze_env
    except ImportError:
        raise missing("mazes need") from None
    world = make_maze_env("point", "maze", maze_type=maze, terminate_at_goal=False)
    remove(Path(world.fullpath))  # its model, which it has read
    return world


class Points(Copies):
    """Points in one maze."""

    def place(self, state: Any, start: np.ndarray) -> np.ndarray:
        self.world.data = state
        self.world.set_state(start, np.zeros(2))
        return np.array(state.qpos)

    def move(self, state: Any, action: np.ndarray) -> np.ndarray:
        self.world.data = state
        self.world.step(action)
        return np.array(state.qpos)

    def achieved(self, observations: np.ndarray) -> np.ndarray:
        return observations


MEDIUM = MazeFamily(
    "pointmaze-medium",
    Spec(observation_dim=2, goal_dim=2, action_dim=2, horizon=1_000, goal_threshold=1.0),
    "medium",
    physics="ogbench 1.2.1",
    layout=Layout((0, 1), vertical=()),
)
