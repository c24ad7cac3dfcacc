"""Worlds in pure JAX: whole episodes run within one compiled program."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from goatrl.robots.family import Act, Drawn, Family, OnProgress

Step = Callable[[jax.Array, jax.Array, float], jax.Array]  # state, action, bound → next state


@dataclasses.dataclass(frozen=True, eq=False)
class JaxFamily(Family):
    """A robot whose state is its observation. Its first `goal_dim` numbers are what it achieves."""

    step: Step

    simulated: ClassVar[bool] = False
    records_paths: ClassVar[bool] = True

    def initial(self, starts: np.ndarray) -> np.ndarray:
        return starts[:, : self.spec.goal_dim]

    def rollouts(
        self,
        act: Act,
        agents: tuple[Any, Any],
        members: int,
        drawn: Sequence[Drawn],
        horizon: int,
        on_progress: OnProgress | None = None,
    ) -> list[np.ndarray]:
        return [
            np.asarray(
                _rollouts(
                    self.step,
                    act,
                    agents,
                    *(
                        jnp.broadcast_to(jnp.float32(part), (members, *part.shape))
                        for part in (starts, goals)
                    ),
                    bound,
                    horizon,
                )[..., : self.spec.goal_dim]
            )
            for starts, goals, bound in drawn
        ]


@partial(jax.jit, static_argnums=(0, 1, 5, 6))
def _rollouts(
    step: Step,
    act: Act,
    agents: tuple[Any, Any],
    starts: jax.Array,
    goals: jax.Array,
    bound: float,
    horizon: int,
) -> jax.Array:
    return rollout(step, partial(act, *agents), starts, goals, bound, horizon)


def rollout(
    step: Step,
    act: Callable[[jax.Array, jax.Array], jax.Array],
    starts: jax.Array,
    goals: jax.Array,
    bound: float,
    horizon: int,
) -> jax.Array:
    """States of all episodes, starts included: (…, ·), (…, ·) → (…, horizon + 1, ·)."""

    def advance(state: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        action = act(state, goals)
        # What is infinite must not become an action by clipping.
        state = step(state, jnp.where(jnp.isfinite(action), action, jnp.nan), bound)
        return state, state

    _, states = jax.lax.scan(advance, starts, length=horizon)
    return jnp.concatenate([starts[..., None, :], jnp.moveaxis(states, 0, -2)], axis=-2)
