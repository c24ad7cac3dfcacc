"""The weights of weighted imitation. The policy's loss is multiplied by the product of all weights
of a composition.

A weight is a part that may own running statistics or a small network, its `carry`:

    init(key, spec, architecture) → carry
    __call__(carry, inputs) → (weight (B,), carry)

No gradient flows through a weight: the policy's loss stops it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import jax
import jax.numpy as jnp
import optax

from goatrl.learn import quantile
from goatrl.learn.networks import Architecture, init_mlp, mlp
from goatrl.learn.values import expectile_loss
from goatrl.types import Batch, Pytree, Spec, pytree, static


@pytree
class WeightInputs:
    batch: Batch
    advantage: jax.Array  # (B,)
    values: jax.Array  # (N, B): V_i(s, g)
    discount: Any
    step: jax.Array


class Weight(Protocol):
    needs_value: ClassVar[bool]  # whether the advantage or the values enter

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> Pytree: ...

    def __call__(self, carry: Any, inputs: WeightInputs) -> tuple[jax.Array, Any]: ...


def exponential_advantage(advantage: jax.Array, beta: Any, clip: Any) -> jax.Array:
    """EAW: exp(β A), at most `clip` (paper, section 4)."""
    return jnp.minimum(jnp.exp(beta * advantage), clip)


def chi_squared(advantage: jax.Array, offset: Any) -> jax.Array:
    """max(A + c, 0), the weight that the χ²-divergence induces (paper, appendix "Additional
    Ablations"; GoFAR: c = 1).
    """
    return jnp.maximum(advantage + offset, 0.0)


def data_selection(advantage: jax.Array, threshold: jax.Array, floor: Any) -> jax.Array:
    """DSW: 1 where A ≥ c, `floor` elsewhere (paper, section 4 and appendix "Implementation
    Details").
    """
    return jnp.where(advantage >= threshold, 1.0, floor)


def uncertainty_weight(
    spread: jax.Array, lowest: jax.Array, highest: jax.Array, w: Any, minimum: Any
) -> jax.Array:
    """UW: clip(tanh(w · spread_norm) + w_min, 0, 1) with the spread normalised to [0, 1] (paper,
    eq. 4).
    """
    return jnp.clip(jnp.tanh(w * normalized_spread(spread, lowest, highest)) + minimum, 0.0, 1.0)


def linear_uncertainty_weight(
    spread: jax.Array, lowest: jax.Array, highest: jax.Array, w: Any, minimum: Any
) -> jax.Array:
    """UW as the released code runs it: without the tanh."""
    return jnp.clip(w * normalized_spread(spread, lowest, highest) + minimum, 0.0, 1.0)


def normalized_spread(spread: jax.Array, lowest: jax.Array, highest: jax.Array) -> jax.Array:
    return (spread - lowest) / jnp.maximum(highest - lowest, 1e-8)


def discounted_relabelling(offset: jax.Array, discount: Any) -> jax.Array:
    """DRW: γ^(i − t) for a goal achieved i − t steps later (paper, appendix "Discounted Relabeling
    Weight").
    """
    return discount ** offset.astype(jnp.float32)


@pytree
class ExpAdvantage:
    """EAW: `exponential_advantage`."""

    needs_value: ClassVar[bool] = True
    beta: float = 2.0
    clip: float = 10.0

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> tuple[()]:
        return ()

    def __call__(self, carry: tuple[()], inputs: WeightInputs) -> tuple[jax.Array, tuple[()]]:
        return exponential_advantage(inputs.advantage, self.beta, self.clip), carry


@pytree
class Chi2:
    """`chi_squared` in place of EAW."""

    needs_value: ClassVar[bool] = True
    offset: float = 0.0

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> tuple[()]:
        return ()

    def __call__(self, carry: tuple[()], inputs: WeightInputs) -> tuple[jax.Array, tuple[()]]:
        return chi_squared(inputs.advantage, self.offset), carry


@pytree
class PercentileSelection:
    """DSW with c = the α-th percentile of recent advantages; α grows from 0 to `alpha_max`.

    `scale` multiplies the advantage before the comparison: 1 in the paper, 2 in the released code.
    """

    needs_value: ClassVar[bool] = True
    alpha_max: float = 80.0
    alpha_growth: float = 0.01
    floor: float = 0.05
    scale: float = 1.0
    capacity: int = static(default=50_000)

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> quantile.Fifo:
        return quantile.make_fifo(self.capacity)

    def __call__(
        self, carry: quantile.Fifo, inputs: WeightInputs
    ) -> tuple[jax.Array, quantile.Fifo]:
        carry = quantile.push(carry, inputs.advantage)
        alpha = jnp.minimum(self.alpha_growth * inputs.step.astype(jnp.float32), self.alpha_max)
        return data_selection(
            self.scale * inputs.advantage, quantile.percentile(carry, alpha), self.floor
        ), carry


@pytree
class Uncertainty:
    """UW from the standard deviation of the value ensemble, normalised by the extremes of recent
    ones.
    """

    needs_value: ClassVar[bool] = True
    w: float = 2.0
    minimum: float = 0.5
    tanh: bool = static(default=True)
    capacity: int = static(default=10_000)

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> quantile.Fifo:
        return quantile.make_fifo(self.capacity)

    def __call__(
        self, carry: quantile.Fifo, inputs: WeightInputs
    ) -> tuple[jax.Array, quantile.Fifo]:
        spread = jnp.std(inputs.values, axis=0)
        carry = quantile.push(carry, spread)
        weight = uncertainty_weight if self.tanh else linear_uncertainty_weight
        return weight(
            spread, quantile.smallest(carry), quantile.largest(carry), self.w, self.minimum
        ), carry


@pytree
class DiscountedRelabeling:
    """DRW: `discounted_relabelling`."""

    needs_value: ClassVar[bool] = False

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> tuple[()]:
        return ()

    def __call__(self, carry: tuple[()], inputs: WeightInputs) -> tuple[jax.Array, tuple[()]]:
        return discounted_relabelling(inputs.batch.offset, inputs.discount), carry


@pytree
class LearnedSelection:
    """ADSW: 1[A ≥ f(s, g)], f the β-expectile of the advantage at (s, g) (paper, appendix "Adaptive
    Data Selection").
    """

    needs_value: ClassVar[bool] = True
    beta: float = 0.9
    floor: float = 0.05
    learning_rate: float = 5e-4

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> Pytree:
        params = init_mlp(key, spec.observation_dim + spec.goal_dim, 1, architecture)
        return params, optax.adam(self.learning_rate).init(params)

    def __call__(self, carry: Pytree, inputs: WeightInputs) -> tuple[jax.Array, Pytree]:
        params, optimizer = carry

        def loss(params: Pytree) -> tuple[jax.Array, jax.Array]:
            threshold = mlp(params, inputs.batch.observation, inputs.batch.goal)[:, 0]
            return jnp.mean(expectile_loss(inputs.advantage - threshold, self.beta)), threshold

        gradients, threshold = jax.grad(loss, has_aux=True)(params)
        updates, optimizer = optax.adam(self.learning_rate).update(gradients, optimizer)
        weight = data_selection(inputs.advantage, threshold, self.floor)
        return weight, (optax.apply_updates(params, updates), optimizer)


@pytree
class RND:
    """UW from the error of a network that learns to predict a fixed random one (paper, appendix on
    RND).
    """

    needs_value: ClassVar[bool] = False
    w: float = 2.0
    minimum: float = 0.5
    learning_rate: float = 5e-4
    features: int = static(default=64)
    capacity: int = static(default=10_000)

    def init(self, key: jax.Array, spec: Spec, architecture: Architecture) -> Pytree:
        random_key, predictor_key = jax.random.split(key)
        inputs = spec.observation_dim + spec.goal_dim
        random = init_mlp(random_key, inputs, self.features, architecture)
        predictor = init_mlp(predictor_key, inputs, self.features, architecture)
        return (
            random,
            predictor,
            optax.adam(self.learning_rate).init(predictor),
            quantile.make_fifo(self.capacity),
        )

    def __call__(self, carry: Pytree, inputs: WeightInputs) -> tuple[jax.Array, Pytree]:
        random, predictor, optimizer, fifo = carry
        truth = mlp(random, inputs.batch.observation, inputs.batch.goal)

        def loss(predictor: Pytree) -> tuple[jax.Array, jax.Array]:
            error = jnp.mean(
                (mlp(predictor, inputs.batch.observation, inputs.batch.goal) - truth) ** 2, axis=-1
            )
            return jnp.mean(error), error

        gradients, error = jax.grad(loss, has_aux=True)(predictor)
        updates, optimizer = optax.adam(self.learning_rate).update(gradients, optimizer)
        fifo = quantile.push(fifo, error)
        weight = uncertainty_weight(
            error, quantile.smallest(fifo), quantile.largest(fifo), self.w, self.minimum
        )
        return weight, (random, optax.apply_updates(predictor, updates), optimizer, fifo)
