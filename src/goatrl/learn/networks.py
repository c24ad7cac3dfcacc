"""Multi-layer perceptrons as plain pytrees: a tuple of {"w", "b"} layers. An ensemble is one more
leading axis.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from goatrl.types import Pytree

HIDDEN = (256, 256, 256)


def init_mlp(key: jax.Array, inputs: int, outputs: int, hidden: tuple[int, ...] = HIDDEN) -> Pytree:
    """Xavier-uniform weights and zero biases."""
    sizes = (inputs, *hidden, outputs)
    keys = jax.random.split(key, len(sizes) - 1)
    return tuple(
        {
            "w": jax.nn.initializers.glorot_uniform()(k, (n, m), jnp.float32),
            "b": jnp.zeros((m,), jnp.float32),
        }
        for k, n, m in zip(keys, sizes[:-1], sizes[1:], strict=True)
    )


def init_ensemble(key: jax.Array, size: int, inputs: int, outputs: int) -> Pytree:
    return jax.vmap(lambda k: init_mlp(k, inputs, outputs))(jax.random.split(key, size))


def mlp(
    params: Pytree, *inputs: jax.Array, activation: Callable[[jax.Array], jax.Array] = jax.nn.relu
) -> jax.Array:
    """The network on the concatenated inputs, without a last activation: (B, …) → (B, outputs)."""
    x = jnp.concatenate(inputs, axis=-1)
    for layer in params[:-1]:
        x = activation(x @ layer["w"] + layer["b"][None])
    return x @ params[-1]["w"] + params[-1]["b"][None]


def scalar_ensemble(params: Pytree, *inputs: jax.Array) -> jax.Array:
    """N scalar networks on the same inputs: (B, …) → (N, B)."""
    return jax.vmap(lambda member: mlp(member, *inputs)[:, 0])(params)


def policy_action(params: Pytree, observation: jax.Array, goal: jax.Array) -> jax.Array:
    """π(s, g) ∈ [-1, 1]: (B, …) → (B, action_dim)."""
    return jnp.tanh(mlp(params, observation, goal))
