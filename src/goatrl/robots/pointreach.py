"""The point of the paper's 2-D didactic task."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from goatrl.robots.jax_world import JaxFamily
from goatrl.types import Layout, Spec

SPACES = ("observation", "goal", "action")


def step(position: jax.Array, action: jax.Array, bound: float) -> jax.Array:
    """Move by the action, at most 1 per axis, and stay in the box."""
    return jnp.clip(position + jnp.clip(action, -1.0, 1.0), -bound, bound)


POINT = JaxFamily(
    "point",
    Spec(observation_dim=2, goal_dim=2, action_dim=2, horizon=49, goal_threshold=1.0),
    step,
    layout=Layout((0, 1), vertical=()),
    symmetry={"reflection": [{space: {axis: 0.0} for space in SPACES} for axis in "01"]},
)
