"""goat finetune"""

import dataclasses
from pathlib import Path
from typing import Annotated

import numpy as np
from tyro.conf import Positional, arg

from goatrl.cli.console import OwnAlgorithm, console, load_own, plural
from goatrl.cli.online import follow
from goatrl.runs import finetune
from goatrl.runs.offline import Run
from goatrl.runs.online import OnlinePlan, OnlineRun
from goatrl.types import GoatError


@dataclasses.dataclass(frozen=True)
class Finetune:
    """Let trained agents go on learning online, in all tasks of their group and without the data
    that they were trained on.

    All seeds of the run go on at once. OUT/metrics.csv has their success without noise, before the
    first episode and while they learn. The same command again resumes an interrupted run exactly.

    Examples:
      goat finetune runs/push --out runs/push-online
      goat finetune runs/push --by own --out runs/push-own
      goat finetune --random push-left-right --seeds 5 --out runs/push-random
    """

    out: Path
    """The folder of the fine-tuning."""
    folder: Annotated[Positional[Path | None], arg(metavar="RUN")] = None
    """The folder of a run of `goat train`."""
    by: str = "ddpg_her"
    """ddpg_her, for agents of any algorithm that has critics Q(s, a, g) or none; or own: by the
    run's algorithm.
    """
    group: Annotated[str | None, arg(metavar="GROUP")] = None
    """The task group to act in, if not the run's."""
    random: Annotated[str | None, arg(metavar="GROUP")] = None
    """Instead of a run: DDPG+HER in this task group from random networks, to compare with."""
    seeds: Annotated[int | None, arg(metavar="N")] = None
    """How many random agents (5, unless said otherwise)."""
    episodes: Annotated[int, arg(metavar="N")] = finetune.EPISODES
    """Number of episodes that each seed collects."""
    algorithm: OwnAlgorithm = None

    def run(self) -> None:
        plan = self._plan()
        run = OnlineRun(self.out)
        run.prepare(plan)
        if run.rounds() == plan.rounds:
            console.print(f"already fine-tuned: {run.checkpoint_path}")
        else:
            follow(run, plan, f"{self.random or self.folder}, {plural(len(plan.members), 'seed')}")
        curves = run.curves().values()
        before, after = (
            f"{100 * np.mean([curve[place][1] for curve in curves]):.1f} %" for place in (0, -1)
        )
        steps = self.episodes * plan.group.spec.horizon
        console.print(
            f"success in all {plural(len(plan.tasks), 'task')}: {before} at first, {after} after "
            f"{steps:,} environment steps"
        )
        console.print(f"wrote {run.metrics_path}")
        option = (
            f" --algorithm {self.algorithm}"
            if self.by == "own" and self.algorithm is not None
            else ""
        )
        console.print(f"evaluate it: goat evaluate {self.out}{option}", highlight=False)

    def _plan(self) -> OnlinePlan:
        if (self.folder is None) == (self.random is None):
            raise GoatError(
                "name either the folder of a run of `goat train`, or a task group with --random"
            )
        if self.random is not None:
            if self.by != "ddpg_her" or self.group is not None:
                raise GoatError(
                    "random networks have no algorithm or group of their own: --random goes "
                    "without --by and --group"
                )
            return finetune.random_plan(
                self.random, range(5 if self.seeds is None else self.seeds), self.episodes
            )
        assert self.folder is not None
        if self.seeds is not None:
            raise GoatError("the seeds are those of the run: --seeds goes with --random only")
        load_own(self.algorithm)
        trained = Run(self.folder)
        plan = finetune.plan(trained, self.by, self.group, self.episodes)
        if trained.unfinished():
            console.print(f"{self.folder} {trained.unfinished()}")
        return plan
