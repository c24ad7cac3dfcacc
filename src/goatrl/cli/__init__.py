"""The command line: parse, call, print."""

import contextlib
import dataclasses
import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any, get_args

import tyro

import goatrl
from goatrl.cli import limits
from goatrl.cli.ablate import Ablate
from goatrl.cli.bench import Bench
from goatrl.cli.compare import Compare
from goatrl.cli.console import command
from goatrl.cli.data import Data
from goatrl.cli.expert import Expert
from goatrl.cli.export import Export
from goatrl.cli.figure import Figures
from goatrl.cli.finetune import Finetune
from goatrl.cli.listing import List
from goatrl.cli.report import Report
from goatrl.cli.sweep import Sweep
from goatrl.cli.training import Evaluate, Train
from goatrl.cli.view import View
from goatrl.disk.compiled import keep_compiled_programs
from goatrl.types import GoatError, unknown


class Ended(GoatError):
    """An environment or an algorithm has ended the program."""

    exit_code = 1


@dataclasses.dataclass(frozen=True)
class DataCommands:
    """Make, inspect, convert and verify datasets, check symmetries (goat data --help)."""


@dataclasses.dataclass(frozen=True)
class ExpertCommands:
    """Train and list the experts that collect the robot datasets (goat expert --help)."""


@dataclasses.dataclass(frozen=True)
class FigureCommands:
    """Draw figures from records and runs (goat figure --help)."""


Command = (
    Annotated[List, command("list", List)]
    | Annotated[DataCommands, command("data", DataCommands)]
    | Annotated[Train, command("train", Train)]
    | Annotated[Evaluate, command("evaluate", Evaluate)]
    | Annotated[Compare, command("compare", Compare)]
    | Annotated[Sweep, command("sweep", Sweep)]
    | Annotated[Ablate, command("ablate", Ablate)]
    | Annotated[Finetune, command("finetune", Finetune)]
    | Annotated[Export, command("export", Export)]
    | Annotated[Bench, command("bench", Bench)]
    | Annotated[FigureCommands, command("figure", FigureCommands)]
    | Annotated[Report, command("report", Report)]
    | Annotated[View, command("view", View)]
    | Annotated[ExpertCommands, command("expert", ExpertCommands)]
)
CONFIG = (tyro.conf.FlagCreatePairsOff,)  # --yes has no --no-yes
NESTED: dict[str, Any] = {"data": Data, "expert": Expert, "figure": Figures}
LONGEST = 2_000  # letters of an error
ABOUT = (
    "Offline goal-conditioned reinforcement learning that generalises to goals its data never "
    "showed."
)


def parse(words: list[str]) -> Any:
    """The command that the arguments name. Those in `NESTED` have subcommands."""
    names = [get_args(each)[1].name for each in get_args(Command)]
    if words[:1] and not words[0].startswith("-") and words[0] not in names:
        raise unknown("command", words[0], names)
    if words[:1] and words[0] in NESTED:
        return tyro.cli(NESTED[words[0]], prog=f"goat {words[0]}", args=words[1:], config=CONFIG)
    about = (
        f"{ABOUT}\nVersion {goatrl.__version__}. Add --debug to any command to see the "
        "traceback of an error."
    )
    return tyro.cli(Command, prog="goat", args=words, description=about, config=CONFIG)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. The exit code is 0, 1 (a run failed), 2 (bad usage or unusable input), 70 (an
    error of goatrl itself), 130 (interrupted) or 141 (its output was closed).
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the names of files need not be text
            stream.reconfigure(errors="backslashreplace")
    debug = "--debug" in given
    try:
        try:
            _run([word for word in given if word != "--debug"])
        finally:
            if sys.stdout is not None:  # a buffer may find its pipe closed or its disk full
                sys.stdout.flush()
    except BrokenPipeError:  # whatever read our output has closed it
        _discard_output()
        return 128 + signal.SIGPIPE  # as of any program that does not handle it
    except KeyboardInterrupt:
        print("goat: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if debug:
            raise
        message, code = _explained(error)
        print(f"goat: {_harmless(message)}", file=sys.stderr)
        _discard_output()
        return code
    return 0


def _run(words: list[str]) -> None:
    if words == ["--version"]:
        print(f"goat {goatrl.__version__}")
        return
    parsed = parse(words)
    limits.check(parsed)
    keep_compiled_programs()
    try:
        parsed.run()
    except SystemExit as error:  # only code of the user's own says that
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise Ended(
            f"{last.filename}, line {last.lineno}: sys.exit ended the command before it was done; "
            "remove it"
        ) from error


def _explained(error: Exception) -> tuple[str, int]:
    """An error in one line, and the exit code."""
    if isinstance(error, GoatError):
        return str(error), error.exit_code
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return "not enough memory; use less data, fewer seeds or a smaller batch", 1
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}", 2
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
        return f"cannot write to the standard output: {error.strerror}", 1
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror, 1
    text = " ".join(str(error).split())
    return (
        f"an error of goatrl itself ({type(error).__name__}: {text[:200]}); rerun with --debug and "
        "report what it shows",
        70,
    )


def _harmless(message: str) -> str:
    """In one line, whatever the names and texts of files in it contain: a terminal would obey some
    characters.
    """
    line = "".join(
        each if each.isprintable() or "\udc80" <= each <= "\udcff" else " " if each == "\n" else "?"
        for each in message
    )
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} …"


def _discard_output() -> None:
    """Nothing more can be written: what is left in buffers must not fail once more at the end."""
    if sys.stdout is None:  # the program was started without one
        return
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
