"""Tables of a grid of cells, and what the page shows of it."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import RenderableType
from rich.markup import escape

from goatrl import tasks
from goatrl.data.cache import checksums
from goatrl.data.problems import open_problem
from goatrl.experiments import claims, grid, records, statistics, suites
from goatrl.experiments.experiment import Experiment as AnyExperiment
from goatrl.experiments.grid import PlannedCell
from goatrl.experiments.records import Cell
from goatrl.experiments.statistics import Average, Scores
from goatrl.experiments.suites import Suite
from goatrl.report import data_figures, figures, maps, tables
from goatrl.report.presentation import Json, Published
from goatrl.report.shared import as_typed, media_key, merged_versions, span
from goatrl.tasks import Task, TaskGroup

METRICS = {"success": "Success", "return": "Return"}
PAPER_WIDTH = 400  # paths are drawn on whole numbers, as many as this across


def publish(
    experiment: AnyExperiment, folder: Path, planned: Sequence[PlannedCell]
) -> Published | None:
    """Tables and verdicts of all that a folder holds of a suite; pictures of datasets beside
    them.
    """
    _draw_datasets(planned, folder)
    suite, cells = suites.get(experiment.name), experiment.read(folder)
    if not cells:
        return None
    by_metric = {metric: tables.entries(suite, cells, metric) for metric in METRICS}
    averages = {metric: statistics.averages(suite, cells, metric) for metric in METRICS}
    over_splits = [average for average in averages["success"] if not average.group]
    files = {
        **{f"{metric}.md": tables.markdown(table) for metric, table in by_metric.items()},
        **{
            f"{metric}.tex": tables.latex(table, averages[metric])
            for metric, table in by_metric.items()
        },
        "table.csv": tables.to_csv(by_metric),
        "averages.md": tables.averages_markdown(averages, suite.decimals),
    }
    shown: list[RenderableType] = []
    for metric, table in by_metric.items():
        shown.append(f"\n[bold]{suite.name}: {metric}[/bold], {_over_seeds(cells)}\n")
        decimals = 1 if suite.percent or metric == "return" else 2
        parts = tables.columns_at_a_time(table, 5 if suite.percent else 6)
        shown += [tables.terminal(part, decimals=decimals) for part in parts]
    shown += [
        f"\n[bold]{suite.name}: success[/bold], averages over tasks (IQM: mean of the middle half)",
        "intervals are over seeds, a single one has none; episodes: standard error that is due to "
        "their number alone\n",
        tables.averages_terminal(over_splits, suite.decimals),
        *_beside_the_paper(cells, by_metric["success"], over_splits),
    ]
    made = sorted(
        {
            " ".join((t.versions["device"], "jax", t.versions["jax"]))
            for cell in cells
            for t in cell.trainings
        }
    )
    return Published(
        shown,
        {f"{suite.name}/{name}": text for name, text in files.items()},
        experiment.claims(cells),
        (f"[dim]trained on {', '.join(made)}[/dim]",),
    )


def _over_seeds(cells: Sequence[Cell]) -> str:
    counts = sorted({len(cell.seeds) for cell in cells})
    if counts == [1]:
        return "1 seed"
    over = f"{span(counts)} seeds" + (" (table.csv has each)" if len(counts) > 1 else "")
    return f"mean ± standard deviation over {over}"


def _beside_the_paper(
    cells: Sequence[Cell], table: Sequence[tables.Entry], averages: Sequence[Average]
) -> list[str]:
    lines = []
    other = sorted(
        {
            cell.config.updates
            for cell in cells
            if cell.config.updates != tasks.get(cell.config.group).settings.updates
        }
    )
    if other:
        lines.append(f"note: trained for {', '.join(map(str, other))} updates, unlike in the paper")
    close = tables.agreement(table)
    if close is not None:
        lines.append(
            f"against the paper, success in {close.cells} cells: mean absolute difference "
            f"{close.mean_absolute_difference:.3f}, "
            f"rank correlation {close.rank_correlation:.3f}; further than two of its standard "
            f"deviations: {len(close.far)}"
        )
        for entry in close.far:
            theirs, places = entry.paper or (0.0, 0.0), entry.decimals
            numbers = (
                f"{entry.mean:.{places}f}, paper {theirs[0]:.{places}f} ± {theirs[1]:.{places}f}"
            )
            lines.append(escape(f"  {entry.dataset}, {entry.task}, {entry.column}: {numbers}"))
    order = tables.order_agreement(averages, "ood")
    if order is not None:
        lines.append(
            f"rank correlation of the OOD averages of {order[0]} algorithms with the paper's: "
            f"{order[1]:.3f}"
        )
    return lines


def _draw_datasets(planned: Sequence[PlannedCell], folder: Path) -> None:
    """A picture of each robot dataset beside the records, for the page, which opens no dataset."""
    trained_on = {cell.group.name: (cell.group, cell.data) for cell in planned if cell.missing}
    for group, data in trained_on.values():
        path = folder / "media" / f"{group.name}--dataset.png"
        if group.family.simulated and not path.exists():
            episodes = open_problem(group.name, data).episodes
            title = f"{group.label}: {episodes.count:,} episodes"
            figures.save(data_figures.dataset(episodes, title, group), path)


# The page

script = ""  # page.js draws it


def sections(folders: Sequence[Path]) -> list[Json]:
    return [describe(each) for each in experiments(folders)]


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
        cells = [(suite, grid.select_cells(suite, recorded, path)) for suite in suites.SUITES]
        # Suites share cells: one is also there when others have recorded all of its columns.
        shown = [
            (suite, mine)
            for suite, mine in cells
            if suite.name in made_for or _has_all_columns(suite, mine)
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
        "datasets": len(suite.groups),
        "metrics": {metric: _metric(experiment, metric) for metric in METRICS},
        "algorithms": experiment.labels,
        "seeds": span(len(cell.seeds) for cell in cells),
        "episodes": int(sum((cell.column("split") != "map").sum() for cell in cells)),
        "best": {
            split: _best(over_all["success"], split, suite.decimals)
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
        "groups": [_group(experiment, group) for group in experiment.groups],
        "reproduction": _reproduction(experiment),
    }


def _metric(experiment: Experiment, metric: str) -> Json:
    percent = experiment.suite.percent and metric == "success"
    horizon = max(group.spec.horizon for group in experiment.groups)
    return {
        "title": METRICS[metric],
        "unit": "%" if percent else "",
        "full": horizon if metric == "return" else experiment.suite.scale(metric),
        "decimals": experiment.suite.decimals,
    }


def _number(value: float | None, decimals: int) -> float | None:
    """As it is shown; JSON knows no nan."""
    return None if value is None or not math.isfinite(value) else round(value, decimals)


# Averages


def _best(averages: Sequence[Average], split: str, decimals: int) -> Json | None:
    mine = [each for each in averages if each.split == split]
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
        "difference": _number(found.mean_absolute_difference, decimals + 1),
        "correlation": _number(found.rank_correlation, 3),
        "far": len(found.far),
    }


def _averages(averages: Sequence[Average], decimals: int) -> dict[str, list[Json]]:
    """Split → one row per algorithm."""
    rows: dict[str, list[Json]] = {}
    for each in averages:
        sure = {"low": each.interval.low, "high": each.interval.high, "noise": each.episode_noise}
        numbers = {"value": each.mean, **sure, "iqm": each.iqm, "paper": each.paper}
        shown = {name: _number(value, decimals) for name, value in numbers.items()}
        rows.setdefault(each.split, []).append(
            {"label": each.label, "tasks": each.tasks, "of": each.of, **shown}
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
                "value": _number(entry.mean, decimals),
                "std": _number(entry.std, decimals),
                "low": _number(scale * sure.low, decimals),
                "high": _number(scale * sure.high, decimals),
                "noise": _number(scale * statistics.episode_noise(alone), decimals),
                "seeds": block.seeds,
                "each": [
                    _number(scale * value, decimals) for value in episodes.mean(axis=-1).tolist()
                ],
                "paper": entry.paper,
                "far": entry.far,
            }
    return found


# Groups


def _group(experiment: Experiment, group: TaskGroup) -> Json:
    cells = {cell.label: cell for cell in experiment.cells if cell.config.group == group.name}
    return {
        "name": group.name,
        "label": group.label,
        "tasks": [
            {"name": task.name, "split": task.split, "episodes": task.episodes}
            for task in group.tasks
        ],
        "maps": _maps(cells),
        "paths": _paths(cells, group),
        "updates": max(cell.config.updates for cell in cells.values()),
        "curves": {label: curves for label, cell in cells.items() if (curves := _curves(cell))},
        "settings": _settings(cells),
        **_media(experiment.folder, group, cells),
    }


def _maps(cells: dict[str, Cell]) -> Json | None:
    """The squares of the plane, and for each algorithm how many percent of its seeds reach each,
    row by row from the top.
    """
    drawn = {
        label: found for label, cell in cells.items() if (found := maps.coverage(cell)) is not None
    }
    if not drawn:
        return None
    any_one = next(iter(drawn.values()))
    return {
        "columns": len(any_one.across),
        "rows": len(any_one.down),
        "fromAbove": any_one.axes[1] == 0,
        "seen": any_one.seen.ravel().astype(int).tolist(),
        "border": any_one.border(),
        "start": any_one.start and [round(value, 2) for value in any_one.start],
        "of": {
            label: {
                "squares": (100 * each.success).round().astype(int).ravel().tolist(),
                "iid": _number(100 * each.reached(seen=True), 0),
                "ood": _number(100 * each.reached(seen=False), 0),
                "seeds": each.seeds,
            }
            for label, each in drawn.items()
        },
    }


def _paths(cells: dict[str, Cell], group: TaskGroup) -> dict[str, Json] | None:
    """Task → the paths of every algorithm, where they were recorded."""
    found: dict[str, Json] = {}
    for task in group.tasks:
        drawn = {
            label: paths
            for label, cell in cells.items()
            if (paths := _task_paths(cell, task)) is not None
        }
        if drawn:
            found[task.name] = {"width": PAPER_WIDTH, "of": drawn}
    return found or None


def _task_paths(cell: Cell, task: Task) -> Json | None:
    rows = np.flatnonzero(cell.column("task") == task.name)
    episodes = cell.episodes.take(rows)
    flat = episodes.column("path").to_pylist()
    if any(path is None for path in flat) or cell.config.spec.goal_dim != 2:
        return None

    def on_paper(points: np.ndarray) -> np.ndarray:
        """Whole numbers, y downwards."""
        return ((points * [1, -1] / (1.06 * task.bound) + 1) * PAPER_WIDTH / 2).round().astype(int)

    success = np.array(episodes.column("success").to_pylist())
    paths = on_paper(np.array(flat).reshape(len(flat), -1, 2))
    goals, place = np.unique(
        on_paper(np.array(episodes.column("goal").to_pylist())), axis=0, return_inverse=True
    )
    reached, tries = np.bincount(place, success), np.bincount(place)
    return {
        "reached": "".join(_strokes(path) for path in paths[success]),
        "missed": "".join(_strokes(path) for path in paths[~success]),
        "goals": [
            [*goal, int(met), int(count)]
            for goal, met, count in zip(goals.tolist(), reached, tries, strict=True)
        ],
    }


def _strokes(path: np.ndarray) -> str:
    """An SVG path through whole numbers, without steps that stand still or go on in the same
    direction.
    """
    steps = np.diff(path, axis=0)
    steps = steps[steps.any(axis=1)]
    if not len(steps):
        return ""
    turns = np.flatnonzero((steps[1:] != steps[:-1]).any(axis=1)) + 1
    legs = np.add.reduceat(steps, [0, *turns])
    return f"M{path[0][0]} {path[0][1]}l" + " ".join(f"{x} {y}" for x, y in legs.tolist())


def _curves(cell: Cell) -> dict[str, list[list[float | None]]]:
    """Metric → its mean, lowest and highest value over seeds, at equal distances over the
    updates.
    """
    found = {}
    for name in dict.fromkeys(name for training in cell.trainings for name in training.curves):
        learning_curves = [
            course for training in cell.trainings for course in training.curves.get(name, ())
        ]
        longest = max(map(len, learning_curves), default=0)
        values = np.array([line for line in learning_curves if len(line) == longest], float)
        if values.size:
            found[name] = [
                [_digits(value) for value in line]
                for line in (values.mean(axis=0), values.min(axis=0), values.max(axis=0))
            ]
    return found


def _digits(value: float) -> float | None:
    return float(f"{value:.3g}") if math.isfinite(value) else None


def _media(folder: Path, group: TaskGroup, labels: Collection[str]) -> Json:
    """Pictures of the dataset and of these algorithms, and clips of their agents, if there are any
    beside the records.
    """
    pictures, clips = [], []
    dataset = folder / "media" / f"{group.name}--dataset.png"
    if dataset.exists():
        about = f"Places, starts and goals in the dataset of {group.label}"
        pictures.append({"title": "The dataset", "about": about, "source": media_key(dataset)})
    for path in sorted((folder / "media").glob(f"{group.name}--*--*")):
        _, label, what = path.stem.split("--", 2)
        if label in labels and what == "uncertainty" and path.suffix == ".png":
            about = (
                f"Supervised loss and distance to the goal of samples of {group.label}, by "
                "rising uncertainty weight"
            )
            pictures.append(
                {
                    "title": f"What the uncertainty weight of {label} prefers",
                    "about": about,
                    "source": media_key(path),
                }
            )
        elif label in labels and path.suffix == ".mp4":
            clips.append({"label": label, "task": what, "source": media_key(path)})
    return {"pictures": pictures, "clips": clips}


# Reproduction


def _settings(cells: dict[str, Cell]) -> list[Json]:
    """Row by row what each cell was made with: its training, then its hyper-parameters."""
    rows: dict[str, dict[str, str]] = {}
    for label, cell in cells.items():
        config, trainings = cell.config, cell.trainings
        about = {
            "algorithm": config.algorithm,
            "source (SHA-256)": config.source,
            "seeds": ", ".join(map(str, cell.seeds)),
            "updates": config.updates,
            "batch size": config.batch_size,
            **config.hyperparameters,
            "trained together": span(training.members for training in trainings),
            "training (s)": round(sum(training.seconds for training in trainings)),
        }
        about |= {name: ", ".join(found) for name, found in _versions([cell]).items()}
        for name, value in about.items():
            if value != "":
                rows.setdefault(name, {})[label] = str(value)
    return [{"name": name, "of": of} for name, of in rows.items()]


def _versions(cells: Iterable[Cell]) -> dict[str, list[str]]:
    return merged_versions(training.versions for cell in cells for training in cell.trainings)


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
        "versions": _versions(experiment.cells),
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
