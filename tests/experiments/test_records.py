"""Records: raw episodes on disk, found again by the configuration that made them."""

from __future__ import annotations

import dataclasses
import errno
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from goatrl.disk import checksum
from goatrl.evaluation.episodes import SCHEMA
from goatrl.experiments import records
from goatrl.experiments.records import Cell, CellConfig, Training
from goatrl.types import GoatError, Spec

CONFIG = CellConfig(
    group="pointreach-expert-10",
    algorithm="bc",
    source="",
    hyperparameters={"learning_rate": 5e-4, "size": 5, "tanh": True, "kind": "q", "tau": None},
    spec=Spec(2, 2, 2, 49, 1.0),
    checksum="ab12",
    evaluation="cd34",
    updates=20,
    batch_size=8,
    revisions={"bc": 1},
)
OTHERS = {
    "group": "pointreach-non-expert-10",
    "algorithm": "goat",
    "source": "ef56",
    "hyperparameters": {**CONFIG.hyperparameters, "learning_rate": 5.0001e-4},
    "spec": dataclasses.replace(CONFIG.spec, goal_threshold=0.5),
    "checksum": "ab13",
    "evaluation": "cd35",
    "updates": 21,
    "batch_size": 9,
    "revisions": {"bc": 2},
}
TRAINING = Training((4, 7), {"jax": "1", "device": "cpu"}, 2, 1.5)


def row(task: str, seed: int, episode: int, success: bool, steps: int) -> dict:
    point = {"start": [0.0, 0.0], "goal": [float(episode), -1.0], "path": [0.0, 0.0, 1.0, 1.0]}
    return point | {
        "task": task,
        "split": "iid",
        "seed": seed,
        "episode": episode,
        "success": success,
        "return": steps,
        "final_distance": 0.25,
    }


ROWS = [
    row("R10", 4, 0, True, 10),
    row("R10", 4, 1, False, 0),
    row("R10", 7, 0, True, 20),
    row("R10", 7, 1, True, 30),
    row("R20", 4, 0, False, 1),
    row("R20", 7, 0, True, 5),
]
TABLE = pa.Table.from_pylist(ROWS, schema=SCHEMA)
CELL = Cell("pointreach", "Goal BC", CONFIG, (TRAINING,), TABLE)


def test_a_record_comes_back(tmp_path: Path) -> None:
    records.add(tmp_path, CELL)
    cell = records.read(tmp_path, CONFIG)
    assert cell is not None
    assert cell.config == CONFIG
    assert (cell.suite, cell.label) == ("pointreach", "Goal BC")
    assert cell.trainings == (TRAINING,)
    assert cell.seeds == (4, 7)
    assert cell.episodes.equals(TABLE)
    assert cell.episodes.schema.equals(SCHEMA)
    assert {path.name for path in tmp_path.iterdir()} == {CONFIG.path(tmp_path).name, ".lock"}
    assert records.files(tmp_path) == [CONFIG.path(tmp_path)], "the lock is no record"


def test_the_name_says_what_is_inside(tmp_path: Path) -> None:
    name = CONFIG.path(tmp_path).name
    assert name.startswith("pointreach-expert-10--bc--")
    assert name.endswith(".parquet")
    assert CONFIG.path(tmp_path).parent == tmp_path


@pytest.mark.parametrize("field", OTHERS)
def test_another_configuration_has_another_path(tmp_path: Path, field: str) -> None:
    other = dataclasses.replace(CONFIG, **{field: OTHERS[field]})
    assert other.path(tmp_path) != CONFIG.path(tmp_path)
    records.add(tmp_path, CELL)
    assert records.read(tmp_path, other) is None
    records.add(tmp_path, dataclasses.replace(CELL, config=other, episodes=TABLE.slice(1)))
    assert {cell.config.path(tmp_path) for cell in records.read_all(tmp_path)} == {
        CONFIG.path(tmp_path),
        other.path(tmp_path),
    }
    kept = records.read(tmp_path, CONFIG)
    assert kept is not None
    assert kept.episodes.num_rows == len(ROWS)


def test_all_that_decides_is_tried_above() -> None:
    assert {field.name for field in dataclasses.fields(CellConfig)} - {"defaults"} == set(OTHERS)


def test_the_order_of_hyperparameters_does_not_matter(tmp_path: Path) -> None:
    turned = dict(reversed(CONFIG.hyperparameters.items()))
    assert dataclasses.replace(CONFIG, hyperparameters=turned).path(tmp_path) == CONFIG.path(
        tmp_path
    )


def test_a_configuration_that_was_read_finds_its_own_record(tmp_path: Path) -> None:
    records.add(tmp_path, CELL)
    (cell,) = records.read_all(tmp_path)
    assert cell.config.path(tmp_path) == CONFIG.path(tmp_path)


