"""Tasks as data."""

from __future__ import annotations

import dataclasses
import hashlib
import zlib
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import numpy as np

from goatrl.robots import Family
from goatrl.tasks.panels import Panel
from goatrl.tasks.regions import Region
from goatrl.types import Episodes, GoatError, Settings, Spec, unknown

Split = Literal["iid", "ood", "mixed", "map"]
EVALUATION_SEED = 0


@dataclasses.dataclass(frozen=True)
class Task:
    """Goals to reach from given starts. `split` says where they lie with respect to the group's
    dataset.
    """

    name: str
    split: Split
    start: Region
    goal: Region
    episodes: int = 200  # how many an agent is evaluated on
    bound: float = np.inf  # walls of PointReach

    def draw(self, seed: int | Sequence[int], count: int) -> tuple[np.ndarray, np.ndarray]:
        """Starts and goals of `count` episodes; the seed alone decides them."""
        seeds = [seed] if isinstance(seed, int) else seed
        of_starts, of_goals = np.random.SeedSequence(
            [*seeds, zlib.crc32(self.name.encode())]
        ).spawn(2)
        starts = self.start.sample(np.random.default_rng(of_starts), count)
        return starts, self.goal.sample(np.random.default_rng(of_goals), count)

    def evaluation(self) -> tuple[np.ndarray, np.ndarray]:
        """The starts and goals by which every agent is evaluated."""
        return self.draw(EVALUATION_SEED, self.episodes)


def draw_mix(
    tasks: Sequence[Task], seed: Sequence[int], episodes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Starts and goals of several tasks, one after the other, of each as equally many as the number
    allows.
    """
    shares = [len(part) for part in np.array_split(np.arange(episodes), len(tasks))]
    starts, goals = zip(
        *(task.draw(seed, share) for task, share in zip(tasks, shares, strict=True)), strict=True
    )
    return np.concatenate(starts), np.concatenate(goals)


@dataclasses.dataclass(frozen=True)
class Collection:
    """How a dataset is collected: an expert at work, with noise. Episodes that leave the seen
    region are dropped, or only those that end outside of it.
    """

    task: Task
    episodes: int  # how many are kept
    noise: float = 0.2  # standard deviation of what is added to every action
    random: float = 0.3  # share of actions that are drawn at random instead
    by_end: bool = False  # whether the filter looks at the last step alone


class Script(Protocol):
    """Makes a dataset without simulating: in no time, whenever it is needed."""

    def describe(self, label: str) -> str:
        """What the dataset of the group with this label shows."""

    def make(self, seed: int) -> Episodes:
        """The same episodes for the same seed."""


class Recording(Protocol):
    """Makes a dataset by simulating, which takes minutes: lot by lot, all of one size."""

    @property
    def episodes(self) -> int:
        """How many the dataset has."""

    @property
    def recipe(self) -> str:
        """All that decides the dataset but the seed."""

    def describe(self, label: str) -> str:
        """What the dataset of the group with this label shows."""

    def record(self, seed: int, number: int) -> Episodes:
        """The lot with this number: the same episodes for the same seed."""


@dataclasses.dataclass(frozen=True)
class TaskGroup:
    """One dataset and the tasks on which agents trained on it are evaluated, with the paper's
    settings for it.
    """

    name: str
    label: str  # as the paper prints it, unless it is a variant
    family: Family  # the robot
    settings: Settings
    spec: Spec
    tasks: tuple[Task, ...]
    # where every achieved goal of an episode must lie for the dataset to keep it (or its last one)
    iid: Region
    collection: Collection | None = None  # how an expert collects its dataset
    script: Script | None = None  # what else makes it, in no time
    recording: Recording | None = None  # what else makes it, in minutes
    # the group whose dataset it has, but for what lies outside the seen region, or, if it has
    # `keeps`, for the whole episodes that this leaves out: a mask of them
    cut_from: TaskGroup | None = None
    keeps: Callable[[Episodes], np.ndarray] | None = None
    # goals on a grid, from one start: a picture of what an agent reaches, not part of its score
    coverage: Task | None = None
    panel: Callable[[TaskGroup], Panel] | None = None  # draws its starts and goals
    # label of the group whose tasks and published numbers it shares; it differs in its data
    variant_of: str = ""

    @property
    def physics(self) -> str:
        return self.family.physics

    @property
    def made(self) -> Collection | Recording | None:
        """What makes its dataset, where that takes so long that it is kept."""
        return self.collection or self.recording

    @property
    def paper_label(self) -> str:
        """The label under which the paper lists its tasks."""
        return self.variant_of or self.label

    def check_fits(self, spec: Spec, what: str) -> None:
        """Refuse data or agents of other dimensions than the tasks'."""
        for field in ("observation_dim", "goal_dim", "action_dim"):
            given, needed = getattr(spec, field), getattr(self.spec, field)
            if given != needed:
                raise GoatError(
                    f"{what} does not fit {self.name}: its {field} is {given}, but the tasks "
                    f"have {needed}"
                )

    def kept(self, achieved: np.ndarray) -> np.ndarray:
        """The IID filter: which of N episodes of achieved goals (N, T+1, goal_dim) stay in the seen
        region, or end in it.
        """
        inside = self.iid.contains(achieved)
        by_end = self.collection is not None and self.collection.by_end
        return np.asarray(inside[:, -1] if by_end else inside.all(axis=-1))

    def evaluation_checksum(self) -> str:
        """SHA-256 over all that agents are evaluated on: another start, goal, threshold, horizon or
        physics is another evaluation.
        """
        digest = hashlib.sha256(
            f"{self.spec.goal_threshold} {self.spec.horizon}{self.physics}".encode()
        )
        for task in self.tasks:
            starts, goals = task.evaluation()
            digest.update(f"{task.name} {task.bound} {goals.shape}".encode())
            digest.update(np.ascontiguousarray(starts, np.float32).tobytes())
            digest.update(np.ascontiguousarray(goals, np.float32).tobytes())
        return digest.hexdigest()

    def evaluated(self) -> tuple[Task, ...]:
        """All that agents are run on."""
        return self.tasks if self.coverage is None else (*self.tasks, self.coverage)

    def task(self, name: str) -> Task:
        for task in self.tasks:
            if task.name.lower() == name.lower():
                return task
        raise unknown(f"task of {self.name}", name, (task.name for task in self.tasks))
