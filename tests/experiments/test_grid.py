"""Running a suite: agents are kept as soon as they are trained, evaluated while others train."""

from __future__ import annotations

import dataclasses
import json
import threading
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors

from goatrl import algorithms, tasks
from goatrl import data as datasets
from goatrl.data.problems import declared_symmetry
from goatrl.disk import checkpoint
from goatrl.episodes import make_episodes
from goatrl.experiments import agents, experiment, grid, paper, records, statistics, suites
from goatrl.experiments.columns import Column
from goatrl.experiments.grid import Progress
from goatrl.experiments.kinds.grid import Grid
from goatrl.experiments.records import Training
from goatrl.learn import normalize
from goatrl.learn.parameters import hyperparameters
from goatrl.robots.workers import Lost
from goatrl.training import memory, offline
from goatrl.types import Episodes, GoatError, TrainState
from helpers import made_by_hand

pytestmark = pytest.mark.usefixtures("few_percentiles")

SUITE = suites.get("pointreach")
GROUP = "pointreach-expert-10"


def plan(folder: Path, *names: str, seeds: int = 2) -> list[grid.PlannedCell]:
    return grid.plan(SUITE, folder, seeds=seeds, groups=[GROUP], algorithm_names=names, updates=8)


def forbidden(*arguments: object, **named: object) -> None:
    raise AssertionError("nothing is left to train")


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


def test_a_dataset_is_opened_only_if_something_is_to_be_trained_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid.run(plan(tmp_path, "bc"), tmp_path, lambda progress: None)
    asked: list[str] = []

    def again(seeds: int, **named: Any) -> list[grid.PlannedCell]:
        only = {"groups": [GROUP], "algorithm_names": ["bc"], "prepare": asked.extend}
        return grid.plan(SUITE, tmp_path, seeds=seeds, **{"updates": 8} | only | named)

    with monkeypatch.context() as patch:
        patch.setattr(grid, "open_problem", forbidden)
        (recorded,) = again(2)
        with pytest.raises(GoatError, match="differs in updates"):
            again(2, updates=16)
    assert (recorded.missing, asked) == ((), [])
    (planned,) = again(3)
    assert (planned.missing, asked) == ((2,), [GROUP])
    assert planned.config == recorded.config


def test_a_folder_has_one_dataset_for_each_group(tmp_path: Path) -> None:
    other = tmp_path / "other.npz"
    datasets.save(datasets.make(tasks.get("pointreach-non-expert-10")), other)

    def again(name: str, data: dict[str, Path] | None = None) -> list[grid.PlannedCell]:
        return grid.plan(
            SUITE, tmp_path, seeds=1, groups=[GROUP], algorithm_names=[name], updates=8, data=data
        )

    grid.run(again("bc", {GROUP: other}), tmp_path, lambda progress: None)
    assert [cell.missing for cell in again("bc")] == [()], "printing it again needs no dataset"
    assert [cell.missing for cell in again("gcsl", {GROUP: other})] == [(0,)]
    with pytest.raises(
        GoatError, match=r"from a different dataset.*--data pointreach-expert-10=FILE"
    ):
        again("gcsl")


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
    cells = grid.plan(suite, tmp_path, seeds=1, groups=[GROUP], updates=8)
    assert [len(batch) for batch in grid.batches(cells)] == [3], "they would train together"
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


def test_a_column_trains_with_what_its_robot_declares() -> None:
    column = Column("mirrored", "bc", symmetry=("reflection",))
    mirrored = grid._compose(column, tasks.get(GROUP))
    assert mirrored.symmetry == declared_symmetry("declared", tasks.get(GROUP))
    assert grid._compose(column, tasks.get("hand-near-far")).symmetry == "", "it declares none"
    slide = tasks.get("slide-left-right")
    assert list(json.loads(grid._compose(column, slide).symmetry)) == ["reflection"]
    every = Column("mirrored and turned", "bc", symmetry=("reflection", "rotation"))
    assert grid._compose(every, slide).symmetry == declared_symmetry("declared", slide)
    assert grid._compose(every, tasks.get(GROUP)).symmetry == mirrored.symmetry


def test_columns_that_do_not_differ_on_a_group_share_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = (Column("one", "bc"), Column("other", "bc", {"learning_rate": 5e-4}))
    suite = dataclasses.replace(SUITE, columns=same)
    chosen = {"seeds": 1, "groups": [GROUP], "updates": 8}
    planned = grid.plan(suite, tmp_path, **chosen)
    assert [cell.missing for cell in planned] == [(0,), (0,)]
    _, jobs = experiment.together([Grid(suite)], [planned])
    assert [job.label for job in jobs] == ["one"], "it is trained once"
    grid.run(planned[:1], tmp_path, lambda progress: None)
    assert [cell.missing for cell in grid.plan(suite, tmp_path, **chosen)] == [(), ()]
    one, other = grid.suite_cells(suite, tmp_path)
    assert (one.label, other.label) == ("one", "other")
    assert one.episodes.equals(other.episodes)