def test_no_record_and_no_folder(tmp_path: Path) -> None:
    assert records.read(tmp_path / "none", CONFIG) is None
    assert records.read_all(tmp_path) == records.read_all(tmp_path / "none") == []


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    records.add(tmp_path, CELL)
    path = CONFIG.path(tmp_path)
    content = path.read_bytes()
    cuts = [
        content[:length]
        for length in (0, 1, 4, len(content) // 2, len(content) - 5, len(content) - 1)
    ]
    for damaged in (
        *cuts,
        b"text",
        b"PAR1" * 20,
        content[: len(content) // 2] + b"\0" * 100 + content[-100:],
    ):
        path.write_bytes(damaged)
        for read in (lambda: records.read(tmp_path, CONFIG), lambda: records.read_all(tmp_path)):
            with pytest.raises(
                GoatError,
                match=r"\.parquet (is damaged or not a record|has changed since) .*delete it",
            ):
                read()


def not_a_dictionary(text: str):
    return pytest.param({b"goatrl": text.encode()})


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {b"pandas": b"{}"},
        {b"goatrl": b"{"},
        {b"goatrl": b"\xff"},
        {b"goatrl": b"[]"},
        {b"goatrl": b"{}"},
        {b"goatrl": b'{"config": 3}'},
        {b"goatrl": b'{"format": 1, "config": {"spec": 3}}'},
        {
            b"goatrl": json.dumps(
                {"format": 1, "config": dataclasses.asdict(CONFIG) | {"later": 1}}
            ).encode()
        },
        not_a_dictionary("3"),
        not_a_dictionary("null"),
    ],
    ids=str,
)
def test_a_parquet_file_of_something_else_is_refused(tmp_path: Path, metadata: dict | None) -> None:
    pq.write_table(TABLE.replace_schema_metadata(metadata), CONFIG.path(tmp_path))
    with pytest.raises(GoatError, match="damaged or not a record"):
        records.read_all(tmp_path)


def test_per_seed_averages_the_episodes_of_a_task() -> None:
    cell = CELL
    np.testing.assert_array_equal(cell.per_seed("success", "R10"), [0.5, 1.0])
    np.testing.assert_array_equal(cell.per_seed("return", "R10"), [5.0, 25.0])
    np.testing.assert_array_equal(cell.per_seed("success", "R20"), [0.0, 1.0])
    np.testing.assert_array_equal(cell.per_seed("return", "R20"), [1.0, 5.0])


def test_per_seed_follows_the_order_of_the_seeds_and_not_of_the_rows() -> None:
    mixed = dataclasses.replace(CELL, episodes=TABLE.take([5, 3, 1, 0, 4, 2]))
    np.testing.assert_array_equal(mixed.per_seed("return", "R10"), [5.0, 25.0])


def test_a_cell_grows_by_seeds() -> None:
    more = Training((2,), {"jax": "2", "device": "gpu"}, 1, 3.0)
    rows = [row("R10", 2, 0, True, 7), row("R20", 2, 0, True, 8)]
    grown = CELL.grown(
        Cell(
            "other suite", "other label", CONFIG, (more,), pa.Table.from_pylist(rows, schema=SCHEMA)
        )
    )
    assert grown.seeds == (2, 4, 7)
    assert grown.trainings == (TRAINING, more)
    np.testing.assert_array_equal(grown.per_seed("return", "R10"), [7.0, 5.0, 25.0])
    assert grown.config == CONFIG
    assert (grown.suite, grown.label) == ("other suite", "other label"), (
        "of the suite that was run last"
    )


def test_a_seed_that_is_recorded_stays_as_it_is(tmp_path: Path) -> None:
    records.add(tmp_path, CELL)
    again = Training(
        (2, 4), {"jax": "2", "device": "gpu"}, 2, 3.0, {"loss": [[0.2, 0.1], [0.4, 0.3]]}
    )
    rows = [row("R10", 2, 0, True, 7), row("R10", 4, 0, True, 49), row("R10", 4, 1, True, 49)]
    whole = records.add(
        tmp_path,
        Cell("pointreach", "Goal BC", CONFIG, (again,), pa.Table.from_pylist(rows, schema=SCHEMA)),
    )
    cell = records.read(tmp_path, CONFIG)
    assert cell is not None
    assert cell.seeds == whole.seeds == (2, 4, 7)
    assert cell.episodes.equals(whole.episodes)
    assert cell.episodes.num_rows == len(ROWS) + 1
    np.testing.assert_array_equal(cell.per_seed("return", "R10"), [7.0, 5.0, 25.0])
    assert cell.trainings == (
        TRAINING,
        Training((2,), {"jax": "2", "device": "gpu"}, 2, 3.0, {"loss": [[0.2, 0.1]]}),
    )


