"""How long a plan is expected to take, and what is learned from how long it took."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import jax
import pytest

from goatrl import algorithms, tasks
from goatrl.experiments import estimate, grid, planning
from goatrl.experiments.estimate import Expected
from goatrl.experiments.experiment import Progress
from goatrl.experiments.kinds.grid import Grid
from plans import SUITE, plan

PUSH = tasks.get("push-left-right")


def on_robots(folder: Path, *names: str) -> list[planning.PlannedCell]:
    """Cells that train for minutes and are simulated; no dataset is opened."""
    return [
        dataclasses.replace(cell, group=PUSH, tasks=PUSH.tasks)
        for cell in plan(folder, *names, updates=40_000)
    ]


def test_an_expected_time_grows_with_what_is_missing(tmp_path: Path) -> None:
    few, many = (estimate.seconds(plan(tmp_path, *names)) for names in (["bc"], ["bc", "goat"]))
    assert 0 < few.training < many.training
    assert (few.compiling, many.compiling) == (estimate.COMPILATION, 2 * estimate.COMPILATION)
    assert estimate.seconds(on_robots(tmp_path, "bc")).evaluating > 0 == few.evaluating


@pytest.mark.usefixtures("few_percentiles")
def test_agents_that_wait_to_be_evaluated_are_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    before = plan(tmp_path, "bc", "goat")
    monkeypatch.setattr(grid, "evaluate", killed)
    with pytest.raises(KeyboardInterrupt):
        grid.run(plan(tmp_path, "bc"), tmp_path, lambda progress: None)
    after = plan(tmp_path, "bc", "goat")
    assert [cell.trained for cell in (*before, *after)] == [False, False, False, True]
    (goat, _), (_, bc) = before, after
    assert (goat.label, bc.label) == ("GOAT", "Goal BC")
    assert estimate.seconds(after) == estimate.seconds([goat])
    simulated = dataclasses.replace(bc, group=PUSH, tasks=PUSH.tasks)
    expected = estimate.seconds([simulated])
    assert (expected.compiling, expected.training) == (0.0, 0.0)
    assert expected.evaluating > 0


@pytest.mark.parametrize(("members", "rate"), [(30, 18_700), (5, 9_570)])
def test_the_updates_of_a_gpu_come_at_the_measured_rates(
    monkeypatch: pytest.MonkeyPatch, members: int, rate: float
) -> None:
    """GOAT on an H200: updates of a seed per second, batches of 512."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    algorithm, updates = algorithms.get("goat").build(PUSH.settings), 40_000
    seconds = estimate._updating(algorithm, PUSH.spec, updates, 512, members)
    assert members * updates / seconds == pytest.approx(rate, rel=0.01)


