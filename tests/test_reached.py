"""The one definition of a reached goal gives what was compared before, bit by bit."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl.types import distance, reached

SHAPE = (2, 40, 50)  # members, episodes, steps


def near_the_threshold(
    dimension: int, threshold: float, dtype: type
) -> tuple[np.ndarray, np.ndarray]:
    """Achieved goals on a sphere around their goals, so that rounding decides whether they are
    within it.
    """
    generator = np.random.default_rng(dimension)
    goals = generator.normal(size=(1, SHAPE[1], 1, dimension))
    way = generator.normal(size=(*SHAPE, dimension))
    way *= threshold / np.linalg.norm(way, axis=-1, keepdims=True)
    return (goals + way).astype(dtype), goals.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("dimension", "threshold"), [(2, 1.0), (3, 0.05), (15, 0.01)])
def test_numpy_is_compared_as_before(dimension: int, threshold: float, dtype: type) -> None:
    achieved, goals = near_the_threshold(dimension, threshold, dtype)
    before = np.linalg.norm(achieved - goals, axis=-1)
    met = reached(achieved, goals, threshold)
    np.testing.assert_array_equal(distance(achieved, goals), before)
    np.testing.assert_array_equal(met, before <= threshold)
    assert distance(achieved, goals).dtype == dtype
    assert 0.1 < met.mean() < 0.99, "rounding decides"
    # Steps left out before the distances are taken, or after: it makes no difference.
    np.testing.assert_array_equal(reached(achieved[:, :, 1:], goals, threshold), met[:, :, 1:])
    np.testing.assert_array_equal(distance(achieved[:, :, -1:], goals)[..., 0], before[..., -1])
    one = achieved[0, 0], goals[0, 0, 0]
    np.testing.assert_array_equal(distance(*one), before[0, 0])
    assert distance(one[0][-1], one[1]) == before[0, 0, -1]
    rewards = np.sqrt(((achieved - goals) ** 2).sum(axis=-1)) <= threshold  # of datasets
    np.testing.assert_array_equal(met, rewards)


@pytest.mark.parametrize(("dimension", "threshold"), [(2, 1.0), (3, 0.05), (15, 0.01)])
@pytest.mark.parametrize("compiled", [False, True])
def test_jax_is_compared_as_before(dimension: int, threshold: float, compiled: bool) -> None:
    def before(achieved: jax.Array, goal: jax.Array) -> jax.Array:
        return jnp.sqrt(jnp.sum((achieved - goal) ** 2, axis=-1)) <= threshold

    def now(achieved: jax.Array, goal: jax.Array) -> jax.Array:
        return reached(achieved, goal, threshold)

    achieved, goals = map(jnp.asarray, near_the_threshold(dimension, threshold, np.float32))
    functions = (jax.jit(before), jax.jit(now)) if compiled else (before, now)
    one, other = (function(achieved, goals) for function in functions)
    assert isinstance(other, jax.Array)
    np.testing.assert_array_equal(one, other)


def test_a_single_goal_is_compared_too() -> None:
    assert reached(np.array([0.0, 0.05]), np.zeros(2), 0.05)
    assert not reached(np.array([0.0, 0.0500001]), np.zeros(2), 0.05)
