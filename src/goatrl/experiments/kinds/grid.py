"""Suites as experiments: a grid of cells, algorithms by task groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from goatrl import algorithms, tasks
from goatrl.data import location
from goatrl.data.cache import checksums
from goatrl.disk.identity import Identity
from goatrl.experiments import claims, estimate, grid, planning, suites
from goatrl.experiments.claims import Verdict
from goatrl.experiments.estimate import duration
from goatrl.experiments.experiment import (
    Job,
    OfSuite,
    OnProgress,
    Prepare,
    Progress,
    Request,
    register,
)
from goatrl.experiments.grid import Trainer
from goatrl.experiments.planning import PlannedCell
from goatrl.experiments.records import CELL, Cell, CellConfig
from goatrl.experiments.spent import Breakdown, Spent
from goatrl.experiments.suites import Suite
from goatrl.runs.offline import composition


@dataclasses.dataclass(frozen=True)
class Grid(OfSuite):
    suite: Suite
    trainer: Trainer = grid.HERE
    kind = "grid"
    unit = "cell"
    options = ("groups", "data", "executor")

    @property
    def home(self) -> str:
        return self.suite.home

    def plan(self, folder: Path, request: Request, prepare: Prepare) -> list[PlannedCell]:
        return planning.plan(
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
        opened = {cell.group.name for cell in planned if cell.missing or cell.data is not None}
        others = sorted(
            {
                cell.group.name
                for cell in planned
                if cell.group.name not in opened
                and cell.config.checksum != checksums().get(cell.group.name, cell.config.checksum)
            }
        )
        if others:
            found.append(
                f"note: the agents in the records on {', '.join(others)} were trained on data "
                "other than goatrl's own"
            )
        if any(cell.missing for cell in planned):
            expected = estimate.seconds(planned)
            parts = dataclasses.asdict(expected).items()
            each = ", ".join(f"{what} {duration(seconds)}" for what, seconds in parts)
            found.append(f"expected to take about {duration(expected.whole)} here ({each})")
        return found

    def job(self, planned: PlannedCell) -> Job:
        data = None if planned.data is None else location(planned.data)
        about = {"data": data, **planned.config.identity.to_json()}
        return Job(self.name, planned.label, planned.missing, about)

    def ready(self, job: Job) -> PlannedCell:
        config = CellConfig.from_identity(Identity.from_json(job.about, CELL, job.label))
        group, data = tasks.get(config.group), job.about["data"]
        entry = algorithms.recorded(config.algorithm, config.source, job.label)
        return PlannedCell(
            self.suite,
            job.label,
            group,
            None if data is None else Path(data),
            composition(entry, config.group, config.hyperparameters),
            config,
            None,
            job.seeds,
            planning.evaluated_tasks(self.suite, group, config),
        )

    def run(
        self, planned: Sequence[PlannedCell], folder: Path, on_progress: OnProgress
    ) -> list[str]:
        fresh = len(grid.untrained(planned, folder)) == len(planned)
        listener = Spent()

        def show(progress: Progress) -> None:
            listener.show(progress)
            on_progress(progress)

        failures = grid.run(planned, folder, show, estimate.order, self.trainer)
        # Otherwise more or less was trained than is expected of a plan, or elsewhere.
        if fresh and not failures and self.trainer is grid.HERE:
            taken = Breakdown.of(listener)
            estimate.learn(planned, taken.kinds, taken.seconds - taken.other)
        return failures

    def on(self, trainer: Trainer) -> Grid:
        """The same, trained there."""
        return dataclasses.replace(self, trainer=trainer)

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
        return planning.suite_cells(self.suite, folder)

    def claims(self, found: Sequence[Cell]) -> list[Verdict]:
        return claims.check(self.suite, found)


for _suite in suites.SUITES:
    register(Grid(_suite))
