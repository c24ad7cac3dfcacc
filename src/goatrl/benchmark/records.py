"""Records: one Parquet file per cell, raw episodes inside, the configuration that made them in its metadata and its name."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from goatrl.data.storage import write_atomically
from goatrl.types import GoatError, Spec

_METADATA = b"goatrl"


@dataclasses.dataclass(frozen=True)
class CellConfig:
    """Everything that decides a cell's numbers. Another configuration has another name, so none overwrites another."""

    group: str
    algorithm: str
    hyperparameters: Mapping[str, Any]
    spec: Spec
    checksum: str
    seeds: tuple[int, ...]
    updates: int
    batch_size: int

    def path(self, folder: Path) -> Path:
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return folder / f"{self.group}--{self.algorithm}--{hashlib.sha256(text.encode()).hexdigest()[:12]}.parquet"


@dataclasses.dataclass(frozen=True)
class Cell:
    """The raw episodes of one algorithm on one group."""

    config: CellConfig
    about: Mapping[str, Any]
    episodes: pa.Table

    def per_seed(self, metric: str, task: str, where: np.ndarray | None = None) -> np.ndarray:
        """Mean of `metric` for each seed, over the episodes of `task` (or over those that `where` marks)."""
        chosen = self.column("task") == task
        if where is not None:
            chosen = chosen & where
        seeds, values = self.column("seed"), self.column(metric).astype(float)
        return np.array([values[chosen & (seeds == seed)].mean() for seed in self.config.seeds])

    def column(self, name: str) -> np.ndarray:
        return np.asarray(self.episodes.column(name).to_pylist())


def write(folder: Path, config: CellConfig, episodes: pa.Table, about: Mapping[str, Any]) -> None:
    text = json.dumps({"config": dataclasses.asdict(config), **about})
    table = episodes.replace_schema_metadata({_METADATA: text.encode()})
    # Paths are most of a record; with the bytes of their floats sorted by place they compress to half.
    encoding = {"path.list.element": "BYTE_STREAM_SPLIT"}
    write_atomically(
        config.path(folder),
        lambda file: pq.write_table(table, file, compression="zstd", use_dictionary=False, column_encoding=encoding),
    )


def read(folder: Path, config: CellConfig) -> Cell | None:
    """The record of a configuration, if there is one."""
    path = config.path(folder)
    return _read_file(path) if path.exists() else None


def read_all(folder: Path) -> list[Cell]:
    found = [_read_file(path) for path in sorted(folder.glob("*.parquet"))]
    if not found:
        raise GoatError(f"no records in {folder}; make some with `goat bench`")
    return found


def _read_file(path: Path) -> Cell:
    try:
        table = pq.read_table(path)
        about = json.loads(table.schema.metadata[_METADATA])
        stored = about.pop("config")
        stored["spec"], stored["seeds"] = Spec(**stored["spec"]), tuple(stored["seeds"])
        return Cell(CellConfig(**stored), about, table)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise GoatError(f"{path} is damaged or not a record ({type(error).__name__}); delete it and run the suite again") from error