def one_seed(seed: int) -> Cell:
    """A record of one episode, which knows its seed."""
    training = Training((seed,), {"jax": "1", "device": "cpu"}, 1, float(seed))
    return Cell(
        "pointreach",
        "Goal BC",
        CONFIG,
        (training,),
        pa.Table.from_pylist([row("R10", seed, 0, True, seed)], schema=SCHEMA),
    )


PROCESSES, EACH = 2, 40
ADD_SEEDS = """
import sys, time
from pathlib import Path
import test_records
from goatrl.experiments import records

folder, number = Path(sys.argv[1]), int(sys.argv[2])
(folder / f"ready{number}").touch()
while len(list(folder.glob("ready*"))) < test_records.PROCESSES:
    time.sleep(0.001)
for seed in range(number, test_records.PROCESSES * test_records.EACH, test_records.PROCESSES):
    records.add(folder, test_records.one_seed(seed))
"""


def test_processes_that_add_to_one_cell_at_the_same_time_lose_no_seed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ADD_SEEDS, str(tmp_path)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    }
    started = [
        subprocess.Popen([*command, str(number)], env=environment) for number in range(PROCESSES)
    ]
    while any(process.poll() is None for process in started):
        records.read_all(tmp_path)  # whole at any time, for those who only read
    assert [process.returncode for process in started] == [0] * PROCESSES
    cell = records.read(tmp_path, CONFIG)
    assert cell is not None
    seeds = list(range(PROCESSES * EACH))
    assert list(cell.seeds) == sorted(cell.column("seed").tolist()) == seeds
    np.testing.assert_array_equal(cell.per_seed("return", "R10"), seeds)


def test_a_folder_that_cannot_be_locked_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: object, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", refuse)
        with pytest.raises(
            GoatError,
            match=r"cannot lock .*\.lock: Function not implemented; choose a folder on a file "
            r"system",
        ):
            records.add(tmp_path, CELL)
    (tmp_path / "file").touch()
    with pytest.raises(GoatError, match=r"cannot write .*/file/below/\.lock: Not a directory"):
        records.add(tmp_path / "file" / "below", CELL)


def test_a_record_of_another_version_is_not_called_damaged(tmp_path: Path) -> None:
    records.add(tmp_path, CELL)
    path = CONFIG.path(tmp_path)
    about = checksum.without_place(json.loads(pq.read_table(path).schema.metadata[b"goatrl"]))
    pq.write_table(
        TABLE.replace_schema_metadata({b"goatrl": json.dumps(about | {"schema": 99}).encode()}),
        path,
    )
    with pytest.raises(
        GoatError,
        match=r"by a newer version of goatrl \(schema 99; this",
    ):
        records.read_all(tmp_path)


def test_seeds_without_episodes_are_noticed(tmp_path: Path) -> None:
    records.add(
        tmp_path,
        dataclasses.replace(CELL, trainings=(dataclasses.replace(TRAINING, seeds=(4, 7, 9)),)),
    )
    with pytest.raises(GoatError, match="damaged or not a record"):
        records.read(tmp_path, CONFIG)


def test_per_seed_over_some_episodes() -> None:
    cell = CELL
    first = cell.column("episode") == 0
    np.testing.assert_array_equal(cell.per_seed("return", "R10", where=first), [10.0, 20.0])
    np.testing.assert_array_equal(cell.per_seed("return", "R10", where=~first), [0.0, 30.0])


def test_columns_are_arrays() -> None:
    cell = CELL
    assert cell.column("success").dtype == bool
    assert cell.column("goal").shape == (6, 2)
    assert cell.column("task").tolist() == [r["task"] for r in ROWS]


def test_columns_are_as_python_has_them() -> None:
    """Kind by kind: those that Arrow hands over as they lie, and those that have gaps."""
    unequal = [{**each, "task": each["task"] * (place + 1)} for place, each in enumerate(ROWS)]
    gaps = [{**each, "split": None, "path": None} if each["seed"] == 4 else each for each in ROWS]
    for rows in (ROWS, unequal, gaps, ROWS[:0]):
        parts = [
            pa.Table.from_pylist(rows[part], schema=SCHEMA) for part in (slice(2), slice(2, 6))
        ]
        cell = dataclasses.replace(CELL, episodes=pa.concat_tables(parts))
        for name in SCHEMA.names:
            if rows is gaps and name == "path":  # there is no array of paths of which some lack
                continue
            python = np.asarray([each[name] for each in rows])
            found = cell.column(name)
            np.testing.assert_array_equal(found, python)
            assert found.dtype == python.dtype or not rows, name
