"""A run on disk: config, metrics as they come, a checkpoint that resumes exactly, raw episode records.

runs/NAME/config.json              what was trained, on which data, with which versions
          metrics.csv              one row per report and seed, appended while it trains
          checkpoint.safetensors   the whole training state
          episodes.parquet         one row per evaluated episode
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import platform
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import goatrl
from goatrl import algorithms, checkpoint, tasks
from goatrl import data as datasets
from goatrl.data import point
from goatrl.data.storage import WriteError, write_atomically
from goatrl.learn.parameters import Number, hyperparameters, override
from goatrl.tasks import TaskGroup
from goatrl.train import Chunk, Diverged, Members, init, train
from goatrl.types import Episodes, GoatError, Settings, Spec, TrainState

CHECKPOINT_SECONDS = 30.0


class Interrupted(GoatError):
    """The user asked a run to stop; everything up to the last report is on disk."""

    exit_code = 130


@dataclasses.dataclass(frozen=True)
class Problem:
    """A dataset with what is known about it. Without a task group there is nothing to evaluate on."""

    episodes: Episodes
    spec: Spec
    settings: Settings
    group: TaskGroup | None


def open_problem(group: str | None, data: Path | None, goal_threshold: float | None = None) -> Problem:
    """The dataset of a task group, or a file in its place, or a file alone with its own goal threshold."""
    if group is None and (data is None or goal_threshold is None):
        raise GoatError("name a task group with --group, or your own file with --data and --goal-threshold; see `goat list`")
    known = None if group is None else tasks.get(group)
    if known is None:
        assert data is not None
        assert goal_threshold is not None
        episodes = datasets.load(data)
        return Problem(episodes, episodes.spec(goal_threshold), Settings(), None)
    episodes = point.make(known.name) if data is None else datasets.load(data)
    spec = episodes.spec(known.goal_threshold if goal_threshold is None else goal_threshold)
    expected = (known.tasks[0].starts.shape[1], known.tasks[0].goals.shape[1])
    if (spec.observation_dim, spec.goal_dim) != expected:
        raise GoatError(
            f"{data} does not fit {known.name}: it has observations of {spec.observation_dim} and goals of {spec.goal_dim} "
            f"numbers, the tasks have {expected[0]} and {expected[1]}"
        )
    return Problem(episodes, spec, known.settings, known)


def versions() -> dict[str, str]:
    return {
        "goatrl": goatrl.__version__,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "device": jax.devices()[0].device_kind,
    }


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """Everything that decides the result of a run."""

    algorithm: str
    overrides: Mapping[str, Number]
    group: str | None
    data: str | None
    checksum: str
    spec: Spec
    seeds: tuple[int, ...]
    updates: int
    batch_size: int
    interval: int
    hyperparameters: Mapping[str, Number]

    def members(self, settings: Settings) -> Members:
        algorithm = override(algorithms.get(self.algorithm).build(settings), self.overrides)
        return [(algorithm, seed) for seed in self.seeds]


def configure(
    algorithm: str,
    problem: Problem,
    *,
    data: Path | None = None,
    overrides: Mapping[str, Number] | None = None,
    seeds: tuple[int, ...] = (0,),
    updates: int | None = None,
    batch_size: int | None = None,
    interval: int | None = None,
) -> RunConfig:
    """The full configuration of a run, with the problem's settings wherever nothing else is said."""
    if not seeds or len(set(seeds)) != len(seeds):
        raise GoatError(f"seeds must be distinct and at least one, not {list(seeds)}")
    built = override(algorithms.get(algorithm).build(problem.settings), overrides or {})
    updates = problem.settings.updates if updates is None else updates
    every = built.target_every
    return RunConfig(
        algorithm=algorithm,
        overrides=dict(overrides or {}),
        group=None if problem.group is None else problem.group.name,
        data=None if data is None else str(data.resolve()),
        checksum=problem.episodes.checksum(),
        spec=problem.spec,
        seeds=seeds,
        updates=updates,
        batch_size=problem.settings.batch_size if batch_size is None else batch_size,
        interval=max(updates // 20 // every, 1) * every if interval is None else interval,
        hyperparameters=hyperparameters(built),
    )


@contextmanager
def stop_request() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C (or termination) into a question that the loop can ask; a second one interrupts at once."""
    asked = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class Run:
    """A run directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config_path = folder / "config.json"
        self.metrics_path = folder / "metrics.csv"
        self.checkpoint_path = folder / "checkpoint.safetensors"
        self.episodes_path = folder / "episodes.parquet"

    def config(self) -> RunConfig:
        try:
            stored = json.loads(self.config_path.read_text())["config"]
            stored["spec"] = Spec(**stored["spec"])
            stored["seeds"] = tuple(stored["seeds"])
            return RunConfig(**stored)
        except FileNotFoundError:
            raise GoatError(f"{self.folder} is not a run: it has no config.json; make one with `goat train`") from None
        except (ValueError, KeyError, TypeError) as error:
            raise GoatError(f"{self.config_path} is damaged ({error})") from error

    def problem(self) -> Problem:
        """The dataset that the run was trained on, checked to be still the same."""
        config = self.config()
        problem = open_problem(config.group, None if config.data is None else Path(config.data), config.spec.goal_threshold)
        if problem.episodes.checksum() != config.checksum:
            raise GoatError(f"the dataset of {self.folder} has changed since training (its checksum differs)")
        return problem

    def restore(self, problem: Problem) -> tuple[Members, TrainState]:
        config = self.config()
        members = config.members(problem.settings)
        like = jax.eval_shape(lambda: init(members, problem.spec, problem.episodes))
        return members, checkpoint.restore(self.checkpoint_path, like)

    def prepare(self, config: RunConfig) -> None:
        """Make the folder this configuration's, or find that it is already; never another one's."""
        if self.config_path.exists():
            stored = self.config()
            different = [f.name for f in dataclasses.fields(config) if getattr(stored, f.name) != getattr(config, f.name)]
            if different:
                raise GoatError(f"{self.folder} holds another run (differs in {', '.join(different)}); choose another --out")
            return
        text = json.dumps({"config": dataclasses.asdict(config), "versions": versions()}, indent=2)
        write_atomically(self.config_path, lambda file: file.write(text.encode()))

    def train(
        self,
        config: RunConfig,
        problem: Problem,
        on_report: Callable[[int, Mapping[str, float]], None] = lambda step, metrics: None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
    ) -> tuple[Members, TrainState]:
        """Train to the end, from the last checkpoint if there is one. Ctrl-C, a divergence and a full disk keep what is good."""
        self.prepare(config)
        members = config.members(problem.settings)
        state, step = None, 0
        if self.checkpoint_path.exists():
            state = self.restore(problem)[1]
            step = int(np.asarray(state.step)[0])
        self._truncate_metrics(step)
        chunks = train(
            members,
            problem.spec,
            problem.episodes,
            updates=config.updates,
            batch_size=config.batch_size,
            interval=config.interval,
            state=state,
        )
        saved_at, saved_step, good = time.monotonic(), step, state
        with stop_request() as stop:
            for chunk in chunks:
                try:
                    chunk.check_finite(config.seeds)
                except Diverged as error:
                    if good is not None and saved_step < step:
                        self._save(good, step)
                    kept = f"the state at update {step} is kept in {self.checkpoint_path}" if step else "no update was kept"
                    raise Diverged(f"{error}; {kept}") from None
                good, state, step = chunk.state, chunk.state, chunk.step
                self._append_metrics(chunk, config.seeds)
                on_report(step, {name: float(values.mean()) for name, values in chunk.metrics.items()})
                stopping = stop() and step < config.updates
                if step == config.updates or stopping or time.monotonic() - saved_at >= checkpoint_seconds:
                    self._save(state, step)
                    saved_at, saved_step = time.monotonic(), step
                if stopping:
                    raise Interrupted(f"stopped at update {step} of {config.updates}; run the same command again to go on")
        assert state is not None
        return members, state

    def write_episodes(self, table: pa.Table) -> None:
        write_atomically(self.episodes_path, lambda file: pq.write_table(table, file))

    def _save(self, state: TrainState, step: int) -> None:
        checkpoint.save(self.checkpoint_path, state, {"step": step, "versions": versions()})

    def _append_metrics(self, chunk: Chunk, seeds: tuple[int, ...]) -> None:
        names = sorted(chunk.metrics)
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        if not self.metrics_path.exists():
            writer.writerow(["step", "seed", *names])
        for member, seed in enumerate(seeds):
            writer.writerow([chunk.step, seed, *(f"{chunk.metrics[name][member].mean():.6g}" for name in names)])
        try:
            with self.metrics_path.open("a") as file:
                file.write(buffer.getvalue())
        except OSError as error:
            raise WriteError(self.metrics_path, error) from error

    def _truncate_metrics(self, step: int) -> None:
        """Drop what was reported after the checkpoint: it will be computed again."""
        if not self.metrics_path.exists():
            return
        header, *rows = self.metrics_path.read_text().splitlines()
        kept = [row for row in rows if row.split(",")[0].isdigit() and int(row.split(",")[0]) <= step]
        write_atomically(self.metrics_path, lambda file: file.write(("\n".join([header, *kept]) + "\n").encode()))
