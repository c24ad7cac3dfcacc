"""Which cells train together, in one program, as far as the memory allows."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax
import numpy as np
import pytest

from goatrl import algorithms, tasks
from goatrl import data as datasets
from goatrl.data.problems import Problem, open_problem
from goatrl.episodes import make_episodes
from goatrl.experiments import grid, packing, planning, records
from goatrl.training import memory
from goatrl.types import Episodes
from plans import GROUP, SUITE, forbidden, plan

pytestmark = pytest.mark.usefixtures("few_percentiles")


def test_cells_of_equal_shape_train_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU those of all groups, on a processor those of one. Either way gives the same
    agents.
    """
    groups = ["pointreach-expert-10", "pointreach-non-expert-10"]

    def planned(folder: Path) -> list[planning.PlannedCell]:
        names = ["bc"]
        return planning.plan(
            SUITE, folder, seeds=2, groups=groups, algorithm_names=names, updates=8
        )

    folders = {}
    for backend, shares in (("cpu", [1, 1]), ("gpu", [2])):
        folders[backend] = tmp_path / backend
        with monkeypatch.context() as patch:
            patch.setattr(jax, "default_backend", lambda backend=backend: backend)
            cells = planned(folders[backend])
            together = packing.batches(cells)
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
        cells = planning.plan(
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
            found[name] = packing.batches(cells)
    assert [len(cells) for cells in found["same"]] == [2]
    assert [len(cells) for cells in found["various"]] == [1, 1]
    monkeypatch.setattr(grid, "batches", lambda *arguments: found["various"])
    cells = [cell for piece in found["various"] for cell in piece]
    assert grid.run(cells, tmp_path / "various", lambda progress: None) == []
    assert len(records.read_all(tmp_path / "various")) == 2


def test_parts_of_a_groups_episodes_train_apart_from_whole_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point_episodes: Episodes
) -> None:
    """The split of OGBench's maze has the spec of the maze, and episodes of many lengths."""
    groups = ["pointreach-expert-10", "pointreach-non-expert-10"]
    cells = planning.plan(
        SUITE, tmp_path, seeds=1, groups=groups, algorithm_names=["bc"], updates=8
    )
    arrays = point_episodes.arrays()
    parts = {"lengths": [49, *range(5, 14)]}
    ended = {"terminated": np.arange(len(arrays["actions"])) == 0}
    whole = open_problem(groups[0], None)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    for other, apart in ((parts, True), (ended, True), ({}, False)):
        asked: list[str] = []

        def opened(group: str, data: Path | None, other: dict = other) -> Problem:
            asked.append(group)  # noqa: B023
            if group == groups[0]:
                return whole
            return dataclasses.replace(whole, episodes=make_episodes(**arrays, **other))

        together = packing.batches(cells, opened)
        assert [len(piece) for piece in together] == ([1, 1] if apart else [2])
        assert sorted(asked) == sorted(groups), "each is opened once"


def sizes(together: list[packing.Together]) -> list[int]:
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
    together = packing.batches(cells)
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
    dataset = memory.of_arrays(open_problem(GROUP, None).episodes)
    opened: list[str] = []
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")

    def split(bytes_limit: float) -> list[int]:
        monkeypatch.setattr(memory, "counted", lambda: {"bytes_limit": bytes_limit})
        return sizes(
            packing.batches(cells, lambda *place: opened.append(place[0]) or open_problem(*place))
        )

    assert split((dataset + 12 * agent) / 0.79) == [12]
    assert split((dataset + 12 * agent) / 0.81) == [6, 6]
    assert split((dataset + 4 * agent) / 0.79) == [4, 4, 4]
    assert split(1.0) == [2] * 6, "there is nothing less than a cell"
    assert set(opened) == {GROUP}
    large = 10 * agent  # a dataset that is
    with monkeypatch.context() as patch:
        patch.setattr(memory, "of_arrays", lambda episodes: large)
        patch.setattr(memory, "of_member", lambda *arguments: agent)
        assert split((large + 12 * agent) / 0.79) == [12]
        assert split((large + 12 * agent) / 0.81) == [6, 6]
        assert split((large + agent) / 0.79) == [2] * 6
    monkeypatch.setattr(memory, "counted", dict)
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    assert sizes(packing.batches(cells, forbidden)) == [12], "no dataset need be opened"
