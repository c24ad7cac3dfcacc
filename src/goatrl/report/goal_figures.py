"""Figures in the space of goals: paths of agents, maps of what they reach, a critic's spread."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle

from goatrl.report.figures import DATA_COLOR, GOAL_COLOR, OURS_COLOR
from goatrl.report.maps import Coverage
from goatrl.types import Episodes

MISSED_COLOR, MAP_COLOR, BORDER_COLOR = "#e0a030", "#0d2b52", "#d9480f"
HEADING = 22  # characters above a panel of coverage


def trajectories(
    rows: Mapping[str, tuple[Episodes, Mapping[str, pa.Table]]],
    task: str,
    bound: float,
    columns: Sequence[str],
) -> Figure:
    """The paper's first figure: per dataset a row, first the data, then the paths of every agent to
    all goals of a task.

    Each row has the dataset and, for each agent, its evaluated episodes.
    """
    figure = Figure(figsize=(2.3 * (len(columns) + 1), 2.45 * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), len(columns) + 1, squeeze=False)
    for row, (dataset, (episodes, agents)) in zip(axes, rows.items(), strict=True):
        _frame(row[0], f"data: {dataset}", bound)
        _paths(row[0], episodes.paths(), DATA_COLOR, 0.9)
        _goals(row[0], np.unique(np.asarray(episodes.goals).round(4), axis=0))
        for axis, label in zip(row[1:], columns, strict=True):
            if label not in agents:
                axis.axis("off")
                continue
            evaluated = agents[label].filter(
                np.asarray(agents[label].column("task").to_pylist()) == task
            )
            success, paths, goals = (
                np.asarray(evaluated.column(name).to_pylist())
                for name in ("success", "path", "goal")
            )
            _frame(axis, f"{label}  {100 * success.mean():.0f} %", bound)
            _paths(axis, paths.reshape(len(paths), -1, 2), OURS_COLOR, 0.35)
            _goals(axis, goals)
    figure.supxlabel(
        f"agents: the paths of all seeds to the goals of {task} (stars); dotted: y = 0",
        fontsize=8,
    )
    return figure


def paths_in_environment(table: pa.Table, threshold: float) -> Figure:
    """Paths of evaluated episodes in the first two coordinates of a goal, a panel for each seed.
    Circles are as far from the goals as the goal threshold.
    """
    rows = table.to_pylist()
    seeds = list(dict.fromkeys(row["seed"] for row in rows))
    figure = Figure(figsize=(1.5 + 2.6 * len(seeds), 3.4), layout="constrained")
    axes = figure.subplots(1, len(seeds), squeeze=False, sharex=True, sharey=True)[0]
    for axis, seed in zip(axes, seeds, strict=True):
        mine = [row for row in rows if row["seed"] == seed]
        success = np.mean([row["success"] for row in mine])
        axis.set_title(f"seed {seed}  {100 * success:.0f} %", fontsize=9)
        axis.set_aspect("equal")
        axis.tick_params(labelsize=6, length=2)
        axis.set_xlabel("goal coordinate 0", fontsize=8)
        for row in mine:
            goal = np.asarray(row["goal"])
            path = np.reshape(row["path"], (-1, len(goal)))
            color = OURS_COLOR if row["success"] else MISSED_COLOR
            axis.plot(path[:, 0], path[:, 1], color=color, linewidth=0.9, zorder=2)
            axis.add_patch(
                Circle((goal[0], goal[1]), threshold, fill=False, color=GOAL_COLOR, linewidth=0.6)
            )
        _goals(axis, np.asarray([row["goal"] for row in mine]))
        axis.scatter(
            *np.asarray([row["start"][:2] for row in mine]).T, s=8, color="black", zorder=3
        )
    axes[0].set_ylabel("goal coordinate 1", fontsize=8)
    marks = [
        Line2D([], [], color=OURS_COLOR, label="success"),
        Line2D([], [], color=MISSED_COLOR, label="no success"),
        Line2D([], [], linestyle="", marker=".", color="black", label="start"),
        Line2D([], [], linestyle="", marker="*", color=GOAL_COLOR, label="goal"),
        Line2D(
            [],
            [],
            linestyle="",
            marker="o",
            markerfacecolor="none",
            color=GOAL_COLOR,
            label=f"goal threshold ({threshold:g})",
        ),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=3, fontsize=7, frameon=False)
    return figure


def _frame(axis: Axes, title: str, bound: float) -> None:
    axis.set_title(title, fontsize=9)
    axis.set_aspect("equal")
    limit = bound * 1.06
    axis.set_xlim(-limit, limit)
    axis.set_ylim(-limit, limit)
    axis.tick_params(labelsize=6, length=2)
    axis.axhline(0.0, color="black", linewidth=0.4, linestyle=":")


def _paths(axis: Axes, paths: Iterable[np.ndarray], color: str, alpha: float) -> None:
    for path in paths:
        axis.plot(path[:, 0], path[:, 1], color=color, alpha=alpha, linewidth=0.7)


def _goals(axis: Axes, goals: np.ndarray) -> None:
    axis.scatter(
        goals[:, 0], goals[:, 1], marker="*", s=22, color=GOAL_COLOR, zorder=3, linewidths=0
    )


def coverage(rows: Mapping[str, Mapping[str, Coverage]], columns: Sequence[str]) -> Figure:
    """Which goals are reached from one start: per group a row, per agent a panel; the darker a
    square, the more seeds reach it.

    The dotted line divides what the data has seen (IID) from what it has not.
    """
    headings = {label: textwrap.fill(label, HEADING) for label in columns}
    longest = max(heading.count("\n") for heading in headings.values())
    figure = Figure(
        figsize=(0.3 + 1.35 * len(columns), 0.35 + (1.75 + 0.12 * longest) * len(rows)),
        layout="constrained",
    )
    axes = figure.subplots(len(rows), len(columns), squeeze=False)
    for panels, (group, maps) in zip(axes, rows.items(), strict=True):
        for axis, label in zip(panels, columns, strict=True):
            axis.set_xticks([])
            axis.set_yticks([])
            if label in maps:
                _coverage_panel(axis, headings[label], maps[label])
            else:
                axis.axis("off")
        drawn = next(iter(maps.values()))
        panels[0].axis("on")
        across, down = ("xyz"[axis] for axis in drawn.axes)
        panels[0].set_xlabel(f"{across} →", fontsize=7, loc="left", labelpad=2)
        panels[0].set_ylabel(
            f"{group}\n{f'← {down}' if drawn.axes[1] == 0 else f'{down} →'}", fontsize=8
        )
    key = (
        "A square is a goal, darker the more seeds reach it; dotted: border of the data (IID | "
        "OOD); dot: start; %: of squares"
    )
    figure.supxlabel(key, fontsize=7)
    return figure


def _coverage_panel(axis: Axes, heading: str, drawn: Coverage) -> None:
    rows, columns = drawn.success.shape
    shades = LinearSegmentedColormap.from_list("coverage", ["white", MAP_COLOR])
    axis.imshow(drawn.success, cmap=shades, vmin=0.0, vmax=1.0, extent=(0, columns, rows, 0))
    axis.add_collection(
        LineCollection(
            drawn.border(), colors=BORDER_COLOR, linestyles=(0, (0.6, 1.4)), linewidths=1.6
        )
    )
    if drawn.start is not None:
        axis.scatter(
            *drawn.start,
            s=11,
            color="#ffd43b",
            edgecolors="black",
            linewidths=0.5,
            zorder=3,
            clip_on=False,
        )
    axis.set_xlim(0, columns)
    axis.set_ylim(rows, 0)
    shares = [
        f"{name} {100 * drawn.reached(seen):.0f} %"
        for name, seen in (("IID", True), ("OOD", False))
        if (drawn.seen == seen).any()
    ]
    axis.set_title(f"{heading}\n{', '.join(shares)}", fontsize=7.5)
    axis.spines[:].set_linewidth(0.5)


def density(grid: np.ndarray, spread: np.ndarray, episodes: Episodes) -> Figure:
    """1 / Std(s_0, g) over goals g (appendix "Uncertainty and Density"), with the data's goals and
    visited places.
    """
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
