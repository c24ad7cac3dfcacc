"""Many robots at once: one MuJoCo state each, stepped by a pool of threads, observed in a few
vectorised operations.

MuJoCo releases the interpreter lock while it steps, so what limits many cores is the Python between
two steps. All arrays of one state lie in one block of memory, at the same offsets in every state of
a model: one indexed read per robot fetches all that an observation is made of, and the arithmetic
runs once for all robots.
"""

from __future__ import annotations

import abc
import ctypes
import dataclasses
import itertools
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import mujoco
import numpy as np

from goatrl.robots.mujoco import View
from goatrl.robots.threads import lower_thread_priority
from goatrl.types import GoatError, require_finite

Wanted = Mapping[
    str, tuple[str, np.ndarray]
]  # name → (array of a state, indices along its first axis)
SECONDS = 0.04  # between two actions; velocities are observed as metres per action
SUBSTEPS = 20


class Memory:
    """Chosen numbers of many states of one model, read or written with one indexed access per
    state.
    """

    def __init__(self, states: Sequence[mujoco.MjData], wanted: Wanted) -> None:
        arrays = sorted(
            {array for array, rows in wanted.values() if rows.size}
        )  # an empty array lies nowhere
        begins = np.array(
            [[getattr(state, array).ctypes.data for array in arrays] for state in states]
        )
        offsets = (begins - begins.min(axis=1, keepdims=True)) // 8
        assert (offsets == offsets[0]).all(), "all states of a model are laid out alike"
        self.columns: dict[str, tuple[slice, tuple[int, ...]]] = {}
        indices: list[np.ndarray] = []
        width = 0
        for name, (array, rows) in wanted.items():
            like = getattr(states[0], array)
            flat = np.arange(like.size).reshape(like.shape)[rows]
            indices.append(flat.ravel() + (offsets[0, arrays.index(array)] if rows.size else 0))
            self.columns[name] = slice(width, width + flat.size), flat.shape
            width += flat.size
        self.indices = np.concatenate(indices)
        block = ctypes.c_double * (int(self.indices.max()) + 1)
        self.blocks = [
            np.ctypeslib.as_array(block.from_address(int(begin))) for begin in begins.min(axis=1)
        ]
        self._owners = states

    def rows(self) -> np.ndarray:
        return np.zeros((len(self.blocks), len(self.indices)))

    def read(self, which: Sequence[int], rows: np.ndarray) -> None:
        """Fetch the numbers of some states into their rows."""
        for each in which:
            self.blocks[each].take(self.indices, out=rows[each], mode="clip")

    def write(self, rows: np.ndarray) -> None:
        for block, row in zip(self.blocks, rows, strict=True):
            block[self.indices] = row

    def named(self, rows: np.ndarray, name: str) -> np.ndarray:
        """The columns of a name, in the shape of their array: (states, …)."""
        columns, shape = self.columns[name]
        return rows[:, columns].reshape(len(rows), *shape)


