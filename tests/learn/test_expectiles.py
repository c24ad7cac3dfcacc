"""Values of goals by expectiles: numbers by hand."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl.learn import expectiles
from goatrl.learn.expectiles import ExpectileQ, ExpectileV
from helpers import ensemble, linear, make_batch

both_ways = pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
KEY = jax.random.key(0)

# Networks see (s, g), or (s, g, a): one number each.
BATCH = make_batch(
    observation=jnp.asarray([[1.0], [2.0], [3.0]]),
    action=jnp.asarray([[0.5], [-1.0], [0.0]]),
    next_observation=jnp.asarray([[2.0], [3.0], [8.0]]),
    initial_observation=jnp.zeros((3, 1)),
    achieved=jnp.zeros((3, 1)),
    goal=jnp.asarray([[1.0], [1.0], [2.0]]),
    reward=jnp.asarray([0.0, 1.0, 0.0]),
    offset=jnp.asarray([1, 2, 0]),
)
ENDED = dataclasses.replace(BATCH, ended=jnp.asarray([0.0, 1.0, 1.0]))


@both_ways
def test_a_step_costs_one_up_to_the_goal(wrap):
    next_value = jnp.asarray([[-4.0, -6.0, -8.0], [0.0, 2.0, -2.0]])
    found = wrap(expectiles.cost_target)(BATCH, next_value, 0.5)
    np.testing.assert_allclose(found, [[-3.0, 0.0, -5.0], [-1.0, 0.0, -2.0]])


@both_ways
def test_where_an_episode_was_ended_no_goal_is_reached_any_more(wrap):
    next_value = jnp.asarray([-4.0, -6.0, -8.0])
    np.testing.assert_allclose(wrap(expectiles.continued)(ENDED, next_value, 0.75), [-4, -4, -4])
    np.testing.assert_allclose(expectiles.continued(ENDED, next_value, 0.75, 2.0), [-4, -8, -8])
    # −1 + ¾ · −4 for the last, which is −1/(1 − γ) again; at the goal it does not matter
    np.testing.assert_allclose(wrap(expectiles.cost_target)(ENDED, next_value, 0.75), [-4, 0, -4])


def test_no_gradient_flows_through_the_target():
    slope = jax.grad(lambda v: expectiles.cost_target(BATCH, v, 0.5).sum())(jnp.ones(3))
    np.testing.assert_array_equal(slope, np.zeros(3))


@both_ways
def test_the_advantage_decides_the_side_of_the_error(wrap):
    advantage, error = jnp.asarray([-1.0, 0.0, 1.0, 1.0]), jnp.asarray([2.0, 2.0, -2.0, 1.0])
    np.testing.assert_allclose(
        wrap(expectiles.sided_loss)(advantage, error, 0.9), [0.4, 3.6, 3.6, 0.9], rtol=1e-6
    )


TARGET_V = ensemble(linear(-1.0, 0.0), linear(0.0, -3.0))  # −s and −3g
V = ensemble(linear(0.0, 0.0, bias=-1.0), linear(0.0, 0.0, bias=-2.0))


def test_the_loss_of_v():
    """γ = ½. Targets: of the next state, −s' = (−2, −3, −8) and −3g = (−3, −3, −6); now, −s = (−1,
    −2, −3) and −3g, in the mean (−2, −2.5, −4.5). A = (−1 − 1.5, 0, −1 − 4) − that = (−0.5, 2.5,
    −0.5). Errors of the first head: (−2, 0, −5) + 1, of the second: (−2.5, 0, −4) + 2.
    """
    loss, metrics = ExpectileV(expectile=0.75).loss(V, TARGET_V, BATCH, BATCH.action, 0.5, KEY)
    first = 0.25 * 1.0 + 0.75 * 1.0 + 0.25 * 16.0
    second = 0.25 * 0.25 + 0.75 * 4.0 + 0.25 * 4.0
    np.testing.assert_allclose(loss, (first + second) / 3, rtol=1e-6)
    np.testing.assert_allclose(metrics["value"], -1.5)
    np.testing.assert_allclose(metrics["value_loss"], (first + second) / 6, rtol=1e-6)


def test_the_advantage_of_v_is_what_the_step_wins():
    found, values = ExpectileV().advantage(TARGET_V, V, BATCH, BATCH.action, BATCH.action, 0.5)
    np.testing.assert_allclose(found, [-0.5, -0.5, -2.5])  # the mean of −(s' − s) and 0
    np.testing.assert_allclose(values, [[-1, -2, -3], [-3, -3, -6]])
    ended, _ = ExpectileV().advantage(TARGET_V, V, ENDED, BATCH.action, BATCH.action, 0.5)
    np.testing.assert_allclose(ended, [-0.5, 0.5, 2.5])  # −2 at the end, whatever the state


TARGET_Q = {"q": ensemble(linear(1.0, 0.0, 2.0), linear(0.0, 0.0, 4.0)), "v": linear(9.0, 9.0)}
Q = {"q": ensemble(linear(0.0, 0.0, 1.0), linear(0.0, 1.0, 0.0)), "v": linear(-1.0, 0.0)}


def test_the_loss_of_q_and_v():
    """γ = ½. Target's Q: s + 2a = (2, 0, 3) and 4a = (2, −4, 0), at least (2, −4, 0); V = −s = (−1,
    −2, −3). Errors (3, −2, 3). Aims of Q: (−1 − 1, 0, −1 − 4); Q: a = (½, −1, 0), g = (1, 1, 2).
    """
    loss, metrics = ExpectileQ(expectile=0.75).loss(Q, TARGET_Q, BATCH, BATCH.action, 0.5, KEY)
    v_loss = (0.75 * 9 + 0.25 * 4 + 0.75 * 9) / 3
    q_loss = (6.25 + 1 + 25) / 3 + (9 + 1 + 49) / 3
    np.testing.assert_allclose(loss, v_loss + q_loss, rtol=1e-6)
    np.testing.assert_allclose(metrics["value"], -2.0)


def test_q_learns_nothing_through_v_and_v_nothing_through_q():
    part = ExpectileQ()
    slopes = jax.grad(lambda p: part.loss(p, TARGET_Q, BATCH, BATCH.action, 0.5, KEY)[0])(Q)
    # by the bias: −2 Σ |κ − 1(u < 0)| u / 3 of V's own errors alone
    expected = -2 * (0.9 * 3 - 0.1 * 2 + 0.9 * 3) / 3
    np.testing.assert_allclose(slopes["v"].layers[0]["b"], [expected], rtol=1e-6)


def test_values_and_advantage_of_q():
    part = ExpectileQ()
    values = part.values(Q, BATCH.observation, BATCH.goal, BATCH.action)
    np.testing.assert_allclose(values, [[0.5, -1.0, 0.0], [1.0, 1.0, 2.0]])
    found, value = part.advantage(Q, TARGET_Q, BATCH, BATCH.goal, BATCH.goal, 0.5)
    np.testing.assert_allclose(found, [1.5, 1.0, 3.0])  # min(a, g) + s
    np.testing.assert_allclose(value, [[-1.0, -2.0, -3.0]])
