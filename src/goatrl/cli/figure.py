"""goat figure"""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
from tyro.conf import Positional, arg

from goatrl import tasks
from goatrl.cli.console import OwnAlgorithm, command, console, dataset_files, load_own, plural
from goatrl.cli.environments import (
    EnvironmentArgs,
    Horizon,
    SuccessRule,
    Timeout,
    environment_of,
)
from goatrl.data.problems import open_problem
from goatrl.disk.files import write_text
from goatrl.evaluation import environments
from goatrl.evaluation.episodes import evaluate
from goatrl.evaluation.uncertainty import rank_by_weight, value_spread
from goatrl.evaluation.worlds import Environment
from goatrl.experiments import curves, finetuning, loading, planning, records, statistics, suites
from goatrl.report import data_figures, figures, goal_figures, maps, tables
from goatrl.report import finetuning as tuning
from goatrl.runs.offline import Run
from goatrl.tasks import TaskGroup
from goatrl.types import Episodes, GoatError, unknown

Paths = dict[
    str, tuple[Episodes, dict[str, pa.Table]]
]  # dataset → its episodes, and label → evaluated episodes


def recorded_cells(suite: suites.Suite, folder: Path) -> list[records.Cell]:
    cells = planning.suite_cells(suite, folder)
    if not cells:
        raise GoatError(
            f"no records of suite {suite.name} in {folder}; create them with `goat bench`, or "
            "specify another --suite"
        )
    return cells


@dataclasses.dataclass(frozen=True)
class FigureTrajectories:
    """Draw each agent's trajectories with its dataset and goals, as in the paper's first figure; or
    the paths of a run's agents in your own environment, in the first two coordinates of a goal.

    Examples:
      goat figure trajectories results/pointreach --out trajectories.png
      goat figure trajectories runs/goat --out paths.png
      goat figure trajectories runs/mine --environment my_module:MyWorld-v0 --out paths.png
    """

    folder: Positional[Path]
    """A folder of records, or a run of `goat train`."""
    out: Path
    """The image file (.png, .svg, .pdf)."""
    environment: Annotated[str | None, arg(metavar="ID")] = None
    """Draw a run's episodes in this Gymnasium environment, as for `goat evaluate`."""
    environment_args: EnvironmentArgs = None
    horizon: Horizon = None
    success: SuccessRule = "threshold"
    timeout: Timeout = None
    episodes: Annotated[int, arg(metavar="N")] = 20
    """Number of episodes in the environment."""
    task: str = "R10"
    """The task whose goals are drawn."""
    suite: str = "pointreach"
    """The suite whose records are drawn."""
    data: tuple[str, ...] = ()
    """GROUP=FILE: the datasets that the records were made with, if not the groups' own."""
    algorithm: OwnAlgorithm = None

    def run(self) -> None:
        load_own(self.algorithm, self.folder)
        where = environment_of(
            self.environment, self.environment_args, self.horizon, self.success, self.timeout
        )
        if where is not None:
            self._in_environment(where)
            return
        run = Run(self.folder)
        group, rows = self._of_run(run) if run.config_path.exists() else self._of_records()
        task = group.task(self.task)
        present = list(dict.fromkeys(label for _, agents in rows.values() for label in agents))
        figures.save(goal_figures.trajectories(rows, task.name, task.bound, present), self.out)
        console.print(f"wrote {self.out}")

    def _in_environment(self, where: Environment) -> None:
        trained = loading.of_run(self.folder)
        spec = trained.spec
        if not 2 <= spec.goal_dim <= environments.LONGEST_PATH:
            raise GoatError(
                f"{self.folder} has goals of {plural(spec.goal_dim, 'number')}; paths are drawn "
                f"for goals of 2 to {environments.LONGEST_PATH}"
            )
        bounds = trained.action_bounds
        environments.check(where, spec, self.episodes, bounds)
        table = environments.evaluate(
            trained.members, trained.state, spec, where, self.episodes, action_bounds=bounds
        )
        figures.save(goal_figures.paths_in_environment(table, spec.goal_threshold), self.out)
        console.print(f"wrote {self.out}")

    def _of_run(self, run: Run) -> tuple[TaskGroup, Paths]:
        problem, trained = run.problem(), run.agents()
        group = problem.group
        if group is None or not group.family.records_paths:
            raise GoatError(
                f"{self.folder} is not a PointReach run, and only those have trajectories to draw "
                "without an --environment; film robots with `goat view`"
            )
        evaluated = evaluate(trained.members, trained.state, group, [group.task(self.task)])
        return group, {group.label: (problem.episodes, {trained.label: evaluated})}

    def _of_records(self) -> tuple[TaskGroup, Paths]:
        files = dataset_files(self.data)
        cells = recorded_cells(suites.get(self.suite), self.folder)
        rows: Paths = {}
        for cell in cells:
            group = tasks.get(cell.config.group)
            episodes = open_problem(group.name, files.get(group.name)).episodes
            if episodes.checksum() != cell.config.checksum:
                raise GoatError(
                    f"the records were made with a different {group.name} dataset; specify it with "
                    f"--data {group.name}=FILE"
                )
            rows.setdefault(group.label, (episodes, {}))[1][cell.label] = cell.episodes
        return tasks.get(cells[0].config.group), rows


