"""How much a file may hold: a few bytes can declare more than a machine has."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from goatrl.types import GoatError

SHARE = 0.5  # of the memory: what is read is copied once, as the numbers that agents learn from


def check_fits_memory(needed: int, what: object) -> None:
    """Refuse what would fill more than half of this machine's memory, before any of it is read."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > SHARE * memory:
        raise GoatError(
            f"{what} declares {needed / 2**30:.3g} GiB, more than half of this machine's memory "
            f"({memory / 2**30:.3g} GiB)"
        )


def of_hdf5(file: Any) -> int:
    """The bytes of all arrays in an HDF5 file, as they are declared. None may lie elsewhere."""
    import h5py

    total = 0

    def add(name: str, item: Any) -> None:
        nonlocal total
        if isinstance(item, h5py.Dataset):
            if item.is_virtual or item.external:
                raise GoatError("it takes its numbers from other files, which are not read")
            total += item.size * item.dtype.itemsize if item.size else 0

    def refuse(name: str, link: Any) -> None:
        if isinstance(link, h5py.ExternalLink):
            raise GoatError("it takes its numbers from other files, which are not read")

    file.visititems_links(refuse)
    file.visititems(add)
    return total


def of_parquet(file: Any, wanted: Collection[str] | None = None) -> int:
    """The bytes of these columns of an open Parquet file, or of all: a value that was compressed to
    nothing takes eight again.
    """
    about = file.metadata
    groups = (about.row_group(each) for each in range(about.num_row_groups))
    chunks = [group.column(each) for group in groups for each in range(group.num_columns)]
    return sum(
        max(8 * chunk.num_values, chunk.total_uncompressed_size)
        for chunk in chunks
        if wanted is None or chunk.path_in_schema.split(".")[0] in wanted
    )
