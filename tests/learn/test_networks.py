"""Networks: the arithmetic of a layer, the starting weights, ensembles."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl.learn import networks

TWO_LAYERS = (
    {"w": jnp.asarray([[1.0, -1.0], [2.0, 0.0], [0.0, 1.0]]), "b": jnp.asarray([0.5, -0.5])},
    {"w": jnp.asarray([[2.0], [-1.0]]), "b": jnp.asarray([10.0])},
)
LEFT = jnp.asarray([[1.0, 2.0], [-1.0, 0.0]])
RIGHT = jnp.asarray([[3.0], [0.5]])
# Before the activation: (1 + 4 + 0.5, −1 + 3 − 0.5) = (5.5, 1.5) and (−1 + 0.5, 1 + 0.5 − 0.5) =
# (−0.5, 1).


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_mlp_by_hand(wrap):
    np.testing.assert_allclose(
        wrap(networks.mlp)(TWO_LAYERS, LEFT, RIGHT), [[19.5], [9.0]], rtol=1e-6
    )


def test_mlp_concatenates_its_inputs_in_order():
    joined = jnp.asarray([[1.0, 2.0, 3.0], [-1.0, 0.0, 0.5]])
    np.testing.assert_array_equal(
        networks.mlp(TWO_LAYERS, joined), networks.mlp(TWO_LAYERS, LEFT, RIGHT)
    )


def test_mlp_with_another_activation():
    # tanh: 5.5 → 0.9999666, 1.5 → 0.9051483, −0.5 → −0.4621172, 1 → 0.7615942
    np.testing.assert_allclose(
        networks.mlp(TWO_LAYERS, LEFT, RIGHT, activation=jnp.tanh),
        [[11.0947849], [8.3141714]],
        rtol=1e-5,
    )


def test_the_last_layer_is_linear():
    layer = ({"w": jnp.asarray([[1.0]]), "b": jnp.asarray([-5.0])},)
    np.testing.assert_array_equal(networks.mlp(layer, jnp.asarray([[2.0], [7.0]])), [[-3.0], [2.0]])


def test_policy_action_is_the_tanh_of_the_network():
    layer = ({"w": jnp.asarray([[1.0, 0.0], [0.0, 1.0]]), "b": jnp.asarray([0.0, 0.5])},)
    action = networks.policy_action(
        layer, jnp.asarray([[0.0], [-100.0]]), jnp.asarray([[0.5], [100.0]])
    )
    np.testing.assert_allclose(action, [[0.0, 0.7615942], [-1.0, 1.0]], rtol=1e-6)


def test_initial_sizes_are_three_hidden_layers_of_256():
    params = jax.eval_shape(lambda key: networks.init_mlp(key, 7, 2), jax.random.key(0))
    assert [layer["w"].shape for layer in params] == [(7, 256), (256, 256), (256, 256), (256, 2)]
    assert [layer["b"].shape for layer in params] == [(256,), (256,), (256,), (2,)]
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}


def test_initial_weights_are_xavier_uniform_and_biases_zero():
    params = networks.init_mlp(jax.random.key(0), 40, 8, hidden=(56,))
    for layer, limit in zip(params, (0.25, 0.3061862), strict=True):  # √(6 / 96) and √(6 / 64)
        weights = np.asarray(layer["w"])
        assert np.abs(weights).max() <= limit
        assert np.abs(weights).max() > 0.95 * limit
        np.testing.assert_allclose(weights.std(), limit / np.sqrt(3), rtol=0.1)
        np.testing.assert_allclose(weights.mean(), 0.0, atol=0.1 * limit)
        np.testing.assert_array_equal(layer["b"], 0.0)


def test_layers_start_from_different_numbers():
    first, second = networks.init_mlp(jax.random.key(0), 6, 6, hidden=(6,))
    assert not np.allclose(first["w"], second["w"])


def test_ensemble_has_a_leading_axis_and_different_members():
    params = jax.jit(lambda key: networks.init_ensemble(key, 2, 3, 1))(jax.random.key(0))
    assert params[0]["w"].shape == (2, 3, 256)
    assert params[-1]["b"].shape == (2, 1)
    for layer in params:
        assert not np.allclose(layer["w"][0], layer["w"][1])


def test_scalar_ensemble_runs_every_member_on_the_same_inputs():
    # Member 0: 2 x + y; member 1: x − y + 10.
    params = (
        {"w": jnp.asarray([[[2.0], [1.0]], [[1.0], [-1.0]]]), "b": jnp.asarray([[0.0], [10.0]])},
    )
    x, y = jnp.asarray([[1.0], [2.0], [3.0]]), jnp.asarray([[5.0], [0.0], [-1.0]])
    np.testing.assert_array_equal(
        networks.scalar_ensemble(params, x, y), [[7.0, 4.0, 5.0], [6.0, 12.0, 14.0]]
    )
