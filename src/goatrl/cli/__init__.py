"""The command line: parse, call, print."""

import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import jax
import tyro
from tyro.conf import FlagCreatePairsOff, OmitSubcommandPrefixes, arg

from goatrl.cli.bench import Bench
from goatrl.cli.console import command
from goatrl.cli.data import DataCommand
from goatrl.cli.figure import FigureCommand
from goatrl.cli.listing import List
from goatrl.cli.training import Evaluate, Train
from goatrl.types import GoatError

Command = (
    Annotated[List, command("list", List)]
    | Annotated[DataCommand, command("data", DataCommand)]
    | Annotated[Train, command("train", Train)]
    | Annotated[Evaluate, command("evaluate", Evaluate)]
    | Annotated[Bench, command("bench", Bench)]
    | Annotated[FigureCommand, command("figure", FigureCommand)]
)


@dataclasses.dataclass(frozen=True)
class Goat:
    """Offline goal-conditioned reinforcement learning that generalises to goals its data never showed."""

    command: OmitSubcommandPrefixes[Command]
    debug: Annotated[FlagCreatePairsOff[bool], arg(help="Show the traceback of an error.")] = False


def keep_compiled_programs() -> None:
    """The second run of a command does not compile again."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "goatrl" / "xla"
    jax.config.update("jax_compilation_cache_dir", str(cache))  # type: ignore[no-untyped-call]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0, 1 (a run failed), 2 (bad usage) or 130 (interrupted)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given  # taken anywhere in the line, not only before the command
    try:
        parsed = tyro.cli(Goat, prog="goat", args=[text for text in given if text != "--debug"])
        keep_compiled_programs()
        parsed.command.run()
    except KeyboardInterrupt:
        print("goat: interrupted", file=sys.stderr)
        return 130
    except GoatError as error:
        if debug:
            raise
        print(f"goat: {error}", file=sys.stderr)
        return error.exit_code
    return 0
