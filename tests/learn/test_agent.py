"""One update: what is computed from what, the Polyak step, and acting."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from goatrl.learn import normalize
from goatrl.learn.agent import Agent, actor_critic, average_share, weighted_regression
from goatrl.learn.networks import Architecture
from goatrl.learn.policies import DDPGObjective, WeightedBC
from goatrl.learn.values import DualValue, QEnsemble
from goatrl.learn.weights import (
    RND,
    Chi2,
    ExpAdvantage,
    LearnedSelection,
    Uncertainty,
    WeightInputs,
)
from goatrl.types import GoatError, Settings, Spec, TrainState, pytree
from helpers import ensemble, linear, make_batch

KEY = jax.random.key(0)
SPEC = Spec(observation_dim=1, goal_dim=1, action_dim=1, horizon=5, goal_threshold=0.1)
BATCH = make_batch(
    observation=jnp.asarray([[1.0], [3.0]]),
    action=jnp.asarray([[0.5], [-1.0]]),
    next_observation=jnp.asarray([[2.0], [4.0]]),
    initial_observation=jnp.asarray([[0.0], [0.0]]),
    achieved=jnp.asarray([[1.0], [3.0]]),
    goal=jnp.asarray([[5.0], [6.0]]),
    reward=jnp.asarray([0.0, 1.0]),
    offset=jnp.asarray([1, 2]),
)


@pytree
class Witness:
    """A weight of 1 that writes down what it was shown."""

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> Any:
        return {
            "step": jnp.asarray(-1),
            "values": jnp.zeros((1, 2)),
            "advantage": jnp.zeros(2),
            "observation": jnp.zeros((2, 1)),
        }

    def __call__(self, carry: Any, inputs: WeightInputs) -> tuple[jax.Array, Any]:
        seen = {
            "step": inputs.step,
            "values": inputs.values,
            "advantage": inputs.advantage,
            "observation": inputs.batch.observation,
        }
        return jnp.ones_like(inputs.advantage), seen


AGENT = Agent(WeightedBC((Witness(),)), QEnsemble(1), discount=0.5, learning_rate=0.01, polyak=0.9)

# Everything constant, so that each number below can be followed by hand:
#   policy tanh(0) = 0 and Q = a + 1; target policy tanh(1) = 0.7615942 and target Q = a + 0.25.
PARAMS = {"policy": linear(0.0, 0.0), "value": ensemble(linear(0.0, 0.0, 1.0, bias=1.0))}
TARGET = {"policy": linear(0.0, 0.0, bias=1.0), "value": ensemble(linear(0.0, 0.0, 1.0, bias=0.25))}


def state_of(agent: Agent, params: Any = PARAMS, target: Any = TARGET, step: int = 7) -> TrainState:
    return TrainState(
        step=jnp.asarray(step),
        params=params,
        target=target,
        optimizer=optax.adam(agent.learning_rate).init(params),
        weight_state=agent.policy.init(KEY, SPEC, agent.architecture),
        normalizer=normalize.identity(SPEC),
    )


@pytest.fixture(scope="module")
def updated() -> tuple[TrainState, dict[str, jax.Array]]:
    return jax.jit(lambda state: AGENT.update(state, BATCH, KEY))(state_of(AGENT))


def gradient(state: TrainState, part: str, leaf: str) -> np.ndarray:
    """Adam's first moment after one update from nothing is a tenth of the gradient."""
    return 10 * np.asarray(state.optimizer[0].mu[part].layers[0][leaf]).ravel()


def test_weights_come_from_the_critics_and_the_policy_before_the_update(updated):
    seen = updated[0].weight_state[0]
    np.testing.assert_allclose(
        seen["values"], [[1.0, 1.0]], rtol=1e-6
    )  # online Q at the online action 0, neither updated
    np.testing.assert_allclose(seen["advantage"], [-0.5, 0.5], rtol=1e-6)  # r + ½ · 1 − 1
    assert int(seen["step"]) == 7  # the step that is being made, counted from 0


def test_policy_gradient_by_hand(updated):
    state, metrics = updated
    np.testing.assert_allclose(gradient(state, "policy", "b"), [0.5], rtol=1e-5)  # −(0.5 − 1)
    np.testing.assert_allclose(metrics["policy_loss"], 0.625, rtol=1e-6)
    np.testing.assert_allclose(metrics["weight"], 1.0)


