"""A robot in one file: a point that a current carries along, the data that shows it, its tasks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from goatrl.episodes import make_episodes
from goatrl.robots.jax_world import JaxFamily
from goatrl.tasks import Task, TaskGroup, register_task_group
from goatrl.tasks.regions import Box, Points, everywhere
from goatrl.types import Episodes, Settings, Spec

CURRENT = (0.25, 0.0)


def step(position: jax.Array, action: jax.Array, bound: float) -> jax.Array:
    moved = position + 0.5 * jnp.clip(action, -1.0, 1.0)
    return jnp.clip(moved.at[..., 0].add(CURRENT[0]), -bound, bound)


class Swims:
    """At random, five times."""

    def describe(self, label: str) -> str:
        return f"{label}: a point swims in a current"

    def make(self, seed: int) -> Episodes:
        actions = np.random.default_rng(seed).uniform(-1.0, 1.0, (5, 12, 2))
        moved = np.cumsum(0.5 * actions + CURRENT, axis=1)
        positions = np.concatenate([np.zeros((5, 1, 2)), moved], axis=1)
        return make_episodes(positions, positions, actions, positions[:, -1])


DRIFTING = JaxFamily(
    "drifting",
    Spec(observation_dim=2, goal_dim=2, action_dim=2, horizon=12, goal_threshold=0.5),
    step,
)
ORIGIN = Points(np.zeros((1, 2)))
GROUP = TaskGroup(
    "drifting-down-up",
    "Drifting Down-Up",
    DRIFTING,
    Settings(updates=20, batch_size=8),
    DRIFTING.spec,
    tasks=(
        Task("Down", "iid", ORIGIN, Box((1.0, 0.0), (3.0, 0.0)), 4, bound=5.0),
        Task("Up", "ood", ORIGIN, Box((-3.0, 0.0), (-1.0, 0.0)), 4, bound=5.0),
    ),
    iid=everywhere(2),
    script=Swims(),
)


def register() -> None:
    register_task_group(GROUP)
