"""The installed program, killed (SIGKILL) at random moments, again and again, until it is done."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from safetensors.numpy import load_file

from crashes.commands import COMMANDS, ROBOT, copied, unreadable
from crashes.commands import content as files_in
from goatrl.disk import checkpoint, checksum

GOAT = (str(Path(sys.executable).with_name("goat")),)
# Robots collect and practise for minutes unless they are made to do less.
SMALL = (
    sys.executable,
    "-c",
    "import sys; from crashes.commands import small; from goatrl import cli\n"
    "with small(): sys.exit(cli.main())",
)


@dataclasses.dataclass
class Killed:
    kills: int = 0
    finished: int = 0
    problems: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        wrong = f"{len(self.problems)} corrupt files or differing results"
        return f"{self.kills} kills, {self.finished} times run to the end, {wrong}"


def kill(command: str, folder: Path, kills: int, seed: int, compiled: Path) -> Killed:
    """Kill a command so many times, each time from where the last one left it; what is done starts
    anew. In the end it is left alone.
    """
    words, before = COMMANDS[command]
    base = folder / "base"
    base.mkdir(parents=True)
    for each in before:
        assert _start(each, base, compiled).wait() == 0
    whole = copied(base, folder / "whole")
    assert _start(words, whole, compiled).wait() == 0  # compiles
    started = time.monotonic()
    assert _start(words, copied(base, whole), compiled).wait() == 0
    takes = time.monotonic() - started
    expected, found = meaning(whole), Killed()
    moments, here = random.Random(f"{seed} {command}"), copied(base, folder / "killed")
    anew = True
    while found.kills < kills:
        process, started = _start(words, here, compiled), time.monotonic()
        try:
            code = process.wait(moments.uniform(0.3, 1.0) * takes)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            found.kills += 1
            found.problems += unreadable(here)
            anew = False
            continue
        if anew:
            takes = min(takes, time.monotonic() - started)  # the machine is less busy by now
        _compare(command, code, here, expected, found)
        here, anew = copied(base, here), True
    _compare(command, _start(words, here, compiled).wait(), here, expected, found)
    return found


def _compare(
    command: str, code: int, folder: Path, expected: dict[str, Any], found: Killed
) -> None:
    found.finished += 1
    after = meaning(folder)
    wrong = [name for name in {*after, *expected} if after.get(name) != expected.get(name)]
    if code or wrong:
        found.problems.append(f"{command}: {code}, {sorted(wrong)}")


def _start(words: Sequence[str], folder: Path, compiled: Path) -> subprocess.Popen[bytes]:
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {
        "XDG_CACHE_HOME": str(folder / "cache"),
        "MINARI_DATASETS_PATH": str(folder / "minari"),
        "JAX_COMPILATION_CACHE_DIR": str(compiled),
        "MPLCONFIGDIR": str(compiled / "matplotlib"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "PYTHONPATH": os.pathsep.join(paths),
    }
    program = SMALL if ROBOT in words or words[0] == "ablate" else GOAT
    return subprocess.Popen(
        [*program, *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def meaning(folder: Path) -> dict[str, Any]:
    """All files that are a result; of agents and records all but how long they took."""
    readers = {".safetensors": _agents, ".parquet": _record}
    return {
        name: readers[Path(name).suffix](folder / name) if Path(name).suffix in readers else content
        for name, content in files_in(folder).items()
    }


def _agents(path: Path) -> Any:
    arrays = {name: array.tobytes() for name, array in load_file(path).items()}
    return arrays, _timeless(checkpoint.describe(path))


def _record(path: Path) -> Any:
    table = pq.read_table(path)
    about = checksum.without_place(json.loads(table.schema.metadata[b"goatrl"]))
    return table.to_pylist(), _timeless(about)


def _timeless(about: dict[str, Any]) -> dict[str, Any]:
    for training in [*about.get("trainings", ()), about.get("training", {})]:
        training.pop("seconds", None)
    return about
