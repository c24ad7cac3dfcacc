"""Relay imitation learning (Gupta et al., 2019) in one file: a policy that chooses subgoals, and
one that reaches them. Both imitate the data, and neither has a value function.

    goat train examples/relay.py --group pointreach-expert-10 --out runs/relay

Subgoals are goals that were achieved some steps ahead.
"""

import dataclasses

import jax
import jax.numpy as jnp
import optax

from goatrl.algorithms import register
from goatrl.learn import normalize
from goatrl.learn.networks import Architecture, init_mlp, mlp, policy_action
from goatrl.learn.samplers import GoalMixes
from goatrl.types import Batch, Metrics, Pytree, Settings, Spec, TrainState, pytree, static


@pytree
class Relay:
    sampler: GoalMixes = GoalMixes(steps=10)  # later goals, and what is achieved ten steps ahead
    architecture: Architecture = Architecture()
    learning_rate: float = 5e-4
    target_period: int = static(default=20)

    def init(self, key: jax.Array, spec: Spec) -> TrainState:
        low, high = jax.random.split(key)
        seen = spec.observation_dim + spec.goal_dim
        params = {
            "low": init_mlp(low, seen, spec.action_dim, self.architecture),
            "high": init_mlp(high, seen, spec.goal_dim, self.architecture),
        }
        optimizer = optax.adam(self.learning_rate).init(params)
        return TrainState(jnp.int32(0), params, {}, optimizer, (), normalize.identity(spec))

    def loss(self, params: Pytree, batch: Batch) -> tuple[jax.Array, Metrics]:
        near, far = batch.extra_goals["ahead"], batch.policy_goal
        action = policy_action(params["low"], batch.observation, near)
        subgoal = mlp(params["high"], batch.observation, far)
        low = jnp.mean((batch.action - action) ** 2)
        high = jnp.mean((batch.extra_goals["way"] - subgoal) ** 2)
        return low + high, {"low_loss": low, "high_loss": high}

    def update(self, state: TrainState, batch: Batch, key: jax.Array) -> tuple[TrainState, Metrics]:
        slopes, metrics = jax.grad(self.loss, has_aux=True)(state.params, batch)
        steps, optimizer = optax.adam(self.learning_rate).update(slopes, state.optimizer)
        params, step = optax.apply_updates(state.params, steps), state.step + 1
        return dataclasses.replace(state, step=step, params=params, optimizer=optimizer), metrics

    def update_target(self, state: TrainState) -> TrainState:
        return state  # nothing is bootstrapped

    def act(self, state: TrainState, observation: jax.Array, goal: jax.Array) -> jax.Array:
        subgoal = mlp(state.params["high"], observation, goal)
        return policy_action(state.params["low"], observation, subgoal)


@register("Relay")
def relay(s: Settings) -> Relay:
    """A policy over subgoals and one that reaches them, both by imitation."""
    return Relay(target_period=s.target_period)
