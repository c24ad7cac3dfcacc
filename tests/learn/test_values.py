"""Values: targets and losses by hand, and the parts on one-layer networks whose values can be read
off.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl.learn import values
from goatrl.learn.networks import Architecture
from goatrl.learn.values import CQLPenalty, DualValue, ImplicitQ, QEnsemble, VEnsemble
from goatrl.types import Spec
from helpers import ensemble, linear, make_batch

both_ways = pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])

SPEC = Spec(observation_dim=2, goal_dim=1, action_dim=1, horizon=5, goal_threshold=0.1)
SMALL = Architecture(hidden=(8,))
KEY = jax.random.key(0)
BATCH = make_batch(
    observation=jnp.asarray([[1.0, 2.0], [3.0, 4.0]]),
    action=jnp.asarray([[0.5], [-1.0]]),
    next_observation=jnp.asarray([[2.0, 3.0], [4.0, 5.0]]),
    initial_observation=jnp.asarray([[0.0, 1.0], [0.0, 2.0]]),
    achieved=jnp.asarray([[1.0], [3.0]]),
    goal=jnp.asarray([[10.0], [20.0]]),
    reward=jnp.asarray([0.0, 1.0]),
    offset=jnp.asarray([1, 2]),
)
POLICY_ACTION = jnp.asarray([[1.0], [0.0]])
NEXT_ACTION = jnp.asarray([[0.25], [-0.5]])


def assert_all_zero(tree):
    leaves = jax.tree.leaves(tree)
    assert leaves
    for leaf in leaves:
        np.testing.assert_array_equal(leaf, np.zeros(leaf.shape))


# Functions


@both_ways
def test_td_target_is_clipped_to_fifty(wrap):
    reward, next_value = (
        jnp.asarray([0.0, 1.0, 1.0, 0.0, 0.0]),
        jnp.asarray([10.0, 20.0, 60.0, -60.0, -1.0]),
    )
    np.testing.assert_allclose(
        wrap(values.td_target)(reward, next_value, 0.98), [9.8, 20.6, 50.0, -50.0, -0.98], rtol=1e-5
    )


def test_td_targets_of_costs_end_at_zero():
    reward, next_value = jnp.asarray([-1.0, 0.0, 0.0, -1.0]), jnp.asarray([3.0, 2.0, -4.0, -100.0])
    np.testing.assert_allclose(
        values.td_target(reward, next_value, 0.5, 0.0), [0.0, 0.0, -2.0, -2.0]
    )


def test_td_target_limit_follows_the_discount():
    np.testing.assert_allclose(
        values.td_target(jnp.ones(2), jnp.asarray([100.0, -100.0]), 0.5), [2.0, -2.0], rtol=1e-6
    )


def test_no_gradient_flows_through_the_td_target():
    assert (
        float(jax.grad(values.td_target, argnums=1)(jnp.asarray(1.0), jnp.asarray(3.0), 0.9)) == 0.0
    )
    assert (
        float(jax.grad(values.td_target, argnums=0)(jnp.asarray(1.0), jnp.asarray(3.0), 0.9)) == 0.0
    )


def test_squared_loss_by_hand():
    np.testing.assert_array_equal(
        values.squared_loss(jnp.asarray([-3.0, 0.0, 0.5])), [9.0, 0.0, 0.25]
    )


@both_ways
def test_expectile_below_a_half_weighs_negative_errors_more(wrap):
    error = jnp.asarray([-2.0, 0.0, 2.0])
    np.testing.assert_allclose(wrap(values.expectile_loss)(error, 0.1), [3.6, 0.0, 0.4], rtol=1e-6)
    np.testing.assert_allclose(wrap(values.expectile_loss)(error, 0.9), [0.4, 0.0, 3.6], rtol=1e-6)
    np.testing.assert_allclose(wrap(values.expectile_loss)(error, 0.5), [2.0, 0.0, 2.0], rtol=1e-6)


@pytest.mark.parametrize(("tau", "minimiser"), [(0.1, 0.5454545), (0.5, 2.0), (0.9, 4.1818182)])
def test_expectile_minimiser_is_pessimistic_below_a_half(tau, minimiser):
    # Targets 0, 1, 5 with mean 2. For τ = 0.1: 0.9 (0 − m) + 0.1 (1 − m) + 0.1 (5 − m) = 0 gives m
    # = 6/11; τ = 0.9: 46/11.
    targets = jnp.asarray([0.0, 1.0, 5.0])

    def loss(prediction):
        return jnp.mean(values.expectile_loss(targets - prediction, tau))

    np.testing.assert_allclose(jax.grad(loss)(minimiser), 0.0, atol=1e-6)
    assert loss(minimiser - 0.1) > loss(minimiser)
    assert loss(minimiser + 0.1) > loss(minimiser)


@both_ways
def test_mean_advantage_by_hand(wrap):
    value, next_value = jnp.asarray([[1.0, 4.0], [3.0, 0.0]]), jnp.asarray([[2.0, 8.0], [6.0, 0.0]])
    got = wrap(values.mean_advantage)(jnp.asarray([0.0, 1.0]), value, next_value, 0.5)
    np.testing.assert_allclose(got, [0.0, 1.0])  # 0 + 0.5 · 4 − 2 and 1 + 0.5 · 4 − 2


def test_the_mean_of_conservative_values_is_clipped_to_fifty():
    of_members = jnp.asarray([[-80.0, 20.0], [-151.0, 3.0], [99.0, 51.0]])
    np.testing.assert_array_equal(values.conservative_mean(of_members), [-30.0, -50.0, 50.0])
    pushed = jax.grad(lambda value: values.conservative_mean(value).sum())(of_members)
    np.testing.assert_array_equal(
        pushed, [[0.5, 0.5], [0.0, 0.0], [0.0, 0.0]]
    )  # single values beyond ±50 are pushed, too


@both_ways
def test_dual_value_loss_by_hand(wrap):
    got = wrap(values.dual_value_loss)(jnp.asarray([1.0, 3.0]), jnp.asarray([-1.0, 1.0]), 0.98)
    np.testing.assert_allclose(got, 1.04, rtol=1e-6)  # 0.02 · 2 + ½ · (0 + 4) / 2


@both_ways
def test_discriminator_loss_by_hand(wrap):
    log_3 = 1.0986123  # the logit of c = ¾
    got = wrap(values.discriminator_loss)(jnp.asarray([log_3, 0.0]), jnp.asarray([log_3, 0.0]))
    np.testing.assert_allclose(
        got, 0.4904147 + 1.0397208, rtol=1e-6
    )  # −mean log(¾, ½) − mean log(¼, ½)


def test_discriminator_loss_falls_when_positives_rise_and_negatives_fall():
    slopes = jax.grad(values.discriminator_loss, argnums=(0, 1))(jnp.zeros(2), jnp.zeros(2))
    np.testing.assert_allclose(slopes[0], [-0.25, -0.25])
    np.testing.assert_allclose(slopes[1], [0.25, 0.25])


# Q ensemble. Inputs: observation (2), goal, action.

Q_PARAMS = ensemble(linear(1.0, 0.0, 0.0, 0.0), linear(0.0, 0.0, 0.1, 1.0, bias=0.5))
# Q_0 = o_1: (1, 3), next (2, 4).  Q_1 = g/10 + a + ½: (2, 1.5) at the data's actions, next (1.75,
# 2) at NEXT_ACTION. γ = ½, limit 2.  Targets (1, 3 → 2) and (0.875, 2); errors (0, −1) and (−1.125,
# 0.5).


@pytest.mark.parametrize(("tau", "expected"), [(None, 1.2578125), (0.25, 0.880859375)])
def test_q_ensemble_loss_by_hand(tau, expected):
    part = QEnsemble(2, tau)
    loss, metrics = part.loss(Q_PARAMS, Q_PARAMS, BATCH, NEXT_ACTION, 0.5, KEY)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    np.testing.assert_allclose(metrics["value_loss"], expected / 2, rtol=1e-6)
    np.testing.assert_allclose(metrics["value"], 1.875, rtol=1e-6)


def test_q_ensemble_targets_come_from_the_target_network():
    constant = ensemble(linear(0.0, 0.0, 0.0, 0.0, bias=2.0), linear(0.0, 0.0, 0.0, 0.0, bias=-2.0))
    loss, _ = QEnsemble(2).loss(Q_PARAMS, constant, BATCH, NEXT_ACTION, 0.5, KEY)
    # Targets (1, 2) and (−1, 0); errors (0, −1) and (−3, −1.5).
    np.testing.assert_allclose(loss, 0.5 + 5.625, rtol=1e-6)


def test_q_ensemble_members_learn_independently():
    together = jax.grad(QEnsemble(2).loss, has_aux=True)(
        Q_PARAMS, Q_PARAMS, BATCH, NEXT_ACTION, 0.5, KEY
    )[0]
    for member in range(2):
        mine = jax.tree.map(lambda leaf, member=member: leaf[member : member + 1], Q_PARAMS)
        alone = jax.grad(QEnsemble(1).loss, has_aux=True)(mine, mine, BATCH, NEXT_ACTION, 0.5, KEY)[
            0
        ]
        jax.tree.map(
            lambda a, b, member=member: np.testing.assert_allclose(a[member], b[0], rtol=1e-5),
            together,
            alone,
        )
    # By hand, through the biases: −2 · mean error.
    np.testing.assert_allclose(together.layers[0]["b"], [[1.0], [0.625]], rtol=1e-6)


def test_q_ensemble_advantage_by_hand():
    part = QEnsemble(2)
    advantage, value = part.advantage(Q_PARAMS, Q_PARAMS, BATCH, POLICY_ACTION, NEXT_ACTION, 0.5)
    np.testing.assert_allclose(
        value, [[1.0, 3.0], [2.5, 2.5]], rtol=1e-6
    )  # at the policy's action, not the data's
    np.testing.assert_allclose(
        advantage, [-0.8125, -0.25], rtol=1e-6
    )  # r + ½ (1.875, 3) − (1.75, 2.75)
    np.testing.assert_allclose(
        part.values(Q_PARAMS, BATCH.observation, BATCH.goal, POLICY_ACTION), value, rtol=1e-6
    )


# The CQL penalty

FLAT_Q = ensemble(linear(0.0, 0.0, 0.0, 0.0, bias=3.0), linear(0.0, 0.0, 0.0, 0.0, bias=-2.0))


@both_ways
def test_penalty_of_a_constant_network_is_its_value(wrap):
    np.testing.assert_allclose(
        wrap(CQLPenalty(alpha=2.0, actions=4))(FLAT_Q, BATCH, KEY), 2.0, rtol=1e-6
    )  # 2 · (3 − 2)


def test_penalty_pushes_values_down_by_alpha_until_the_clip():
    high = ensemble(linear(0.0, 0.0, 0.0, 0.0, bias=80.0), linear(0.0, 0.0, 0.0, 0.0, bias=-2.0))
    penalty = jax.jit(jax.value_and_grad(CQLPenalty(alpha=0.5, actions=4)))
    value, slope = penalty(FLAT_Q, BATCH, KEY)
    np.testing.assert_allclose(value, 0.5, rtol=1e-6)
    np.testing.assert_allclose(slope.layers[0]["b"], [[0.5], [0.5]], rtol=1e-6)
    value, slope = penalty(high, BATCH, KEY)
    np.testing.assert_allclose(value, 24.0, rtol=1e-6)  # 0.5 · (50 − 2)
    np.testing.assert_allclose(slope.layers[0]["b"], [[0.0], [0.5]], rtol=1e-6)


def test_penalty_lowers_the_actions_that_promise_most():
    # Q = 30 a, while the data acts at a = −1: the largest of the candidates is drawn nearly always.
    many = jax.tree.map(lambda leaf: jnp.repeat(leaf[1:], 64, axis=0), BATCH)
    steep = ensemble(linear(0.0, 0.0, 0.0, 30.0))
    value, slope = jax.jit(jax.value_and_grad(CQLPenalty()))(steep, many, KEY)
    assert (
        0.7 < float(slope.layers[0]["w"][0, 3, 0]) <= 1.0
    )  # mean drawn action; uniform ones have mean 0
    np.testing.assert_allclose(value, 30 * float(slope.layers[0]["w"][0, 3, 0]), rtol=1e-5)
    lower = jax.tree.map(lambda leaf, by: leaf - 0.1 * by, steep, slope)

    def q(params, action):
        return float(
            values.scalar_ensemble(
                params, many.observation[:1], many.goal[:1], jnp.asarray([[action]])
            )[0, 0]
        )

    # A step of descent lowers the value of the action outside the data more than it lowers the
    # data's own.
    assert q(lower, 0.9) - q(steep, 0.9) < q(lower, -1.0) - q(steep, -1.0)


def test_penalty_draws_by_value_where_values_differ_little():
    # Q = 0 everywhere: candidates are drawn evenly, so the mean drawn action is that of the
    # candidates, near 0 for many.
    many = jax.tree.map(lambda leaf: jnp.repeat(leaf, 256, axis=0), BATCH)
    slope = jax.jit(jax.grad(CQLPenalty(actions=400)))(
        ensemble(linear(0.0, 0.0, 0.0, 0.0)), many, KEY
    )
    np.testing.assert_allclose(slope.layers[0]["w"][0, 3, 0], 0.0, atol=0.12)


def test_penalty_is_added_to_the_td_loss():
    plain, _ = QEnsemble(2).loss(Q_PARAMS, Q_PARAMS, BATCH, NEXT_ACTION, 0.5, KEY)
    penalised, metrics = QEnsemble(2, penalty=CQLPenalty(2.0, 4)).loss(
        Q_PARAMS, Q_PARAMS, BATCH, NEXT_ACTION, 0.5, KEY
    )
    extra = CQLPenalty(2.0, 4)(Q_PARAMS, BATCH, KEY)
    assert abs(float(extra)) > 0.1
    np.testing.assert_allclose(penalised - plain, extra, rtol=1e-5)
    np.testing.assert_allclose(metrics["value_loss"], penalised / 2, rtol=1e-6)


# V ensemble. Inputs: observation (2), goal.

V_PARAMS = ensemble(linear(1.0, 0.0, 0.0), linear(0.0, 0.0, 0.1))
# V_0 = o_1: (1, 3), next (2, 4).  V_1 = g/10: (1, 2), next the same.  Errors (1 − 1, 2 − 3) and
# (0.5 − 1, 2 − 2).


@pytest.mark.parametrize(("tau", "expected"), [(None, 0.625), (0.25, 0.46875)])
def test_v_ensemble_loss_by_hand(tau, expected):
    loss, metrics = VEnsemble(2, tau).loss(V_PARAMS, V_PARAMS, BATCH, NEXT_ACTION, 0.5, KEY)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    np.testing.assert_allclose(metrics["value"], 1.75, rtol=1e-6)


def test_v_ensemble_knows_no_action():
    part = VEnsemble(2)
    loss, _ = part.loss(V_PARAMS, V_PARAMS, BATCH, NEXT_ACTION, 0.5, KEY)
    other, _ = part.loss(V_PARAMS, V_PARAMS, BATCH, jnp.full_like(NEXT_ACTION, jnp.nan), 0.5, KEY)
    assert float(loss) == float(other)
    advantage, value = part.advantage(V_PARAMS, V_PARAMS, BATCH, POLICY_ACTION, NEXT_ACTION, 0.5)
    np.testing.assert_allclose(advantage, [-0.25, 0.0], atol=1e-6)  # r + ½ (1.5, 3) − (1, 2.5)
    np.testing.assert_allclose(value, [[1.0, 3.0], [1.0, 2.0]], rtol=1e-6)
    np.testing.assert_allclose(
        part.values(V_PARAMS, BATCH.observation, BATCH.goal, POLICY_ACTION), value, rtol=1e-6
    )


# Implicit Q

IQL_PARAMS = {"q": linear(1.0, 0.0, 0.0, 1.0), "v": linear(0.0, 0.0, 0.1)}
IQL_TARGET = {"q": linear(0.0, 1.0, 0.0, 0.0, bias=-1.5), "v": linear(0.0, 0.0, 0.0, bias=99.0)}
# Q = o_1 + a: (1.5, 2).  V = g/10: (1, 2) at both steps.  Target Q = o_2 − 1.5: (0.5, 2.5), errors
# of V (−0.5, 0.5). γ = ½: targets of Q (0.5, 2), errors (−1, 0).  The target V is never asked.


def test_implicit_q_loss_by_hand():
    loss, metrics = ImplicitQ(0.7).loss(IQL_PARAMS, IQL_TARGET, BATCH, NEXT_ACTION, 0.5, KEY)
    np.testing.assert_allclose(loss, 0.125 + 0.5, rtol=1e-6)
    np.testing.assert_allclose(metrics["value"], 1.5, rtol=1e-6)


def test_implicit_q_gradients_stay_in_their_own_network():
    slopes = jax.grad(ImplicitQ(0.7).loss, has_aux=True)(
        IQL_PARAMS, IQL_TARGET, BATCH, NEXT_ACTION, 0.5, KEY
    )[0]
    np.testing.assert_allclose(
        slopes["v"].layers[0]["b"], [-0.2], rtol=1e-5
    )  # −2 · mean(0.3 · −0.5, 0.7 · 0.5); none from Q's target
    np.testing.assert_allclose(slopes["q"].layers[0]["b"], [1.0], rtol=1e-5)  # −2 · mean(−1, 0)


def test_implicit_q_advantage_is_q_minus_v_at_the_data_action():
    """Of the networks that learn: by the target Q it would be (−0.5, 0.5), by the target V far
    below.
    """
    advantage, value = ImplicitQ().advantage(
        IQL_PARAMS, IQL_TARGET, BATCH, POLICY_ACTION, NEXT_ACTION, 0.5
    )
    np.testing.assert_allclose(advantage, [0.5, 0.0], atol=1e-6)
    np.testing.assert_allclose(value, [[1.0, 2.0]], rtol=1e-6)


# Dual value. V: observation (2), goal. Discriminator: achieved, goal.

DUAL_PARAMS = {"v": linear(0.0, 1.0, 0.0), "discriminator": linear(0.2, 0.1)}
DUAL_TARGET = {"v": linear(0.0, 0.0, 0.1), "discriminator": linear(9.0, 9.0)}
# V = o_2: initial (1, 2), now (2, 4).  Target V' = g/10: (1, 2). Binary: residuals (0 + ½ − 2, 1 +
# 1 − 4) = (−1.5, −2). Discriminator: logits of (g, g) are (3, 6), of (φ, g) (1.2, 2.6); residuals
# (1.2 + ½ − 2, 2.6 + 1 − 4) = (−0.3, −0.4).


def test_dual_value_with_the_binary_reward_by_hand():
    params, target = {"v": DUAL_PARAMS["v"]}, {"v": DUAL_TARGET["v"]}
    part = DualValue(reward="binary")
    loss, metrics = part.loss(params, target, BATCH, NEXT_ACTION, 0.5, KEY)
    np.testing.assert_allclose(loss, 0.75 + 0.3125, rtol=1e-6)  # ½ · 1.5 + ½ · mean(0.25, 1)
    assert set(metrics) == {"value_loss", "value"}
    advantage, value = part.advantage(params, target, BATCH, POLICY_ACTION, NEXT_ACTION, 0.5)
    np.testing.assert_allclose(advantage, [-1.5, -2.0], rtol=1e-6)  # the residuals
    np.testing.assert_allclose(value, [[2.0, 4.0]], rtol=1e-6)


def test_dual_value_with_a_discriminator_by_hand():
    part = DualValue(gradient_penalty=0.01)
    loss, metrics = part.loss(DUAL_PARAMS, DUAL_TARGET, BATCH, NEXT_ACTION, 0.5, KEY)
    np.testing.assert_allclose(
        metrics["value_loss"], 0.9625, rtol=1e-5
    )  # ½ · 1.5 + ½ · mean(0.49, 0.36)
    # Cross entropies 0.0255315 and 2.0674637; the slope along (φ, g) is (0.2, 0.1), so the penalty
    # is 0.01 · (1 − √0.05)². Along φ alone it would be 0.01 · 0.8² = 0.0064, 0.00037 more.
    np.testing.assert_allclose(metrics["discriminator_loss"], 2.0929952 + 0.0060279, rtol=1e-5)
    np.testing.assert_allclose(loss, 0.9625 + 2.0990231, rtol=1e-5)
    advantage, _ = part.advantage(DUAL_PARAMS, DUAL_TARGET, BATCH, POLICY_ACTION, NEXT_ACTION, 0.5)
    np.testing.assert_allclose(advantage, [-0.3, -0.4], rtol=1e-5)  # the residuals


def test_dual_value_gradients_stay_in_their_own_network():
    slopes = jax.grad(DualValue().loss, has_aux=True)(
        DUAL_PARAMS, DUAL_TARGET, BATCH, NEXT_ACTION, 0.5, KEY
    )[0]
    # V: (1 − γ) − mean(residual + 1) = 0.5 − 0.65.
    np.testing.assert_allclose(slopes["v"].layers[0]["b"], [-0.15], rtol=1e-4)
    # Discriminator: mean(σ(3) − 1, σ(6) − 1) + mean(σ(1.2), σ(2.6)); through the reward it would be
    # 0.65 more.
    np.testing.assert_allclose(slopes["discriminator"].layers[0]["b"], [0.8247439], rtol=1e-4)


def test_the_discriminator_has_a_finite_slope_where_its_output_is_flat():
    flat = DUAL_PARAMS | {"discriminator": linear(0.0, 0.0)}
    slopes = jax.grad(DualValue().loss, has_aux=True)(
        flat, DUAL_TARGET, BATCH, NEXT_ACTION, 0.5, KEY
    )[0]
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))


# What all parts share

CASES = {
    "q": (QEnsemble(2, 0.3), Q_PARAMS, Q_PARAMS),
    "cql": (QEnsemble(2, penalty=CQLPenalty(actions=3)), Q_PARAMS, Q_PARAMS),
    "v": (VEnsemble(2), V_PARAMS, V_PARAMS),
    "iql": (ImplicitQ(), IQL_PARAMS, IQL_TARGET),
    "dual": (DualValue(), DUAL_PARAMS, DUAL_TARGET),
}


@pytest.mark.parametrize("case", CASES)
def test_no_gradient_flows_into_target_networks_or_the_next_action(case):
    part, params, target = CASES[case]

    def loss(target, next_action):
        return part.loss(params, target, BATCH, next_action, 0.5, KEY)[0]

    assert_all_zero(jax.jit(jax.grad(loss, argnums=(0, 1)))(target, NEXT_ACTION))


@pytest.mark.parametrize(
    ("part", "inputs"),
    [
        (QEnsemble(3), {4}),
        (VEnsemble(3), {3}),
        (ImplicitQ(), {3, 4}),
        (DualValue(), {3, 2}),
        (DualValue(reward="binary"), {3}),
    ],
    ids=["q", "v", "iql", "dual", "binary"],
)
def test_fresh_networks_fit_the_problem(part, inputs):
    params = jax.eval_shape(lambda key: part.init(key, SPEC, SMALL), KEY)
    leaves = jax.tree.leaves(params, is_leaf=lambda node: isinstance(node, dict) and "w" in node)
    widths = {layer["w"].shape[-2] for layer in leaves} - {8}
    assert widths == inputs
    advantage, value = jax.eval_shape(
        lambda p: part.advantage(p, p, BATCH, POLICY_ACTION, NEXT_ACTION, 0.98), params
    )
    assert advantage.shape == (2,)
    assert value.shape == (getattr(part, "size", 1), 2)