@dataclasses.dataclass(frozen=True)
class FigureBars:
    """Draw success rates as bars, with the paper's numbers marked.

    Example:
      goat figure bars results/pointreach --out bars.svg
    """

    folder: Positional[Path]
    """A folder of records."""
    out: Path
    """The image file (.png, .svg, .pdf)."""
    suite: str = "pointreach"
    """The suite whose records are drawn."""

    def run(self) -> None:
        suite = suites.get(self.suite)
        cells = recorded_cells(suite, self.folder)
        figures.save(
            figures.bars(
                tables.entries(suite, cells, "success"), full=100.0 if suite.percent else 1.0
            ),
            self.out,
        )
        console.print(f"wrote {self.out}")


@dataclasses.dataclass(frozen=True)
class FigureAggregate:
    """Draw averages over IID and OOD tasks with 95 % intervals and the paper's numbers marked.

    Examples:
      goat figure aggregate bench/robots --out aggregate.pdf
      goat figure aggregate results/pointreach --metric return --out aggregate.svg
    """

    folder: Positional[Path]
    """A folder of records."""
    out: Path
    """The image file (.png, .svg, .pdf)."""
    suite: str = "paper"
    """The suite whose records are drawn."""
    metric: Literal["success", "return"] = "success"
    """The metric to average."""

    def run(self) -> None:
        suite = suites.get(self.suite)
        cells = recorded_cells(suite, self.folder)
        steps = max(cell.config.spec.horizon for cell in cells)
        full = float(steps) if self.metric == "return" else suite.scale(self.metric)
        figures.save(
            figures.aggregate(statistics.summary(suite, cells, self.metric), full), self.out
        )
        console.print(f"wrote {self.out}")


@dataclasses.dataclass(frozen=True)
class FigureCoverage:
    """Draw which goals of a grid each algorithm reaches across seeds, and where the data ends.

    Examples:
      goat figure coverage bench/robots --out coverage.pdf
      goat figure coverage bench/robots --group push-left-right --out coverage.png
      goat figure coverage bench/robots --columns GOAT WGCSL --out two.png
    """

    folder: Positional[Path]
    """A folder of records."""
    out: Path
    """The image file (.png, .svg, .pdf)."""
    groups: Annotated[tuple[str, ...], arg(aliases=("--group",))] = ()
    """Task groups, one row each; all that have maps if omitted."""
    columns: tuple[str, ...] = ()
    """What to draw, by the headings of the suite's tables, in this order; all if omitted."""
    suite: str = "paper"
    """The suite whose records are drawn."""

    def run(self) -> None:
        suite = suites.get(self.suite)
        for name in self.groups:
            if name not in suite.groups:
                raise unknown(f"group of {suite.name}", name, suite.groups)
        cells = recorded_cells(suite, self.folder)
        rows: dict[str, dict[str, maps.Coverage]] = {}
        for cell in cells:
            drawn = (
                maps.coverage(cell) if cell.config.group in (self.groups or suite.groups) else None
            )
            if drawn is not None:
                rows.setdefault(tasks.get(cell.config.group).label, {})[cell.label] = drawn
        if not rows:
            which = f" of {', '.join(self.groups)}" if self.groups else ""
            raise GoatError(
                f"the records{which} in {self.folder} have no coverage maps; create some with "
                "`goat bench paper`"
            )
        known = [
            label
            for label in dict.fromkeys(cell.label for cell in cells)
            if any(label in row for row in rows.values())
        ]
        for label in self.columns:
            if label not in known:
                raise unknown("column with maps", label, known)
        figures.save(goal_figures.coverage(rows, self.columns or known), self.out)
        console.print(f"wrote {self.out}")


