"""Distances as values: numbers by hand, and what makes them quasimetrics."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from goatrl.learn import quasimetric
from goatrl.learn.quasimetric import Quasimetric
from helpers import make_batch, network

both_ways = pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
KEY = jax.random.key(0)


@both_ways
def test_the_union_of_intervals_by_hand(wrap):
    """[0, 3], [1, 2], [5, 6] and an empty one; then two that only touch, one that is empty, and one
    within a gap.
    """
    start = jnp.asarray([[5.0, 0.0, 1.0, 9.0, 0.0, 1.0, 4.0, 2.5]])
    end = jnp.asarray([[6.0, 3.0, 2.0, 8.0, 1.0, 2.0, 4.0, 3.0]])
    found = wrap(quasimetric.interval_lengths, **({"static_argnums": 2} if wrap is jax.jit else {}))
    np.testing.assert_allclose(found(start, end, 4), [[4.0, 2.5]])
    np.testing.assert_allclose(found(end, start, 4), [[1.0, 0.0]])  # only [8, 9]
    np.testing.assert_allclose(found(start, end, 8), [[3.0 + 0.0 + 1.0]])


def test_intervals_that_begin_together_count_once():
    start, end = jnp.zeros((1, 3)), jnp.asarray([[2.0, 3.0, 1.0]])

    def length(end):
        return quasimetric.interval_lengths(start, end, 3)[0, 0]

    assert float(length(end)) == 3.0
    np.testing.assert_array_equal(jax.grad(length)(end), [[0.0, 1.0, 0.0]])


def test_a_distance_mixes_the_mean_and_the_largest():
    start, end = jnp.zeros((1, 4)), jnp.asarray([[1.0, 2.0, 6.0, 3.0]])
    even = quasimetric.interval_distance(start, end, jnp.asarray(0.0), 2)
    np.testing.assert_allclose(even, [0.5 * 4.0 + 0.5 * 6.0])  # groups of lengths 2 and 6
    mean = quasimetric.interval_distance(start, end, jnp.log(jnp.asarray(3.0)), 2)
    np.testing.assert_allclose(mean, [0.75 * 4.0 + 0.25 * 6.0], rtol=1e-6)


numbers = arrays(np.float32, (1, 6), elements=st.floats(-4, 4, width=16))


@given(numbers, numbers, numbers)
def test_it_is_a_quasimetric(x, y, z):
    def d(start, end):
        return float(quasimetric.interval_distance(start, end, jnp.asarray(0.3), 3)[0])

    x, y, z = (jnp.asarray(each) for each in (x, y, z))
    assert d(x, x) == 0.0
    assert d(x, y) >= 0.0
    assert d(x, z) <= d(x, y) + d(y, z) + 1e-4


@both_ways
def test_states_and_goals_are_pushed_apart(wrap):
    distance = jnp.asarray([500.0, 0.0])
    expected = 100 * (np.log(2.0) + np.log1p(np.exp(5.0))) / 2
    np.testing.assert_allclose(wrap(quasimetric.spreading_loss)(distance), expected, rtol=1e-6)


@both_ways
def test_the_multiplier_grows_where_the_constraint_is_violated(wrap):
    two = jnp.log(jnp.asarray(2.0))
    slopes = wrap(jax.grad(quasimetric.multiplier_loss, argnums=(0, 1)))
    by_violation, by_multiplier = slopes(jnp.asarray(0.25), two, 0.05)
    np.testing.assert_allclose(by_violation, 2.0, rtol=1e-6)  # λ
    np.testing.assert_allclose(by_multiplier, 2.0 * (0.05 - 0.25), rtol=1e-6)  # down is larger
    assert float(slopes(jnp.asarray(0.01), two, 0.05)[1]) > 0


# f(s) = (s, −s), h(g) = (g, 0), m(z, a) = (a, 0): intervals in one group of two.
PART = Quasimetric(groups=1, group=2)
PARAMS = {
    "state": network(([[1.0, -1.0]], [0.0, 0.0])),
    "goal": network(([[1.0, 0.0]], [0.0, 0.0])),
    "step": network(([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]], [0.0, 0.0])),
    "mix": jnp.zeros(()),
    "log_multiplier": jnp.log(jnp.asarray(3.0)),
}
BATCH = make_batch(
    observation=jnp.asarray([[1.0], [2.0]]),
    action=jnp.asarray([[0.5], [-1.0]]),
    next_observation=jnp.asarray([[3.0], [2.5]]),
    initial_observation=jnp.zeros((2, 1)),
    achieved=jnp.zeros((2, 1)),
    next_achieved=jnp.asarray([[4.0], [1.0]]),
    goal=jnp.asarray([[2.0], [-1.0]]),
    reward=jnp.zeros(2),
    offset=jnp.asarray([0, 0]),
)


def test_the_loss_of_a_quasimetric():
    """One group: its length is mean and largest at once.

    d(s, g): [1, 2] and [−1, 0], 2; nothing and [−2, 0], 2.
    d(s, s'): [1, 3] alone, 2; [2, 2.5] alone, ½: excesses 1 and 0.
    d(s', φ(s')): (3, −3) to (4, 0), 1 + 3 = 4; (2.5, −2.5) to (1, 0), 2.5.
    ẑ' = (1.5, −1) and (1, −2). To it from s' = (3, −3): [−3, −1], 2; from (2.5, −2.5): ½. From it:
    [1.5, 3], 1.5; [1, 2.5], 1.5.
    """
    loss, metrics = PART.loss(PARAMS, PARAMS, BATCH, BATCH.action, 0.9, KEY)
    spread = 100 * np.log1p(np.exp(5 - 0.02))
    model = 0.5 * (2.0 + 1.5 + 0.5 + 1.5) / 2
    violation = (1.0 + 16.0 + 6.25) / 2
    np.testing.assert_allclose(metrics["violation"], violation, rtol=1e-6)
    np.testing.assert_allclose(metrics["model_loss"], model, rtol=1e-6)
    np.testing.assert_allclose(metrics["value"], -2.0)
    held = 3 * violation + 3 * (0.05 - violation)
    np.testing.assert_allclose(loss, spread + model + held, rtol=1e-6)


def test_metrics_say_if_embeddings_are_no_numbers():
    """Distances may not, as a compiled maximum drops NaN on a processor."""
    broken = PARAMS | {"state": network(([[np.nan, -1.0]], [0.0, 0.0]))}
    _, metrics = jax.jit(PART.loss)(broken, broken, BATCH, BATCH.action, 0.9, KEY)
    assert np.isnan(metrics["embedding"])
    _, metrics = PART.loss(PARAMS, PARAMS, BATCH, BATCH.action, 0.9, KEY)
    assert float(metrics["embedding"]) == 1.5


def test_values_are_distances_after_the_action():
    """From (1.5, −1) to (2, 0): ½ + 1; from (1, −2) to (−1, 0): 2."""
    values = PART.values(PARAMS, BATCH.observation, BATCH.goal, BATCH.action)
    np.testing.assert_allclose(values, [[-1.5, -2.0]])
    idle = jnp.zeros((2, 1))  # (1, −1) to (2, 0): 2, and (2, −2) to (−1, 0): 2
    found, value = PART.advantage(PARAMS, PARAMS, BATCH, idle, idle, 0.9)
    np.testing.assert_allclose(value, [[-2.0, -2.0]])
    np.testing.assert_allclose(found, [0.5, 0.0])
