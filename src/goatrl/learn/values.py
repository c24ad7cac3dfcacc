"""Value functions: TD targets and losses, and the parts that own value networks.

A value part offers:

    init(key, spec, architecture) → params
    loss(params, target, batch, next_action, discount, key) → (loss, metrics)
        next_action: of the target policy
    values(params, observation, goal, action) → (N, B)
        V_i(s, g) under the policy's action
    advantage(params, target, batch, action, next_action, discount) → ((B,), (N, B))
        A(s, a, g) and the V_i(s, g) behind it
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Protocol

import jax
import jax.numpy as jnp
import optax

from goatrl.learn.networks import (
    Architecture,
    init_ensemble,
    init_mlp,
    mlp,
    scalar_ensemble,
    without_gradient,
)
from goatrl.types import Batch, GoatError, Metrics, Pytree, Spec, pytree, static


class Value(Protocol):
    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> Pytree: ...

    def loss(
        self,
        params: Pytree,
        target: Pytree,
        batch: Batch,
        next_action: jax.Array,
        discount: Any,
        key: jax.Array,
    ) -> tuple[jax.Array, Metrics]: ...

    def values(
        self, params: Pytree, observation: jax.Array, goal: jax.Array, action: jax.Array
    ) -> jax.Array: ...

    def advantage(
        self,
        params: Pytree,
        target: Pytree,
        batch: Batch,
        action: jax.Array,
        next_action: jax.Array,
        discount: Any,
    ) -> tuple[jax.Array, jax.Array]: ...


def td_target(
    reward: jax.Array, next_value: jax.Array, discount: Any, highest: float | None = None
) -> jax.Array:
    """r + γ V̂(s', g), clipped to ±1/(1−γ), the range that rewards of at most 1 allow (paper, eq.
    3), or to less above.
    """
    limit = 1.0 / (1.0 - discount)
    return jax.lax.stop_gradient(
        jnp.clip(reward + discount * next_value, -limit, limit if highest is None else highest)
    )


def squared_loss(error: jax.Array) -> jax.Array:
    """L_2(u) = u²."""
    return error**2


def expectile_loss(error: jax.Array, tau: Any) -> jax.Array:
    """L_2^τ(u) = |τ − 1(u < 0)| u² with u = target − prediction: τ < 0.5 is pessimistic (paper,
    section 4).
    """
    return jnp.where(error < 0, 1.0 - tau, tau) * error**2


def ensemble_td_loss(
    reward: jax.Array,
    value: jax.Array,
    next_value: jax.Array,
    discount: Any,
    tau: Any,
    highest: float | None = None,
) -> jax.Array:
    """Sum over the ensemble of the mean L2 (`tau` None) or expectile loss: (B,), (N, B), (N, B) →
    ().
    """
    error = (
        td_target(jnp.broadcast_to(reward[None], value.shape), next_value, discount, highest)
        - value
    )
    return jnp.mean(
        squared_loss(error) if tau is None else expectile_loss(error, tau), axis=-1
    ).sum()


def mean_advantage(
    reward: jax.Array, value: jax.Array, next_value: jax.Array, discount: Any
) -> jax.Array:
    """A = r + γ V(s', g) − V(s, g), V the mean of the ensemble: (B,), (N, B), (N, B) → (B,)."""
    return reward + discount * jnp.mean(next_value, axis=0) - jnp.mean(value, axis=0)


def followed(batch: Batch, next_value: jax.Array) -> jax.Array:
    """Values of next steps, (…, B): 0 where the environment ended the episode short of its goal."""
    if batch.ended is None:
        return next_value
    return next_value * jnp.broadcast_to(1.0 - batch.ended, next_value.shape)


def _both_steps(batch: Batch) -> tuple[jax.Array, jax.Array]:
    """(s; s') and (g; g) as 2B rows, so that each network runs once."""
    observation = jnp.concatenate([batch.observation, batch.next_observation])
    return observation, jnp.concatenate([batch.goal, batch.goal])


def action_advantage(
    part: Value, params: Pytree, batch: Batch, action: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """A = mean_k [Q_k(s, a, g) − Q_k(s, π(s, g), g)] and the values of the policy's actions, for a
    part that values actions: (B,), (N, B).
    """
    seen = batch.observation, batch.goal
    value = part.values(params, *seen, action)
    return jnp.mean(part.values(params, *seen, batch.action) - value, axis=0), value


@pytree
class CQLPenalty:
    """CQL penalty α E_{a ∼ exp(Q)} Q(s, a, g) (paper, CQL+HER), with a drawn from `actions` uniform
    ones.
    """

    alpha: float = 1.0
    actions: int = static(default=20)

    def __call__(self, params: Pytree, batch: Batch, key: jax.Array) -> jax.Array:
        propose, choose = jax.random.split(key)
        candidates = jax.random.uniform(
            propose, (self.actions, batch.action.shape[-1]), minval=-1.0, maxval=1.0
        )
        size, fixed = batch.action.shape[0], without_gradient(params)

        def q_of(candidate: jax.Array) -> jax.Array:
            action = jnp.broadcast_to(candidate[None], (size, candidate.shape[0]))
            return scalar_ensemble(fixed, batch.observation, batch.goal, action)

        logits = jnp.logaddexp(jax.vmap(q_of)(candidates), jnp.log(1e-4))  # log(exp(Q) + 1e-4)
        chosen = jax.random.categorical(choose, jax.lax.stop_gradient(logits), axis=0)  # (N, B)
        value = jax.vmap(
            lambda member, index: mlp(member, batch.observation, batch.goal, candidates[index])[
                :, 0
            ]
        )(params, chosen)
        return self.alpha * conservative_mean(value).sum()


def conservative_mean(value: jax.Array) -> jax.Array:
    """The mean of the penalised values (…, batch), clipped to ±50 so that the penalty cannot run
    away.
    """
    return jnp.clip(jnp.mean(value, axis=-1), -50.0, 50.0)


@pytree
class QEnsemble:
    """N independent Q(s, a, g), each with its own target (paper, eq. 3). `tau` None is the
    L2 loss.
    """

    size: int = static(default=1)
    tau: float | None = None
    penalty: CQLPenalty | None = None
    highest: ClassVar[float | None] = None  # what no TD target exceeds, if that is known

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
        next_value = scalar_ensemble(target, batch.next_observation, batch.goal, next_action)
        next_value = followed(batch, next_value)
        value = scalar_ensemble(params, batch.observation, batch.goal, batch.action)
        loss = ensemble_td_loss(batch.reward, value, next_value, discount, self.tau, self.highest)
        if self.penalty is not None:
            loss += self.penalty(params, batch, key)
        return loss, {"value_loss": loss / self.size, "value": jnp.mean(value)}

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
        both = self.values(params, *_both_steps(batch), jnp.concatenate([action, next_action]))
        value, next_value = jnp.split(both, 2, axis=-1)
        next_value = followed(batch, next_value)
        return mean_advantage(batch.reward, value, next_value, discount), value


@pytree
class CostQ(QEnsemble):
    """Q for rewards of −1 and 0, of which no sum is positive: overestimation ends there."""

    highest: ClassVar[float | None] = 0.0


@pytree
class VEnsemble:
    """N independent V(s, g): no action, learned or not, enters (paper, appendix "Additional
    Ablations": GOAT(V)).
    """

    size: int = static(default=1)
    tau: float | None = None

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
        next_value = scalar_ensemble(target, batch.next_observation, batch.goal)
        next_value = followed(batch, next_value)
        value = scalar_ensemble(params, batch.observation, batch.goal)
        loss = ensemble_td_loss(batch.reward, value, next_value, discount, self.tau)
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
        value, next_value = jnp.split(scalar_ensemble(params, *_both_steps(batch)), 2, axis=-1)
        next_value = followed(batch, next_value)
        return mean_advantage(batch.reward, value, next_value, discount), value


@pytree
class ImplicitQ:
    """IQL: V(s, g) is an expectile of Q(s, a, g) over the data's actions, Q bootstraps from V
    (paper, IQL+HER).
    """

    learns: ClassVar[str] = "Q(s, a, g) only for actions in the data"
    tau: float = 0.7

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> Pytree:
        q_key, v_key = jax.random.split(key)
        inputs = spec.observation_dim + spec.goal_dim
        return {
            "q": init_mlp(q_key, inputs + spec.action_dim, 1, architecture),
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
        q_target = mlp(target["q"], batch.observation, batch.goal, batch.action)[:, 0]
        v = mlp(params["v"], batch.observation, batch.goal)[:, 0]
        v_loss = jnp.mean(expectile_loss(jax.lax.stop_gradient(q_target) - v, self.tau))
        fixed = without_gradient(params["v"])
        next_v = followed(batch, mlp(fixed, batch.next_observation, batch.goal)[:, 0])
        q = mlp(params["q"], batch.observation, batch.goal, batch.action)[:, 0]
        q_loss = jnp.mean(squared_loss(td_target(batch.reward, next_v, discount) - q))
        return v_loss + q_loss, {"value_loss": v_loss + q_loss, "value": jnp.mean(v)}

    def values(
        self, params: Pytree, observation: jax.Array, goal: jax.Array, action: jax.Array
    ) -> jax.Array:
        return mlp(params["v"], observation, goal)[:, 0][None]

    def advantage(
        self,
        params: Pytree,
        target: Pytree,
        batch: Batch,
        action: jax.Array,
        next_action: jax.Array,
        discount: Any,
    ) -> tuple[jax.Array, jax.Array]:
        value = self.values(params, batch.observation, batch.goal, action)
        return mlp(params["q"], batch.observation, batch.goal, batch.action)[:, 0] - value[0], value


@pytree
class DualValue:
    """GoFAR: V(s, g) from the dual of χ²-regularised state-goal matching (paper, GoFAR).

    The reward is log c − log(1 − c) of a discriminator c(φ(s), g) whose positives are (g, g), or
    the binary one.
    """

    gradient_penalty: float = 0.01
    reward: str = static(default="discriminator")

    def __post_init__(self) -> None:
        if self.reward not in ("discriminator", "binary"):
            raise GoatError(
                f"dual_value.reward must be 'discriminator' or 'binary', not '{self.reward}'"
            )

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> Pytree:
        v_key, c_key = jax.random.split(key)
        inputs = spec.observation_dim + spec.goal_dim
        params = {"v": init_mlp(v_key, inputs, 1, architecture)}
        if self.reward == "discriminator":
            # Smooth as in GoFAR's own code. It sees φ(s) and g, whatever the others see.
            smooth = dataclasses.replace(architecture, activation="tanh", inputs="absolute")
            params["discriminator"] = init_mlp(c_key, 2 * spec.goal_dim, 1, smooth)
        return params

    def loss(
        self,
        params: Pytree,
        target: Pytree,
        batch: Batch,
        next_action: jax.Array,
        discount: Any,
        key: jax.Array,
    ) -> tuple[jax.Array, Metrics]:
        initial = mlp(params["v"], batch.initial_observation, batch.goal)[:, 0]
        value = mlp(params["v"], batch.observation, batch.goal)[:, 0]
        next_value = jax.lax.stop_gradient(
            followed(batch, mlp(target["v"], batch.next_observation, batch.goal)[:, 0])
        )
        reward = jax.lax.stop_gradient(self._reward(params, batch))
        loss = dual_value_loss(initial, reward + discount * next_value - value, discount)
        metrics = {"value_loss": loss, "value": jnp.mean(value)}
        if self.reward == "discriminator":
            metrics["discriminator_loss"] = self._discriminator_loss(
                params["discriminator"], batch, key
            )
            loss += metrics["discriminator_loss"]
        return loss, metrics

    def values(
        self, params: Pytree, observation: jax.Array, goal: jax.Array, action: jax.Array
    ) -> jax.Array:
        return mlp(params["v"], observation, goal)[:, 0][None]

    def advantage(
        self,
        params: Pytree,
        target: Pytree,
        batch: Batch,
        action: jax.Array,
        next_action: jax.Array,
        discount: Any,
    ) -> tuple[jax.Array, jax.Array]:
        """The residual of the loss: V(s', g) is the target network's, as in GoFAR's own code."""
        value = self.values(params, batch.observation, batch.goal, action)
        next_value = self.values(target, batch.next_observation, batch.goal, next_action)
        next_value = followed(batch, next_value)
        return mean_advantage(self._reward(params, batch), value, next_value, discount), value

    def _reward(self, params: Pytree, batch: Batch) -> jax.Array:
        if self.reward == "binary":
            return batch.reward
        return _discriminate(params["discriminator"], batch.achieved, batch.goal)

    def _discriminator_loss(self, params: Pytree, batch: Batch, key: jax.Array) -> jax.Array:
        positive = _discriminate(params, batch.goal, batch.goal)
        negative = _discriminate(params, batch.achieved, batch.goal)
        mix = jax.random.uniform(key, (batch.goal.shape[0], 1))
        between = mix * batch.goal + (1.0 - mix) * batch.achieved
        # Over the whole input (φ, g), as in GoFAR's own code; g is the same in (g, g), so that
        # mixing leaves it as it is.
        slope = jnp.concatenate(
            jax.grad(lambda pair: _discriminate(params, *pair).sum())((between, batch.goal)),
            axis=-1,
        )
        norm = jnp.sqrt(jnp.sum(slope**2, axis=-1) + 1e-12)
        return discriminator_loss(positive, negative) + self.gradient_penalty * jnp.mean(
            (norm - 1.0) ** 2
        )


def _discriminate(params: Pytree, achieved: jax.Array, goal: jax.Array) -> jax.Array:
    """log c − log(1 − c), the discriminator's logit."""
    return mlp(params, achieved, goal)[:, 0]


def discriminator_loss(positive: jax.Array, negative: jax.Array) -> jax.Array:
    """−E log c(g, g) − E_D log(1 − c(φ(s), g)) from logits."""
    ones, zeros = jnp.ones_like(positive), jnp.zeros_like(negative)
    bce = optax.sigmoid_binary_cross_entropy
    return jnp.mean(bce(positive, ones)) + jnp.mean(bce(negative, zeros))


def dual_value_loss(initial_value: jax.Array, residual: jax.Array, discount: Any) -> jax.Array:
    """(1 − γ) E V(s_0, g) + ½ E (r + γ V(s') − V(s) + 1)² (paper, GoFAR); `residual` is r + γ V(s')
    − V(s).
    """
    return (1.0 - discount) * jnp.mean(initial_value) + 0.5 * jnp.mean((residual + 1.0) ** 2)
