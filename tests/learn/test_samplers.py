"""Hindsight relabelling: which transition is drawn, which goal it gets, and what reward that goal
pays.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl.learn import samplers
from goatrl.types import Batch, Episodes, make_episodes

COUNT, HORIZON, SIZE = 3, 5, 30_000
STEPS = np.arange(HORIZON + 1)

# How this file tells where a drawn number came from: every array says its episode and its step.
#   observation (n, i), achieved (100 n + i, 7), action (100 n + t), desired goal (100 n + 50, 7)


def labelled(desired: float = 50.0) -> Episodes:
    episode = np.arange(COUNT)[:, None] * np.ones(HORIZON + 1)[None]
    observations = np.stack([episode, np.tile(STEPS, (COUNT, 1))], axis=-1)
    achieved = np.stack([100 * episode + STEPS[None], np.full_like(episode, 7.0)], axis=-1)
    actions = (100 * episode + STEPS[None])[:, :-1, None]
    goals = np.stack([100 * np.arange(COUNT) + desired, np.full(COUNT, 7.0)], axis=-1)
    return jax.tree.map(jnp.asarray, make_episodes(observations, achieved, actions, goals))


@partial(jax.jit, static_argnames="size")
def draw(seed: int, episodes: Episodes, probability: float, size: int = SIZE) -> Batch:
    return samplers.sample(jax.random.key(seed), episodes, size, probability, 0.1)


@pytest.fixture(scope="module")
def always() -> Batch:
    return jax.tree.map(np.asarray, draw(0, labelled(), 1.0))


@pytest.fixture(scope="module")
def never() -> Batch:
    return jax.tree.map(np.asarray, draw(1, labelled(), 0.0))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_reached_includes_the_boundary(wrap):
    achieved = jnp.asarray([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]])
    goal = jnp.asarray([[0.0, 0.0], [0.0, 0.0], [1.0, 6.5]])
    np.testing.assert_array_equal(wrap(samplers.reached)(achieved, goal, 5.0), [1.0, 1.0, 0.0])
    np.testing.assert_array_equal(wrap(samplers.reached)(achieved, goal, 4.9), [1.0, 0.0, 0.0])


def test_reached_keeps_leading_axes_and_rewards_are_floats(always):
    got = samplers.reached(jnp.zeros((2, 3, 4)), jnp.zeros((2, 3, 4)), 0.1)
    assert got.shape == (2, 3)
    assert always.reward.dtype == jnp.float32


def test_all_fields_come_from_one_transition(always):
    episode, step = always.observation.T
    np.testing.assert_array_equal(always.action[:, 0], 100 * episode + step)
    np.testing.assert_array_equal(always.next_observation, np.stack([episode, step + 1], axis=-1))
    np.testing.assert_array_equal(
        always.initial_observation, np.stack([episode, 0 * step], axis=-1)
    )
    np.testing.assert_array_equal(
        always.achieved, np.stack([100 * episode + step, np.full(SIZE, 7.0)], axis=-1)
    )


def test_transitions_are_uniform(always):
    episode, step = always.observation.astype(int).T
    counts = np.zeros((COUNT, HORIZON))
    np.add.at(counts, (episode, step), 1)
    assert counts.sum() == SIZE
    np.testing.assert_allclose(
        counts / SIZE, np.full((COUNT, HORIZON), 1 / 15), atol=0.008
    )  # 5 standard deviations


def test_every_relabelled_goal_was_achieved_strictly_later_in_the_same_episode(always):
    episode, step = always.observation.astype(int).T
    origin, later = np.divmod(always.goal[:, 0].astype(int), 100)
    np.testing.assert_array_equal(origin, episode)
    np.testing.assert_array_equal(always.goal[:, 1], 7.0)
    assert (later > step).all()
    assert (later <= HORIZON).all()
    np.testing.assert_array_equal(always.offset, later - step)


@pytest.mark.parametrize("step", range(HORIZON))
def test_later_steps_are_equally_likely(always, step):
    offsets = always.offset[always.observation[:, 1] == step]
    choices = HORIZON - step
    frequency = np.bincount(offsets, minlength=choices + 1)[1:] / len(offsets)
    assert (
        len(frequency) == choices
    )  # the last step of the episode is among them, and nothing lies beyond it
    np.testing.assert_allclose(
        frequency, np.full(choices, 1 / choices), atol=5 * 0.5 / np.sqrt(len(offsets))
    )


def test_probability_one_relabels_everything(always):
    assert always.offset.min() == 1
    assert (always.goal[:, 0] % 100 <= HORIZON).all()


def test_probability_zero_keeps_every_desired_goal(never):
    np.testing.assert_array_equal(never.offset, 0)
    np.testing.assert_array_equal(never.goal[:, 0], 100 * never.observation[:, 0] + 50)


def test_a_probability_in_between_mixes_both():
    batch = jax.tree.map(np.asarray, draw(2, labelled(), 0.3))
    kept = batch.offset == 0
    np.testing.assert_allclose(kept.mean(), 0.7, atol=0.014)
    np.testing.assert_array_equal(batch.goal[kept, 0], 100 * batch.observation[kept, 0] + 50)
    origin, later = np.divmod(batch.goal[~kept, 0], 100)
    np.testing.assert_array_equal(origin, batch.observation[~kept, 0])
    np.testing.assert_array_equal(later, batch.observation[~kept, 1] + batch.offset[~kept])


def test_a_relabelled_goal_pays_when_the_next_step_achieves_it(always):
    # Achieved goals lie 1 apart and the threshold is 0.1: only the goal one step ahead is reached
    # by the action.
    np.testing.assert_array_equal(always.reward, always.offset == 1)
    assert 0 < always.reward.mean() < 1


def test_a_desired_goal_pays_on_the_next_achieved_goal():
    batch = jax.tree.map(np.asarray, draw(3, labelled(desired=2.0), 0.0))
    np.testing.assert_array_equal(
        batch.reward, batch.observation[:, 1] == 1
    )  # action 1 leads to step 2; step 2 itself is late


def test_unreached_desired_goals_pay_nothing(never):
    np.testing.assert_array_equal(never.reward, 0.0)


def test_episodes_of_one_action_have_one_later_step():
    episodes = labelled()
    short = Episodes(
        episodes.observations[:, :2],
        episodes.achieved[:, :2],
        episodes.actions[:, :1],
        episodes.goals,
    )
    batch = draw(4, short, 1.0, size=64)
    np.testing.assert_array_equal(batch.offset, 1)
    np.testing.assert_array_equal(batch.observation[:, 1], 0)
    np.testing.assert_array_equal(batch.reward, 1)


def test_the_key_alone_decides():
    first, again, other = (draw(seed, labelled(), 0.5) for seed in (5, 5, 6))
    jax.tree.map(np.testing.assert_array_equal, first, again)
    assert not np.array_equal(first.observation, other.observation)


def test_probability_may_differ_along_a_sweep(odd_episodes):
    episodes = jax.tree.map(jnp.asarray, odd_episodes)
    batch = jax.vmap(lambda p: draw(7, episodes, p, size=64))(jnp.asarray([0.0, 1.0]))
    np.testing.assert_array_equal(batch.offset[0], 0)
    assert int(batch.offset[1].min()) >= 1
    np.testing.assert_array_equal(
        batch.observation[0], batch.observation[1]
    )  # the probability does not move the draw
    shapes = {
        name: getattr(batch, name).shape[1:]
        for name in ("observation", "action", "achieved", "goal", "reward")
    }
    assert shapes == {
        "observation": (64, 5),
        "action": (64, 2),
        "achieved": (64, 3),
        "goal": (64, 3),
        "reward": (64,),
    }
