"""Reading files that anybody may have written: whatever is wrong with one is said in one line."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
import pyarrow.parquet as pq

from goatrl.types import GoatError

Kind = TypeVar("Kind")


LARGEST_TEXT = 64 * 2**20  # bytes: no text that goatrl writes or asks for has nearly as many


def text_of(path: Path) -> str:
    """A text that anybody may have written; one that would fill the memory is a ValueError."""
    size = path.stat().st_size
    if size > LARGEST_TEXT:
        raise ValueError(f"it has {size / 2**20:,.0f} MiB, at most {LARGEST_TEXT >> 20} are read")
    return path.read_text()


def unusable(path: Path, error: BaseException, damaged: str) -> GoatError:
    """What to say of a file that cannot be read. What the system refuses (there is no permission,
    or the disk fails) is not damaged, and nobody should delete it.
    """
    if isinstance(error, OSError) and error.errno is not None:  # libraries' own have no number
        return GoatError(
            f"cannot read {path}: {error.strerror}; nothing is known to be wrong with its content"
        )
    return GoatError(damaged)


def parquet(file: BinaryIO, **options: Any) -> pq.ParquetFile:
    """A Parquet file that is read in this thread alone, if `use_threads` is off: Arrow's own
    threads can abort a process that ends soon afterwards (apache/arrow#50482).
    """
    return pq.ParquetFile(file, pre_buffer=False, **options)


def json_of(text: str | bytes) -> dict[str, Any]:
    """An object in JSON; anything else is a ValueError."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError(f"it is a {type(found).__name__}, not an object")
    return found


def typed(kind: type[Kind], stored: Any) -> Kind:
    """What a file holds as a dataclass or another type, field by field; a wrong type is a
    ValueError that names its place.
    """
    if dataclasses.is_dataclass(kind) and isinstance(stored, Mapping):
        names = {field.name for field in dataclasses.fields(kind)}
        if more := stored.keys() - names:
            raise ValueError(f"unknown field '{min(more)}'")
    try:
        return msgspec.convert(stored, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ValueError(f"{error}".replace("`", "'")) from None
