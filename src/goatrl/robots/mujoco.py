"""Robots that MuJoCo simulates. The simulator takes a second to load: it is imported on first
use.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Generator, Sequence
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.export
import numpy as np

from goatrl.robots.family import Act, Drawn, Family, OnProgress
from goatrl.robots.workers import Pending, portable, the_same, workers
from goatrl.types import Spec

if TYPE_CHECKING:
    from goatrl.robots.physics.simulator import Robot, Simulator

ROWS = 100  # episodes that a policy sees at once
# Episodes of one piece: a second or two of a core, and 35 MB. With more, cores are idle for longer
# at the end; with fewer, policies act too often for too little.
PIECE = 50
LEAST = 20  # of one piece: fewer take less time than sending them and compiling their policy
LARGEST = 100  # number of episodes that is not worth other processes, which take seconds to start


@dataclasses.dataclass(frozen=True)
class View:
    """What the camera looks at (metres), from how far, and in which direction (degrees)."""

    lookat: tuple[float, float, float]
    distance: float
    azimuth: float
    elevation: float


@dataclasses.dataclass(frozen=True, eq=False)
class SimulatedFamily(Family):
    """A robot that `simulator` simulates, episodes side by side, over all cores."""

    simulated: ClassVar[bool] = True
    records_paths: ClassVar[bool] = False  # they would be most of a record

    def rollouts(
        self,
        act: Act,
        agents: tuple[Any, Any],
        members: int,
        drawn: Sequence[Drawn],
        horizon: int,
        on_progress: OnProgress | None = None,
    ) -> list[np.ndarray]:
        """All episodes in pieces, each of some episodes of one member, over all cores.

        Policies act where the robots are simulated, on the processor: a GPU may be busy with
        training for longer than a step takes. What is soon done, or what no other process could
        import, runs in this one.
        """
        starts = np.concatenate([each.starts for each in drawn])
        goals = np.concatenate([each.goals for each in drawn]).astype(np.float32)
        agents = jax.device_put(agents, jax.devices("cpu")[0])
        alone = [
            jax.tree.map(lambda leaf, m=member: leaf[m : m + 1], agents)
            for member in range(members)
        ]
        elsewhere = members * len(goals) > LARGEST and portable(self)
        share = -(-members * len(goals) // workers().count)  # something for every core
        size = min(PIECE, max(LEAST, share)) if elsewhere else ROWS
        slices = [slice(first, first + size) for first in range(0, len(goals), size)]
        pieces = list(itertools.product(range(members), slices))
        if not elsewhere:
            results: Generator[np.ndarray, None, None] = (
                simulate(self, partial(act, *alone[member]), starts[at], goals[at], horizon)
                for member, at in pieces
            )
        else:
            pool = workers()
            program = pool.share(export(act, alone[0], self.spec))
            leaves = [pool.share(list(map(np.asarray, jax.tree.leaves(each)))) for each in alone]
            futures = [
                pool.submit(
                    simulate_elsewhere,
                    self,
                    program,
                    leaves[member],
                    starts[at],
                    goals[at],
                    horizon,
                )
                for member, at in pieces
            ]
            results = _in_order(futures)
        parts = []
        with contextlib.closing(results):
            for done, part in enumerate(results, start=1):
                parts.append(part)
                if on_progress is not None:
                    on_progress(done, len(pieces))
        achieved = np.concatenate(parts).reshape(members, len(goals), horizon + 1, -1)
        return np.split(achieved, np.cumsum([len(each.goals) for each in drawn])[:-1], axis=1)

    def __getstate__(self) -> dict[str, Any]:
        """Without its model, which every process makes for itself."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


@dataclasses.dataclass(frozen=True, eq=False)
class MujocoFamily(SimulatedFamily):
    """A robot of gymnasium-robotics."""

    environment: str  # module and class of the library's environment: "fetch.push:…"
    view: View

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


def _in_order(futures: Sequence[Pending]) -> Generator[np.ndarray, None, None]:
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def simulate(
    family: SimulatedFamily,
    act: Callable[[np.ndarray, np.ndarray], Any],
    starts: np.ndarray,
    goals: np.ndarray,
    horizon: int,
    threads: int | None = None,
) -> np.ndarray:
    """What one member achieves in some episodes: (episodes, horizon + 1, goal_dim), float32.

    `act` always sees `ROWS` episodes, whether or not there are so many. One program serves all
    pieces, and an episode is the same in whichever piece: matrix products of few rows are compiled
    to round differently.
    """
    count = len(goals)
    seen = np.zeros((1, ROWS, family.spec.observation_dim), np.float32)
    aims = np.zeros((1, ROWS, family.spec.goal_dim), np.float32)
    aims[0, :count] = goals

    def step(observations: np.ndarray) -> np.ndarray:
        seen[0, :count] = observations
        return np.asarray(act(seen, aims))[0, :count]

    with family.simulator(count, threads) as simulator:
        return simulator.rollout(starts, step, horizon).achieved.astype(np.float32)


def export(act: Act, agents: tuple[Any, Any], spec: Spec) -> bytes:
    """The program by which an agent acts, from the leaves of `agents`, as data for any process."""
    leaves, structure = jax.tree.flatten(agents)

    def flat(leaves: list[Any], observations: Any, goals: Any) -> Any:
        algorithms, state = jax.tree.unflatten(structure, leaves)
        return act(algorithms, state, observations, goals)

    inputs: list[Any] = [
        jax.ShapeDtypeStruct((1, ROWS, size), np.float32)  # type: ignore[no-untyped-call]
        for size in (spec.observation_dim, spec.goal_dim)
    ]
    return bytes(jax.export.export(jax.jit(flat), platforms=["cpu"])(leaves, *inputs).serialize())


def simulate_elsewhere(
    family: SimulatedFamily,
    program: bytes,
    leaves: list[np.ndarray],
    starts: np.ndarray,
    goals: np.ndarray,
    horizon: int,
) -> np.ndarray:
    """A piece in a process of its own, which has one core and does nothing else."""
    act = partial(_policy(program), jax.device_put(leaves))
    return simulate(the_same(family), act, starts, goals, horizon, threads=1)


@lru_cache(maxsize=8)
def _policy(program: bytes) -> Callable[..., Any]:
    return jax.jit(jax.export.deserialize(bytearray(program)).call)