def test_critic_gradient_uses_the_target_critic_at_the_target_policy(updated):
    state, metrics = updated
    # Q(s, a) = (1.5, 0).  Targets r + ½ (0.7615942 + 0.25) = (0.5057971, 1.5057971).  Errors
    # (−0.9942029, 1.5057971).
    np.testing.assert_allclose(
        gradient(state, "value", "b"), [-0.5115942], rtol=1e-4
    )  # −2 · mean error
    np.testing.assert_allclose(metrics["value_loss"], 1.6279322, rtol=1e-5)
    np.testing.assert_allclose(metrics["value"], 0.75, rtol=1e-6)


def test_both_networks_take_an_adam_step(updated):
    # The first Adam step moves every number by the learning rate against the sign of its gradient.
    params = updated[0].params
    np.testing.assert_allclose(params["policy"].layers[0]["b"], [-0.01], rtol=1e-3)
    np.testing.assert_allclose(params["value"].layers[0]["b"], [[1.01]], rtol=1e-5)


def test_update_counts_and_leaves_targets_and_normaliser_alone(updated):
    state, _ = updated
    assert int(state.step) == 8
    jax.tree.map(np.testing.assert_array_equal, state.target, TARGET)
    jax.tree.map(np.testing.assert_array_equal, state.normalizer, normalize.identity(SPEC))


def test_compiled_and_plain_updates_agree(updated):
    plain = AGENT.update(state_of(AGENT), BATCH, KEY)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), plain, updated
    )


def test_the_next_update_sees_the_new_critics(updated):
    state = updated[0]
    again, _ = AGENT.update(state, BATCH, KEY)
    action = AGENT.act(state, BATCH.observation, BATCH.goal)
    expected = AGENT.value.values(state.params["value"], BATCH.observation, BATCH.goal, action)
    np.testing.assert_allclose(again.weight_state[0]["values"], expected, rtol=1e-5)
    assert not np.allclose(expected, [[1.0, 1.0]], atol=1e-3)  # what the first update saw
    assert int(again.weight_state[0]["step"]) == 8


def test_imitation_alone_has_no_critic():
    agent = Agent(WeightedBC(), None, learning_rate=0.01)
    params = {"policy": linear(0.0, 0.0), "value": ()}
    state, metrics = agent.update(state_of(agent, params, params), BATCH, KEY)
    np.testing.assert_allclose(gradient(state, "policy", "b"), [0.5], rtol=1e-5)
    assert state.params["value"] == ()
    assert set(metrics) == {"policy_loss"}


def test_a_maximising_policy_climbs_the_critic_before_its_update():
    agent = Agent(DDPGObjective(0.0, 1.0), QEnsemble(1), discount=0.5, learning_rate=0.01)
    state, _ = agent.update(state_of(agent), BATCH, KEY)
    np.testing.assert_allclose(
        gradient(state, "policy", "b"), [-1.0], rtol=1e-5
    )  # Q = a + 1 at a = 0
    np.testing.assert_allclose(
        gradient(state, "value", "b"), [-0.5115942], rtol=1e-4
    )  # as before: it does not see the new policy


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_update_target_is_one_polyak_step_of_all_targets(wrap):
    state = wrap(AGENT.update_target)(state_of(AGENT))
    np.testing.assert_allclose(
        state.target["policy"].layers[0]["b"], [0.9], rtol=1e-6
    )  # 0.9 · 1 + 0.1 · 0
    np.testing.assert_allclose(
        state.target["value"].layers[0]["b"], [[0.325]], rtol=1e-6
    )  # 0.9 · 0.25 + 0.1 · 1
    jax.tree.map(np.testing.assert_array_equal, state.params, PARAMS)
    assert int(state.step) == 7


@pytest.mark.parametrize(("keep", "expected"), [(1.0, 1.0), (0.0, 0.0)])
def test_update_target_at_its_ends(keep, expected):
    state = dataclasses.replace(AGENT, polyak=keep).update_target(state_of(AGENT))
    np.testing.assert_allclose(state.target["policy"].layers[0]["b"], [expected], atol=1e-7)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_an_agent_that_averages_acts_with_the_average_of_its_policy(wrap):
    agent = dataclasses.replace(AGENT, averaging=0.4, target_period=2)
    params = PARAMS | {"policy": linear(0.0, 0.0, bias=1.0)}
    average = linear(0.0, 0.0, bias=0.5)
    state = state_of(agent, params, TARGET | {"average": average}, step=10)
    moved = wrap(agent.update_target)(state)
    np.testing.assert_allclose(
        moved.target["average"].layers[0]["b"], [0.75], rtol=1e-6
    )  # 0.5 · 0.5 + 0.5 · 1, since 2 / (0.4 · 10) = 0.5
    plain = AGENT.update_target(state_of(AGENT, params))
    jax.tree.map(
        partial(np.testing.assert_allclose, rtol=1e-6),
        {name: moved.target[name] for name in plain.target},
        plain.target,
    )
    at = jnp.zeros((1, 1)), jnp.zeros((1, 1))
    np.testing.assert_allclose(agent.act(state, *at), [[0.4621172]], rtol=1e-6)  # tanh(½)


