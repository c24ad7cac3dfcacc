"""SMORe: score models for goal-conditioned reinforcement learning (Sikchi et al., 2024)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from goatrl.algorithms.registry import register
from goatrl.learn.agent import Agent
from goatrl.learn.expectiles import ExpectileQ, continued
from goatrl.learn.networks import mlp, without_gradient
from goatrl.learn.policies import AWR
from goatrl.learn.samplers import Hindsight
from goatrl.learn.weights import ExpAdvantage
from goatrl.types import Batch, Pytree, Settings, pytree


def score_loss(
    q: jax.Array, entering: jax.Array, aim: jax.Array, discount: Any, cost: Any
) -> jax.Array:
    """E (Q_enter − c/(1 − γ))² + ½ E (Q − (−c + γ V(s')))² + 10⁻⁴ (1 − γ) E Q² of every Q, summed:
    (N, B), (N, B), (B,) → (). `aim` is −c + γ V(s').
    """
    step = 0.5 * (q - jnp.broadcast_to(aim, q.shape)) ** 2 + 1e-4 * (1.0 - discount) * q**2
    return jnp.mean((entering - cost / (1.0 - discount)) ** 2 + step, axis=-1).sum()


@pytree
class ScoreQ(ExpectileQ):
    """Q(s, a, g) is as high as can be where the step enters the goal, and falls by a cost with
    every step before: there is no reward. V is an expectile of it over the data's actions.
    """

    expectile: float = 0.8
    cost: float = 2.0

    def q_loss(self, params: Pytree, batch: Batch, discount: Any) -> jax.Array:
        later = mlp(without_gradient(params["v"]), batch.next_observation, batch.goal)[:, 0]
        aim = discount * continued(batch, later, discount, self.cost) - self.cost
        q, entering = (
            self.values(params, batch.observation, goal, batch.action)
            for goal in (batch.goal, batch.next_achieved)
        )
        return score_loss(q, entering, jax.lax.stop_gradient(aim), discount, self.cost)

    def advantage(
        self,
        params: Pytree,
        target: Pytree,
        batch: Batch,
        action: jax.Array,
        next_action: jax.Array,
        discount: Any,
    ) -> tuple[jax.Array, jax.Array]:
        """A = min_k Q̄_k(s, a, g) − V(s, g), Q̄ the target's."""
        mixed = {"q": target["q"], "v": params["v"]}
        return super().advantage(mixed, target, batch, action, next_action, discount)


@register("SMORe")
def smore(s: Settings) -> Agent:
    """Imitation weighted by scores that are highest where a step enters the goal; no rewards."""
    return Agent(
        policy=AWR((ExpAdvantage(beta=3.0, clip=100.0),)),
        value=ScoreQ(),
        sampler=Hindsight(0.8),
        polyak=s.polyak,
        target_period=s.target_period,
    )
