"""One agent = how goals are relabelled + a policy objective + a value part. Every algorithm of the
paper is one of these.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import optax

from goatrl.learn import normalize
from goatrl.learn.networks import init_mlp, policy_action
from goatrl.learn.policies import Maximization, Policy, Regression
from goatrl.learn.values import Value
from goatrl.learn.weights import Weight
from goatrl.types import Batch, GoatError, Metrics, Settings, Spec, TrainState, pytree, static


@pytree
class Agent:
    policy: Policy
    value: Value | None
    relabel: float = 1.0
    discount: float = 0.98
    learning_rate: float = 5e-4
    target_keep: float = 0.95
    target_every: int = static(default=20)

    def init(self, key: jax.Array, spec: Spec) -> TrainState:
        policy_key, value_key, weight_key = jax.random.split(key, 3)
        params = {
            "policy": init_mlp(policy_key, spec.observation_dim + spec.goal_dim, spec.action_dim),
            "value": () if self.value is None else self.value.init(value_key, spec),
        }
        return TrainState(
            step=jnp.zeros((), jnp.int32),
            params=params,
            target=jax.tree.map(jnp.copy, params),
            optimizer=optax.adam(self.learning_rate).init(params),
            weights=self.policy.init(weight_key, spec),
            normalizer=normalize.identity(spec),
        )

    def update(self, state: TrainState, batch: Batch, key: jax.Array) -> tuple[TrainState, Metrics]:
        """The policy first, then the critics, on the same batch and both from the parameters before
        this update.
        """
        batch = state.normalizer.batch(batch)
        params, target = state.params, state.target
        gradients = {"policy": None, "value": ()}
        gradients["policy"], weights, metrics = self.policy.gradients(
            params, target, state.weights, self.value, batch, self.discount, state.step
        )
        if self.value is not None:
            next_action = policy_action(target["policy"], batch.next_observation, batch.goal)
            gradients["value"], value_metrics = jax.grad(self.value.loss, has_aux=True)(
                params["value"], target["value"], batch, next_action, self.discount, key
            )
            metrics |= value_metrics
        updates, optimizer = optax.adam(self.learning_rate).update(gradients, state.optimizer)
        state = dataclasses.replace(
            state,
            step=state.step + 1,
            params=optax.apply_updates(params, updates),
            optimizer=optimizer,
            weights=weights,
        )
        return state, metrics

    def sync(self, state: TrainState) -> TrainState:
        """Polyak step: target ← keep · target + (1 − keep) · online."""
        return dataclasses.replace(
            state,
            target=optax.incremental_update(state.params, state.target, 1.0 - self.target_keep),
        )

    def act(self, state: TrainState, observation: jax.Array, goal: jax.Array) -> jax.Array:
        return policy_action(
            state.params["policy"],
            state.normalizer.observation(observation),
            state.normalizer.goal(goal),
        )


def weighted_regression(
    settings: Settings, *weights: Weight, value: Value | None = None, relabel: float | None = None
) -> Agent:
    """Imitation of the data's actions, each weighted by the product of `weights`."""
    for weight in weights:
        if value is None and weight.needs_value:
            raise GoatError(
                f"{type(weight).__name__} needs a value part: say value=QEnsemble(...), for example"
            )
    return Agent(
        policy=Regression(weights),
        value=value,
        relabel=settings.relabel if relabel is None else relabel,
        target_keep=settings.target_keep,
        target_every=settings.target_every,
    )


VALUE_BASED_RELABEL = 0.8  # whatever the task: so the released code does for DDPG, CQL and MSG


def actor_critic(settings: Settings, value: Value, pessimism: float = 0.0) -> Agent:
    """The policy maximises what the critics promise, less `pessimism` standard deviations."""
    return Agent(
        policy=Maximization(pessimism),
        value=value,
        relabel=VALUE_BASED_RELABEL,
        target_keep=settings.target_keep,
        target_every=settings.target_every,
    )
