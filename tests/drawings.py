"""Figures of made-up results, and the colours that a picture has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from goatrl import tasks
from goatrl.data import of_group
from goatrl.experiments.records import Cell
from goatrl.experiments.statistics import Average, Interval
from goatrl.report import data_figures, figures, goal_figures, maps
from goatrl.report.tables import Entry
from helpers import made_by_hand, walks

GROUP = tasks.get("pointreach-expert-10")


def make_cell(reached: int) -> Cell:
    return made_by_hand(GROUP.name, walks(GROUP.name, reached, (0,), 1), seeds=(0,))


def trajectories() -> Figure:
    episodes = of_group(tasks.get(GROUP.name))
    return goal_figures.trajectories(
        {"Expert 10": (episodes, {"GOAT": make_cell(15).episodes})}, "R10", 11.0, ["GOAT"]
    )


def entries() -> list[Entry]:
    return [
        Entry("Expert 10", "R10", "GOAT", 0.75, 0.1, 3, (0.86, 0.08)),
        Entry("Expert 10", "R20", "GOAT", 0.5, 0.1, 3, (0.48, 0.21)),
        Entry("Expert 10", "R10", "Mine", 0.25, 0.0, 3, None),
        Entry("Non-Expert 50", "R10", "GOAT", 1.0, 0.0, 3, (1.0, 0.0)),
    ]


def bars() -> Figure:
    return figures.bars(entries())


def averages() -> list[Average]:
    def average(label: str, split: str, mean: float, paper: float | None) -> Average:
        return Average(
            label, split, 4, mean, 1.0, Interval(mean, mean - 5.0, mean + 3.0), 0.5, mean, paper, 4
        )

    numbers = [("GOAT", 90.0, 70.0, 72.0), ("BC", 95.0, 20.0, 25.0), ("Mine", 50.0, 40.0, None)]
    by_split = [
        (label, {"iid": iid, "ood": ood, "all": (iid + ood) / 2}, paper)
        for label, iid, ood, paper in numbers
    ]
    return [
        average(label, split, mean, paper)
        for label, means, paper in by_split
        for split, mean in means.items()
    ]


def aggregate() -> Figure:
    return figures.aggregate(averages(), full=100.0)


def map_cell(
    group: str, reached: Callable[[np.ndarray], np.ndarray], seeds: tuple[int, ...] = (0,)
) -> Cell:
    """An agent whose seed s reaches the goals of the grid for which `reached` exceeds s."""
    task = tasks.get(group).coverage
    assert task is not None
    starts, goals = task.evaluation()
    rows = [
        {
            "task": task.name,
            "split": task.split,
            "seed": seed,
            "episode": episode,
            "success": bool(reached(goal) > seed),
            "return": 0,
            "final_distance": 0.0,
            "start": start.tolist(),
            "goal": goal.tolist(),
            "path": None,
        }
        for seed in seeds
        for episode, (start, goal) in enumerate(zip(starts, goals, strict=True))
    ]
    return made_by_hand(group, rows, seeds)


def coverage() -> Figure:
    right = maps.coverage(map_cell("push-left-right", lambda goal: goal[1] > 0.749))
    low = maps.coverage(map_cell("pick-low-high", lambda goal: goal[2] < 0.6))
    assert right is not None
    assert low is not None
    return goal_figures.coverage(
        {"Push": {"GOAT": right, "BC": right}, "Pick": {"GOAT": low}}, ["GOAT", "BC"]
    )


def density() -> Figure:
    grid = np.linspace(-12.0, 12.0, 9)
    x, y = np.meshgrid(grid, grid)
    return goal_figures.density(
        grid, 1.0 + x**2 + 2.0 * (y - 3.0) ** 2, of_group(tasks.get(GROUP.name))
    )


def dataset() -> Figure:
    return data_figures.dataset(of_group(tasks.get("pointreach-non-expert-10")), "Non-Expert 10")


def regions() -> Figure:
    return data_figures.regions(
        [tasks.get(name) for name in ("push-near-far", "pick-low-high", "hand-near-far")], count=20
    )


DRAWN = [trajectories, bars, aggregate, coverage, density, dataset, regions]


def colors(path: Path) -> set[tuple[int, int, int]]:
    with Image.open(path) as image:
        found = image.convert("RGB").getcolors(maxcolors=2**24)
    assert found is not None
    return {color for _, color in found}


def rgb(name: str) -> tuple[int, int, int]:
    return (int(name[1:3], 16), int(name[3:5], 16), int(name[5:7], 16))
