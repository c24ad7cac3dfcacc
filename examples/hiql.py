"""HIQL (Park et al., 2023) in one file: a policy that chooses subgoals, and one that reaches them.

    goat train examples/hiql.py --group pointreach-expert-10 --out runs/hiql

Subgoals are goals that were achieved some steps ahead. Values come from an expectile regression.
Both policies imitate the data, weighted by the value that is won on the way.
"""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import optax

from goatrl.algorithms import register
from goatrl.learn import networks, normalize
from goatrl.learn.networks import Architecture, init_mlp, mlp, policy_action, scalar_ensemble
from goatrl.learn.samplers import GoalMixes, PolicyGoals, ValueGoals
from goatrl.types import Batch, Metrics, Pytree, Settings, Spec, TrainState, pytree, static

GOALS = GoalMixes(ValueGoals(0.2, 0.5, 0.3, geometric=True), PolicyGoals(future=1.0), steps=10)


@pytree
class HIQL:
    sampler: GoalMixes = GOALS
    architecture: Architecture = Architecture()
    discount: float = 0.98
    expectile: float = 0.7
    temperature: float = 3.0
    learning_rate: float = 5e-4
    polyak: float = 0.95
    target_period: int = static(default=20)

    def init(self, key: jax.Array, spec: Spec) -> TrainState:
        low, high, value = jax.random.split(key, 3)
        seen = spec.observation_dim + spec.goal_dim
        params = {
            "low": init_mlp(low, seen, spec.action_dim, self.architecture),
            "high": init_mlp(high, seen, spec.goal_dim, self.architecture),
            "value": networks.init_ensemble(value, 2, seen, 1, self.architecture),
        }
        target = {"value": jax.tree.map(jnp.copy, params["value"])}
        optimizer = optax.adam(self.learning_rate).init(params)
        return TrainState(jnp.int32(0), params, target, optimizer, (), normalize.identity(spec))

    def loss(self, params: Pytree, target: Pytree, batch: Batch) -> tuple[jax.Array, Metrics]:
        value = partial(scalar_ensemble, params["value"])
        now, then, ahead = batch.observation, batch.next_observation, batch.extra_goals["ahead"]
        reward, rest = batch.reward - 1.0, self.discount * batch.mask  # −1 a step, up to the goal
        old, later = (scalar_ensemble(target["value"], seen, batch.goal) for seen in (now, then))
        gain = reward + rest * jnp.min(later, axis=0) - jnp.mean(old, axis=0)
        error = reward[None] + rest[None] * later - value(now, batch.goal)
        side = jnp.where(gain >= 0, self.expectile, 1.0 - self.expectile)
        value_loss = jnp.mean(side[None] * error**2)

        def weight(ahead: jax.Array, goal: jax.Array) -> jax.Array:
            there, here = (value(seen, goal).mean(axis=0) for seen in (ahead, now))
            won = jnp.exp(self.temperature * (there - here))
            return jax.lax.stop_gradient(jnp.minimum(won, 100.0))

        action = policy_action(params["low"], now, ahead)
        low = jnp.mean(weight(then, ahead) * jnp.mean((batch.action - action) ** 2, axis=-1))
        off = batch.extra_goals["way"] - mlp(params["high"], now, batch.policy_goal)
        won = weight(batch.extra_observations["way"], batch.policy_goal)
        high = jnp.mean(won * jnp.mean(off**2, axis=-1))
        losses = {"value_loss": value_loss, "low_loss": low, "high_loss": high}
        return value_loss + low + high, losses

    def update(self, state: TrainState, batch: Batch, key: jax.Array) -> tuple[TrainState, Metrics]:
        slopes, metrics = jax.grad(self.loss, has_aux=True)(state.params, state.target, batch)
        steps, optimizer = optax.adam(self.learning_rate).update(slopes, state.optimizer)
        params, step = optax.apply_updates(state.params, steps), state.step + 1
        return dataclasses.replace(state, step=step, params=params, optimizer=optimizer), metrics

    def update_target(self, state: TrainState) -> TrainState:
        online, step = {"value": state.params["value"]}, 1.0 - self.polyak
        target = optax.incremental_update(online, state.target, step)
        return dataclasses.replace(state, target=target)

    def act(self, state: TrainState, observation: jax.Array, goal: jax.Array) -> jax.Array:
        subgoal = mlp(state.params["high"], observation, goal)
        return policy_action(state.params["low"], observation, subgoal)


@register("HIQL")
def hiql(s: Settings) -> HIQL:
    """A policy over subgoals and one that reaches them, both weighted by one value function."""
    return HIQL(polyak=s.polyak, target_period=s.target_period)
