"""The registry: a function from the task group's settings to a composition, under its own name."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from goatrl.types import Algorithm, GoatError, Settings, unknown

Build = Callable[[Settings], Algorithm]


@dataclasses.dataclass(frozen=True)
class Entry:
    name: str
    label: str  # as the paper prints it
    summary: str
    build: Build
    source: str = ""  # SHA-256 of the user's file, for an algorithm that comes from one


_ENTRIES: dict[str, Entry] = {}


def register(label: str) -> Callable[[Build], Build]:
    """Make a builder known under its function name; the first line of its docstring is what `goat list` shows."""

    def add(build: Build) -> Build:
        name = build.__name__
        if name in _ENTRIES and _ENTRIES[name].build.__module__ != build.__module__:
            raise GoatError(f"an algorithm named '{name}' exists already ({_ENTRIES[name].build.__module__}); choose another name")
        if not build.__doc__:
            raise GoatError(f"algorithm '{name}' needs a docstring: its first line is shown by `goat list`")
        _ENTRIES[name] = Entry(name, label, build.__doc__.strip().splitlines()[0], build)
        return build

    return add


def entries() -> dict[str, Entry]:
    return dict(_ENTRIES)


def get(name: str) -> Entry:
    """An algorithm by name, or by the path of a Python file that registers one."""
    if name.endswith(".py"):
        return _from_file(Path(name))
    if name not in _ENTRIES:
        raise unknown("algorithm", name, _ENTRIES)
    return _ENTRIES[name]


def _from_file(path: Path) -> Entry:
    if not path.is_file():
        raise GoatError(f"no such file: {path}")
    module_name = f"goatrl_user_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    before = set(_ENTRIES)
    if module_name not in sys.modules:
        spec = importlib.util.spec_from_file_location(module_name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[module_name]
            raise _fault(path, error) from error
    mine = [entry for entry in _ENTRIES.values() if entry.build.__module__ == module_name]
    if len(mine) != 1:
        for name in set(_ENTRIES) - before:
            del _ENTRIES[name]
        raise GoatError(f"{path} registers {len(mine)} algorithms; it must register exactly one with @register(...)")
    source = hashlib.sha256(path.read_bytes()).hexdigest()
    return dataclasses.replace(mine[0], source=source, build=_guarded(path, mine[0].build))


def _guarded(path: Path, build: Build) -> Build:
    def guarded(settings: Settings) -> Algorithm:
        try:
            return build(settings)
        except GoatError:
            raise
        except Exception as error:
            raise _fault(path, error) from error

    return guarded


def _fault(path: Path, error: Exception) -> GoatError:
    """The user's own mistake in one line, with the line of their file."""
    if isinstance(error, GoatError):
        return error
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path.absolute()]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else "?"
    return GoatError(f"{path}, line {line}: {type(error).__name__}: {error.args[0] if error.args else error}")
