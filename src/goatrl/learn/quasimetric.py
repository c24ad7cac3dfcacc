"""Values as distances: a quasimetric obeys the triangle inequality, and need not be symmetric."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from goatrl.learn.networks import Architecture, init_mlp, mlp
from goatrl.learn.values import action_advantage
from goatrl.types import Batch, Metrics, Pytree, Spec, pytree, static


def interval_lengths(start: jax.Array, end: jax.Array, group: int) -> jax.Array:
    """The length of the union of the intervals [x_i, max(x_i, y_i)] of every group of numbers:
    (B, d), (B, d) → (B, d/group).

    Every interval adds what it covers beyond those that begin before it. All pairs are compared to
    find those: groups are small, and sorting has a slow gradient.
    """
    rows = (start.shape[0], -1, group)
    left, right = start.reshape(rows), jnp.maximum(start, end).reshape(rows)
    mine, other = left[..., :, None], left[..., None, :]
    first = jnp.tril(jnp.ones((group, group), bool), k=-1)  # of those that begin together
    before = (other < mine) | ((other == mine) & first[None, None])
    ends = jnp.broadcast_to(right[..., None, :], before.shape)
    covered = jnp.max(ends, axis=-1, where=before, initial=-jnp.inf)
    return jnp.sum(jnp.maximum(right - jnp.maximum(left, covered), 0.0), axis=-1)


def interval_distance(start: jax.Array, end: jax.Array, mix: jax.Array, group: int) -> jax.Array:
    """The interval quasimetric embedding d(x, y) = σ(a) mean + (1 − σ(a)) max over the lengths of
    all groups (IQE): (B, d), (B, d), () → (B,).
    """
    lengths, share = interval_lengths(start, end, group), jax.nn.sigmoid(mix)
    return share * jnp.mean(lengths, axis=-1) + (1.0 - share) * jnp.max(lengths, axis=-1)


def spreading_loss(distance: jax.Array) -> jax.Array:
    """E 100 softplus(5 − d/100): states and goals are pushed apart, up to some 500 steps."""
    return jnp.mean(100.0 * jax.nn.softplus(5.0 - distance / 100.0))


def multiplier_loss(violation: jax.Array, log_multiplier: jax.Array, slack: Any) -> jax.Array:
    """sg(λ) C + λ (ε − sg(C)), λ = e^ℓ: the loss of a constraint C ≤ ε, and its multiplier's."""
    multiplier, sg = jnp.exp(log_multiplier), jax.lax.stop_gradient
    return sg(multiplier) * violation + multiplier * (slack - sg(violation))


@pytree
class Quasimetric:
    """The largest distances d(s, g) for which no step of the data is longer than 1 (QRL).

    States and goals are embedded in one space by networks of their own, f(s) and h(g). A state is
    where what it achieves is: the constraint is E relu(d(f(s), f(s')) − 1)² + E d(f(s'), h(φ(s')))²
    ≤ ε. A model of the latent step, ẑ' = z + m(z, a), makes it a function of actions:
    Q = −d(ẑ', h(g)).

    No network sees both observation and goal, whatever `architecture.inputs` is.
    """

    learns: ClassVar[str] = "a distance"
    slack: float = 0.05
    groups: int = static(default=32)
    group: int = static(default=8)  # numbers in each

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> Pytree:
        plain = dataclasses.replace(architecture, inputs="absolute")
        latent = self.groups * self.group
        sizes = {
            "state": spec.observation_dim,
            "goal": spec.goal_dim,
            "step": latent + spec.action_dim,
        }
        keys = jax.random.split(key, len(sizes))
        networks = {
            name: init_mlp(k, size, latent, plain)
            for k, (name, size) in zip(keys, sizes.items(), strict=True)
        }
        return {**networks, "mix": jnp.zeros(()), "log_multiplier": jnp.zeros(())}

    def loss(
        self,
        params: Pytree,
        target: Pytree,
        batch: Batch,
        next_action: jax.Array,
        discount: Any,
        key: jax.Array,
    ) -> tuple[jax.Array, Metrics]:
        here, there = (
            mlp(params["state"], seen) for seen in (batch.observation, batch.next_observation)
        )
        goal, arrived = (mlp(params["goal"], each) for each in (batch.goal, batch.next_achieved))
        distance = self._distance(params, here, goal)
        excess = jax.nn.relu(self._distance(params, here, there) - 1.0)
        violation = jnp.mean(excess**2 + self._distance(params, there, arrived) ** 2)
        guess = _step(params, here, batch.action)
        model = 0.5 * jnp.mean(
            self._distance(params, there, guess) + self._distance(params, guess, there)
        )
        loss = spreading_loss(distance) + model
        loss += multiplier_loss(violation, params["log_multiplier"], self.slack)
        return loss, {
            "value_loss": loss,
            "model_loss": model,
            "violation": violation,
            "value": -jnp.mean(distance),
            # A distance between embeddings that are no numbers can be one: of such, this is none.
            "embedding": jnp.mean(jnp.abs(here)),
        }

    def values(
        self, params: Pytree, observation: jax.Array, goal: jax.Array, action: jax.Array
    ) -> jax.Array:
        guess = _step(params, mlp(params["state"], observation), action)
        return -self._distance(params, guess, mlp(params["goal"], goal))[None]

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

    def _distance(self, params: Pytree, start: jax.Array, end: jax.Array) -> jax.Array:
        return interval_distance(start, end, params["mix"], self.group)


def _step(params: Pytree, here: jax.Array, action: jax.Array) -> jax.Array:
    """ẑ' = z + m(z, a)."""
    return here + mlp(params["step"], here, action)
