"""Evaluation: every episode of every member becomes one raw record; nothing is averaged here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from goatrl.learn.networks import policy_action
from goatrl.learn.parameters import stack
from goatrl.sim import point
from goatrl.tasks import Task, TaskGroup
from goatrl.train import Members
from goatrl.types import GoatError, TrainState

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
        ("path", pa.list_(pa.float32())),  # achieved goals step by step, flattened; only where they are few
    ]
)


def trajectories(members: Members, state: TrainState, group: TaskGroup, task: Task) -> np.ndarray:
    """Achieved goals of all episodes, starts included: (members, episodes, horizon + 1, goal_dim)."""
    starts, goals = jnp.asarray(task.starts, jnp.float32), jnp.asarray(task.goals, jnp.float32)
    algorithms = stack([algorithm for algorithm, _ in members])
    return np.asarray(_point_rollouts(algorithms, state, starts, goals, task.bound, group.spec.horizon))


@partial(jax.jit, static_argnums=(4, 5))
def _point_rollouts(
    algorithms: Any, state: TrainState, starts: jax.Array, goals: jax.Array, bound: float, horizon: int
) -> jax.Array:
    def member(algorithm: Any, state: TrainState) -> jax.Array:
        return point.rollout(partial(algorithm.act, state), starts, goals, bound, horizon)

    return jax.vmap(member)(algorithms, state)


def evaluate(members: Members, state: TrainState, group: TaskGroup, tasks: Sequence[Task] | None = None) -> pa.Table:
    """One row per member and episode. Success: the goal is met at the last step. Return: steps at which it is met."""
    rows: list[dict[str, Any]] = []
    for task in group.tasks if tasks is None else tasks:
        achieved = trajectories(members, state, group, task)
        distance = np.linalg.norm(achieved - task.goals[None, :, None].astype(np.float32), axis=-1)
        met = distance[:, :, 1:] <= group.spec.goal_threshold
        for member, (_, seed) in enumerate(members):
            for episode in range(len(task.goals)):
                rows.append(
                    {
                        "task": task.name,
                        "split": task.split,
                        "seed": seed,
                        "episode": episode,
                        "success": bool(met[member, episode, -1]),
                        "return": int(met[member, episode].sum()),
                        "final_distance": float(distance[member, episode, -1]),
                        "start": task.starts[episode].tolist(),
                        "goal": task.goals[episode].tolist(),
                        "path": achieved[member, episode].ravel().tolist() if group.family == "point" else None,
                    }
                )
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def value_spread(algorithm: Any, state: TrainState, goals: np.ndarray) -> np.ndarray:
    """Std(s_0, g) of an agent's value ensemble from the origin, for each goal: (G, goal_dim) → (G,)."""
    value: Any = getattr(algorithm, "value", None)
    if getattr(value, "size", 1) < 2:
        raise GoatError("this agent has no ensemble of values; train one that has, such as goat")
    goal = state.normalizer.goal(jnp.asarray(goals, jnp.float32))
    start = state.normalizer.observation(jnp.zeros((len(goals), state.normalizer.observation_mean.shape[0])))
    values = value.values(state.params["value"], start, goal, policy_action(state.params["policy"], start, goal))
    return np.asarray(jnp.std(values, axis=0))
