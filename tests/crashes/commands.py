"""Commands that write, as small as they can be, and what they are to leave."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from safetensors.numpy import load_file

from goatrl import cli, tasks
from goatrl.data import cache, collect
from goatrl.disk import checkpoint, checksum
from goatrl.experiments import estimate, grid, suites
from goatrl.robots import Finetuning
from goatrl.runs import offline, online
from goatrl.tasks import registry

GROUP, ROBOT = "pointreach-expert-10", "reach-left-right"
ON = ("--group", GROUP, "--seeds", "1", "--updates", "12")
SMALL = ("--set", "architecture.hidden=[8,8]")
TRAIN = ("train", "bc", *ON, *SMALL, "--out", "run")
OTHER = ("train", "bc", *ON, *SMALL, "--set", "learning_rate=0.1", "--out", "other")
EVALUATE = ("evaluate", "run")
CELL = ("--groups", GROUP, "--algorithms", "bc", "--seeds", "1", "--updates", "12")
BENCH = ("bench", "pointreach", *CELL, "--out", "bench")
# A command, and those that were run before it.
COMMANDS: dict[str, tuple[Sequence[str], Sequence[Sequence[str]]]] = {
    "train": (TRAIN, ()),
    "evaluate": (EVALUATE, (TRAIN,)),
    "bench": (BENCH, ()),
    "data make": (("data", "make", ROBOT, "--threads", "1"), ()),
    "data make --out": (("data", "make", GROUP, "--out", "data.npz"), ()),
    "data convert": (("data", "convert", GROUP, "--out", "minari:crash/point-v0"), ()),
    "finetune": (
        ("finetune", "--random", ROBOT, "--seeds", "1", "--episodes", "8", "--out", "online"),
        (),
    ),
    "sweep": (("sweep", "bc", *ON, *SMALL, "--set", "learning_rate=0.1,0.2", "--out", "sweep"), ()),
    "ablate": (("ablate", *ON, "--out", "ablation"), ()),
    "report": (("report", "bench", "--out", "page.html"), (BENCH,)),
    "compare": (
        ("compare", "run", "other", "--csv", "runs.csv"),
        (TRAIN, EVALUATE, OTHER, ("evaluate", "other")),
    ),
    "export": (("export", "run", "--format", "numpy"), (TRAIN,)),
}
TIMES = {"time.jsonl", "ratios.json"}  # how long something took is never the same


class Clock:
    """Saves are due at once, and nothing takes any time."""

    perf_counter = staticmethod(lambda: 0.0)

    def __init__(self) -> None:
        self._hours = itertools.count()

    def monotonic(self) -> float:
        return 3600.0 * next(self._hours)

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


@contextlib.contextmanager
def small() -> Iterator[None]:
    """Robots that collect six episodes and practise eight, a ladder of two rungs, a clock that
    shows no time, and a cache in the current folder.
    """
    group = tasks.get(ROBOT)
    assert group.collection is not None
    few = dataclasses.replace(group, collection=dataclasses.replace(group.collection, episodes=6))
    recipe = Finetuning(5, batch_size=8, round=4, evaluate_every=1, evaluated_episodes=4)
    ladder = suites.get("ablation-components")
    with contextlib.ExitStack() as stack:

        def put(holder: Any, name: str, value: Any) -> None:
            stack.callback(setattr, holder, name, getattr(holder, name))
            setattr(holder, name, value)

        def put_item(holder: Any, name: str, value: Any) -> None:
            stack.callback(holder.__setitem__, name, holder[name])
            holder[name] = value

        put_item(registry._GROUPS, ROBOT, few)
        put_item(vars(group.family), "finetuning", recipe)
        put(collect, "WAVE", 4)
        found, columns = suites.get, ladder.columns[:2]
        put(
            suites,
            "get",
            lambda name: (
                dataclasses.replace(ladder, columns=columns) if name == ladder.name else found(name)
            ),
        )
        for module in (grid, offline, online, cache):
            put(module, "time", Clock())
        put(estimate, "_file", lambda: Path("cache/ratios.json").resolve())
        yield


def goat(words: Sequence[str], folder: Path) -> tuple[int, str]:
    """A command in a folder: its exit code, and what it said."""
    said = io.StringIO()
    before, variables = Path.cwd(), dict(os.environ)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    os.environ["MINARI_DATASETS_PATH"] = str(folder / "minari")
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            return cli.main(words), said.getvalue()
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(variables)


def content(folder: Path) -> dict[str, bytes]:
    """All files that are a result, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.name not in TIMES
        # locks end with their process, and may stay as files
        and path.name != ".lock"
        and not path.name.endswith(".in-use")
        # Minari writes when a dataset was created, and JAX its own cache
        and path.suffix != ".hdf5"
        and path.name != "metadata.json"
        and "xla" not in path.parts
    }


def unreadable(folder: Path) -> list[str]:
    """Files that are there under their name and cannot be read. Of metrics alone the last row may
    be half a row, which the next start drops.
    """
    found = []
    for path in folder.rglob("*"):
        try:
            if path.is_file() and not path.name.startswith(".") and path.suffix in READERS:
                READERS[path.suffix](path)
        except Exception as error:
            found.append(f"{path}: {error}")
    return found


def _agents(path: Path) -> None:
    checkpoint.describe(path)
    load_file(path)


def _table(path: Path) -> None:
    with path.open("rb") as file:
        pq.read_table(file)
        assert checksum.is_intact(file)


def _arrays(path: Path) -> None:
    with path.open("rb") as opened, np.load(opened) as file:
        assert [file[name] for name in file]


def _text(path: Path) -> None:
    assert path.name == "metrics.csv" or path.read_text().strip()


READERS = {
    ".safetensors": _agents,
    ".parquet": _table,
    ".npz": _arrays,
    **dict.fromkeys((".json", ".about", ".csv", ".md", ".html", ".py", ".jsonl"), _text),
}


def copied(base: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    return shutil.copytree(base, to)
