"""Figures, written as PNG, SVG or PDF by the file's ending."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from goatrl.benchmark.records import Cell
from goatrl.files import write_atomically
from goatrl.report.tables import Entry
from goatrl.types import Episodes, GoatError

FORMATS = ("png", "svg", "pdf")
DATA_COLOR, GOAL_COLOR, OURS_COLOR = "#8a8f98", "#d62728", "#1f5fa8"
PALETTE = ("#1f5fa8", "#4f9d69", "#c8a13a", "#8a8f98", "#b0567d", "#d1622b")


def save(figure: Figure, path: Path) -> None:
    kind = path.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise GoatError(f"cannot draw {path}: name a file that ends in .{', .'.join(FORMATS)}")
    buffer = io.BytesIO()
    # Neither a date nor random identifiers: the same records give the same bytes.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with mpl.rc_context({"svg.hashsalt": "goatrl"}):
        figure.savefig(buffer, format=kind, dpi=120, bbox_inches="tight", metadata=metadata)
    write_atomically(path, lambda file: file.write(buffer.getvalue()))


def trajectories(
    rows: Mapping[str, tuple[Episodes, Mapping[str, Cell]]], task: str, bound: float, columns: Sequence[str]
) -> Figure:
    """The paper's first figure: per dataset a row, first the data, then the paths of every agent to all goals of a task."""
    figure = Figure(figsize=(2.3 * (len(columns) + 1), 2.45 * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), len(columns) + 1, squeeze=False)
    for row, (dataset, (episodes, cells)) in zip(axes, rows.items(), strict=True):
        _frame(row[0], f"data: {dataset}", bound)
        _paths(row[0], np.asarray(episodes.achieved), DATA_COLOR, 0.9)
        _goals(row[0], np.unique(np.asarray(episodes.goals).round(4), axis=0))
        for axis, label in zip(row[1:], columns, strict=True):
            if label not in cells:
                axis.axis("off")
                continue
            cell = cells[label]
            success = cell.per_seed("success", task).mean()
            _frame(axis, f"{label}  {100 * success:.0f} %", bound)
            chosen = cell.column("task") == task
            paths = np.array([path for path, mine in zip(cell.column("path"), chosen, strict=True) if mine])
            _paths(axis, paths.reshape(len(paths), -1, 2), OURS_COLOR, 0.35)
            _goals(axis, np.array([goal for goal, mine in zip(cell.column("goal"), chosen, strict=True) if mine]))
    return figure


def _frame(axis: Axes, title: str, bound: float) -> None:
    axis.set_title(title, fontsize=9)
    axis.set_aspect("equal")
    limit = bound * 1.06
    axis.set_xlim(-limit, limit)
    axis.set_ylim(-limit, limit)
    axis.tick_params(labelsize=6, length=2)
    axis.axhline(0.0, color="black", linewidth=0.4, linestyle=":")


def _paths(axis: Axes, paths: np.ndarray, color: str, alpha: float) -> None:
    for path in paths:
        axis.plot(path[:, 0], path[:, 1], color=color, alpha=alpha, linewidth=0.7)


def _goals(axis: Axes, goals: np.ndarray) -> None:
    axis.scatter(goals[:, 0], goals[:, 1], marker="*", s=22, color=GOAL_COLOR, zorder=3, linewidths=0)


def bars(table: Sequence[Entry]) -> Figure:
    """Success with its deviation over seeds, grouped by dataset; a tick marks the paper's number."""
    tasks = list(dict.fromkeys(entry.task for entry in table))
    datasets = list(dict.fromkeys(entry.dataset for entry in table))
    columns = list(dict.fromkeys(entry.column for entry in table))
    at = {(entry.dataset, entry.task, entry.column): entry for entry in table}
    figure = Figure(figsize=(1.6 + 2.2 * len(datasets), 2.6 * len(tasks)), layout="constrained")
    width = 0.8 / len(columns)
    for axis, task in zip(figure.subplots(len(tasks), 1, squeeze=False)[:, 0], tasks, strict=True):
        for index, column in enumerate(columns):
            found = [(place, at[d, task, column]) for place, d in enumerate(datasets) if (d, task, column) in at]
            x = np.array([place for place, _ in found]) + (index - (len(columns) - 1) / 2) * width
            color = PALETTE[index % len(PALETTE)]
            axis.bar(
                x,
                [e.mean for _, e in found],
                width * 0.9,
                yerr=[e.std for _, e in found],
                color=color,
                label=column,
                error_kw={"lw": 0.8},
            )
            theirs = [(at_x, e.paper[0]) for at_x, (_, e) in zip(x, found, strict=True) if e.paper is not None]
            if theirs:
                axis.scatter(*zip(*theirs, strict=True), marker="_", s=260 * width, color="black", zorder=3, linewidths=1.4)
        axis.set_xticks(range(len(datasets)), datasets)
        axis.set_ylim(0, 1.08)
        axis.set_ylabel(f"success on {task}")
        axis.spines[["top", "right"]].set_visible(False)
    if any(entry.paper for entry in table):
        figure.axes[0].scatter([], [], marker="_", s=100, color="black", label="paper")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8, frameon=False)
    return figure


def density(grid: np.ndarray, spread: np.ndarray, episodes: Episodes) -> Figure:
    """1 / Std(s_0, g) over goals g (appendix "Uncertainty and Density"), with the data's goals and visited places."""
    figure = Figure(figsize=(4.6, 3.8), layout="constrained")
    axis = figure.subplots()
    half = (grid[1] - grid[0]) / 2
    extent = (grid[0] - half, grid[-1] + half, grid[0] - half, grid[-1] + half)
    image = axis.imshow(1.0 / spread, origin="lower", extent=extent, cmap="viridis")
    places = np.asarray(episodes.achieved).reshape(-1, 2)
    axis.scatter(places[:, 0], places[:, 1], s=1.5, color="white", alpha=0.5, linewidths=0)
    _goals(axis, np.unique(np.asarray(episodes.goals).round(4), axis=0))
    axis.set_xlim(extent[0], extent[1])
    axis.set_ylim(extent[2], extent[3])
    axis.set_title("1 / Std of the value ensemble from (0, 0)", fontsize=9)
    figure.colorbar(image, ax=axis, shrink=0.9)
    return figure


def dataset(episodes: Episodes, title: str) -> Figure:
    """Where a dataset goes: achieved goals (first two coordinates), desired goals, and the actions taken."""
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    space, actions = figure.subplots(1, 2)
    achieved, goals = np.asarray(episodes.achieved), np.asarray(episodes.goals)
    places = achieved[..., :2].reshape(-1, 2)
    space.scatter(places[:, 0], places[:, 1], s=2, color=DATA_COLOR, linewidths=0, label="achieved", rasterized=True)
    space.scatter(goals[:, 0], goals[:, 1], marker="*", s=22, color=GOAL_COLOR, linewidths=0, label="desired")
    space.set_aspect("equal")
    space.set_title(title, fontsize=9)
    space.legend(fontsize=7, frameon=False)
    taken = np.asarray(episodes.actions).reshape(-1, episodes.actions.shape[-1])
    actions.hist(taken, bins=41, histtype="step", density=True, label=[f"axis {axis}" for axis in range(taken.shape[1])])
    actions.legend(fontsize=7, frameon=False)
    actions.set_title("actions, by axis", fontsize=9)
    return figure
