"""A robot arm and a cube, OGBench's cube-single, moved by OGBench's own environment.

start          0 1 2  place of the gripper     4 5  of the cube
               3      its yaw                  6    its yaw

observation    0 …  5  angles of the joints    17        opening of the gripper
               6 … 11  their velocities        18        its contact
              12 … 14  place of the gripper    19 … 21   place of the cube, which is achieved
              15   16  its yaw, cos and sin    22 … 25   its quaternion
                                               26   27   its yaw, cos and sin

Starts are in metres and radians. What is seen of places, and goals, are (xyz − (0.425, 0, 0)) · 10.
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from goatrl.robots.ogbench import Copies, OgbenchFamily, Taken, missing
from goatrl.types import Layout, Spec

CENTRE = (0.425, 0.0, 0.0)
SCALE = 10.0
HEIGHT = 0.02  # of a cube's middle that stands on the table
CUBE = (19, 20, 21)  # columns of an observation
GRIPPER = (12, 13, 14)


def seen(places: np.ndarray) -> np.ndarray:
    """Places in metres as observations and goals have them: (…, 3) → (…, 3)."""
    return (np.asarray(places, np.float64) - np.array(CENTRE)) * SCALE


@dataclasses.dataclass(frozen=True, eq=False)
class CubeFamily(OgbenchFamily):
    """An arm with a gripper, and a cube on a table. What is achieved is the cube's place."""

    @cached_property
    def world(self) -> Any:
        return make_world()

    def initial(self, starts: np.ndarray) -> np.ndarray:
        return seen(np.insert(starts[:, 4:6], 2, HEIGHT, axis=1))

    def simulator(self, count: int, threads: int | None = None) -> Any:
        return Cubes(self.world, count)


def make_world() -> Any:
    """OGBench's environment as its data is collected in: an episode starts as in its tasks, and
    does not end by itself.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there is no display, which nothing here needs
            from ogbench.manipspace.envs.cube_env import CubeEnv
    except ImportError:
        raise missing("the cube needs") from None
    world = CubeEnv("single", mode="data_collection", terminate_at_goal=False)
    world.reset()  # builds its model
    return world


class Cubes(Copies):
    """Arms, each with a cube of its own."""

    def place(self, state: Any, start: np.ndarray) -> np.ndarray:
        self.world._data = state
        self.world.np_random = Given(start)
        return np.asarray(self.world.reset()[0])

    def move(self, state: Any, action: np.ndarray) -> np.ndarray:
        self.world._data = state
        return np.asarray(self.world.step(action)[0])

    def achieved(self, observations: np.ndarray) -> np.ndarray:
        return observations[..., list(CUBE)]


class Given:
    """Stands in for the environment's generator: an episode starts as given instead of drawn.

    The environment asks in this order. What it draws last is a target that only data needs.
    """

    def __init__(self, start: np.ndarray) -> None:
        self._numbers = iter((start[:3], start[3], start[4:6], start[6], CENTRE[:2], 0.0))

    def uniform(self, low: Any, high: Any) -> Any:
        return next(self._numbers)

    def choice(self, options: list[int]) -> int:
        return options[0]  # the cube to be moved: there is one


def play(
    world: Any,
    generator: np.random.Generator,
    episodes: int,
    steps: int,
    noise: float,
    smoothing: float,
) -> Taken:
    """Episodes in which OGBench's oracle carries the cube to one random place after the other, by
    plans with noise.
    """
    import mujoco
    from ogbench.manipspace.oracles.plan.cube_plan import CubePlanOracle

    world._data = mujoco.MjData(world.model)  # a state of its own
    world.np_random = generator
    oracle = CubePlanOracle(env=world, noise=noise, noise_smoothing=smoothing)
    observations = np.empty((episodes, steps + 1, SINGLE.spec.observation_dim))
    actions = np.empty((episodes, steps, SINGLE.spec.action_dim))
    with drawing_from(generator):
        for episode in range(episodes):
            observations[episode, 0], info = world.reset()
            oracle.reset(observations[episode, 0], info)
            for step in range(steps):
                action = np.clip(oracle.select_action(observations[episode, step], info), -1.0, 1.0)
                actions[episode, step] = action
                observations[episode, step + 1], *_, info = world.step(action)
                if oracle.done:
                    oracle.reset(*world.set_new_target())
    return Taken(observations, observations[..., list(CUBE)], actions)


@contextlib.contextmanager
def drawing_from(generator: np.random.Generator) -> Iterator[None]:
    """Meanwhile NumPy's global numbers, which OGBench's oracle draws, follow from the generator.
    Afterwards they go on as if nothing had been drawn.
    """
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(generator.integers(2**32, size=4, dtype=np.uint32))  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


SINGLE = CubeFamily(
    "cube-single",
    Spec(observation_dim=28, goal_dim=3, action_dim=5, horizon=200, goal_threshold=0.4),
    physics="ogbench 1.2.1",
    layout=Layout(CUBE, GRIPPER, vertical=(2,)),
)
