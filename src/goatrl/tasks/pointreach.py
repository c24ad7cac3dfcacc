"""PointReach, the paper's 2-D didactic task: walk from the origin to a goal on a circle."""

from __future__ import annotations

import numpy as np

from goatrl.tasks.regions import Points, everywhere
from goatrl.tasks.types import Split, Task, TaskGroup
from goatrl.types import Settings, Spec

HORIZON = 49
GOALS_PER_HALF = 10
DATA_RADIUS = 10.0
MARGIN = 1.0  # the box reaches this far beyond the circle

SPEC = Spec(observation_dim=2, goal_dim=2, action_dim=2, horizon=HORIZON, goal_threshold=1.0)
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


LABELS = {
    "pointreach-expert-10": "Expert 10",
    "pointreach-non-expert-10": "Non-Expert 10",
    "pointreach-non-expert-50": "Non-Expert 50",
    "pointreach-imbalanced-expert-10": "Imbalanced Expert 10",
    "pointreach-imbalanced-non-expert-10": "Imbalanced Non-Expert 10",
    "pointreach-imbalanced-non-expert-50": "Imbalanced Non-Expert 50",
}

GROUPS = tuple(
    TaskGroup(
        name, label, "point", SETTINGS, SPEC, (circle_task(10.0), circle_task(20.0)), everywhere(2)
    )
    for name, label in LABELS.items()
)
