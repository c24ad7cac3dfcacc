"""HandReach with the Shadow Hand: thumb and one finger meet at a point above the palm; one group,
two tasks.

A goal is where the five fingertips should be (first, middle, ring, little finger, thumb; x, y, z
each).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from goatrl.tasks.regions import NOTHING, TOLERANCE, everywhere
from goatrl.tasks.types import Collection, Task, TaskGroup
from goatrl.types import Settings, Spec

PHYSICS = " mujoco 3.3.7"
THUMB = 4
# Fingertips and palm in the initial pose; a test compares them with the simulator.
FINGERTIPS = np.array(
    [
        [0.9917399497518353, 0.7975473339125766, 0.15223312703734834],
        [1.020878448337019, 0.8017403575433502, 0.1518537371295327],
        [1.0422177257480123, 0.8074827410804033, 0.15524235120340374],
        [1.066196835811668, 0.8230966657590156, 0.16429031963803034],
        [0.950497745203995, 0.8402919253409001, 0.16172141631620524],
    ]
)
PALM = np.array([1.0055893619579683, 0.9604626138118303, 0.13999892163781893])
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


STANDARD = Task("Standard", "mixed", NOTHING, NormalMeetings())

GROUPS = (
    TaskGroup(
        "hand-near-far",
        "HandReach Near-Far",
        "hand",
        Settings(w=2.5, w_tau=2.0, tau=0.1, alpha_max=50.0, released_alpha_max=50.0),
        Spec(observation_dim=63, goal_dim=15, action_dim=20, horizon=49, goal_threshold=0.01),
        (
            Task("Near", "iid", NOTHING, Meetings(0.0, 0.005, at_rest=0.1)),
            Task("Far", "ood", NOTHING, Meetings(0.005, 0.015)),
        ),
        everywhere(15),  # the paper does not divide this dataset
        PHYSICS,
        Collection(STANDARD, 10_000),
    ),
)
