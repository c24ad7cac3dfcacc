"""Runs the cells of a suite that have no record yet; cells that differ only in floats train together."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import jax

from goatrl import algorithms
from goatrl.benchmark import records
from goatrl.benchmark.records import Cell, CellConfig
from goatrl.benchmark.suites import Column, Suite
from goatrl.evaluate import evaluate
from goatrl.learn.parameters import hyperparameters, override
from goatrl.runs import Problem, open_problem, versions
from goatrl.train import train
from goatrl.types import Algorithm, GoatError, unknown

OnProgress = Callable[[str, int, int, Mapping[str, float]], None]  # what trains, update, updates, losses


@dataclasses.dataclass(frozen=True)
class Planned:
    """A cell with everything that is needed to fill it."""

    column: Column
    problem: Problem
    algorithm: Algorithm
    config: CellConfig


def plan(
    suite: Suite,
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
    names = {column.algorithm for column in suite.columns}
    for name in algorithm_names:
        if name not in names:
            raise unknown(f"algorithm of {suite.name}", name, names)
    if seeds < 1:
        raise GoatError(f"at least one seed is needed, not {seeds}")
    planned = []
    for group in suite.groups:
        if groups and group not in groups:
            continue
        problem = open_problem(group, data.get(group))
        checksum = problem.episodes.checksum()
        for column in suite.columns:
            if algorithm_names and column.algorithm not in algorithm_names:
                continue
            algorithm = override(algorithms.get(column.algorithm).build(problem.settings), column.overrides)
            config = CellConfig(
                group=group,
                algorithm=column.algorithm,
                hyperparameters=hyperparameters(algorithm),
                spec=problem.spec,
                checksum=checksum,
                seeds=tuple(range(seeds)),
                updates=problem.settings.updates if updates is None else updates,
                batch_size=problem.settings.batch_size,
            )
            planned.append(Planned(column, problem, algorithm, config))
    return planned


def run(planned: Iterable[Planned], folder: Path, on_progress: OnProgress) -> None:
    """Fill every planned cell that has no record; each is on disk as soon as it is evaluated."""
    missing = [cell for cell in planned if records.read(folder, cell.config) is None]
    while missing:
        first = missing[0]
        together = [cell for cell in missing if _train_together(first, cell)]
        missing = [cell for cell in missing if not _train_together(first, cell)]
        _fill(together, folder, on_progress)


def _train_together(one: Planned, other: Planned) -> bool:
    structures = {jax.tree.structure(cell.algorithm) for cell in (one, other)}
    return one.config.group == other.config.group and len(structures) == 1


def _fill(cells: Sequence[Planned], folder: Path, on_progress: OnProgress) -> None:
    first = cells[0]
    config, problem = first.config, first.problem
    members = [(cell.algorithm, seed) for cell in cells for seed in config.seeds]
    every = first.algorithm.target_every
    interval = max(config.updates // 20 // every, 1) * every
    assert problem.group is not None
    what = ", ".join(cell.column.label for cell in cells) if len(cells) <= 2 else f"{config.algorithm} × {len(cells)}"
    label = f"{what} on {problem.group.label}"
    on_progress(label, 0, config.updates, {})
    started = time.perf_counter()
    for chunk in train(
        members, problem.spec, problem.episodes, updates=config.updates, batch_size=config.batch_size, interval=interval
    ):
        chunk.check_finite([seed for _, seed in members])
        on_progress(label, chunk.step, config.updates, {name: float(v.mean()) for name, v in chunk.metrics.items()})
    about = {"versions": versions(), "train_seconds": time.perf_counter() - started, "trained_together": len(cells)}
    for index, cell in enumerate(cells):
        mine = slice(index * len(config.seeds), (index + 1) * len(config.seeds))
        state = jax.tree.map(lambda leaf, mine=mine: leaf[mine], chunk.state)
        records.write(folder, cell.config, evaluate(members[mine], state, problem.group), about)


def collect(planned: Iterable[Planned], folder: Path) -> list[tuple[Planned, Cell]]:
    """The records of all planned cells."""
    found = [(cell, records.read(folder, cell.config)) for cell in planned]
    return [(cell, record) for cell, record in found if record is not None]


def suite_cells(suite: Suite, folder: Path) -> list[tuple[str, Cell]]:
    """The records of a folder that belong to a suite, with their column labels. A cell recorded twice is refused."""
    labels = {}
    for column in suite.columns:
        changes = tuple(sorted(column.overrides.items()))
        labels[column.algorithm, changes] = column.label
    names = {name for column in suite.columns for name in column.overrides}
    found: dict[tuple[str, str], Cell] = {}
    for cell in records.read_all(folder):
        changes = tuple(sorted((n, float(v)) for n, v in cell.config.hyperparameters.items() if n in names and v is not None))
        label = labels.get((cell.config.algorithm, changes))
        if label is None or cell.config.group not in suite.groups:
            continue
        if (cell.config.group, label) in found:
            raise GoatError(f"{folder} holds two records of {label} on {cell.config.group}; keep one configuration per folder")
        found[cell.config.group, label] = cell
    if not found:
        raise GoatError(f"no records of suite {suite.name} in {folder}")
    order = {column.label: place for place, column in enumerate(suite.columns)}
    ranked = sorted(found.items(), key=lambda item: (suite.groups.index(item[0][0]), order[item[0][1]]))
    return [(label, cell) for (_, label), cell in ranked]
