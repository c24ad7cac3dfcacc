"""The point world and its tasks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl import tasks
from goatrl.robots.jax_world import rollout
from goatrl.robots.pointreach import step
from goatrl.tasks import pointreach
from goatrl.types import GoatError

GROUP = tasks.get("pointreach-expert-10")


@pytest.mark.parametrize(
    ("position", "action", "expected"),
    [
        ((0.0, 0.0), (0.5, -0.25), (0.5, -0.25)),
        (
            (0.0, 0.0),
            (3.0, -0.5),
            (1.0, -0.5),
        ),  # each axis has its own limit: the direction may change
        ((1.0, 2.0), (-9.0, 9.0), (0.0, 3.0)),
        ((4.5, 0.0), (1.0, 0.0), (5.0, 0.0)),  # the wall
        ((4.5, -4.75), (0.25, -1.0), (4.75, -5.0)),
        ((5.0, 5.0), (0.0, 0.0), (5.0, 5.0)),
        ((5.0, 5.0), (-1.0, 1.0), (4.0, 5.0)),  # along the wall
    ],
)
def test_a_step_by_hand(position: tuple, action: tuple, expected: tuple) -> None:
    moved = step(jnp.array([position]), jnp.array([action]), 5.0)
    np.testing.assert_array_equal(moved, [expected])


def test_a_rollout_by_hand() -> None:
    starts = jnp.array([[0.0, 0.0], [2.0, -1.0]])
    goals = jnp.array([[0.5, 0.0], [2.0, 0.0]])
    # A policy that sees position and goal: goal minus position, so both are wired in the right
    # order.
    path = rollout(step, lambda s, g: g - s, starts, goals, 5.0, 3)
    assert path.shape == (2, 4, 2)
    np.testing.assert_array_equal(path[0], [[0, 0], [0.5, 0], [0.5, 0], [0.5, 0]])
    np.testing.assert_array_equal(path[1], [[2, -1], [2, 0], [2, 0], [2, 0]])


def test_a_rollout_stays_in_the_box() -> None:
    path = rollout(
        step, lambda s, g: jnp.full_like(s, 7.0), jnp.zeros((1, 2)), jnp.zeros((1, 2)), 2.5, 5
    )
    np.testing.assert_array_equal(path[0, :, 0], [0, 1, 2, 2.5, 2.5, 2.5])


@pytest.mark.parametrize("name", ["R10", "R20"])
def test_walking_at_the_goal_reaches_every_goal(name: str) -> None:
    task = GROUP.task(name)
    starts, goals = map(jnp.float32, task.evaluation())
    path = jax.jit(
        lambda s, g: rollout(
            step, lambda p, q: jnp.clip(q - p, -1.0, 1.0), s, g, task.bound, GROUP.spec.horizon
        )
    )(starts, goals)
    assert path.shape == (20, 50, 2)
    assert np.linalg.norm(np.asarray(path)[:, -1] - goals, axis=-1).max() < 1e-5


@pytest.mark.parametrize(("name", "radius"), [("R10", 10.0), ("R20", 20.0)])
def test_goals_of_a_task(name: str, radius: float) -> None:
    task = GROUP.task(name)
    assert task.name == name
    assert task.bound == radius + 1
    starts, goals = task.evaluation()
    assert starts.shape == goals.shape == (20, 2)
    assert not starts.any()
    np.testing.assert_allclose(np.linalg.norm(goals, axis=-1), radius)
    upper, lower = goals[:10], goals[10:]
    assert (upper[:, 1] >= 0).all()
    np.testing.assert_array_equal(lower, upper * [1, -1])
    np.testing.assert_allclose(
        np.degrees(np.arctan2(upper[:, 1], upper[:, 0])), np.arange(10) * 20.0, atol=1e-9
    )


def test_the_far_task_is_out_of_distribution() -> None:
    assert [(task.name, task.split) for task in GROUP.tasks] == [("R10", "mixed"), ("R20", "ood")]


def test_every_group_has_the_tasks_and_the_papers_settings() -> None:
    assert len(pointreach.GROUPS) == 6
    for group in pointreach.GROUPS:
        assert (group.spec.horizon, group.spec.goal_threshold) == (49, 1.0)
        assert [task.name for task in group.tasks] == ["R10", "R20"]
        assert group.settings.updates == 2_000
        assert tasks.get(group.name) is group


def test_names_are_found_in_any_case_and_unknown_ones_refused() -> None:
    assert GROUP.task("r20").name == "R20"
    with pytest.raises(GoatError, match="did you mean R10"):
        GROUP.task("R1")
    with pytest.raises(GoatError, match="did you mean pointreach-expert-10"):
        tasks.get("pointreach-expert")


def test_the_registry_gives_a_copy() -> None:
    tasks.groups().clear()
    assert len(tasks.groups()) >= 6
