"""A run on disk: config, metrics as they come, a checkpoint that resumes exactly, raw episode
records.

runs/NAME/config.json              what was trained, on which data, with which versions
          metrics.csv              one row per report and seed, appended while it trains
          checkpoint.safetensors   the whole training state
          episodes.parquet         one row per evaluated episode
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from goatrl import algorithms
from goatrl.algorithms import Entry, fault
from goatrl.data import location
from goatrl.data.problems import Problem, open_problem, settings_of
from goatrl.disk import checkpoint, metrics
from goatrl.disk.claims import claimed
from goatrl.disk.identity import Identity
from goatrl.disk.reading import typed
from goatrl.evaluation.worlds import Environment
from goatrl.learn import symmetry
from goatrl.learn.networks import check_view
from goatrl.learn.parameters import Number, described, override, stack
from goatrl.runs.folder import (
    BESIDE,
    KIND,
    Agents,
    Interrupted,
    RunFolder,
    RunPlan,
    check_seeds,
    stop_request,
)
from goatrl.tasks import TaskGroup
from goatrl.training import memory
from goatrl.training.offline import (
    Chunk,
    Diverged,
    Members,
    act,
    check_schedule,
    default_interval,
    init,
    run_chunk,
    same_rows,
    seed_keys,
    train,
)
from goatrl.types import ActionBounds, Algorithm, Episodes, GoatError, Spec, TrainState

CHECKPOINT_SECONDS = 30.0
OnReport = Callable[[int, Mapping[str, float]], None]


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """Everything that decides the result of a run. Where the data lies does not: its checksum
    stands for it.
    """

    algorithm: str  # a registered name; no path, since a run's folder executes nothing
    source: str  # SHA-256 of the user's file, for an algorithm that comes from one
    overrides: Mapping[str, Any]
    group: str | None
    data: str | None
    checksum: str
    spec: Spec
    seeds: tuple[int, ...]
    updates: int
    batch_size: int
    interval: int
    hyperparameters: Mapping[str, Any]
    defaults: tuple[str, ...]  # the hyper-parameters that are at their default
    revisions: Mapping[str, int]  # of the algorithm
    action_bounds: ActionBounds | None = None  # of the data, if others than -1 and 1

    @property
    def identity(self) -> Identity:
        about = dataclasses.asdict(self)
        if self.action_bounds is None:
            del about["action_bounds"]  # as before there was such a thing
        return Identity(KIND, about, BESIDE)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RunConfig:
        config = typed(cls, stored)
        check_seeds(config.seeds)
        if config.action_bounds is not None:
            ActionBounds.of(config.action_bounds.low, config.action_bounds.high)
        return config

    def members(self) -> Members:
        algorithm = composition(
            algorithms.recorded(self.algorithm, self.source, "this run"), self.group, self.overrides
        )
        return [(algorithm, seed) for seed in self.seeds]


def composition(entry: Entry, group: str | None, overrides: Mapping[str, Number]) -> Algorithm:
    """An algorithm with the settings of a task group, but for numbers that are set otherwise."""
    built: Algorithm = override(entry.build(settings_of(group)), overrides)
    return built


def check_contract(entry: Entry, algorithm: Algorithm, spec: Spec, batch_size: int) -> None:
    """Refuse an algorithm from the user's own file, in one line, if it could not train: one update
    and one action are traced, nothing is computed.
    """
    if not entry.source:
        return
    episodes = Episodes(
        jnp.zeros((2, spec.horizon + 1, spec.observation_dim)),
        jnp.zeros((2, spec.horizon + 1, spec.goal_dim)),
        jnp.zeros((2, spec.horizon, spec.action_dim)),
        jnp.zeros((2, spec.goal_dim)),
    )

    def train_and_act() -> Any:
        members = [(algorithm, 0)]
        stacked = stack([algorithm])
        state = init(members, spec)
        keys, rows = seed_keys(members, stream=1), same_rows(1, 2)
        state, _ = run_chunk(
            stacked, state, keys, episodes, 1, batch_size, spec.goal_threshold, rows
        )
        return act(stacked, state, episodes.observations[:1, :3], episodes.achieved[:1, :3])

    try:
        actions = jax.eval_shape(train_and_act)
        if actions.shape != (1, 3, spec.action_dim):
            shape = f"{actions.shape[1:]} for (3, {spec.goal_dim}) goals"
            raise GoatError(
                f"{entry.file}: act of {entry.name} returns shape {shape}, not "
                f"(3, {spec.action_dim})"
            )
    except GoatError:
        raise
    except Exception as error:
        raise fault(Path(entry.file), error) from error


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
    """The full configuration of a run, with the problem's settings where nothing else is said."""
    check_seeds(seeds)
    if batch_size is not None and batch_size < 1:
        raise GoatError(f"the batch size must be at least 1, not {batch_size}")
    entry = algorithms.get(algorithm)
    if not entry.learns:
        raise GoatError(f"{entry.name} does not learn; compare with it by `goat bench`")
    built = entry.build(problem.settings)
    batch_size = problem.settings.batch_size if batch_size is None else batch_size
    check_contract(entry, built, problem.spec, batch_size)
    built = override(built, overrides or {})
    check_view(built, problem.spec)
    symmetry.of(built, problem.spec)
    updates = problem.settings.updates if updates is None else updates
    every = built.target_period
    interval = default_interval(updates, every) if interval is None else interval
    check_schedule(updates, interval, every)
    return RunConfig(
        algorithm=entry.name,
        source=entry.source,
        overrides=dict(overrides or {}),
        group=None if problem.group is None else problem.group.name,
        data=None if data is None else location(data),
        checksum=problem.recorded.checksum(),
        spec=problem.spec,
        seeds=seeds,
        updates=updates,
        batch_size=batch_size,
        interval=interval,
        revisions={entry.name: entry.revision},
        action_bounds=problem.action_bounds,
        **described(built),
    )


