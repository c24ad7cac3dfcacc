"""goat train, goat evaluate"""

import dataclasses
from pathlib import Path
from typing import Annotated

import numpy as np
from rich.table import Table
from tyro.conf import Positional, UseAppendAction, arg

from goatrl import algorithms, tasks
from goatrl.cli.console import console, losses, out_of_range, pairs, plural, progress_bar
from goatrl.cli.datasets import ensure
from goatrl.evaluate import evaluate
from goatrl.problems import open_problem
from goatrl.runs import Run, configure
from goatrl.types import GoatError


@dataclasses.dataclass(frozen=True)
class Train:
    """Train an algorithm with several seeds at once. The same command again resumes an interrupted run exactly.

    Examples:
      goat train goat --group pointreach-non-expert-10 --out runs/goat
      goat train goat --group pointreach-non-expert-10 --out runs/w1 --set uncertainty.w=1.0
      goat train wgcsl --data mine.npz --goal-threshold 0.05 --out runs/mine
      goat train ./my_algorithm.py --group pointreach-expert-10 --out runs/my
    """

    algorithm: Positional[str]
    """A name from `goat list`, or a Python file that registers one algorithm."""
    out: Path
    """The run's folder."""
    group: Annotated[str | None, arg(metavar="GROUP")] = None
    """The task group whose dataset, settings and tasks are used."""
    data: Annotated[Path | None, arg(metavar="FILE")] = None
    """A dataset file (.npz or one of the authors' .pkl), or minari:ID, instead of the group's own."""
    goal_threshold: Annotated[float | None, arg(metavar="DISTANCE")] = None
    """How near counts as reached; needed for your own data without a group."""
    seeds: int = 5
    """How many seeds train together (0, 1, …)."""
    set: UseAppendAction[tuple[str, ...]] = ()
    """NAME=VALUE of a hyper-parameter (see `goat list ALGORITHM`); may be repeated."""
    updates: Annotated[int | None, arg(metavar="N")] = None
    """Number of updates, if not the group's."""
    batch_size: Annotated[int | None, arg(metavar="N")] = None
    """Batch size, if not the group's."""

    yes: bool = False
    """Make the group's dataset if it is missing, without asking."""

    def run(self) -> None:
        algorithms.get(self.algorithm)  # a misspelt name should not wait for a dataset
        if self.group is not None and self.data is None:
            ensure([self.group], self.yes)
        problem = open_problem(self.group, self.data, self.goal_threshold)
        config = configure(
            self.algorithm,
            problem,
            data=self.data,
            overrides=pairs(self.set, "a setting: write NAME=VALUE, for example uncertainty.w=1.5"),
            seeds=tuple(range(self.seeds)),
            updates=self.updates,
            batch_size=self.batch_size,
        )
        run = Run(self.out)
        run.prepare(config)
        note = out_of_range(problem.episodes)
        if note:
            console.print(f"note: {note}", highlight=False)
        if run.step() == config.updates:
            console.print(f"already trained: {run.checkpoint_path}")
        else:
            if run.step():
                console.print(f"going on from update {run.step()} of {config.updates}")
            with progress_bar() as progress:
                task = progress.add_task(
                    f"{self.algorithm}, {plural(self.seeds, 'seed')}",
                    total=config.updates,
                    completed=run.step(),
                    losses="compiling",
                )
                run.train(
                    config, problem, on_report=lambda step, metrics: progress.update(task, completed=step, losses=losses(metrics))
                )
            console.print(f"trained: {run.checkpoint_path}")
        if problem.group is not None:
            console.print(f"judge it: goat evaluate {self.out}")
        else:
            console.print(f"use it: from goatrl.runs import load_policy; act = load_policy('{self.out}')", highlight=False)


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Judge a trained run on its tasks; every episode becomes a row of RUN/episodes.parquet.

    Examples:
      goat evaluate runs/goat
      goat evaluate runs/goat --tasks R20
      goat evaluate runs/reach --group reach-left-right
    """

    folder: Positional[Path]
    """The run's folder."""
    tasks: tuple[str, ...] = ()
    """Only these tasks."""
    group: Annotated[str | None, arg(metavar="GROUP")] = None
    """The task group to judge on, for a run that was trained on your own data."""

    def run(self) -> None:
        run = Run(self.folder)
        config = run.config()
        name = self.group or config.group
        if name is None:
            raise GoatError(f"{self.folder} was trained without a task group; say which tasks with --group")
        group = tasks.get(name)
        group.check_fits(config.spec, str(self.folder))
        members, state = run.restore()
        step = run.step()
        if step < config.updates:
            console.print(f"this run stopped at update {step} of {config.updates}; `goat train` would go on")
        with progress_bar() as progress:
            bar = progress.add_task(f"judging {plural(len(members), 'seed')}", total=None, losses="")
            table = evaluate(
                members,
                state,
                group,
                [group.task(task) for task in self.tasks] or None,
                on_progress=lambda done, total: progress.update(bar, completed=done, total=total),
            )
            progress.update(bar, visible=group.family != "point")  # which takes no time to show
        run.write_episodes(table, group, step)
        shown = Table(title=f"{algorithms.get(config.algorithm).label} on {group.label}", title_justify="left")
        for heading in ("task", "split", "success", "return", "episodes"):
            shown.add_column(heading, justify="left" if heading in ("task", "split") else "right")
        for task in dict.fromkeys(table.column("task").to_pylist()):
            rows = table.filter(np.asarray(table.column("task").to_pylist()) == task)
            success = rows.column("success").to_numpy(zero_copy_only=False).astype(float).reshape(len(members), -1).mean(1)
            returns = rows.column("return").to_numpy().astype(float).reshape(len(members), -1).mean(1)
            split = rows.column("split")[0].as_py()
            numbers = [f"{values.mean():.2f} ± {values.std():.2f}" for values in (success, returns)]
            shown.add_row(task, split, *numbers, str(rows.num_rows))
        console.print(shown)
        console.print(f"wrote {run.episodes_path}")