def test_agents_of_many_seeds_have_short_names(tmp_path: Path) -> None:
    (planned,) = plan(tmp_path, "bc")
    names = [
        agents.path(tmp_path, planned.config, seeds).stem.split("--")[-1]
        for seeds in (tuple(range(1000)), (3, 7, 8, 9), (2,))
    ]
    assert names == ["seeds-0-999", "seeds-3+7-9", "seeds-2"]


def test_a_label_stands_for_one_column(tmp_path: Path) -> None:
    file = tmp_path / "my_goat.py"
    file.write_text(
        "from goatrl.algorithms import register\nfrom goatrl.learn.agent import "
        "weighted_regression\n"
        '@register("GOAT")\ndef my_goat(settings):\n    """Mine."""\n    return '
        "weighted_regression(settings)\n"
    )
    with pytest.raises(GoatError, match=r"my_goat.py is registered as GOAT.*another label"):
        grid.choose_columns(SUITE.columns, ["bc", str(file)])


def test_columns_are_chosen_by_heading_or_algorithm() -> None:
    columns = [
        Column("GOAT", "goat"),
        Column("frame, mirror", "goat", inputs="goal-frame"),
        Column("Goal BC", "bc"),
    ]
    for names, chosen in (
        (["frame, mirror"], columns[1:2]),
        (["goat"], columns[:2]),
        (["Goal BC", "GOAT"], [columns[0], columns[2]]),
        (["frame, mirror", "gcsl"], [columns[1], Column("GCSL", "gcsl")]),
    ):
        assert grid.choose_columns(columns, names) == chosen
    with pytest.raises(GoatError, match="did you mean 'frame, mirror'"):
        grid.choose_columns(columns, ["frame, mirrors"])


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


def test_cells_of_equal_shape_train_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU those of all groups, on a processor those of one. Either way gives the same
    agents.
    """
    groups = ["pointreach-expert-10", "pointreach-non-expert-10"]

    def planned(folder: Path) -> list[grid.PlannedCell]:
        names = ["bc"]
        return grid.plan(SUITE, folder, seeds=2, groups=groups, algorithm_names=names, updates=8)

    folders = {}
    for backend, shares in (("cpu", [1, 1]), ("gpu", [2])):
        folders[backend] = tmp_path / backend
        with monkeypatch.context() as patch:
            patch.setattr(jax, "default_backend", lambda backend=backend: backend)
            cells = planned(folders[backend])
            together = grid.batches(cells)
        assert [len(cells) for cells in together] == shares
        with monkeypatch.context() as patch:
            patch.setattr(grid, "batches", lambda *arguments, together=together: together)
            assert grid.run(cells, folders[backend], lambda progress: None) == []
    apart, packed = (
        {(c.config.group, c.label): c for c in records.read_all(f)} for f in folders.values()
    )
    assert apart.keys() == packed.keys()
    for place, cell in packed.items():
        assert cell.episodes.equals(apart[place].episodes)
        assert [training.members for training in cell.trainings] == [4]
    for file in folders["gpu"].glob("*.parquet"):
        file.unlink()
    monkeypatch.setattr(grid, "train", forbidden)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(grid, "_looking_ahead", lambda: 0)
    assert grid.run(planned(folders["gpu"]), folders["gpu"], lambda progress: None) == []
    for cell in records.read_all(folders["gpu"]):
        assert cell.episodes.equals(packed[cell.config.group, cell.label].episodes)


def test_episodes_of_other_lengths_train_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point_episodes: Episodes
) -> None:
    """On a GPU, beside a group's own dataset: one program takes one layout."""
    groups = ["pointreach-expert-10", "pointreach-non-expert-10"]
    given = point_episodes.arrays()
    lengths = [49, *range(5, 14)]
    datasets.save(make_episodes(**given, lengths=lengths), tmp_path / "various.npz")
    datasets.save(point_episodes, tmp_path / "same.npz")
    found = {}
    for name in ("various", "same"):
        cells = grid.plan(
            SUITE,
            tmp_path / name,
            seeds=1,
            groups=groups,
            algorithm_names=["bc"],
            updates=8,
            data={groups[1]: tmp_path / f"{name}.npz"},
        )
        with monkeypatch.context() as patch:
            patch.setattr(jax, "default_backend", lambda: "gpu")
            found[name] = grid.batches(cells)
    assert [len(cells) for cells in found["same"]] == [2]
    assert [len(cells) for cells in found["various"]] == [1, 1]
    monkeypatch.setattr(grid, "batches", lambda *arguments: found["various"])
    cells = [cell for piece in found["various"] for cell in piece]
    assert grid.run(cells, tmp_path / "various", lambda progress: None) == []
    assert len(records.read_all(tmp_path / "various")) == 2


