"""Running a suite: agents are kept as soon as they are trained, evaluated while others train."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors

from goatrl import tasks
from goatrl.disk import checkpoint
from goatrl.experiments import agents, grid, packing, planning, records
from goatrl.experiments.columns import Column
from goatrl.experiments.grid import Progress
from goatrl.experiments.records import Training
from goatrl.learn import normalize
from goatrl.robots.workers import Lost
from goatrl.training import offline
from goatrl.types import GoatError, TrainState
from plans import GROUP, SUITE, forbidden, plan

pytestmark = pytest.mark.usefixtures("few_percentiles")


def test_agents_that_were_trained_are_evaluated_without_training_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(grid, "evaluate", killed)
        with pytest.raises(KeyboardInterrupt):
            grid.run(plan(tmp_path, "bc"), tmp_path, lambda progress: None)
    assert not records.read_all(tmp_path)
    monkeypatch.setattr(grid, "train", forbidden)
    assert grid.run(plan(tmp_path, "bc"), tmp_path, lambda progress: None) == []
    (cell,) = records.read_all(tmp_path)
    assert cell.seeds == (0, 1)


def test_kept_agents_that_do_not_fit_are_refused_with_what_to_do(tmp_path: Path) -> None:
    (planned,) = plan(tmp_path, "bc")
    file = agents.path(tmp_path, planned.config, (0, 1))
    checkpoint.save(
        file,
        {"old": np.zeros(3)},
        {
            **planned.config.identity.to_json(),
            "training": dataclasses.asdict(Training((0, 1), {}, 2, 1.0, {})),
        },
    )
    with pytest.raises(GoatError, match=r"does not fit.*; delete this file to retrain its agents"):
        grid.run([planned], tmp_path, lambda progress: None)


def test_the_same_numbers_as_without_a_break(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "other"):
        grid.run(plan(tmp_path / name, "gcsl"), tmp_path / name, lambda progress: None)
    (record,) = records.read_all(tmp_path / "one")
    record.config.path(tmp_path / "one").unlink()
    monkeypatch.setattr(grid, "train", forbidden)
    grid.run(plan(tmp_path / "one", "gcsl"), tmp_path / "one", lambda progress: None)
    (again,), (whole,) = (records.read_all(tmp_path / name) for name in ("one", "other"))
    assert again.episodes.equals(whole.episodes)
    assert again.trainings[0].curves == whole.trainings[0].curves


@pytest.mark.parametrize("second", [3, 1], ids=["more seeds", "fewer seeds"])
def test_two_runs_on_one_folder_keep_all_seeds(tmp_path: Path, second: int) -> None:
    """Both planned when nothing was recorded; the second ends after the first, and one after the
    other would give the same.
    """
    plans = [plan(tmp_path / "both", "bc", seeds=seeds) for seeds in (2, second)]
    assert all(cell.recorded is None for planned in plans for cell in planned)
    for planned in plans:
        grid.run(planned, tmp_path / "both", lambda progress: None)
    for seeds in (2, second):
        grid.run(
            plan(tmp_path / "sequence", "bc", seeds=seeds),
            tmp_path / "sequence",
            lambda progress: None,
        )
    (cell,), (expected,) = (records.read_all(tmp_path / name) for name in ("both", "sequence"))
    assert cell.seeds == expected.seeds == tuple(range(max(2, second)))
    assert [training.seeds for training in cell.trainings] == [
        training.seeds for training in expected.trainings
    ]
    assert cell.config == expected.config
    numbers = [
        name for name in cell.episodes.column_names if name not in ("final_distance", "path")
    ]
    assert cell.episodes.select(numbers).equals(expected.episodes.select(numbers))
    # How many seeds train together decides the last digits.
    for name in ("final_distance", "path"):
        np.testing.assert_allclose(cell.column(name), expected.column(name), atol=1e-4)
    for one, other in zip(cell.trainings, expected.trainings, strict=True):
        for name, courses in other.curves.items():
            np.testing.assert_allclose(one.curves[name], courses, rtol=1e-2)


def test_a_cell_that_diverges_takes_no_other_with_it(tmp_path: Path) -> None:
    rates = {"tame": 5e-4, "wild": 1e30, "brisk": 1e-3}
    columns = tuple(Column(label, "bc", {"learning_rate": rate}) for label, rate in rates.items())
    suite = dataclasses.replace(SUITE, columns=columns)
    cells = planning.plan(suite, tmp_path, seeds=1, groups=[GROUP], updates=8)
    assert [len(batch) for batch in packing.batches(cells)] == [3], "they would train together"
    told: list[Progress] = []
    (failure,) = grid.run(cells, tmp_path, told.append)
    assert failure.startswith("wild on Expert 10: ")
    trained = [progress for progress in told if progress.what == "training"]
    begun = {tuple(each.cells) for each in trained}
    assert begun == {tuple(each.cells) for each in trained if each.done == each.total}
    assert [len(each.cells) for each in trained if each.diverged] == [3, 1]
    assert {cell.label for cell in records.read_all(tmp_path)} == {"tame", "brisk"}


def test_a_cell_whose_processes_are_lost_takes_no_other_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(members: Any, *arguments: Any, **named: Any) -> Any:
        if members[0][0] == wgcsl.algorithm:
            raise Lost("a process has ended")
        return evaluated(members, *arguments, **named)

    told: list[Progress] = []
    evaluated = grid.evaluate
    wgcsl, bc = plan(tmp_path, "wgcsl", "bc", seeds=1)
    monkeypatch.setattr(grid, "evaluate", lost)
    assert grid.run([wgcsl, bc], tmp_path, told.append) == [
        "WGCSL on Expert 10: a process has ended"
    ]
    assert [cell.label for cell in records.read_all(tmp_path)] == ["Goal BC"]
    assert [each.cells[0].label for each in told if each.lost] == ["WGCSL"]


@pytest.mark.parametrize("ahead", [1, 3], ids=["a processor", "a GPU"])
def test_training_compiles_nothing_that_was_not_compiled_before(
    tmp_path: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    """So that the time of the one is not the other's."""
    told: list[tuple[str, int]] = []
    before: dict[tuple[str, int], int] = {}

    def watch(progress: Progress) -> None:
        if progress.what != "evaluating" and progress.done in (0, progress.total):
            told.append((progress.what, progress.done))
            before[told[-1]] = compilations.count("run_chunk")

    monkeypatch.setattr(grid, "_looking_ahead", lambda: ahead)
    grid.run(plan(tmp_path, "wgcsl"), tmp_path, watch)
    assert told == [("compiling", 0), ("compiling", 1), ("training", 0), ("training", 8)]
    assert [before[each] for each in told[1:]] == [1, 1, 1]


