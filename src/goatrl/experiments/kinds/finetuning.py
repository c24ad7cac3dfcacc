"""Suites of online fine-tuning as experiments: a curve for each group and initialisation."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import jax

from goatrl import tasks
from goatrl.experiments import curves, estimate, finetuning, planning
from goatrl.experiments.claims import Verdict
from goatrl.experiments.curves import Curve
from goatrl.experiments.estimate import duration
from goatrl.experiments.experiment import Job, OfSuite, OnProgress, Prepare, Request, register
from goatrl.experiments.finetuning import FinetuningSuite, PlannedCurve
from goatrl.runs import finetune
from goatrl.runs.offline import RunConfig


@dataclasses.dataclass(frozen=True)
class Finetuning(OfSuite):
    suite: FinetuningSuite
    kind = "finetune"
    unit = "curve"
    options = ("groups", "data", "episodes")
    home = "finetune"

    def plan(self, folder: Path, request: Request, prepare: Prepare) -> list[PlannedCurve]:
        return finetuning.plan(
            self.suite,
            folder,
            seeds=request.seeds,
            groups=request.groups,
            columns=planning.choose_columns(self.suite.columns, request.algorithms),
            data=request.data,
            updates=request.updates,
            episodes=finetune.EPISODES if request.episodes is None else request.episodes,
            prepare=prepare,
        )

    def notes(self, planned: Sequence[PlannedCurve]) -> list[str]:
        missing = [each for each in planned if each.missing]
        if not missing:
            return []
        whole, device = duration(estimate.finetuning_seconds(missing)), jax.devices()[0].device_kind
        return [
            f"expected to take about {whole} here ({missing[0].episodes} episodes per seed after "
            f"offline training, {device})"
        ]

    def job(self, planned: PlannedCurve) -> Job:
        offline = None if planned.offline is None else dataclasses.asdict(planned.offline)
        about = {"offline": offline, "config": planned.about}
        return Job(self.name, planned.label, planned.seeds, about)

    def ready(self, job: Job) -> PlannedCurve:
        offline, about = job.about["offline"], job.about["config"]
        return PlannedCurve(
            self.suite,
            job.label,
            tasks.get(about["group"]),
            None if offline is None else RunConfig.from_json(offline),
            about,
            None,
        )

    def run(
        self, planned: Sequence[PlannedCurve], folder: Path, on_progress: OnProgress
    ) -> list[str]:
        return finetuning.run(planned, folder, on_progress)

    def brief(self, record: Curve) -> str:
        """Success at first and in the end."""
        return f"{100 * record.mean[0]:.1f} → {100 * curves.final(record.mean):.1f} %"

    def read(self, folder: Path) -> list[Curve]:
        """All curves of the folder: suites are compared with each other."""
        return curves.read_all(folder)

    def claims(self, found: Sequence[Curve]) -> list[Verdict]:
        return finetuning.check(self.suite, found)


for _suite in finetuning.SUITES.values():
    register(Finetuning(_suite))
