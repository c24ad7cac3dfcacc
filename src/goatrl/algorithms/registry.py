"""The registry: a function from the task group's settings to a composition, under its own name."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from goatrl.types import Algorithm, GoatError, Settings, unknown

Build = Callable[[Settings], Algorithm]
CONTRACT = ("sampler", "target_period", "init", "update", "update_target", "act")


@dataclasses.dataclass(frozen=True)
class Entry:
    name: str
    label: str  # as the paper prints it
    summary: str
    build: Build
    source: str = ""  # SHA-256 of the user's file, for an algorithm that comes from one
    file: str = ""  # that file, as the user named it
    content: bytes = b""  # and what it contained, which other machines execute as well
    revision: int = 1  # raised whenever its arithmetic changes; part of every identity
    learns: bool = True  # or only acts, to compare others with


_ENTRIES: dict[str, Entry] = {}


def register(label: str, revision: int = 1, learns: bool = True) -> Callable[[Build], Build]:
    """A decorator that registers an algorithm under the name of the function that builds it.

    Args:
        label: the name in tables.
        revision: raise it whenever the algorithm's arithmetic changes. Records of other revisions
            are refused, never mixed in.
        learns: whether it is trained. What is not acts as `init` makes it.

    Returns:
        A decorator for a function from `Settings` to an algorithm. `goat list` shows the first line
        of its docstring.
    """

    def add(build: Build) -> Build:
        name = build.__name__
        if name in _ENTRIES and _ENTRIES[name].build.__module__ != build.__module__:
            raise GoatError(
                f"an algorithm named '{name}' already exists ({_ENTRIES[name].build.__module__}); "
                "choose another name"
            )
        if not build.__doc__:
            raise GoatError(
                f"algorithm '{name}' needs a docstring, whose first line `goat list` shows; add one"
            )
        summary = build.__doc__.strip().splitlines()[0]
        _ENTRIES[name] = Entry(name, label, summary, build, revision=revision, learns=learns)
        return build

    return add


def entries() -> dict[str, Entry]:
    """All algorithms; what does not learn is known by its name alone."""
    return {name: entry for name, entry in _ENTRIES.items() if entry.learns}


def get(name: str) -> Entry:
    """A registered algorithm."""
    if name.endswith(".py"):
        raise GoatError(
            f"{name} is a file, and files are executed only by `resolve`; pass it where the "
            "command takes an algorithm"
        )
    if name not in _ENTRIES:
        raise unknown("algorithm", name, _ENTRIES)
    return _ENTRIES[name]


def resolve(text: str) -> Entry:
    """What the user asks for: a registered name, or the path of a Python file that registers one.
    It executes that file.

    Only for words that the user has typed; what stands in a file goes to `recorded`.
    """
    return load_file(text) if text.endswith(".py") else get(text)


def recorded(name: str, source: str, where: object) -> Entry:
    """The algorithm that a file at `where` says its agents were trained with.

    Files are data: nothing that they name is executed. An algorithm of the user's own counts as
    known once they have named its file themselves, and is the same one if its SHA-256 is.
    """
    if not isinstance(name, str) or not isinstance(source, str):
        raise GoatError(f"{where} is damaged: its algorithm is not a name; use another folder")
    if not source and not name.endswith(".py") and not get(name).source:
        return get(name)
    own = [entry for entry in _ENTRIES.values() if entry.source]
    for entry in own:
        if entry.source == source:
            return entry
    files = ", ".join(entry.file for entry in own if entry.name == name) or ", ".join(
        entry.file for entry in own
    )
    raise _not_named(name, where, files)


def _not_named(name: str, where: object, files: str) -> GoatError:
    """The error for agents whose algorithm is not among the files that the user has named."""
    differs = (
        f" ({files} is a different file or has changed since training: its SHA-256 differs)"
        if files
        else ""
    )
    return GoatError(
        f"{where} was trained with your own algorithm '{name}'{differs}; "
        "specify its file with --algorithm FILE (in Python: load_policy(path, algorithm=FILE))"
    )


def load_file(file: Path | str, trained: tuple[str, str, object] | None = None) -> Entry:
    """Execute the user's Python file, which registers one algorithm; once, unless it has changed
    since.

    Args:
        file: the file.
        trained: what it is named for, if that was trained with one: the recorded name and SHA-256,
            and where both stand. Another file is refused before it is executed.
    """
    path = Path(file)
    if not path.is_file():
        raise GoatError(f"no such file: {path}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise GoatError(f"cannot read {path}: {error.strerror}") from error
    if trained is not None and trained[1] != hashlib.sha256(content).hexdigest():
        raise _not_named(trained[0], trained[2], str(path))
    return load_content(path, content)


def load_content(path: Path, content: bytes) -> Entry:
    """The same for what a file contains, wherever that file is."""
    source = hashlib.sha256(content).hexdigest()
    for entry in _ENTRIES.values():
        if entry.source == source:
            return entry
    before = dict(_ENTRIES)
    try:
        entry = _execute(path, content)
    except BaseException as error:
        # sys.exit() and Ctrl-C too: what is registered by half must not count as the package's own
        _ENTRIES.clear()
        _ENTRIES.update(before)
        if isinstance(error, Exception):
            raise fault(path, error) from error
        raise
    _ENTRIES[entry.name] = dataclasses.replace(
        entry,
        source=source,
        file=str(path),
        content=content,
        build=_guarded(path, entry.build),
    )
    return _ENTRIES[entry.name]


def _execute(path: Path, content: bytes) -> Entry:
    """What a file registers. Its bytes are those that were hashed, even if it is being
    written to.
    """
    module = ModuleType(
        f"goatrl_user_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    )
    module.__file__ = str(path.absolute())
    for name in [
        entry.name for entry in _ENTRIES.values() if entry.build.__module__ == module.__name__
    ]:
        del _ENTRIES[name]  # of an earlier version of the file
    sys.modules[module.__name__] = module  # where its classes look for their module
    exec(compile(content, module.__file__, "exec", dont_inherit=True), module.__dict__)
    mine = [entry for entry in _ENTRIES.values() if entry.build.__module__ == module.__name__]
    if len(mine) != 1:
        raise GoatError(
            f"{path} registers {len(mine)} algorithms; it must register exactly one with "
            "@register(...)"
        )
    return mine[0]


def _guarded(path: Path, build: Build) -> Build:
    @functools.wraps(build)
    def guarded(settings: Settings) -> Algorithm:
        try:
            built = build(settings)
        except GoatError:
            raise
        except Exception as error:
            raise fault(path, error) from error
        missing = [name for name in CONTRACT if not hasattr(built, name)]
        if missing or not dataclasses.is_dataclass(built):
            what = f"has no {', '.join(missing)}" if missing else "is no @pytree class"
            raise GoatError(
                f"{path}: what {build.__name__} returns {what}; see docs/own-algorithm.md"
            )
        return built

    return guarded


def fault(path: Path, error: Exception) -> GoatError:
    """The user's own mistake in one line, with the line of their file."""
    if isinstance(error, GoatError):
        return error
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) == path.absolute()
    ]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    where = path if line is None else f"{path}, line {line}"
    message = [line for line in str(error.args[0] if error.args else error).splitlines() if line]
    shown = " ".join(line.strip() for line in message[: 1 if lines else 2])
    return GoatError(f"{where}: {type(error).__name__}: {shown}")
