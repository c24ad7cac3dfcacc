"""A critic by contrast: which goal was achieved after which state and action."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import optax

from goatrl.learn.networks import MLP, Architecture, init_ensemble, mlp
from goatrl.learn.values import action_advantage
from goatrl.types import Batch, Metrics, Pytree, Spec, pytree, static


def contrastive_loss(logits: jax.Array) -> jax.Array:
    """The mean binary cross-entropy of logits against the identity matrix: the goal of its own row
    is the positive, those of all other rows are negatives: (N, B, B) → ().
    """
    own = jnp.broadcast_to(jnp.eye(logits.shape[-1]), logits.shape)
    return jnp.mean(optax.sigmoid_binary_cross_entropy(logits, own))


@pytree
class ContrastiveQ:
    """N φ_k(s, a)·ψ_k(g)/√d: at its best the logarithm of how much more often g is achieved after
    (s, a) than after any (CRL). Goals must come from later in the same episode.

    Neither network sees both observation and goal, whatever `architecture.inputs` is.
    """

    learns: ClassVar[str] = "how often goals follow"
    latent: int = static(default=256)
    size: int = static(default=2)

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> Pytree:
        action_key, goal_key = jax.random.split(key)
        plain = dataclasses.replace(architecture, inputs="absolute")
        inputs = spec.observation_dim + spec.action_dim
        return {
            "action": init_ensemble(action_key, self.size, inputs, self.latent, plain),
            "goal": init_ensemble(goal_key, self.size, spec.goal_dim, self.latent, plain),
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
        action = _embedded(params["action"], batch.observation, batch.action)
        goal = _embedded(params["goal"], batch.goal)
        logits = jnp.einsum("kid,kjd->kij", action, goal) / self.latent**0.5
        loss, own = contrastive_loss(logits), jnp.diagonal(logits, axis1=1, axis2=2)
        return loss, {"value_loss": loss, "value": jnp.mean(own)}

    def values(
        self, params: Pytree, observation: jax.Array, goal: jax.Array, action: jax.Array
    ) -> jax.Array:
        pairs = _embedded(params["action"], observation, action) * _embedded(params["goal"], goal)
        return jnp.sum(pairs, axis=-1) / self.latent**0.5

    def advantage(
        self,
        params: Pytree,
        target: Pytree,
        batch: Batch,
        action: jax.Array,
        next_action: jax.Array,
        discount: Any,
    ) -> tuple[jax.Array, jax.Array]:
        return action_advantage(self, params, batch, action)


def _embedded(networks: MLP, *inputs: jax.Array) -> jax.Array:
    """(B, …) → (N, B, latent)."""
    return jax.vmap(lambda member: mlp(member, *inputs))(networks)
