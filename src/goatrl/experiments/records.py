"""Records: one Parquet file per cell, raw episodes inside, the configuration that made them in its
metadata and its name.
"""

from __future__ import annotations

import dataclasses
import io
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from goatrl.data.sizes import check_fits_memory, of_parquet
from goatrl.disk import checksum
from goatrl.disk.files import locked, write_atomically
from goatrl.disk.identity import Identity
from goatrl.disk.reading import json_of, parquet, typed, unusable
from goatrl.evaluation.episodes import as_episodes
from goatrl.types import GoatError, Spec

_METADATA = b"goatrl"
# Records of all kinds may lie in the same folder.
CELL, CURVE, TIMING = "cell", "curve", "timing"
_SCHEMA_1 = {_METADATA: CELL, b"goatrl curve": CURVE, b"goatrl timing": TIMING}


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
    revisions: Mapping[str, int] = dataclasses.field(default_factory=dict)  # of the algorithm
    defaults: tuple[str, ...] = ()  # the hyper-parameters that are at their default

    @property
    def identity(self) -> Identity:
        return Identity(CELL, dataclasses.asdict(self))

    @classmethod
    def from_identity(cls, identity: Identity) -> CellConfig:
        return typed(cls, identity.about)

    @cached_property
    def composition(self) -> Identity:
        """Which algorithm it is, with which numbers, whatever it was trained on."""
        return composition(self.algorithm, self.hyperparameters, self.defaults)

    def path(self, folder: Path) -> Path:
        return folder / f"{self.group}--{self.algorithm}--{self.identity.digest()}.parquet"


def composition(
    algorithm: str, hyperparameters: Mapping[str, Any], defaults: Sequence[str]
) -> Identity:
    about = {"algorithm": algorithm, "hyperparameters": hyperparameters, "defaults": defaults}
    return Identity("composition", about)


@dataclasses.dataclass(frozen=True)
class Training:
    """How some seeds of a cell came to be."""

    seeds: tuple[int, ...]
    versions: Mapping[str, str]
    members: int  # how many agents trained together
    seconds: float
    curves: Mapping[str, Sequence[Sequence[float]]] = dataclasses.field(
        default_factory=dict
    )  # metric → for each seed, its learning curve

    @classmethod
    def from_json(cls, stored: Any) -> Training:
        return typed(cls, stored)

    def only(self, seeds: Collection[int]) -> Training:
        """The same as far as these seeds are concerned."""
        places = [place for place, seed in enumerate(self.seeds) if seed in seeds]
        curves = {name: [lines[place] for place in places] for name, lines in self.curves.items()}
        return dataclasses.replace(
            self, seeds=tuple(self.seeds[place] for place in places), curves=curves
        )


