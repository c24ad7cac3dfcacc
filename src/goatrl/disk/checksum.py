"""The SHA-256 of a file inside of it: one changed bit is noticed when it is read.

The file is any format that keeps a JSON text as it is. That has a place of 64 zeros, over which the
checksum of the whole file is written afterwards.
"""

from __future__ import annotations

import hashlib
import mmap
import re
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

KEY = "file_sha256"
_BLANK = "0" * 64
# JSON within JSON has its quotes escaped. Whatever stands there now was a checksum once.
_PLACE = re.compile(rb'%b\\?": \\?"(.{64})' % KEY.encode(), re.DOTALL)


def with_place(about: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says about itself, with a place for its checksum."""
    return {**about, KEY: _BLANK}


def without_place(about: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in about.items() if name != KEY}


def sealed(content: bytes) -> Callable[[BinaryIO], None]:
    """Writes a file's content, with its checksum in the place for it."""
    found = _PLACE.search(content)
    assert found is not None, "there is no place for a checksum"
    digest = hashlib.sha256(content).hexdigest().encode()
    whole = memoryview(content)
    parts = (whole[: found.start(1)], digest, whole[found.end(1) :])
    return lambda file: file.writelines(parts)


def is_intact(file: BinaryIO) -> bool:
    """Whether an open file is as it was written. One without a checksum, from before there were
    any, is taken at its word.
    """
    try:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:  # it is empty
        return True
    with content, memoryview(content) as view:
        found = _PLACE.search(view)
        if found is None:
            return True
        digest = hashlib.sha256(view[: found.start(1)])
        digest.update(_BLANK.encode())
        digest.update(view[found.end(1) :])
        intact = digest.hexdigest().encode() == found[1]
        del found  # it holds the view
    return intact
