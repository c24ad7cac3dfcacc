"""Jobs are plain descriptions: what they say is enough to make the records."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from goatrl.experiments import (
    experiment,
    kinds,  # noqa: F401 (they register themselves)
    records,
)
from goatrl.experiments.experiment import Job, LocalExecutor, Request

POINT = "pointreach-non-expert-10"
QUICK = Request(seeds=2, algorithms=("wgcsl", "bc"), updates=8, groups=(POINT,))


def through_json(job: Job) -> Job:
    again = Job.from_json(json.loads(json.dumps(job.to_json())))
    assert again.to_json() == json.loads(json.dumps(job.to_json())) | {"seeds": again.seeds}
    return again


def test_a_cell_is_ready_again_from_its_description(tmp_path: Path) -> None:
    chosen = experiment.get("pointreach")
    planned = chosen.plan(tmp_path, QUICK, lambda groups: None)
    assert [each.label for each in planned] == ["WGCSL", "Goal BC"]
    for each in planned:
        again = chosen.ready(through_json(chosen.job(each)))
        assert (again.label, again.group, again.data) == (each.label, each.group, each.data)
        assert (again.algorithm, again.config) == (each.algorithm, each.config)
        assert (again.missing, again.tasks) == ((0, 1), each.tasks)
        assert again.config.path(tmp_path) == each.config.path(tmp_path)


def test_cells_sweep_numbers_and_own_data_are_described(tmp_path: Path) -> None:
    chosen = experiment.get("pointreach-cql-alpha")
    planned = chosen.plan(tmp_path, Request(seeds=1, groups=(POINT,)), lambda groups: None)
    again = [chosen.ready(through_json(chosen.job(each))) for each in planned]
    assert [each.algorithm for each in again] == [each.algorithm for each in planned]


def test_a_time_is_ready_again_from_its_description(tmp_path: Path) -> None:
    chosen = experiment.get("training-time")
    for each in chosen.plan(tmp_path, Request(seeds=1), lambda groups: None):
        assert chosen.ready(through_json(chosen.job(each))) == each


def test_a_curve_is_ready_again_from_its_description(tmp_path: Path) -> None:
    chosen = experiment.get("finetune-ddpg")
    request = Request(seeds=2, algorithms=("random",), groups=("push-left-right",))
    (each,) = chosen.plan(tmp_path, request, lambda groups: None)
    again = chosen.ready(through_json(chosen.job(each)))
    assert (again.suite, again.label, again.group) == (each.suite, each.label, each.group)
    assert (again.offline, again.about, again.seeds) == (None, each.about, (0, 1))
    assert again.random_plan().identity.diff(each.random_plan().identity) == []


def test_the_executor_records_what_jobs_describe(tmp_path: Path) -> None:
    chosen = experiment.get("pointreach")
    jobs = [chosen.job(each) for each in chosen.plan(tmp_path, QUICK, lambda groups: None)]
    told: list[str] = []
    assert (
        LocalExecutor().run(
            [through_json(job) for job in jobs],
            tmp_path,
            lambda progress: told.append(progress.title) if progress.recorded else None,
        )
        == []
    )
    assert {cell.label: cell.seeds for cell in records.read_all(tmp_path)} == {
        "WGCSL": (0, 1),
        "Goal BC": (0, 1),
    }
    assert len(told) == 2
    again = chosen.plan(tmp_path, QUICK, lambda groups: None)
    assert not any(each.missing for each in again)


def test_suites_run_together_and_share_cells(tmp_path: Path) -> None:
    """CQL+HER of the one is alpha=1 of the other: a single job, in the program of its sweep."""
    chosen = [experiment.get(name) for name in ("pointreach", "pointreach-cql-alpha")]
    request = Request(seeds=1, algorithms=("cql_her",), updates=8, groups=(POINT,))
    plans = [each.plan(tmp_path, request, lambda groups: None) for each in chosen]
    wanted, jobs = experiment.together(chosen, plans)
    labels = ["CQL+HER", "alpha=5", "alpha=2", "alpha=0.1", "alpha=0.01"]
    assert [each.label for each in wanted] == [job.label for job in jobs] == labels
    assert [job.experiment for job in jobs] == ["pointreach"] + 4 * ["pointreach-cql-alpha"]
    assert LocalExecutor().run(jobs, tmp_path, lambda progress: None) == []
    trained = [training for cell in records.read_all(tmp_path) for training in cell.trainings]
    assert [training.members for training in trained] == 5 * [5]
    again = [each.plan(tmp_path, request, lambda groups: None) for each in chosen]
    wanted, jobs = experiment.together(chosen, again)
    assert (len(wanted), jobs) == (6, []), "what is recorded is shown by both"


def test_other_seeds_are_another_job(tmp_path: Path) -> None:
    chosen = experiment.get("pointreach")
    plans = [
        chosen.plan(tmp_path, dataclasses.replace(QUICK, seeds=seeds), lambda groups: None)
        for seeds in (1, 2, 2)
    ]
    _, jobs = experiment.together([chosen] * 3, plans)
    assert [(job.label, job.seeds) for job in jobs] == [
        (label, seeds) for seeds in ((0,), (0, 1)) for label in ("WGCSL", "Goal BC")
    ]


def test_a_dataset_that_is_not_the_one_of_the_plan_is_refused(tmp_path: Path) -> None:
    chosen = experiment.get("pointreach")
    (each, *_) = chosen.plan(tmp_path, QUICK, lambda groups: None)
    job = through_json(chosen.job(each))
    job.about["config"]["checksum"] = "other"  # type: ignore[index]
    with pytest.raises(experiment.GoatError, match="has changed since planning"):
        LocalExecutor().run([job], tmp_path, lambda progress: None)
