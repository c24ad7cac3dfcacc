"""How starts and goals of a task group are drawn flat. Numbers only: `report` draws them."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from goatrl.robots.fetch import FetchFamily
from goatrl.tasks.regions import Box

if TYPE_CHECKING:
    from goatrl.tasks.types import TaskGroup

NOWHERE = np.empty((0, 2))


@dataclasses.dataclass(frozen=True, eq=False)
class Surroundings:
    """What a panel shows besides starts and goals."""

    gripper: tuple[float, float] | None = None  # at the start
    table: np.ndarray = dataclasses.field(default_factory=lambda: NOWHERE)  # two corners
    whole_table: bool = False  # whether all of it must be in view
    from_above: bool = False  # the second coordinate grows towards the viewer
    centred: bool = False  # the origin is marked
    walls: np.ndarray = dataclasses.field(default_factory=lambda: np.empty((0, 2, 2)))  # corners


class Panel(Protocol):
    """A picture in two coordinates."""

    names: tuple[str, str]  # of the coordinates
    caption: str  # what the filter keeps
    surroundings: Surroundings

    def shown(self, starts: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The two coordinates of starts and of goals."""

    def in_space(self, points: np.ndarray) -> np.ndarray:
        """Points of the picture as goals: (…, 2) → (…, goal_dim)."""


class ArmPanel:
    """The table as one sees it who stands opposite the robot and looks down; where the border is a
    height, from the side.
    """

    def __init__(self, group: TaskGroup) -> None:
        family, seen = group.family, group.iid
        assert isinstance(family, FetchFamily)
        assert isinstance(seen, Box)
        self.family = family
        from_side = math.isfinite(seen.low[2]) or math.isfinite(seen.high[2])
        self.axes = [0, 2] if from_side else [1, 0]
        across, upwards = self.axes
        self.names = ("xyz"[across] + f" ({family.unit})", "xyz"[upwards] + f" ({family.unit})")
        self.surroundings = Surroundings(
            gripper=(family.gripper[across], family.gripper[upwards]),
            table=NOWHERE if family.table is None else np.array(family.table)[:, self.axes],
            whole_table=family.whole_table,
            from_above=not from_side,  # with y to the right, x grows towards the viewer
        )
        what = "object" if family.has_object else "gripper"
        stays = "ends" if group.collection is not None and group.collection.by_end else "stays"
        aside = "; seen from the side, with the robot on the left" if from_side else ""
        borders = " and ".join(_borders(seen, family.unit))
        self.caption = f"episodes are kept if the {what} {stays} {borders}{aside}"

    def shown(self, starts: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        objects = self.family.initial(starts) if starts.shape[1] else np.empty((0, 3))
        return objects[:, self.axes], goals[:, self.axes]

    def in_space(self, points: np.ndarray) -> np.ndarray:
        """In the coordinate that is not shown, level with the gripper."""
        goals = np.broadcast_to(self.family.gripper, (*points.shape[:-1], 3)).copy()
        goals[..., self.axes] = points
        return goals


def _borders(seen: Box, unit: str) -> list[str]:
    """A box in words."""
    borders = [
        f"at {axis} ≥ {low:.3g} {unit}"
        for axis, low in zip("xyz", seen.low, strict=True)
        if math.isfinite(low)
    ]
    borders += [
        f"at {axis} ≤ {high:.3g} {unit}"
        for axis, high in zip("xyz", seen.high, strict=True)
        if math.isfinite(high)
    ]
    if math.isfinite(seen.farthest):
        axes = ", ".join("xyz"[: len(seen.centre)])
        borders.append(f"within {seen.farthest:g} {unit} of where the gripper starts (in {axes})")
    return borders
