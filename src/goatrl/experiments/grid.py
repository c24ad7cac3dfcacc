"""Runs the cells of a suite that have no record yet, those of a program together.

While some cells train, those before are evaluated: the former is work for the GPU, the latter for
the processor's cores. Who trains is a `Trainer`: this process, or a cluster.
"""

from __future__ import annotations

import functools
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import jax
import numpy as np

from goatrl.data.problems import open_problem
from goatrl.disk.checkpoint import DoesNotFit
from goatrl.disk.files import locked
from goatrl.disk.versions import versions
from goatrl.evaluation.episodes import evaluate
from goatrl.experiments import agents, records
from goatrl.experiments.experiment import OnProgress, Progress, reported_if_failed, title
from goatrl.experiments.packing import Open, Together, batches
from goatrl.experiments.planning import PlannedCell
from goatrl.experiments.records import Cell, Training
from goatrl.robots.threads import lower_thread_priority
from goatrl.robots.workers import Lost
from goatrl.training.offline import (
    Diverged,
    compile_ahead,
    default_interval,
    prune_to_policy,
    train,
)
from goatrl.types import Algorithm, Episodes, GoatError, Spec, TrainState

# The episodes of several cells wait in one queue: while the last ones of a cell are simulated,
# those of the next keep the other cores busy.
EVALUATED_AT_ONCE = 3
COMPILED_AHEAD = 2  # programs, while another one trains on a GPU

Outcome = tuple[Together, GoatError | None]  # none: their agents are on disk


class Trainer(Protocol):
    """Where cells train."""

    @property
    def evaluated_at_once(self) -> int:
        """How many cells, to keep busy what simulates meanwhile."""

    def train(
        self, waiting: Iterator[Together], folder: Path, opened: Open, report: OnProgress
    ) -> Generator[Outcome, None, None]:
        """Train what waits, and keep the agents in the folder. What is done is told at once, in
        whichever order, and what diverged or was lost with its error.
        """


class Here:
    """In this process, one after the other. Meanwhile the next programs are compiled."""

    evaluated_at_once = EVALUATED_AT_ONCE

    def train(
        self, waiting: Iterator[Together], folder: Path, opened: Open, report: OnProgress
    ) -> Generator[Outcome, None, None]:
        with ThreadPoolExecutor(COMPILED_AHEAD) as compiler:
            compiled: deque[tuple[Together, Future[None]]] = deque()
            try:
                while True:
                    for later in itertools.islice(waiting, _looking_ahead() - len(compiled)):
                        compiled.append((later, compiler.submit(_compile, later, opened)))
                    if not compiled:
                        return
                    cells, program = compiled.popleft()
                    report(Progress(cells, "compiling", 0, 1))
                    program.result()
                    report(Progress(cells, "compiling", 1, 1))
                    try:
                        _train(cells, folder, opened, report)
                    except Diverged as error:
                        yield cells, error
                    else:
                        yield cells, None
            except BaseException:
                compiler.shutdown(wait=False, cancel_futures=True)
                raise


HERE = Here()


def _looking_ahead() -> int:
    """How many programs are compiled before the first of them has trained. A processor has no
    time for more while it trains.
    """
    return 1 if jax.default_backend() == "cpu" else COMPILED_AHEAD + 1


def run(
    planned: Iterable[PlannedCell],
    folder: Path,
    on_progress: OnProgress,
    order: Callable[[list[Together]], list[Together]] = list,
    trainer: Trainer = HERE,
) -> list[str]:
    """Fill what is missing; agents are on disk as soon as they are trained, a cell as soon as it is
    evaluated.

    Returns what diverged or was lost, which stops no other cell.
    """
    failures: list[str] = []
    opened = once(open_problem)
    waiting = order(batches(planned, opened))
    if waiting:
        with locked(folder):
            # a folder in which nothing could be recorded is refused before anything is trained
            pass
    stopping = threading.Event()

    def report(progress: Progress) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt  # also in the thread that evaluates, which no signal reaches
        on_progress(progress)

    at_once = trainer.evaluated_at_once
    with ThreadPoolExecutor(at_once, initializer=lower_thread_priority) as evaluator:
        evaluating: deque[tuple[PlannedCell, Future[None]]] = deque()

        def evaluate_soon(cells: Sequence[PlannedCell]) -> None:
            for cell in cells:
                evaluating.append((cell, evaluator.submit(_evaluate, cell, folder, report)))

        def to_train(waiting: Sequence[Together]) -> Iterator[Together]:
            for together in waiting:
                rest = untrained(together, folder)
                evaluate_soon([cell for cell in together if cell not in rest])
                if rest:
                    yield rest

        def wait_for_first() -> None:
            cell, done = evaluating.popleft()
            try:
                done.result()
            except Lost as error:
                failures.append(f"{title([cell])}: {error}")

        try:
            while waiting:
                again: list[Together] = []
                with closing(trainer.train(to_train(waiting), folder, opened, report)) as trained:
                    for cells, error in trained:
                        if error is None:
                            evaluate_soon(cells)
                        elif isinstance(error, Diverged | Lost) and len(cells) > 1:
                            # once more, each for itself: the others are not lost with the one
                            again += [[cell] for cell in cells]
                        else:
                            failures.append(f"{title(cells)}: {error}")
                        while evaluating and evaluating[0][1].done():
                            wait_for_first()
                waiting = again
            while evaluating:
                wait_for_first()
        except BaseException:
            stopping.set()
            evaluator.shutdown(wait=False, cancel_futures=True)
            raise
    return failures


