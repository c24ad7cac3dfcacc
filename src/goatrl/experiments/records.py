"""Records: one Parquet file per cell, raw episodes inside, the configuration that made them in its
metadata and its name.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from goatrl.disk.files import locked, write_atomically
from goatrl.types import GoatError, Spec

_METADATA = b"goatrl"
CURVE, TIMING = (
    b"goatrl curve",
    b"goatrl timing",
)  # what records of fine-tuning and of times have; they may lie in the same folder
_FORMAT = 1


@dataclasses.dataclass(frozen=True)
class CellConfig:
    """Everything that decides a cell's numbers but the seeds. Another configuration has another
    name: none overwrites another.
    """

    group: str
    algorithm: str
    source: str  # SHA-256 of the user's file, for an algorithm that comes from one
    hyperparameters: Mapping[str, Any]
    spec: Spec
    checksum: str  # of the dataset
    evaluation: str  # checksum of the tasks
    updates: int
    batch_size: int

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> CellConfig:
        return cls(**{**stored, "spec": Spec(**stored["spec"])})

    def path(self, folder: Path) -> Path:
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return folder / f"{self.group}--{self.algorithm}--{digest}.parquet"


@dataclasses.dataclass(frozen=True)
class Training:
    """How some seeds of a cell came to be."""

    seeds: tuple[int, ...]
    versions: Mapping[str, str]
    members: int  # how many agents trained together
    seconds: float
    curves: Mapping[str, Sequence[Sequence[float]]] = dataclasses.field(
        default_factory=dict
    )  # metric → for each seed, its course

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Training:
        return cls(**{**stored, "seeds": tuple(stored["seeds"])})

    def only(self, seeds: Collection[int]) -> Training:
        """The same as far as these seeds are concerned."""
        places = [place for place, seed in enumerate(self.seeds) if seed in seeds]
        curves = {
            name: [courses[place] for place in places] for name, courses in self.curves.items()
        }
        return dataclasses.replace(
            self, seeds=tuple(self.seeds[place] for place in places), curves=curves
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Cell:
    """The raw episodes of one algorithm on one group, and the column of the suite that it fills."""

    suite: str
    label: str
    config: CellConfig
    trainings: tuple[Training, ...]
    episodes: pa.Table

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(sorted(seed for training in self.trainings for seed in training.seeds))

    def grown(self, other: Cell) -> Cell:
        """This cell with those seeds of another one that it does not have; from now on it fills the
        column that the other does.
        """
        new = set(other.seeds) - set(self.seeds)
        trainings = [
            training.only(new) for training in other.trainings if not new.isdisjoint(training.seeds)
        ]
        episodes = other.episodes.filter(np.isin(other.column("seed"), list(new)))
        return dataclasses.replace(
            other,
            trainings=(*self.trainings, *trainings),
            episodes=pa.concat_tables([self.episodes, episodes]),
        )

    def per_seed(self, metric: str, task: str, where: np.ndarray | None = None) -> np.ndarray:
        """Mean of `metric` for each seed, over the episodes of `task` (or over those that `where`
        marks).
        """
        chosen = self.column("task") == task
        if where is not None:
            chosen = chosen & where
        seeds, values = self.column("seed"), self.column(metric).astype(float)
        return np.array([values[chosen & (seeds == seed)].mean() for seed in self.seeds])

    def column(self, name: str) -> np.ndarray:
        return np.asarray(self.episodes.column(name).to_pylist())


def add(folder: Path, cell: Cell) -> Cell:
    """Record a cell: the seeds of it that its folder does not hold by now. What others have
    recorded since it was planned stays.

    Returns the whole cell as it is on disk.
    """
    with locked(folder):
        there = read(folder, cell.config)
        whole = cell if there is None else there.grown(cell)
        _write(folder, whole)
    return whole


def _write(folder: Path, cell: Cell) -> None:
    about = {
        field.name: getattr(cell, field.name)
        for field in dataclasses.fields(cell)
        if field.name != "episodes"
    }
    about["config"], about["trainings"] = (
        dataclasses.asdict(cell.config),
        [dataclasses.asdict(each) for each in cell.trainings],
    )
    table = cell.episodes.replace_schema_metadata(
        {_METADATA: json.dumps({"format": _FORMAT, **about}).encode()}
    )
    # Paths are most of a record; with the bytes of their floats sorted by place they compress to
    # half.
    encoding = {"path.list.element": "BYTE_STREAM_SPLIT"}
    write_atomically(
        cell.config.path(folder),
        lambda file: pq.write_table(
            table, file, compression="zstd", use_dictionary=False, column_encoding=encoding
        ),
    )


def read(folder: Path, config: CellConfig) -> Cell | None:
    """The record of a configuration, if there is one."""
    path = config.path(folder)
    return _read_file(path) if path.exists() else None


def read_all(folder: Path) -> list[Cell]:
    return [_read_file(path) for path in files(folder)]


def files(folder: Path, kind: bytes = _METADATA) -> list[Path]:
    """The records of a kind, and what is of no kind, so that whoever reads it says what is wrong
    with it.
    """
    if (folder / "config.json").exists():
        raise GoatError(f"{folder} is a run, not a folder of records; `goat bench` makes records")
    others = {_METADATA, CURVE, TIMING} - {kind}
    return [path for path in sorted(folder.glob("*.parquet")) if not others & _metadata(path)]


def file_name(label: str) -> str:
    return re.sub(r"[^\w+().,=-]", "_", label)


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """A record, opened once: by its path Arrow would open it twice, and it may be another one by
    then.

    Whatever is wrong with it becomes one line that names it.
    """
    try:
        with path.open("rb") as file:
            yield file
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise GoatError(
            f"{path} is damaged or not a record ({type(error).__name__}); delete it and run the "
            "suite again"
        ) from error


def about(path: Path, table: pa.Table, kind: bytes, version: int) -> dict[str, Any]:
    """What a record says about itself."""
    found: dict[str, Any] = json.loads(table.schema.metadata[kind])
    if found.pop("format") != version:
        raise GoatError(
            f"{path} was written by another version of goatrl; read it with that one, or use "
            "another folder"
        )
    return found


def _metadata(path: Path) -> set[bytes]:
    try:
        return set(pq.read_schema(path).metadata or ())
    except (pa.ArrowException, OSError):
        return set()


def _read_file(path: Path) -> Cell:
    with reading(path) as file:
        table = pq.read_table(file)
        stored = about(path, table, _METADATA, _FORMAT)
        config = CellConfig.from_json(stored.pop("config"))
        trainings = tuple(Training.from_json(each) for each in stored.pop("trainings"))
        cell = Cell(
            config=config, trainings=trainings, episodes=table.replace_schema_metadata(), **stored
        )
        if set(table.column("seed").to_pylist()) != set(cell.seeds):
            raise ValueError("seeds and episodes disagree")
        return cell