class Moving:
    """A site whose velocity is observed: the Jacobian of its position times the velocities of the
    joints that carry it.

    Both are taken as they stand after a step. Where no forward pass follows, the Jacobian is one
    substep older than the velocities; the environments observe it so, and MuJoCo's own velocity
    sensors would not.
    """

    def __init__(self, model: mujoco.MjModel, site: str) -> None:
        body = int(model.site(site).bodyid[0])
        self.site = np.array([model.site(site).id])
        self.root = np.array([model.body_rootid[body]])
        degrees: list[int] = []
        while body:
            degrees += range(
                model.body_dofadr[body], model.body_dofadr[body] + model.body_dofnum[body]
            )
            body = int(model.body_parentid[body])
        self.degrees = np.array(sorted(degrees))
        self.name = site

    def wanted(self) -> dict[str, tuple[str, np.ndarray]]:
        return {
            f"{self.name} position": ("site_xpos", self.site),
            f"{self.name} centre": ("subtree_com", self.root),
            f"{self.name} axes": ("cdof", self.degrees),
            f"{self.name} speeds": ("qvel", self.degrees),
        }

    def position(self, memory: Memory, rows: np.ndarray) -> np.ndarray:
        return memory.named(rows, f"{self.name} position")[:, 0]

    def velocity(self, memory: Memory, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Linear and angular, both (states, 3)."""
        speeds = memory.named(rows, f"{self.name} speeds")
        turn, push = np.split(
            np.einsum("nd,ndk->nk", speeds, memory.named(rows, f"{self.name} axes")), 2, axis=1
        )
        arm = self.position(memory, rows) - memory.named(rows, f"{self.name} centre")[:, 0]
        return push + np.cross(turn, arm), turn


Colour = tuple[float, float, float]
RED: Colour = (0.9, 0.1, 0.1)


class Mark(NamedTuple):
    """A sphere in a picture: a goal, or a part of the robot that has one."""

    place: np.ndarray
    radius: float
    colour: Colour
    goal: bool = True


class Robot(abc.ABC):
    """A model in its initial pose: how actions move it, and what is observed of it. `environment`
    is the gymnasium-robotics environment it was taken from.
    """

    wanted: Wanted  # what observations and controls are made of
    controlled: Wanted  # what actions set
    start_dim: int = 0  # numbers that choose where an object starts
    # Where in qpos fingers lie that are held shut after every step. Only then are observations
    # taken after a forward pass.
    held: slice | None = None

    def __init__(self, name: str, environment: Any, view: View) -> None:
        self.name, self.environment, self.view = name, environment, view

    @property
    def model(self) -> mujoco.MjModel:
        return self.environment.model

    def reset(self, data: mujoco.MjData, start: np.ndarray) -> None:
        """Put `data` into the initial pose, an object at its start (x, y)."""
        mujoco.mj_resetData(self.model, data)
        data.time = self.environment.initial_time
        data.qpos[:] = self.environment.initial_qpos
        data.qvel[:] = self.environment.initial_qvel
        self.place(data, start)
        mujoco.mj_forward(self.model, data)

    def place(self, data: mujoco.MjData, start: np.ndarray) -> None:  # noqa: B027
        """Put an object at its start, where there is one."""

    @abc.abstractmethod
    def control(self, memory: Memory, rows: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """What the states' controls become, in the order of `controlled`."""

    @abc.abstractmethod
    def observe(self, memory: Memory, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Observations and achieved goals."""

    @abc.abstractmethod
    def marks(self, state: mujoco.MjData, goal: np.ndarray) -> list[Mark]:
        """What a picture of a state shows of the goal that it is after."""


# States that no simulator uses at the moment. MuJoCo's memory comes back to the system in pieces
# too small to use again: a benchmark that made new states for every evaluation would grow without
# end.
_spare: dict[Robot, list[mujoco.MjData]] = defaultdict(list)


def _take(robot: Robot, count: int) -> list[mujoco.MjData]:
    spare = _spare[robot]
    found = [spare.pop() for _ in range(min(count, len(spare)))]
    return found + [mujoco.MjData(robot.model) for _ in range(count - len(found))]


@dataclasses.dataclass(frozen=True, eq=False)
class Rollout:
    """What some robots did, laid out as in `goatrl.types`: (robots, steps + 1, ·), (robots, steps +
    1, ·), (robots, steps, ·).
    """

    observations: np.ndarray
    achieved: np.ndarray
    actions: np.ndarray


class Simulator:
    """A batch of one robot. Every trajectory is the same whatever the number of threads and of
    companions.
    """

    def __init__(self, robot: Robot, count: int, threads: int | None = None) -> None:
        self.robot = robot
        self.count = count
        self.states = _take(robot, count)
        self._memory = Memory(self.states, robot.wanted)
        self._controls = Memory(self.states, robot.controlled)
        self._rows = self._memory.rows()
        held = robot.held
        self._held = None if held is None else [state.qpos[held] for state in self.states]
        self.threads = min(len(os.sched_getaffinity(0)) if threads is None else threads, count)
        self._pool = (
            ThreadPoolExecutor(self.threads - 1, initializer=lower_thread_priority)
            if self.threads > 1
            else None
        )

    def reset(
        self, starts: np.ndarray, which: Sequence[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Put all robots, or some, into their initial pose with an object at (x, y); observations
        and achieved goals of all.
        """
        chosen = range(self.count) if which is None else which
        starts = np.asarray(starts, np.float64)
        needed = (len(chosen), self.robot.start_dim)
        if starts.shape != needed:
            raise GoatError(
                f"{needed[0]} starts of {self.robot.name} need shape {needed}, not {starts.shape}"
            )
        at = dict(zip(chosen, starts, strict=True))
        self._for_each(lambda each: self.robot.reset(self.states[each], at[each]), chosen)
        return self._observe(chosen)

    def step(
        self, actions: np.ndarray, which: Sequence[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """One action for each robot, (count, action_dim) in [-1, 1]; observations and achieved
        goals of all.

        Robots that are not among `which` rest: they are observed as they were.
        """
        # In float64: an action times 0.05 in float32 leaves the recorded trajectories.
        require_finite(np.asarray(actions), "an action", "robots in MuJoCo")
        actions = np.clip(np.asarray(actions, np.float64), -1.0, 1.0)
        moving = range(self.count) if which is None else which
        self._controls.write(self.robot.control(self._memory, self._rows, actions))
        self._for_each(self._advance, moving)
        return self._observe(moving)

    def rollout(
        self,
        starts: np.ndarray,
        act: Callable[[np.ndarray], np.ndarray],
        steps: int,
        inside: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> Rollout:
        """Reset all robots and let `act` choose their actions from their observations.

        A robot whose achieved goal is not `inside` any more stops where it is, which costs nothing.
        """
        seen, reached = self.reset(starts)
        observations, achieved, actions = [seen], [reached], []
        moving = np.arange(self.count)
        for _ in range(steps):
            action = np.asarray(act(seen))
            if inside is not None:
                moving = moving[inside(reached[moving])]
            seen, reached = self.step(action, moving.tolist())
            observations.append(seen)
            achieved.append(reached)
            actions.append(action)
        return Rollout(*(np.stack(parts, axis=1) for parts in (observations, achieved, actions)))

    def close(self) -> None:
        """End the threads and leave the states to the next simulator of this robot."""
        if self._pool is not None:
            self._pool.shutdown()
        _spare[self.robot].extend(self.states)
        self.states = []

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _advance(self, each: int) -> None:
        model, state = self.robot.model, self.states[each]
        mujoco.mj_step(model, state, SUBSTEPS)
        if self._held is not None:
            self._held[each][:] = 0.0
            mujoco.mj_forward(model, state)

    def _observe(self, which: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        self._memory.read(which, self._rows)
        observations, achieved = self.robot.observe(self._memory, self._rows)
        return observations, achieved.copy()  # the rows change with the next step

    def _for_each(self, work: Callable[[int], None], which: Sequence[int]) -> None:
        """Whoever is free takes the next robot: contacts make some much slower than others."""
        if self._pool is None:
            for each in which:
                work(each)
            return
        turn = itertools.count()

        def help_out() -> None:
            while (place := next(turn)) < len(which):
                work(which[place])

        helpers = [self._pool.submit(help_out) for _ in range(self.threads - 1)]
        help_out()
        for helper in helpers:
            helper.result()
