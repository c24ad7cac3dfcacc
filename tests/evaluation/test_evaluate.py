"""Evaluation, with agents whose every step is known by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from goatrl import tasks
from goatrl.evaluation.episodes import SCHEMA, evaluate, trajectories
from goatrl.tasks import Task
from goatrl.tasks.regions import Points
from goatrl.types import TrainState, pytree
from helpers import acting

GROUP = tasks.get("pointreach-expert-10")


@pytree
class Walker:
    """Goes towards the goal with the strength `gain`, and besides with the velocity that its state
    holds.
    """

    gain: float

    def act(self, state: TrainState, observation: jax.Array, goal: jax.Array) -> jax.Array:
        return self.gain * (goal - observation) + jnp.broadcast_to(
            state.params["velocity"][None], observation.shape
        )


def still(members: int) -> TrainState:
    return acting(velocity=jnp.zeros((members, 2)))


def rows(table: pa.Table, **where: object) -> list[dict[str, Any]]:
    return [
        row for row in table.to_pylist() if all(row[key] == value for key, value in where.items())
    ]


def task(goals: list[list[float]], bound: float = 100.0) -> Task:
    return Task("hand", "iid", Points(np.zeros((1, 2))), Points(np.array(goals)), len(goals), bound)


def test_walking_at_the_goal_succeeds_everywhere() -> None:
    table = evaluate([(Walker(1.0), 0)], still(1), GROUP)
    assert all(table["success"].to_pylist())
    assert max(table["final_distance"].to_pylist()) < 1e-5
    # Goal (10, 0) is 10 - t away after t steps: met from step 9 to 49. Goal (20, 0): from step 19.
    assert [row["return"] for row in rows(table, task="R10", episode=0)] == [41]
    assert [row["return"] for row in rows(table, task="R20", episode=0)] == [31]


def test_standing_still_never_succeeds() -> None:
    table = evaluate([(Walker(0.0), 0)], still(1), GROUP)
    assert not any(table["success"].to_pylist())
    assert set(table["return"].to_pylist()) == {0}
    np.testing.assert_allclose(
        [row["final_distance"] for row in rows(table, task="R10")], 10.0, rtol=1e-6
    )
    np.testing.assert_allclose(
        [row["final_distance"] for row in rows(table, task="R20")], 20.0, rtol=1e-6
    )


def test_success_is_at_the_last_step_and_return_counts_all() -> None:
    # One step to the right each time: x_t = t. The goal (5, 0) is met at t = 4, 5, 6, the limit
    # included; (49, 0) at 48 and 49; (0, 0) at 1 only, because the start itself is not counted; (0,
    # 1.5) never; (25, 0.75) at 25 alone, sqrt(1 + 0.75²) > 1.
    goals = [[5.0, 0.0], [49.0, 0.0], [0.0, 0.0], [0.0, 1.5], [25.0, 0.75]]
    state = acting(velocity=jnp.array([[1.0, 0.0]]))
    table = evaluate([(Walker(0.0), 0)], state, GROUP, [task(goals)])
    assert table["return"].to_pylist() == [3, 2, 1, 0, 1]
    assert table["success"].to_pylist() == [False, True, False, False, False]
    np.testing.assert_allclose(table["final_distance"].to_pylist()[:3], [44.0, 0.0, 49.0])


def test_a_goal_is_met_within_the_threshold_and_no_further() -> None:
    """It stands still, as far from its goals as they are from the origin: just within 1, at 1,
    beyond, and beyond by a fifth.
    """
    table = evaluate(
        [(Walker(0.0), 0)],
        still(1),
        GROUP,
        [task([[0.99, 0.0], [0.0, -1.0], [0.0, 1.01], [1.1, 0.0], [-1.19, 0.0]])],
    )
    assert table["success"].to_pylist() == [True, True, False, False, False]
    assert table["return"].to_pylist() == [49, 49, 0, 0, 0]


def test_a_goal_at_the_start_pays_at_every_step() -> None:
    table = evaluate([(Walker(1.0), 0)], still(1), GROUP, [task([[0.0, 0.0]])])
    assert (table["return"].to_pylist(), table["success"].to_pylist()) == ([49], [True])


def test_the_threshold_is_the_groups() -> None:
    state = acting(velocity=jnp.array([[1.0, 0.0]]))
    wide = dataclasses.replace(GROUP, spec=dataclasses.replace(GROUP.spec, goal_threshold=2.0))
    assert evaluate([(Walker(0.0), 0)], state, wide, [task([[5.0, 0.0]])])[
        "return"
    ].to_pylist() == [5]


def test_the_box_of_the_task_stops_an_agent() -> None:
    state = acting(velocity=jnp.array([[1.0, 0.0]]))
    table = evaluate([(Walker(0.0), 0)], state, GROUP, [task([[5.0, 0.0]], bound=5.0)])
    assert table["return"].to_pylist() == [46]  # from step 4 on: it stays at the wall, on the goal


def test_one_row_per_member_and_episode() -> None:
    members = [(Walker(1.0), 7), (Walker(0.0), 3)]
    table = evaluate(members, still(2), GROUP)
    assert table.num_rows == 2 * 2 * 20
    keys = {(row["task"], row["seed"], row["episode"]) for row in table.to_pylist()}
    assert keys == {
        (name, seed, episode) for name in ("R10", "R20") for seed in (7, 3) for episode in range(20)
    }
    # Each member has its own algorithm.
    assert {(row["seed"], row["success"]) for row in table.to_pylist()} == {(7, True), (3, False)}


def test_each_member_has_its_own_state() -> None:
    state = acting(velocity=jnp.array([[1.0, 0.0], [0.0, -1.0]]))
    table = evaluate(
        [(Walker(0.0), 0), (Walker(0.0), 1)], state, GROUP, [task([[49.0, 0.0], [0.0, -49.0]])]
    )
    found = {(row["seed"], row["episode"]): row["success"] for row in table.to_pylist()}
    assert found == {(0, 0): True, (0, 1): False, (1, 0): False, (1, 1): True}


def test_rows_say_where_an_episode_went() -> None:
    table = evaluate([(Walker(1.0), 0)], still(1), GROUP, [task([[2.5, 0.0]])])
    assert table.schema.equals(SCHEMA)
    (row,) = table.to_pylist()
    assert (row["task"], row["split"], row["start"], row["goal"]) == (
        "hand",
        "iid",
        [0.0, 0.0],
        [2.5, 0.0],
    )
    path = np.array(row["path"]).reshape(50, 2)
    np.testing.assert_array_equal(path[:4], [[0, 0], [1, 0], [2, 0], [2.5, 0]])
    assert (path[4:] == path[3]).all()


def test_no_task_is_an_empty_table() -> None:
    table = evaluate([(Walker(1.0), 0)], still(1), GROUP, [])
    assert table.num_rows == 0
    assert table.schema.equals(SCHEMA)


def test_trajectories_have_members_first() -> None:
    (paths,) = trajectories(
        [(Walker(1.0), 0), (Walker(0.0), 0), (Walker(1.0), 1)], still(3), GROUP, [GROUP.task("R10")]
    )
    assert paths.shape == (3, 20, 50, 2)
    np.testing.assert_array_equal(paths[0], paths[2])
    assert not paths[1].any()
