"""HIQL: a policy that chooses subgoals, and one that reaches them (Park et al., 2023).

Subgoals are goals that the data achieves some steps ahead. Both policies imitate the data, weighted
by the value that is won on the way; the value is GCIVL's.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from goatrl.algorithms.gcivl import VALUE_GOALS
from goatrl.algorithms.registry import register
from goatrl.learn.agent import Agent
from goatrl.learn.expectiles import ExpectileV
from goatrl.learn.networks import Architecture, init_mlp, mlp, policy_action, without_gradient
from goatrl.learn.policies import weighted_regression_loss
from goatrl.learn.samplers import GoalMixes
from goatrl.learn.values import Value
from goatrl.learn.weights import exponential_advantage
from goatrl.types import Batch, Metrics, Pytree, Settings, Spec, pytree


@pytree
class TwoLevels:
    """AWR for both levels. The high one learns the subgoal w on the way to g with A = V(w, g) −
    V(s, g), the low one the action towards what is achieved ahead with A = V(s', w) − V(s, w).
    """

    beta: float = 3.0
    clip: float = 100.0

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
        assert value is not None, "subgoals are chosen by their value"
        fixed = without_gradient(params["value"])
        now, goal, ahead = batch.observation, batch.policy_goal, batch.extra_goals["ahead"]

        def weight(later: jax.Array, goal: jax.Array) -> jax.Array:
            there, here = (
                jnp.mean(value.values(fixed, seen, goal, batch.action), axis=0)
                for seen in (later, now)
            )
            return exponential_advantage(there - here, self.beta, self.clip)

        def losses(policy: Pytree) -> tuple[jax.Array, Metrics]:
            action, subgoal = (
                policy_action(policy["low"], now, ahead),
                mlp(policy["high"], now, goal),
            )
            near = weight(batch.next_observation, ahead)
            far = weight(batch.extra_observations["way"], goal)
            low = weighted_regression_loss(action, batch.action, near)
            high = weighted_regression_loss(subgoal, batch.extra_goals["way"], far)
            return low + high, {"low_loss": low, "high_loss": high}

        gradients, metrics = jax.grad(losses, has_aux=True)(params["policy"])
        return gradients, carry, metrics


@pytree
class HIQL(Agent):
    """An agent that acts towards the subgoal that it chooses."""

    def init_policy(self, key: jax.Array, spec: Spec) -> Pytree:
        low, high = jax.random.split(key)
        inputs = spec.observation_dim + spec.goal_dim
        return {
            "low": init_mlp(low, inputs, spec.action_dim, self.architecture),
            "high": init_mlp(high, inputs, spec.goal_dim, self.architecture),
        }

    def action(self, policy: Pytree, observation: jax.Array, goal: jax.Array) -> jax.Array:
        return policy_action(policy["low"], observation, mlp(policy["high"], observation, goal))


@register("HIQL")
def hiql(s: Settings) -> HIQL:
    """A policy over subgoals and one that reaches them, both weighted by one value function."""
    return HIQL(
        policy=TwoLevels(),
        value=ExpectileV(expectile=0.7),
        sampler=GoalMixes(VALUE_GOALS, steps=10),
        polyak=s.polyak,
        target_period=s.target_period,
    )
