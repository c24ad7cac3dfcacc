"""Policy objectives: imitate with weights, maximise the value, or both.

A policy part offers:

    init(key, spec, architecture) → carry
    gradients(params, target, carry, value, batch, discount, step)
        → (gradients of params["policy"], carry, metrics)

where params and target hold the networks of the policy and of its value part, as they are before
the update.

`WeightedBC` and `DDPGObjective` train towards the goals of the values, which are also the policy's
with most samplers. `AWR` and `DDPGBC` extract a policy towards goals of its own, `policy_goal`.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from goatrl.learn.networks import (
    Architecture,
    are_several,
    policy_action,
    policy_actions,
    without_gradient,
)
from goatrl.learn.values import Value
from goatrl.learn.weights import ExpAdvantage, Weight, WeightInputs
from goatrl.types import Batch, GoatError, Metrics, Pytree, Spec, pytree, static


class Policy(Protocol):
    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> Pytree: ...

    def gradients(
        self,
        params: Pytree,
        target: Pytree,
        carry: Any,
        value: Value | None,
        batch: Batch,
        discount: Any,
        step: jax.Array,
    ) -> tuple[Pytree, Any, Metrics]: ...


def weighted_regression_loss(
    action: jax.Array, data_action: jax.Array, weight: jax.Array
) -> jax.Array:
    """E w · mean_d (a − π(s, g))²: −E w log π(a | s, g) of a fixed-variance Gaussian (paper, eq.
    2).
    """
    return jnp.mean(jax.lax.stop_gradient(weight) * jnp.mean((data_action - action) ** 2, axis=-1))


def weighted_distance_loss(
    action: jax.Array, data_action: jax.Array, weight: jax.Array
) -> jax.Array:
    """E w · √ mean_d (a − π(s, g))². Of one state and goal it is least at the geometric median of
    the actions, which is where most of them are; the square is least at their mean, which random
    ones among them draw away.
    """
    square = jnp.mean((data_action - action) ** 2, axis=-1)
    distance = jnp.sqrt(square + 1e-12)  # the slope of a bare √ at 0 is infinite
    return jnp.mean(jax.lax.stop_gradient(weight) * distance)


LOSSES = {"square": weighted_regression_loss, "distance": weighted_distance_loss}


def lower_confidence_bound(values: jax.Array, pessimism: Any) -> jax.Array:
    """mean_i Q_i − c · std_i Q_i (paper, MSG+HER): (N, B) → (B,)."""
    variance = jnp.var(values, axis=0)
    return jnp.mean(values, axis=0) - pessimism * jnp.sqrt(
        variance + 1e-12
    )  # the slope of a bare √ at 0 is infinite


def value_maximization_loss(
    values: jax.Array, action: jax.Array, pessimism: Any, action_penalty: Any
) -> jax.Array:
    """−E LCB(Q(s, π(s, g), g)) + λ E π²: DDPG for c = 0."""
    return -jnp.mean(lower_confidence_bound(values, pessimism)) + action_penalty * jnp.mean(
        action**2
    )


def behaviour_constrained_loss(
    values: jax.Array, action: jax.Array, data_action: jax.Array, alpha: Any
) -> jax.Array:
    """−E Q / sg(E |Q| + 10⁻⁶) + α E ½‖a − π(s, g)‖², Q = min_k Q_k(s, π(s, g), g): DDPG+BC. The
    second term is −α E log π(a | s, g) of a Gaussian of unit variance: (N, B), (B, D), (B, D) → ().
    """
    worst = jnp.min(values, axis=0)
    scale = jax.lax.stop_gradient(jnp.mean(jnp.abs(worst)) + 1e-6)
    distance = 0.5 * jnp.sum((data_action - action) ** 2, axis=-1)
    return -jnp.mean(worst) / scale + alpha * jnp.mean(distance)


@pytree
class WeightedBC:
    """Weighted imitation; the weights come from the critics before their own update on
    this batch.
    """

    weights: tuple[Weight, ...] = ()
    loss: str = static(default="square")

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise GoatError(f"loss must be one of {', '.join(LOSSES)}, not '{self.loss}'")

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> Pytree:
        keys = jax.random.split(key, max(len(self.weights), 1))
        return tuple(
            weight.init(k, spec, architecture)
            for weight, k in zip(self.weights, keys, strict=False)
        )

    def gradients(
        self,
        params: Pytree,
        target: Pytree,
        carry: Any,
        value: Value | None,
        batch: Batch,
        discount: Any,
        step: jax.Array,
    ) -> tuple[Pytree, Any, Metrics]:
        several = are_several(params["policy"])
        act = policy_actions if several else policy_action
        actions, pullback = jax.vjp(
            lambda p: act(p, batch.observation, batch.goal), params["policy"]
        )
        action = jnp.mean(actions, axis=0) if several else actions
        advantage, values = jnp.zeros_like(batch.reward), jnp.zeros_like(batch.reward)[None]
        if value is not None:
            fixed = without_gradient(params)
            next_action = policy_action(fixed["policy"], batch.next_observation, batch.goal)
            advantage, values = value.advantage(
                fixed["value"], target["value"], batch, action, next_action, discount
            )
        inputs = WeightInputs(batch, advantage, values, discount, step)
        weight, carries = jnp.ones_like(batch.reward), []
        for part, part_carry in zip(self.weights, carry, strict=True):
            factor, part_carry = part(part_carry, inputs)
            weight = weight * factor
            carries.append(part_carry)
        if batch.imitated is not None:
            weight = weight * batch.imitated
        metrics = (
            {"advantage": jnp.mean(advantage), "weight": jnp.mean(weight)} if self.weights else {}
        )
        imitation = jax.value_and_grad(LOSSES[self.loss])
        if several:  # each for itself, all from the same weights
            imitation = jax.vmap(imitation, in_axes=(0, None, None))
        loss, slope = imitation(actions, batch.action, weight)
        loss = jnp.mean(loss) if several else loss
        (gradients,) = pullback(slope)
        return gradients, tuple(carries), {"policy_loss": loss, **metrics}


@pytree
class DDPGObjective:
    """DDPG (pessimism 0) or a lower confidence bound of the ensemble, with a penalty on large
    actions.
    """

    pessimism: float = 0.0
    action_penalty: float = 1.0

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> tuple[()]:
        return ()

    def gradients(
        self,
        params: Pytree,
        target: Pytree,
        carry: Any,
        value: Value | None,
        batch: Batch,
        discount: Any,
        step: jax.Array,
    ) -> tuple[Pytree, Any, Metrics]:
        assert value is not None, "there is nothing to maximise without a value part"

        def loss(policy: Pytree) -> jax.Array:
            action = policy_action(policy, batch.observation, batch.goal)
            values = value.values(params["value"], batch.observation, batch.goal, action)
            return value_maximization_loss(values, action, self.pessimism, self.action_penalty)

        value_of_loss, gradients = jax.value_and_grad(loss)(params["policy"])
        return gradients, carry, {"policy_loss": value_of_loss}


@pytree
class AWR(WeightedBC):
    """Advantage-weighted regression towards the policy's goals: −E min(e^{βA}, clip) log π(a | s,
    g). A comes from a value part whose advantage needs no reward: rewards are those of the values'
    goals.
    """

    weights: tuple[Weight, ...] = (ExpAdvantage(beta=10.0, clip=100.0),)

    def gradients(
        self,
        params: Pytree,
        target: Pytree,
        carry: Any,
        value: Value | None,
        batch: Batch,
        discount: Any,
        step: jax.Array,
    ) -> tuple[Pytree, Any, Metrics]:
        batch = dataclasses.replace(batch, goal=batch.policy_goal)
        return super().gradients(params, target, carry, value, batch, discount, step)


@pytree
class DDPGBC:
    """`behaviour_constrained_loss` towards the policy's goals: maximise the value, and stay close
    to the data.
    """

    alpha: float = 1.0

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> tuple[()]:
        return ()

    def gradients(
        self,
        params: Pytree,
        target: Pytree,
        carry: Any,
        value: Value | None,
        batch: Batch,
        discount: Any,
        step: jax.Array,
    ) -> tuple[Pytree, Any, Metrics]:
        assert value is not None, "there is nothing to maximise without a value part"

        def loss(policy: Pytree) -> jax.Array:
            action = policy_action(policy, batch.observation, batch.policy_goal)
            values = value.values(params["value"], batch.observation, batch.policy_goal, action)
            return behaviour_constrained_loss(values, action, batch.action, self.alpha)

        value_of_loss, gradients = jax.value_and_grad(loss)(params["policy"])
        return gradients, carry, {"policy_loss": value_of_loss}
