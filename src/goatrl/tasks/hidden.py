"""A part of what the data of a group show is hidden, and agents are evaluated on goals there. So
choices can be made about goals outside the data without any goal that lies outside of a benchmark's
data (docs/frontier.md).

Of HandReach nothing is hidden: goals of its IID task lie so close that to meet one is to meet
others. Agents are evaluated on other goals of that task.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from goatrl.tasks import fetch, shadow_hand
from goatrl.tasks.fetch import PICK, SLIDE, Place
from goatrl.tasks.regions import Redrawn, Region
from goatrl.tasks.types import Task, TaskGroup
from goatrl.types import Episodes

SIDE = (-0.15, 0.15)
LOW = 0.045  # above the table
SHORT = 0.25  # in front of the gripper


def derived(
    whole: TaskGroup,
    ending: str,
    label: str,
    keeps: Callable[[Episodes], np.ndarray],
    *tasks: Task,
) -> TaskGroup:
    """A group with episodes of another, and tasks of its own."""
    return dataclasses.replace(
        whole,
        name=f"{whole.name}-{ending}",
        label=f"{whole.label}, {label}",
        tasks=tasks,
        collection=None,
        cut_from=whole,
        keeps=keeps,
        coverage=None,
        panel=None,
    )


def part(
    name: str,
    keeps: Callable[[Episodes], np.ndarray],
    kept: tuple[Region, Region],
    hidden: tuple[Region, Region],
) -> TaskGroup:
    """A group without some of its episodes, with a task of what is kept and one of what is not,
    each from its starts and goals.
    """
    (whole,) = (group for group in fetch.GROUPS if group.name == name)
    tasks = Task("Kept", "iid", *kept), Task("Hidden", "ood", *hidden)
    return derived(whole, "hidden", "a part hidden", keeps, *tasks)


def seen_from(place: Place, points: Any) -> np.ndarray:
    """Places as they lie from the gripper's initial place, and from the table."""
    return np.asarray(points) - np.array([*place.gripper[:2], place.table])


def stay_low(episodes: Episodes) -> np.ndarray:
    """Blocks that are never lifted far, and are not meant to be."""
    blocks, goals = (seen_from(PICK, each) for each in (episodes.achieved, episodes.goals))
    return np.asarray((blocks[..., 2].max(axis=1) < LOW) & (goals[:, 2] < LOW))


def go_outwards(episodes: Episodes) -> np.ndarray:
    """Pucks on the right that slide to the right, by 3 cm at least and never back, as they are
    meant to.
    """
    pucks, goals = (seen_from(SLIDE, each)[..., 1] for each in (episodes.achieved, episodes.goals))
    start = pucks[:, 0]
    back = (np.maximum.accumulate(pucks, axis=1) - pucks).max(axis=1)
    return np.asarray((back < 0.01) & (pucks[:, -1] > start + 0.03) & (goals > start + 0.03))


def stay_near(episodes: Episodes) -> np.ndarray:
    """Pucks that do not slide far, and are not meant to."""
    pucks, goals = (seen_from(SLIDE, each)[..., 0] for each in (episodes.achieved, episodes.goals))
    return np.asarray((pucks.max(axis=1) < SHORT) & (goals < SHORT))


def all_of_them(episodes: Episodes) -> np.ndarray:
    return np.ones(episodes.count, bool)


def lifted(low: float, high: float) -> tuple[Region, Region]:
    heights = (PICK.table + low, PICK.table + high)
    return PICK.object_near(0.15, 0.1), PICK.box(SIDE, SIDE, heights)


def slid_sidewards(start: tuple[float, float], goal: tuple[float, float]) -> tuple[Region, Region]:
    """Pucks and goals on the right, each between two distances from the middle."""
    middle = SLIDE.gripper[1]
    puck = Redrawn(SLIDE.object_near(0.1, 0.1), 1, middle + start[0], middle + start[1])
    return puck, SLIDE.box((0.1, 0.4), goal, (SLIDE.table, SLIDE.table))


def slid_forwards(low: float, high: float) -> tuple[Region, Region]:
    goals = SLIDE.box((low, high), (-0.2, 0.2), (SLIDE.table, SLIDE.table))
    return SLIDE.object_near(0.1, 0.1), goals


(_HAND,) = shadow_hand.GROUPS
GROUPS = (
    part("pick-low-high", stay_low, lifted(0.0, LOW), lifted(0.11, 0.6 - PICK.table)),
    part(
        "slide-left-right",
        go_outwards,
        slid_sidewards((0.0, 0.05), (0.1, 0.2)),
        slid_sidewards((0.08, 0.1), (0.0, 0.03)),
    ),
    part("slide-near-far", stay_near, slid_forwards(0.1, SHORT), slid_forwards(0.32, 0.4)),
    derived(
        _HAND,
        "shown",
        "other goals shown",
        all_of_them,
        dataclasses.replace(_HAND.task("Near"), name="Shown"),
    ),
)
