"""Formats of others: OGBench's npz, Parquet, robomimic's HDF5. What is in them comes out; what is
damaged or crafted is one line.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from goatrl import data as datasets
from goatrl.episodes import make_episodes
from goatrl.types import Episodes, GoatError
from helpers import error_line, goat

LENGTHS = (2, 1, 4)


def trajectories(seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    seen = [rng.normal(size=(length + 1, 3)).astype(np.float32) for length in LENGTHS]
    return seen, [rng.uniform(-1, 1, (length, 2)).astype(np.float32) for length in LENGTHS]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# OGBench


def ogbench(path: str = "maze.npz", **changed: Any) -> None:
    """As its scripts write a dataset: the last action of a trajectory is there, and leads nowhere;
    qpos and qvel lie beside.
    """
    seen, actions = trajectories()
    steps = [length + 1 for length in LENGTHS]
    dataset = {
        "observations": np.concatenate(seen),
        "actions": np.concatenate([np.concatenate([each, [[9.0, 9.0]]]) for each in actions]),
        "terminals": np.concatenate([np.arange(step) == step - 1 for step in steps]),
        "qpos": np.zeros((sum(steps), 2)),
    }
    np.savez_compressed(path, **dataset | changed)


def test_an_ogbench_file_is_read() -> None:
    ogbench()
    seen, actions = trajectories()
    loaded = datasets.load("maze.npz")
    ends = np.stack([each[-1] for each in seen])
    assert loaded.checksum() == make_episodes(seen, seen, actions, ends).checksum()
    np.testing.assert_array_equal(loaded.lengths, LENGTHS)
    assert loaded.terminated is None


def test_columns_of_an_observation_may_be_the_goal(capsys: pytest.CaptureFixture[str]) -> None:
    ogbench()
    assert goat("data", "convert", "maze.npz", "--goal-columns", 2, 0, "--out", "chosen.npz") == 0
    seen, actions = trajectories()
    achieved = [each[:, [2, 0]] for each in seen]
    ends = np.stack([each[-1] for each in achieved])
    expected = make_episodes(seen, achieved, actions, ends)
    assert datasets.load("chosen.npz").checksum() == expected.checksum()
    capsys.readouterr()
    for columns in ((0, 3), (1, 1), (-1, 0)):
        assert (
            goat("data", "convert", "maze.npz", "--goal-columns", *columns, "--out", "x.npz") == 2
        )
        assert "goal columns must be different ones of 0 to 2" in error_line(capsys)
    to_minari = ("data", "convert", "maze.npz", "--goal-columns", 0, "--out", "minari:me/x-v0")
    assert goat(*to_minari) == 2
    assert "--goal-columns writes a file" in error_line(capsys)


def test_a_trajectory_that_the_file_cuts_is_one_too() -> None:
    terminals = np.zeros(sum(LENGTHS) + 3)
    terminals[2] = 1.0
    ogbench(terminals=terminals)
    assert np.asarray(datasets.load("maze.npz").lengths).tolist() == [2, 6]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"terminals": np.zeros(3)}, r"terminals has shape \(3,\), but 10 observations need one"),
        ({"observations": np.zeros((10, 2, 2))}, "observations has shape .* rows of numbers"),
        ({"actions": np.zeros((9, 2))}, r"actions has shape \(9, 2\), but 3 episodes"),
        ({"terminals": np.ones(10)}, "episode 0 has 0 actions"),
        ({"observations": np.full((10, 3), np.nan)}, "observations contains 30 values"),
        ({"observations": np.array([[None]])}, r"maze\.npz is damaged or not an npz dataset"),
    ],
)
def test_an_ogbench_file_that_does_not_fit_is_refused(changed: dict, message: str) -> None:
    ogbench(**changed)
    with pytest.raises(GoatError, match=message):
        datasets.load("maze.npz")


# Parquet


def steps(**changed: Any) -> dict[str, Any]:
    """One row for every step; the last of an episode has no action."""
    seen, actions = trajectories()
    columns: dict[str, list] = {name: [] for name in ("episode", "observation", "action")}
    for name, one, other in zip(("b", "a", "c"), seen, actions, strict=True):
        columns["episode"] += [name] * len(one)
        columns["observation"] += one.tolist()
        columns["action"] += [*other.tolist(), None]
    columns["achieved"] = [row[:2] for row in columns["observation"]]
    columns["goal"] = [
        {"b": [1.0, 2.0], "a": [3.0, 4.0], "c": [5.0, 6.0]}[e] for e in columns["episode"]
    ]
    return columns | changed


def expected(**flags: Any) -> Episodes:
    seen, actions = trajectories()
    goals = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    return make_episodes(seen, [each[:, :2] for each in seen], actions, goals, **flags)


def test_parquet_is_read() -> None:
    pq.write_table(pa.table(steps()), "steps.parquet")
    loaded = datasets.load("steps.parquet")
    assert loaded.checksum() == expected().checksum()
    pq.write_table(pa.table(steps()), "parts.parquet", row_group_size=2)
    assert datasets.load("parts.parquet").checksum() == expected().checksum()


def test_rows_of_several_episodes_may_be_mixed() -> None:
    table = pa.table(steps())
    order = [0, 3, 5, 1, 6, 4, 2, 7, 8, 9]  # each episode's own steps stay in order
    pq.write_table(table.take(pa.array(order)), "steps.parquet")
    assert datasets.load("steps.parquet").checksum() == expected().checksum()


def test_an_end_and_changing_goals_are_read() -> None:
    goals = [[float(row), 0.0] for row in range(10)]
    ended = [None, None, True, False, False, None, None, None, None, True]
    columns = steps(goal=goals, terminated=pa.array(ended, pa.bool_()))
    pq.write_table(pa.table(columns), "steps.parquet")
    loaded = datasets.load("steps.parquet")
    np.testing.assert_array_equal(loaded.terminated, [True, False, True])
    np.testing.assert_array_equal(
        np.asarray(loaded.desired(*loaded.steps()))[:, 0], [0, 1, 3, 5, 6, 7, 8]
    )


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float32(), 3), pa.large_list(pa.float64()), pa.list_(pa.float64())]
)
def test_any_kind_of_list_will_do(kind: pa.DataType) -> None:
    seen = pa.array(steps()["observation"], kind)
    pq.write_table(pa.table(steps(observation=seen)), "steps.parquet")
    assert datasets.load("steps.parquet").checksum() == expected().checksum()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"goal": [None] * 10}, "the column goal must hold lists of numbers, not null"),
        ({"observation": [[1.0]] * 9 + [[1.0, 2.0]]}, "lists of the column observation must all"),
        ({"observation": [1.0] * 10}, "the column observation must hold lists of numbers, not d"),
        ({"achieved": [["a", "b"]] * 10}, "must hold lists of numbers, not of string"),
        ({"episode": [None] + [1] * 9}, "the column episode is empty in 1 rows"),
        ({"episode": range(10)}, "episode 0 has 0 actions"),
        ({"action": [None] + [[0.0, 0.0]] * 9}, "actions contains 2 values that are not finite"),
        ({"goal": [[1.0]] * 10}, "goals have 1 numbers, but achieved goals have 2"),
    ],
)
def test_parquet_that_does_not_fit_is_refused(changed: dict, message: str) -> None:
    pq.write_table(pa.table(steps(**changed)), "steps.parquet")
    with pytest.raises(GoatError, match=rf"^steps\.parquet: .*{message}"):
        datasets.load("steps.parquet")


def test_a_missing_column_is_named() -> None:
    table = pa.table(steps()).drop_columns(["goal"])
    pq.write_table(table, "steps.parquet")
    with pytest.raises(
        GoatError, match="it is missing the column goal; a dataset has episode, obs"
    ):
        datasets.load("steps.parquet")
    pq.write_table(pa.table(steps()).slice(0, 0), "empty.parquet")
    with pytest.raises(GoatError, match="it has no rows"):
        datasets.load("empty.parquet")


# robomimic


def robomimic(path: str = "demos.hdf5", following: bool = True, images: bool = True) -> None:
    seen, actions = trajectories()
    with h5py.File(path, "w") as file:
        for number, (one, done) in enumerate(zip(seen, actions, strict=True)):
            demo = file.create_group(f"data/demo_{9 + number}")  # 9, 10, 11: not in text order
            demo["actions"] = done if following else np.concatenate([done, [[9.0, 9.0]]])
            for part, rows in (("obs", one[:-1] if following else one), ("next_obs", one[1:])):
                if part == "obs" or following:
                    demo[f"{part}/place"], demo[f"{part}/arm"] = rows[:, 2:], rows[:, :2]
                if images and part == "obs":
                    demo["obs/camera"] = np.zeros((len(rows), 4, 4, 3), np.uint8)
            demo["dones"] = np.arange(len(done)) == len(done) - 1


@pytest.mark.parametrize("following", [True, False])
def test_demonstrations_are_read(following: bool) -> None:
    """Keys in alphabetical order: arm, then place."""
    robomimic(following=following)
    seen, actions = trajectories()
    ends = np.stack([each[-1] for each in seen])
    loaded = datasets.load("demos.hdf5")
    assert loaded.checksum() == make_episodes(seen, seen, actions, ends).checksum()


def crafted(change) -> None:
    robomimic()
    with h5py.File("demos.hdf5", "a") as file:
        change(file)


def declares_too_much(file: h5py.File) -> None:
    del file["data/demo_9/actions"]
    file.create_dataset("data/demo_9/actions", (2**45, 2), "f4", chunks=(1, 2))


def numbers_of_another_file(file: h5py.File) -> None:
    demo = file["data/demo_9"]
    shape, kind = demo["actions"].shape, demo["actions"].dtype
    Path("secret").write_bytes(bytes(demo["actions"].nbytes))
    del demo["actions"]
    demo.create_dataset("actions", shape, kind, external=[("secret", 0, h5py.h5f.UNLIMITED)])


def other_keys(file: h5py.File) -> None:
    del file["data/demo_10/obs/arm"]


def no_demonstrations(file: h5py.File) -> None:
    for name in list(file["data"]):
        del file["data"][name]


def only_images(file: h5py.File) -> None:
    for key in ("arm", "place"):
        del file[f"data/demo_9/obs/{key}"]


def other_lengths(file: h5py.File) -> None:
    del file["data/demo_10/actions"]
    file["data/demo_10/actions"] = np.zeros((7, 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (numbers_of_another_file, "it takes its numbers from other files"),
        (declares_too_much, "declares .* GiB, more than half of this machine's memory"),
        (other_keys, "is damaged or not a robomimic dataset"),
        (no_demonstrations, "it has no demonstrations"),
        (only_images, "its observations are no rows of numbers"),
        (other_lengths, "observations of episode 1 has 2 rows, but its 7 actions need 8"),
        (lambda file: file.pop("data"), "is damaged or not a robomimic dataset"),
    ],
)
def test_demonstrations_that_do_not_fit_are_refused(change, message: str) -> None:
    crafted(change)
    with pytest.raises(GoatError, match=rf"demos\.hdf5.* {message}") as caught:
        datasets.load("demos.hdf5")
    assert "\n" not in str(caught.value)


# Damage


@pytest.mark.parametrize("name", ["steps.parquet", "demos.hdf5", "demos.h5"])
def test_a_damaged_file_is_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name.endswith("parquet"):
        pq.write_table(pa.table(steps()), name)
    else:
        robomimic(name)
    whole = Path(name).read_bytes()
    for content in (b"", b"text\n", whole[: len(whole) // 2], whole[:100], b"\0" * 2000):
        Path(name).write_bytes(content)
        assert goat("data", "info", name) == 2
        assert f"{name} is damaged or not" in error_line(capsys)


def test_parquet_that_declares_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.array(np.zeros(400_000)).dictionary_encode()  # a few bytes on the disk
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(400_000)), 2)
    columns = dict.fromkeys(("observation", "achieved", "action", "goal"), lists)
    pq.write_table(pa.table({"episode": rows[:200_000], **columns}), "steps.parquet")
    assert Path("steps.parquet").stat().st_size < 100_000
    ours = os.sysconf
    monkeypatch.setattr(os, "sysconf", lambda name: 2**10 if "PHYS" in name else ours(name))
    with pytest.raises(
        GoatError, match=r"it declares 0\.\d+ GiB, more than half of this machine's memory"
    ):
        datasets.load("steps.parquet")
