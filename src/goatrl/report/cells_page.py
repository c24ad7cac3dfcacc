"""What the page shows of a grid of cells: averages, the table, and what gives it again."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from goatrl import tasks
from goatrl.data.cache import checksums
from goatrl.experiments import claims, planning, records, statistics, suites
from goatrl.experiments.records import Cell
from goatrl.experiments.statistics import Average, Scores
from goatrl.experiments.suites import Suite
from goatrl.report import tables
from goatrl.report.cells_groups import describe_group, versions
from goatrl.report.presentation import Json
from goatrl.report.shared import as_typed, rounded, shown_metric, span
from goatrl.tasks import TaskGroup

METRICS = ("success", "return")


@dataclasses.dataclass(frozen=True, eq=False)
class Experiment:
    """What one folder holds of one suite."""

    name: str
    suite: Suite
    cells: Sequence[Cell]
    folder: Path

    @property
    def labels(self) -> list[str]:
        return statistics.in_order(self.suite.columns, (cell.label for cell in self.cells))

    @property
    def groups(self) -> list[TaskGroup]:
        return [
            tasks.get(name)
            for name in self.suite.groups
            if any(cell.config.group == name for cell in self.cells)
        ]


def experiments(folders: Sequence[Path]) -> list[Experiment]:
    """In the order of the suites, those of the same suite from the fullest, then in the order of
    the folders' names.

    Each has the name of its folder if it is alone there, otherwise its suite's, or both where that
    name is another's too.
    """
    found: list[tuple[Path, Suite, Sequence[Cell]]] = []
    for path in folders:
        recorded = records.read_all(path)
        made_for = {cell.suite for cell in recorded}
        cells = [(suite, planning.select_cells(suite, recorded, path)) for suite in suites.SUITES]
        # Suites share cells: one is also there when others have recorded all of its columns.
        shown = [
            (suite, mine)
            for suite, mine in cells
            if (mine and suite.name in made_for) or _has_all_columns(suite, mine)
        ]
        found += [(path, suite, mine) for suite, mine in shown]
    in_folder, of_suite = (
        Counter(path for path, _, _ in found),
        Counter(suite.name for _, suite, _ in found),
    )
    alone = {path.resolve().name for path, count in in_folder.items() if count == 1}

    def name(path: Path, suite: Suite) -> str:
        where = path.resolve().name
        if in_folder[path] == 1:
            return where
        return (
            suite.name
            if of_suite[suite.name] == 1 and suite.name not in alone
            else f"{where} {suite.name}"
        )

    named = [Experiment(name(path, suite), suite, mine, path) for path, suite, mine in found]
    return sorted(named, key=lambda each: (suites.SUITES.index(each.suite), -len(each.cells)))


def _has_all_columns(suite: Suite, cells: Sequence[Cell]) -> bool:
    return {column.label for column in suite.columns} <= {cell.label for cell in cells}


def describe(experiment: Experiment) -> Json:
    """All that the page shows of an experiment."""
    suite, cells = experiment.suite, experiment.cells
    ceiling = statistics.ceiling(cells)
    learned = [cell for cell in cells if cell.label != ceiling]
    by_metric = {metric: tables.entries(suite, cells, metric) for metric in METRICS}
    table = {metric: _table(experiment, metric, found) for metric, found in by_metric.items()}
    averages = {metric: statistics.averages(suite, cells, metric) for metric in METRICS}
    over_all = {
        metric: [each for each in found if not each.group] for metric, found in averages.items()
    }
    return {
        "kind": "grid",
        "name": experiment.name,
        "suite": suite.name,
        "about": suite.summary,
        "cells": len(cells),
        "datasets": len(suite.groups),
        "metrics": {metric: _metric(experiment, metric) for metric in METRICS},
        "algorithms": experiment.labels,
        "seeds": span(len(cell.seeds) for cell in learned or cells),
        "episodes": int(sum((cell.column("split") != "map").sum() for cell in cells)),
        "ceiling": ceiling,
        "best": {
            split: _best(over_all["success"], split, suite.decimals, ceiling)
            for split in ("iid", "ood", "all")
        },
        "agreement": {
            metric: _agreement(table, suite.decimals) for metric, table in by_metric.items()
        },
        "verdicts": [dataclasses.asdict(verdict) for verdict in claims.check(suite, cells)],
        "averages": {
            metric: _averages(found, suite.decimals) for metric, found in over_all.items()
        },
        "groupAverages": {
            metric: _group_averages(experiment, found) for metric, found in averages.items()
        },
        "table": table,
        "groups": [
            describe_group(experiment.cells, group, experiment.folder)
            for group in experiment.groups
        ],
        "reproduction": _reproduction(experiment),
    }


def _metric(experiment: Experiment, metric: str) -> Json:
    horizon = max(group.spec.horizon for group in experiment.groups)
    scale, decimals = experiment.suite.scale(metric), experiment.suite.decimals
    full = horizon if metric == "return" else scale
    return shown_metric(metric, full, decimals)


# Averages


def _best(
    averages: Sequence[Average], split: str, decimals: int, ceiling: str | None
) -> Json | None:
    """The best of those that learn."""
    mine = [each for each in averages if each.split == split]
    mine = [each for each in mine if each.label != ceiling] or mine
    if not mine:
        return None
    best = max(round(each.mean, decimals) for each in mine)
    first, *others = [each.label for each in mine if round(each.mean, decimals) == best]
    return {"label": first, "others": len(others), "value": best, "tasks": mine[0].tasks}


def _agreement(table: Sequence[tables.Entry], decimals: int) -> Json | None:
    found = tables.agreement(table)
    if found is None:
        return None
    return {
        "cells": found.cells,
        "difference": rounded(found.mean_absolute_difference, decimals + 1),
        "correlation": rounded(found.rank_correlation, 3),
        "far": len(found.far),
    }


def _averages(averages: Sequence[Average], decimals: int) -> dict[str, list[Json]]:
    """Split → one row per algorithm."""
    rows: dict[str, list[Json]] = {}
    for each in averages:
        sure = {"low": each.interval.low, "high": each.interval.high, "noise": each.episode_noise}
        numbers = {"value": each.mean, **sure, "iqm": each.iqm, "paper": each.paper}
        shown = {name: rounded(value, decimals) for name, value in numbers.items()}
        rows.setdefault(each.split, []).append(
            {
                "label": each.label,
                "tasks": each.tasks,
                "of": each.of,
                "share": rounded(each.share, 0),
                **shown,
            }
        )
    return rows


def _group_averages(experiment: Experiment, averages: Sequence[Average]) -> dict[str, list[Json]]:
    """Group → one row per algorithm."""
    rows = {
        group.name: [each for each in averages if each.group == group.label]
        for group in experiment.groups
    }
    return {
        name: _averages(found, experiment.suite.decimals)["all"] for name, found in rows.items()
    }


# The table


def _table(
    experiment: Experiment, metric: str, table: Sequence[tables.Entry]
) -> dict[str, dict[str, dict[str, Json]]]:
    """Group → task → algorithm → its number, with what stands behind it."""
    at = {(entry.dataset, entry.task, entry.column): entry for entry in table}
    found: dict[str, dict[str, dict[str, Json]]] = {}
    for label in experiment.labels:
        for (group, task), entry in _column(experiment, metric, label, at).items():
            found.setdefault(group, {}).setdefault(task, {})[label] = entry
    return found


def _column(
    experiment: Experiment, metric: str, label: str, at: Mapping[tuple[str, str, str], tables.Entry]
) -> dict[tuple[str, str], Json]:
    """(group, task) → its number."""
    decimals, scale = experiment.suite.decimals, experiment.suite.scale(metric)
    found = {}
    for block in statistics.scores(experiment.cells, label, metric).blocks:
        for task, episodes in block.episodes.items():
            alone = Scores(label, (dataclasses.replace(block, episodes={task: episodes}),))
            sure = statistics.interval(alone, statistics.average)
            entry = at[tasks.get(block.group).label, task, label]
            found[block.group, task] = {
                "value": rounded(entry.mean, decimals),
                "std": rounded(entry.std, decimals),
                "low": rounded(scale * sure.low, decimals),
                "high": rounded(scale * sure.high, decimals),
                "noise": rounded(scale * statistics.episode_noise(alone), decimals),
                "seeds": block.seeds,
                "each": [
                    rounded(scale * value, decimals) for value in episodes.mean(axis=-1).tolist()
                ],
                "paper": entry.paper,
                "far": entry.far,
            }
    return found


# Reproduction


def _reproduction(experiment: Experiment) -> Json:
    configs = {
        group.name: [cell.config for cell in experiment.cells if cell.config.group == group.name]
        for group in experiment.groups
    }
    datasets = [
        {
            "group": name,
            "dataset": sorted({config.checksum for config in mine}),
            "listed": all(
                config.checksum == checksums().get(name, config.checksum) for config in mine
            ),
            "evaluation": sorted({config.evaluation for config in mine}),
        }
        for name, mine in configs.items()
    ]
    return {
        "command": command(experiment),
        "datasets": datasets,
        "versions": versions(experiment.cells),
    }


def command(experiment: Experiment) -> str:
    """What gives these records again; FILE stands for what records do not hold."""
    suite, cells = experiment.suite, experiment.cells
    words = ["goat", "bench", suite.name]
    if len(experiment.groups) < len(suite.groups):
        words += ["--groups", *(group.name for group in experiment.groups)]
    if experiment.labels != [column.label for column in suite.columns]:
        words += [
            "--algorithms",
            *dict.fromkeys(as_typed(c.config.algorithm, c.config.source) for c in cells),
        ]
    words += ["--seeds", str(1 + max(max(cell.seeds) for cell in cells))]
    updates = {
        cell.config.updates
        for cell in cells
        if cell.config.updates != tasks.get(cell.config.group).settings.updates
    }
    words += [word for each in sorted(updates) for word in ("--updates", str(each))]
    other = dict.fromkeys(
        c.config.group
        for c in cells
        if c.config.checksum != checksums().get(c.config.group, c.config.checksum)
    )
    if other:
        words += ["--data", *(f"{name}=FILE" for name in other)]
    return " ".join(words)
