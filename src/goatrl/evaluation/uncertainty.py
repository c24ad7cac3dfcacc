"""What an agent's ensemble of values is uncertain about."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from goatrl.learn.samplers import Hindsight
from goatrl.learn.weights import Uncertainty, uncertainty_weight
from goatrl.types import Episodes, GoatError, Spec, TrainState

SAMPLES, PORTION = 10_000, 1_000


def _ensemble(algorithm: Any) -> Any:
    value = getattr(algorithm, "value", None)
    if getattr(value, "size", 1) < 2:
        raise GoatError(
            "this agent has no value ensemble; use an algorithm that has one, such as goat"
        )
    return value


def value_spread(algorithm: Any, state: TrainState, goals: np.ndarray) -> np.ndarray:
    """Std(s_0, g) of an agent's value ensemble from the origin, for each goal: (G, goal_dim) →
    (G,).
    """
    value = _ensemble(algorithm)
    goal = state.normalizer.goal(jnp.asarray(goals, jnp.float32))
    start = state.normalizer.observation(
        jnp.zeros((len(goals), state.normalizer.observation_mean.shape[0]))
    )
    action = algorithm.act(state, start, goal)
    values = value.values(state.params["value"], start, goal, action)
    return np.asarray(jnp.std(values, axis=0))


@dataclasses.dataclass(frozen=True, eq=False)
class Ranking:
    """Relabelled samples in portions of equal size, from the smallest uncertainty weight to the
    largest: a mean of each portion.
    """

    weight: np.ndarray
    loss: np.ndarray  # ‖a − π(s, g')‖²
    distance: np.ndarray  # ‖g' − φ(s)‖²


def rank_by_weight(
    algorithm: Any, state: TrainState, episodes: Episodes, spec: Spec, seed: int = 0
) -> Ranking:
    """What the uncertainty weight prefers (paper, section "Understanding the Uncertainty
    Weight").
    """
    value = _ensemble(algorithm)
    weighted = next(
        (
            part
            for part in getattr(algorithm.policy, "weights", ())
            if isinstance(part, Uncertainty)
        ),
        Uncertainty(),
    )
    key = jax.random.key(seed)
    batch = Hindsight().sample(key, episodes, SAMPLES, spec.goal_threshold, episodes.rows)
    distance = jnp.sum((batch.goal - batch.achieved) ** 2, axis=-1)
    seen = state.normalizer.batch(batch)
    action = algorithm.act(state, seen.observation, seen.goal)
    loss = jnp.sum((batch.action - action) ** 2, axis=-1)
    spread = jnp.std(
        value.values(state.params["value"], seen.observation, seen.goal, action), axis=0
    )
    weight = uncertainty_weight(spread, spread.min(), spread.max(), weighted.w, weighted.minimum)
    return portions(
        np.asarray(spread), np.asarray(weight), np.asarray(loss), np.asarray(distance), PORTION
    )


def portions(
    rank: np.ndarray, weight: np.ndarray, loss: np.ndarray, distance: np.ndarray, size: int
) -> Ranking:
    """Means over portions of `size` samples in the order of `rank`."""
    order = np.argsort(rank, kind="stable")
    return Ranking(
        *(values[order].reshape(-1, size).mean(axis=1) for values in (weight, loss, distance))
    )
