"""Runs the cells of a suite that have no record yet; cells that differ only in floats train together."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import jax

from goatrl import algorithms
from goatrl.benchmark import records
from goatrl.benchmark.records import Cell, CellConfig, Training
from goatrl.benchmark.suites import Column, Suite
from goatrl.evaluate import evaluate
from goatrl.learn.parameters import hyperparameters, override
from goatrl.problems import Problem, open_problem, versions
from goatrl.tasks import TaskGroup
from goatrl.train import Diverged, check_schedule, default_interval, train
from goatrl.types import Algorithm, GoatError, unknown

OnProgress = Callable[[str, int, int, Mapping[str, float]], None]  # what trains, update, updates, losses


@dataclasses.dataclass(frozen=True, eq=False)
class Planned:
    """A cell that is wanted, with what its folder already holds of it."""

    label: str
    problem: Problem
    group: TaskGroup
    algorithm: Algorithm
    config: CellConfig
    recorded: Cell | None
    missing: tuple[int, ...]  # seeds


def choose_columns(suite: Suite, names: Sequence[str]) -> list[Column]:
    """The suite's columns of these algorithms (all, if none is named), and a new column for each that it does not have."""
    if not names:
        return list(suite.columns)
    mine = {column.algorithm for column in suite.columns}
    chosen = [column for column in suite.columns if column.algorithm in names]
    return chosen + [Column(algorithms.get(name).label, name) for name in names if name not in mine]


def plan(
    suite: Suite,
    folder: Path,
    *,
    seeds: int,
    groups: Sequence[str] = (),
    algorithm_names: Sequence[str] = (),
    data: Mapping[str, Path] | None = None,
    updates: int | None = None,
) -> list[Planned]:
    """All cells of a suite, in its order, after the choice of groups and algorithms."""
    data = data or {}
    for name in (*groups, *data):
        if name not in suite.groups:
            raise unknown(f"group of {suite.name}", name, suite.groups)
    if seeds < 1:
        raise GoatError(f"at least one seed is needed, not {seeds}")
    columns = choose_columns(suite, algorithm_names)
    present = {(cell.config.group, cell.label): cell for cell in suite_cells(suite, folder)}
    planned = []
    for name in groups or suite.groups:
        problem = open_problem(name, data.get(name))
        assert problem.group is not None
        checksum, evaluation = problem.episodes.checksum(), problem.group.evaluation_checksum()
        for column in columns:
            entry = algorithms.get(column.algorithm)
            algorithm = override(entry.build(problem.settings), column.overrides)
            config = CellConfig(
                group=name,
                algorithm=entry.name,
                source=entry.source,
                hyperparameters=hyperparameters(algorithm),
                spec=problem.spec,
                checksum=checksum,
                evaluation=evaluation,
                updates=problem.settings.updates if updates is None else updates,
                batch_size=problem.settings.batch_size,
            )
            check_schedule(config.updates, default_interval(config.updates, algorithm.target_every), algorithm.target_every)
            recorded = present.get((name, column.label))
            if recorded is not None and recorded.config != config:
                fields = [f.name for f in dataclasses.fields(config) if getattr(config, f.name) != getattr(recorded.config, f.name)]
                raise GoatError(
                    f"{folder} holds {column.label} on {name} of another configuration (differs in {', '.join(fields)}); "
                    "choose another --out"
                )
            missing = tuple(seed for seed in range(seeds) if recorded is None or seed not in recorded.seeds)
            planned.append(Planned(column.label, problem, problem.group, algorithm, config, recorded, missing))
    return planned


def run(suite: Suite, planned: Iterable[Planned], folder: Path, on_progress: OnProgress) -> list[str]:
    """Fill what is missing; each cell is on disk as soon as it is evaluated. Returns what diverged, which stops no other cell."""
    missing = [cell for cell in planned if cell.missing]
    failures = []
    while missing:
        first = missing[0]
        together = [cell for cell in missing if _train_together(first, cell)]
        missing = [cell for cell in missing if not _train_together(first, cell)]
        try:
            _fill(suite, together, folder, on_progress)
        except Diverged as error:
            failures.append(f"{_title(together)}: {error}")
    return failures


def _train_together(one: Planned, other: Planned) -> bool:
    structures = {jax.tree.structure(cell.algorithm) for cell in (one, other)}
    return one.config.group == other.config.group and len(structures) == 1


def _title(cells: Sequence[Planned]) -> str:
    what = ", ".join(cell.label for cell in cells) if len(cells) <= 2 else f"{cells[0].config.algorithm} × {len(cells)}"
    return f"{what} on {cells[0].group.label}"


def _fill(suite: Suite, cells: Sequence[Planned], folder: Path, on_progress: OnProgress) -> None:
    first = cells[0]
    config, problem = first.config, first.problem
    members = [(cell.algorithm, seed) for cell in cells for seed in cell.missing]
    interval = default_interval(config.updates, first.algorithm.target_every)
    title = _title(cells)
    on_progress(title, 0, config.updates, {})
    started = time.perf_counter()
    for chunk in train(
        members, problem.spec, problem.episodes, updates=config.updates, batch_size=config.batch_size, interval=interval
    ):
        chunk.check_finite([seed for _, seed in members])
        on_progress(title, chunk.step, config.updates, {name: float(v.mean()) for name, v in chunk.metrics.items()})
    seconds = time.perf_counter() - started
    position = 0
    for cell in cells:
        mine = slice(position, position + len(cell.missing))
        position = mine.stop
        state = jax.tree.map(lambda leaf, mine=mine: leaf[mine], chunk.state)
        judged = partial(_on_judged, on_progress, f"judging {_title([cell])}")
        episodes = evaluate(members[mine], state, cell.group, on_progress=judged)
        training = Training(cell.missing, versions(), len(members), seconds)
        fresh = Cell(suite.name, cell.label, cell.config, (training,), episodes)
        records.write(folder, fresh if cell.recorded is None else cell.recorded.grown(training, episodes))


def _on_judged(on_progress: OnProgress, title: str, done: int, total: int) -> None:
    on_progress(title, done, total, {})


def suite_cells(suite: Suite, folder: Path) -> list[Cell]:
    """The records of a folder that belong to a suite, in the order of its groups and columns. A cell recorded twice is refused."""
    found: dict[tuple[str, str], Cell] = {}
    for cell in records.read_all(folder):
        if cell.suite != suite.name or cell.config.group not in suite.groups:
            continue
        if (cell.config.group, cell.label) in found:
            raise GoatError(f"{folder} holds two records of {cell.label} on {cell.config.group}; keep one configuration per folder")
        found[cell.config.group, cell.label] = cell
    order = {column.label: place for place, column in enumerate(suite.columns)}
    return sorted(found.values(), key=lambda c: (suite.groups.index(c.config.group), order.get(c.label, len(order)), c.label))