def once(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose results are kept, in whichever thread they are needed first."""
    kept, lock = functools.cache(function), threading.Lock()

    def locked_call(*arguments: Any) -> Any:
        with lock:
            return kept(*arguments)

    return locked_call


def _agents(cell: PlannedCell, folder: Path) -> tuple[Training, TrainState]:
    """The agents of a cell: those on disk, or as they are if they do not learn."""
    if not cell.config.updates:
        return _as_they_are(cell)
    try:
        return agents.load(_file(cell, folder), _members(cell), cell.config)
    except DoesNotFit as error:
        raise GoatError(f"{error}; delete this file to retrain its agents") from None


def _as_they_are(cell: PlannedCell) -> tuple[Training, TrainState]:
    spec = cell.config.spec
    states = [cell.algorithm.init(jax.random.key(seed), spec) for seed in cell.missing]
    state = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
    training = Training(cell.missing, versions(), len(states), 0.0)
    return training, prune_to_policy(cell.algorithm, spec, state)


def untrained(cells: Sequence[PlannedCell], folder: Path) -> list[PlannedCell]:
    """Those that learn and have no agents on disk."""
    return [cell for cell in cells if cell.config.updates and not _file(cell, folder).exists()]


def _file(cell: PlannedCell, folder: Path) -> Path:
    return agents.path(folder, cell.config, cell.missing)


def _compile(cells: Sequence[PlannedCell], opened: Open) -> None:
    """The program that will train some cells: training would, and its time would not be its own."""
    members, spec, datasets = _training(cells, opened)
    compile_ahead(members, spec, datasets, **_schedule(cells))


def _members(cell: PlannedCell) -> list[tuple[Algorithm, int]]:
    return [(cell.algorithm, seed) for seed in cell.missing]


def _train(cells: Sequence[PlannedCell], folder: Path, opened: Open, report: OnProgress) -> None:
    """Train some cells in one program, and keep their agents."""
    config = cells[0].config
    members, spec, datasets = _training(cells, opened)
    report(Progress(cells, "training", 0, config.updates))
    started, reports = time.perf_counter(), []
    with reported_if_failed(cells, "training", config.updates, report):
        for chunk in train(members, spec, datasets, updates=config.updates, **_schedule(cells)):
            chunk.check_finite([seed for _, seed in members])
            reports.append({name: values.mean(axis=1) for name, values in chunk.metrics.items()})
            losses = {name: float(values.mean()) for name, values in reports[-1].items()}
            report(Progress(cells, "training", chunk.step, config.updates, losses))
    seconds = time.perf_counter() - started
    position = 0
    for cell in cells:
        mine = slice(position, position + len(cell.missing))
        position = mine.stop
        curves = {
            name: _learning_curves([each[name][mine] for each in reports]) for name in reports[0]
        }
        training = Training(cell.missing, versions(), len(members), seconds, curves)
        state = jax.tree.map(lambda leaf, mine=mine: leaf[mine], chunk.state)
        acting = prune_to_policy(cell.algorithm, cell.config.spec, state)
        agents.save(folder, cell.config, training, acting)


def _training(
    cells: Sequence[PlannedCell], opened: Open
) -> tuple[list[tuple[Algorithm, int]], Spec, list[Episodes]]:
    """All agents of some cells that train together, and the dataset of each."""
    members = [member for cell in cells for member in _members(cell)]
    datasets = [each for cell in cells for each in [_dataset(cell, opened)] * len(cell.missing)]
    return members, cells[0].config.spec, datasets


def _schedule(cells: Sequence[PlannedCell]) -> dict[str, Any]:
    config, every = cells[0].config, cells[0].algorithm.target_period
    return {
        "batch_size": config.batch_size,
        "interval": default_interval(config.updates, every),
    }


def _dataset(cell: PlannedCell, opened: Open) -> Episodes:
    episodes = opened(cell.config.group, cell.data).episodes
    if episodes.checksum() != cell.config.checksum:
        raise GoatError(
            f"the dataset of {cell.config.group} has changed since planning (its checksum "
            "differs); rerun the command"
        )
    return episodes


def _learning_curves(reports: Sequence[np.ndarray]) -> list[list[float]]:
    """A metric report by report → seed by seed, with as many digits as a picture shows."""
    return [[float(f"{value:.4g}") for value in curve] for curve in np.stack(reports, axis=1)]


def _evaluate(cell: PlannedCell, folder: Path, report: OnProgress) -> None:
    def evaluated(done: int, total: int) -> None:
        report(Progress([cell], "evaluating", done, total))

    evaluated(0, 1)
    training, state = _agents(cell, folder)
    with reported_if_failed([cell], "evaluating", 1, report):
        episodes = evaluate(_members(cell), state, cell.group, cell.tasks, on_progress=evaluated)
    whole = records.add(
        folder, Cell(cell.suite.name, cell.label, cell.config, (training,), episodes)
    )
    report(Progress([cell], "evaluating", 1, 1, recorded=whole))
