"""goat figure"""

import dataclasses
from pathlib import Path
from typing import Annotated

import numpy as np
from tyro.conf import Positional

from goatrl import tasks
from goatrl.benchmark import records, runner, suites
from goatrl.cli.console import command, console, dataset_files
from goatrl.evaluate import value_spread
from goatrl.problems import open_problem
from goatrl.report import figures, tables
from goatrl.runs import Run
from goatrl.types import Episodes, GoatError


def recorded_cells(suite: suites.Suite, folder: Path) -> list[records.Cell]:
    cells = runner.suite_cells(suite, folder)
    if not cells:
        raise GoatError(f"no records of suite {suite.name} in {folder}; make some with `goat bench`, or name another --suite")
    return cells


@dataclasses.dataclass(frozen=True)
class FigureTrajectories:
    """Draw the paths of each agent with its dataset and goals: the paper's first figure.

    Example:
      goat figure trajectories results/pointreach --out trajectories.png
    """

    folder: Positional[Path]
    """The records' folder."""
    out: Path
    """The picture (.png, .svg, .pdf)."""
    task: str = "R10"
    """Whose goals."""
    suite: str = "pointreach"
    """Whose records."""
    data: tuple[str, ...] = ()
    """GROUP=FILE: the dataset files that the records were made with, if not the groups' own."""

    def run(self) -> None:
        suite = suites.get(self.suite)
        files = dataset_files(self.data)
        cells = recorded_cells(suite, self.folder)
        rows: dict[str, tuple[Episodes, dict[str, records.Cell]]] = {}
        for cell in cells:
            group = tasks.get(cell.config.group)
            episodes = open_problem(group.name, files.get(group.name)).episodes
            if episodes.checksum() != cell.config.checksum:
                raise GoatError(f"the records were made with another {group.name}; name its file with --data {group.name}=FILE")
            rows.setdefault(group.label, (episodes, {}))[1][cell.label] = cell
        present = list(dict.fromkeys(cell.label for cell in cells))
        task = tasks.get(cells[0].config.group).task(self.task)
        figures.save(figures.trajectories(rows, task.name, task.bound, present), self.out)
        console.print(f"wrote {self.out}")


@dataclasses.dataclass(frozen=True)
class FigureBars:
    """Draw success rates as bars, with the paper's numbers marked.

    Example:
      goat figure bars results/pointreach --out bars.svg
    """

    folder: Positional[Path]
    """The records' folder."""
    out: Path
    """The picture (.png, .svg, .pdf)."""
    suite: str = "pointreach"
    """Whose records."""

    def run(self) -> None:
        suite = suites.get(self.suite)
        cells = recorded_cells(suite, self.folder)
        figures.save(figures.bars(tables.entries(suite, cells, "success"), full=100.0 if suite.percent else 1.0), self.out)
        console.print(f"wrote {self.out}")


@dataclasses.dataclass(frozen=True)
class FigureDensity:
    """Draw 1/std of a run's value ensemble over goals (appendix "Uncertainty and Density").

    Example:
      goat figure density runs/goat --out density.png
    """

    folder: Positional[Path]
    """The run's folder."""
    out: Path
    """The picture (.png, .svg, .pdf)."""
    seed: int = 0
    """Which of the run's agents."""

    def run(self) -> None:
        run = Run(self.folder)
        problem = run.problem()
        algorithm, state = run.agent(self.seed)
        if problem.spec.goal_dim != 2:
            raise GoatError(f"{self.folder} has goals of {problem.spec.goal_dim} numbers; the map needs two")
        grid = np.arange(-10.0, 11.0)
        goals = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
        spread = value_spread(algorithm, state, goals).reshape(len(grid), len(grid))
        figures.save(figures.density(grid, spread, problem.episodes), self.out)
        console.print(f"wrote {self.out}")


@dataclasses.dataclass(frozen=True)
class FigureRegions:
    """Draw where the starts and goals of the robot tasks lie, and which part of it the data has seen.

    Example:
      goat figure regions --out regions.png
      goat figure regions --groups push-near-far slide-near-far --out regions.svg
    """

    out: Path
    """The picture (.png, .svg, .pdf)."""
    groups: tuple[str, ...] = ()
    """Task groups; all nine of the robots if none is named."""

    def run(self) -> None:
        chosen = [tasks.get(name) for name in self.groups] or [g for g in tasks.groups().values() if g.family != "point"]
        flat = [group.name for group in chosen if group.family == "point"]
        if flat:
            raise GoatError(f"{flat[0]} has no regions to draw, its goals are 20 points; name groups of robots (`goat list`)")
        figures.save(figures.regions(chosen), self.out)
        console.print(f"wrote {self.out}")


Figures = (
    Annotated[FigureTrajectories, command("trajectories", FigureTrajectories)]
    | Annotated[FigureBars, command("bars", FigureBars)]
    | Annotated[FigureDensity, command("density", FigureDensity)]
    | Annotated[FigureRegions, command("regions", FigureRegions)]
)
