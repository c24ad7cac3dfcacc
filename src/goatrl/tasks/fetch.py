"""Reach, Push, Pick and Slide with the Fetch arm: eight groups, 24 tasks.

Positions are in metres, in the world frame. "Right" is y above the gripper's initial position,
"left" below it; starts and goals are near or far by their distance from it in the plane of the
table. An object's start is its (x, y); Reach always starts in the same pose.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np

from goatrl.robots.fetch import FetchFamily
from goatrl.robots.pick import PICK as PICK_ROBOT
from goatrl.robots.push import PUSH as PUSH_ROBOT
from goatrl.robots.reach import REACH as REACH_ROBOT
from goatrl.robots.slide import SLIDE as SLIDE_ROBOT
from goatrl.tasks.panels import ArmPanel
from goatrl.tasks.regions import NOTHING, Box, Either, Points, Redrawn, RedrawnRing, Region, grid
from goatrl.tasks.types import Collection, Task, TaskGroup
from goatrl.types import Settings


@dataclasses.dataclass(frozen=True)
class Place:
    """Regions around the point where an arm comes to rest before the first action."""

    family: FetchFamily

    @property
    def gripper(self) -> tuple[float, float, float]:
        return self.family.gripper

    @property
    def table(self) -> float:
        """The height at which an object lies."""
        return self.family.object_height

    def box(
        self, x: tuple[float, float], y: tuple[float, float], z: tuple[float, float], **ring: float
    ) -> Box:
        """Goals relative to the gripper in x and y, at absolute heights."""
        gx, gy, _ = self.gripper
        return Box(
            (gx + x[0], gy + y[0], z[0]), (gx + x[1], gy + y[1], z[1]), centre=(gx, gy), **ring
        )

    def object_near(self, reach: float, nearest: float, farthest: float = math.inf) -> Box:
        """Starts of an object: within ±reach of the gripper, at some distance from it."""
        gx, gy, _ = self.gripper
        return Box((gx - reach, gy - reach), (gx + reach, gy + reach), (gx, gy), nearest, farthest)

    def object_beside(self, reach: float, side: str) -> Redrawn:
        """Starts of an object on one side. The y that is drawn anew may bring it nearer than the
        0.1 m kept at first.
        """
        gy = self.gripper[1]
        low, high = SIDES[side]
        return Redrawn(self.object_near(reach, 0.1), 1, gy + low * reach, gy + high * reach)


SIDES = {"Right": (0.0, 1.0), "Left": (-1.0, 0.0)}
REACH, PUSH, PICK, SLIDE = map(Place, (REACH_ROBOT, PUSH_ROBOT, PICK_ROBOT, SLIDE_ROBOT))

REACH_SETTINGS = Settings(updates=2_500, target_period=5, alpha_growth=0.15)


def half(place: Place) -> Box:
    """The seen half of all Left-Right groups: y not below the gripper's."""
    return Box((-math.inf, place.gripper[1], -math.inf), (math.inf, math.inf, math.inf))


def near(centre: tuple[float, ...]) -> Box:
    """The seen part of the Near-Far groups of Reach and Push: a ball for Reach, as the authors'
    file shows, a disc for Push.

    A block on the table lies 1.1 cm above the gripper's height, so that a ball would be a disc
    smaller by 0.4 mm.
    """
    return Box((-math.inf,) * 3, (math.inf,) * 3, centre, farthest=0.15)


def group(
    name: str,
    label: str,
    place: Place,
    settings: Settings,
    tasks: tuple[Task, ...],
    iid: Region,
    coverage: Task,
) -> TaskGroup:
    return TaskGroup(
        name,
        label,
        place.family,
        settings,
        place.family.spec,
        tasks,
        iid,
        COLLECTIONS[place],
        coverage=coverage,
        panel=ArmPanel,
    )


def coverage(place: Place, goals: Box, cells: tuple[int, int, int]) -> Task:
    """Goals on a grid over a box; an object starts 0.1 m to the right of the gripper, where the
    data shows it.
    """
    gx, gy, _ = place.gripper
    start: Region = Points(np.array([[gx, gy + 0.1]])) if place.family.has_object else NOTHING
    points = grid(goals.low, goals.high, cells)
    return Task("Coverage", "map", start, points, episodes=len(points.points))


