"""Hindsight relabelling: which transition is drawn, which goal it gets, and what reward that goal
pays.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl.episodes import make_episodes
from goatrl.learn.samplers import GoalMixes, Hindsight, PolicyGoals, ValueGoals
from goatrl.types import Batch, Episodes, Rows

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
    return Hindsight(probability).sample(jax.random.key(seed), episodes, size, 0.1, episodes.rows)


@pytest.fixture(scope="module")
def always() -> Batch:
    return jax.tree.map(np.asarray, draw(0, labelled(), 1.0))


@pytest.fixture(scope="module")
def never() -> Batch:
    return jax.tree.map(np.asarray, draw(1, labelled(), 0.0))


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


def test_a_share_of_goals_was_passed_and_is_for_values_alone(always):
    data = labelled()
    sampler = jax.jit(Hindsight(1.0, passed=0.3).sample, static_argnums=2)
    batch = jax.tree.map(np.asarray, sampler(jax.random.key(0), data, SIZE, 0.1, data.rows))
    passed = batch.imitated == 0.0
    np.testing.assert_allclose(passed.mean(), 0.3, atol=0.014)
    episode, step = batch.observation[passed].T
    origin, earlier = np.divmod(batch.goal[passed, 0], 100)
    np.testing.assert_array_equal(origin, episode)
    np.testing.assert_array_equal(batch.offset[passed], 0)
    np.testing.assert_array_equal(batch.reward[passed], 0.0)  # none of them comes again
    for now in range(HORIZON):
        found = np.bincount(earlier[step == now].astype(int), minlength=HORIZON + 1)
        share = found / found.sum()
        np.testing.assert_allclose(share[: now + 1], 1 / (now + 1), atol=0.04)
        assert not found[now + 1 :].any()
    # The others are what they are without any that was passed.
    assert (batch.imitated[~passed] == 1.0).all()
    for name in ("observation", "goal", "offset", "reward"):
        np.testing.assert_array_equal(getattr(batch, name)[~passed], getattr(always, name)[~passed])


@pytest.mark.parametrize("passed", [None, 0.5])
def test_a_share_of_goals_is_random_and_for_values_alone(passed):
    data = labelled()

    def sample(**shares):
        sampler = jax.jit(Hindsight(1.0, passed=passed, **shares).sample, static_argnums=2)
        return jax.tree.map(np.asarray, sampler(jax.random.key(0), data, SIZE, 0.1, data.rows))

    batch, without = sample(random=0.4), sample()
    changed = (batch.goal != without.goal).any(axis=1)
    assert (batch.imitated[changed] == 0.0).all()
    was_imitated = np.ones(SIZE) if passed is None else without.imitated
    kept = batch.imitated == was_imitated
    np.testing.assert_allclose(1.0 - kept.mean(), 0.4 * was_imitated.mean(), atol=0.014)
    for name in ("observation", "goal", "offset", "reward"):
        np.testing.assert_array_equal(
            getattr(batch, name)[kept], getattr(without, name)[kept], err_msg=name
        )
    random = ~kept
    np.testing.assert_array_equal(batch.offset[random], 0)
    # Each place of each episode is as likely, wherever the transition is.
    places, counts = np.unique(batch.goal[random, 0], return_counts=True)
    np.testing.assert_array_equal(
        places, [100 * each + step for each in range(COUNT) for step in range(HORIZON + 1)]
    )
    np.testing.assert_allclose(counts / random.sum(), 1 / len(places), atol=0.013)
    own = batch.goal[random, 0] // 100 == batch.observation[random, 0]
    np.testing.assert_allclose(own.mean(), 1 / COUNT, atol=0.03)


def test_all_are_imitated_if_none_was_passed(always):
    assert always.imitated is None


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


def test_a_transition_says_what_it_reaches(always):
    np.testing.assert_array_equal(always.next_achieved[:, 0], always.achieved[:, 0] + 1)
    np.testing.assert_array_equal(always.mask, 1.0 - always.reward)
    assert always.reward.dtype == np.float32
    np.testing.assert_array_equal(always.policy_goal, always.goal)
    np.testing.assert_array_equal(always.reward == 1.0, always.offset == 1)
    assert (always.extra_goals, always.extra_observations, always.extras) == ({}, {}, {})


# Mixes of goals


def mixed(seed: int = 0, size: int = SIZE, **given) -> Batch:
    sampler = GoalMixes(**given)
    drawn = jax.jit(lambda key: sampler.sample(key, labelled(), size, 0.1, labelled().rows))(
        jax.random.key(seed)
    )
    return jax.tree.map(np.asarray, drawn)


def places(goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The episode and the step that a goal comes from; step 50 is the desired goal."""
    return np.divmod(goal[:, 0].astype(int), 100)


