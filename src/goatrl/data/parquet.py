"""Datasets as Parquet: one row for every step.

episode       a number or a name: which episode the step belongs to
observation   a list of numbers
achieved      a list of numbers: what the observation achieves as a goal
action        a list of numbers; that of an episode's last step is not read
goal          a list of numbers: the goal that the episode was after at this step
terminated    optional, true at the last step if the environment ended the episode
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goatrl.data.sizes import check_fits_memory, of_parquet
from goatrl.disk.reading import parquet, unusable
from goatrl.episodes import make_episodes
from goatrl.types import Episodes, GoatError

COLUMNS = ("episode", "observation", "achieved", "action", "goal")


def load(path: Path) -> Episodes:
    """Episodes in the order in which they first appear; their steps in the order of rows."""
    try:
        return _read(path)
    except GoatError as error:
        raise GoatError(f"{path}: {error}") from None
    except Exception as error:  # a damaged file can fail in many ways
        damaged = (
            f"{path} is damaged or not Parquet ({type(error).__name__}); copy or make it again"
        )
        raise unusable(path, error, damaged) from error


def _read(path: Path) -> Episodes:
    # A name that many rows share is kept once, however long it is.
    with path.open("rb") as opened, parquet(opened, read_dictionary=["episode"]) as file:
        names = file.schema_arrow.names
        missing = [name for name in COLUMNS if name not in names]
        if missing:
            raise GoatError(
                f"it is missing the column {', '.join(missing)}; a dataset has {', '.join(COLUMNS)}"
            )
        wanted = [*COLUMNS, *(name for name in ("terminated",) if name in names)]
        check_fits_memory(of_parquet(file, wanted), "it")
        table = file.read(wanted, use_threads=False)
    if not len(table):
        raise GoatError("it has no rows")
    codes = table["episode"].unify_dictionaries().combine_chunks().dictionary_encode()
    if codes.null_count:
        raise GoatError(f"the column episode is empty in {codes.null_count} rows")
    number = np.asarray(codes.indices)
    order = np.argsort(number, kind="stable")
    lengths = np.bincount(number) - 1
    last = np.cumsum(lengths + 1) - 1
    rows = {name: _matrix(table[name], name)[order] for name in COLUMNS[1:]}
    ended = None
    if "terminated" in table.column_names:
        ended = np.asarray(pc.fill_null(table["terminated"], False))[order][last]
    return make_episodes(
        rows["observation"],
        rows["achieved"],
        rows["action"],
        rows["goal"],
        lengths=lengths,
        terminated=ended,
    )


def _matrix(column: pa.ChunkedArray, name: str) -> np.ndarray:
    """A column of lists of one length as rows; one that is missing is not a number."""
    array = column.combine_chunks()
    present = np.asarray(array.is_valid())
    kept = array.drop_null()
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(is_kind(array.type) for is_kind in kinds):
        raise GoatError(f"the column {name} must hold lists of numbers, not {array.type}")
    sizes = np.unique(np.asarray(pc.list_value_length(kept)))
    if len(sizes) != 1 or sizes[0] == 0:
        raise GoatError(f"the lists of the column {name} must all have the same length")
    values = kept.flatten()
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        raise GoatError(f"the column {name} must hold lists of numbers, not of {values.type}")
    rows = np.full((len(array), int(sizes[0])), np.nan)
    rows[present] = values.to_numpy(zero_copy_only=False).reshape(-1, int(sizes[0]))
    return rows
