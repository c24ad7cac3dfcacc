"""Evaluation on the robots: what an agent does there is recorded as it happened, in any number of batches."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl import evaluate as evaluation
from goatrl import tasks
from goatrl.evaluate import evaluate
from goatrl.types import pytree

GROUP = tasks.get("reach-left-right")
FEW = [dataclasses.replace(task, episodes=5) for task in GROUP.tasks]


@pytree
class Servo:
    """Moves the gripper straight at the goal, by a share of the distance."""

    gain: float

    def act(self, state: dict, observation: jax.Array, goal: jax.Array) -> jax.Array:
        towards = self.gain * state["sign"] * (goal - observation[:, :3])
        return jnp.concatenate([jnp.clip(towards, -1.0, 1.0), jnp.zeros((len(goal), 1))], axis=-1)


def agents(*signs: float):
    return [(Servo(10.0), seed) for seed in range(len(signs))], {"sign": jnp.asarray(signs)}


@pytest.fixture(scope="module")
def table():
    return evaluate(*agents(1.0, -1.0), GROUP, FEW)


def test_a_servo_reaches_and_its_opposite_does_not(table) -> None:
    assert table.num_rows == 2 * 2 * 5
    for row in table.to_pylist():
        assert row["success"] == (row["seed"] == 0), row
        assert row["path"] is None
        if row["success"]:
            assert row["return"] >= 40
            assert row["final_distance"] < 0.03


def test_rows_hold_the_starts_and_goals_of_their_task(table) -> None:
    for task in FEW:
        _, goals = task.evaluation()
        rows = [row for row in table.to_pylist() if row["task"] == task.name]
        assert [row["episode"] for row in rows] == [*range(5), *range(5)]
        np.testing.assert_allclose([row["goal"] for row in rows], np.tile(goals, (2, 1)), rtol=1e-6)
        assert all(row["start"] == [] and row["split"] == task.split for row in rows)


def test_batches_change_nothing_but_the_number_of_simulations(table, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(evaluation, "EPISODE_BYTES", 1e15)  # not even one more episode fits into memory
    again = evaluate(*agents(1.0, -1.0), GROUP, FEW, on_progress=lambda done, total: seen.append((done, total)))
    assert again.drop_columns("final_distance").equals(table.drop_columns("final_distance"))
    np.testing.assert_allclose(again["final_distance"], table["final_distance"], atol=1e-6)
    assert seen[0] == (1, 10 * 49)
    assert seen[-1] == (10 * 49, 10 * 49)


def test_every_agent_is_judged_by_the_same_episodes(table) -> None:
    alone = evaluate([(Servo(10.0), 1)], {"sign": jnp.asarray([-1.0])}, GROUP, FEW)
    company = table.filter(np.asarray(table["seed"]) == 1)
    for column in ("episode", "goal", "success", "return"):
        assert alone[column].to_pylist() == company[column].to_pylist()
