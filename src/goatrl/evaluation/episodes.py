"""Evaluation: every episode of every member becomes one raw record; nothing is averaged here."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from goatrl.learn import normalize
from goatrl.learn.parameters import stack
from goatrl.sim import point
from goatrl.tasks import Task, TaskGroup, draw_mix
from goatrl.training.offline import Members, act
from goatrl.types import TrainState

SCHEMA = pa.schema(
    [
        ("task", pa.string()),
        ("split", pa.string()),
        ("seed", pa.int64()),
        ("episode", pa.int64()),
        ("success", pa.bool_()),
        ("return", pa.int64()),
        ("final_distance", pa.float32()),
        ("start", pa.list_(pa.float32())),
        ("goal", pa.list_(pa.float32())),
        (
            "path",
            pa.list_(pa.float32()),
        ),  # achieved goals step by step, flattened; only where they are few
    ]
)


OnProgress = Callable[[int, int], None]  # simulated steps, of how many
EPISODE_BYTES = (
    700_000  # memory that one simulated robot really uses; the largest of the five families
)


def trajectories(
    members: Members,
    state: TrainState,
    group: TaskGroup,
    tasks: Sequence[Task],
    on_progress: OnProgress | None = None,
) -> list[np.ndarray]:
    """Achieved goals of all episodes of each task, starts included: (members, episodes, horizon +
    1, goal_dim).
    """
    algorithms = stack([algorithm for algorithm, _ in members])
    drawn = [task.evaluation() for task in tasks]
    if group.family == "point":
        return [
            np.asarray(
                _point_rollouts(
                    algorithms, state, *map(jnp.float32, draw), task.bound, group.spec.horizon
                )
            )
            for task, draw in zip(tasks, drawn, strict=True)
        ]
    starts, goals = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    achieved = _robot_rollouts(algorithms, state, len(members), group, starts, goals, on_progress)
    return np.split(achieved, np.cumsum([task.episodes for task in tasks])[:-1], axis=1)


@partial(jax.jit, static_argnums=(4, 5))
def _point_rollouts(
    algorithms: Any,
    state: TrainState,
    starts: jax.Array,
    goals: jax.Array,
    bound: float,
    horizon: int,
) -> jax.Array:
    def member(algorithm: Any, state: TrainState) -> jax.Array:
        return point.rollout(
            partial(normalize.act, algorithm, state), starts, goals, bound, horizon
        )

    return jax.vmap(member)(algorithms, state)


def _robot_rollouts(
    algorithms: Any,
    state: TrainState,
    members: int,
    group: TaskGroup,
    starts: np.ndarray,
    goals: np.ndarray,
    on_progress: OnProgress | None = None,
) -> np.ndarray:
    """All episodes of all members side by side, in as few batches as memory allows.

    Policies act where the robots are simulated, on the processor: a GPU may be busy with training
    for longer than a step takes.
    """
    from goatrl.sim.mujoco import (
        Simulator,  # it takes a second to load, which PointReach need not pay
    )

    agents = jax.device_put((algorithms, state), jax.devices("cpu")[0])

    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    most = max(1, int(available / 2 / EPISODE_BYTES / members))
    batches = np.array_split(np.arange(len(goals)), -(-len(goals) // most))
    total, done = len(batches) * group.spec.horizon, itertools.count(1)
    parts = []
    for batch in batches:
        aims = np.tile(goals[batch], (members, 1, 1)).astype(np.float32)

        def step(observations: np.ndarray, aims: np.ndarray = aims) -> np.ndarray:
            actions = act(*agents, np.float32(observations).reshape(*aims.shape[:2], -1), aims)
            if on_progress is not None:
                on_progress(next(done), total)
            return np.asarray(actions).reshape(len(observations), -1)

        with Simulator(group.family, members * len(batch)) as simulator:
            taken = simulator.rollout(
                np.tile(starts[batch], (members, 1)), step, group.spec.horizon
            )
        parts.append(
            np.float32(taken.achieved).reshape(members, len(batch), group.spec.horizon + 1, -1)
        )
    return np.concatenate(parts, axis=1)


def success_rate(
    members: Members,
    state: TrainState,
    group: TaskGroup,
    tasks: Sequence[Task],
    seed: Sequence[int],
    episodes: int,
) -> np.ndarray:
    """Each robot agent's share of episodes, drawn by `seed` from a mix of tasks, that end at their
    goal: (members,).
    """
    algorithms = stack([algorithm for algorithm, _ in members])
    starts, goals = draw_mix(tasks, seed, episodes)
    achieved = _robot_rollouts(algorithms, state, len(members), group, starts, goals)
    distance = np.linalg.norm(achieved[:, :, -1] - goals[None], axis=-1)
    return (distance <= group.spec.goal_threshold).mean(axis=1)


def evaluate(
    members: Members,
    state: TrainState,
    group: TaskGroup,
    tasks: Sequence[Task] | None = None,
    on_progress: OnProgress | None = None,
) -> pa.Table:
    """One row per member and episode. Success: the goal is met at the last step. Return: steps at
    which it is met.
    """
    tasks = group.tasks if tasks is None else tasks
    rows: list[dict[str, Any]] = []
    for task, achieved in zip(
        tasks, trajectories(members, state, group, tasks, on_progress), strict=True
    ):
        starts, goals = task.evaluation()
        distance = np.linalg.norm(achieved - goals[None, :, None].astype(np.float32), axis=-1)
        met = distance[:, :, 1:] <= group.spec.goal_threshold
        for member, (_, seed) in enumerate(members):
            for episode in range(task.episodes):
                rows.append(
                    {
                        "task": task.name,
                        "split": task.split,
                        "seed": seed,
                        "episode": episode,
                        "success": bool(met[member, episode, -1]),
                        "return": int(met[member, episode].sum()),
                        "final_distance": float(distance[member, episode, -1]),
                        "start": starts[episode].tolist(),
                        "goal": goals[episode].tolist(),
                        "path": achieved[member, episode].ravel().tolist()
                        if group.family == "point"
                        else None,
                    }
                )
    return pa.Table.from_pylist(rows, schema=SCHEMA)