@pytest.mark.parametrize("period", [1, 4])
def test_an_average_spans_a_share_of_all_updates(period):
    steps = np.arange(period, 2_001, period)
    counts = np.zeros(len(steps))
    for place, step in enumerate(steps):
        share = float(average_share(jnp.asarray(step), period, 0.25))
        counts *= 1.0 - share
        counts[place] = share
    expected = steps**3.0 / (steps**3.0).sum()  # 1 / 0.25 − 1
    assert float(average_share(jnp.asarray(1), 1, 0.1)) == 1.0  # no more than all of it
    np.testing.assert_allclose(counts.sum(), 1.0, rtol=1e-6)
    np.testing.assert_allclose(counts, expected, atol=0.01 * expected.max())


def assert_same(tree, other):
    for one, same in zip(*map(jax.tree.leaves, (tree, other)), strict=True):
        np.testing.assert_array_equal(one, same)
    assert jax.tree.structure(tree) == jax.tree.structure(other)


def test_an_average_begins_as_the_policy_and_does_not_change_what_is_learned():
    agent = dataclasses.replace(AGENT, averaging=0.1)
    states = [each.init(KEY, SPEC) for each in (AGENT, agent)]
    assert_same(states[1].target["average"], states[1].params["policy"])
    for _ in range(2):
        states = [
            each.update_target(each.update(state, BATCH, KEY)[0])
            for each, state in zip((AGENT, agent), states, strict=True)
        ]
    assert_same(states[0].params, states[1].params)


def test_act_uses_the_online_policy():
    state = state_of(AGENT, PARAMS | {"policy": linear(1.0, 0.5)})
    action = AGENT.act(state, jnp.asarray([[1.0], [-10.0]]), jnp.asarray([[-1.0], [0.0]]))
    np.testing.assert_allclose(action, [[0.4621172], [-1.0]], rtol=1e-6)  # tanh(1 − ½), tanh(−10)


def test_an_agent_sees_what_it_is_given():
    """The training loop normalises; the agent must not do so again."""
    scale = normalize.Normalizer(
        jnp.asarray([1.0]), jnp.asarray([2.0]), jnp.asarray([3.0]), jnp.asarray([4.0])
    )
    state = dataclasses.replace(state_of(AGENT), normalizer=scale)
    seen, _ = AGENT.update(state, BATCH, KEY)
    np.testing.assert_array_equal(seen.weight_state[0]["observation"], BATCH.observation)
    np.testing.assert_array_equal(
        AGENT.act(state, BATCH.observation, BATCH.goal),
        AGENT.act(state_of(AGENT), BATCH.observation, BATCH.goal),
    )


def test_every_network_has_the_shape_that_the_agent_says():
    agent = Agent(
        WeightedBC((LearnedSelection(), RND())),
        QEnsemble(2),
        architecture=Architecture((8, 6), "gelu", layer_norm=True),
    )
    state = jax.eval_shape(lambda: agent.init(KEY, SPEC))
    (learned, _), (random, predictor, *_) = state.weight_state
    for each in (state.params["policy"], state.params["value"], learned, random, predictor):
        assert [layer["b"].shape[-1] for layer in each.layers[:-1]] == [8, 6]
        assert [layer["scale"].shape[-1] for layer in each.layers[:-1]] == [8, 6]
        assert "scale" not in each.layers[-1]
        assert each.activation == "gelu"


def test_the_discriminator_of_gofar_is_smooth_whatever_the_architecture():
    agent = Agent(WeightedBC((Chi2(1.0),)), DualValue(), architecture=Architecture((4,), "gelu"))
    params = jax.eval_shape(lambda: agent.init(KEY, SPEC)).params["value"]
    assert (params["v"].activation, params["discriminator"].activation) == ("gelu", "tanh")


