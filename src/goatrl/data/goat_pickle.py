"""The authors' dataset files: pickles of plain NumPy arrays, read without trusting them.

A pickle is a program. Here it runs against harmless stand-ins for NumPy's constructors and nothing
else: no name of the file is imported, no function of NumPy is called by it, and an array is made
only after its description was checked against the bytes that came with it.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from goatrl.episodes import make_episodes
from goatrl.types import Episodes, GoatError

KEYS = ("o", "ag", "u", "g")
_PLAIN_KINDS = "fiub"


class _Refused(Exception):
    """Why a file is not a pickle of plain arrays."""


def _short(thing: Any) -> str:
    """Something of the file, fit for a one-line message."""
    text = (
        repr(thing)
        if isinstance(thing, str | bytes | int | float | None)
        else f"a {type(thing).__name__}"
    )
    return text if len(text) <= 60 else text[:57] + "…"


def _latin1(text: str) -> bytes:
    try:
        return text.encode("latin1")
    except UnicodeEncodeError:
        raise _Refused("text instead of numbers") from None


class _Dtype:
    """A dtype's name and byte order, once both are plain."""

    __slots__ = ("dtype",)

    def __init__(self, code: Any) -> None:
        if not isinstance(code, str) or code[:1] not in _PLAIN_KINDS or not code[1:].isdigit():
            raise _Refused(f"an array of type {_short(code)}")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: Any) -> None:
        order = state[1] if isinstance(state, tuple) and len(state) > 1 else None
        if order not in ("<", ">", "|", "="):
            raise _Refused("an array with an unknown byte order")
        self.dtype = self.dtype.newbyteorder(order)


class _Array:
    """An array's description; `array` is there once its bytes fit it."""

    __slots__ = ("array",)

    def __init__(self) -> None:
        self.array: np.ndarray | None = None

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            raise _Refused("an incomplete array")
        _, shape, dtype, fortran, content = state
        self.fill(shape, dtype, "F" if fortran else "C", content)

    def fill(self, shape: Any, dtype: Any, order: str, content: Any) -> None:
        if (
            not isinstance(dtype, _Dtype)
            or not isinstance(shape, tuple)
            or not all(type(n) is int and n >= 0 for n in shape)
        ):
            raise _Refused("an array without a plain shape and type")
        if isinstance(content, str):
            content = _latin1(content)  # how Python 2 wrote bytes
        if not isinstance(content, bytes | bytearray):
            raise _Refused("an array that holds objects instead of numbers")
        if len(content) != dtype.dtype.itemsize * int(np.prod(shape, dtype=object)):
            raise _Refused(f"an array of shape {shape} with {len(content)} bytes")
        self.array = np.frombuffer(content, dtype.dtype).reshape(shape, order=order)  # type: ignore[call-overload]


class _Constructor:
    """What a name of the file stands for. Instances have no state that a file could change."""

    __slots__ = ()


class _MakeArray(_Constructor):
    __slots__ = ()

    def __call__(self, *_: Any) -> _Array:
        return _Array()


class _MakeArrayFromBuffer(_Constructor):
    __slots__ = ()

    def __call__(self, content: Any, dtype: Any, shape: Any, order: Any) -> _Array:
        array = _Array()
        array.fill(shape, dtype, "F" if order == "F" else "C", content)
        return array


class _MakeBytes(_Constructor):
    """The way in which the oldest pickle protocols spell bytes: a call without arguments for none,
    else text and encoding.
    """

    __slots__ = ()

    def __call__(self, text: Any = "", encoding: Any = "latin1") -> bytes:
        if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
            raise _Refused("text instead of numbers")
        return _latin1(text)


class _MakeDtype(_Constructor):
    __slots__ = ()

    def __call__(self, code: Any = None, *_: Any) -> _Dtype:
        return _Dtype(code)


_ALLOWED: Mapping[tuple[str, str], _Constructor] = {
    ("numpy", "ndarray"): _Constructor(),
    ("numpy", "dtype"): _MakeDtype(),
    ("_codecs", "encode"): _MakeBytes(),
    ("__builtin__", "bytes"): _MakeBytes(),
    ("builtins", "bytes"): _MakeBytes(),
    ("numpy.core.multiarray", "_reconstruct"): _MakeArray(),
    ("numpy._core.multiarray", "_reconstruct"): _MakeArray(),
    ("numpy.core.numeric", "_frombuffer"): _MakeArrayFromBuffer(),
    ("numpy._core.numeric", "_frombuffer"): _MakeArrayFromBuffer(),
}


class _ArrayReader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise _Refused(f"the name {_short(f'{module}.{name}')}")
        return _ALLOWED[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise _Refused("a reference to something outside the file")


def _check_memo(content: bytes) -> None:
    """The unpickler reserves memory by the largest memo index that a file names; an honest file
    names no more than it has bytes.
    """
    for opcode, argument, _ in pickletools.genops(content):
        if "PUT" in opcode.name and argument is not None and argument > len(content):
            raise _Refused("a memo index beyond its own size")


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a pickled dictionary of plain arrays; anything else is refused."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise GoatError(f"cannot read {path}: {error.strerror}") from error
    if not content:
        raise GoatError(f"{path} is empty; copy or download it again")
    try:
        _check_memo(content)
        loaded = _ArrayReader(io.BytesIO(content), encoding="latin1").load()
        if not isinstance(loaded, dict):
            raise _Refused(f"a {type(loaded).__name__} instead of a dictionary of arrays")
        arrays: dict[str, np.ndarray] = {}
        for name, value in loaded.items():
            if not isinstance(name, str) or not isinstance(value, _Array) or value.array is None:
                raise _Refused(f"the entry {_short(name)}, which is not a plain array")
            arrays[name] = value.array
    except _Refused as refused:
        raise GoatError(
            f"{path} was refused: it contains {refused}; only plain NumPy arrays are read"
        ) from None
    except Exception as error:
        # A truncated or crafted file can make the unpickler fail in many ways, none of them ours.
        raise GoatError(
            f"{path} is damaged or not a pickle of arrays ({type(error).__name__}); copy or make "
            "it again"
        ) from None
    return arrays


def import_episodes(path: Path) -> Episodes:
    """One of the authors' files: o (N, T+1, ·), ag (N, T+1, ·), u (N, T, ·), g (N, T, ·) with one
    goal an episode.
    """
    arrays = read_arrays(path)
    missing = [key for key in KEYS if key not in arrays]
    if missing:
        raise GoatError(
            f"{path} is missing {', '.join(missing)}; the authors' files have {', '.join(KEYS)}"
        )
    goals = arrays["g"]
    if goals.ndim != 3 or goals.shape[1] == 0:
        raise GoatError(f"{path}: g must have shape (episodes, steps, goal), not {goals.shape}")
    if not np.array_equal(
        goals, np.broadcast_to(goals[:, :1], goals.shape), equal_nan=goals.dtype.kind == "f"
    ):
        raise GoatError(
            f"{path}: the desired goal changes within an episode; goatrl needs one goal per episode"
        )
    try:
        return make_episodes(arrays["o"], arrays["ag"], arrays["u"], goals[:, 0])
    except GoatError as error:
        raise GoatError(f"{path}: {error}") from None
