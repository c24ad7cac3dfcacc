"""The paper's numbers, which ship with the package as data."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources


@cache
def table(name: str) -> tuple[dict[str, str], ...]:
    """A table of the paper, row by row as text."""
    with (resources.files("goatrl") / "paper" / f"{name}.csv").open() as file:
        return tuple(csv.DictReader(file))


@cache
def averages(name: str) -> dict[tuple[str, str], float]:
    """(split or group, algorithm) → average success, of a table that has no single tasks."""
    found: dict[tuple[str, str], float] = {}
    for row in map(dict, table(name)):
        over = row.pop("metric") if "metric" in row else row.pop("task_group")
        # "ood_success" or "Average OOD Tasks" or the name of a group
        split = next(
            (
                split
                for split in ("iid", "ood", "all")
                if split in over.lower().replace("_", " ").split()
            ),
            over,
        )
        found |= {(split, algorithm): float(value) for algorithm, value in row.items()}
    return found


@cache
def results(name: str, metric: str) -> dict[tuple[str, str, str], tuple[float, float]]:
    """(dataset, task, algorithm) → (mean, standard deviation), as printed: robots' success in
    percent, PointReach's as a share.
    """
    found = {}
    for row in table(name):
        dataset, task = (
            (row["dataset"], row["goals"]) if "dataset" in row else (row["task_group"], row["task"])
        )
        found[dataset, task, row["algorithm"]] = (
            float(row[f"{metric}_mean"]),
            float(row[f"{metric}_std"]),
        )
    return found