def pairs(starts: dict[str, Region], goals: dict[str, Region]) -> tuple[Task, ...]:
    """Every start with every goal; the first of each is what the data shows."""
    names = itertools.product(starts, goals)
    first = (next(iter(starts)), next(iter(goals)))
    return tuple(
        Task(f"{s}2{g}", "iid" if (s, g) == first else "ood", starts[s], goals[g]) for s, g in names
    )


def singles(start: Region, goals: dict[str, Region]) -> tuple[Task, ...]:
    """One start region, several goal regions, the first of which the data shows."""
    return tuple(
        Task(name, "iid" if place == 0 else "ood", start, goal)
        for place, (name, goal) in enumerate(goals.items())
    )


def _sides(reach: float) -> dict[str, tuple[float, float]]:
    return {side: (low * reach, high * reach) for side, (low, high) in SIDES.items()}


_AROUND, _WIDE = (-0.15, 0.15), (-0.3, 0.3)
_REACH_Z = (REACH.gripper[2] - 0.15, REACH.gripper[2] + 0.15)
_PUSH_Z = (PUSH.table, PUSH.table)
_PICK_Z = (PICK.table, PICK.table + 0.45)
_SLIDE_Z = (SLIDE.table, SLIDE.table)
_SLIDE_NEAR, _SLIDE_FAR = (0.1, 0.4), (0.4, 0.6)  # in front of the gripper

_ON_TABLE, _IN_AIR = (
    PICK.box(_AROUND, _AROUND, (PICK.table, PICK.table)),
    PICK.box(_AROUND, _AROUND, _PICK_Z),
)
# Experts are trained and data is collected on the standard tasks of gymnasium-robotics.
COLLECTIONS = {
    REACH: Collection(
        Task("Standard", "mixed", NOTHING, REACH.box(_AROUND, _AROUND, _REACH_Z)), 200
    ),
    PUSH: Collection(
        Task("Standard", "mixed", PUSH.object_near(0.15, 0.1), PUSH.box(_AROUND, _AROUND, _PUSH_Z)),
        5_000,
    ),
    PICK: Collection(
        Task("Standard", "mixed", PICK.object_near(0.15, 0.1), Either(_ON_TABLE, _IN_AIR)), 5_000
    ),
    SLIDE: Collection(
        Task(
            "Standard",
            "mixed",
            SLIDE.object_near(0.1, 0.1),
            SLIDE.box((0.1, 0.7), (-0.3, 0.3), _SLIDE_Z),
        ),
        20_000,
        noise=0.1,
        random=0.0,  # its expert fails often enough by itself
    ),
}

