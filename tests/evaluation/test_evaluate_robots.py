"""Evaluation on the robots: what an agent does there is recorded as it happened, in any number of
batches.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl import algorithms, tasks
from goatrl.evaluation import episodes as evaluation
from goatrl.evaluation.episodes import evaluate
from goatrl.learn.parameters import stack
from goatrl.robots import Drawn, mujoco
from goatrl.robots.workers import Workers
from goatrl.training.offline import act, init
from goatrl.types import GoatError, TrainState, pytree
from helpers import acting

GROUP = tasks.get("reach-left-right")
FEW = [dataclasses.replace(task, episodes=5) for task in GROUP.tasks]


@pytree
class Servo:
    """Moves the gripper straight at the goal, by a share of the distance."""

    gain: float

    def act(self, state: TrainState, observation: jax.Array, goal: jax.Array) -> jax.Array:
        towards = self.gain * state.params["sign"] * (goal - observation[:, :3])
        return jnp.concatenate([jnp.clip(towards, -1.0, 1.0), jnp.zeros((len(goal), 1))], axis=-1)


@pytree
class Still:
    """Does nothing."""

    def act(self, state: TrainState, observation: jax.Array, goal: jax.Array) -> jax.Array:
        return jnp.zeros((len(goal), 1))


def agents(*signs: float) -> tuple[Any, Any]:
    return [(Servo(10.0), seed) for seed in range(len(signs))], acting(sign=jnp.asarray(signs))


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


def test_other_processes_and_pieces_change_nothing(table, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(mujoco, "LARGEST", 0)  # not even one episode stays in this process
    again = evaluate(
        *agents(1.0, -1.0), GROUP, FEW, on_progress=lambda done, total: seen.append((done, total))
    )
    assert again.equals(table)
    assert seen == [(1, 2), (2, 2)], "a piece for each agent"


def test_an_episode_is_the_same_in_any_piece() -> None:
    """Networks too, whose matrix products round by the number of their rows."""
    group = tasks.get("push-left-right")
    members = [(algorithms.get("bc").build(group.settings), seed) for seed in (0, 1)]
    state = init(members, group.spec)
    agents = stack([algorithm for algorithm, _ in members]), state
    task = dataclasses.replace(group.tasks[1], episodes=mujoco.ROWS + 3)
    every = Drawn(*task.evaluation())
    (many,) = group.family.rollouts(act, agents, 2, [every], 9)
    few = Drawn(every.starts[98:102], every.goals[98:102])
    (again,) = group.family.rollouts(act, agents, 2, [few], 9)
    np.testing.assert_array_equal(many[:, 98:102], again)
    assert np.ptp(again[:, :, -1], axis=1).max() > 0


def test_a_lost_process_is_one_clear_line(request: pytest.FixtureRequest) -> None:
    lonely = Workers(1)
    request.addfinalizer(lonely.close)
    with pytest.raises(GoatError, match=r"ended unexpectedly \(exit code 7\)"):
        lonely.submit(os._exit, 7).result()
    assert lonely.submit(divmod, 7, 2).result() == (3, 1), "the next call starts another one"
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        lonely.submit(divmod, 7, 0).result()


def test_every_agent_is_judged_by_the_same_episodes(table) -> None:
    alone = evaluate([(Servo(10.0), 1)], acting(sign=jnp.asarray([-1.0])), GROUP, FEW)
    company = table.filter(np.asarray(table["seed"]) == 1)
    for column in ("episode", "goal", "success", "return"):
        assert alone[column].to_pylist() == company[column].to_pylist()


# How far from its goal each of six episodes is, in thresholds: at the first 40 steps, and at the
# last 9.
COURSES = [(5.0, 0.99), (5.0, 1.01), (5.0, 1.19), (0.99, 0.01), (0.99, 1.1), (1.1, 0.99)]
SUCCESSES = [True, False, False, True, False, True]
RETURNS = [9, 0, 0, 49, 40, 9]


@pytest.mark.parametrize(
    "name", ["reach-left-right", "push-left-right", "slide-near-far", "hand-near-far"]
)
def test_a_goal_is_met_within_the_threshold_and_no_further(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tasks.get(name)

    def courses(self: Any, act: Any, agents: Any, members: int, drawn: Any, *more: Any) -> list:
        distances = np.array(
            [[before] * 41 + [after] * 9 for before, after in COURSES]
        )  # the start is not judged
        (episodes,) = drawn
        axis = np.eye(group.spec.goal_dim)[1]
        there = (
            episodes.goals[:, None]
            + group.spec.goal_threshold
            * distances[np.arange(len(episodes.goals)) % len(COURSES), :, None]
            * axis
        )
        return [np.float32(np.tile(there, (members, 1, 1, 1)))]

    monkeypatch.setattr(mujoco.MujocoFamily, "rollouts", courses)
    task = dataclasses.replace(group.tasks[0], episodes=len(COURSES))
    still = [(Still(), 0), (Still(), 1)], acting(nothing=jnp.zeros(2))
    table = evaluate(*still, group, [task])
    assert table["success"].to_pylist() == SUCCESSES * 2
    assert table["return"].to_pylist() == RETURNS * 2
    for episodes, expected in ((6, 3 / 6), (3, 1 / 3)):
        np.testing.assert_allclose(
            evaluation.success_rate(*still, group, [task], (1,), episodes), expected
        )
