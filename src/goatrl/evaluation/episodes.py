"""Evaluation: every episode of every member becomes one raw record; nothing is averaged here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from goatrl.learn.parameters import stack
from goatrl.robots.family import Drawn, OnProgress
from goatrl.tasks import Task, TaskGroup, draw_mix
from goatrl.training.offline import Members, act, prune_to_policy
from goatrl.types import Algorithm, TrainState, distance, reached, require_finite

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

UNKNOWN = ("split", "path")  # what may be missing in a row


def as_episodes(table: pa.Table) -> pa.Table:
    """Rows that a file holds, if they are episodes; anything else is a ValueError."""
    for field in SCHEMA:
        if field.name not in table.column_names:
            raise ValueError(f"it has no column {field.name}")
        column = table.column(field.name)
        if column.type != field.type:
            raise ValueError(f"its column {field.name} holds {column.type}, not {field.type}")
        if column.null_count and field.name not in UNKNOWN:
            raise ValueError(f"its column {field.name} has gaps")
    if not np.isfinite(table.column("final_distance").to_numpy()).all():
        raise ValueError("its column final_distance holds numbers that are not finite")
    return table


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
    drawn = [Drawn(*task.evaluation(), task.bound) for task in tasks]
    agents = _acting(members, state, group)
    horizon = group.spec.horizon
    found = group.family.rollouts(act, agents, len(members), drawn, horizon, on_progress)
    for task, achieved in zip(tasks, found, strict=True):
        require_finite(achieved, "an achieved goal", f"{group.name}, {task.name}")
    return found


def _acting(members: Members, state: TrainState, group: TaskGroup) -> tuple[Algorithm, TrainState]:
    """All that acting takes."""
    stacked: Algorithm = stack([algorithm for algorithm, _ in members])
    return stacked, prune_to_policy(members[0][0], group.spec, state)


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
    agents = _acting(members, state, group)
    drawn = Drawn(*draw_mix(tasks, seed, episodes))
    (achieved,) = group.family.rollouts(act, agents, len(members), [drawn], group.spec.horizon)
    require_finite(achieved, "an achieved goal", group.name)
    met = reached(achieved[:, :, -1], drawn.goals[None], group.spec.goal_threshold)
    return np.asarray(met.mean(axis=1))


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
        aims = goals[None, :, None].astype(np.float32)
        met = reached(achieved[:, :, 1:], aims, group.spec.goal_threshold)
        final_distance = distance(achieved[:, :, -1:], aims)[..., 0]
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
                        "final_distance": float(final_distance[member, episode]),
                        "start": starts[episode].tolist(),
                        "goal": goals[episode].tolist(),
                        "path": achieved[member, episode].ravel().tolist()
                        if group.family.records_paths
                        else None,
                    }
                )
    return pa.Table.from_pylist(rows, schema=SCHEMA)
