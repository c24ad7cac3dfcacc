"""How much a file may hold: a few bytes can declare more than a machine has."""

from __future__ import annotations

import os
from typing import Any

from goatrl.types import GoatError


def check_fits_memory(needed: int, what: object) -> None:
    """Refuse what would fill more than this machine's memory, before any of it is read."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > memory:
        raise GoatError(
            f"{what} declares {needed / 2**30:.3g} GiB, more than this machine's memory "
            f"({memory / 2**30:.3g} GiB)"
        )


def of_hdf5(file: Any) -> int:
    """The bytes of all arrays in an HDF5 file, as they are declared."""
    import h5py

    total = 0

    def add(name: str, item: Any) -> None:
        nonlocal total
        if isinstance(item, h5py.Dataset):
            total += item.size * item.dtype.itemsize if item.size else 0

    file.visititems(add)
    return total
