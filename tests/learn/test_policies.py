"""Policy objectives: losses and slopes by hand, and the parts against a plain gradient of the plain
loss.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl.learn import policies
from goatrl.learn.networks import Architecture, init_mlp, policy_action
from goatrl.learn.policies import AWR, DDPGBC, DDPGObjective, WeightedBC
from goatrl.learn.values import QEnsemble
from goatrl.learn.weights import Chi2, ExpAdvantage, PercentileSelection, Uncertainty, WeightInputs
from goatrl.types import Spec
from helpers import ensemble, linear, make_batch

both_ways = pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])

KEY = jax.random.key(0)
SPEC = Spec(observation_dim=2, goal_dim=1, action_dim=1, horizon=5, goal_threshold=0.1)
SMALL = Architecture(hidden=(4,))
STEP = jnp.asarray(0)
BATCH = make_batch(
    observation=jnp.asarray([[1.0, 2.0], [3.0, 4.0]]),
    action=jnp.asarray([[0.5], [-1.0]]),
    next_observation=jnp.asarray([[2.0, 3.0], [4.0, 5.0]]),
    initial_observation=jnp.asarray([[0.0, 1.0], [0.0, 2.0]]),
    achieved=jnp.asarray([[1.0], [3.0]]),
    goal=jnp.asarray([[0.5], [-0.5]]),
    reward=jnp.asarray([0.0, 1.0]),
    offset=jnp.asarray([1, 2]),
)


IDLE = linear(0.0, 0.0, 0.0)  # the policy that always says 0, where tanh has slope 1


def networks(policy, value=()):
    """The same, online and as targets."""
    return ({"policy": policy, "value": value},) * 2


# Functions

ACTION = jnp.asarray([[0.0, 0.0], [1.0, -1.0]])
DATA_ACTION = jnp.asarray([[1.0, 0.0], [0.5, 0.0]])


@both_ways
def test_weighted_regression_loss_and_slope_by_hand(wrap):
    value, slope = wrap(jax.value_and_grad(policies.weighted_regression_loss))(
        ACTION, DATA_ACTION, jnp.asarray([2.0, 4.0])
    )
    np.testing.assert_allclose(value, 1.75, rtol=1e-6)  # mean(2 · 0.5, 4 · 0.625)
    np.testing.assert_allclose(slope, [[-1.0, 0.0], [1.0, -2.0]], rtol=1e-6)  # −½ w (a − π)


def test_weight_zero_ignores_a_sample():
    weight = jnp.asarray([2.0, 0.0])
    value, slope = jax.value_and_grad(policies.weighted_regression_loss)(
        ACTION, DATA_ACTION, weight
    )
    other = policies.weighted_regression_loss(ACTION, DATA_ACTION.at[1].set(100.0), weight)
    np.testing.assert_allclose([value, other], [0.5, 0.5], rtol=1e-6)
    np.testing.assert_array_equal(slope[1], [0.0, 0.0])


@pytest.mark.parametrize("loss", policies.LOSSES.values())
def test_weighted_regression_has_no_slope_along_the_weight(loss):
    slope = jax.grad(loss, argnums=2)(ACTION, DATA_ACTION, jnp.asarray([2.0, 4.0]))
    np.testing.assert_array_equal(slope, [0.0, 0.0])


@both_ways
def test_weighted_distance_loss_and_slope_by_hand(wrap):
    data_action = jnp.asarray([[3.0, 4.0], [1.0, -1.0]])  # 5 / √2 away, and met
    value, slope = wrap(jax.value_and_grad(policies.weighted_distance_loss))(
        ACTION, data_action, jnp.asarray([2.0, 4.0])
    )
    np.testing.assert_allclose(value, 5 / np.sqrt(2), rtol=1e-5)  # mean(2 · 5 / √2, 4 · 0)
    # As long for a far action as for a near one: w / (2 √2) towards it, finite where it is met.
    np.testing.assert_allclose(slope, [[-0.6 / np.sqrt(2), -0.8 / np.sqrt(2)], [0, 0]], rtol=1e-5)


@pytest.mark.parametrize(("loss", "centre"), [("square", 0.325), ("distance", 0.1)])
def test_where_a_loss_is_least_for_an_action_with_random_ones_among_it(loss, centre):
    # Seven of ten do the same: their mean is drawn to the others, their median stays.
    data = jnp.asarray([[0.1]] * 7 + [[1.0], [0.9], [0.65]])
    tried = jnp.linspace(-1.0, 1.0, 401)
    losses = jax.vmap(lambda a: policies.LOSSES[loss](jnp.full((10, 1), a), data, jnp.ones(10)))(
        tried
    )
    np.testing.assert_allclose(tried[jnp.argmin(losses)], centre, atol=1e-6)


CRITICS = jnp.asarray([[1.0, 2.0], [3.0, 6.0]])  # means (2, 4), standard deviations (1, 2)


@both_ways
@pytest.mark.parametrize(
    ("pessimism", "expected"), [(0.0, [2.0, 4.0]), (0.5, [1.5, 3.0]), (5.0, [-3.0, -6.0])]
)
def test_lower_confidence_bound_by_hand(wrap, pessimism, expected):
    np.testing.assert_allclose(
        wrap(policies.lower_confidence_bound)(CRITICS, pessimism), expected, rtol=1e-6
    )


@pytest.mark.parametrize("critics", [1, 3])
def test_lower_confidence_bound_of_agreeing_critics_has_a_finite_slope(critics):
    values = jnp.full((critics, 2), 7.0)
    bound, slope = jax.value_and_grad(lambda v: policies.lower_confidence_bound(v, 5.0).sum())(
        values
    )
    np.testing.assert_allclose(bound, 14.0, rtol=1e-5)
    np.testing.assert_allclose(slope, np.full((critics, 2), 1 / critics), rtol=1e-6)


@both_ways
def test_value_maximization_loss_by_hand(wrap):
    action = jnp.asarray([[1.0, -1.0], [0.5, 0.0]])
    got = wrap(policies.value_maximization_loss)(CRITICS, action, 0.5, 2.0)
    np.testing.assert_allclose(got, -1.125, rtol=1e-6)  # −mean(1.5, 3) + 2 · 0.5625


# WeightedBC


@both_ways
def test_regression_without_weights_is_plain_imitation(wrap):
    part = WeightedBC()
    assert part.init(KEY, SPEC, SMALL) == ()
    run = wrap(lambda params: part.gradients(*networks(params), (), None, BATCH, 0.98, STEP))
    gradients, carry, metrics = run(IDLE)
    np.testing.assert_allclose(metrics["policy_loss"], 0.625, rtol=1e-6)  # mean(0.25, 1)
    np.testing.assert_allclose(gradients.layers[0]["b"], [0.5], rtol=1e-6)  # −(0.5 − 1)
    assert carry == ()
    assert set(metrics) == {"policy_loss"}


def test_regression_by_distance_is_towards_all_actions_alike():
    run = WeightedBC(loss="distance").gradients
    gradients, _, metrics = run(*networks(IDLE), (), None, BATCH, 0.98, STEP)
    np.testing.assert_allclose(metrics["policy_loss"], 0.75, rtol=1e-6)  # mean(0.5, 1)
    np.testing.assert_allclose(gradients.layers[0]["b"], [0.0], atol=1e-6)  # −½ (1 − 1)


def test_regression_multiplies_its_weights():
    # Critics that say 0 leave A = r = (0, 1): exp(A) at most 2 gives (1, 2), max(A + ½, 0) gives
    # (0.5, 1.5).
    part = WeightedBC((ExpAdvantage(beta=1.0, clip=2.0), Chi2(0.5)))
    silent = ensemble(linear(0.0, 0.0, 0.0, 0.0))
    gradients, carry, metrics = part.gradients(
        *networks(IDLE, silent), part.init(KEY, SPEC, SMALL), QEnsemble(1), BATCH, 0.98, STEP
    )
    np.testing.assert_allclose(metrics["weight"], 1.75, rtol=1e-6)
    np.testing.assert_allclose(metrics["advantage"], 0.5, rtol=1e-6)
    np.testing.assert_allclose(metrics["policy_loss"], 1.5625, rtol=1e-6)  # mean(0.5 · 0.25, 3 · 1)
    np.testing.assert_allclose(gradients.layers[0]["b"], [2.75], rtol=1e-6)  # −(0.5 · 0.5 + 3 · −1)
    assert carry == ((), ())


def test_regression_imitates_nothing_for_goals_of_values_alone():
    net = init_mlp(KEY, 3, 1, SMALL)

    def slope(batch):
        gradients, _, metrics = WeightedBC().gradients(
            *networks(net), (), None, batch, discount=0.9, step=STEP
        )
        return gradients, metrics

    def first_row(batch):
        return jax.tree.map(lambda leaf: leaf[:1], batch)

    alone, alone_loss = slope(first_row(BATCH))
    found, loss = slope(dataclasses.replace(BATCH, imitated=jnp.asarray([1.0, 0.0])))
    np.testing.assert_allclose(loss["policy_loss"], alone_loss["policy_loss"] / 2, rtol=1e-6)
    for mine, wanted in zip(jax.tree.leaves(found), jax.tree.leaves(alone), strict=True):
        np.testing.assert_allclose(mine, wanted / 2, rtol=1e-5, atol=1e-8)


def test_regression_asks_the_critics_about_the_policy_not_the_data():
    # Q = a. The policy says tanh(g) at both steps: V = V' = tanh(±0.5), A = r − (1 − γ) V.
    part = WeightedBC((ExpAdvantage(),))
    critic = ensemble(linear(0.0, 0.0, 0.0, 1.0))
    _, _, metrics = part.gradients(
        *networks(linear(0.0, 0.0, 1.0, bias=0.5), critic), ((),), QEnsemble(1), BATCH, 0.5, STEP
    )
    np.testing.assert_allclose(
        metrics["advantage"], 0.5 - 0.25 * (0.7615942 + 0.0), rtol=1e-6
    )  # tanh(1) and tanh(0)


def test_regression_gradients_are_those_of_the_plain_loss():
    policy = init_mlp(KEY, 3, 1, SMALL)
    critics = ensemble(*(init_mlp(key, 4, 1, SMALL) for key in jax.random.split(KEY, 2)))
    parts = (ExpAdvantage(), Chi2(2.0), Uncertainty(capacity=4))
    value, part, step = QEnsemble(2), WeightedBC(parts), jnp.asarray(5)
    start = part.init(KEY, SPEC, SMALL)
    gradients, carry, metrics = jax.jit(
        lambda p: part.gradients(*networks(p, critics), start, value, BATCH, 0.98, step)
    )(policy)

    @jax.jit
    def weights_alone():
        action, next_action = (
            policy_action(policy, o, BATCH.goal)
            for o in (BATCH.observation, BATCH.next_observation)
        )
        inputs = WeightInputs(
            BATCH, *value.advantage(critics, critics, BATCH, action, next_action, 0.98), 0.98, step
        )
        return tuple(weight(state, inputs) for weight, state in zip(parts, start, strict=True))

    factors, carries = zip(*weights_alone(), strict=True)
    constant = jnp.asarray(np.prod([np.asarray(factor) for factor in factors], axis=0))

    def plain_loss(params):
        error = BATCH.action - policy_action(params, BATCH.observation, BATCH.goal)
        return jnp.mean(constant * error[:, 0] ** 2)

    loss, expected = jax.jit(jax.value_and_grad(plain_loss))(policy)
    np.testing.assert_allclose(metrics["policy_loss"], loss, rtol=1e-5)
    jax.tree.map(
        lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-7),
        gradients,
        expected,
    )
    jax.tree.map(
        lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7),
        carry,
        carries,
    )
    assert int(carry[2].count) == 2
    assert any(np.abs(leaf).max() > 1e-3 for leaf in jax.tree.leaves(expected))


def test_regression_gives_each_weight_its_own_start():
    carry = WeightedBC(
        (ExpAdvantage(), PercentileSelection(capacity=3), Uncertainty(capacity=5))
    ).init(KEY, SPEC, SMALL)
    assert carry[0] == ()
    assert [carry[1].values.shape, carry[2].values.shape] == [(3,), (5,)]


# DDPGObjective


def test_maximization_climbs_the_value():
    # Q = 2 a, policy at 0: the loss is −2 π + λ π², its slope along the bias −2 whatever λ.
    critic = ensemble(linear(0.0, 0.0, 0.0, 2.0))
    gradients, carry, metrics = DDPGObjective().gradients(
        *networks(IDLE, critic), (), QEnsemble(1), BATCH, 0.98, STEP
    )
    np.testing.assert_allclose(gradients.layers[0]["b"], [-2.0], rtol=1e-6)
    np.testing.assert_allclose(metrics["policy_loss"], 0.0, atol=1e-6)
    assert carry == ()


def test_maximization_penalises_large_actions():
    silent = ensemble(linear(0.0, 0.0, 0.0, 0.0))
    policy = linear(0.0, 0.0, 0.0, bias=0.5)  # π = tanh(½) = 0.4621172, slope 1 − π² = 0.7864477
    gradients, _, metrics = DDPGObjective(0.0, 3.0).gradients(
        *networks(policy, silent), (), QEnsemble(1), BATCH, 0.98, STEP
    )
    np.testing.assert_allclose(metrics["policy_loss"], 0.6406569, rtol=1e-5)  # 3 π²
    np.testing.assert_allclose(gradients.layers[0]["b"], [2.1805883], rtol=1e-5)  # 6 π (1 − π²)


def test_pessimism_turns_away_from_actions_on_which_critics_disagree():
    # Q_1 = 3 a and Q_2 = a + 1: mean 2 a + ½, standard deviation |a − ½|. At a = 0 the bound's
    # slope is 2 + c.
    critics = ensemble(linear(0.0, 0.0, 0.0, 3.0), linear(0.0, 0.0, 0.0, 1.0, bias=1.0))
    slopes = [
        DDPGObjective(c, 0.0)
        .gradients(*networks(IDLE, critics), (), QEnsemble(2), BATCH, 0.98, STEP)[0]
        .layers[0]["b"]
        for c in (0.0, 5.0)
    ]
    np.testing.assert_allclose(slopes, [[-2.0], [-7.0]], rtol=1e-5)


def test_pessimism_with_one_critic_stays_finite():
    critic = ensemble(linear(0.0, 0.0, 0.0, 2.0))
    gradients, _, metrics = DDPGObjective(5.0).gradients(
        *networks(IDLE, critic), (), QEnsemble(1), BATCH, 0.98, STEP
    )
    np.testing.assert_allclose(gradients.layers[0]["b"], [-2.0], rtol=1e-5)
    assert np.isfinite(metrics["policy_loss"])


def test_maximization_needs_a_value():
    with pytest.raises(AssertionError, match="nothing to maximise"):
        DDPGObjective().gradients(*networks(IDLE), (), None, BATCH, 0.98, STEP)


# Several policies


def test_an_agent_does_what_its_policies_do_on_average():
    two = ensemble(linear(1.0, 0.0, 0.0), linear(0.0, 0.0, 2.0))
    expected = (np.tanh([1.0, 3.0]) + np.tanh([1.0, -1.0])) / 2  # tanh s₀ and tanh 2g
    found = policy_action(two, BATCH.observation, BATCH.goal)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-6)


def test_each_of_several_policies_imitates_for_itself():
    alone = [linear(0.3, 0.0, 0.0), linear(0.0, -0.2, 0.1)]
    part = WeightedBC()
    carry = part.init(KEY, SPEC, SMALL)
    given = carry, None, BATCH, 0.98, STEP
    apart = [part.gradients(*networks(each), *given) for each in alone]
    found, _, metrics = part.gradients(*networks(ensemble(*alone)), *given)
    assert len({float(each[2]["policy_loss"]) for each in apart}) == 2
    for place, (gradients, _, _) in enumerate(apart):
        mine = jax.tree.map(lambda leaf, place=place: leaf[place], found)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), mine, gradients)
    mean = np.mean([each[2]["policy_loss"] for each in apart])
    np.testing.assert_allclose(metrics["policy_loss"], mean, rtol=1e-6)


def test_weights_of_several_policies_go_by_their_mean_action():
    alone = [linear(0.3, 0.0, 0.0), linear(0.0, -0.2, 0.1)]
    value, part = QEnsemble(2), WeightedBC((ExpAdvantage(),))
    critics, carry = value.init(KEY, SPEC, SMALL), part.init(KEY, SPEC, SMALL)
    params, target = networks(ensemble(*alone), critics)
    _, _, metrics = part.gradients(params, target, carry, value, BATCH, 0.98, STEP)
    action, later = (
        jnp.mean(jnp.stack([policy_action(p, seen, BATCH.goal) for p in alone]), axis=0)
        for seen in (BATCH.observation, BATCH.next_observation)
    )
    advantage, _ = value.advantage(critics, critics, BATCH, action, later, 0.98)
    np.testing.assert_allclose(metrics["advantage"], jnp.mean(advantage), rtol=1e-5)


# Extraction towards the policy's own goals

TWO_GOALS = dataclasses.replace(BATCH, policy_goal=jnp.asarray([[2.0], [3.0]]))


@both_ways
def test_behaviour_constrained_loss_and_slope_by_hand(wrap):
    values = jnp.asarray([[1.0, -3.0], [2.0, -5.0]])  # the least: 1 and −5, of mean size 3
    loss = wrap(policies.behaviour_constrained_loss)(values, ACTION, DATA_ACTION, 0.5)
    # −(−2)/3 and ½ · the mean of ½ · 1 and ½ · (¼ + 1)
    np.testing.assert_allclose(loss, 2 / 3 + 0.5 * (0.5 + 0.625) / 2, rtol=1e-5)
    slope = wrap(jax.grad(policies.behaviour_constrained_loss))(values, ACTION, DATA_ACTION, 0.5)
    # only of the least, and none through the size
    np.testing.assert_allclose(slope, [[-1 / 6, 0.0], [0.0, -1 / 6]], rtol=1e-5, atol=1e-9)


def test_awr_imitates_towards_the_policys_goals():
    """A = −g: of the policy's goals, (−2, −3)."""

    class ByGoal:
        def advantage(self, params, target, batch, action, next_action, discount):
            return -batch.goal[:, 0], -batch.goal[:, 0][None]

    part = AWR((ExpAdvantage(beta=1.0, clip=0.1),))
    params, target = networks(IDLE)
    gradients, _, metrics = part.gradients(
        params, target, part.init(KEY, SPEC, SMALL), ByGoal(), TWO_GOALS, 0.9, STEP
    )
    weight = np.array([0.1, np.exp(-3.0)])  # e^{−2} is more than 0.1
    np.testing.assert_allclose(metrics["policy_loss"], (weight * [0.25, 1.0]).mean(), rtol=1e-5)
    # E w · 2 (π − a) · g
    slope = (weight * 2 * np.array([-0.5 * 2.0, 1.0 * 3.0])).mean()
    np.testing.assert_allclose(gradients.layers[0]["w"][2, 0], slope, rtol=1e-5)


def test_ddpgbc_maximises_towards_the_policys_goals():
    """Q = (g a − 1, 2 g a), at a = 0: the first is less."""

    class ByGoal:
        def values(self, params, observation, goal, action):
            return jnp.stack([goal[:, 0] * action[:, 0] - 1.0, 2.0 * goal[:, 0] * action[:, 0]])

    params, target = networks(IDLE)
    gradients, _, metrics = DDPGBC(alpha=0.5).gradients(
        params, target, (), ByGoal(), TWO_GOALS, 0.9, STEP
    )
    # −1 everywhere, of size 1
    np.testing.assert_allclose(
        metrics["policy_loss"], 1.0 + 0.5 * 0.5 * (0.25 + 1.0) / 2, rtol=1e-5
    )
    # by the bias: −E g + α E (π − a), where π = 0
    expected = -2.5 + 0.5 * (-0.5 + 1.0) / 2
    np.testing.assert_allclose(gradients.layers[0]["b"][0], expected, rtol=1e-5)


def test_awr_as_it_stands_is_gcivls():
    (weight,) = AWR().weights
    assert (weight.beta, weight.clip) == (10.0, 100.0)
