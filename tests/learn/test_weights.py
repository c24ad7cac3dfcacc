"""Weights: every formula by hand, running statistics, and the two parts that learn."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from goatrl.learn import quantile, weights
from goatrl.learn.networks import Architecture
from goatrl.learn.policies import weighted_regression_loss
from goatrl.learn.weights import (
    RND,
    Chi2,
    DiscountedRelabeling,
    ExpAdvantage,
    LearnedSelection,
    PercentileSelection,
    Uncertainty,
    WeightInputs,
)
from goatrl.types import Spec
from helpers import linear, make_batch, network

both_ways = pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])

KEY = jax.random.key(0)
SPEC = Spec(observation_dim=1, goal_dim=1, action_dim=1, horizon=5, goal_threshold=0.1)
SMALL = Architecture(hidden=(4,))


def inputs_of(
    advantage=(0.0, 0.0),
    values=((0.0, 0.0),),
    offset=(0, 0),
    observation=(1.0, 3.0),
    step=0,
    discount=0.98,
):
    column = jnp.asarray(observation)[:, None]
    zeros = jnp.zeros_like(column)
    batch = make_batch(
        observation=column,
        action=zeros,
        next_observation=column,
        initial_observation=column,
        achieved=zeros,
        goal=zeros,
        reward=zeros[:, 0],
        offset=jnp.asarray(offset),
    )
    return WeightInputs(
        batch, jnp.asarray(advantage), jnp.asarray(values), discount, jnp.asarray(step)
    )


# Functions


@both_ways
def test_exponential_advantage_by_hand(wrap):
    got = wrap(weights.exponential_advantage)(jnp.asarray([0.0, 0.5, -0.5, 3.0, 99.0]), 2.0, 10.0)
    np.testing.assert_allclose(got, [1.0, 2.7182817, 0.36787945, 10.0, 10.0], rtol=1e-6)


@both_ways
def test_chi_squared_by_hand(wrap):
    advantage = jnp.asarray([-2.0, -1.0, 0.0, 0.5])
    np.testing.assert_array_equal(wrap(weights.chi_squared)(advantage, 1.0), [0.0, 0.0, 1.0, 1.5])
    np.testing.assert_array_equal(wrap(weights.chi_squared)(advantage, 0.0), [0.0, 0.0, 0.0, 0.5])


@both_ways
def test_data_selection_keeps_the_threshold_itself(wrap):
    got = wrap(weights.data_selection)(jnp.asarray([0.9, 1.0, 1.1]), jnp.asarray(1.0), 0.05)
    np.testing.assert_allclose(got, [0.05, 1.0, 1.0], rtol=1e-6)


@both_ways
def test_uncertainty_weight_by_hand(wrap):
    spread, low, high = jnp.asarray([1.0, 2.0, 3.0]), jnp.asarray(1.0), jnp.asarray(3.0)
    # Normalised (0, ½, 1); tanh(¼) = 0.2449187, tanh(½) = 0.4621172, tanh(1) = 0.7615942.
    np.testing.assert_allclose(
        wrap(weights.uncertainty_weight)(spread, low, high, 0.5, 0.5),
        [0.5, 0.7449187, 0.9621172],
        rtol=1e-6,
    )
    np.testing.assert_allclose(
        wrap(weights.uncertainty_weight)(spread, low, high, 2.0, 0.1),
        [0.1, 0.8615942, 1.0],
        rtol=1e-6,
    )
    np.testing.assert_allclose(
        wrap(weights.uncertainty_weight)(spread, low, high, 2.0, -0.5)[:1], [0.0]
    )


@both_ways
def test_linear_uncertainty_weight_by_hand(wrap):
    spread, low, high = jnp.asarray([1.0, 2.0, 3.0]), jnp.asarray(1.0), jnp.asarray(3.0)
    np.testing.assert_allclose(
        wrap(weights.linear_uncertainty_weight)(spread, low, high, 0.5, 0.25),
        [0.25, 0.5, 0.75],
        rtol=1e-6,
    )
    np.testing.assert_allclose(
        wrap(weights.linear_uncertainty_weight)(spread, low, high, 2.0, 0.5),
        [0.5, 1.0, 1.0],
        rtol=1e-6,
    )


def test_normalized_spread_of_equal_values_is_zero():
    np.testing.assert_array_equal(
        weights.normalized_spread(jnp.asarray([2.0, 2.0]), jnp.asarray(2.0), jnp.asarray(2.0)),
        [0.0, 0.0],
    )


@both_ways
def test_discounted_relabelling_by_hand(wrap):
    offset = jnp.asarray([0, 1, 2, 10])
    np.testing.assert_allclose(
        wrap(weights.discounted_relabelling)(offset, 0.98),
        [1.0, 0.98, 0.9604, 0.8170728],
        rtol=1e-6,
    )
    np.testing.assert_allclose(
        wrap(weights.discounted_relabelling)(offset, 0.5), [1.0, 0.5, 0.25, 0.0009765625], rtol=1e-6
    )


# Parts without state


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (ExpAdvantage(beta=1.0, clip=2.0), [0.36787945, 2.0]),
        (Chi2(offset=1.5), [0.5, 2.5]),
        (DiscountedRelabeling(), [0.9604, 0.8858424]),  # 0.98² and 0.98⁶
    ],
    ids=["exp", "chi2", "discounted"],
)
def test_stateless_parts_by_hand(part, expected):
    weight, carry = part(
        part.init(KEY, SPEC, SMALL), inputs_of(advantage=(-1.0, 1.0), offset=(2, 6))
    )
    np.testing.assert_allclose(weight, expected, rtol=1e-6)
    assert carry == ()


# Data selection by percentile

ADVANTAGE = (4.0, 1.0, 3.0, 2.0)


@jax.jit  # the part's numbers are arguments, so that one program serves all tests
def apply(part, carry, inputs):
    return part(carry, inputs)


def select(part: PercentileSelection, step: int, carry=None):
    carry = part.init(KEY, SPEC, SMALL) if carry is None else carry
    return apply(
        part, carry, inputs_of(ADVANTAGE, observation=(0.0,) * 4, offset=(0,) * 4, step=step)
    )


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (0, [1.0, 1.0, 1.0, 1.0]),  # α = 0: the threshold is the smallest
        (3, [1.0, 0.05, 1.0, 1.0]),  # α = 30: 1.9
        (5, [1.0, 0.05, 1.0, 0.05]),  # α = 50: 2.5
        (1000, [1.0, 0.05, 1.0, 0.05]),  # α stays at its maximum
    ],
)
def test_selection_tightens_with_the_step_up_to_its_maximum(step, expected):
    weight, _ = select(PercentileSelection(alpha_max=50.0, alpha_growth=10.0, capacity=8), step)
    np.testing.assert_allclose(weight, expected, rtol=1e-6)


def test_selection_scale_multiplies_the_advantage_but_not_the_threshold():
    part = PercentileSelection(alpha_max=50.0, alpha_growth=10.0, floor=0.2, scale=2.0, capacity=8)
    np.testing.assert_allclose(
        select(part, 5)[0], [1.0, 0.2, 1.0, 1.0], rtol=1e-6
    )  # (8, 2, 6, 4) against 2.5


def test_selection_compares_with_earlier_batches_too():
    part = PercentileSelection(alpha_max=50.0, alpha_growth=10.0, capacity=8)
    earlier = quantile.push(part.init(KEY, SPEC, SMALL), jnp.full(4, 10.0))
    weight, carry = select(part, 5, earlier)
    np.testing.assert_allclose(
        weight, [0.05] * 4, rtol=1e-6
    )  # median of 1, 2, 3, 4, 10, 10, 10, 10 is 7
    assert int(carry.count) == 8
    weight, _ = select(part, 5, carry)  # the tens have left the queue
    np.testing.assert_allclose(weight, [1.0, 0.05, 1.0, 0.05], rtol=1e-6)


# Uncertainty


def spread_of(*spreads: float):
    """Values of two critics that lie that far from their mean."""
    return inputs_of(values=([5.0 - s for s in spreads], [5.0 + s for s in spreads]))


@pytest.mark.parametrize(
    ("tanh", "expected"),
    [
        (True, [[0.5, 0.9621172], [0.9621172, 0.6243530], [0.6651404, 0.6651404]]),
        (False, [[0.5, 1.0], [1.0, 0.625], [0.6666667, 0.6666667]]),
    ],
    ids=["tanh", "linear"],
)
def test_uncertainty_is_normalised_by_the_extremes_of_recent_spreads(tanh, expected):
    part = Uncertainty(w=0.5, minimum=0.5, tanh=tanh, capacity=4)
    carry = part.init(KEY, SPEC, SMALL)
    got = []
    # Normalised: (0, 1) within 1 … 2; (1, ¼) within 1 … 3; then the first two have left: (⅓, ⅓)
    # within 1.5 … 3.
    for spreads in ((1.0, 2.0), (3.0, 1.5), (2.0, 2.0)):
        weight, carry = part(carry, spread_of(*spreads))
        got.append(weight)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_uncertainty_of_a_single_critic_is_the_minimum():
    part = Uncertainty(capacity=4)
    weight, _ = part(part.init(KEY, SPEC, SMALL), inputs_of(values=((1.0, 7.0),)))
    np.testing.assert_array_equal(weight, [0.5, 0.5])


# Parts that learn. Networks of one layer on (observation, goal), so that their outputs can be read
# off.


def test_adaptive_selection_learns_the_expectile():
    # Advantages 0, 1, 5 at the same place: their 0.9-expectile is 46/11 = 4.1818.
    part = LearnedSelection(beta=0.9, floor=0.05, learning_rate=0.05)
    params = linear(0.0, 0.0)
    inputs = inputs_of((0.0, 1.0, 5.0), observation=(0.0,) * 3, offset=(0,) * 3)
    first, _ = part((params, optax.adam(0.05).init(params)), inputs)
    np.testing.assert_array_equal(first, [1.0, 1.0, 1.0])  # the threshold before the step is 0

    def step(carry, _):
        weight, carry = part(carry, inputs)
        return carry, weight

    (learned, _), history = jax.lax.scan(step, (params, optax.adam(0.05).init(params)), length=500)
    np.testing.assert_allclose(learned.layers[0]["b"], [4.1818182], atol=0.02)
    np.testing.assert_allclose(history[-1], [0.05, 0.05, 1.0], rtol=1e-6)


def rnd_carry(part: RND):
    """The random network says (x, x), its predictor starts at 0: errors x²."""
    random = network(([[1.0, 1.0], [0.0, 0.0]], [0.0, 0.0]))
    predictor = jax.tree.map(jnp.zeros_like, random)
    return (
        random,
        predictor,
        optax.adam(part.learning_rate).init(predictor),
        quantile.make_fifo(part.capacity),
    )


def test_rnd_weight_by_hand():
    part = RND(w=0.5, minimum=0.5, learning_rate=0.01, features=2, capacity=4)
    weight, carry = part(rnd_carry(part), inputs_of(observation=(1.0, 3.0)))
    np.testing.assert_allclose(weight, [0.5, 0.9621172], rtol=1e-6)  # errors 1 and 9: the extremes
    assert sorted(np.asarray(carry[3].values).tolist()) == [1.0, 9.0, np.inf, np.inf]
    np.testing.assert_allclose(
        carry[1].layers[0]["w"], [[0.01, 0.01], [0.0, 0.0]], rtol=1e-4
    )  # one Adam step towards the random network


def test_rnd_error_falls_where_data_is_seen():
    part = RND(learning_rate=0.02, features=2, capacity=4)
    start = rnd_carry(part)

    def step(carry, _):
        _, carry = part(carry, inputs_of(observation=(1.0, 3.0)))
        return carry, quantile.largest(carry[3])

    carry, largest = jax.lax.scan(step, start, length=200)
    assert float(largest[0]) == 9.0
    assert float(largest[-1]) < 0.1
    jax.tree.map(
        np.testing.assert_array_equal, carry[0], start[0]
    )  # the random network stays as it is


# What all parts share

PARTS = [
    ExpAdvantage(),
    Chi2(1.0),
    PercentileSelection(capacity=4),
    Uncertainty(capacity=4),
    Uncertainty(tanh=False, capacity=4),
    DiscountedRelabeling(),
    LearnedSelection(),
    RND(features=3, capacity=4),
]
IDS = [type(part).__name__ + ("" if getattr(part, "tanh", True) else "_linear") for part in PARTS]


def small_carry(part):
    """The part's own start; a part with networks gets smaller ones."""
    if isinstance(part, RND):
        return rnd_carry(part)
    if isinstance(part, LearnedSelection):
        params = linear(1.0, 1.0)
        return params, optax.adam(part.learning_rate).init(params)
    return part.init(KEY, SPEC, SMALL)


