"""What is published in results/ is found again as the package evolves, and never mistaken."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from goatrl import algorithms
from goatrl.algorithms import registry
from goatrl.data.problems import open_problem
from goatrl.experiments import curves, finetuning, migrate, planning, records, suites, timing
from goatrl.experiments.columns import Column
from goatrl.learn.agent import Agent
from goatrl.learn.parameters import chosen, hyperparameters
from goatrl.runs.offline import Run, configure
from goatrl.types import GoatError, Settings, pytree
from helpers import ROOT

RESULTS = ROOT / "results"


@pytree
class Longer(Agent):
    """An agent of a later version."""

    patience: float = 3.0


@pytree
class Slower(Agent):
    """An agent of a version with another default."""

    learning_rate: float = 1e-4


def rebuild(monkeypatch: pytest.MonkeyPatch, convert: Callable[[Agent], Agent]) -> None:
    for name, entry in algorithms.entries().items():
        build = entry.build
        changed = dataclasses.replace(entry, build=lambda s, build=build: convert(build(s)))
        monkeypatch.setitem(registry._ENTRIES, name, changed)


def raise_revision(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    entry = algorithms.get(name)
    later = dataclasses.replace(entry, revision=entry.revision + 1)
    monkeypatch.setitem(registry._ENTRIES, name, later)


def numbers(agent: Agent, *without: str) -> dict:
    fields = (field.name for field in dataclasses.fields(Agent))
    return {name: getattr(agent, name) for name in fields if name not in without}


@pytest.mark.parametrize(("suite", "count"), [("paper", 99), ("ablation-components", 63)])
def test_a_new_hyperparameter_at_its_default_orphans_no_record(
    monkeypatch: pytest.MonkeyPatch, suite: str, count: int
) -> None:
    rebuild(monkeypatch, lambda agent: Longer(**numbers(agent)))
    assert hyperparameters(algorithms.get("goat").build(Settings()))["patience"] == 3.0
    planned = planning.plan(suites.get(suite), RESULTS / "robots", seeds=5)
    assert len(planned) == count
    assert all(cell.recorded is not None and not cell.missing for cell in planned)


def test_a_changed_default_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rebuild(monkeypatch, lambda agent: Slower(**numbers(agent, "learning_rate")))
    assert "learning_rate" not in chosen(algorithms.get("goat").build(Settings()))
    with pytest.raises(GoatError, match=r"differs in hyperparameters\.learning_rate\)"):
        planning.plan(suites.get("pointreach"), RESULTS / "pointreach", seeds=5)


def test_cells_of_another_revision_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    raise_revision(monkeypatch, "goat")
    with pytest.raises(GoatError, match=r"^GOAT on pointreach-expert-10 in .* revision 1 of goat"):
        planning.plan(suites.get("pointreach"), RESULTS / "pointreach", seeds=5)


@pytest.mark.parametrize(("name", "revision"), [("wgcsl", 1), ("ddpg_her", 1)])
def test_curves_of_another_revision_are_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, revision: int
) -> None:
    suite = finetuning.SUITES["finetune-ddpg"]
    recorded = curves.read_all(RESULTS / "finetune")
    episodes = {curve.config["episodes"] for curve in recorded if curve.group == suite.groups[0]}
    asked_for = {"seeds": 5, "groups": suite.groups[:1], "episodes": episodes.pop()}
    assert all(c.recorded for c in finetuning.plan(suite, RESULTS / "finetune", **asked_for))
    raise_revision(monkeypatch, name)
    message = f"recorded with revision {revision} of {name}, but this is revision {revision + 1}"
    with pytest.raises(GoatError, match=message):
        finetuning.plan(suite, RESULTS / "finetune", **asked_for)


def test_times_of_another_revision_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [Column("GoFAR", "gofar")]
    assert timing.plan(RESULTS / "training-time", columns, seeds=5)[0].recorded is not None
    raise_revision(monkeypatch, "gofar")
    with pytest.raises(GoatError, match=r"time of GoFAR in .* with revision 2 of gofar, .* 3;"):
        timing.plan(RESULTS / "training-time", columns, seeds=5)


def test_a_run_of_another_revision_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = open_problem("pointreach-expert-10", None)
    run = Run(tmp_path)
    run.prepare(configure("bc", problem))
    run.metrics_path.touch()  # something was saved
    raise_revision(monkeypatch, "bc")
    with pytest.raises(
        GoatError, match="was recorded with revision 1 of bc, but this is revision 2"
    ):
        Run(tmp_path).prepare(configure("bc", problem))


def test_all_records_in_results_are_of_todays_schema_and_revisions() -> None:
    for path in RESULTS.glob("*/*.parquet"):
        ((kind, stored),) = records.contents(pq.read_schema(path))
        assert stored["schema"] == 2, path
        for name, revision in stored["config"]["revisions"].items():
            assert revision == algorithms.get(name).revision, path
        if kind == records.CELL:
            (label,) = {path.name.split("--")[1]} & {stored["config"]["algorithm"]}
            assert label in path.name


def as_schema_1(path: Path, folder: Path) -> Path:
    """A record as an earlier version wrote it."""
    table = pq.read_table(path)
    ((kind, stored),) = records.contents(table.schema)
    config = {
        name: value
        for name, value in stored["config"].items()
        if name not in ("revisions", "defaults")
    }
    rest = {name: value for name, value in stored.items() if name not in ("schema", "kind")}
    key = b"goatrl" if kind == records.CELL else f"goatrl {kind}".encode()
    old = json.dumps(rest | {"format": 1, "config": config}).encode()
    name = "--".join([*path.stem.split("--")[:-1], "0" * 12]) + path.suffix
    written = folder / (name if kind == records.CELL else path.name)
    pq.write_table(table.replace_schema_metadata({key: old}), written)
    return written


def test_records_of_schema_1_are_read_and_migrated(tmp_path: Path) -> None:
    one = next((RESULTS / "pointreach").glob("pointreach-expert-10--goat--*.parquet"))
    old = as_schema_1(one, tmp_path)
    (published,), (cell,) = (
        [each for each in records.read_all(folder) if each.config.path(one.parent) == one]
        if folder != tmp_path
        else records.read_all(folder)
        for folder in (one.parent, tmp_path)
    )
    assert cell.config.identity.diff(published.config.identity) == []
    assert records.find(tmp_path, published.config) == old, "whatever its name"
    assert migrate.migrate(tmp_path, {}) == {old: tmp_path / one.name}
    assert [path.name for path in tmp_path.glob("*.parquet")] == [one.name]
    (again,) = records.read_all(tmp_path)
    assert again.config == published.config
    assert again.episodes.equals(published.episodes)
    assert again.trainings == published.trainings
    assert migrate.migrate(tmp_path, {}) == {}, "once is enough"


def test_curves_and_times_of_schema_1_are_read_and_migrated(tmp_path: Path) -> None:
    curve = RESULTS / "finetune" / "finetune-own--push-left-right--GOAT.parquet"
    time = RESULTS / "training-time" / "training-time--GoFAR.parquet"
    for path in (curve, time):
        as_schema_1(path, tmp_path)
    (found,), (timed,) = curves.read_all(tmp_path), timing.read_all(tmp_path)
    assert found.config["revisions"] == {"goat": 1}
    assert timed.config.revisions == {"gofar": 1}, "as far as it says"
    migrate.main([str(tmp_path), "--revision", "gofar=2"])
    (timed,) = timing.read_all(tmp_path)
    assert timed.config.revisions == {"gofar": 2}
    for path in (curve, time):
        mine, theirs = (pq.read_table(folder / path.name) for folder in (tmp_path, path.parent))
        assert mine.equals(theirs)
        assert records.contents(mine.schema) == records.contents(theirs.schema)


def test_seeds_are_added_to_a_record_of_schema_1(tmp_path: Path) -> None:
    one = next((RESULTS / "pointreach").glob("pointreach-expert-10--goat--*.parquet"))
    shutil.copy(one, tmp_path)
    (cell,) = records.read_all(tmp_path)
    (tmp_path / one.name).unlink()
    old = as_schema_1(one, tmp_path)
    training = cell.trainings[0]
    more = dataclasses.replace(
        cell,
        trainings=(dataclasses.replace(training.only([0]), seeds=(99,)),),
        episodes=cell.episodes.filter(cell.column("seed") == 0).set_column(
            cell.episodes.column_names.index("seed"),
            "seed",
            [[99] * int((cell.column("seed") == 0).sum())],
        ),
    )
    assert records.add(tmp_path, more).seeds == (*cell.seeds, 99)
    assert list(tmp_path.glob("*.parquet")) == [old], "it grows where it lies"
