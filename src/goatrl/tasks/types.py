"""Tasks as data."""

from __future__ import annotations

import dataclasses
import hashlib
import zlib
from typing import Literal

import numpy as np

from goatrl.tasks.regions import Region
from goatrl.types import GoatError, Settings, Spec, unknown

Split = Literal["iid", "ood", "mixed"]
EVALUATION_SEED = 0


@dataclasses.dataclass(frozen=True)
class Task:
    """Goals to reach from given starts. `split` says where they lie with respect to the group's dataset."""

    name: str
    split: Split
    start: Region
    goal: Region
    episodes: int = 200  # how many an agent is judged by
    bound: float = np.inf  # walls of PointReach

    def draw(self, seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Starts and goals of `count` episodes; the seed alone decides them."""
        of_starts, of_goals = np.random.SeedSequence([seed, zlib.crc32(self.name.encode())]).spawn(2)
        starts = self.start.sample(np.random.default_rng(of_starts), count)
        return starts, self.goal.sample(np.random.default_rng(of_goals), count)

    def evaluation(self) -> tuple[np.ndarray, np.ndarray]:
        """The starts and goals by which every agent is judged."""
        return self.draw(EVALUATION_SEED, self.episodes)


@dataclasses.dataclass(frozen=True)
class TaskGroup:
    """One dataset and the tasks on which agents trained on it are judged, with the paper's settings for it."""

    name: str
    label: str  # as the paper prints it
    family: str  # which simulator runs it
    settings: Settings
    spec: Spec
    tasks: tuple[Task, ...]
    iid: Region  # where every achieved goal of an episode must lie for the dataset to keep it
    physics: str = ""  # what else decides a trajectory

    def check_fits(self, spec: Spec, what: str) -> None:
        """Refuse data or agents of other dimensions than the tasks'."""
        for field in ("observation_dim", "goal_dim", "action_dim"):
            given, needed = getattr(spec, field), getattr(self.spec, field)
            if given != needed:
                raise GoatError(f"{what} does not fit {self.name}: its {field} is {given}, the tasks have {needed}")

    def kept(self, achieved: np.ndarray) -> np.ndarray:
        """The IID filter: which of N episodes of achieved goals (N, T+1, goal_dim) stay in the seen region throughout."""
        return np.asarray(self.iid.contains(achieved).all(axis=-1))

    def evaluation_checksum(self) -> str:
        """SHA-256 over all that agents are judged by: another start, goal, threshold, horizon or physics is another evaluation."""
        digest = hashlib.sha256(f"{self.spec.goal_threshold} {self.spec.horizon}{self.physics}".encode())
        for task in self.tasks:
            starts, goals = task.evaluation()
            digest.update(f"{task.name} {task.bound} {goals.shape}".encode())
            digest.update(np.ascontiguousarray(starts, np.float32).tobytes())
            digest.update(np.ascontiguousarray(goals, np.float32).tobytes())
        return digest.hexdigest()

    def task(self, name: str) -> Task:
        for task in self.tasks:
            if task.name.lower() == name.lower():
                return task
        raise unknown(f"task of {self.name}", name, (task.name for task in self.tasks))
