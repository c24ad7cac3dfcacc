"""A part of what the data of a group show is hidden, and agents are evaluated on goals there. So
choices can be made about goals outside the data without any goal that lies outside of a benchmark's
data (docs/frontier.md).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from goatrl.tasks import fetch, shadow_hand
from goatrl.tasks.fetch import PICK, SLIDE, Place
from goatrl.tasks.regions import NOTHING, Redrawn
from goatrl.tasks.shadow_hand import Meetings
from goatrl.tasks.types import Task, TaskGroup
from goatrl.types import Episodes

Keeps = Callable[[Episodes], np.ndarray]
SIDE = (-0.15, 0.15)
LOW = 0.045  # above the table
SHORT = 0.25  # in front of the gripper
SMALL = 0.004  # of the meeting point's shift


def part(whole: TaskGroup, keeps: Keeps, kept: Task, hidden: Task) -> TaskGroup:
    """A group without some of its episodes, with a task of what is kept and one of what is not."""
    return dataclasses.replace(
        whole,
        name=f"{whole.name}-hidden",
        label=f"{whole.label}, a part hidden",
        tasks=(
            dataclasses.replace(kept, name="Kept", split="iid"),
            dataclasses.replace(hidden, name="Hidden", split="ood"),
        ),
        collection=None,
        cut_from=whole,
        keeps=keeps,
        coverage=None,
        panel=None,
    )


def seen_from(place: Place, points: Any) -> np.ndarray:
    """Places as they lie from the gripper's initial place, and from the table."""
    return np.asarray(points) - np.array([*place.gripper[:2], place.table])


def stay_low(episodes: Episodes) -> np.ndarray:
    """Blocks that are never lifted far, and are not meant to be."""
    blocks, goals = (seen_from(PICK, each) for each in (episodes.achieved, episodes.goals))
    return np.asarray((blocks[..., 2].max(axis=1) < LOW) & (goals[:, 2] < LOW))


def go_outwards(episodes: Episodes) -> np.ndarray:
    """Pucks on the right that slide to the right, by 3 cm at least, as they are meant to."""
    pucks, goals = (seen_from(SLIDE, each)[..., 1] for each in (episodes.achieved, episodes.goals))
    start = pucks[:, 0]
    never_inwards = pucks.min(axis=1) > start - 0.01
    return np.asarray(never_inwards & (pucks[:, -1] > start + 0.03) & (goals > start + 0.03))


def stay_near(episodes: Episodes) -> np.ndarray:
    """Pucks that do not slide far, and are not meant to."""
    pucks, goals = (seen_from(SLIDE, each)[..., 0] for each in (episodes.achieved, episodes.goals))
    return np.asarray((pucks.max(axis=1) < SHORT) & (goals < SHORT))


def meet_in_the_middle(episodes: Episodes) -> np.ndarray:
    """Thumb and finger that are meant to meet near the middle, or to rest."""
    return Meetings(0.0, SMALL, at_rest=1.0).contains(np.asarray(episodes.goals))


def lifted(low: float, high: float) -> Task:
    heights = (PICK.table + low, PICK.table + high)
    return Task("", "iid", PICK.object_near(0.15, 0.1), PICK.box(SIDE, SIDE, heights))


def slid_sidewards(start: tuple[float, float], goal: tuple[float, float]) -> Task:
    """Pucks and goals on the right, each between two distances from the middle."""
    middle = SLIDE.gripper[1]
    puck = Redrawn(SLIDE.object_near(0.1, 0.1), 1, middle + start[0], middle + start[1])
    return Task("", "iid", puck, SLIDE.box((0.1, 0.4), goal, (SLIDE.table, SLIDE.table)))


def slid_forwards(low: float, high: float) -> Task:
    goals = SLIDE.box((low, high), (-0.2, 0.2), (SLIDE.table, SLIDE.table))
    return Task("", "iid", SLIDE.object_near(0.1, 0.1), goals)


def met(nearest: float, farthest: float) -> Task:
    return Task("", "iid", NOTHING, Meetings(nearest, farthest))


_WHOLE = {group.name: group for group in (*fetch.GROUPS, *shadow_hand.GROUPS)}
GROUPS = (
    part(_WHOLE["pick-low-high"], stay_low, lifted(0.0, LOW), lifted(0.11, 0.6 - PICK.table)),
    part(
        _WHOLE["slide-left-right"],
        go_outwards,
        slid_sidewards((0.0, 0.05), (0.1, 0.2)),
        slid_sidewards((0.08, 0.1), (0.0, 0.03)),
    ),
    part(_WHOLE["slide-near-far"], stay_near, slid_forwards(0.1, SHORT), slid_forwards(0.32, 0.4)),
    part(_WHOLE["hand-near-far"], meet_in_the_middle, met(0.0, SMALL), met(0.006, 0.01)),
)