@dataclasses.dataclass(frozen=True)
class FigureFinetune:
    """Draw success during online fine-tuning: one panel per task group and one line per
    initialisation, with 95 % intervals.

    Examples:
      goat figure finetune bench/finetune --out finetune.pdf
      goat figure finetune bench/finetune --suite finetune-own --out own.png
    """

    folder: Positional[Path]
    """A folder of records."""
    out: Path
    """The image file (.png, .svg, .pdf)."""
    suite: str = "finetune-ddpg"
    """The suite whose records are drawn."""

    def run(self) -> None:
        if self.suite not in finetuning.SUITES:
            raise unknown("fine-tuning suite", self.suite, finetuning.SUITES)
        recorded = curves.read_all(self.folder)
        found = finetuning.SUITES[self.suite].order(recorded)
        if not found:
            raise GoatError(
                f"no records of suite {self.suite} in {self.folder}; create them with `goat bench "
                f"{self.suite}`"
            )
        panels: dict[str, list[curves.Curve]] = {}
        for curve in found:
            panels.setdefault(tasks.get(curve.group).label, []).append(curve)
        tones = tuning.tones(curve.label for curve in found)
        figures.save(figures.finetuning(panels, curves.references(recorded), tones), self.out)
        console.print(f"wrote {self.out}")


@dataclasses.dataclass(frozen=True)
class FigureDensity:
    """Draw 1/std of a run's value ensemble over goals (the paper's appendix "Uncertainty and
    Density").

    Example:
      goat figure density runs/goat --out density.png
    """

    folder: Positional[Path]
    """The run's folder."""
    out: Path
    """The image file (.png, .svg, .pdf)."""
    seed: int = 0
    """The seed of the agent to draw."""
    algorithm: OwnAlgorithm = None

    def run(self) -> None:
        load_own(self.algorithm, self.folder)
        run = Run(self.folder)
        problem = run.problem()
        algorithm, state = run.agents().agent(self.seed)
        if problem.spec.goal_dim != 2:
            raise GoatError(
                f"{self.folder} has {problem.spec.goal_dim}-dimensional goals; the map needs a run "
                "with two-dimensional ones"
            )
        grid = np.arange(-10.0, 11.0)
        goals = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
        spread = value_spread(algorithm, state, goals).reshape(len(grid), len(grid))
        figures.save(goal_figures.density(grid, spread, problem.episodes), self.out)
        console.print(f"wrote {self.out}")


@dataclasses.dataclass(frozen=True)
class FigureUncertainty:
    """Draw which samples a run's uncertainty weight prefers: supervised loss and distance to the
    goal, for samples ranked by the weight (section 5.2 of the paper).

    Example:
      goat figure uncertainty runs/goat --out uncertainty.png
    """

    folder: Positional[Path]
    """The run's folder."""
    out: Path
    """The image file (.png, .svg, .pdf). The numbers are written to a .csv beside it."""
    algorithm: OwnAlgorithm = None

    def run(self) -> None:
        load_own(self.algorithm, self.folder)
        run = Run(self.folder)
        problem, trained, seeds = run.problem(), run.agents(), run.config().seeds
        rankings = [
            rank_by_weight(*trained.agent(seed), problem.episodes, problem.spec, seed)
            for seed in seeds
        ]
        figures.save(figures.ranking(rankings), self.out)
        numbers = self.out.with_suffix(".csv")
        write_text(numbers, tables.ranking(rankings, seeds))
        console.print(f"wrote {self.out} and {numbers}")


@dataclasses.dataclass(frozen=True)
class FigureRegions:
    """Draw where the starts and goals of tasks lie, and which of them the data covers.

    Examples:
      goat figure regions --out regions.png
      goat figure regions --groups push-near-far slide-near-far --out regions.svg
    """

    out: Path
    """The image file (.png, .svg, .pdf)."""
    groups: tuple[str, ...] = ()
    """Task groups; all nine robot groups if omitted."""

    def run(self) -> None:
        chosen = [tasks.get(name) for name in self.groups] or list(tasks.robots())
        flat = [group.name for group in chosen if group.panel is None]
        if flat:
            raise GoatError(
                f"{flat[0]} has no regions to draw; specify groups that have, such as "
                f"{tasks.robots()[0].name}"
            )
        figures.save(data_figures.regions(chosen), self.out)
        console.print(f"wrote {self.out}")


Figures = (
    Annotated[FigureTrajectories, command("trajectories", FigureTrajectories)]
    | Annotated[FigureBars, command("bars", FigureBars)]
    | Annotated[FigureAggregate, command("aggregate", FigureAggregate)]
    | Annotated[FigureCoverage, command("coverage", FigureCoverage)]
    | Annotated[FigureFinetune, command("finetune", FigureFinetune)]
    | Annotated[FigureDensity, command("density", FigureDensity)]
    | Annotated[FigureUncertainty, command("uncertainty", FigureUncertainty)]
    | Annotated[FigureRegions, command("regions", FigureRegions)]
)
