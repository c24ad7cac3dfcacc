"""Normalisation: statistics by hand, clipping, and which fields of a batch are touched."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl.episodes import make_episodes
from goatrl.learn import normalize
from goatrl.types import Spec
from helpers import make_batch


@pytest.mark.parametrize(
    ("horizon", "expected"),
    [(1, [1.0]), (2, [0.25, 0.75]), (3, [0.1111111, 0.2777778, 0.6111111])],  # 3: 2/18, 5/18, 11/18
)
def test_future_goal_weights_by_hand(horizon, expected):
    np.testing.assert_allclose(normalize.future_goal_weights(horizon), expected, rtol=1e-6)


def test_future_goal_weights_count_every_pair_of_steps():
    horizon, counted = 7, np.zeros(8)
    for step in range(horizon):
        for later in range(step + 1, horizon + 1):
            counted[later] += 1 / horizon / (horizon - step)
    np.testing.assert_allclose(normalize.future_goal_weights(horizon), counted[1:])
    np.testing.assert_allclose(normalize.future_goal_weights(horizon).sum(), 1.0)


def test_statistics_by_hand():
    # Two actions: step 1 is drawn as a goal a quarter of the time, step 2 three quarters, step 0
    # never.
    episodes = make_episodes(
        observations=[[[0.0, 5.0], [3.0, 5.0], [6.0, 5.0]]],
        achieved=[[[900.0], [0.0], [4.0]]],
        actions=np.zeros((1, 2, 1)),
        goals=[[77.0]],
    )
    found = normalize.from_episodes(episodes)
    np.testing.assert_allclose(found.observation_mean, [3.0, 5.0], rtol=1e-6)
    np.testing.assert_allclose(
        found.observation_std, [2.4494897, 1e-4], rtol=1e-6
    )  # √6; a constant gets the floor
    np.testing.assert_allclose(found.goal_mean, [3.0], rtol=1e-6)  # ¼ · 0 + ¾ · 4
    np.testing.assert_allclose(found.goal_std, [1.7320508], rtol=1e-6)  # √(¼ · 9 + ¾ · 1)


def test_statistics_weigh_episodes_equally():
    episodes = make_episodes(
        np.zeros((2, 2, 1)),
        achieved=[[[0.0], [1.0]], [[0.0], [5.0]]],
        actions=np.zeros((2, 1, 1)),
        goals=np.zeros((2, 1)),
    )
    found = normalize.from_episodes(episodes)
    np.testing.assert_allclose(found.goal_mean, [3.0], rtol=1e-6)
    np.testing.assert_allclose(found.goal_std, [2.0], rtol=1e-6)


def test_shapes_and_types_follow_the_dataset(odd_episodes):
    found = normalize.from_episodes(odd_episodes)
    assert jax.tree.map(jnp.shape, (found.observation_mean, found.observation_std)) == ((5,), (5,))
    assert jax.tree.map(jnp.shape, (found.goal_mean, found.goal_std)) == ((3,), (3,))
    assert {leaf.dtype for leaf in jax.tree.leaves(found)} == {jnp.dtype("float32")}


def test_normalised_observations_have_zero_mean_and_unit_spread(odd_episodes):
    scaled = normalize.from_episodes(odd_episodes).observation(
        jnp.asarray(odd_episodes.observations)
    )
    np.testing.assert_allclose(np.asarray(scaled).reshape(-1, 5).mean(0), np.zeros(5), atol=1e-6)
    np.testing.assert_allclose(np.asarray(scaled).reshape(-1, 5).std(0), np.ones(5), rtol=1e-5)


NORMALIZER = normalize.Normalizer(
    jnp.asarray([1.0, 0.0]), jnp.asarray([2.0, 0.1]), jnp.asarray([-1.0]), jnp.asarray([4.0])
)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_normalise_and_clip_by_hand(wrap):
    x = jnp.asarray([[3.0, 0.2], [-100.0, 50.0]])
    np.testing.assert_allclose(
        wrap(NORMALIZER.observation)(x), [[1.0, 2.0], [-10.0, 10.0]], rtol=1e-6
    )
    np.testing.assert_allclose(
        wrap(NORMALIZER.goal)(jnp.asarray([[7.0], [-1.0], [400.0]])),
        [[2.0], [0.0], [10.0]],
        rtol=1e-6,
    )


def test_a_constant_input_stays_finite():
    floor = normalize.Normalizer(
        jnp.zeros(1), jnp.full(1, normalize.FLOOR), jnp.zeros(1), jnp.ones(1)
    )
    np.testing.assert_array_equal(
        floor.observation(jnp.asarray([[0.0], [1.0], [-1.0]])), [[0.0], [10.0], [-10.0]]
    )


def test_batch_normalises_inputs_and_nothing_else():
    batch = make_batch(
        observation=jnp.asarray([[3.0, 0.0]]),
        action=jnp.asarray([[0.5]]),
        next_observation=jnp.asarray([[5.0, 0.0]]),
        initial_observation=jnp.asarray([[7.0, 0.0]]),
        achieved=jnp.asarray([[3.0]]),
        goal=jnp.asarray([[7.0]]),
        reward=jnp.asarray([1.0]),
        offset=jnp.asarray([4]),
    )
    got = NORMALIZER.batch(batch)
    np.testing.assert_allclose(got.observation, [[1.0, 0.0]])
    np.testing.assert_allclose(got.next_observation, [[2.0, 0.0]])
    np.testing.assert_allclose(got.initial_observation, [[3.0, 0.0]])
    np.testing.assert_allclose(
        got.achieved, [[1.0]]
    )  # with the statistics of goals, so that it compares with one
    np.testing.assert_allclose(got.goal, [[2.0]])
    np.testing.assert_array_equal(got.action, [[0.5]])
    np.testing.assert_array_equal(got.reward, [1.0])
    np.testing.assert_array_equal(got.offset, [4])


def test_identity_changes_nothing_within_the_clip():
    same = normalize.identity(
        Spec(observation_dim=2, goal_dim=3, action_dim=1, horizon=5, goal_threshold=0.1)
    )
    np.testing.assert_array_equal(same.observation(jnp.asarray([[-3.0, 9.5]])), [[-3.0, 9.5]])
    np.testing.assert_array_equal(same.goal(jnp.asarray([[1.0, -2.0, 11.0]])), [[1.0, -2.0, 10.0]])