class Run(RunFolder):
    """The folder of a run of `goat train`."""

    def recorded(self) -> RunConfig:
        """What the folder says of itself; whether its algorithm is known is not asked."""
        stored = self.about()
        if "checksum" not in stored:  # what learns online has no dataset
            raise GoatError(f"{self.folder} is not a run of `goat train`; specify one that is")
        try:
            return RunConfig.from_json(stored)
        except (ValueError, GoatError) as error:
            raise GoatError(
                f"{self.config_path} is damaged or was written by another version of goatrl "
                f"({error}); train again"
            ) from error

    def config(self) -> RunConfig:
        config = self.recorded()
        return dataclasses.replace(
            config, algorithm=algorithms.recorded(config.algorithm, config.source, self.folder).name
        )

    def problem(self) -> Problem:
        """The dataset that the run was trained on, checked to be still the same."""
        config = self.config()
        problem = open_problem(
            config.group,
            None if config.data is None else Path(config.data),
            config.spec.goal_threshold,
        )
        if problem.recorded.checksum() != config.checksum:
            raise GoatError(
                f"the dataset of {self.folder} has changed since training (its checksum differs); "
                "restore it or train again"
            )
        return problem

    def restore(self) -> tuple[Members, TrainState]:
        """The agents as they were last saved; the dataset is not needed."""
        config = self.config()
        members = config.members()
        return members, self.last_saved(members, config.spec)

    def agents(self) -> Agents:
        config = self.config()
        label = algorithms.get(config.algorithm).label
        return Agents(
            self.folder,
            label,
            *self.restore(),
            config.spec,
            config.group,
            self.unfinished(),
            config.action_bounds,
        )

    def unfinished(self) -> str:
        """Where the run stopped and how to resume it; empty if it is complete."""
        step, updates = self.step(), self.config().updates
        return (
            f"stopped at update {step} of {updates}; resume it with `goat train`"
            if step < updates
            else ""
        )

    def step(self) -> int:
        """The update at which the run was last saved; 0 before that."""
        return (
            int(checkpoint.number(self.checkpoint_path, "step"))
            if self.checkpoint_path.exists()
            else 0
        )

    def is_evaluated(self, where: TaskGroup | Environment, count: int) -> bool:
        """Whether its agents, as they are saved now, were evaluated on all tasks of a group, or in
        so many episodes of an environment.
        """
        if not self.episodes_path.exists():
            return False
        episodes, about = self.read_episodes()
        found = Counter(episodes.column("task").to_pylist())
        if about.get("step") != self.step():
            return False
        if isinstance(where, TaskGroup):
            current = about.get("evaluation") == where.evaluation_checksum()
            return current and all(found[task.name] for task in where.tasks)
        return found[where.task] == count * len(self.about()["seeds"])

    def prepare_claimed(self, plan: RunPlan) -> None:
        """As of every run; but one that was trained for fewer updates may go on to more."""
        if self._goes_on_to(plan):
            self.write_config(plan)
        super().prepare_claimed(plan)

    def _goes_on_to(self, plan: RunPlan) -> bool:
        """Whether the plan is this run's but for its number of updates, which decides only where
        it ends. What is trained cannot be taken back.
        """
        if not (self.checkpoint_path.exists() and self.config_path.exists()):
            return False
        different, updates = self.identity().diff(plan.identity), plan.identity.about["updates"]
        if "updates" not in different or not set(different) <= {"updates", "interval"}:
            return False
        if updates < self.step():
            raise GoatError(
                f"{self.folder} is already trained to update {self.step()}, further than "
                f"{updates}; give --updates {self.step()} or more, or choose another --out"
            )
        return True

    def train(
        self,
        config: RunConfig,
        problem: Problem,
        on_report: OnReport = lambda step, losses: None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
    ) -> None:
        """Train to the end, from the last checkpoint if there is one. Ctrl-C, a divergence and a
        full disk keep what is good.
        """
        train_together([(self, config)], problem, on_report, checkpoint_seconds)

    def _save(self, state: TrainState, step: int) -> None:
        self.save(state, {"step": step})

    def _keep_good(self, error: Diverged, good: TrainState | None, step: int) -> Diverged:
        """Save the last good state, unless it is saved, and say so."""
        if good is not None and self.step() < step:
            self._save(good, step)
        kept = (
            f"the state at update {step} is saved in {self.checkpoint_path}"
            if step
            else f"nothing was saved in {self.folder}"
        )
        return Diverged(f"{error}; {kept}")

    def _append_metrics(self, chunk: Chunk, seeds: tuple[int, ...]) -> None:
        names = sorted(chunk.metrics)
        rows = []
        for member, seed in enumerate(seeds):
            rows.append(
                [chunk.step, seed, *(f"{chunk.metrics[name][member].mean():.6g}" for name in names)]
            )
        metrics.append(self.metrics_path, ["step", "seed", *names], rows)


