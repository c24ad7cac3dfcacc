"""Which transitions an algorithm learns from, and towards which goals. Inside jit.

Every sampler draws transitions uniformly: from long episodes more often. They differ in their
goals. `Hindsight` takes those of the data or of hindsight (paper, section 4: D_relabel).
`GoalMixes` mixes current, later and random ones, for values and for the policy apart, and adds what
was achieved some steps ahead.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from goatrl.types import Batch, Episodes, Rows, pytree, reached, static


def transitions(
    episodes: Episodes,
    episode: jax.Array,
    step: jax.Array,
    goal: jax.Array,
    offset: jax.Array,
    threshold: float,
) -> Batch:
    """A batch of the transitions at (episode, step), all with one goal for value and policy."""
    next_achieved = episodes.achieved[episodes.at(episode, step + 1)]
    reward = reached(next_achieved, goal, threshold).astype(jnp.float32)
    return Batch(
        observation=episodes.observations[episodes.at(episode, step)],
        action=episodes.actions[episodes.at(episode, step)],
        next_observation=episodes.observations[episodes.at(episode, step + 1)],
        initial_observation=episodes.observations[episodes.at(episode, 0)],
        achieved=episodes.achieved[episodes.at(episode, step)],
        next_achieved=next_achieved,
        goal=goal,
        policy_goal=goal,
        reward=reward,
        mask=1.0 - reward,
        offset=offset,
        ended=_ended(episodes, episode, step, next_achieved, threshold),
    )


def _ended(
    episodes: Episodes,
    episode: jax.Array,
    step: jax.Array,
    next_achieved: jax.Array,
    threshold: float,
) -> jax.Array | None:
    """Where an episode was ended short of its goal. One that was ended at its goal could have gone
    on towards another.
    """
    if episodes.terminated is None:
        return None
    last = episodes.terminated[episode] & (step + 1 == episodes.length(episode))
    met = reached(next_achieved, episodes.desired(episode, step), threshold)
    return (last & ~met).astype(jnp.float32)


@pytree
class Hindsight:
    """With some probability g' = φ(s_i), i uniform in t+1 … T of the same episode, or else the
    episode's desired goal.

    Goals of hindsight are all still to come, so that values never see one that was met and lost for
    good, such as by a puck that slid past it, nor one that was missed: they promise success for
    these too. A share of `passed` rows therefore has i uniform in 0 … t, and of the other rows a
    share of `random` has what any episode achieved at any step. Values learn from them, and no
    action is imitated for a goal that it did not lead to.
    """

    probability: float = 1.0
    passed: float | None = None
    random: float | None = None

    def sample(
        self,
        key: jax.Array,
        episodes: Episodes,
        size: int,
        threshold: float,
        rows: Rows,
    ) -> Batch:
        which, when, ahead, whether = jax.random.split(key, 4)
        episode, step = episodes.draw(which, when, size, rows)
        later = jax.random.randint(ahead, (size,), step + 1, episodes.length(episode) + 1)
        relabelled = jax.random.uniform(whether, (size,)) < self.probability
        goal = jnp.where(
            relabelled[:, None],
            episodes.achieved[episodes.at(episode, later)],
            episodes.desired(episode, step),
        )
        offset = jnp.where(relabelled, later - step, 0)
        if self.passed is None and self.random is None:
            return transitions(episodes, episode, step, goal, offset, threshold)
        elsewhere = jnp.zeros(size, bool)
        if self.random is not None:
            other, when, whether = jax.random.split(jax.random.fold_in(key, 5), 3)
            elsewhere = jax.random.uniform(whether, (size,)) < self.random
            anywhere = episodes.achieved[episodes.draw_place(other, when, size, rows)]
            goal = jnp.where(elsewhere[:, None], anywhere, goal)
        if self.passed is not None:
            back, whether = jax.random.split(jax.random.fold_in(key, 1))
            passed = jax.random.uniform(whether, (size,)) < self.passed
            earlier = jax.random.randint(back, (size,), 0, step + 1)
            before = episodes.achieved[episodes.at(episode, earlier)]
            goal = jnp.where(passed[:, None], before, goal)
            elsewhere |= passed
        offset = jnp.where(elsewhere, 0, offset)
        batch = transitions(episodes, episode, step, goal, offset, threshold)
        return dataclasses.replace(batch, imitated=(~elsewhere).astype(jnp.float32))


@pytree
class GoalMix:
    """Shares of goals: achieved now, later in the episode, anywhere in the data. The rest are
    desired goals of the episode.

    Later steps are uniform, or `geometric`: i − t has that distribution with parameter
    1 − discount, cut off at the end of the episode.
    """

    current: float = 0.0
    future: float = 1.0
    random: float = 0.0
    discount: float = 0.98
    geometric: bool = static(default=False)

    def draw(
        self, key: jax.Array, episodes: Episodes, episode: jax.Array, step: jax.Array, rows: Rows
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """For the transitions at (episode, step): goals, how many steps ahead each was achieved (0
        if not in the same episode), and the last step on the way to it: (B, goal_dim), (B,), (B,).
        """
        kind, ahead, other, when = jax.random.split(key, 4)
        (size,), end = step.shape, episodes.length(episode)
        if self.geometric:
            draws = 1.0 - jax.random.uniform(ahead, (size,))  # never 0
            steps = 1 + jnp.floor(jnp.log(draws) / jnp.log(self.discount)).astype(jnp.int32)
            later = jnp.minimum(step + steps, end)
        else:
            later = jax.random.randint(ahead, (size,), step + 1, end + 1)
        anywhere = episodes.achieved[episodes.draw_place(other, when, size, rows)]
        share = jax.random.uniform(kind, (size,))
        now = share < self.current
        soon = ~now & (share < self.current + self.future)
        random = share < self.current + self.future + self.random
        goal = jnp.where(random[:, None], anywhere, episodes.desired(episode, step))
        goal = jnp.where(soon[:, None], episodes.achieved[episodes.at(episode, later)], goal)
        goal = jnp.where(now[:, None], episodes.achieved[episodes.at(episode, step)], goal)
        last = jnp.where(now, step, jnp.where(soon, later, end))
        return goal, jnp.where(soon, later - step, 0), last


@pytree
class ValueGoals(GoalMix):
    """Goals that values are learned for."""


@pytree
class PolicyGoals(GoalMix):
    """Goals that the policy is trained towards."""


@pytree
class GoalMixes:
    """Goals of one mix for values and of another for the policy.

    What is achieved `steps` ahead comes along: `extra_goals["ahead"]`, at most at the end of the
    episode, and `extra_goals["way"]`, at most where the policy's goal is achieved. Under the same
    names, `extra_observations` has what is observed there.

    With `between`, so does a step drawn uniformly from t … i − 1, where i is that of the value's
    goal, or t if that is not later in the episode. `extras["action"]` is what is done there, and
    `extras["offset"]` how many steps ahead it is.
    """

    value: ValueGoals = dataclasses.field(default_factory=ValueGoals)
    policy: PolicyGoals = dataclasses.field(default_factory=PolicyGoals)
    steps: int = static(default=1)
    between: bool = static(default=False)

    def sample(
        self,
        key: jax.Array,
        episodes: Episodes,
        size: int,
        threshold: float,
        rows: Rows,
    ) -> Batch:
        which, when, value_key, policy_key, middle = jax.random.split(key, 5)
        episode, step = episodes.draw(which, when, size, rows)
        goal, offset, _ = self.value.draw(value_key, episodes, episode, step, rows)
        policy_goal, _, last = self.policy.draw(policy_key, episodes, episode, step, rows)
        steps = {
            "ahead": jnp.minimum(step + self.steps, episodes.length(episode)),
            "way": jnp.minimum(step + self.steps, last),
        }
        extras = {}
        if self.between:
            passed = jax.random.randint(middle, (size,), 0, jnp.maximum(offset, 1))
            steps["between"] = step + passed
            there = episodes.actions[episodes.at(episode, steps["between"])]
            extras = {"action": there, "offset": passed}
        places = {name: episodes.at(episode, each) for name, each in steps.items()}
        batch = transitions(episodes, episode, step, goal, offset, threshold)
        return dataclasses.replace(
            batch,
            policy_goal=policy_goal,
            extra_goals={name: episodes.achieved[at] for name, at in places.items()},
            extra_observations={name: episodes.observations[at] for name, at in places.items()},
            extras=extras,
        )
