"""goat finetune"""

import dataclasses
import shlex
from pathlib import Path
from typing import Annotated

import numpy as np
from tyro.conf import Positional, arg

from goatrl.cli.console import OwnAlgorithm, console, load_own, plural
from goatrl.cli.environments import (
    EnvironmentArgs,
    Horizon,
    Timeout,
    environment_of,
)
from goatrl.cli.online import follow
from goatrl.cli.progress import Log
from goatrl.runs import finetune, trackers
from goatrl.runs.offline import Run
from goatrl.runs.online import OnlinePlan, OnlineRun
from goatrl.types import GoatError


@dataclasses.dataclass(frozen=True)
class Finetune:
    """Fine-tune trained agents online, on all tasks of their group or in your own environment, and
    without their training data.

    All seeds of the run are fine-tuned together. OUT/metrics.csv records their success without
    exploration noise, before the first episode and during fine-tuning. To resume an interrupted
    run, rerun the same command.

    Examples:
      goat finetune runs/push --out runs/push-online
      goat finetune runs/push --by own --out runs/push-own
      goat finetune runs/mine --environment my_module:MyWorld-v0 --out runs/mine-online
      goat finetune --random push-left-right --seeds 5 --out runs/push-random
    """

    out: Path
    """The folder for the fine-tuning run."""
    folder: Annotated[Positional[Path | None], arg(metavar="RUN")] = None
    """The folder of a `goat train` run."""
    by: str = "ddpg_her"
    """The algorithm to fine-tune with: ddpg_her, for agents with critics Q(s, a, g) or without
    critics; or own, the run's algorithm.
    """
    group: Annotated[str | None, arg(metavar="GROUP")] = None
    """The task group to fine-tune on; the run's if omitted."""
    environment: Annotated[str | None, arg(metavar="ID")] = None
    """Fine-tune in this Gymnasium environment instead, as for `goat evaluate`. Its episodes must be
    of equal length.
    """
    environment_args: EnvironmentArgs = None
    horizon: Horizon = None
    timeout: Timeout = None
    random: Annotated[str | None, arg(metavar="GROUP")] = None
    """Instead of a run: train DDPG+HER on this task group from scratch, as a baseline."""
    seeds: Annotated[int | None, arg(metavar="N")] = None
    """Number of seeds to train from scratch, with --random only; 5 if omitted."""
    episodes: Annotated[int, arg(metavar="N")] = finetune.EPISODES
    """Number of episodes to collect per seed."""
    log: Log = ()
    algorithm: OwnAlgorithm = None

    def run(self) -> None:
        trackers.check(self.log)
        plan = self._plan()
        run = OnlineRun(self.out)
        run.prepare(plan)
        if run.rounds() == plan.rounds:
            console.print(f"already fine-tuned: {run.checkpoint_path}")
        else:
            title = f"{self.random or self.folder}, {plural(len(plan.members), 'seed')}"
            follow(run, plan, title, self.log)
        curves = run.curves().values()
        before, after = (
            f"{100 * np.mean([curve[place][1] for curve in curves]):.1f} %" for place in (0, -1)
        )
        steps = self.episodes * plan.group.spec.horizon
        console.print(
            f"mean success {self._place(plan)}: {before} before, {after} after "
            f"{steps:,} environment steps"
        )
        console.print(f"wrote {run.metrics_path}")
        option = (
            f" --algorithm {self.algorithm}"
            if self.by == "own" and self.algorithm is not None
            else ""
        )
        if self.environment is not None:
            option += f" --environment {self.environment}"
        if self.environment_args is not None:
            option += f" --environment-args '{self.environment_args}'"
        console.print(
            f"evaluate it: goat evaluate {shlex.quote(str(self.out))}{option}",
            highlight=False,
            soft_wrap=True,
        )

    def _place(self, plan: OnlinePlan) -> str:
        return (
            f"on {plural(len(plan.tasks), 'task')}"
            if self.environment is None
            else f"in {self.environment}"
        )

    def _plan(self) -> OnlinePlan:
        if (self.folder is None) == (self.random is None):
            raise GoatError(
                "specify either the folder of a `goat train` run, or a task group with --random"
            )
        where = environment_of(
            self.environment, self.environment_args, self.horizon, timeout=self.timeout
        )
        if where is not None and self.group is not None:
            raise GoatError("fine-tune either on the tasks of a --group or in an --environment")
        if self.random is not None:
            if self.by != "ddpg_her" or self.group is not None or where is not None:
                raise GoatError(
                    "--random trains DDPG+HER on the group it names; omit --by, --group and "
                    "--environment"
                )
            return finetune.random_plan(
                self.random, range(5 if self.seeds is None else self.seeds), self.episodes
            )
        assert self.folder is not None
        if self.seeds is not None:
            raise GoatError("the run determines the seeds; use --seeds only with --random")
        load_own(self.algorithm, self.folder)
        trained = Run(self.folder)
        plan = finetune.plan(trained, self.by, where or self.group, self.episodes)
        if trained.unfinished():
            console.print(f"{self.folder} {trained.unfinished()}")
        return plan
