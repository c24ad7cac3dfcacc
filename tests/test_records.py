"""Records: raw episodes on disk, found again by the configuration that made them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from goatrl.benchmark import records
from goatrl.benchmark.records import Cell, CellConfig
from goatrl.evaluate import SCHEMA
from goatrl.types import GoatError, Spec

CONFIG = CellConfig(
    group="pointreach-expert-10",
    algorithm="bc",
    hyperparameters={"learning_rate": 5e-4, "size": 5, "tanh": True, "kind": "q", "tau": None},
    spec=Spec(2, 2, 2, 49, 1.0),
    checksum="ab12",
    seeds=(4, 7),
    updates=20,
    batch_size=8,
)
OTHERS = {
    "group": "pointreach-non-expert-10",
    "algorithm": "goat",
    "hyperparameters": {**CONFIG.hyperparameters, "learning_rate": 5.0001e-4},
    "spec": dataclasses.replace(CONFIG.spec, goal_threshold=0.5),
    "checksum": "ab13",
    "seeds": (4, 8),
    "updates": 21,
    "batch_size": 9,
}
ABOUT = {"versions": {"jax": "1"}, "seconds": 1.5}


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


def test_a_record_comes_back(tmp_path: Path) -> None:
    records.write(tmp_path, CONFIG, TABLE, ABOUT)
    cell = records.read(tmp_path, CONFIG)
    assert cell is not None
    assert cell.config == CONFIG
    assert dict(cell.about) == ABOUT
    assert cell.episodes.equals(TABLE)
    assert cell.episodes.schema.equals(SCHEMA)
    assert [path.name for path in tmp_path.iterdir()] == [CONFIG.path(tmp_path).name]


def test_the_name_says_what_is_inside(tmp_path: Path) -> None:
    name = CONFIG.path(tmp_path).name
    assert name.startswith("pointreach-expert-10--bc--")
    assert name.endswith(".parquet")
    assert CONFIG.path(tmp_path).parent == tmp_path


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(CellConfig)])
def test_another_configuration_has_another_path(tmp_path: Path, field: str) -> None:
    other = dataclasses.replace(CONFIG, **{field: OTHERS[field]})
    assert other.path(tmp_path) != CONFIG.path(tmp_path)
    records.write(tmp_path, CONFIG, TABLE, ABOUT)
    assert records.read(tmp_path, other) is None
    records.write(tmp_path, other, TABLE.slice(1), ABOUT)
    assert {cell.config.path(tmp_path) for cell in records.read_all(tmp_path)} == {CONFIG.path(tmp_path), other.path(tmp_path)}
    kept = records.read(tmp_path, CONFIG)
    assert kept is not None
    assert kept.episodes.num_rows == len(ROWS)


def test_the_order_of_hyperparameters_does_not_matter(tmp_path: Path) -> None:
    turned = dict(reversed(CONFIG.hyperparameters.items()))
    assert dataclasses.replace(CONFIG, hyperparameters=turned).path(tmp_path) == CONFIG.path(tmp_path)


def test_a_configuration_that_was_read_finds_its_own_record(tmp_path: Path) -> None:
    records.write(tmp_path, CONFIG, TABLE, ABOUT)
    (cell,) = records.read_all(tmp_path)
    assert cell.config.path(tmp_path) == CONFIG.path(tmp_path)


def test_no_record_and_no_folder(tmp_path: Path) -> None:
    assert records.read(tmp_path / "none", CONFIG) is None
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(GoatError, match="no records in"):
            records.read_all(folder)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    records.write(tmp_path, CONFIG, TABLE, ABOUT)
    path = CONFIG.path(tmp_path)
    content = path.read_bytes()
    cuts = [content[:length] for length in (0, 1, 4, len(content) // 2, len(content) - 5, len(content) - 1)]
    for damaged in (*cuts, b"text", b"PAR1" * 20, content[: len(content) // 2] + b"\0" * 100 + content[-100:]):
        path.write_bytes(damaged)
        for read in (lambda: records.read(tmp_path, CONFIG), lambda: records.read_all(tmp_path)):
            with pytest.raises(GoatError, match=r"\.parquet is damaged or not a record .*delete it"):
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
        {b"goatrl": b'{"config": {"spec": 3, "seeds": []}}'},
        {b"goatrl": json.dumps({"config": dataclasses.asdict(CONFIG) | {"later": 1}}).encode()},
        not_a_dictionary("3"),
        not_a_dictionary("null"),
    ],
    ids=str,
)
def test_a_parquet_file_of_something_else_is_refused(tmp_path: Path, metadata: dict | None) -> None:
    pq.write_table(TABLE.replace_schema_metadata(metadata), CONFIG.path(tmp_path))
    with pytest.raises(GoatError, match="damaged or not a record"):
        records.read(tmp_path, CONFIG)


def test_per_seed_averages_the_episodes_of_a_task() -> None:
    cell = Cell(CONFIG, {}, TABLE)
    np.testing.assert_array_equal(cell.per_seed("success", "R10"), [0.5, 1.0])
    np.testing.assert_array_equal(cell.per_seed("return", "R10"), [5.0, 25.0])
    np.testing.assert_array_equal(cell.per_seed("success", "R20"), [0.0, 1.0])
    np.testing.assert_array_equal(cell.per_seed("return", "R20"), [1.0, 5.0])


def test_per_seed_follows_the_order_of_the_seeds_and_not_of_the_rows() -> None:
    turned = dataclasses.replace(CONFIG, seeds=(7, 4))
    np.testing.assert_array_equal(Cell(turned, {}, TABLE).per_seed("return", "R10"), [25.0, 5.0])
    mixed = TABLE.take([5, 3, 1, 0, 4, 2])
    np.testing.assert_array_equal(Cell(CONFIG, {}, mixed).per_seed("return", "R10"), [5.0, 25.0])


def test_per_seed_over_some_episodes() -> None:
    cell = Cell(CONFIG, {}, TABLE)
    first = cell.column("episode") == 0
    np.testing.assert_array_equal(cell.per_seed("return", "R10", where=first), [10.0, 20.0])
    np.testing.assert_array_equal(cell.per_seed("return", "R10", where=~first), [0.0, 30.0])


def test_columns_are_arrays() -> None:
    cell = Cell(CONFIG, {}, TABLE)
    assert cell.column("success").dtype == bool
    assert cell.column("goal").shape == (6, 2)
    assert cell.column("task").tolist() == [r["task"] for r in ROWS]
