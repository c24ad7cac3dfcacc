"""PointReach, the paper's 2-D didactic task: walk from the origin to a goal on a circle.

The project makes the six datasets itself: walks to goals on the upper half circle, plus to two
lower goals in the imbalanced ones.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from goatrl.episodes import make_episodes
from goatrl.robots.exploration import explore
from goatrl.robots.pointreach import POINT
from goatrl.tasks.regions import Points, everywhere
from goatrl.tasks.types import Split, Task, TaskGroup
from goatrl.types import Episodes, Settings

HORIZON = POINT.spec.horizon
GOALS_PER_HALF = 10
DATA_RADIUS = 10.0
MARGIN = 1.0  # the box reaches this far beyond the circle

TOP_SPEED = 0.8
SLOWING = 2.5
NOISE = 0.2
RANDOM_ACTION = 0.3
LOWER_GOALS = (
    3,
    6,
)  # of the ten lower goals, those that the imbalanced datasets show, as in the authors' files

SETTINGS = Settings(updates=2_000, batch_size=128, target_period=4, polyak=0.9, alpha_growth=0.1)


def half_circle(radius: float, lower: bool = False) -> np.ndarray:
    """Ten goals on the upper half circle from 0 to π, or their mirror images: (10, 2)."""
    angle = np.linspace(0.0, np.pi, GOALS_PER_HALF)
    points = radius * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    return points * np.array([1.0, -1.0]) if lower else points


def circle_task(radius: float) -> Task:
    """The 20 fixed evaluation goals of a radius. The data reaches the upper half of R10 only."""
    goals = np.concatenate([half_circle(radius), half_circle(radius, lower=True)])
    split: Split = "mixed" if radius <= DATA_RADIUS else "ood"
    return Task(
        f"R{radius:g}",
        split,
        Points(np.zeros((1, 2))),
        Points(goals),
        episodes=len(goals),
        bound=radius + MARGIN,
    )


@dataclasses.dataclass(frozen=True)
class Walks:
    """A dataset of walks from the origin."""

    stream: int  # of random numbers: datasets of one seed do not share their noise
    repeats: int  # episodes for each upper goal
    expert: bool
    lower: int = 0  # episodes for each lower goal that is shown

    def describe(self, label: str) -> str:
        return (
            f"PointReach {label}: a point in the plane walks from the origin to goals on a circle"
        )

    def make(self, seed: int) -> Episodes:
        goals = np.repeat(half_circle(DATA_RADIUS), self.repeats, axis=0)
        below = half_circle(DATA_RADIUS, lower=True)[list(LOWER_GOALS)]
        goals = np.concatenate([goals, np.repeat(below, self.lower, axis=0)])
        generator = np.random.default_rng([seed, self.stream])
        bound = DATA_RADIUS + MARGIN
        position = np.zeros_like(goals)
        positions, actions = [position], []
        for _ in range(HORIZON):
            action = behaviour(position, goals, generator, self.expert)
            position = np.clip(position + action, -bound, bound)
            actions.append(action)
            positions.append(position)
        observations = np.stack(positions, axis=1)
        return make_episodes(observations, observations, np.stack(actions, axis=1), goals)


def behaviour(
    position: np.ndarray, goals: np.ndarray, generator: np.random.Generator, expert: bool
) -> np.ndarray:
    """The expert walks straight at the goal, as fast as the longer axis allows; the non-expert is
    slow, noisy and often random.

    Both are as the authors' files show them: their clean actions are (g − s) / max(1, |g − s|_∞),
    and the median speed of their noisy actions at distance d follows 0.8 d² / (d² + 2.5).
    """
    towards = goals - position
    if expert:
        return towards / np.maximum(np.abs(towards).max(axis=-1, keepdims=True), 1.0)
    squared = (towards**2).sum(axis=-1, keepdims=True)
    speed = TOP_SPEED * squared / (squared + SLOWING)
    direction = towards / np.sqrt(np.maximum(squared, 1e-12))
    return explore(speed * direction, generator, NOISE, RANDOM_ACTION)


def group(name: str, label: str, script: Walks) -> TaskGroup:
    circles = circle_task(10.0), circle_task(20.0)
    return TaskGroup(
        f"pointreach-{name}",
        label,
        POINT,
        SETTINGS,
        POINT.spec,
        circles,
        everywhere(2),
        script=script,
    )


GROUPS = (
    group("expert-10", "Expert 10", Walks(0, 1, expert=True)),
    group("non-expert-10", "Non-Expert 10", Walks(4, 1, expert=False)),
    group("non-expert-50", "Non-Expert 50", Walks(5, 5, expert=False)),
    group("imbalanced-expert-10", "Imbalanced Expert 10", Walks(1, 1, expert=True, lower=1)),
    group(
        "imbalanced-non-expert-10", "Imbalanced Non-Expert 10", Walks(2, 1, expert=False, lower=1)
    ),
    group(
        "imbalanced-non-expert-50", "Imbalanced Non-Expert 50", Walks(3, 5, expert=False, lower=2)
    ),
)
