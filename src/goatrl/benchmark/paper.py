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
def pointreach(name: str, metric: str) -> dict[tuple[str, str, str], tuple[float, float]]:
    """(dataset, goals, algorithm) → (mean, standard deviation)."""
    return {
        (row["dataset"], row["goals"], row["algorithm"]): (float(row[f"{metric}_mean"]), float(row[f"{metric}_std"]))
        for row in table(name)
    }
