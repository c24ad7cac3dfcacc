"""SMORe's scores: numbers by hand."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from goatrl.algorithms.smore import ScoreQ, score_loss
from helpers import ensemble, linear, make_batch

BATCH = make_batch(
    observation=jnp.asarray([[1.0], [2.0]]),
    action=jnp.asarray([[0.5], [-1.0]]),
    next_observation=jnp.asarray([[2.0], [3.0]]),
    initial_observation=jnp.zeros((2, 1)),
    achieved=jnp.zeros((2, 1)),
    next_achieved=jnp.asarray([[4.0], [6.0]]),
    goal=jnp.asarray([[1.0], [3.0]]),
    reward=jnp.asarray([0.0, 1.0]),
    offset=jnp.asarray([1, 2]),
)
Q = {"q": ensemble(linear(0.0, 1.0, 0.0), linear(0.0, 0.0, 4.0)), "v": linear(-1.0, 0.0)}
TARGET = {"q": ensemble(linear(1.0, 0.0, 0.0), linear(0.0, 2.0, 0.0)), "v": linear(9.0, 9.0)}


def test_the_score_loss():
    """γ = ½ and c = 2: entering is worth 4."""
    q, entering = jnp.asarray([[1.0, 3.0], [0.0, 2.0]]), jnp.asarray([[4.0, 6.0], [3.0, 4.0]])
    loss = jax.jit(score_loss)(q, entering, jnp.asarray([-1.0, 3.0]), 0.5, 2.0)
    first = (0.0 + 4.0 + 0.5 * 4.0 + 0.0 + 5e-5 * 10.0) / 2
    second = (1.0 + 0.0 + 0.5 * 1.0 + 0.5 * 1.0 + 5e-5 * 4.0) / 2
    np.testing.assert_allclose(loss, first + second, rtol=1e-6)


def test_q_is_highest_where_a_step_enters_its_goal_and_rewards_do_not_matter():
    """Q: g = (1, 3) and 4a = (2, −4); of what is achieved next, (4, 6) and 4a. V(s') = −s'."""
    part = ScoreQ()
    q, entering = jnp.asarray([[1.0, 3.0], [2.0, -4.0]]), jnp.asarray([[4.0, 6.0], [2.0, -4.0]])
    expected = score_loss(q, entering, jnp.asarray([-3.0, -3.5]), 0.5, 2.0)
    np.testing.assert_allclose(part.q_loss(Q, BATCH, 0.5), expected, rtol=1e-6)
    other = dataclasses.replace(BATCH, reward=1.0 - BATCH.reward, mask=BATCH.reward)
    np.testing.assert_array_equal(part.q_loss(Q, other, 0.5), part.q_loss(Q, BATCH, 0.5))
    ended = dataclasses.replace(BATCH, ended=jnp.asarray([0.0, 1.0]))
    lost = score_loss(q, entering, jnp.asarray([-3.0, -4.0]), 0.5, 2.0)  # −c/(1 − γ)
    np.testing.assert_allclose(part.q_loss(Q, ended, 0.5), lost, rtol=1e-6)


def test_the_advantage_takes_the_targets_q_and_the_online_v():
    found, value = ScoreQ().advantage(Q, TARGET, BATCH, BATCH.action, BATCH.action, 0.5)
    np.testing.assert_allclose(found, [2.0, 4.0])  # min(s, 2g) + s
    np.testing.assert_allclose(value, [[-1.0, -2.0]])