def test_agents_of_many_seeds_have_short_names(tmp_path: Path) -> None:
    (planned,) = plan(tmp_path, "bc")
    names = [
        agents.path(tmp_path, planned.config, seeds).stem.split("--")[-1]
        for seeds in (tuple(range(1000)), (3, 7, 8, 9), (2,))
    ]
    assert names == ["seeds-0-999", "seeds-3+7-9", "seeds-2"]


def test_evaluating_and_training_go_on_at_the_same_time(tmp_path: Path) -> None:
    """Evaluating waits until the next cell trains; were they one after the other, it would wait for
    ever.
    """
    training_goes_on, seen = threading.Event(), []

    def watch(progress: Progress) -> None:
        seen.append((progress.cells[0].label, progress.what))
        if (
            progress.what == "evaluating"
            and progress.cells[0].label == "Goal BC"
            and progress.recorded is not None
        ):
            assert training_goes_on.wait(60)
        if progress.what == "training" and progress.cells[0].label == "WGCSL":
            training_goes_on.set()

    cells = [
        next(cell for cell in plan(tmp_path, "bc", "wgcsl") if cell.label == label)
        for label in ("Goal BC", "WGCSL")
    ]
    assert grid.run(cells, tmp_path, watch) == []
    assert len(records.read_all(tmp_path)) == 2