class _Names(TypedDict):
    """What a record says of its cell beside its identity."""

    suite: str
    label: str


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
        # Parquet names parts of lists otherwise; the same rows are to be the same bytes.
        mine = self.episodes.cast(other.episodes.schema)
        return dataclasses.replace(
            other,
            trainings=(*self.trainings, *trainings),
            episodes=pa.concat_tables([mine, episodes]).combine_chunks(),
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
        # Arrow's numbers and words as they lie are the same array a hundred times as fast.
        found = self.episodes.column(name)
        if not found.null_count:
            if pa.types.is_string(found.type):
                words = found.combine_chunks().dictionary_encode()
                return np.asarray(words.dictionary.to_pylist())[words.indices.to_numpy()]
            if pa.types.is_floating(found.type):
                return found.to_numpy().astype(float)
            if pa.types.is_integer(found.type) or pa.types.is_boolean(found.type):
                return found.to_numpy()
        return np.asarray(found.to_pylist())


def add(folder: Path, cell: Cell) -> Cell:
    """Record a cell: the seeds of it that its folder does not hold by now. What others have
    recorded since it was planned stays.

    Returns the whole cell as it is on disk.
    """
    with locked(folder):
        path = find(folder, cell.config)
        whole = cell if path is None else _read_file(path).grown(cell)
        write(path or whole.config.path(folder), whole)
    return whole


def write(path: Path, cell: Cell) -> None:
    trainings = [dataclasses.asdict(each) for each in cell.trainings]
    more = {"suite": cell.suite, "label": cell.label, "trainings": trainings}
    write_table(path, cell.episodes, cell.config.identity, more)


def read(folder: Path, config: CellConfig) -> Cell | None:
    """The record of a configuration, if there is one."""
    path = find(folder, config)
    return None if path is None else _read_file(path)


def find(folder: Path, config: CellConfig) -> Path | None:
    """Where a configuration is recorded: by its name, or by what records say about themselves,
    since an older version may have given it another name.

    Its name leaves out what is at its default: a record from before a default changed is refused.
    """
    path = config.path(folder)
    if path.exists():
        _identity(path).require(config.identity, str(path))
        return path
    others = folder.glob(f"{config.group}--{config.algorithm}--*.parquet")
    same = (each for each in sorted(others) if not _identity(each).diff(config.identity))
    return next(same, None)


def _identity(path: Path) -> Identity:
    with reading(path) as file:
        return about(path, pq.read_schema(file), CELL)[0]


def read_all(folder: Path) -> list[Cell]:
    return [_read_file(path) for path in files(folder)]


def files(folder: Path, kind: str = CELL) -> list[Path]:
    """The records of a kind, and what is of no kind, so that whoever reads it says what is wrong
    with it.
    """
    if (folder / "config.json").exists():
        raise GoatError(
            f"{folder} is a run, not a folder of records; create records with `goat bench`"
        )
    return [path for path in sorted(folder.glob("*.parquet")) if _kind(path) in (kind, None)]


def file_name(label: str) -> str:
    return re.sub(r"[^\w+().,=-]", "_", label)


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """A record, opened once: by its path Arrow would open it twice, and it may be another one by
    then.

    Whatever is wrong with it becomes one line that names it.
    """
    if not path.is_file():  # a pipe would be waited for
        raise GoatError(f"{path} is no file; delete it and rerun the suite")
    try:
        with path.open("rb") as file:
            if not checksum.is_intact(file):  # Arrow may crash on what has changed
                raise GoatError(
                    f"{path} has changed since it was written (its checksum differs); delete it "
                    "and rerun the suite"
                )
            yield file
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        damaged = (
            f"{path} is damaged or not a record ({type(error).__name__}); delete it and rerun "
            "the suite"
        )
        raise unusable(path, error, damaged) from error


@contextmanager
def opened(
    path: Path, kind: str, beside: tuple[str, ...] = ()
) -> Iterator[tuple[Identity, dict[str, Any], pa.Table]]:
    """A record of any kind: what decides it, what else it says, and its rows."""
    with reading(path) as file:
        rows = parquet(file)
        check_fits_memory(of_parquet(rows), path)
        table = rows.read(use_threads=False)
        yield *about(path, table.schema, kind, beside), table.replace_schema_metadata()


def write_table(path: Path, rows: pa.Table, identity: Identity, more: Mapping[str, Any]) -> None:
    """A record of any kind: rows, what decides them, and what else there is to say."""
    content = json.dumps(checksum.with_place({**identity.to_json(), **more})).encode()
    table = rows.replace_schema_metadata({_METADATA: content})
    # Paths are most of a cell; with the bytes of their floats sorted by place they compress to
    # half.
    split = {"path.list.element": "BYTE_STREAM_SPLIT"} if "path" in rows.column_names else None
    buffer = io.BytesIO()
    pq.write_table(
        table, buffer, compression="zstd", use_dictionary=split is None, column_encoding=split
    )
    write_atomically(path, checksum.sealed(buffer.getvalue()))


def about(
    path: Path, schema: pa.Schema, kind: str, beside: tuple[str, ...] = ()
) -> tuple[Identity, dict[str, Any]]:
    """What a record says about itself: what decides it, and the rest."""
    ((_, stored),) = contents(schema)
    identity = Identity.from_json(stored, kind, path, beside)
    heading = ("format", *identity.to_json())
    return identity, {name: value for name, value in stored.items() if name not in heading}


def contents(schema: pa.Schema) -> list[tuple[str, dict[str, Any]]]:
    """Kind and content, of a record of whichever schema; none of another file."""
    found = schema.metadata or {}
    return [
        (stored.get("kind", kind), stored)
        for key, kind in _SCHEMA_1.items()
        if key in found
        for stored in [checksum.without_place(json_of(found[key]))]
    ]


def _kind(path: Path) -> str | None:
    try:
        with reading(path) as file:
            found = contents(pq.read_schema(file))
    except GoatError:
        return None
    return found[0][0] if found else None


def _read_file(path: Path) -> Cell:
    with opened(path, CELL) as (identity, stored, episodes):
        config = CellConfig.from_identity(identity)
        trainings = tuple(Training.from_json(each) for each in stored.pop("trainings"))
        names = typed(_Names, stored)
        cell = Cell(config=config, trainings=trainings, episodes=as_episodes(episodes), **names)
        if set(episodes.column("seed").to_pylist()) != set(cell.seeds):
            raise ValueError("seeds and episodes disagree")
        return cell