def sizes(together: list[grid.Together]) -> list[int]:
    return [sum(len(cell.missing) for cell in cells) for cells in together]


@pytest.mark.parametrize(
    ("seeds", "expected"),
    [
        ([5] * 6, [30]),
        ([5] * 7, [15, 20]),
        ([5] * 9, [20, 25]),
        ([5] * 12, [30, 30]),
        ([5] * 13, [20, 25, 20]),
        ([7] * 8, [28, 28]),  # not 28, 28 and an end
        ([16, 16, 16], [16, 16, 16]),
        ([40, 1, 1], [40, 2]),  # a cell stays whole
        ([40, 40], [40, 40]),
        ([1, 40, 1], [1, 40, 1]),
    ],
)
def test_a_program_has_thirty_members_at_most(
    tmp_path: Path, seeds: list[int], expected: list[int]
) -> None:
    (cell,) = plan(tmp_path, "bc")
    cells = [dataclasses.replace(cell, missing=tuple(range(count))) for count in seeds]
    together = grid.batches(cells)
    assert sizes(together) == expected
    assert [each for piece in together for each in piece] == cells


def test_the_memory_of_a_training_is_what_was_measured() -> None:
    """60 agents of GOAT on Push peak at 2.5 GiB."""
    push = tasks.get("push-left-right")
    agent = memory.of_member(algorithms.get("goat").build(push.settings), push.spec)
    states, numbers = 5_000 * (push.spec.horizon + 1), push.spec.observation_dim + 8
    assert 60 * agent + 4 * states * numbers == pytest.approx(2.5 * 2**30, rel=0.1)


def test_what_trains_together_fits_the_devices_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents of one GOAT on PointReach, trained on one dataset."""
    (cell,) = plan(tmp_path, "goat")
    cells = [dataclasses.replace(cell) for _ in range(6)]
    agent = memory.of_member(cell.algorithm, cell.config.spec)
    dataset = memory.of_arrays(grid.open_problem(GROUP, None).episodes)
    opened: list[str] = []

    def split(bytes_limit: float) -> list[int]:
        monkeypatch.setattr(memory, "counted", lambda: {"bytes_limit": bytes_limit})
        return sizes(
            grid.batches(cells, lambda *place: opened.append(place[0]) or grid.open_problem(*place))
        )

    assert split((dataset + 12 * agent) / 0.79) == [12]
    assert split((dataset + 12 * agent) / 0.81) == [6, 6]
    assert split((dataset + 4 * agent) / 0.79) == [4, 4, 4]
    assert split(1.0) == [2] * 6, "there is nothing less than a cell"
    assert set(opened) == {GROUP}
    opened.clear()
    monkeypatch.setattr(memory, "counted", dict)
    assert sizes(grid.batches(cells, forbidden)) == [12]


def test_robots_are_also_run_on_their_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = tasks.get("reach-left-right")
    assert [task.name for task in group.evaluated()] == ["Right", "Left", "Coverage"]
    assert group.coverage is not None
    _, goals = group.coverage.evaluation()
    assert goals.shape == (100, 3)
    assert group.kept(goals[:, None]).sum() == 50
    assert len(np.unique(goals[:, 0])) == len(np.unique(goals[:, 1])) == 10


def test_a_cell_that_the_main_table_shares_has_its_map_whichever_suite_runs_it() -> None:
    """MSG+HER of the main table is also the column c = 5 of its ablation."""
    recorded = Path(__file__).parents[2] / "results/robots"
    planned = grid.plan(suites.get("ablation-msg"), recorded, seeds=5, groups=["push-left-right"])
    assert [cell.label for cell in planned if cell.tasks == cell.group.evaluated()] == ["c=5"]
    assert [cell.label for cell in planned if cell.tasks == cell.group.tasks] == [
        "c=1",
        "c=3",
        "c=7",
    ]


def test_suites_share_the_cells_that_they_have_in_common(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CQL+HER is also the column α = 1 of another suite: recorded once, shown in both."""
    grid.run(plan(tmp_path, "cql_her", seeds=1), tmp_path, lambda progress: None)
    sweep = suites.get("pointreach-cql-alpha")
    (shared,) = grid.suite_cells(sweep, tmp_path)
    assert (shared.suite, shared.label) == (sweep.name, "alpha=1")
    planned = grid.plan(sweep, tmp_path, seeds=1, groups=[GROUP], updates=8)
    assert {cell.label: cell.missing for cell in planned}["alpha=1"] == ()
    assert sum(bool(cell.missing) for cell in planned) == 4


