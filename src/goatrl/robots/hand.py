"""The Shadow Hand moves its fingertips."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from goatrl.robots.family import ExpertTraining, Finetuning
from goatrl.robots.mujoco import MujocoFamily, View
from goatrl.types import Layout, Spec

if TYPE_CHECKING:
    from goatrl.robots.physics.simulator import Robot


@dataclasses.dataclass(frozen=True, eq=False)
class HandFamily(MujocoFamily):
    """A goal is where the five fingertips should be (first, middle, ring, little finger, thumb; x,
    y, z each).
    """

    # In the initial pose, in metres; a test compares them with the simulator.
    fingertips: np.ndarray  # (5, 3)
    palm: np.ndarray  # (3,)

    def initial(self, starts: np.ndarray) -> np.ndarray:
        return np.tile(self.fingertips.ravel(), (len(starts), 1))

    def make_environment(self, prune: bool = True) -> Any:  # there is nothing to prune
        from goatrl.robots.physics import models

        return models.make_environment(self.environment)

    def make_robot(self) -> Robot:
        from goatrl.robots.physics.hand import Hand

        return Hand(self.name, self.make_environment(), self.view)


HAND = HandFamily(
    "hand",
    Spec(observation_dim=63, goal_dim=15, action_dim=20, horizon=49, goal_threshold=0.01),
    "shadow_dexterous_hand.reach:MujocoHandReachEnv",
    View((1.005, 0.87, 0.16), 0.29, 35.0, -45.0),
    fingertips=np.array(
        [
            [0.9917399497518353, 0.7975473339125766, 0.15223312703734834],
            [1.020878448337019, 0.8017403575433502, 0.1518537371295327],
            [1.0422177257480123, 0.8074827410804033, 0.15524235120340374],
            [1.066196835811668, 0.8230966657590156, 0.16429031963803034],
            [0.950497745203995, 0.8402919253409001, 0.16172141631620524],
        ]
    ),
    palm=np.array([1.0055893619579683, 0.9604626138118303, 0.13999892163781893]),
    physics=" mujoco 3.3.7",
    unit="m",
    # Five fingers must hold still: with more noise hardly any exploring episode succeeds, and it
    # ends at 75 instead of 89 %.
    expert=ExpertTraining(
        400, updates=160, batch_size=4_096, target_period=40, noise=0.1, random=0.1, cost=True
    ),
    finetuning=Finetuning(20),
    layout=Layout(tuple(range(48, 63)), vertical=()),  # the fingertips
)
