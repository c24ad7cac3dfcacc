"""goat view"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
from tyro.conf import Positional, arg

from goatrl import tasks
from goatrl.cli.console import OwnAlgorithm, console, load_own, progress_bar
from goatrl.data import experts
from goatrl.experiments import loading
from goatrl.tasks import TaskGroup
from goatrl.types import GoatError

MOST_EPISODES = 36


@dataclasses.dataclass(frozen=True)
class View:
    """Record robots on a task: the first episodes by which agents are evaluated, side by side,
    success framed green at the end.

    Examples:
      goat view push-left-right --task Right2Left --out clip.mp4
      goat view hand-near-far --task Near --expert --out hand.gif
      goat view reach-left-right --task Left --run runs/goat --out clip.mp4 clip.gif
      goat view push-left-right --task Left2Left --run agents/….safetensors --out clip.mp4
    """

    group: Positional[str]
    """A task group from `goat list`."""
    out: tuple[Path, ...]
    """The clip (.mp4, .gif); several are written from one recording."""
    task: Annotated[str | None, arg(metavar="TASK")] = None
    """One of its tasks."""
    # `run` is also what every command does, hence the other name here.
    folder: Annotated[Path | None, arg(name="run", metavar="FOLDER")] = None
    """Whose agent acts: a run of `goat train`, `goat finetune`, `goat expert train`, or a file of
    `goat bench`. None: at random.
    """
    expert: bool = False
    """Let the expert act that collects the robot's data."""
    algorithm: OwnAlgorithm = None
    seed: int = 0
    """Which of the run's agents, or which random actions."""
    episodes: int = 4
    """How many."""
    size: int = 320
    """Width and height of one episode, in pixels."""

    def run(self) -> None:
        from goatrl.report import (
            video,  # it takes a second to load, which other commands need not pay
        )

        group = tasks.get(self.group)
        if not group.family.simulated:
            raise GoatError(
                f"{group.name} has no robot to film; `goat figure trajectories` draws its paths"
            )
        if self.task is None:
            raise GoatError(
                f"say which with --task: {group.name} has "
                f"{', '.join(task.name for task in group.tasks)}"
            )
        task = group.task(self.task)
        if not self.out:
            raise GoatError("name the clip with --out, for example --out clip.mp4")
        for path in self.out:
            video.check_kind(path)
        if not 1 <= self.episodes <= MOST_EPISODES:
            raise GoatError(f"a clip shows 1 to {MOST_EPISODES} episodes, not {self.episodes}")
        if not 32 <= self.size <= 1024:
            raise GoatError(f"an episode is 32 to 1024 pixels wide, not {self.size}")
        name, policy = self.actor(group)
        with progress_bar() as progress:
            bar = progress.add_task(
                f"{group.name} {task.name}", total=group.spec.horizon + 2, losses=""
            )
            caption = f"{group.label}, {task.name}: {name}"
            frames = video.record(
                policy,
                group,
                task,
                caption,
                self.episodes,
                self.size,
                lambda: progress.advance(bar),
            )
        for path in self.out:
            video.save(frames, path)
            console.print(f"wrote {path}")

    def actor(self, group: TaskGroup) -> tuple[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]:
        """Who acts, and how."""
        if self.expert:
            if self.folder is not None:
                raise GoatError("either --run or --expert acts, not both")
            return "expert", experts.get(group.family).act
        if self.folder is None:
            generator = np.random.default_rng(self.seed)
            return "random actions", lambda observations, goals: generator.uniform(
                -1, 1, (len(goals), group.spec.action_dim)
            )
        load_own(self.algorithm)
        trained = loading.load(self.folder)
        group.check_fits(trained.spec, str(self.folder))
        return trained.label, trained.policy(self.seed)