def test_a_gpu_trains_while_cores_evaluate(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = Expected(compiling=10, training=60, evaluating=100)
    assert expected.whole == 170
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert expected.whole == 100
    assert dataclasses.replace(expected, evaluating=20).whole == 70


def test_the_second_estimate_is_what_the_first_one_took(tmp_path: Path) -> None:
    planned = on_robots(tmp_path, "bc", "goat")
    rates = estimate.seconds(planned)
    measured = {"compiling": 4.9, "training": 3 * rates.training + 6, "evaluating": 7.0}
    busy = 0.5 * sum(measured.values())  # they shared the cores
    estimate.learn(planned, measured, busy)
    again = estimate.seconds(planned)
    assert again.compiling == rates.compiling, "that was too short to say anything"
    assert estimate.compilation() == estimate.COMPILATION
    assert again.training == pytest.approx(0.5 * measured["training"])
    assert again.evaluating == pytest.approx(0.5 * 7.0)
    estimate.learn(planned, {"compiling": 30.0}, 30.0)
    third = estimate.seconds(planned)
    assert third.compiling == pytest.approx(30.0)
    assert estimate.compilation() == pytest.approx(15.0), "of each of two programs"
    assert third.training == again.training, "each kind is remembered for itself"


def test_a_trial_teaches_nothing(tmp_path: Path) -> None:
    """Eight updates last as long as it takes to start them."""
    planned = plan(tmp_path, "bc")
    before = estimate.seconds(planned)
    estimate.learn(planned, {"training": 9.0}, 9.0)
    assert estimate.seconds(planned) == before


def test_on_a_gpu_overlap_is_no_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    planned = on_robots(tmp_path, "bc")
    estimate.learn(planned, {"training": 50.0, "evaluating": 60.0}, busy=60.0)
    assert estimate.seconds(planned).training == pytest.approx(50.0)
    assert estimate.seconds(planned).whole == pytest.approx(50.0 + estimate.GPU_COMPILATION)


def test_short_trainings_come_after_those_that_hide_their_compilation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two programs are compiled while one trains. Nobody waits for the second of two short ones."""
    (cell,) = plan(tmp_path, "bc")
    trains = {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0, "long": 7.0, "longer": 40.0, "last": 1.0}
    waiting = [[dataclasses.replace(cell, label=label)] for label in trains]
    monkeypatch.setattr(estimate, "_training", lambda cells: trains[cells[0].label])

    def labels() -> list[str]:
        return [cells[0].label for cells in estimate.order(waiting)]

    assert labels() == list(trains), "a CPU compiles nothing meanwhile"
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert estimate.GPU_COMPILATION == 14.0
    assert grid.COMPILED_AHEAD == 2
    # 7 s of training hide one compilation; 40 s hide two, as no more are compiled ahead
    assert labels() == ["long", "a", "longer", "b", "c", "d", "last"]


def test_another_machine_learns_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = plan(tmp_path, "bc")
    before = estimate.seconds(planned)
    estimate.learn(planned, {"compiling": 40.0}, 40.0)
    monkeypatch.setattr(estimate, "_machine", lambda: "accelerator, 16 cores")
    assert estimate.seconds(planned) == before
    estimate.learn(planned, {"compiling": 20.0}, 20.0)
    known = json.loads(estimate._file().read_text())
    assert sorted(each["compiling"] for each in known.values()) == [2.5, 5.0]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[1]",
        b'{"MACHINE": 3}',
        b'{"MACHINE": {"training": "fast", "compiling": -1, "evaluating": NaN}}',
    ],
)
def test_a_damaged_file_means_nothing_and_is_replaced(tmp_path: Path, content: bytes) -> None:
    planned = plan(tmp_path, "bc")
    before = estimate.seconds(planned)
    estimate._file().parent.mkdir()
    estimate._file().write_bytes(content.replace(b"MACHINE", estimate._machine().encode()))
    assert estimate.seconds(planned) == before
    estimate.learn(planned, {"compiling": 40.0}, 40.0)
    assert estimate.seconds(planned).compiling == pytest.approx(40.0)


def test_a_cache_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    planned = plan(tmp_path, "bc")
    estimate._file().parent.write_text("a file where the folder should be")
    estimate.learn(planned, {"compiling": 40.0}, 40.0)
    assert estimate.seconds(planned).compiling == estimate.COMPILATION


def test_a_suite_that_ran_to_its_end_teaches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that goes on where another was stopped trains less than was expected."""
    taught: list[dict[str, float]] = []
    monkeypatch.setattr(
        estimate, "learn", lambda planned, measured, busy: taught.append(dict(measured))
    )

    def ignore(progress: Progress) -> None:
        pass

    suite = Grid(SUITE)
    assert suite.run(plan(tmp_path, "bc"), tmp_path, ignore) == []
    (measured,) = taught
    assert set(measured) == {"compiling", "training", "evaluating"}
    for record in tmp_path.glob("*.parquet"):
        record.unlink()
    assert suite.run(plan(tmp_path, "bc"), tmp_path, ignore) == []
    assert len(taught) == 1
