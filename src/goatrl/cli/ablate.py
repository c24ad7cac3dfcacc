"""goat ablate"""

import dataclasses
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
from rich.markup import escape
from tyro.conf import arg

from goatrl.cli.console import console, plural
from goatrl.cli.datasets import ensure
from goatrl.cli.environments import (
    EnvironmentArgs,
    Horizon,
    SuccessRule,
    Timeout,
    environment_of,
)
from goatrl.cli.training import (
    check_place,
    evaluate_agents,
    note_actions,
    note_symmetry,
    train_with_progress,
)
from goatrl.data.problems import Problem, open_problem
from goatrl.disk.claims import claimed
from goatrl.disk.files import write_text
from goatrl.evaluation.summary import per_task
from goatrl.evaluation.worlds import Environment
from goatrl.experiments import statistics, suites
from goatrl.experiments.claims import Outcome, side
from goatrl.experiments.columns import Column
from goatrl.experiments.statistics import Interval
from goatrl.report import figures, tables
from goatrl.report.text import Csv
from goatrl.runs.offline import Run, configure
from goatrl.tasks import TaskGroup
from goatrl.training.offline import Diverged
from goatrl.types import GoatError

INTERVAL = "95 % interval"
HEADINGS = ("rung", "algorithm", "success", "increment", INTERVAL, "verdict", "return")
ABOUT = (
    "increment: what a rung adds to the success of the rung before it, with its 95 % interval over "
    "seeds, which are paired; verdict: whether it adds any"
)


@dataclasses.dataclass(frozen=True)
class Ablate:
    """Find out which component helps on your data: train the paper's ladder from BC to GOAT(tau) on
    it, and two rungs more, and evaluate every rung in your environment.

    BC, +HER (relabelled goals), +EAW (exponential advantage
    weight), +DSW (data selection), +Ens (an ensemble of critics), +UW (uncertainty
    weight), +ER (expectile regression), +difference (networks see the goal relative to the achieved
    one, if observations contain that) and +symmetry (if one is declared) are each trained as a run
    in a subfolder of OUT.
    OUT/ablation.md, .csv and .png compare them. To resume after Ctrl-C, rerun the same command;
    finished rungs are not trained again.

    Examples:
      goat ablate --data mine.npz --goal-threshold 0.5 --environment mine:World-v0 --out ladder
      goat ablate --data reach.pkl --group reach-left-right --seeds 5 --out ladder
    """

    out: Path
    """The folder for all runs, the table and the figure."""
    data: Annotated[Path | None, arg(metavar="FILE")] = None
    """A dataset file or minari:ID. With --group, the group's own dataset if omitted."""
    environment: Annotated[str | None, arg(metavar="ID")] = None
    """The Gymnasium environment to evaluate in, as for `goat evaluate`. MODULE:ID imports the
    module first.
    """
    environment_args: EnvironmentArgs = None
    horizon: Horizon = None
    success: SuccessRule = "threshold"
    timeout: Timeout = None
    goal_threshold: Annotated[float | None, arg(metavar="DISTANCE")] = None
    """The distance within which a goal counts as reached. Required with --environment, unless the
    data declares its own.
    """
    group: Annotated[str | None, arg(metavar="GROUP")] = None
    """Instead of an environment: a task group. Its settings are used, and agents are evaluated on
    all its tasks.
    """
    symmetry: Annotated[str | None, arg(metavar="FILE")] = None
    """A TOML file that declares symmetries of the problem (docs/inputs.md); those of the group's
    robot if omitted.
    """
    seeds: int = 3
    """Number of seeds (0, 1, …), trained together."""
    updates: Annotated[int | None, arg(metavar="N")] = None
    """Number of updates per rung; the group's, or 40,000 without a group, if omitted."""
    episodes: Annotated[int | None, arg(metavar="N")] = None
    """Number of episodes in the environment; 100 if omitted."""

    yes: bool = False
    """Make the group's dataset without asking if it is missing."""

    def run(self) -> None:
        where, problem = self._open()
        columns = self._ladder(problem)
        seeds = tuple(range(self.seeds))
        configs = [
            configure(
                c.algorithm,
                problem,
                data=self.data,
                overrides={**problem.seen_as(c.inputs), **c.overrides},
                seeds=seeds,
                updates=self.updates,
            )
            for c in columns
        ]
        runs = [Run(self.out / name) for name in map(_folder, columns)]
        with claimed(self.out):
            for run, config in zip(runs, configs, strict=True):
                run.prepare(config)
            rungs, failures = [], []
            for place, (column, run, config) in enumerate(
                zip(columns, runs, configs, strict=True), start=1
            ):
                try:
                    title = (
                        f"{column.label} ({place} of {len(columns)}), {plural(self.seeds, 'seed')}"
                    )
                    train_with_progress(run, config, problem, title)
                except Diverged as error:
                    failures.append(f"{column.label}: {error}")
                    continue
                rungs.append(
                    summarise(
                        place, column, evaluate_agents(run.agents(), where, episodes=self.episodes)
                    )
                )
            if rungs:
                evaluated = (
                    f"on {where.label}"
                    if isinstance(where, TaskGroup)
                    else f"in {where.id}{where.settings}"
                )
                source = self.data if self.data is not None else self.group
                about = f"{plural(configs[0].updates, 'update')} on {source}, evaluated {evaluated}"
                spread = "mean ± standard deviation over " if self.seeds > 1 else ""
                publish(rungs, self.out, f"{about}; {spread}{plural(self.seeds, 'seed')}")
        if failures:
            raise Diverged("; ".join(failures))

    def _ladder(self, problem: Problem) -> list[Column]:
        """The paper's, and the two rungs above it as far as the problem has them."""
        ladder = list(suites.get("ablation-components").columns)
        top = ladder[-1]
        if problem.layout is not None:
            top = dataclasses.replace(top, label="+difference", inputs="difference")
            ladder.append(top)
        declared = problem.group is not None and problem.group.family.symmetry is not None
        if self.symmetry is not None or declared:
            numbers = {**top.overrides, **problem.mapped_by(self.symmetry or "declared")}
            ladder.append(dataclasses.replace(top, label="+symmetry", overrides=numbers))
        return ladder

    def _open(self) -> tuple[TaskGroup | Environment, Problem]:
        """Where agents are evaluated and what they are trained on. A mismatch is refused before
        anything is trained.
        """
        environment = environment_of(
            self.environment, self.environment_args, self.horizon, self.success, self.timeout
        )
        if (environment is None) == (self.group is None):
            raise GoatError(
                "choose where to evaluate: in your own environment (--environment ID and "
                "--goal-threshold DISTANCE) or on all tasks of a task group (--group GROUP)"
            )
        if self.group is not None and self.data is None:
            ensure([self.group], self.yes)
        if self.group is None and self.data is None:
            raise GoatError("specify your dataset with --data FILE")
        problem = open_problem(self.group, self.data, self.goal_threshold)
        note_actions(problem)
        note_symmetry(self.symmetry, self.data or self.group)
        where = problem.group or environment
        assert where is not None
        check_place(where, problem.spec, self.episodes, problem.action_bounds)
        return where, problem


