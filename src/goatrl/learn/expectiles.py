"""Values of goals by expectiles, for costs of 1 a step until the goal is reached.

The reward is −1, and 0 where the next state reaches the goal, with which the episode ends: a value
is minus a (discounted) number of steps. Of a goal that is never reached it is −1/(1 − γ).
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from goatrl.learn.networks import (
    Architecture,
    init_ensemble,
    init_mlp,
    mlp,
    scalar_ensemble,
    without_gradient,
)
from goatrl.learn.values import expectile_loss
from goatrl.types import Batch, Metrics, Pytree, Spec, pytree, static


def continued(batch: Batch, next_value: jax.Array, discount: Any, cost: Any = 1.0) -> jax.Array:
    """Values of next steps, (…, B): −1/(1 − γ), for a `cost` of 1 a step, where the environment
    ended the episode short of its goal, because no other goal is reached from there.
    """
    if batch.ended is None:
        return next_value
    ended = jnp.broadcast_to(batch.ended, next_value.shape)
    return (1.0 - ended) * next_value - ended * cost / (1.0 - discount)


def cost_target(batch: Batch, next_value: jax.Array, discount: Any) -> jax.Array:
    """r − 1 + γ m V(s', g), with our reward r of 1 at the goal and m = 1 − r: (…, B) → (…, B)."""
    follows = continued(batch, next_value, discount)
    reward, mask = (jnp.broadcast_to(x, follows.shape) for x in (batch.reward, batch.mask))
    return jax.lax.stop_gradient(reward - 1.0 + discount * mask * follows)


def sided_loss(advantage: jax.Array, error: jax.Array, tau: Any) -> jax.Array:
    """|κ − 1(A < 0)| u²: an expectile loss whose side A decides, not the error itself."""
    return jnp.where(advantage < 0, 1.0 - tau, tau) * error**2


@pytree
class ExpectileV:
    """N V(s, g) by an expectile over what the data does next (GCIVL). Each has its own target, and
    one advantage decides the side of all: A = r + γ m min_k V̄_k(s') − mean_k V̄_k(s).
    """

    expectile: float = 0.9
    size: int = static(default=2)

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> Pytree:
        inputs = spec.observation_dim + spec.goal_dim
        return init_ensemble(key, self.size, inputs, 1, architecture)

    def loss(
        self,
        params: Pytree,
        target: Pytree,
        batch: Batch,
        next_action: jax.Array,
        discount: Any,
        key: jax.Array,
    ) -> tuple[jax.Array, Metrics]:
        later = scalar_ensemble(target, batch.next_observation, batch.goal)
        before = jnp.mean(scalar_ensemble(target, batch.observation, batch.goal), axis=0)
        advantage = cost_target(batch, jnp.min(later, axis=0), discount) - before
        value = scalar_ensemble(params, batch.observation, batch.goal)
        error = cost_target(batch, later, discount) - value
        sides = jnp.broadcast_to(advantage, error.shape)
        loss = jnp.mean(sided_loss(sides, error, self.expectile), axis=-1).sum()
        return loss, {"value_loss": loss / self.size, "value": jnp.mean(value)}

    def values(
        self, params: Pytree, observation: jax.Array, goal: jax.Array, action: jax.Array
    ) -> jax.Array:
        return scalar_ensemble(params, observation, goal)

    def advantage(
        self,
        params: Pytree,
        target: Pytree,
        batch: Batch,
        action: jax.Array,
        next_action: jax.Array,
        discount: Any,
    ) -> tuple[jax.Array, jax.Array]:
        """A = V(s', g) − V(s, g), the mean of all: how much nearer the step comes."""
        value = scalar_ensemble(params, batch.observation, batch.goal)
        later = scalar_ensemble(params, batch.next_observation, batch.goal)
        return jnp.mean(continued(batch, later, discount) - value, axis=0), value


@pytree
class ExpectileQ:
    """V(s, g) is an expectile of min_k Q̄_k(s, a, g) over the data's actions, and every Q_k
    bootstraps from V (GCIQL).
    """

    learns: ClassVar[str] = "Q(s, a, g) only for actions in the data"
    expectile: float = 0.9
    size: int = static(default=2)

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> Pytree:
        q_key, v_key = jax.random.split(key)
        inputs = spec.observation_dim + spec.goal_dim
        return {
            "q": init_ensemble(q_key, self.size, inputs + spec.action_dim, 1, architecture),
            "v": init_mlp(v_key, inputs, 1, architecture),
        }

    def loss(
        self,
        params: Pytree,
        target: Pytree,
        batch: Batch,
        next_action: jax.Array,
        discount: Any,
        key: jax.Array,
    ) -> tuple[jax.Array, Metrics]:
        old = self.values(target, batch.observation, batch.goal, batch.action)
        value = mlp(params["v"], batch.observation, batch.goal)[:, 0]
        error = jax.lax.stop_gradient(jnp.min(old, axis=0)) - value
        v_loss = jnp.mean(expectile_loss(error, self.expectile))
        loss = v_loss + self.q_loss(params, batch, discount)
        return loss, {"value_loss": loss, "value": jnp.mean(value)}

    def q_loss(self, params: Pytree, batch: Batch, discount: Any) -> jax.Array:
        """Σ_k E (Q_k(s, a, g) − (r − 1 + γ m V(s', g)))²."""
        later = mlp(without_gradient(params["v"]), batch.next_observation, batch.goal)[:, 0]
        q = self.values(params, batch.observation, batch.goal, batch.action)
        aim = jnp.broadcast_to(cost_target(batch, later, discount), q.shape)
        return jnp.mean((aim - q) ** 2, axis=-1).sum()

    def values(
        self, params: Pytree, observation: jax.Array, goal: jax.Array, action: jax.Array
    ) -> jax.Array:
        return scalar_ensemble(params["q"], observation, goal, action)

    def advantage(
        self,
        params: Pytree,
        target: Pytree,
        batch: Batch,
        action: jax.Array,
        next_action: jax.Array,
        discount: Any,
    ) -> tuple[jax.Array, jax.Array]:
        """A = min_k Q_k(s, a, g) − V(s, g)."""
        value = mlp(params["v"], batch.observation, batch.goal)[:, 0]
        q = self.values(params, batch.observation, batch.goal, batch.action)
        return jnp.min(q, axis=0) - value, value[None]
