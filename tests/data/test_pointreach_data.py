"""The six PointReach datasets: what they show, and that they are the same bytes every time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from goatrl import data, tasks
from goatrl.data.cache import checksums
from goatrl.tasks import pointreach
from goatrl.types import Episodes

COUNTS = {
    "pointreach-expert-10": 10,
    "pointreach-non-expert-10": 10,
    "pointreach-non-expert-50": 50,
    "pointreach-imbalanced-expert-10": 12,
    "pointreach-imbalanced-non-expert-10": 12,
    "pointreach-imbalanced-non-expert-50": 54,
}
NAMES = list(COUNTS)
EXPERTS = [name for name in NAMES if "non-expert" not in name]
BOX = 11.0


def make(name: str, seed: int = 0) -> Episodes:
    return data.make(tasks.get(name), seed)


def test_these_are_all() -> None:
    assert (
        {group.name for group in pointreach.GROUPS}
        == set(NAMES)
        == {name for name in tasks.groups() if name.startswith("pointreach")}
    )


@pytest.mark.parametrize("name", NAMES)
def test_counts_and_shapes(name: str) -> None:
    episodes, count = make(name), COUNTS[name]
    assert episodes.observations.shape == episodes.achieved.shape == (count, 50, 2)
    assert episodes.actions.shape == (count, 49, 2)
    assert episodes.goals.shape == (count, 2)
    np.testing.assert_array_equal(episodes.observations, episodes.achieved)
    np.testing.assert_array_equal(episodes.observations[:, 0], np.zeros((count, 2)))


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_gives_the_same_bytes(name: str) -> None:
    assert make(name, seed=3).checksum() == make(name, seed=3).checksum()
    assert make(name).checksum() == make(name, seed=0).checksum()


@pytest.mark.parametrize("name", NAMES)
def test_a_dataset_is_the_one_that_is_listed(name: str) -> None:
    assert make(name).checksum() == checksums()[name]


@pytest.mark.parametrize("name", NAMES)
def test_seeds_differ_where_there_is_chance(name: str) -> None:
    one, other = make(name, seed=0), make(name, seed=1)
    np.testing.assert_array_equal(one.goals, other.goals)
    # An expert has nothing random; every noisy episode is another one.
    differs = (np.asarray(one.actions) != np.asarray(other.actions)).any((1, 2))
    assert differs.all() if name not in EXPERTS else not differs.any()


def test_episodes_to_the_same_goal_differ() -> None:
    episodes = make("pointreach-non-expert-50")
    assert len(np.unique(np.asarray(episodes.goals), axis=0)) == 10
    assert len(np.unique(np.asarray(episodes.actions).reshape(50, -1), axis=0)) == 50


def test_datasets_of_a_seed_do_not_share_their_noise() -> None:
    one, other = (
        make("pointreach-non-expert-10"),
        make("pointreach-imbalanced-non-expert-10"),
    )
    # From one stream, the first noise of the first goals would be the same.
    assert (np.asarray(one.actions)[:, 0] != np.asarray(other.actions)[:10, 0]).all()


@pytest.mark.parametrize("name", NAMES)
def test_goals_lie_on_the_circle_and_its_upper_half(name: str) -> None:
    goals = np.asarray(make(name).goals)
    np.testing.assert_allclose(np.linalg.norm(goals, axis=1), 10.0, rtol=1e-6)
    below = goals[:, 1] < -1e-6
    if "imbalanced" in name:
        # Those below are at 60° and at 120°, as in the authors' files.
        each = 2 if name.endswith("50") else 1
        x = 10 * np.cos(np.radians([60.0, 120.0]))
        np.testing.assert_allclose(goals[below, 0], np.repeat(x, each), atol=1e-5)
    else:
        assert not below.any()
    angles = np.unique(np.degrees(np.arctan2(np.abs(goals[~below, 1]), goals[~below, 0])).round(2))
    np.testing.assert_allclose(angles, np.arange(10) * 20.0, atol=0.02)


AUTHORS = {
    "pointreach-expert-10": "clean_half1_buffer_traj10.pkl",
    "pointreach-non-expert-10": "noise_half1_buffer_traj10.pkl",
    "pointreach-non-expert-50": "noise_half1_buffer_traj50.pkl",
    "pointreach-imbalanced-expert-10": "imbalance_clean_buffer_traj10+2.pkl",
    "pointreach-imbalanced-non-expert-10": "imbalance_noise_buffer_traj10+2.pkl",
    "pointreach-imbalanced-non-expert-50": "imbalance_noise_buffer_traj50+4.pkl",
}


@pytest.mark.parametrize("name", NAMES)
def test_goals_are_those_of_the_authors_files(reference_data: Path, name: str) -> None:
    ours, theirs = (
        np.asarray(episodes.goals)
        for episodes in (
            make(name),
            data.load(reference_data / "PointReach" / AUTHORS[name]),
        )
    )
    for goals in (ours, theirs):
        goals[:] = goals[np.lexsort(goals.round(2).T)]  # in whatever order they were visited
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_positions_follow_from_actions(name: str) -> None:
    episodes = make(name)
    o, a = np.asarray(episodes.observations), np.asarray(episodes.actions)
    assert np.abs(a).max() <= 1.0
    assert np.abs(o).max() <= BOX
    np.testing.assert_allclose(o[:, 1:], np.clip(o[:, :-1] + a, -BOX, BOX), atol=2e-6)


@pytest.mark.parametrize("name", EXPERTS)
def test_an_expert_walks_straight_at_its_goal(name: str) -> None:
    episodes = make(name)
    o, a, g = (
        np.asarray(x, np.float64) for x in (episodes.observations, episodes.actions, episodes.goals)
    )
    towards = g[:, None] - o[:, :-1]
    # No part of an action points beside the goal, and none away from it.
    np.testing.assert_allclose(
        a[..., 0] * towards[..., 1] - a[..., 1] * towards[..., 0], 0.0, atol=1e-4
    )
    assert ((a * towards).sum(-1) >= -1e-6).all()
    # Far from the goal, the longer axis moves by 1.
    far = np.abs(towards).max(-1) > 1.0
    np.testing.assert_allclose(np.abs(a).max(-1)[far], 1.0, atol=1e-5)
    np.testing.assert_allclose(o[:, -1], g, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in EXPERTS])
def test_a_non_expert_is_noisy_but_not_lost(name: str) -> None:
    episodes = make(name)
    o, a, g = (
        np.asarray(x, np.float64) for x in (episodes.observations, episodes.actions, episodes.goals)
    )
    towards = g[:, None] - o[:, :-1]
    forward = (a * towards).sum(-1)
    assert 0.1 < (forward < 0).mean() < 0.6
    assert np.median(np.linalg.norm(o[:, -1] - g, axis=-1)) < 5.0


def test_an_expert_action_by_hand() -> None:
    position = np.array([[0.0, 0.0], [9.0, 0.0], [10.0, 0.5]])
    goals = np.array([[4.0, -2.0], [10.0, 0.0], [10.0, 0.0]])
    actions = pointreach.behaviour(position, goals, np.random.default_rng(0), expert=True)
    np.testing.assert_array_equal(actions, [[1.0, -0.5], [1.0, 0.0], [0.0, -0.5]])