def _folder(column: Column) -> str:
    """That of a rung: several have the same algorithm, but none the same inputs and symmetry."""
    words = [column.algorithm, *([column.inputs] if column.inputs != "absolute" else [])]
    return "-".join([*words, "symmetry"] if "symmetry" in column.overrides else words)


@dataclasses.dataclass(frozen=True)
class Rung:
    """The results of one composition, seed by seed."""

    place: int  # from 1
    column: Column
    success: np.ndarray
    returns: np.ndarray


def summarise(place: int, column: Column, table: pa.Table) -> Rung:
    """The mean over tasks, all weighted equally."""
    found = per_task(table)
    success = np.mean([each.success for each in found], axis=0)
    returns = np.mean([each.returns for each in found], axis=0)
    return Rung(place, column, success, returns)


def increments(rungs: Sequence[Rung]) -> list[Interval | None]:
    """What each rung adds to the success of the rung before it, if there is one."""
    found = {rung.place: rung for rung in rungs}
    return [
        statistics.increment(rung.success, found[rung.place - 1].success)
        if rung.place - 1 in found
        else None
        for rung in rungs
    ]


def verdict(rung: Rung, added: Interval) -> Outcome:
    """Whether the rung adds success; a single seed decides nothing."""
    return Outcome.UNDECIDED if len(rung.success) < 2 else side(added, 0.0)


def publish(rungs: Sequence[Rung], folder: Path, about: str) -> None:
    """Print the table, and write it with its figure."""
    lines = [f"| {' | '.join(HEADINGS)} |", "|---|---|---:|---:|---:|---|---:|"]
    shown = tables.plain(escape(about))
    for heading in (name for name in HEADINGS if name != INTERVAL):  # which stands below
        left = heading in ("rung", "algorithm", "verdict")
        shown.add_column(heading, justify="left" if left else "right", no_wrap=True)
    buffer = io.StringIO()
    writer = Csv(buffer)
    writer.writerow(
        [
            "rung",
            "algorithm",
            "seeds",
            "success",
            "success_std",
            "increment",
            "increment_low",
            "increment_high",
            "verdict",
            "return",
            "return_std",
        ]
    )
    for rung, added in zip(rungs, increments(rungs), strict=True):
        success, returns = (
            (values.mean(), tables.deviation(values)) for values in (rung.success, rung.returns)
        )
        named = (rung.column.label, rung.column.algorithm)
        means = tables.number(*success, 3), tables.number(*returns, 1)
        increment, sure, found = _increment(rung, added)
        below = f"{increment}\n[dim]{sure}[/dim]" if sure else increment
        shown.add_row(*named, means[0], below, found, means[1])
        lines.append(f"| {' | '.join((*named, means[0], increment, sure, found, means[1]))} |")
        ends = (None, None) if added is None or len(rung.success) < 2 else (added.low, added.high)
        writer.writerow(
            [
                *named,
                len(rung.success),
                *map(_field, (*success, None if added is None else added.value, *ends)),
                "" if added is None else verdict(rung, added),
                *map(_field, returns),
            ]
        )
    console.print(shown)
    console.print(ABOUT, style="dim", highlight=False)
    drawn = {rung.column.label: rung.success for rung in rungs}
    figures.save(figures.ladder(drawn, "success"), folder / "ablation.png")
    write_text(
        folder / "ablation.md",
        "\n".join(
            [
                f"{about}.",
                "",
                *lines,
                "",
                f"{ABOUT}.",
                "",
                "![success of each rung](ablation.png)",
                "",
            ]
        ),
    )
    write_text(folder / "ablation.csv", buffer.getvalue())
    console.print(f"wrote ablation.md, ablation.csv and ablation.png to {folder}")


def _increment(rung: Rung, added: Interval | None) -> tuple[str, str, str]:
    """An increment, its interval and its verdict, in words."""
    if added is None:
        return "", "", ""
    sure = "" if len(rung.success) < 2 else f"{added.low:z.3f} to {added.high:z.3f}"
    return f"{added.value:+z.3f}", sure, verdict(rung, added)


def _field(number: float | None) -> str:
    """In a CSV file; what is not known is left empty."""
    return "" if number is None or math.isnan(number) else f"{number:z.4f}"