GROUPS = (
    group(
        "reach-left-right",
        "Reach Left-Right",
        REACH,
        dataclasses.replace(REACH_SETTINGS, w=1.5, w_tau=2.5, tau=0.3),
        singles(
            NOTHING, {side: REACH.box(_AROUND, y, _REACH_Z) for side, y in _sides(0.15).items()}
        ),
        half(REACH),
        coverage(REACH, REACH.box(_AROUND, _AROUND, (REACH.gripper[2],) * 2), (10, 10, 1)),
    ),
    group(
        "reach-near-far",
        "Reach Near-Far",
        REACH,
        dataclasses.replace(REACH_SETTINGS, w=2.0, w_tau=1.5, tau=0.1),
        singles(
            NOTHING,
            {
                "Near": REACH.box(_AROUND, _AROUND, _REACH_Z, farthest=0.15),
                "Far": RedrawnRing(
                    REACH.box(_AROUND, _AROUND, _REACH_Z),
                    REACH.box(_WIDE, _WIDE, _REACH_Z, nearest=0.15, farthest=0.3),
                ),
            },
        ),
        near(REACH.gripper),
        coverage(REACH, REACH.box(_WIDE, _WIDE, (REACH.gripper[2],) * 2), (10, 10, 1)),
    ),
    group(
        "push-left-right",
        "Push Left-Right",
        PUSH,
        Settings(w=2.5, w_tau=1.5, tau=0.1),
        pairs(
            {side: PUSH.object_beside(0.15, side) for side in SIDES},
            {side: PUSH.box(_AROUND, y, _PUSH_Z) for side, y in _sides(0.15).items()},
        ),
        half(PUSH),
        coverage(PUSH, PUSH.box(_AROUND, _AROUND, _PUSH_Z), (10, 10, 1)),
    ),
    group(
        "push-near-far",
        "Push Near-Far",
        PUSH,
        Settings(w=1.5, w_tau=2.5, tau=0.1),
        pairs(
            {"Near": PUSH.object_near(0.15, 0.1, 0.15), "Far": PUSH.object_near(0.3, 0.15, 0.3)},
            {
                "Near": PUSH.box(_AROUND, _AROUND, _PUSH_Z, farthest=0.15),
                "Far": PUSH.box(_WIDE, _WIDE, _PUSH_Z, nearest=0.15, farthest=0.3),
            },
        ),
        near(PUSH.gripper[:2]),
        coverage(PUSH, PUSH.box(_WIDE, _WIDE, _PUSH_Z), (10, 10, 1)),
    ),
    group(
        "pick-left-right",
        "Pick Left-Right",
        PICK,
        Settings(w=1.0, w_tau=2.5, tau=0.3),
        pairs(
            {side: PICK.object_beside(0.15, side) for side in SIDES},
            {side: PICK.box(_AROUND, y, _PICK_Z) for side, y in _sides(0.15).items()},
        ),
        half(PICK),
        coverage(PICK, PICK.box(_AROUND, _AROUND, (0.6, 0.6)), (10, 10, 1)),
    ),
    group(
        "pick-low-high",
        "Pick Low-High",
        PICK,
        Settings(w=2.0, w_tau=1.5, tau=0.3),
        singles(
            PICK.object_near(0.15, 0.1),
            {
                "Low": PICK.box(_AROUND, _AROUND, (PICK.table, 0.6)),
                "High": PICK.box(_AROUND, _AROUND, (0.6, 0.9)),
            },
        ),
        Box((-math.inf,) * 3, (math.inf, math.inf, 0.6)),
        coverage(PICK, PICK.box((0.0, 0.0), _AROUND, (PICK.table, 0.9)), (1, 8, 13)),
    ),
    group(
        "slide-left-right",
        "Slide Left-Right",
        SLIDE,
        Settings(w=1.5, w_tau=2.5, tau=0.1, alpha_max=0.0, relabel=0.2),
        pairs(
            {side: SLIDE.object_beside(0.1, side) for side in SIDES},
            {side: SLIDE.box(_SLIDE_NEAR, y, _SLIDE_Z) for side, y in _sides(0.2).items()},
        ),
        half(SLIDE),
        coverage(SLIDE, SLIDE.box(_SLIDE_NEAR, (-0.2, 0.2), _SLIDE_Z), (9, 12, 1)),
    ),
    group(
        "slide-near-far",
        "Slide Near-Far",
        SLIDE,
        Settings(w=2.0, w_tau=1.5, tau=0.3, relabel=0.5),
        singles(
            SLIDE.object_near(0.1, 0.1),
            {
                "Near": SLIDE.box(_SLIDE_NEAR, (-0.2, 0.2), _SLIDE_Z),
                "Far": SLIDE.box(_SLIDE_FAR, (-0.2, 0.2), _SLIDE_Z),
            },
        ),
        Box((-math.inf,) * 3, (1.4, math.inf, math.inf)),
        coverage(SLIDE, SLIDE.box((0.1, 0.6), (-0.2, 0.2), _SLIDE_Z), (12, 10, 1)),
    ),
)

_SLIDE_LEFT_RIGHT = next(group for group in GROUPS if group.name == "slide-left-right")
# Not of the paper: the same tasks after other data, for a question that its numbers raise
# (results/README.md).
VARIANTS = (
    dataclasses.replace(
        _SLIDE_LEFT_RIGHT,
        name="slide-left-right-by-end",
        label="Slide Left-Right by end",
        collection=dataclasses.replace(COLLECTIONS[SLIDE], by_end=True),
        variant_of=_SLIDE_LEFT_RIGHT.label,
    ),
)
