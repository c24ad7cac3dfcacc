"""TRL's products of values: numbers by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl.algorithms.trl import TransitiveQ, known_if_near, transitive_loss
from helpers import ensemble, linear, make_batch

both_ways = pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
KEY = jax.random.key(0)


def logit(p: float) -> float:
    return float(np.log(p / (1 - p)))


@both_ways
def test_what_is_near_is_known(wrap):
    found = wrap(known_if_near)(jnp.zeros((2, 3)), jnp.asarray([0, 1, 2]), 0.9)
    np.testing.assert_allclose(found, [[1.0, 0.9, 0.5]] * 2, rtol=1e-6)


@both_ways
def test_the_loss_by_hand(wrap):
    """γ = ½: targets ¼ and ½ are 2 steps and 1 away. σ(x) = ½ and ¼: above the one, below the
    other.
    """
    x, target = jnp.asarray([[0.0, logit(0.25)]]), jnp.asarray([[0.25, 0.5]])
    entropies = np.array([np.log(2.0), -0.5 * np.log(0.25) - 0.5 * np.log(0.75)])
    plain = wrap(transitive_loss)(x, target, 0.5, 0.8, 0.0)
    np.testing.assert_allclose(plain, (np.array([0.2, 0.8]) * entropies).mean(), rtol=1e-6)
    decayed = wrap(transitive_loss)(x, target, 0.5, 0.8, 2.0)
    expected = (np.array([0.2 / 9, 0.8 / 4]) * entropies).mean()
    np.testing.assert_allclose(decayed, expected, rtol=1e-6)


BATCH = make_batch(
    observation=jnp.asarray([[1.0], [2.0]]),
    action=jnp.asarray([[0.5], [-1.0]]),
    next_observation=jnp.zeros((2, 1)),
    initial_observation=jnp.zeros((2, 1)),
    achieved=jnp.zeros((2, 1)),
    goal=jnp.asarray([[3.0], [4.0]]),
    reward=jnp.zeros(2),
    offset=jnp.asarray([5, 3]),
    extra_goals={"between": jnp.asarray([[2.0], [1.0]])},
    extra_observations={"between": jnp.asarray([[-1.0], [-2.0]])},
    extras={"action": jnp.asarray([[0.25], [0.75]]), "offset": jnp.asarray([2, 2])},
)
# Of the target: s + a and g; online: 0 and a. Each has a target of its own.
TARGET = ensemble(linear(1.0, 0.0, 1.0), linear(0.0, 1.0, 0.0))
ONLINE = ensemble(linear(0.0, 0.0, 0.0), linear(0.0, 0.0, 1.0))


def test_the_way_is_divided_in_two():
    """To w: s + a = (1.5, 1) and w = (2, 1). From w: w's state and action, (−0.75, −1.25), and g =
    (3, 4); the second row's is one step, γ = ½.
    """
    loss, metrics = TransitiveQ().loss(ONLINE, TARGET, BATCH, BATCH.action, 0.5, KEY)
    first = jax.nn.sigmoid(jnp.asarray([[1.5, 1.0], [2.0, 1.0]]))
    second = jax.nn.sigmoid(jnp.asarray([[-0.75, 0.0], [3.0, 0.0]]))  # σ(0) = ½
    logits = jnp.asarray([[0.0, 0.0], [0.5, -1.0]])
    expected = transitive_loss(logits, first * second, 0.5, 0.7, 0.0)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    np.testing.assert_allclose(metrics["value"], jax.nn.sigmoid(logits).mean(), rtol=1e-6)


def test_values_are_logits_and_advantages_their_differences():
    part, idle = TransitiveQ(), jnp.zeros((2, 1))
    values = part.values(TARGET, BATCH.observation, BATCH.goal, BATCH.action)
    np.testing.assert_allclose(values, [[1.5, 1.0], [3.0, 4.0]])
    found, value = part.advantage(TARGET, TARGET, BATCH, idle, idle, 0.5)
    np.testing.assert_allclose(value, [[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(found, [0.25, -0.5])
