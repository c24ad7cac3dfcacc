"""A kind of experiment that goatrl does not know, from its plan to the page."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from goatrl import tasks
from goatrl.disk.identity import Identity
from goatrl.experiments import experiment, records
from goatrl.experiments.claims import Outcome, Verdict
from goatrl.experiments.columns import Column
from goatrl.experiments.experiment import Job, Progress
from goatrl.report import presentation, webpage
from goatrl.report.presentation import Published
from goatrl.tasks import TaskGroup
from helpers import goat


@dataclasses.dataclass(frozen=True)
class Counted:
    """How many tasks a group has, and the record of it."""

    label: str
    group: TaskGroup
    recorded: int | None

    @property
    def missing(self) -> tuple[int, ...]:
        return () if self.recorded else (0,)


class Counting:
    kind, name, summary, home, unit = "count", "count-tasks", "Tasks of a group.", "count", "count"
    groups, columns, options = ("push-left-right",), (Column("tasks", "none"),), ("groups",)

    def plan(self, folder: Path, request: Any, prepare: object) -> list[Counted]:
        found, wanted = self.read(folder), request.groups or self.groups
        return [Counted("tasks", tasks.get(name), sum(found) or None) for name in wanted]

    def notes(self, planned: object) -> list[str]:
        return ["expected to take no time"]

    def job(self, planned: Counted) -> Job:
        return Job(self.name, planned.label, planned.missing, {"group": planned.group.name})

    def ready(self, job: Job) -> Counted:
        return Counted(job.label, tasks.get(job.about["group"]), None)

    def run(self, planned: Sequence[Counted], folder: Path, on_progress: Any) -> list[str]:
        for each in (each for each in planned if each.missing):
            count = len(each.group.tasks)
            path = folder / f"count--{each.group.name}.parquet"
            rows = pa.table({"tasks": [count]})
            records.write_table(path, rows, Identity(self.kind, {"group": each.group.name}), {})
            on_progress(Progress([each], "counting", 1, 1, recorded=count))
        return []

    def brief(self, record: int) -> str:
        return f"{record} tasks"

    def read(self, folder: Path) -> list[int]:
        found = []
        for path in records.files(folder, self.kind):
            with records.opened(path, self.kind) as (_, _, rows):
                found += rows.column("tasks").to_pylist()
        return found

    def claims(self, found: Sequence[int]) -> list[Verdict]:
        return [Verdict("There are tasks", Outcome.HELD, f"{sum(found)}")]


class Presented:
    script = """
KINDS.count = { facts: () => "", view: (experiment) => h("div", {}, heading(experiment.name)) };
"""

    def publish(self, chosen: Any, folder: Path, planned: object) -> Published:
        found = chosen.read(folder)
        text = f"{sum(found)} in all"
        return Published([text], {"count-tasks.md": text}, chosen.claims(found))

    def sections(self, folders: Sequence[Path]) -> list[dict]:
        found = [sum(Counting().read(folder)) for folder in folders]
        about = {"kind": "count", "name": "count-tasks", "about": "", "groups": [], "episodes": 0}
        return [about | {"tasks": each} for each in found if each]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "_EXPERIMENTS", experiment.experiments())
    monkeypatch.setattr(presentation, "_PRESENTATIONS", presentation.presentations())
    experiment.register(Counting())
    presentation.register("count", Presented())


def test_it_is_run_published_listed_and_shown(
    known: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "count"
    assert goat("bench", "count-tasks", "--out", out) == 0
    told = capsys.readouterr().out
    count = len(tasks.get("push-left-right").tasks)
    for words in (
        "1 count of 5 seeds, 1 to run",
        "expected to take no time",
        f"push-left-right, tasks: {count} tasks",
        f"{count} in all",
        f"held: There are tasks ({count})",
        "wrote count-tasks.md to",
    ):
        assert words in told
    assert (out / "count-tasks.md").read_text() == f"{count} in all"
    assert goat("bench", "count-tasks", "--out", out) == 0
    assert "0 to run" in capsys.readouterr().out
    assert goat("list") == 0
    assert "count-tasks" in capsys.readouterr().out
    assert goat("report", tmp_path, "--out", tmp_path / "page.html") == 0
    page = (tmp_path / "page.html").read_text()
    assert f'"tasks":{count}' in page
    assert page.index("const KINDS = {}") < page.index("KINDS.count = ") < page.index("KINDS.grid")
    assert webpage.page(tmp_path) == page


def test_options_that_it_does_not_take_are_refused(
    known: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ("bench", "count-tasks", "--out", tmp_path)
    assert goat(*line, "--episodes", 3, "--data", "push-left-right=x.npz") == 2
    assert "count-tasks does not take --data and --episodes" in capsys.readouterr().err


def test_a_name_is_taken_once(known: None) -> None:
    with pytest.raises(experiment.GoatError, match="'count-tasks' already exists"):
        experiment.register(Counting())
