"""TRL: transitive reinforcement learning (Park et al., 2025)."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import optax

from goatrl.algorithms.registry import register
from goatrl.learn.agent import Agent
from goatrl.learn.networks import Architecture, init_ensemble, scalar_ensemble
from goatrl.learn.policies import AWR
from goatrl.learn.samplers import GoalMixes, ValueGoals
from goatrl.learn.values import action_advantage
from goatrl.learn.weights import ExpAdvantage
from goatrl.types import Batch, Metrics, Pytree, Settings, Spec, pytree, static


def known_if_near(logits: jax.Array, offset: jax.Array, discount: Any) -> jax.Array:
    """σ(logit), but γ^Δ for what is Δ = 0 or 1 steps ahead: (N, B), (B,) → (N, B)."""
    steps = jnp.broadcast_to(offset, logits.shape)
    exact = jnp.where(steps < 1, 1.0, discount)
    return jnp.where(steps <= 1, exact, jax.nn.sigmoid(logits))


def transitive_loss(
    logits: jax.Array, target: jax.Array, discount: Any, tau: Any, decay: Any
) -> jax.Array:
    """|κ − 1(target < σ(x))| (1 + log_γ target)^{−λ} BCE(x, target) of logits x, the mean of all:
    distant goals count less for λ > 0.
    """
    side = jnp.where(target < jax.nn.sigmoid(logits), 1.0 - tau, tau)
    steps = jnp.log(target) / jnp.log(discount)
    return jnp.mean(
        side * (1.0 + steps) ** -decay * optax.sigmoid_binary_cross_entropy(logits, target)
    )


@pytree
class TransitiveQ:
    """N Q(s, a, g) = γ^(steps to g), as the logit of a probability: through a state w on the way,
    Q(s, a, g) ≥ Q(s, a, w) Q(w, a_w, g). Goals must come from later in the same episode, and the
    sampler must draw a state `between`.
    """

    learns: ClassVar[str] = "the logit of γ to the power of the steps"
    expectile: float = 0.7
    decay: float = 0.0
    size: int = static(default=2)

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> Pytree:
        inputs = spec.observation_dim + spec.goal_dim + spec.action_dim
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
        way, passed = batch.extra_goals["between"], batch.extras["offset"]
        there, done = batch.extra_observations["between"], batch.extras["action"]
        first = self.values(target, batch.observation, way, batch.action)
        second = self.values(target, there, batch.goal, done)
        product = known_if_near(first, passed, discount) * known_if_near(
            second, batch.offset - passed, discount
        )
        logits = self.values(params, batch.observation, batch.goal, batch.action)
        aim = jax.lax.stop_gradient(product)
        loss = transitive_loss(logits, aim, discount, self.expectile, self.decay)
        return loss, {"value_loss": loss, "value": jnp.mean(jax.nn.sigmoid(logits))}

    def values(
        self, params: Pytree, observation: jax.Array, goal: jax.Array, action: jax.Array
    ) -> jax.Array:
        return scalar_ensemble(params, observation, goal, action)

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


@register("TRL")
def trl(s: Settings) -> Agent:
    """Imitation weighted by Q, which is learned by dividing the way to the goal in two."""
    return Agent(
        policy=AWR((ExpAdvantage(beta=3.0, clip=100.0),)),
        value=TransitiveQ(),
        sampler=GoalMixes(ValueGoals(future=1.0, geometric=True), between=True),
        polyak=s.polyak,
        target_period=s.target_period,
    )