Configured = tuple[Run, RunConfig]  # a folder, and what is to be trained there


def train_together(
    runs: Sequence[Configured],
    problem: Problem,
    on_report: OnReport = lambda step, losses: None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> None:
    """Train runs to their end in one program, from their last checkpoint if they have one.

    Runs that train together differ in float hyper-parameters and seeds alone, and were saved at the
    same update. One that diverges does not stop the others; it is named when they are done.
    """
    with ExitStack() as claims:
        for run, config in runs:
            claims.enter_context(claimed(run.folder))
            run.prepare_claimed(config)
        _train_claimed(runs, problem, on_report, checkpoint_seconds)


def _train_claimed(
    runs: Sequence[Configured],
    problem: Problem,
    on_report: OnReport,
    checkpoint_seconds: float,
) -> None:
    one = runs[0][1]
    members = [member for _, config in runs for member in config.members()]
    places = _places([len(config.seeds) for _, config in runs])
    step = runs[0][0].step()
    state = _joined([run.restore()[1] for run, _ in runs]) if step else None
    for run, _ in runs:
        metrics.truncate(run.metrics_path, step, "step,seed,")
    going = list(zip(runs, places, strict=True))

    def part(state: TrainState, place: slice) -> TrainState:
        return state if len(runs) == 1 else jax.tree.map(lambda leaf: leaf[place], state)

    chunks = train(
        members,
        problem.spec,
        problem.episodes,
        updates=one.updates,
        batch_size=one.batch_size,
        interval=one.interval,
        state=state,
    )
    saved_at, diverged = time.monotonic(), []
    with stop_request() as stop:
        for chunk in chunks:
            good, going_on, told = state, [], []
            for (run, config), place in going:
                mine = chunk.metrics_of(place)
                try:
                    mine.check_finite(config.seeds)
                except Diverged as error:
                    before = None if good is None else part(good, place)
                    diverged.append(run._keep_good(error, before, step))
                    continue
                run._append_metrics(mine, config.seeds)
                going_on.append(((run, config), place))
                told.append(mine.metrics)
            going = going_on
            if not going:
                break
            state, step = chunk.state, chunk.step
            on_report(step, _means(told))
            stopping = stop() and step < one.updates
            if step == one.updates or stopping or time.monotonic() - saved_at >= checkpoint_seconds:
                for (run, _), place in going:
                    run._save(part(state, place), step)
                saved_at = time.monotonic()
            if stopping:
                raise Interrupted(
                    f"stopped at update {step} of {one.updates}; rerun the command to resume"
                )
    if diverged:
        raise Diverged("; ".join(map(str, diverged)))


def programs(runs: Sequence[Configured], problem: Problem) -> list[list[Configured]]:
    """What is not yet trained to its end, as lists of runs that train at once. Those of one shape
    stand together: they share a compiled program.

    Lists are as even as possible, with no more agents each than fit, but for a single run.
    """
    alike: dict[Any, list[Configured]] = {}
    for run, config in runs:
        if run.step() < config.updates:
            structure = jax.tree.structure(config.members()[0][0])
            shape = structure, config.updates, config.batch_size, config.interval, run.step()
            alike.setdefault(shape, []).append((run, config))
    found = []
    for mine in alike.values():
        most = memory.most_members(mine[0][1].members()[0][0], problem.spec, problem.episodes)
        fit = max(most // max(len(config.seeds) for _, config in mine), 1) if side_by_side() else 1
        size = -(-len(mine) // -(-len(mine) // fit))
        found += [mine[first : first + size] for first in range(0, len(mine), size)]
    return found


def side_by_side() -> bool:
    """Whether several runs train at once. A processor gains nothing from that, and rounds otherwise
    with many agents; there, each run is the one that it is alone.
    """
    return jax.default_backend() != "cpu"


def _means(told: Sequence[Mapping[str, np.ndarray]]) -> dict[str, float]:
    """The metrics of all runs that go on, in one number each."""
    return {name: float(np.mean([each[name].mean() for each in told])) for name in told[0]}


def _places(counts: Sequence[int]) -> list[slice]:
    """Where so many members of each run stand, if they stand in a row."""
    ends = np.cumsum(counts).tolist()
    return [slice(end - count, end) for count, end in zip(counts, ends, strict=True)]


def _joined(states: Sequence[TrainState]) -> TrainState:
    joined: TrainState = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *states)
    return joined
