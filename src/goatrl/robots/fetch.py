"""What the four tasks of the Fetch arm share."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from goatrl.robots.mujoco import MujocoFamily
from goatrl.types import Layout, Spec

if TYPE_CHECKING:
    from goatrl.robots.physics.simulator import Robot

PHYSICS = " mujoco 3.3.7, as recorded by the authors"
REACH_SPEC = Spec(observation_dim=10, goal_dim=3, action_dim=4, horizon=49, goal_threshold=0.05)
OBJECT_SPEC = Spec(observation_dim=25, goal_dim=3, action_dim=4, horizon=49, goal_threshold=0.05)
REACH_LAYOUT = Layout((0, 1, 2), vertical=(2,))  # the gripper
OBJECT_LAYOUT = Layout((3, 4, 5), (0, 1, 2), vertical=(2,))  # the object, and the gripper
ARM = 0.749  # y of the vertical plane through the base, in which the arm comes to rest


def mirrored(
    places: Sequence[int], vectors: Sequence[int], turns: Sequence[int], fingers: Sequence[int]
) -> dict[str, Any]:
    """The reflection across the arm's plane, from the columns at which the x of each place, vector
    and rotation stands, and the first of each pair of fingers.

    Across a plane, a vector's part along the normal turns round. Of a rotation, its parts in the
    plane do.
    """
    observation = {place + 1: 2 * ARM for place in places}
    observation |= {vector + 1: 0.0 for vector in vectors}
    observation |= {column: 0.0 for turn in turns for column in (turn, turn + 2)}
    return {
        "reflection": [
            {
                "observation": {str(column): total for column, total in observation.items()},
                "goal": {"1": 2 * ARM},
                "action": {"1": 0.0},
                "swap": [[finger, finger + 1] for finger in fingers],
            }
        ]
    }


def turned(
    places: Sequence[int],
    vectors: Sequence[int],
    angles: Sequence[int],
    around: Sequence[float],
    by: float,
) -> dict[str, Any]:
    """The rotations about a vertical line, by up to an angle either way, from the columns at which
    the x of each place and vector stands, and those of angles about that line.
    """
    pairs = {
        name: [[x, x + 1] for x in columns]
        for name, columns in (("places", places), ("vectors", vectors))
    }
    return {
        "rotation": [
            {
                "observation": {**pairs, "angles": list(angles)},
                "goal": {"places": [[0, 1]]},
                "action": {"vectors": [[0, 1]]},
                "around": list(around),
                "by": [-by, by],
            }
        ]
    }


REACH_SYMMETRY = mirrored(places=[0], vectors=[5], turns=[], fingers=[3, 8])
# gripper and object; object from gripper, speeds of object and gripper; the object's rotation and
# its speed
OBJECT_SYMMETRY = mirrored(places=[0, 3], vectors=[6, 14, 20], turns=[11, 17], fingers=[9, 23])
Corner = tuple[float, float, float]


@dataclasses.dataclass(frozen=True, eq=False)
class FetchFamily(MujocoFamily):
    """The arm, with or without an object. Positions are in metres, in the world frame, measured
    after the arm has settled; a test compares them with the simulator.

    Cameras look at it from the front, a little from the side, so that the tasks' "right" is the
    picture's right.
    """

    gripper: tuple[float, float, float]  # where it comes to rest before the first action
    object_height: float = math.nan  # at which an object lies, if there is one
    table: tuple[Corner, Corner] | None = None  # two corners, if its edge is near
    whole_table: bool = False  # whether figures show all of it
    change: Callable[[Any], None] | None = None  # made to the model before it is compiled

    @property
    def has_object(self) -> bool:
        return not math.isnan(self.object_height)

    def initial(self, starts: np.ndarray) -> np.ndarray:
        if not self.has_object:
            return np.tile(self.gripper, (len(starts), 1))
        return np.concatenate([starts, np.full((len(starts), 1), self.object_height)], axis=1)

    def make_environment(self, prune: bool = True) -> Any:
        from goatrl.robots.physics import fetch

        return fetch.make_environment(self.environment, self.change, prune)

    def make_robot(self) -> Robot:
        from goatrl.robots.physics.fetch import Fetch

        return Fetch(self.name, self.make_environment(), self.view)
