"""The expert that collected a robot's data, as an agent: the ceiling for all that learn from it."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from goatrl.algorithms.registry import register
from goatrl.data import experts
from goatrl.learn.agent import Agent
from goatrl.learn.networks import MLP
from goatrl.learn.normalize import Normalizer
from goatrl.learn.policies import WeightedBC
from goatrl.tasks import families
from goatrl.types import GoatError, Settings, Spec, TrainState, pytree, static


@pytree
class Expert(Agent):
    """Acts as the expert does, without noise. It has seen the whole space, and learns nothing."""

    robot: str = static(default="")

    def init(self, key: jax.Array, spec: Spec) -> TrainState:
        if self.robot not in families():
            raise GoatError("the expert acts on a task group of its robot; see `goat expert list`")
        expert = experts.get(families()[self.robot])
        layers = tuple({"w": jnp.float32(w), "b": jnp.float32(b)} for w, b in expert.layers)
        statistics = (*expert.observation, *expert.goal)
        return dataclasses.replace(
            super().init(key, spec),
            params={"policy": MLP(layers), "value": ()},
            normalizer=Normalizer(*(jnp.float32(each) for each in statistics)),
        )


@register("Expert", learns=False)
def expert(s: Settings) -> Expert:
    """The expert that collected the data of its robot."""
    return Expert(policy=WeightedBC(), value=None, target_period=s.target_period)
