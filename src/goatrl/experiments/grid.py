"""Runs the cells of a suite that have no record yet; cells that differ only in floats, and on a GPU
in their dataset, train together.

While some cells train, those before are evaluated: the former is work for the GPU, the latter for
the processor's cores. Who trains is a `Trainer`: this process, or a cluster.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import jax
import numpy as np

from goatrl import algorithms, tasks
from goatrl.data.problems import Problem, declared_symmetry, open_problem, seen_as
from goatrl.disk.checkpoint import DoesNotFit
from goatrl.disk.files import locked
from goatrl.disk.identity import Identity
from goatrl.disk.versions import versions
from goatrl.evaluation.episodes import evaluate
from goatrl.experiments import agents, records
from goatrl.experiments.columns import Column, names_of
from goatrl.experiments.experiment import OnProgress, Progress, reported_if_failed, title
from goatrl.experiments.records import Cell, CellConfig, Training, composition
from goatrl.experiments.suites import SUITES, Suite
from goatrl.learn.parameters import described, override
from goatrl.robots.threads import lower_thread_priority
from goatrl.robots.workers import Lost
from goatrl.runs.offline import check_contract
from goatrl.tasks import Task, TaskGroup
from goatrl.training import memory
from goatrl.training.offline import (
    Diverged,
    check_schedule,
    compile_ahead,
    default_interval,
    prune_to_policy,
    train,
)
from goatrl.types import Algorithm, Episodes, GoatError, Spec, TrainState, unknown

# The episodes of several cells wait in one queue: while the last ones of a cell are simulated,
# those of the next keep the other cores busy.
EVALUATED_AT_ONCE = 3
COMPILED_AHEAD = 2  # programs, while another one trains on a GPU


@dataclasses.dataclass(frozen=True, eq=False)
class PlannedCell:
    """A cell that is wanted, with what its folder already holds of it."""

    suite: Suite
    label: str
    group: TaskGroup
    data: Path | None  # the dataset, if it is not the group's own
    algorithm: Algorithm
    config: CellConfig
    recorded: Cell | None  # when it was planned: others may add to the folder meanwhile
    missing: tuple[int, ...]  # seeds
    tasks: tuple[Task, ...]  # all that its agents are run on


def choose_columns(columns: Sequence[Column], names: Sequence[str]) -> list[Column]:
    """A suite's columns of these algorithms or with these headings (all, if none is named), and a
    new column for each algorithm that it does not have.
    """
    mine = names_of(columns)
    chosen = [column for column in columns if not names or not column.names.isdisjoint(names)]
    taken = {column.label for column in columns}
    for name in dict.fromkeys(name for name in names if name not in mine):
        try:
            entry = algorithms.resolve(name)
        except GoatError:
            if name.endswith(".py"):
                raise
            raise unknown("algorithm", name, (*algorithms.entries(), *taken)) from None
        if entry.label in taken:
            raise GoatError(
                f"{name} is registered as {entry.label}, which is already a column; give it "
                "another label"
            )
        taken.add(entry.label)
        chosen.append(Column(entry.label, entry.name))
    return chosen


def plan(
    suite: Suite,
    folder: Path,
    *,
    seeds: int,
    groups: Sequence[str] = (),
    algorithm_names: Sequence[str] = (),
    data: Mapping[str, Path] | None = None,
    updates: int | None = None,
    prepare: Callable[[Sequence[str]], None] = lambda groups: None,
) -> list[PlannedCell]:
    """All cells of a suite, in its order, after the choice of groups and algorithms.

    `prepare` is told the groups whose own datasets will be opened, before they are.
    """
    data = data or {}
    for name in (*groups, *data):
        if name not in suite.groups:
            raise unknown(f"group of {suite.name}", name, suite.groups)
    if seeds < 1:
        raise GoatError(f"the number of seeds must be at least 1, not {seeds}")
    columns = choose_columns(suite.columns, algorithm_names)
    present = {(cell.config.group, cell.label): cell for cell in suite_cells(suite, folder)}

    def wanted(column: Column) -> range:
        return range(seeds if algorithms.get(column.algorithm).learns else 1)

    def missing_seeds(name: str, column: Column) -> tuple[int, ...]:
        recorded = present.get((name, column.label))
        return tuple(seed for seed in wanted(column) if not recorded or seed not in recorded.seeds)

    def unfinished(name: str) -> bool:
        return any(missing_seeds(name, column) for column in columns)

    chosen = groups or suite.groups
    opened = [name for name in chosen if name in data or unfinished(name)]
    prepare([name for name in opened if name not in data])
    planned = []
    for name in chosen:
        group = tasks.get(name)
        problem = open_problem(name, data.get(name)) if name in opened else None
        spec = group.spec if problem is None else problem.spec
        used = {cell.config.checksum for (where, _), cell in present.items() if where == name}
        if problem is not None:
            used.add(problem.episodes.checksum())
        if len(used) > 1:
            raise GoatError(
                f"{folder} has records on {name} from a different dataset (its checksum differs); "
                f"choose another --out, or specify that dataset with --data {name}=FILE"
            )
        (checksum,) = used
        evaluation = group.evaluation_checksum()
        for column in columns:
            entry = algorithms.get(column.algorithm)
            own_updates, batch_size = column.schedule(group.settings)
            check_contract(entry, entry.build(group.settings), spec, batch_size)
            algorithm = _compose(column, group)
            recorded = present.get((name, column.label))
            config = CellConfig(
                group=name,
                algorithm=entry.name,
                source=entry.source,
                **described(algorithm),
                revisions={entry.name: entry.revision},
                spec=spec,
                checksum=checksum,
                evaluation=evaluation,
                updates=(own_updates if updates is None else updates) if entry.learns else 0,
                batch_size=batch_size,
            )
            if entry.learns:
                check_schedule(
                    config.updates,
                    default_interval(config.updates, algorithm.target_period),
                    algorithm.target_period,
                )
            if recorded is not None:
                what = f"{column.label} on {name} in {folder}"
                recorded.config.identity.require(config.identity, what)
            else:
                records.find(folder, config)  # refuses what has its name and is not the same
            evaluated = evaluated_tasks(suite, group, config)
            planned.append(
                PlannedCell(
                    suite,
                    column.label,
                    group,
                    data.get(name),
                    algorithm,
                    config,
                    recorded,
                    missing_seeds(name, column),
                    evaluated,
                )
            )
    return planned


Together = list[PlannedCell]  # cells that train in one program


Open = Callable[[str, Path | None], Problem]
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


def batches(planned: Iterable[PlannedCell], opened: Open = open_problem) -> list[Together]:
    """What is missing, in order, as lists of cells that train together: one program for all that
    have the same shapes, as far as the device's memory and `memory.MOST_MEMBERS` allow.

    A processor gains nothing from more agents at once, and an interruption would lose all of them:
    there, cells of one group train together.
    """
    across_groups = jax.default_backend() != "cpu"

    def layout(cell: PlannedCell) -> tuple[bool, ...]:
        """How episodes lie: of one length, ended by nobody, with one goal each, as those of task
        groups, or not.
        """
        if cell.data is None or not across_groups:
            return (True, True, True)
        found = opened(cell.config.group, cell.data).episodes
        return found.lengths is None, found.terminated is None, len(found.goals) == found.count

    def shape(cell: PlannedCell) -> tuple[Any, ...]:
        config = cell.config
        where = None if across_groups else config.group
        structure = jax.tree.structure(cell.algorithm)
        return where, structure, layout(cell), config.spec, config.updates, config.batch_size

    found: dict[tuple[Any, ...], Together] = {}
    for cell in planned:
        if cell.missing:
            found.setdefault(shape(cell), []).append(cell)
    most = memory.available()

    @functools.cache
    def dataset(group: str, data: Path | None) -> int:
        return memory.of_arrays(opened(group, data).episodes)

    def fits(cells: Together) -> bool:
        members, one = _count(cells), cells[0]
        if members > memory.MOST_MEMBERS:
            return False
        if math.isinf(most):  # no dataset need be opened
            return True
        datasets = sum(dataset(*place) for place in {(c.config.group, c.data) for c in cells})
        return datasets + members * memory.of_member(one.algorithm, one.config.spec) <= most

    return [piece for cells in found.values() for piece in _split(cells, fits)]


def _split(cells: Together, fits: Callable[[Together], bool]) -> list[Together]:
    """In order, into as few and as even pieces of whole cells as fit. A single cell always does:
    there is no less.
    """
    for count in range(1, len(cells)):
        pieces = _pieces(cells, count)
        if all(len(piece) == 1 or fits(piece) for piece in pieces):
            return pieces
    return [[cell] for cell in cells]


def _pieces(cells: Together, count: int) -> list[Together]:
    """Every cell goes where the middle of its members lies, if all are cut into equal parts."""
    found: dict[int, Together] = {}
    members, before = _count(cells), 0
    for cell in cells:
        middle = 2 * before + len(cell.missing)
        found.setdefault(count * middle // (2 * members), []).append(cell)
        before += len(cell.missing)
    return list(found.values())


def _count(cells: Sequence[PlannedCell]) -> int:
    return sum(len(cell.missing) for cell in cells)


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


def suite_cells(suite: Suite, folder: Path) -> list[Cell]:
    """The records of a folder that belong to a suite."""
    return select_cells(suite, records.read_all(folder), folder)


def select_cells(suite: Suite, cells: Iterable[Cell], folder: Path) -> list[Cell]:
    """The cells of a suite among those of a folder, in the order of its groups and columns. One
    that is there twice is refused.

    A record belongs to every suite that has a column of its composition, whichever suite it was
    made for: no cell that two experiments share is run twice. Two columns of one suite share it as
    well, where a group leaves them no difference. A column that was added to a suite belongs to
    that suite alone.
    """
    cells = list(cells)
    columns = {
        group.name: [(_composition(column, group), column.label) for column in suite.columns]
        for group in map(tasks.get, {cell.config.group for cell in cells} & {*suite.groups})
    }
    found: dict[tuple[str, str], Cell] = {}
    for cell in cells:
        group = cell.config.group
        mine = cell.config.composition
        labels = [label for wanted, label in columns.get(group, ()) if not mine.diff(wanted)]
        if not labels and cell.suite == suite.name and group in suite.groups:
            labels = [cell.label]
        for label in labels:
            if (group, label) in found:
                raise GoatError(
                    f"{folder} has two records of {label} on {group}; keep one configuration per "
                    "folder"
                )
            found[group, label] = dataclasses.replace(cell, suite=suite.name, label=label)
    order = {column.label: place for place, column in enumerate(suite.columns)}
    return sorted(
        found.values(),
        key=lambda c: (suite.groups.index(c.config.group), order.get(c.label, len(order)), c.label),
    )


def _compose(column: Column, group: TaskGroup) -> Algorithm:
    built = algorithms.get(column.algorithm).build(group.settings)
    robot = {"robot": group.family.name} if hasattr(built, "robot") else {}
    seen = seen_as(column.inputs, group.family.layout)
    known = {kind for kind in column.symmetry if kind in (group.family.symmetry or {})}
    mirrored = {"symmetry": declared_symmetry("declared", group, kinds=known)} if known else {}
    return override(built, {**robot, **seen, **mirrored, **column.overrides})


def _composition(column: Column, group: TaskGroup) -> Identity:
    return composition(column.algorithm, **described(_compose(column, group)))


def evaluated_tasks(suite: Suite, group: TaskGroup, config: CellConfig) -> tuple[Task, ...]:
    """The group's tasks, and its map if this suite draws it, or one that shares the cell: either
    may come first.
    """
    drawn = [
        column
        for other in SUITES
        if other.maps
        for column in other.columns
        if column.algorithm == config.algorithm
    ]
    shared = any(not config.composition.diff(_composition(column, group)) for column in drawn)
    return group.evaluated() if suite.maps or shared else group.tasks
