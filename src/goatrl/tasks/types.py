"""Tasks as data."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from goatrl.types import Settings, unknown


@dataclasses.dataclass(frozen=True)
class Task:
    """Goals to reach from given starts, in a box. `split` says where they lie with respect to the group's dataset."""

    name: str
    split: Literal["iid", "ood", "mixed"]
    starts: np.ndarray  # (E, observation_dim)
    goals: np.ndarray  # (E, goal_dim)
    bound: float


@dataclasses.dataclass(frozen=True)
class TaskGroup:
    """One dataset and the tasks on which agents trained on it are judged, with the paper's settings for it."""

    name: str
    label: str  # as the paper prints it
    family: str  # which simulator runs it
    settings: Settings
    goal_threshold: float
    horizon: int
    tasks: tuple[Task, ...]

    def task(self, name: str) -> Task:
        for task in self.tasks:
            if task.name.lower() == name.lower():
                return task
        raise unknown(f"task of {self.name}", name, (task.name for task in self.tasks))