def test_a_column_that_was_added_belongs_to_its_suite_alone(tmp_path: Path) -> None:
    grid.run(plan(tmp_path, "marwil_her", seeds=1), tmp_path, lambda progress: None)
    assert [cell.label for cell in grid.suite_cells(SUITE, tmp_path)] == ["MARWIL+HER"]
    assert not grid.suite_cells(suites.get("pointreach-cql-alpha"), tmp_path)


def test_other_batches_take_as_many_samples(tmp_path: Path) -> None:
    column = Column("large", "bc", batch_size=256)
    suite = dataclasses.replace(SUITE, columns=(Column("BC", "bc"), column))
    own, large = grid.plan(suite, tmp_path, seeds=1, groups=[GROUP])
    assert (own.config.updates, own.config.batch_size) == (2_000, 128)
    assert (large.config.updates, large.config.batch_size) == (1_000, 256)
    _, short = grid.plan(suite, tmp_path, seeds=1, groups=[GROUP], updates=8)
    assert (short.config.updates, short.config.batch_size) == (8, 256)


@pytest.mark.parametrize("suite", suites.SUITES, ids=lambda suite: suite.name)
def test_every_column_of_every_suite_can_be_composed_and_told_apart(suite: suites.Suite) -> None:
    """On some group at least: one's own numbers, or no symmetry, leave columns alike on others."""
    groups = [tasks.get(name) for name in suite.groups]
    composed = [
        tuple(grid._composition(column, group).digest() for group in groups)
        for column in suite.columns
    ]
    assert len(set(composed)) == len(composed)


@pytest.mark.parametrize(
    ("column", "name", "number"),
    [
        ("GCIVL", "exp_advantage.beta", 10.0),
        ("GCIQL", "ddpgbc.alpha", 1.0),
        ("HIQL", "two_levels.beta", 3.0),
        ("HIQL", "goal_mixes.steps", 10),
        ("CRL", "ddpgbc.alpha", 3.0),
        ("QRL", "ddpgbc.alpha", 0.3),
    ],
)
def test_agents_have_ogbenchs_numbers_on_its_cube(column: str, name: str, number: float) -> None:
    """Of the line of its hyperparameters.sh for cube-single-play."""
    suite = suites.get("ogbench-cube")
    composed = {
        each.label: grid._compose(each, tasks.get("ogbench-cube")) for each in suite.columns
    }
    assert hyperparameters(composed[column])[name] == number


@pytest.mark.parametrize(
    "suite", [suite for suite in suites.SUITES if suite.averages], ids=lambda suite: suite.name
)
def test_the_papers_averages_are_of_the_suites_columns(suite: suites.Suite) -> None:
    published = paper.averages(suite.averages)
    labels = [column.label for column in suite.columns]
    assert {label for _, label in published} <= set(labels)
    assert {over for over, _ in published} <= {
        "iid",
        "ood",
        "all",
        *(tasks.get(name).label for name in suite.groups),
    }
    splits = {task.split for name in suite.groups for task in tasks.get(name).tasks}
    assert any(over == ("ood" if "ood" in splits else "iid") for over, _ in published)


def test_the_papers_average_stands_beside_a_whole_suite_only() -> None:
    suite = suites.get("ablation-drw")
    cells = [made_by_hand(name, fake_rows(name), (0,), "WGCSL+DRW") for name in suite.groups]
    whole = {each.split: each.paper for each in statistics.summary(suite, cells, "success")}
    assert whole == {"iid": 88.4, "ood": 59.5, "all": None}
    part = {each.split: each.paper for each in statistics.summary(suite, cells[1:], "success")}
    assert part == {"iid": None, "ood": None, "all": None}


def fake_rows(name: str) -> list[dict]:
    point = {
        "start": [0.0],
        "goal": [0.0],
        "path": None,
        "final_distance": 0.0,
        "return": 0,
        "episode": 0,
        "seed": 0,
    }
    return [
        point | {"task": task.name, "split": task.split, "success": True}
        for task in tasks.get(name).tasks
    ]
