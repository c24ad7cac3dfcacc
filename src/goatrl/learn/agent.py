"""One agent = how goals are relabelled + a policy objective + a value part. Every algorithm of the
paper is one of these.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax

from goatrl.learn import normalize
from goatrl.learn.networks import Architecture, init_policy, policy_action, without_gradient
from goatrl.learn.policies import DDPGObjective, Policy, WeightedBC
from goatrl.learn.samplers import Hindsight
from goatrl.learn.values import Value
from goatrl.learn.weights import Weight
from goatrl.types import (
    Batch,
    GoatError,
    Metrics,
    Pytree,
    Sampler,
    Settings,
    Spec,
    TrainState,
    pytree,
    static,
)

AVERAGE = "average"  # of the policy's networks, beside the targets
OPTIMIZERS = {"adam": optax.adam, "adamw": optax.adamw}


def average_share(step: jax.Array, period: int, averaging: Any) -> jax.Array:
    """min(1, p / (σ t)): the share of the newest networks in their average at update t, every p
    updates. Those at update u then count as u^(1/σ − 1), so that the average spans about the last
    σ t of t updates, however many there will be.
    """
    return jnp.minimum(1.0, period / (averaging * step))


@pytree
class Agent:
    policy: Policy
    value: Value | None
    sampler: Sampler = dataclasses.field(default_factory=Hindsight)
    architecture: Architecture = dataclasses.field(default_factory=Architecture)
    discount: float = 0.98
    learning_rate: float = 5e-4
    polyak: float = 0.95
    target_period: int = static(default=20)
    # the policy that acts is a mean over about this last share of the updates; None: the newest
    averaging: float | None = None
    optimizer: str = static(default="adam")
    symmetry: str = static(default="")  # of the problem, as `learn.symmetry` reads it

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise GoatError(
                f"optimizer must be one of {', '.join(OPTIMIZERS)}, not '{self.optimizer}'"
            )
        if isinstance(self.averaging, float | int) and not 0.0 < self.averaging <= 1.0:
            raise GoatError(
                f"averaging must be a share of the updates, above 0 and at most 1, not "
                f"{self.averaging:g}"
            )

    def init(self, key: jax.Array, spec: Spec) -> TrainState:
        policy_key, value_key, weight_key = jax.random.split(key, 3)
        shape = self.architecture
        params = {
            "policy": self.init_policy(policy_key, spec),
            "value": () if self.value is None else self.value.init(value_key, spec, shape),
        }
        return TrainState(
            step=jnp.zeros((), jnp.int32),
            params=params,
            target=jax.tree.map(jnp.copy, params | self._averaged(params["policy"])),
            optimizer=self._optimizer().init(params),
            weight_state=self.policy.init(weight_key, spec, shape),
            normalizer=normalize.identity(spec, self.architecture.view),
        )

    def update(self, state: TrainState, batch: Batch, key: jax.Array) -> tuple[TrainState, Metrics]:
        """The policy first, then the critics, on the same batch and both from the parameters before
        this update.
        """
        params, target = state.params, without_gradient(state.target)
        gradients = {"policy": None, "value": ()}
        gradients["policy"], weight_state, metrics = self.policy.gradients(
            params, target, state.weight_state, self.value, batch, self.discount, state.step
        )
        if self.value is not None:
            next_action = self.action(target["policy"], batch.next_observation, batch.goal)
            gradients["value"], value_metrics = jax.grad(self.value.loss, has_aux=True)(
                params["value"], target["value"], batch, next_action, self.discount, key
            )
            metrics |= value_metrics
        updates, optimizer = self._optimizer().update(gradients, state.optimizer, params)
        state = dataclasses.replace(
            state,
            step=state.step + 1,
            params=optax.apply_updates(params, updates),
            optimizer=optimizer,
            weight_state=weight_state,
        )
        return state, metrics

    def update_target(self, state: TrainState) -> TrainState:
        """Polyak step: target ← polyak · target + (1 − polyak) · online. With `averaging`, also
        one of the policy's average, with a share that falls as the updates add up.
        """
        targets = {name: state.target[name] for name in state.params}
        targets = optax.incremental_update(state.params, targets, 1.0 - self.polyak)
        if self.averaging is not None:
            share = average_share(state.step, self.target_period, self.averaging)
            targets[AVERAGE] = optax.incremental_update(
                state.params["policy"], state.target[AVERAGE], share
            )
        return dataclasses.replace(state, target=targets)

    def act(self, state: TrainState, observation: jax.Array, goal: jax.Array) -> jax.Array:
        return self.action(self.acting(state), observation, goal)

    def acting(self, state: TrainState) -> Pytree:
        """The policy's networks that act: the newest, or their average."""
        return state.params["policy"] if self.averaging is None else state.target[AVERAGE]

    def init_policy(self, key: jax.Array, spec: Spec) -> Pytree:
        """The networks of the policy; a subclass may have others than one."""
        return init_policy(key, spec, self.architecture)

    def action(self, policy: Pytree, observation: jax.Array, goal: jax.Array) -> jax.Array:
        """π(s, g) of these networks: (B, action_dim)."""
        return policy_action(policy, observation, goal)

    def _averaged(self, policy: Pytree) -> dict[str, Pytree]:
        return {} if self.averaging is None else {AVERAGE: policy}

    def _optimizer(self) -> optax.GradientTransformation:
        return OPTIMIZERS[self.optimizer](self.learning_rate)


def weighted_regression(
    settings: Settings, *weights: Weight, value: Value | None = None, relabel: float | None = None
) -> Agent:
    """Imitation of the data's actions, each weighted by the product of `weights`."""
    for weight in weights:
        if not dataclasses.is_dataclass(weight) or not hasattr(weight, "init"):
            raise GoatError(
                f"{weight!r} is not a weight: it must be an object of a @pytree class with the "
                "methods init and __call__ (docs/own-algorithm.md)"
            )
        if value is None and weight.needs_value:
            raise GoatError(
                f"{type(weight).__name__} needs a value part, for example value=QEnsemble(...)"
            )
    return Agent(
        policy=WeightedBC(weights),
        value=value,
        sampler=Hindsight(settings.relabel if relabel is None else relabel),
        polyak=settings.polyak,
        target_period=settings.target_period,
    )


VALUE_BASED_RELABEL = 0.8  # whatever the task: so the released code does for DDPG, CQL and MSG


def actor_critic(settings: Settings, value: Value, pessimism: float = 0.0) -> Agent:
    """The policy maximises what the critics promise, less `pessimism` standard deviations."""
    return Agent(
        policy=DDPGObjective(pessimism),
        value=value,
        sampler=Hindsight(VALUE_BASED_RELABEL),
        polyak=settings.polyak,
        target_period=settings.target_period,
    )
