"""Networks: the arithmetic of a layer, the starting weights, ensembles."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl.learn import networks
from goatrl.learn.networks import Architecture
from helpers import ensemble, linear, network

LAYERS = (
    ([[1.0, -1.0], [2.0, 0.0], [0.0, 1.0]], [0.5, -0.5]),
    ([[2.0], [-1.0]], [10.0]),
)
TWO_LAYERS = network(*LAYERS)
DEFAULT = Architecture()
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
        networks.mlp(network(*LAYERS, activation="tanh"), LEFT, RIGHT),
        [[11.0947849], [8.3141714]],
        rtol=1e-5,
    )


def test_the_last_layer_is_linear():
    layer = linear(1.0, bias=-5.0)
    np.testing.assert_array_equal(networks.mlp(layer, jnp.asarray([[2.0], [7.0]])), [[-3.0], [2.0]])


def test_policy_action_is_the_tanh_of_the_network():
    layer = network(([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.5]))
    action = networks.policy_action(
        layer, jnp.asarray([[0.0], [-100.0]]), jnp.asarray([[0.5], [100.0]])
    )
    np.testing.assert_allclose(action, [[0.0, 0.7615942], [-1.0, 1.0]], rtol=1e-6)


def test_initial_sizes_are_three_hidden_layers_of_256():
    params = jax.eval_shape(lambda key: networks.init_mlp(key, 7, 2, DEFAULT), jax.random.key(0))
    assert [layer["w"].shape for layer in params.layers] == [
        (7, 256),
        (256, 256),
        (256, 256),
        (256, 2),
    ]
    assert [layer["b"].shape for layer in params.layers] == [(256,), (256,), (256,), (2,)]
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}


def test_initial_weights_are_xavier_uniform_and_biases_zero():
    params = networks.init_mlp(jax.random.key(0), 40, 8, Architecture((56,)))
    for layer, limit in zip(
        params.layers, (0.25, 0.3061862), strict=True
    ):  # √(6 / 96) and √(6 / 64)
        weights = np.asarray(layer["w"])
        assert np.abs(weights).max() <= limit
        assert np.abs(weights).max() > 0.95 * limit
        np.testing.assert_allclose(weights.std(), limit / np.sqrt(3), rtol=0.1)
        np.testing.assert_allclose(weights.mean(), 0.0, atol=0.1 * limit)
        np.testing.assert_array_equal(layer["b"], 0.0)


def test_layers_start_from_different_numbers():
    first, second = networks.init_mlp(jax.random.key(0), 6, 6, Architecture((6,))).layers
    assert not np.allclose(first["w"], second["w"])


def test_ensemble_has_a_leading_axis_and_different_members():
    params = jax.jit(lambda key: networks.init_ensemble(key, 2, 3, 1, DEFAULT))(jax.random.key(0))
    assert params.layers[0]["w"].shape == (2, 3, 256)
    assert params.layers[-1]["b"].shape == (2, 1)
    for layer in params.layers:
        assert not np.allclose(layer["w"][0], layer["w"][1])


def test_scalar_ensemble_runs_every_member_on_the_same_inputs():
    # Member 0: 2 x + y; member 1: x − y + 10.
    params = ensemble(linear(2.0, 1.0), linear(1.0, -1.0, bias=10.0))
    x, y = jnp.asarray([[1.0], [2.0], [3.0]]), jnp.asarray([[5.0], [0.0], [-1.0]])
    np.testing.assert_array_equal(
        networks.scalar_ensemble(params, x, y), [[7.0, 4.0, 5.0], [6.0, 12.0, 14.0]]
    )


def test_layer_norm_by_hand():
    # Hidden values (5.5, 1.5) and (0, 1) after relu: normalised to (1, −1) and (−1, 1), up to 1e-6.
    first, second = TWO_LAYERS.layers
    first = first | {"scale": jnp.asarray([2.0, 1.0]), "shift": jnp.asarray([0.0, 3.0])}
    got = networks.mlp(networks.MLP((first, second)), LEFT, RIGHT)
    # (2, 2) → 4 − 2 + 10; (−2, 4) → −4 − 4 + 10
    np.testing.assert_allclose(got, [[12.0], [2.0]], rtol=1e-4)


def test_layer_norm_of_a_new_network_changes_nothing_but_scale_and_place():
    plain, normed = (
        networks.init_mlp(jax.random.key(0), 3, 1, Architecture((5,), layer_norm=norm))
        for norm in (False, True)
    )
    np.testing.assert_array_equal(plain.layers[0]["w"], normed.layers[0]["w"])
    np.testing.assert_array_equal(normed.layers[0]["scale"], np.ones(5))
    np.testing.assert_array_equal(normed.layers[0]["shift"], np.zeros(5))


def test_leaves_are_named_by_the_number_of_their_layer():
    """As checkpoints have always named them."""
    paths = [
        jax.tree_util.keystr(path, simple=True, separator="/")
        for path, _ in jax.tree_util.tree_flatten_with_path({"policy": TWO_LAYERS})[0]
    ]
    assert paths == ["policy/0/b", "policy/0/w", "policy/1/b", "policy/1/w"]
