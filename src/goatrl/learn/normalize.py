"""Inputs to zero mean and unit spread, clipped. Statistics are taken once from the dataset."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from goatrl.learn import symmetry
from goatrl.learn.networks import View, view_of
from goatrl.learn.symmetry import Map, Moments
from goatrl.types import Algorithm, Batch, Episodes, Metrics, Spec, TrainState, pytree

CLIP = 10.0
FLOOR = 1e-4  # smallest standard deviation, so that a constant input stays finite


@pytree
class Normalizer:
    observation_mean: jax.Array
    observation_std: jax.Array
    goal_mean: jax.Array
    goal_std: jax.Array
    # what is achieved in the data, in places that a view bounds; endless elsewhere
    lowest: jax.Array | None = None
    highest: jax.Array | None = None

    def observation(self, x: jax.Array) -> jax.Array:
        return _normalize(x, self.observation_mean, self.observation_std)

    def goal(self, x: jax.Array) -> jax.Array:
        return _normalize(x, self.goal_mean, self.goal_std)

    def batch(self, batch: Batch) -> Batch:
        """All observations and goals of a batch, those that only some samplers draw among them."""
        return dataclasses.replace(
            batch,
            observation=self.observation(batch.observation),
            next_observation=self.observation(batch.next_observation),
            initial_observation=self.observation(batch.initial_observation),
            achieved=self.goal(batch.achieved),
            next_achieved=self.goal(batch.next_achieved),
            goal=self.goal(batch.goal),
            policy_goal=self.goal(batch.policy_goal),
            extra_observations=jax.tree.map(self.observation, batch.extra_observations),
            extra_goals=jax.tree.map(self.goal, batch.extra_goals),
        )


def _normalize(x: jax.Array, mean: jax.Array, std: jax.Array) -> jax.Array:
    return jnp.clip(
        (x - jnp.broadcast_to(mean, x.shape)) / jnp.broadcast_to(std, x.shape), -CLIP, CLIP
    )


def update(
    algorithm: Algorithm, state: TrainState, batch: Batch, key: jax.Array
) -> tuple[TrainState, Metrics]:
    """One update on a batch as it was sampled. Here and in `act` alone are inputs normalised."""
    return algorithm.update(state, state.normalizer.batch(batch), key)


def act(
    algorithm: Algorithm, state: TrainState, observation: jax.Array, goal: jax.Array
) -> jax.Array:
    """What an agent does: (B, observation_dim), (B, goal_dim) → (B, action_dim)."""
    known, view = state.normalizer, view_of(algorithm)
    if view is not None and view.bounded:
        observation, goal = view.within(observation, goal, known.lowest, known.highest)
    return algorithm.act(state, known.observation(observation), known.goal(goal))


def identity(spec: Spec, view: View | None = None) -> Normalizer:
    observation, goal = (spec.observation_dim,), (spec.goal_dim,)
    found = Normalizer(
        jnp.zeros(observation), jnp.ones(observation), jnp.zeros(goal), jnp.ones(goal)
    )
    return bounded(found, view, np.full(goal, -np.inf), np.full(goal, np.inf))


def bounded(
    known: Normalizer, view: View | None, lowest: np.ndarray, highest: np.ndarray
) -> Normalizer:
    """With bounds of what is achieved along the vertical axes, if a view has such."""
    if view is None or not view.bounded:
        return known
    upwards = np.isin(np.arange(lowest.shape[-1]), view.vertical)
    low, high = np.where(upwards, lowest, -np.inf), np.where(upwards, highest, np.inf)
    return dataclasses.replace(
        known, lowest=jnp.asarray(low, jnp.float32), highest=jnp.asarray(high, jnp.float32)
    )


def future_goal_weights(horizon: int) -> np.ndarray:
    """How often step i = 1 … T is drawn as the later step of a uniformly drawn t < i; sums to 1."""
    later = 1.0 / (
        horizon - np.arange(horizon)
    )  # 1 / (T - t): each of the later steps of t is equally likely
    return np.cumsum(later) / horizon


def from_episodes(
    episodes: Episodes, view: View | None = None, maps: Sequence[Map] = ()
) -> Normalizer:
    """Observation statistics over all steps; goal statistics over the goals that
    relabelling draws; both of what is seen through the maps of a symmetry.
    """
    observations = np.asarray(episodes.observations, np.float64).reshape(
        -1, episodes.observations.shape[-1]
    )
    if episodes.lengths is None:
        goals = np.asarray(episodes.achieved, np.float64)[:, 1:]
        weights = future_goal_weights(episodes.horizon)[None, :, None] / episodes.count
        axes: tuple[int, ...] = (0, 1)
    else:
        episode, step = episodes.steps()
        goals = np.asarray(episodes.achieved, np.float64)[episodes.at(episode, step + 1)]
        lengths, axes = np.asarray(episodes.lengths), (0,)
        known = {length: length * future_goal_weights(length) for length in np.unique(lengths)}
        weights = np.concatenate([known[length] for length in lengths])[:, None] / len(goals)
    goal_mean = (weights * goals).sum(axes)
    goal_var = (weights * (goals - goal_mean) ** 2).sum(axes)
    found = from_moments(
        (observations.mean(0), observations.std(0)), (goal_mean, np.sqrt(goal_var)), view, maps
    )
    achieved = np.asarray(episodes.achieved, np.float64).reshape(-1, goals.shape[-1])
    ends = achieved.min(axis=0), achieved.max(axis=0)
    for each in maps:
        ends = symmetry.extremes(each, ends)
    return bounded(found, view, *ends)


def from_moments(
    observation: Moments, goal: Moments, view: View | None, maps: Sequence[Map] = ()
) -> Normalizer:
    """What a view compares with the goal is normalised like the goal, both by the larger spread: a
    goal that hardly varies in height must not make what does exceed all bounds.
    """
    for each in maps:
        observation = symmetry.mixed(each, "observation", observation)
        goal = symmetry.mixed(each, "goal", goal)
    (mean, std), (goal_mean, goal_std) = (map(np.array, each) for each in (observation, goal))
    if view is not None:
        for column, axis in view.axes.items():
            goal_std[..., axis] = np.maximum(goal_std[..., axis], std[..., column])
        for column, axis in view.axes.items():
            mean[..., column], std[..., column] = goal_mean[..., axis], goal_std[..., axis]
    std, goal_std = np.maximum(std, FLOOR), np.maximum(goal_std, FLOOR)
    return Normalizer(
        *(jnp.asarray(each, jnp.float32) for each in (mean, std, goal_mean, goal_std))
    )
