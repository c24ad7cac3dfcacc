"""Suites as experiments: a grid of cells, algorithms by task groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import jax

from goatrl import tasks
from goatrl.data.cache import checksums
from goatrl.experiments import claims, estimate, grid, suites
from goatrl.experiments.claims import Verdict
from goatrl.experiments.estimate import duration
from goatrl.experiments.experiment import OnProgress, Prepare, Request, register
from goatrl.experiments.grid import PlannedCell
from goatrl.experiments.records import Cell
from goatrl.experiments.suites import Column, Suite


@dataclasses.dataclass(frozen=True)
class Grid:
    suite: Suite
    kind = "grid"
    unit = "cell"
    options = ("groups", "data")

    @property
    def name(self) -> str:
        return self.suite.name

    @property
    def summary(self) -> str:
        return self.suite.summary

    @property
    def groups(self) -> Sequence[str]:
        return self.suite.groups

    @property
    def columns(self) -> Sequence[Column]:
        return self.suite.columns

    @property
    def home(self) -> str:
        return self.suite.home

    def plan(self, folder: Path, request: Request, prepare: Prepare) -> list[PlannedCell]:
        return grid.plan(
            self.suite,
            folder,
            seeds=request.seeds,
            groups=request.groups,
            algorithm_names=request.algorithms,
            data=request.data,
            updates=request.updates,
            prepare=prepare,
        )

    def notes(self, planned: Sequence[PlannedCell]) -> list[str]:
        found = []
        others = sorted(
            {
                cell.group.name
                for cell in planned
                if cell.problem is None
                and cell.config.checksum != checksums().get(cell.group.name, cell.config.checksum)
            }
        )
        if others:
            found.append(
                f"note: the records on {', '.join(others)} are of agents trained on other data "
                "than goatrl makes"
            )
        if any(cell.missing for cell in planned):
            training, evaluating = estimate.seconds(planned)
            on_cpu = jax.default_backend() == "cpu"
            whole = training + evaluating if on_cpu else max(training, evaluating)
            found.append(
                f"expected to take about {duration(whole)} here (training {duration(training)}, "
                f"evaluating {duration(evaluating)})"
            )
        return found

    def run(
        self, planned: Sequence[PlannedCell], folder: Path, on_progress: OnProgress
    ) -> list[str]:
        return grid.run(self.suite, planned, folder, on_progress)

    def brief(self, record: Cell) -> str:
        """Success on seen and on unseen goals, or on each task where they are not told apart."""
        by_split: dict[str, list[float]] = {}
        for task in tasks.get(record.config.group).tasks:
            by_split.setdefault(task.split, []).append(
                float(record.per_seed("success", task.name).mean())
            )
        scale, places = (100.0, 0) if self.suite.percent else (1.0, 2)
        means = [scale * sum(found) / len(found) for _, found in sorted(by_split.items())]
        return " ".join(f"{mean:.{places}f}" for mean in means)

    def read(self, folder: Path) -> list[Cell]:
        return grid.suite_cells(self.suite, folder)

    def claims(self, found: Sequence[Cell]) -> list[Verdict]:
        return claims.check(self.suite, found)


for _suite in suites.SUITES:
    register(Grid(_suite))
