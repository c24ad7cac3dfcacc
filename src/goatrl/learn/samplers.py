"""Hindsight relabelling, inside jit (paper, section 4: D_relabel)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from goatrl.success import reached
from goatrl.types import Batch, Episodes


def sample(
    key: jax.Array,
    episodes: Episodes,
    size: int,
    relabel: Any,
    threshold: float,
    count: jax.Array | None = None,
) -> Batch:
    """Transitions drawn uniformly; with probability `relabel`, g' = φ(s_i) for i uniform in t+1 … T
    of the same episode.

    In a buffer that is still being filled, only the first `count` episodes are there to be drawn.
    """
    which, when, ahead, whether = jax.random.split(key, 4)
    horizon = episodes.horizon
    episode = jax.random.randint(which, (size,), 0, episodes.count if count is None else count)
    step = jax.random.randint(when, (size,), 0, horizon)
    later = jax.random.randint(ahead, (size,), step + 1, horizon + 1)
    relabelled = jax.random.uniform(whether, (size,)) < relabel
    goal = jnp.where(
        relabelled[:, None], episodes.achieved[episode, later], episodes.goals[episode]
    )
    return Batch(
        observation=episodes.observations[episode, step],
        action=episodes.actions[episode, step],
        next_observation=episodes.observations[episode, step + 1],
        initial_observation=episodes.observations[episode, 0],
        achieved=episodes.achieved[episode, step],
        goal=goal,
        # r = 1[‖φ(s) − g‖ ≤ δ]
        reward=reached(episodes.achieved[episode, step + 1], goal, threshold).astype(jnp.float32),
        offset=jnp.where(relabelled, later - step, 0),
    )