def test_adamw_pulls_weights_towards_zero():
    agents = [dataclasses.replace(AGENT, optimizer=name) for name in ("adam", "adamw")]
    params = PARAMS | {"policy": linear(100.0, 0.0)}
    still = dataclasses.replace(BATCH, observation=jnp.zeros((2, 1)))  # no gradient of that weight
    moved = [
        agent.update(
            dataclasses.replace(state_of(agent, params), optimizer=agent._optimizer().init(params)),
            still,
            KEY,
        )[0].params["policy"]
        for agent in agents
    ]
    plain, decayed = (float(each.layers[0]["w"][0, 0]) for each in moved)
    assert plain == 100.0
    np.testing.assert_allclose(decayed, 100.0 * (1 - 0.01 * 1e-4), rtol=1e-7)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: Agent(WeightedBC(), None, optimizer="sdg"),
            "optimizer must be one of adam, adamw",
        ),
        (lambda: Agent(WeightedBC(), None, averaging=0.0), "above 0 and at most 1, not 0"),
        (lambda: Agent(WeightedBC(), None, averaging=1.5), "above 0 and at most 1, not 1.5"),
        (lambda: WeightedBC(loss="L1"), "loss must be one of square, distance, not 'L1'"),
        (lambda: Architecture(activation="relo"), "activation must be one of relu, gelu"),
        (lambda: Architecture(hidden=()), "at least one positive size"),
        (lambda: Architecture(hidden=(8, 0)), "at least one positive size"),
    ],
)
def test_what_no_network_can_be_is_refused(build, message):
    with pytest.raises(GoatError, match=message):
        build()


def test_init_starts_targets_at_the_online_networks():
    agent = Agent(WeightedBC((Uncertainty(capacity=3),)), QEnsemble(2))
    state = jax.jit(lambda key: agent.init(key, SPEC))(KEY)
    jax.tree.map(np.testing.assert_array_equal, state.target, state.params)
    assert int(state.step) == 0
    assert state.params["policy"].layers[0]["w"].shape == (2, 256)
    assert state.params["value"].layers[0]["w"].shape == (2, 3, 256)
    assert state.weight_state[0].values.shape == (3,)
    for leaf in jax.tree.leaves(state.optimizer):
        np.testing.assert_array_equal(leaf, np.zeros(leaf.shape, leaf.dtype))
    assert not np.allclose(
        state.params["policy"].layers[1]["w"], state.params["value"].layers[1]["w"][0]
    )  # no seed is used twice


def test_weighted_regression_takes_the_settings_of_the_task():
    settings = Settings(target_period=4, polyak=0.9, relabel=0.2)
    agent = weighted_regression(settings, ExpAdvantage(), value=QEnsemble(5))
    assert (agent.sampler.probability, agent.target_period, agent.polyak) == (0.2, 4, 0.9)
    assert (agent.policy, agent.value) == (WeightedBC((ExpAdvantage(),)), QEnsemble(5))
    assert weighted_regression(settings, relabel=0.0).sampler.probability == 0.0
    assert weighted_regression(settings).value is None


def test_actor_critic_relabels_with_its_own_probability():
    agent = actor_critic(
        Settings(target_period=4, polyak=0.9, relabel=0.2), QEnsemble(5), pessimism=5.0
    )
    assert (agent.sampler.probability, agent.target_period, agent.polyak) == (0.8, 4, 0.9)
    assert agent.policy == DDPGObjective(pessimism=5.0, action_penalty=1.0)


def test_defaults_are_those_of_the_paper():
    agent = Agent(WeightedBC(), None)
    assert (agent.discount, agent.learning_rate, agent.sampler.probability) == (0.98, 5e-4, 1.0)


def test_gofar_weighs_with_the_target_network_at_the_next_step():
    agent = dataclasses.replace(
        AGENT, policy=WeightedBC((Chi2(1.0),)), value=DualValue(reward="binary")
    )
    value, ahead = linear(1.0, 0.0), linear(0.0, 1.0)  # V = o: (1, 3). Target V = g: (5, 6).
    params, target = (
        {"policy": each["policy"], "value": {"v": v}}
        for each, v in ((PARAMS, value), (TARGET, ahead))
    )
    _, metrics = agent.update(state_of(agent, params, target), BATCH, KEY)
    np.testing.assert_allclose(
        metrics["advantage"], 1.25, rtol=1e-6
    )  # (0 + ½ · 5 − 1 + 1 + ½ · 6 − 3) / 2
    np.testing.assert_allclose(metrics["weight"], 2.25, rtol=1e-6)
