"""Running a suite: agents are kept as soon as they are trained, and judged while others train."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

import numpy as np
import pytest

from goatrl import tasks
from goatrl.benchmark import agents, estimate, records, runner, suites
from goatrl.benchmark.runner import Progress
from goatrl.types import GoatError

SUITE = suites.get("pointreach")
GROUP = "pointreach-expert-10"


def plan(folder: Path, *names: str, seeds: int = 2) -> list[runner.Planned]:
    return runner.plan(SUITE, folder, seeds=seeds, groups=[GROUP], algorithm_names=names, updates=8)


def forbidden(*arguments: object, **named: object) -> None:
    raise AssertionError("nothing is left to train")


def test_agents_that_were_trained_are_judged_without_training_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runner, "evaluate", killed)
        with pytest.raises(KeyboardInterrupt):
            runner.run(SUITE, plan(tmp_path, "bc"), tmp_path, lambda progress: None)
    assert not records.read_all(tmp_path)
    monkeypatch.setattr(runner, "train", forbidden)
    assert runner.run(SUITE, plan(tmp_path, "bc"), tmp_path, lambda progress: None) == []
    (cell,) = records.read_all(tmp_path)
    assert cell.seeds == (0, 1)


def test_the_same_numbers_as_without_a_break(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "other"):
        runner.run(SUITE, plan(tmp_path / name, "gcsl"), tmp_path / name, lambda progress: None)
    (record,) = records.read_all(tmp_path / "one")
    record.config.path(tmp_path / "one").unlink()
    monkeypatch.setattr(runner, "train", forbidden)
    runner.run(SUITE, plan(tmp_path / "one", "gcsl"), tmp_path / "one", lambda progress: None)
    (again,), (whole,) = (records.read_all(tmp_path / name) for name in ("one", "other"))
    assert again.episodes.equals(whole.episodes)
    assert again.trainings[0].curves == whole.trainings[0].curves


def test_judging_and_training_go_on_at_the_same_time(tmp_path: Path) -> None:
    """Judging waits until the next cell trains; were they one after the other, it would wait for ever."""
    training_goes_on, seen = threading.Event(), []

    def watch(progress: Progress) -> None:
        seen.append((progress.cells[0].label, progress.what))
        if progress.what == "judging" and progress.cells[0].label == "Goal BC" and progress.recorded is not None:
            assert training_goes_on.wait(60)
        if progress.what == "training" and progress.cells[0].label == "WGCSL":
            training_goes_on.set()

    cells = [next(cell for cell in plan(tmp_path, "bc", "wgcsl") if cell.label == label) for label in ("Goal BC", "WGCSL")]
    assert runner.run(SUITE, cells, tmp_path, watch) == []
    assert len(records.read_all(tmp_path)) == 2


def test_an_interruption_of_training_ends_judging_too(tmp_path: Path) -> None:
    judging, interrupted = threading.Event(), threading.Event()

    def watch(progress: Progress) -> None:
        if progress.what == "judging":
            judging.set()
            assert interrupted.wait(60)
        elif progress.cells[0].label == "WGCSL" and progress.done:
            assert judging.wait(60)
            interrupted.set()
            raise KeyboardInterrupt

    cells = [next(cell for cell in plan(tmp_path, "bc", "wgcsl") if cell.label == label) for label in ("Goal BC", "WGCSL")]
    with pytest.raises(KeyboardInterrupt):
        runner.run(SUITE, cells, tmp_path, watch)
    assert len(list((tmp_path / "agents").iterdir())) == 1  # of BC, whose record says no more than its agents


def test_a_record_keeps_the_course_of_every_metric(tmp_path: Path) -> None:
    runner.run(SUITE, plan(tmp_path, "wgcsl"), tmp_path, lambda progress: None)
    (cell,) = records.read_all(tmp_path)
    (training,) = cell.trainings
    assert {"policy_loss", "value", "weight"} <= set(training.curves)
    shapes = {np.shape(course) for course in training.curves.values()}
    assert shapes == {(2, 2)}  # two seeds, two reports: every target period of 4 updates is one


def test_one_agent_acts_as_it_was_judged(tmp_path: Path) -> None:
    (planned,) = plan(tmp_path, "goat")
    runner.run(SUITE, [planned], tmp_path, lambda progress: None)
    (cell,) = records.read_all(tmp_path)
    file = agents.path(tmp_path, planned.config, (0, 1))
    config, algorithm, state = agents.one(file, 1)
    assert config == planned.config
    assert algorithm == planned.algorithm
    task = tasks.get(GROUP).tasks[0]
    starts, goals = (np.float32(part) for part in task.evaluation())
    step = np.asarray(algorithm.act(state, starts, goals))
    mine = (cell.column("seed") == 1) & (cell.column("task") == task.name)
    paths = np.array([path for path, chosen in zip(cell.column("path"), mine, strict=True) if chosen]).reshape(len(goals), -1, 2)
    np.testing.assert_allclose(paths[:, 1], step, atol=1e-5)
    with pytest.raises(GoatError, match="no seed 7; it has 0, 1"):
        agents.one(file, 7)


def test_robots_are_also_run_on_their_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = tasks.get("reach-left-right")
    assert [task.name for task in group.judged()] == ["Right", "Left", "Coverage"]
    assert group.coverage is not None
    _, goals = group.coverage.evaluation()
    assert goals.shape == (100, 3)
    assert group.kept(goals[:, None]).sum() == 50
    assert len(np.unique(goals[:, 0])) == len(np.unique(goals[:, 1])) == 10


def test_an_expected_time_grows_with_what_is_missing(tmp_path: Path) -> None:
    few, many = (estimate.seconds(plan(tmp_path, *names)) for names in (["bc"], ["bc", "goat"]))
    assert 0 < few[0] < many[0]
    robots = [dataclasses.replace(cell, group=tasks.get("push-left-right")) for cell in plan(tmp_path, "bc")]
    assert estimate.seconds(robots)[1] > 0 == few[1]