def test_shares_of_a_mix():
    batch = mixed(value=ValueGoals(current=0.2, future=0.3, random=0.4))
    episode, step = batch.observation.astype(int).T
    origin, at = places(batch.goal)
    now, desired = (origin == episode) & (at == step), at == 50
    later = (origin == episode) & (at > step) & ~desired
    # A random goal is of another episode in two thirds of the draws, and in one third it may look
    # like any of this one: at the same step (1 of 6) or later, of which there are 3 on average.
    np.testing.assert_allclose(now.mean(), 0.2 + 0.4 / 3 / 6, atol=0.012)
    np.testing.assert_allclose(later.mean(), 0.3 + 0.4 / 3 * 3 / 6, atol=0.012)
    np.testing.assert_allclose(desired.mean(), 0.1, atol=0.01)
    np.testing.assert_allclose((origin != episode).mean(), 0.4 * 2 / 3, atol=0.015)
    assert (origin[desired] == episode[desired]).all()


def test_value_and_policy_have_goals_of_their_own():
    batch = mixed(value=ValueGoals(current=1.0, future=0.0), policy=PolicyGoals(future=1.0))
    _, step = batch.observation.astype(int).T
    np.testing.assert_array_equal(batch.goal, batch.achieved)
    np.testing.assert_array_equal(batch.offset, 0)
    assert (places(batch.policy_goal)[1] > step).all()
    np.testing.assert_array_equal(batch.reward, 0.0)  # one step on, the current goal is left
    batch = mixed(value=ValueGoals(future=1.0), policy=PolicyGoals(current=0.0, future=0.0))
    np.testing.assert_array_equal(batch.offset, places(batch.goal)[1] - batch.observation[:, 1])
    assert (places(batch.policy_goal)[1] == 50).all()


def test_geometric_goals_are_geometric_up_to_the_end():
    batch = mixed(value=ValueGoals(discount=0.5, geometric=True))
    first = batch.offset[batch.observation[:, 1] == 0]
    frequency = np.bincount(first, minlength=HORIZON + 1)[1:] / len(first)
    np.testing.assert_allclose(frequency, [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16], atol=0.02)


@pytest.mark.parametrize("steps", [1, 2, 9])
def test_what_lies_ahead(steps):
    batch = mixed(policy=PolicyGoals(current=0.2, future=0.5, random=0.3), steps=steps)
    episode, step = batch.observation.astype(int).T
    ahead = np.minimum(step + steps, HORIZON)
    np.testing.assert_array_equal(batch.extra_goals["ahead"][:, 0], 100 * episode + ahead)
    np.testing.assert_array_equal(batch.extra_observations["ahead"][:, 1], ahead)
    origin, at = places(batch.extra_goals["way"])
    np.testing.assert_array_equal(origin, episode)
    goal_episode, goal_step = places(batch.policy_goal)
    elsewhere = goal_episode != episode
    np.testing.assert_array_equal(at[elsewhere], ahead[elsewhere])
    assert (at <= ahead).all()
    assert (at >= step).all()
    future = ~elsewhere & (goal_step > step) & (at == goal_step)
    assert future.any(), "a goal nearer than the steps ahead is where the way ends"


def test_what_lies_between():
    batch = mixed(value=ValueGoals(current=0.2, future=0.8), between=True)
    episode, step = batch.observation.astype(int).T
    passed = batch.extras["offset"]
    np.testing.assert_array_equal(batch.extra_goals["between"][:, 0], 100 * episode + step + passed)
    np.testing.assert_array_equal(batch.extra_observations["between"][:, 1], step + passed)
    np.testing.assert_array_equal(passed[batch.offset <= 1], 0)
    assert (passed < np.maximum(batch.offset, 1)).all()
    far = passed[batch.offset == 4]
    np.testing.assert_allclose(np.bincount(far) / len(far), [0.25] * 4, atol=0.04)
    acted = labelled().actions[episode, step + passed]
    np.testing.assert_array_equal(batch.extras["action"], acted)
    assert mixed(between=False).extras == {}


@pytest.mark.parametrize(
    "sampler",
    [GoalMixes(value=ValueGoals(future=0.0, random=1.0)), Hindsight(random=1.0)],
    ids=["mixes", "hindsight"],
)
def test_random_goals_are_of_what_a_buffer_holds_so_far(sampler):
    batch = sampler.sample(jax.random.key(0), labelled(), 500, 0.1, Rows(0, jnp.asarray(2)))
    assert set(places(np.asarray(batch.goal))[0]) == {0, 1}
    assert set(np.asarray(batch.observation)[:, 0].astype(int)) == {0, 1}