@pytest.mark.parametrize("part", PARTS, ids=IDS)
def test_no_gradient_flows_through_a_weight(part):
    given = inputs_of((0.1, -0.2), ((0.3, 0.5), (0.1, 0.9)), offset=(1, 2))

    def loss(advantage, values):
        weight, _ = part(
            small_carry(part), dataclasses.replace(given, advantage=advantage, values=values)
        )
        return weighted_regression_loss(jnp.zeros((2, 1)), jnp.ones((2, 1)), weight), weight

    slopes, weight = jax.jit(jax.grad(loss, argnums=(0, 1), has_aux=True))(
        given.advantage, given.values
    )
    assert weight.shape == (2,)
    assert float(weight.max()) > 0
    for slope in slopes:
        np.testing.assert_array_equal(slope, np.zeros(slope.shape))


@pytest.mark.parametrize("part", PARTS, ids=IDS)
def test_the_carry_keeps_its_structure_from_its_own_start(part):
    carry = jax.eval_shape(lambda key: part.init(key, SPEC, SMALL), KEY)
    weight, after = jax.eval_shape(part, carry, inputs_of())
    assert weight.shape == (2,)
    assert weight.dtype == jnp.float32
    assert jax.tree.structure(after) == jax.tree.structure(carry)
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), after) == jax.tree.map(
        lambda leaf: (leaf.shape, leaf.dtype), carry
    )
