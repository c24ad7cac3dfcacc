"""What a suite wants of a folder: which cells are missing, and which of its records are its own."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goatrl import data as datasets
from goatrl import tasks
from goatrl.data.problems import declared_symmetry
from goatrl.experiments import experiment, grid, planning, suites
from goatrl.experiments.columns import Column
from goatrl.experiments.kinds.grid import Grid
from goatrl.learn.parameters import hyperparameters
from goatrl.types import GoatError
from plans import GROUP, SUITE, forbidden, plan

pytestmark = pytest.mark.usefixtures("few_percentiles")


def test_a_dataset_is_opened_only_if_something_is_to_be_trained_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid.run(plan(tmp_path, "bc"), tmp_path, lambda progress: None)
    asked: list[str] = []

    def again(seeds: int, **named: Any) -> list[planning.PlannedCell]:
        only = {"groups": [GROUP], "algorithm_names": ["bc"], "prepare": asked.extend}
        return planning.plan(SUITE, tmp_path, seeds=seeds, **{"updates": 8} | only | named)

    with monkeypatch.context() as patch:
        patch.setattr(planning, "open_problem", forbidden)
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

    def again(name: str, data: dict[str, Path] | None = None) -> list[planning.PlannedCell]:
        return planning.plan(
            SUITE, tmp_path, seeds=1, groups=[GROUP], algorithm_names=[name], updates=8, data=data
        )

    grid.run(again("bc", {GROUP: other}), tmp_path, lambda progress: None)
    assert [cell.missing for cell in again("bc")] == [()], "printing it again needs no dataset"
    assert [cell.missing for cell in again("gcsl", {GROUP: other})] == [(0,)]
    with pytest.raises(
        GoatError, match=r"from a different dataset.*--data pointreach-expert-10=FILE"
    ):
        again("gcsl")


def test_a_column_trains_with_what_its_robot_declares() -> None:
    column = Column("mirrored", "bc", symmetry=("reflection",))
    mirrored = planning._compose(column, tasks.get(GROUP))
    assert mirrored.symmetry == declared_symmetry("declared", tasks.get(GROUP))
    assert planning._compose(column, tasks.get("hand-near-far")).symmetry == "", "it declares none"
    slide = tasks.get("slide-left-right")
    assert list(json.loads(planning._compose(column, slide).symmetry)) == ["reflection"]
    every = Column("mirrored and turned", "bc", symmetry=("reflection", "rotation"))
    assert planning._compose(every, slide).symmetry == declared_symmetry("declared", slide)
    assert planning._compose(every, tasks.get(GROUP)).symmetry == mirrored.symmetry


def test_columns_that_do_not_differ_on_a_group_share_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = (Column("one", "bc"), Column("other", "bc", {"learning_rate": 5e-4}))
    suite = dataclasses.replace(SUITE, columns=same)
    chosen = {"seeds": 1, "groups": [GROUP], "updates": 8}
    planned = planning.plan(suite, tmp_path, **chosen)
    assert [cell.missing for cell in planned] == [(0,), (0,)]
    _, jobs = experiment.together([Grid(suite)], [planned])
    assert [job.label for job in jobs] == ["one"], "it is trained once"
    grid.run(planned[:1], tmp_path, lambda progress: None)
    assert [cell.missing for cell in planning.plan(suite, tmp_path, **chosen)] == [(), ()]
    one, other = planning.suite_cells(suite, tmp_path)
    assert (one.label, other.label) == ("one", "other")
    assert one.episodes.equals(other.episodes)


def test_a_label_stands_for_one_column(tmp_path: Path) -> None:
    file = tmp_path / "my_goat.py"
    file.write_text(
        "from goatrl.algorithms import register\nfrom goatrl.learn.agent import "
        "weighted_regression\n"
        '@register("GOAT")\ndef my_goat(settings):\n    """Mine."""\n    return '
        "weighted_regression(settings)\n"
    )
    with pytest.raises(GoatError, match=r"my_goat.py is registered as GOAT.*another label"):
        planning.choose_columns(SUITE.columns, ["bc", str(file)])


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
        assert planning.choose_columns(columns, names) == chosen
    with pytest.raises(GoatError, match="did you mean 'frame, mirror'"):
        planning.choose_columns(columns, ["frame, mirrors"])


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
    planned = planning.plan(
        suites.get("ablation-msg"), recorded, seeds=5, groups=["push-left-right"]
    )
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
    (shared,) = planning.suite_cells(sweep, tmp_path)
    assert (shared.suite, shared.label) == (sweep.name, "alpha=1")
    planned = planning.plan(sweep, tmp_path, seeds=1, groups=[GROUP], updates=8)
    assert {cell.label: cell.missing for cell in planned}["alpha=1"] == ()
    assert sum(bool(cell.missing) for cell in planned) == 4


def test_a_column_that_was_added_belongs_to_its_suite_alone(tmp_path: Path) -> None:
    grid.run(plan(tmp_path, "marwil_her", seeds=1), tmp_path, lambda progress: None)
    assert [cell.label for cell in planning.suite_cells(SUITE, tmp_path)] == ["MARWIL+HER"]
    assert not planning.suite_cells(suites.get("pointreach-cql-alpha"), tmp_path)


def test_other_batches_take_as_many_samples(tmp_path: Path) -> None:
    column = Column("large", "bc", batch_size=256)
    suite = dataclasses.replace(SUITE, columns=(Column("BC", "bc"), column))
    own, large = planning.plan(suite, tmp_path, seeds=1, groups=[GROUP])
    assert (own.config.updates, own.config.batch_size) == (2_000, 128)
    assert (large.config.updates, large.config.batch_size) == (1_000, 256)
    _, short = planning.plan(suite, tmp_path, seeds=1, groups=[GROUP], updates=8)
    assert (short.config.updates, short.config.batch_size) == (8, 256)


@pytest.mark.parametrize("suite", suites.SUITES, ids=lambda suite: suite.name)
def test_every_column_of_every_suite_can_be_composed_and_told_apart(suite: suites.Suite) -> None:
    """On some group at least: one's own numbers, or no symmetry, leave columns alike on others."""
    groups = [tasks.get(name) for name in suite.groups]
    composed = [
        tuple(planning._composition(column, group).digest() for group in groups)
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
        each.label: planning._compose(each, tasks.get("ogbench-cube")) for each in suite.columns
    }
    assert hyperparameters(composed[column])[name] == number