def test_an_interruption_of_training_ends_evaluating_too(tmp_path: Path) -> None:
    evaluating, interrupted = threading.Event(), threading.Event()

    def watch(progress: Progress) -> None:
        if progress.what == "evaluating":
            evaluating.set()
            assert interrupted.wait(60)
        elif progress.cells[0].label == "WGCSL" and progress.done:
            assert evaluating.wait(60)
            interrupted.set()
            raise KeyboardInterrupt

    cells = [
        next(cell for cell in plan(tmp_path, "bc", "wgcsl") if cell.label == label)
        for label in ("Goal BC", "WGCSL")
    ]
    with pytest.raises(KeyboardInterrupt):
        grid.run(cells, tmp_path, watch)
    assert (
        len(list((tmp_path / "agents").iterdir())) == 1
    )  # of BC, whose record says no more than its agents


def test_a_record_keeps_the_course_of_every_metric(tmp_path: Path) -> None:
    grid.run(plan(tmp_path, "wgcsl"), tmp_path, lambda progress: None)
    (cell,) = records.read_all(tmp_path)
    (training,) = cell.trainings
    assert {"policy_loss", "value", "weight"} <= set(training.curves)
    shapes = {np.shape(course) for course in training.curves.values()}
    assert shapes == {(2, 2)}  # two seeds, two reports: every target period of 4 updates is one


def test_one_agent_acts_as_it_was_evaluated(tmp_path: Path) -> None:
    (planned,) = plan(tmp_path, "goat")
    grid.run([planned], tmp_path, lambda progress: None)
    (cell,) = records.read_all(tmp_path)
    file = agents.path(tmp_path, planned.config, (0, 1))
    kept = agents.read(file)
    assert (kept.spec, kept.group, kept.step) == (
        planned.config.spec,
        GROUP,
        planned.config.updates,
    )
    with safetensors.safe_open(
        file, framework="numpy"
    ) as stored:  # no critics, no targets, no optimiser
        assert {"/".join(name.split("/")[:2]) for name in stored.keys()} == {  # noqa: SIM118
            "step",
            "params/policy",
            *(
                f"normalizer/{part}"
                for part in ("observation_mean", "observation_std", "goal_mean", "goal_std")
            ),
        }
    algorithm, state = kept.agent(1)
    assert algorithm == planned.algorithm
    task = tasks.get(GROUP).tasks[0]
    starts, goals = (np.float32(part) for part in task.evaluation())
    step = np.asarray(normalize.act(algorithm, state, starts, goals))
    mine = (cell.column("seed") == 1) & (cell.column("task") == task.name)
    paths = np.array(
        [path for path, chosen in zip(cell.column("path"), mine, strict=True) if chosen]
    ).reshape(len(goals), -1, 2)
    np.testing.assert_allclose(paths[:, 1], step, atol=1e-5)
    with pytest.raises(GoatError, match="no seed 7; it has 0, 1"):
        kept.agent(7)


class Straight:
    """An algorithm that is no composition: it walks towards the goal at a speed that it has
    learned.
    """

    def act(self, state: TrainState, observation: jax.Array, goal: jax.Array) -> jax.Array:
        return jnp.clip(state.params["speed"] * (goal - observation), -1.0, 1.0)


def test_of_an_algorithm_of_any_kind_is_kept_what_acts() -> None:
    spec = tasks.get(GROUP).spec
    params = {"speed": jnp.asarray([0.5, 2.0]), "notes": jnp.zeros((2, 9))}
    state = TrainState(
        jnp.asarray([7, 7]),
        params,
        (),
        (),
        (),
        jax.tree.map(lambda leaf: leaf[None], normalize.identity(spec)),
    )
    kept = offline.prune_to_policy(Straight(), spec, state)
    assert jax.tree.leaves(kept.params) == [kept.params["speed"]]
    assert kept.params["speed"] is params["speed"]
