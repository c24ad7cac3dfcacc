"""What the page draws of one task group: maps, paths, learning curves, pictures and clips."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np

from goatrl.experiments.records import Cell
from goatrl.report import maps
from goatrl.report.presentation import Json
from goatrl.report.shared import is_media, media_key, merged_versions, rounded, span
from goatrl.tasks import Task, TaskGroup

PAPER_WIDTH = 400  # paths are drawn on whole numbers, as many as this across


def describe_group(recorded: Sequence[Cell], group: TaskGroup, folder: Path) -> Json:
    """All that the page shows of a group, from the cells of an experiment and media beside it."""
    cells = {cell.label: cell for cell in recorded if cell.config.group == group.name}
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
        **_media(folder, group, cells),
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
                "iid": rounded(100 * each.reached(seen=True), 0),
                "ood": rounded(100 * each.reached(seen=False), 0),
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
    if is_media(dataset):
        about = f"Places, starts and goals in the dataset of {group.label}"
        pictures.append({"title": "The dataset", "about": about, "source": media_key(dataset)})
    found = (folder / "media").glob(f"{group.name}--*--*")
    for path in sorted(each for each in found if is_media(each)):
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
        about |= {name: ", ".join(found) for name, found in versions([cell]).items()}
        for name, value in about.items():
            if value != "":
                rows.setdefault(name, {})[label] = str(value)
    return [{"name": name, "of": of} for name, of in rows.items()]


def versions(cells: Iterable[Cell]) -> dict[str, list[str]]:
    return merged_versions(training.versions for cell in cells for training in cell.trainings)
