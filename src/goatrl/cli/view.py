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
    """Film robots on a task. The clip shows the first evaluation episodes side by side; those that
    succeed end in a green frame.

    Examples:
      goat view push-left-right --task Right2Left --out clip.mp4
      goat view hand-near-far --task Near --expert --out hand.gif
      goat view reach-left-right --task Left --run runs/goat --out clip.mp4 clip.gif
      goat view push-left-right --task Left2Left --run agents/….safetensors --out clip.mp4
    """

    group: Annotated[Positional[str], arg(metavar="GROUP")]
    """A task group from `goat list`."""
    out: tuple[Path, ...]
    """The clip (.mp4, .gif). Several files can be written from one recording."""
    task: Annotated[str | None, arg(metavar="TASK")] = None
    """A task of the group."""
    # `run` is also what every command does, hence the other name here.
    folder: Annotated[Path | None, arg(name="run", metavar="FOLDER")] = None
    """The agent to film: a run of `goat train`, `goat finetune` or `goat expert train`, or a file
    of agents from `goat bench`. Without one, actions are random.
    """
    expert: bool = False
    """Film the expert that collected the robot's data."""
    algorithm: OwnAlgorithm = None
    seed: int = 0
    """The seed of the agent, or of the random actions."""
    episodes: int = 4
    """Number of episodes to film."""
    size: int = 320
    """Width and height of one episode, in pixels."""

    def run(self) -> None:
        from goatrl.report import (
            video,  # takes a second to load, so only this command imports it
        )

        group = tasks.get(self.group)
        if not group.family.simulated:
            raise GoatError(
                f"{group.name} has no robot to film; draw its paths with `goat figure trajectories`"
            )
        if self.task is None:
            raise GoatError(
                f"choose a task with --task: {group.name} has "
                f"{', '.join(task.name for task in group.tasks)}"
            )
        task = group.task(self.task)
        if not self.out:
            raise GoatError("specify the clip with --out, for example --out clip.mp4")
        for path in self.out:
            video.check_kind(path)
        if not 1 <= self.episodes <= MOST_EPISODES:
            raise GoatError(
                f"--episodes must be between 1 and {MOST_EPISODES}, not {self.episodes}"
            )
        if not 32 <= self.size <= 1024:
            raise GoatError(f"--size must be between 32 and 1024 pixels, not {self.size}")
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
                raise GoatError("use either --run or --expert, not both")
            return "expert", experts.get(group.family).act
        if self.folder is None:
            generator = np.random.default_rng(self.seed)
            return "random actions", lambda observations, goals: generator.uniform(
                -1, 1, (len(goals), group.spec.action_dim)
            )
        load_own(self.algorithm, self.folder)
        trained = loading.load(self.folder)
        trained.check_fits(group, str(self.folder))
        return trained.label, trained.policy(self.seed)
