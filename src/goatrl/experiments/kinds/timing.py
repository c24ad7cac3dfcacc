"""Training times as an experiment: a time for each algorithm."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from goatrl import algorithms
from goatrl.disk.identity import Identity
from goatrl.experiments import planning, timing
from goatrl.experiments.claims import Verdict
from goatrl.experiments.experiment import Job, OnProgress, Prepare, Progress, Request, register
from goatrl.experiments.records import TIMING
from goatrl.experiments.timing import Config, PlannedTiming, Timing
from goatrl.runs.offline import composition


@dataclasses.dataclass(frozen=True)
class TrainingTime:
    kind = "timing"
    name = timing.NAME
    summary = timing.SUMMARY
    groups = (timing.GROUP.name,)
    columns = timing.COLUMNS
    home = timing.NAME
    unit = "algorithm"
    options = ()  # it is of one group, on no dataset

    def plan(self, folder: Path, request: Request, prepare: Prepare) -> list[PlannedTiming]:
        columns = planning.choose_columns(self.columns, request.algorithms)
        return timing.plan(folder, columns, seeds=request.seeds, updates=request.updates)

    def notes(self, planned: Sequence[PlannedTiming]) -> list[str]:
        return []

    def job(self, planned: PlannedTiming) -> Job:
        about = {"interval": planned.interval, **planned.config.identity.to_json()}
        return Job(self.name, planned.label, planned.missing, about)

    def ready(self, job: Job) -> PlannedTiming:
        identity = Identity.from_json(job.about, TIMING, job.label)
        config = Config.from_identity(identity)
        entry = algorithms.recorded(config.algorithm, config.source, job.label)
        algorithm = composition(entry, config.group, config.hyperparameters)
        return PlannedTiming(job.label, algorithm, config, job.about["interval"], None)

    def run(
        self, planned: Sequence[PlannedTiming], folder: Path, on_progress: OnProgress
    ) -> list[str]:
        timing.run(
            planned,
            folder,
            lambda each, done, record: on_progress(
                Progress([each], "measuring", done, 1 + timing.CHUNKS, recorded=record)
            ),
        )
        return []

    def brief(self, record: Timing) -> str:
        return f"{record.seconds:.1f} s"

    def read(self, folder: Path) -> list[Timing]:
        return timing.read_all(folder)

    def claims(self, found: Sequence[Timing]) -> list[Verdict]:
        return timing.check(found)


register(TrainingTime())
