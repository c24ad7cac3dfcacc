"""HandReach with the Shadow Hand: thumb and one finger meet at a point above the palm; one group,
two tasks.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from goatrl.robots.hand import HAND
from goatrl.tasks.panels import Surroundings
from goatrl.tasks.regions import NOTHING, TOLERANCE, everywhere
from goatrl.tasks.types import Collection, Task, TaskGroup
from goatrl.types import Settings

THUMB = 4
FINGERTIPS, PALM = HAND.fingertips, HAND.palm
MEETING = PALM + np.array([0.0, -0.09, 0.05])
APART = 0.005  # the two tips stop this far from the meeting point, each on its own side


@dataclasses.dataclass(frozen=True)
class Meetings:
    """The meeting point is shifted on every axis by `nearest` to `farthest`, up or down; some goals
    are the initial pose.
    """

    nearest: float
    farthest: float
    at_rest: float = 0.0  # share of goals that are the initial pose

    def sample(self, generator: np.random.Generator, count: int) -> np.ndarray:
        shift = generator.uniform(self.nearest, self.farthest, (count, 3)) * generator.choice(
            [-1.0, 1.0], (count, 3)
        )
        return _goals(generator, shift, self.at_rest)

    def contains(self, points: np.ndarray) -> np.ndarray:
        """Whether thumb and one finger are bent towards one point of the region, and the other
        fingers are at rest.
        """
        points = np.asarray(points)
        tips = points.reshape(*points.shape[:-1], 5, 3)
        at_rest = np.abs(tips - FINGERTIPS).max(axis=-1) <= TOLERANCE
        inside = at_rest.all(axis=-1) & (self.at_rest > 0)
        meeting = meeting_point(tips)
        shift = np.abs(meeting - MEETING)
        in_range = ((shift >= self.nearest - TOLERANCE) & (shift <= self.farthest + TOLERANCE)).all(
            axis=-1
        )
        for finger in range(THUMB):
            expected = meet(meeting, np.full(tips.shape[:-2], finger))
            inside |= in_range & (np.abs(expected - points).max(axis=-1) <= TOLERANCE)
        return inside


@dataclasses.dataclass(frozen=True)
class NormalMeetings:
    """The standard environment's goals: a normally distributed shift, unbounded."""

    scale: float = 0.005
    at_rest: float = 0.1

    def sample(self, generator: np.random.Generator, count: int) -> np.ndarray:
        return _goals(generator, generator.normal(0.0, self.scale, (count, 3)), self.at_rest)

    def contains(self, points: np.ndarray) -> np.ndarray:
        return Meetings(0.0, np.inf, self.at_rest).contains(points)


def _goals(generator: np.random.Generator, shift: np.ndarray, at_rest: float) -> np.ndarray:
    """Goals with a random finger for every shift, a share of them at rest."""
    goals = meet(MEETING + shift, generator.integers(THUMB, size=len(shift)))
    goals[generator.uniform(size=len(shift)) < at_rest] = FINGERTIPS.ravel()
    return goals


def meet(meeting: np.ndarray, finger: np.ndarray) -> np.ndarray:
    """Goals in which the thumb and one finger of each row touch a meeting point: (…, 3), (…) → (…,
    15).
    """
    tips = np.broadcast_to(FINGERTIPS, (*meeting.shape[:-1], 5, 3)).copy()
    moved = np.arange(5) == finger[..., None]
    moved[..., THUMB] = True
    towards = meeting[..., None, :] - tips
    towards /= np.maximum(np.linalg.norm(towards, axis=-1, keepdims=True), 1e-12)
    tips = np.where(moved[..., None], meeting[..., None, :] - APART * towards, tips)
    return tips.reshape(*meeting.shape[:-1], 15)


def meeting_point(tips: np.ndarray) -> np.ndarray:
    """The point towards which the thumb has moved, as far as `meet` stays from it."""
    moved = tips[..., THUMB, :] - FINGERTIPS[THUMB]
    length = np.linalg.norm(moved, axis=-1, keepdims=True)
    return tips[..., THUMB, :] + APART * moved / np.maximum(length, 1e-12)


class MeetingPanel:
    """How far the point at which thumb and finger meet is shifted from its centre."""

    names = ("shift in x (mm)", "shift in y (mm)")
    caption = (
        "where thumb and finger meet; all data is kept; goals that are the initial pose are not "
        "shown"
    )
    surroundings = Surroundings(centred=True)

    def shown(self, starts: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tips = goals.reshape(-1, 5, 3)
        moved = (tips[:, THUMB] != FINGERTIPS[THUMB]).any(axis=-1)
        shift = meeting_point(tips[moved]) - MEETING
        return np.empty((0, 2)), 1000 * shift[:, :2]

    def in_space(self, points: np.ndarray) -> np.ndarray:
        shift = np.pad(points / 1000, [(0, 0)] * (points.ndim - 1) + [(0, 1)])
        return meet(MEETING + shift, np.zeros(points.shape[:-1], int))


def _panel(group: TaskGroup) -> MeetingPanel:
    return MeetingPanel()


STANDARD = Task("Standard", "mixed", NOTHING, NormalMeetings())

GROUPS = (
    TaskGroup(
        "hand-near-far",
        "HandReach Near-Far",
        HAND,
        Settings(w=2.5, w_tau=2.0, tau=0.1, alpha_max=50.0, released_alpha_max=50.0),
        HAND.spec,
        (
            Task("Near", "iid", NOTHING, Meetings(0.0, 0.005, at_rest=0.1)),
            Task("Far", "ood", NOTHING, Meetings(0.005, 0.015)),
        ),
        everywhere(15),  # the paper does not divide this dataset
        Collection(STANDARD, 10_000),
        panel=_panel,
    ),
)
