"""Tasks as data."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Literal

import numpy as np

from goatrl.types import GoatError, Settings, Spec, unknown


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
    spec: Spec
    tasks: tuple[Task, ...]

    def check_fits(self, spec: Spec, what: str) -> None:
        """Refuse data or agents of other dimensions than the tasks'."""
        for field in ("observation_dim", "goal_dim", "action_dim"):
            given, needed = getattr(spec, field), getattr(self.spec, field)
            if given != needed:
                raise GoatError(f"{what} does not fit {self.name}: its {field} is {given}, the tasks have {needed}")

    def evaluation_checksum(self) -> str:
        """SHA-256 over all that agents are judged by: another start, goal, threshold or horizon is another evaluation."""
        digest = hashlib.sha256(f"{self.spec.goal_threshold} {self.spec.horizon}".encode())
        for task in self.tasks:
            digest.update(f"{task.name} {task.bound} {task.goals.shape}".encode())
            digest.update(np.ascontiguousarray(task.starts, np.float32).tobytes())
            digest.update(np.ascontiguousarray(task.goals, np.float32).tobytes())
        return digest.hexdigest()

    def task(self, name: str) -> Task:
        for task in self.tasks:
            if task.name.lower() == name.lower():
                return task
        raise unknown(f"task of {self.name}", name, (task.name for task in self.tasks))
