"""How long algorithms train (appendix "Training Time"): measured, recorded, and what is said of it,
from records alone.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from goatrl import algorithms, tasks
from goatrl.disk.identity import Identity
from goatrl.disk.reading import typed
from goatrl.disk.versions import versions
from goatrl.episodes import make_episodes
from goatrl.experiments import records, suites
from goatrl.experiments.claims import Outcome, Verdict
from goatrl.experiments.columns import NEWER, Column
from goatrl.learn.parameters import described
from goatrl.tasks import TaskGroup
from goatrl.training.offline import check_schedule, default_interval, train
from goatrl.types import Algorithm, Episodes, GoatError

NAME = "training-time"
SUMMARY = (
    "Time that algorithms train on FetchPush, all on one machine (appendix; the paper shows a "
    "figure, no numbers)."
)
PAPER = suites.get("paper").columns
COLUMNS = (*PAPER, *NEWER)
GROUP = tasks.get("push-left-right")
EPISODES = 5_000
SHORTEST, LONGEST = "BC and GCSL train the shortest", "MSG+HER trains the longest"
SECOND = "CQL+HER trains the second longest"
CHUNKS = 3  # measured, after a first one in which programs are compiled
Span = tuple[float, float]
SCHEMA = pa.schema([("chunk", pa.int64()), ("updates", pa.int64()), ("seconds", pa.float64())])


@dataclasses.dataclass(frozen=True)
class Config:
    """All that decides a time, but the machine. Algorithms are compared that have what follows the
    hyper-parameters in common.
    """

    algorithm: str
    source: str  # SHA-256 of the user's file, for an algorithm that comes from one
    hyperparameters: Mapping[str, Any]
    group: str
    episodes: int
    seeds: int  # trained at once
    updates: int
    batch_size: int
    revisions: Mapping[str, int] = dataclasses.field(default_factory=dict)  # of the algorithm
    defaults: tuple[str, ...] = ()  # the hyper-parameters that are at their default

    @property
    def identity(self) -> Identity:
        return Identity(records.TIMING, dataclasses.asdict(self))

    @classmethod
    def from_identity(cls, identity: Identity) -> Config:
        return typed(cls, identity.about)

    @property
    def common(self) -> Identity:
        """What algorithms must have in common to be compared."""
        beside = ("algorithm", "source", "hyperparameters", "revisions", "defaults")
        about = {name: value for name, value in self.identity.about.items() if name not in beside}
        return Identity(records.TIMING, about)


@dataclasses.dataclass(frozen=True)
class Timing:
    """The time that the seeds of an algorithm train together, from that of some chunks of their
    updates.
    """

    label: str
    config: Config
    versions: Mapping[str, str]
    interval: int  # updates of a chunk
    chunks: tuple[float, ...]  # seconds of each

    @property
    def seconds(self) -> float:
        """The training time: that of all updates, extrapolated from the median chunk."""
        return float(np.median(self.every_seconds))

    @property
    def every_seconds(self) -> list[float]:
        """The time of all updates, extrapolated from each chunk."""
        return [seconds * self.config.updates / self.interval for seconds in self.chunks]

    @property
    def span(self) -> Span:
        """The time of all updates, extrapolated from the shortest and from the longest chunk."""
        return min(self.every_seconds), max(self.every_seconds)


@dataclasses.dataclass(frozen=True)
class PlannedTiming:
    """A time that is wanted, and the record of it, if there is one."""

    label: str
    algorithm: Algorithm
    config: Config
    interval: int
    recorded: Timing | None

    @property
    def group(self) -> TaskGroup:
        return GROUP

    @property
    def missing(self) -> tuple[int, ...]:
        return () if self.recorded else tuple(range(self.config.seeds))


# A time that is measured, how many of its chunks are done, and its record when all are.
OnChunk = Callable[[PlannedTiming, int, Timing | None], None]


def plan(
    folder: Path, columns: Sequence[Column], *, seeds: int, updates: int | None = None
) -> list[PlannedTiming]:
    """All timings that are wanted, in order. A folder with times of another machine or
    configuration is refused.
    """
    if seeds < 1:
        raise GoatError(f"the number of seeds must be at least 1, not {seeds}")
    updates, batch_size = (
        GROUP.settings.updates if updates is None else updates,
        GROUP.settings.batch_size,
    )
    present = {timing.label: timing for timing in read_all(folder)}
    planned = []
    for column in columns:
        entry, recorded = algorithms.get(column.algorithm), present.get(column.label)
        algorithm = entry.build(GROUP.settings)
        interval = default_interval(
            updates, algorithm.target_period
        )  # that of `goat bench`, whose compiled programs serve here
        check_schedule(updates, interval, algorithm.target_period)
        config = Config(
            entry.name,
            entry.source,
            group=GROUP.name,
            episodes=EPISODES,
            seeds=seeds,
            updates=updates,
            batch_size=batch_size,
            revisions={entry.name: entry.revision},
            **described(algorithm),
        )
        for timing in present.values():
            what = f"the time of {timing.label} in {folder}"
            timing.config.common.require(config.common, what)
            if timing is recorded:
                timing.config.identity.require(config.identity, what)
        planned.append(PlannedTiming(column.label, algorithm, config, interval, recorded))
    devices, here = {timing.versions["device"] for timing in present.values()}, versions()["device"]
    if any(each.recorded is None for each in planned) and devices - {here}:
        raise GoatError(
            f"{folder} has times measured on {', '.join(sorted(devices))}, but this is {here}; "
            "choose another --out"
        )
    return planned


def run(planned: Sequence[PlannedTiming], folder: Path, on_chunk: OnChunk) -> None:
    """Measure what is not recorded, one algorithm after the other. `on_chunk` is told how many
    chunks are done.
    """
    missing = [each for each in planned if each.recorded is None]
    if missing:
        episodes = _made_up()
        for each in missing:
            timing = _measure(each, episodes, on_chunk)
            write(folder, timing)
            on_chunk(each, 1 + CHUNKS, timing)


def _made_up() -> Episodes:
    """As large as a dataset of Push; times do not depend on what the numbers are."""
    spec, generator = GROUP.spec, np.random.default_rng(0)
    states, actions = (EPISODES, spec.horizon + 1), (EPISODES, spec.horizon)
    shapes = [
        (*states, spec.observation_dim),
        (*states, spec.goal_dim),
        (*actions, spec.action_dim),
        (EPISODES, spec.goal_dim),
    ]
    return make_episodes(*(generator.uniform(-1, 1, shape) for shape in shapes))


def _measure(planned: PlannedTiming, episodes: Episodes, on_chunk: OnChunk) -> Timing:
    members = [(planned.algorithm, seed) for seed in range(planned.config.seeds)]
    interval, updates = planned.interval, (1 + CHUNKS) * planned.interval
    training = train(
        members,
        GROUP.spec,
        episodes,
        updates=updates,
        batch_size=planned.config.batch_size,
        interval=interval,
    )
    on_chunk(planned, 0, None)
    chunks = []
    for done in range(1 + CHUNKS):
        started = time.perf_counter()
        next(training)  # its metrics are numbers on the host: the device is done
        chunks.append(time.perf_counter() - started)
        on_chunk(planned, 1 + done, None)
    return Timing(planned.label, planned.config, versions(), interval, tuple(chunks[1:]))


# Records


def write(folder: Path, timing: Timing) -> None:
    count = len(timing.chunks)
    rows = {
        "chunk": list(range(count)),
        "updates": [timing.interval] * count,
        "seconds": list(timing.chunks),
    }
    records.write_table(
        folder / f"{NAME}--{records.file_name(timing.label)}.parquet",
        pa.table(rows, SCHEMA),
        timing.config.identity,
        {"label": timing.label, "versions": timing.versions},
    )


def read_all(folder: Path) -> list[Timing]:
    """In the order of the suite's columns, then the user's own."""
    order = {column.label: place for place, column in enumerate(COLUMNS)}
    found = [_read_file(path) for path in records.files(folder, records.TIMING)]
    return sorted(found, key=lambda timing: (order.get(timing.label, len(order)), timing.label))


def _read_file(path: Path) -> Timing:
    with records.opened(path, records.TIMING) as (identity, about, table):
        (interval,) = set(table.column("updates").to_pylist())
        chunks = tuple(table.column("seconds").to_pylist())
        config = Config.from_identity(identity)
        label, found = typed(str, about["label"]), typed(dict[str, str], about["versions"])
        return Timing(label, config, found, interval, chunks)


# Claims


def check(found: Sequence[Timing]) -> list[Verdict]:
    """What the paper says of its figure. Times have no seeds: which of two is longer is sure where
    their chunks do not overlap.
    """
    times = {each.label: each for each in found}
    labels = [column.label for column in PAPER]
    if not all(label in times for label in labels):
        missing = "not all of its algorithms are recorded"
        return [
            Verdict(claim, Outcome.NOT_CHECKED, missing) for claim in (SHORTEST, LONGEST, SECOND)
        ]
    ranked = sorted(labels, key=lambda label: -times[label].seconds)

    def verdict(
        claim: str, longer: Sequence[tuple[str, str]], wanted: int, named: Sequence[str]
    ) -> Verdict:
        """By how many of some pairs have a first that trains longer than the second."""
        outcome = _decided([(times[one].span, times[other].span) for one, other in longer], wanted)
        shown = [(times[label], times[label].span) for label in dict.fromkeys(named)]
        return Verdict(
            claim,
            outcome,
            ", ".join(
                f"{t.label} {t.seconds:.1f} s [{low:.1f}–{high:.1f}]" for t, (low, high) in shown
            ),
        )

    def others_above(label: str) -> list[tuple[str, str]]:
        return [(other, label) for other in labels if other != label]

    imitation = ("GCSL", "BC")
    above_others = [(one, other) for one in imitation for other in labels if other not in imitation]
    return [
        verdict(SHORTEST, above_others, 0, [*ranked[-3:], *imitation]),
        verdict(LONGEST, others_above("MSG+HER"), 0, [*ranked[:3], "MSG+HER"]),
        verdict(SECOND, others_above("CQL+HER"), 1, [*ranked[:3], "CQL+HER"]),
    ]


def _decided(pairs: Sequence[tuple[Span, Span]], wanted: int) -> Outcome:
    """Whether the first lies above the second in as many pairs as are wanted; pairs that overlap
    may be of either order.
    """
    surely = sum(one[0] > other[1] for one, other in pairs)
    possibly = sum(one[1] >= other[0] for one, other in pairs)
    if not surely <= wanted <= possibly:
        return Outcome.NOT_HELD
    return Outcome.HELD if surely == possibly else Outcome.UNDECIDED
