"""What a suite wants: its cells, with those of a folder that are recorded already."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from goatrl import algorithms, tasks
from goatrl.data.problems import declared_symmetry, open_problem, seen_as
from goatrl.disk.identity import Identity
from goatrl.experiments import agents, records
from goatrl.experiments.columns import Column, names_of
from goatrl.experiments.records import Cell, CellConfig, composition
from goatrl.experiments.suites import SUITES, Suite
from goatrl.learn.parameters import described, override
from goatrl.runs.offline import check_contract
from goatrl.tasks import Task, TaskGroup
from goatrl.training.offline import check_schedule, default_interval
from goatrl.types import Algorithm, GoatError, unknown


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
    trained: bool = False  # its agents are on disk and only wait to be evaluated


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
            missing = missing_seeds(name, column)
            planned.append(
                PlannedCell(
                    suite,
                    column.label,
                    group,
                    data.get(name),
                    algorithm,
                    config,
                    recorded,
                    missing,
                    evaluated_tasks(suite, group, config),
                    agents.path(folder, config, missing).exists(),
                )
            )
    return planned


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
