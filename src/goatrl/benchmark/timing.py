"""How long algorithms train (appendix "Training Time"): measured, recorded, and what is said of it, from records alone."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from goatrl import algorithms, tasks
from goatrl.benchmark import records, suites
from goatrl.benchmark.curves import file_name
from goatrl.benchmark.statements import Verdict
from goatrl.benchmark.suites import Column
from goatrl.files import write_atomically
from goatrl.problems import versions
from goatrl.train import default_interval, train
from goatrl.types import Episodes, GoatError, make_episodes

HOME = Path("bench") / "training-time"
CHUNKS = 3  # measured, after a first one in which programs are compiled
EPISODES = 5_000
SCHEMA = pa.schema([("chunk", pa.int64()), ("updates", pa.int64()), ("seconds", pa.float64())])
_FORMAT = 1


@dataclasses.dataclass(frozen=True)
class Suite:
    name: str
    summary: str
    columns: tuple[Column, ...]
    groups: tuple[str, ...]


SUITE = Suite(
    "training-time",
    "Time that algorithms train on FetchPush, all on one machine (appendix; the paper shows a figure, no numbers).",
    suites.get("paper").columns,
    ("push-left-right",),
)


@dataclasses.dataclass(frozen=True)
class Timing:
    """The time that the seeds of an algorithm train together, from that of some chunks of their updates."""

    label: str
    config: Mapping[str, Any]  # all that decides it
    versions: Mapping[str, str]
    interval: int  # updates of a chunk
    chunks: tuple[float, ...]  # seconds of each

    @property
    def seconds(self) -> float:
        """Of all updates."""
        return float(np.median(self.every_seconds))

    @property
    def every_seconds(self) -> list[float]:
        """Of all updates, by each chunk."""
        return [seconds * self.config["updates"] / self.interval for seconds in self.chunks]


@dataclasses.dataclass(frozen=True)
class Planned:
    column: Column
    seeds: int
    config: Mapping[str, Any]
    recorded: Timing | None


def plan(folder: Path, columns: Sequence[Column], *, seeds: int, updates: int | None = None) -> list[Planned]:
    """All timings that are wanted, in order. Those of another machine or configuration are refused: times are to be compared."""
    settings = tasks.get(*SUITE.groups).settings
    present, here = {timing.label: timing for timing in read_all(folder)}, versions()
    planned = []
    for column in columns:
        entry = algorithms.get(column.algorithm)
        config = {
            "algorithm": entry.name,
            "group": SUITE.groups[0],
            "seeds": seeds,
            "updates": settings.updates if updates is None else updates,
            "batch_size": settings.batch_size,
            "episodes": EPISODES,
        }
        recorded = present.get(column.label)
        if recorded is not None and recorded.config != config:
            changed = ", ".join(name for name in config if recorded.config.get(name) != config[name])
            raise GoatError(f"{folder} holds the time of {column.label} with other {changed}; choose another --out")
        planned.append(Planned(column, seeds, config, recorded))
    devices = {timing.versions["device"] for timing in present.values()}
    if any(each.recorded is None for each in planned) and devices - {here["device"]}:
        raise GoatError(f"{folder} holds times of {', '.join(sorted(devices))}, this is {here['device']}; choose another --out")
    return planned


def run(planned: Sequence[Planned], folder: Path, on_chunk: Callable[[Planned, int], None]) -> None:
    """Measure what is not recorded, one algorithm after the other. `on_chunk` is told how many chunks are done."""
    missing = [each for each in planned if each.recorded is None]
    episodes = _made_up() if missing else None
    for each in missing:
        assert episodes is not None
        write(folder, _measure(each, episodes, on_chunk))


def _made_up() -> Episodes:
    """As large as a dataset of Push; times do not depend on what the numbers are."""
    spec, generator = tasks.get(*SUITE.groups).spec, np.random.default_rng(0)
    states, actions = (EPISODES, spec.horizon + 1), (EPISODES, spec.horizon)
    shapes = [(*states, spec.observation_dim), (*states, spec.goal_dim), (*actions, spec.action_dim), (EPISODES, spec.goal_dim)]
    return make_episodes(*(generator.uniform(-1, 1, shape) for shape in shapes))


def _measure(planned: Planned, episodes: Episodes, on_chunk: Callable[[Planned, int], None]) -> Timing:
    group, updates, seeds = tasks.get(*SUITE.groups), planned.config["updates"], planned.seeds
    members = [(algorithms.get(planned.column.algorithm).build(group.settings), seed) for seed in range(seeds)]
    interval = default_interval(updates, members[0][0].target_every)  # that of `goat bench`, whose compiled programs serve here
    training = train(
        members, group.spec, episodes, updates=(1 + CHUNKS) * interval, batch_size=group.settings.batch_size, interval=interval
    )
    on_chunk(planned, 0)
    chunks = []
    for done in range(1 + CHUNKS):
        started = time.perf_counter()
        next(training)  # its metrics are numbers on the host: the device is done
        chunks.append(time.perf_counter() - started)
        on_chunk(planned, 1 + done)
    return Timing(planned.column.label, planned.config, versions(), interval, tuple(chunks[1:]))


# Records


def write(folder: Path, timing: Timing) -> None:
    count = len(timing.chunks)
    rows = {"chunk": list(range(count)), "updates": [timing.interval] * count, "seconds": list(timing.chunks)}
    about = {"format": _FORMAT, "label": timing.label, "config": timing.config, "versions": timing.versions}
    table = pa.table(rows, SCHEMA).replace_schema_metadata({records.TIMING: json.dumps(about).encode()})
    path = folder / f"{SUITE.name}--{file_name(timing.label)}.parquet"
    write_atomically(path, lambda file: pq.write_table(table, file))


def read_all(folder: Path) -> list[Timing]:
    """In the order of the suite's columns, then the user's own."""
    order = {column.label: place for place, column in enumerate(SUITE.columns)}
    found = [_read_file(path) for path in records.files(folder, records.TIMING)]
    return sorted(found, key=lambda timing: (order.get(timing.label, len(order)), timing.label))


def _read_file(path: Path) -> Timing:
    try:
        table = pq.read_table(path)
        about = json.loads(table.schema.metadata[records.TIMING])
        if about["format"] != _FORMAT:
            raise GoatError(f"{path} was written by another version of goatrl; read it with that one, or use another folder")
        (interval,) = set(table.column("updates").to_pylist())
        chunks = tuple(table.column("seconds").to_pylist())
        return Timing(about["label"], about["config"], about["versions"], interval, chunks)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise GoatError(f"{path} is damaged or not a record ({type(error).__name__}); delete it and run the suite again") from error


# Statements


def check(found: Sequence[Timing]) -> list[Verdict]:
    """What the paper says of its figure."""
    seconds = {timing.label: timing.seconds for timing in found}
    complete = all(column.label in seconds for column in SUITE.columns)
    ranked = sorted((column.label for column in SUITE.columns if column.label in seconds), key=lambda label: -seconds[label])

    def verdict(claim: str, held: bool, labels: Sequence[str]) -> Verdict:
        numbers = ", ".join(f"{label} {seconds[label]:.1f} s" for label in labels if label in seconds)
        return Verdict(claim, held, numbers) if complete else Verdict(claim, None, "not all of its algorithms are recorded")

    return [
        verdict("BC and GCSL train the shortest", set(ranked[-2:]) == {"BC", "GCSL"}, ranked[-3:]),
        verdict("MSG+HER trains the longest", ranked[:1] == ["MSG+HER"], ranked[:3]),
        verdict("CQL+HER trains the second longest", ranked[1:2] == ["CQL+HER"], ranked[:3]),
    ]
