"""The kernel for GPUs: interpreted, it computes what a plain pass does; compiled, it is in every
update.
"""

from __future__ import annotations

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl import algorithms
from goatrl.episodes import make_episodes
from goatrl.learn import fused, networks
from goatrl.learn.networks import MLP, Architecture, init_ensemble, mlp, without_gradient
from goatrl.training import offline
from goatrl.types import Settings


@pytest.fixture
def available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "available", lambda: True)


def nets(inputs: int, outputs: int, width: int = 256, **architecture: object) -> MLP:
    """Two networks with biases of all signs, of which the matrices are in half precision."""
    shape = Architecture(hidden=(width,) * 3, **architecture)  # type: ignore[arg-type]
    drawn = init_ensemble(jax.random.key(0), 2, inputs, outputs, shape)
    keys = iter(jax.random.split(jax.random.key(1), 16))
    return without_gradient(
        jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(next(keys), leaf.shape), drawn)
    )


def by_hand(member: MLP, x: np.ndarray) -> np.ndarray:
    """The same in double precision, but for the factors of products, which are rounded."""
    *hidden, last = member.layers

    def affine(layer: dict[str, jax.Array], x: np.ndarray) -> np.ndarray:
        rounded = x.astype(np.float16).astype(np.float64)
        return rounded @ np.asarray(layer["w"], np.float64) + np.asarray(layer["b"])

    for layer in hidden:
        x = np.maximum(affine(layer, x), 0.0)
    return affine(last, x)


@pytest.mark.parametrize(
    ("given", "outputs", "width"), [((25, 3, 4), 1, 256), ((25, 3), 4, 128), ((63, 15), 20, 64)]
)
@pytest.mark.usefixtures("available")
def test_the_kernel_computes_what_the_network_does(given, outputs, width):
    members = nets(sum(given), outputs, width)
    assert {layer["w"].dtype for layer in members.layers} == {np.dtype(np.float16)}
    inputs = [jax.random.normal(key, (128, size)) for key, size in zip(
        jax.random.split(jax.random.key(2), len(given)), given, strict=True
    )]  # fmt: skip
    found = jax.vmap(lambda each: fused.forward(each.layers, *inputs, interpret=True))(members)
    assert (found.shape, found.dtype) == ((2, 128, outputs), np.float32)
    x = np.concatenate(inputs, axis=-1)
    for place in range(2):
        member = jax.tree.map(lambda leaf, place=place: leaf[place], members)
        expected = by_hand(member, x)
        np.testing.assert_allclose(found[place], expected, atol=2e-3 * np.abs(expected).max())
        # fewer rows than the kernel takes at once are not for it
        plain = mlp(member, *(each[:3] for each in inputs))
        assert plain.dtype == np.float32
        np.testing.assert_allclose(plain, expected[:3], atol=2e-3 * np.abs(expected).max())


@pytest.mark.usefixtures("available")
def test_what_the_kernel_is_not_for_is_left_to_a_plain_pass():
    def fits(net: MLP, rows: int = 128) -> bool:
        one = jax.tree.map(lambda leaf: leaf[0], net)
        return fused.fits(one.layers, one.activation, rows)

    one = nets(28, 4)
    assert fits(one)
    assert not fits(one, rows=100)
    assert not fits(dataclasses.replace(one, layers=one.layers[1:]))
    assert not fits(nets(28, 4, width=512))
    assert not fits(nets(28, 4, activation="tanh"))
    assert not fits(nets(28, 4, layer_norm=True))
    assert not fits(nets(200, 4))
    single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), one)
    assert not fits(single)


@pytest.mark.usefixtures("available")
def test_half_precision_is_for_the_matrices_of_networks():
    params = {"net": nets(3, 1), "own": (jnp.ones(3), {"v": jnp.ones((2, 2))}), "none": ()}
    dtypes = {leaf.dtype.name for leaf in jax.tree.leaves(without_gradient(params)["own"])}
    assert dtypes == {"float32"}
    first = without_gradient(params)["net"].layers[0]
    assert (first["w"].dtype, first["b"].dtype) == (np.float16, np.float32)


def test_without_such_a_gpu_all_is_in_single_precision():
    net = networks.init_mlp(jax.random.key(0), 3, 1, Architecture())
    assert {leaf.dtype for leaf in jax.tree.leaves(without_gradient(net))} == {np.dtype(np.float32)}


@pytest.mark.parametrize("wrap", [lambda net: net, without_gradient], ids=["as it is", "without"])
def test_no_gradient_flows_through_such_a_pass(wrap):
    net = networks.init_mlp(jax.random.key(0), 3, 1, Architecture(hidden=(8,)))
    slopes = jax.grad(lambda net: mlp(wrap(net), jnp.ones((2, 3))).sum())(net)
    flows = any(np.any(leaf) for leaf in jax.tree.leaves(slopes))
    assert flows == (wrap is not without_gradient)


def chunk(name: str, batch_size: int):
    """A chunk of updates of two agents, not called yet, and its arguments."""
    rng = np.random.default_rng(0)
    episodes = make_episodes(
        rng.normal(size=(20, 6, 25)),
        rng.normal(size=(20, 6, 3)),
        rng.uniform(-1, 1, (20, 5, 4)),
        rng.normal(size=(20, 3)),
    )
    algorithm = algorithms.get(name).build(Settings(target_period=2))
    spec = episodes.spec(0.05)
    members = [(algorithm, 0), (algorithm, 1)]
    stacked, state, keys, shared, rows = offline._on_device(members, spec, episodes, None)
    run = partial(offline.run_chunk.__wrapped__, reward_offset=0.0)
    return (
        lambda stacked, state, keys, shared, rows: run(
            stacked, state, keys, shared, 1, batch_size, spec.goal_threshold, rows
        ),
        (stacked, state, keys, shared, rows),
    )


# How often a network is applied without a gradient: π(s') and the critics at (s; s') for the
# advantage, π̂(s') and the target critics at s' for TD targets; CQL's candidate actions besides.
@pytest.mark.parametrize(
    ("name", "passes"), [("bc", 0), ("ddpg_her", 2), ("cql_her", 3), ("goat", 4), ("wgcsl_cql", 5)]
)
@pytest.mark.usefixtures("available")
def test_the_kernel_is_in_every_update_on_a_gpu(name, passes):
    run, arguments = chunk(name, 64)
    text = jax.jit(run).trace(*arguments).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("triton_kernel_call") + text.count("xla.gpu.triton") == passes


def test_an_update_in_half_precision_is_nearly_one_in_single(monkeypatch):
    run, arguments = chunk("goat", 64)
    _, single = jax.jit(run)(*arguments)
    monkeypatch.setattr(fused, "available", lambda: True)
    monkeypatch.setattr(fused, "forward", partial(fused.forward, interpret=True))
    run, arguments = chunk("goat", 64)
    _, half = jax.jit(run)(*arguments)
    for name in ("advantage", "value_loss", "weight"):
        difference = np.abs(np.asarray(half[name]) - np.asarray(single[name])).max()
        assert 0.0 < difference < 2e-3, name
