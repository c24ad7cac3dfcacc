"""Many robots at once: one MuJoCo state each, stepped by a pool of threads, observed in a few
vectorised operations.

MuJoCo releases the interpreter lock while it steps, so what limits many cores is the Python between
two steps. All arrays of one state lie in one block of memory, at the same offsets in every state of
a model: one indexed read per robot fetches all that an observation is made of, and the arithmetic
runs once for all robots.
"""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import mujoco
import numpy as np

from goatrl.sim import robots
from goatrl.sim.robots import SUBSTEPS, Robot
from goatrl.sim.threads import step_aside
from goatrl.types import GoatError

Wanted = Mapping[
    str, tuple[str, np.ndarray]
]  # name → (array of a state, indices along its first axis)
SECONDS = 0.04  # between two actions; velocities are observed as metres per action
DOWNWARDS = np.array(
    [1.0, 0.0, 1.0, 0.0]
)  # added to the gripper's orientation and not normalised, as the environments do
METRES_PER_ACTION = 0.05


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


class Fetch:
    """How actions move the arm, and what is observed of it."""

    def __init__(self, robot: Robot) -> None:
        model = robot.model
        fingers = [model.joint(name) for name in robot.finger_joints]
        link = np.array([model.body("robot0:gripper_link").id])
        self.blocked = robot.blocked_gripper
        self.grip = Moving(model, "robot0:grip")
        self.object = Moving(model, "object0") if robot.has_object else None
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

    def control(self, memory: Memory, rows: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """What the states' controls become, in the order of `controlled`."""
        position = memory.named(rows, "link position")[:, 0] + METRES_PER_ACTION * actions[:, :3]
        rotation = memory.named(rows, "link rotation")[:, 0] + DOWNWARDS
        opening = np.zeros((len(actions), 1)) if self.blocked else actions[:, 3:]
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
        rotation = robots.euler(memory.named(rows, "rotation").reshape(-1, 3, 3))
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


class Hand:
    """How actions move the fingers, and what is observed of them."""

    def __init__(self, robot: Robot) -> None:
        model = robot.model
        low, high = model.actuator_ctrlrange.T
        self.centre, self.reach, self.low, self.high = (high + low) / 2, (high - low) / 2, low, high
        self.wanted: Wanted = {
            "joints": ("qpos", np.arange(model.nq)),
            "speeds": ("qvel", np.arange(model.nv)),
            "tips": ("site_xpos", np.array([model.site(name).id for name in robot.fingertips])),
        }
        self.controlled: Wanted = {"ctrl": ("ctrl", np.arange(model.nu))}

    def control(self, memory: Memory, rows: np.ndarray, actions: np.ndarray) -> np.ndarray:
        return np.clip(self.centre + actions * self.reach, self.low, self.high)

    def observe(self, memory: Memory, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tips = memory.named(rows, "tips").reshape(len(rows), -1)
        return np.concatenate(
            [memory.named(rows, "joints"), memory.named(rows, "speeds"), tips], axis=1
        ), tips


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

    def __init__(self, family: str, count: int, threads: int | None = None) -> None:
        self.robot = robots.get(family)
        self.count = count
        self.states = _take(self.robot, count)
        self._kind = Hand(self.robot) if family == "hand" else Fetch(self.robot)
        self._memory = Memory(self.states, self._kind.wanted)
        self._controls = Memory(self.states, self._kind.controlled)
        self._rows = self._memory.rows()
        self._fingers = (
            [state.qpos[self.robot.finger_slice] for state in self.states]
            if self.robot.blocked_gripper
            else None
        )
        self.threads = min(len(os.sched_getaffinity(0)) if threads is None else threads, count)
        self._pool = (
            ThreadPoolExecutor(self.threads - 1, initializer=step_aside)
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
                f"{needed[0]} starts of {self.robot.family} have shape {needed}, not {starts.shape}"
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
        actions = np.clip(np.asarray(actions, np.float64), -1.0, 1.0)
        moving = range(self.count) if which is None else which
        self._controls.write(self._kind.control(self._memory, self._rows, actions))
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
        if self._fingers is not None:
            self._fingers[each][:] = 0.0
            mujoco.mj_forward(model, state)

    def _observe(self, which: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        self._memory.read(which, self._rows)
        observations, achieved = self._kind.observe(self._memory, self._rows)
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
