"""The 2-D point world, in pure JAX."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

Act = Callable[[jax.Array, jax.Array], jax.Array]  # (B, 2) positions, (B, 2) goals → (B, 2) actions


def step(position: jax.Array, action: jax.Array, bound: float) -> jax.Array:
    """Move by the action, at most 1 per axis, and stay in the box."""
    return jnp.clip(position + jnp.clip(action, -1.0, 1.0), -bound, bound)


def rollout(act: Act, starts: jax.Array, goals: jax.Array, bound: float, horizon: int) -> jax.Array:
    """Positions of all episodes, starts included: (B, 2), (B, 2) → (B, horizon + 1, 2)."""

    def advance(position: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        position = step(position, act(position, goals), bound)
        return position, position

    _, positions = jax.lax.scan(advance, starts, length=horizon)
    return jnp.concatenate([starts[:, None], jnp.swapaxes(positions, 0, 1)], axis=1)
