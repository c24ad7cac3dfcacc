"""Figures, written as PNG, SVG or PDF by the file's ending."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from goatrl.benchmark.curves import RANDOM, Curve, bounds, resampled, standings
from goatrl.benchmark.records import Cell
from goatrl.benchmark.statistics import Average
from goatrl.files import write_atomically
from goatrl.report.maps import PLACES, Coverage
from goatrl.report.tables import Entry
from goatrl.tasks import TaskGroup, hand
from goatrl.tasks.regions import Box
from goatrl.types import Episodes, GoatError
from goatrl.uncertainty import PORTION, Ranking

FORMATS = ("png", "svg", "pdf")
DATA_COLOR, GOAL_COLOR, OURS_COLOR = "#8a8f98", "#d62728", "#1f5fa8"
DATA_START = "#4f9d69"
PALETTE = (
    *("#1f5fa8", "#4f9d69", "#c8a13a", "#8a8f98", "#b0567d", "#d1622b"),
    *("#6fa8dc", "#2f4f4f", "#9467bd", "#8c564b", "#bcbd22"),
)
SEEN_COLOR = "#dcefe2"
SPLIT_COLORS = {"iid": "#2e7d4f", "ood": "#c2410c"}
TOTAL_COLOR, MAP_COLOR, BORDER_COLOR = OURS_COLOR, "#0d2b52", "#d9480f"
# Two corners of each table whose edge is near, in metres; a test compares them with the simulator.
TABLES = {"push": ((0.95, 0.4, 0.0), (1.65, 1.1, 0.4)), "pick": ((1.05, 0.4, 0.0), (1.55, 1.1, 0.4))}


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


def bars(table: Sequence[Entry], full: float = 1.0) -> Figure:
    """Success with its deviation over seeds, grouped by dataset; a tick marks the paper's number. `full` is success everywhere."""
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
        axis.set_ylim(0, 1.08 * full)
        axis.set_ylabel(f"success on {task}")
        axis.spines[["top", "right"]].set_visible(False)
    if any(entry.paper for entry in table):
        figure.axes[0].scatter([], [], marker="_", s=100, color="black", label="paper")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8, frameon=False)
    return figure


def ladder(rungs: Mapping[str, np.ndarray], label: str) -> Figure:
    """Success of one composition after the other: the mean over seeds as a bar with its deviation, each seed as a dot."""
    figure = Figure(figsize=(1.2 + 0.75 * len(rungs), 2.9), layout="constrained")
    axis = figure.subplots()
    means = [values.mean() for values in rungs.values()]
    axis.bar(range(len(rungs)), means, 0.7, yerr=[v.std() for v in rungs.values()], color=OURS_COLOR, error_kw={"lw": 0.8})
    for place, values in enumerate(rungs.values()):
        axis.scatter(place + np.linspace(-0.15, 0.15, len(values)), values, s=7, color="black", linewidths=0, zorder=3)
    axis.set_xticks(range(len(rungs)), [f"{rung}\n{mean:.2f}" for rung, mean in zip(rungs, means, strict=True)])
    axis.set_ylim(0, 1.05)
    axis.set_ylabel(label)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def aggregate(averages: Sequence[Average], full: float = 1.0) -> Figure:
    """Averages over IID and over OOD tasks with their intervals, best on OOD first; a diamond marks the paper's.

    Where a suite has no tasks of one of the two splits, the average over all stands in its place.
    """
    present = {average.split for average in averages}
    splits = [split for split in ("iid", "ood", "all") if split in present and not (split == "all" and {"iid", "ood"} <= present)]
    of = {split: {average.label: average for average in averages if average.split == split} for split in splits}
    leading = of["ood"] if "ood" in of else of["all"]
    labels = sorted({label for found in of.values() for label in found}, key=lambda a: leading[a].mean if a in leading else -1.0)
    figure = Figure(figsize=(1.3 + 2.9 * len(splits), 0.9 + 0.27 * len(labels)), layout="constrained")
    axes = figure.subplots(1, len(splits), sharey=True, squeeze=False)[0]
    names = {
        "iid": ("IID tasks", SPLIT_COLORS["iid"]),
        "ood": ("OOD tasks", SPLIT_COLORS["ood"]),
        "all": ("all tasks", TOTAL_COLOR),
    }
    for axis, split in zip(axes, splits, strict=True):
        name, color = names[split]
        rows = [(height, of[split][label]) for height, label in enumerate(labels) if label in of[split]]
        heights, means = [height for height, _ in rows], [each.mean for _, each in rows]
        axis.hlines(
            heights, [e.interval.low for _, e in rows], [e.interval.high for _, e in rows], color=color, alpha=0.4, linewidth=6.0
        )
        axis.scatter(means, heights, s=12, color=color, linewidths=0, zorder=3, label="ours, with 95 % interval")
        theirs = [(each.paper, height) for height, each in rows if each.paper is not None]
        if theirs:
            marks = {"marker": "D", "s": 26, "facecolors": "none", "edgecolors": "black", "linewidths": 0.9, "zorder": 4}
            axis.scatter(*zip(*theirs, strict=True), **marks, label="paper")
        axis.set_title(f"{name} ({max(each.tasks for _, each in rows)})", fontsize=9, fontweight="bold", color=color)
        axis.set_xlim(0, 1.03 * full)
        axis.grid(axis="x", color="#e3e5e8", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(labelsize=8, length=2)
        axis.spines[["top", "right", "left"]].set_visible(False)
    axes[0].set_yticks(range(len(labels)), labels)
    handles, texts = max((axis.get_legend_handles_labels() for axis in axes), key=lambda found: len(found[1]))
    figure.legend(handles, texts, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return figure


def finetuning(panels: Mapping[str, Sequence[Curve]], random: Mapping[str, Curve], tones: Mapping[str, int]) -> Figure:
    """Success while agents go on online: per group a panel, per initialisation its mean over seeds and a 95 % interval.

    Dotted: where random networks end; a ring: the first judgement that is as high.
    """
    figure = Figure(figsize=(0.4 + 4.3 * len(panels), 3.3), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, (title, found) in zip(axes, panels.items(), strict=True):
        for curve, each in zip(found, standings(found, random), strict=True):
            color, thousands = PALETTE[tones[curve.label] % len(PALETTE)], curve.steps / 1_000
            low, high = bounds(resampled(curve))
            axis.fill_between(thousands, 100 * low, 100 * high, color=color, alpha=0.16, linewidth=0)
            style = "--" if curve.label == RANDOM else "-"
            axis.plot(thousands, 100 * curve.mean, color=color, linewidth=1.6, linestyle=style, label=curve.label)
            if each.level is not None:
                axis.axhline(100 * each.level, color=DATA_COLOR, linewidth=1.0, linestyle=":", zorder=1)
            if each.steps is not None and math.isfinite(each.steps.value):
                height = 100 * curve.mean[curve.steps == each.steps.value]
                ring = {"s": 26, "facecolors": "white", "edgecolors": color, "linewidths": 1.4, "zorder": 4, "clip_on": False}
                axis.scatter(each.steps.value / 1_000, height, **ring)
        axis.set_xlim(0, max(curve.steps[-1] for curve in found) / 1_000)
        axis.set_ylim(0, 100)
        _names_at_the_end(axis, found, tones)
        axis.set_title(title, fontsize=10, loc="left", fontweight="bold")
        axis.set_xlabel("environment steps of each seed, in thousands", fontsize=8)
        axis.grid(axis="y", color="#e3e5e8", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(labelsize=8, length=2)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("success without noise (%)", fontsize=8)
    counts = sorted({len(curve.seeds) for found in panels.values() for curve in found})
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    key = f"Line: mean over seeds ({seeds}); band: 95 % interval"
    ends = "; dotted: where random ends, by DDPG+HER; ring: first as high as that" if random else ""
    figure.supxlabel(key + ends, fontsize=8, color="#59626b")
    return figure


def _names_at_the_end(axis: Axes, found: Sequence[Curve], tones: Mapping[str, int]) -> None:
    """Names beside the ends of lines, moved apart where they would cover each other."""
    found = sorted(found, key=lambda curve: float(curve.mean[-1]))
    ends = [100 * float(curve.mean[-1]) for curve in found]
    for curve, height, place in zip(found, ends, apart(ends, 7.0, 100.0), strict=True):
        color = PALETTE[tones[curve.label] % len(PALETTE)]
        line = {"arrowstyle": "-", "color": color, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 1}
        axis.annotate(
            curve.label,
            (curve.steps[-1] / 1_000, height),
            (1.045, place / 100),
            textcoords="axes fraction",
            fontsize=8,
            va="center",
            arrowprops=line,
            annotation_clip=False,
        )


def apart(values: Sequence[float], gap: float, most: float) -> list[float]:
    """Rising values, moved as little as needed to be `gap` apart and at most `most`."""
    places: list[float] = []
    for value in values:
        places.append(max(value, places[-1] + gap) if places else value)
    for place in range(len(places) - 1, -1, -1):
        places[place] = min(places[place], most if place == len(places) - 1 else places[place + 1] - gap)
    return places


def coverage(rows: Mapping[str, Mapping[str, Coverage]], columns: Sequence[str]) -> Figure:
    """Which goals are reached from one start: per group a row, per agent a panel; the darker a square, the more seeds reach it.

    The dotted line divides what the data has seen (IID) from what it has not.
    """
    figure = Figure(figsize=(0.3 + 1.35 * len(columns), 0.35 + 1.75 * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), len(columns), squeeze=False)
    for panels, (group, maps) in zip(axes, rows.items(), strict=True):
        for axis, label in zip(panels, columns, strict=True):
            axis.set_xticks([])
            axis.set_yticks([])
            if label in maps:
                _coverage_panel(axis, label, maps[label])
            else:
                axis.axis("off")
        drawn = next(iter(maps.values()))
        panels[0].axis("on")
        across, down = ("xyz"[axis] for axis in drawn.axes)
        panels[0].set_xlabel(f"{across} →", fontsize=7, loc="left", labelpad=2)
        panels[0].set_ylabel(f"{group}\n{f'← {down}' if drawn.axes[1] == 0 else f'{down} →'}", fontsize=8)
    key = "A square is a goal, darker the more seeds reach it; dotted: border of the data (IID | OOD); dot: start; %: of squares"
    figure.supxlabel(key, fontsize=7)
    return figure


def _coverage_panel(axis: Axes, label: str, drawn: Coverage) -> None:
    rows, columns = drawn.success.shape
    shades = LinearSegmentedColormap.from_list("coverage", ["white", MAP_COLOR])
    axis.imshow(drawn.success, cmap=shades, vmin=0.0, vmax=1.0, extent=(0, columns, rows, 0))
    axis.add_collection(LineCollection(drawn.border(), colors=BORDER_COLOR, linestyles=(0, (0.6, 1.4)), linewidths=1.6))
    axis.scatter(*drawn.start, s=11, color="#ffd43b", edgecolors="black", linewidths=0.5, zorder=3, clip_on=False)
    axis.set_xlim(0, columns)
    axis.set_ylim(rows, 0)
    shares = [
        f"{name} {100 * drawn.reached(seen):.0f} %" for name, seen in (("IID", True), ("OOD", False)) if (drawn.seen == seen).any()
    ]
    axis.set_title(f"{label}\n{', '.join(shares)}", fontsize=7.5)
    axis.spines[:].set_linewidth(0.5)


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


def ranking(rankings: Sequence[Ranking]) -> Figure:
    """Supervised loss and distance to the goal, portion by portion of samples ranked by uncertainty weight; a band over seeds."""
    figure = Figure(figsize=(7.2, 2.9), layout="constrained")
    size = PORTION / 1_000
    labels = {"loss": "supervised loss  ‖a − π(s, g′)‖²", "distance": "state-goal distance  ‖g′ − φ(s)‖²"}
    for axis, (name, label) in zip(figure.subplots(1, 2), labels.items(), strict=True):
        values = np.stack([getattr(each, name) for each in rankings])
        places = (np.arange(values.shape[1]) + 0.5) * size
        axis.fill_between(places, values.min(axis=0), values.max(axis=0), color=OURS_COLOR, alpha=0.2, linewidth=0)
        axis.plot(places, values.mean(axis=0), marker="o", markersize=4, color=OURS_COLOR)
        axis.set_title(label, fontsize=9)
        axis.set_xlabel("samples by rising uncertainty weight, in thousands", fontsize=8)
        axis.tick_params(labelsize=7)
        axis.spines[["top", "right"]].set_visible(False)
    return figure


def dataset(episodes: Episodes, title: str) -> Figure:
    """Where a dataset goes: places it visits and where episodes start; where they end and should have ended; the actions taken.

    Seen in the first two coordinates of a goal; ends also in the first and third, where those differ by more than a hair.
    """
    achieved, goals = np.asarray(episodes.achieved), np.asarray(episodes.goals)
    spread = np.diff(np.quantile(achieved.reshape(-1, goals.shape[1]), [0.005, 0.995], axis=0), axis=0)[0]
    in_space = goals.shape[1] == 3 and spread[2] > 0.1 * spread[0]
    figure = Figure(figsize=(3.3 * (4 if in_space else 3), 3.1), layout="constrained")
    figure.suptitle(title, fontsize=10)
    begins, *ends, actions = figure.subplots(1, 4 if in_space else 3)
    few = np.linspace(0, episodes.count - 1, min(episodes.count, 300)).astype(int)  # more would only cover each other
    _visited(begins, achieved, goals, (0, 1))
    begins.scatter(*achieved[few, 0][:, :2].T, s=5, color=DATA_START, linewidths=0)
    begins.set_title("visited, and starts", fontsize=9)
    for space, view in zip(ends, [(0, 1), (0, 2)], strict=False):
        _visited(space, achieved, goals, view)
        space.scatter(*goals[few][:, view].T, marker="*", s=16, color=GOAL_COLOR, linewidths=0, label="desired")
        space.scatter(*achieved[few, -1][:, view].T, s=5, color=OURS_COLOR, linewidths=0, label="end")
        space.set_title("ends, and desired goals", fontsize=9)
        space.legend(fontsize=7, loc="upper right", markerscale=1.5)
    taken = np.asarray(episodes.actions).reshape(-1, episodes.actions.shape[-1])
    names = [f"axis {axis}" for axis in range(taken.shape[1])] if taken.shape[1] <= 4 else None
    actions.hist(taken, bins=41, histtype="step", density=True, label=names)
    if names:
        actions.legend(fontsize=7, frameon=False)
    actions.set_title("actions, by axis", fontsize=9)
    actions.tick_params(labelsize=6)
    return figure


def _visited(space: Axes, achieved: np.ndarray, goals: np.ndarray, view: tuple[int, int]) -> None:
    """Grey where the episodes went, dark where often. Objects that flew off are left out of the picture."""
    places = achieved[..., view].reshape(-1, 2)
    both = np.concatenate([np.quantile(places, [0.005, 0.995], axis=0), goals[:, view].min(0)[None], goals[:, view].max(0)[None]])
    low, high = both.min(axis=0), both.max(axis=0)
    margin = 0.06 * max((high - low).max(), 1e-6)
    shown = np.stack([low - margin, high + margin], axis=1)
    shade = LogNorm() if len(places) > 1 else None
    space.hist2d(places[:, 0], places[:, 1], bins=60, range=shown, cmin=1, cmap="Greys", norm=shade, rasterized=True)
    space.set_aspect("equal")
    space.set_xlim(*shown[0])
    space.set_ylim(*shown[1])
    space.set_xlabel("xyz"[view[0]], fontsize=8)
    space.set_ylabel("xyz"[view[1]], fontsize=8)
    space.tick_params(labelsize=6)


def regions(groups: Sequence[TaskGroup], count: int = 90) -> Figure:
    """Where starts and goals of robot tasks lie, and what the IID filter keeps: a row per group, a panel per task."""
    columns = max(len(group.tasks) for group in groups)
    width, height = 0.5 + 2.05 * max(columns, 4), 0.65 + 2.65 * len(groups)  # the legend is as wide as four panels
    figure = Figure(figsize=(width, height))
    edges = {"left": 0.5 / width, "right": (0.5 + 2.05 * columns) / width, "top": 1.0 - 1.05 / height, "bottom": 0.4 / height}
    axes = figure.subplots(len(groups), columns, squeeze=False, gridspec_kw={**edges, "wspace": 0.07, "hspace": 0.42})
    for row, group in zip(axes, groups, strict=True):
        _task_panels(row, group, count)
    handles = [
        Line2D([], [], linestyle="", marker="s", markersize=4, color=OURS_COLOR, label="starts of the object"),
        Line2D([], [], linestyle="", marker="*", markersize=6, color=GOAL_COLOR, label="goals"),
        Line2D([], [], linestyle="", marker="P", markersize=6, color="black", label="gripper at the start"),
        Patch(facecolor=SEEN_COLOR, edgecolor=SPLIT_COLORS["iid"], linestyle=":", label="kept by the IID filter"),
        Patch(facecolor="none", edgecolor=DATA_COLOR, label="table"),
    ]
    figure.legend(
        handles=handles,
        ncols=len(handles),
        loc="upper left",
        bbox_to_anchor=(0.4 / width, 1.0),
        title="Seen from above, with the robot at the upper edge",
        alignment="left",
        fontsize=8,
        title_fontsize=8,
        frameon=False,
    )
    return figure


def _task_panels(panels: np.ndarray, group: TaskGroup, count: int) -> None:
    view: _ArmView | _HandView = _HandView() if group.family == "hand" else _ArmView(group)
    drawn = [view.shown(*task.draw(0, count)) for task in group.tasks]
    points = np.concatenate([*(part for pair in drawn for part in pair), view.also_shown])
    centre, half = (points.min(axis=0) + points.max(axis=0)) / 2, 0.58 * np.ptp(points, axis=0).max()
    for axis in panels[len(drawn) :]:
        axis.axis("off")
    for axis, task, (starts, goals) in zip(panels, group.tasks, drawn, strict=False):
        axis.set_aspect("equal")
        axis.set_xlim(centre[0] - half, centre[0] + half)
        axis.set_ylim(centre[1] - half, centre[1] + half)
        _seen(axis, group, view)
        view.furnish(axis)
        axis.scatter(*starts.T, marker="s", s=6, color=OURS_COLOR, linewidths=0, zorder=3)
        axis.scatter(*goals.T, marker="*", s=18, color=GOAL_COLOR, linewidths=0, zorder=3)
        axis.set_title(f"{task.name} · {task.split.upper()}", fontsize=9, fontweight="bold", color=SPLIT_COLORS[task.split], pad=4)
        axis.spines[:].set_color(SPLIT_COLORS[task.split])
        axis.tick_params(labelsize=6, length=2, labelleft=axis is panels[0])
        axis.locator_params(nbins=5)
        axis.set_xlabel(view.names[0], fontsize=7, labelpad=1)
    panels[0].set_ylabel(view.names[1], fontsize=7, labelpad=2)
    name = panels[0].text(0.0, 1.15, group.label, transform=panels[0].transAxes, fontsize=10, fontweight="bold")
    panels[0].annotate(view.kept(group), (1.0, 0.0), (8, 0), xycoords=name, textcoords="offset points", fontsize=8.5, va="bottom")


def _seen(axis: Axes, group: TaskGroup, view: _ArmView | _HandView) -> None:
    """Shade what the group's own filter accepts."""
    x, y = np.meshgrid(np.linspace(*axis.get_xlim(), 301), np.linspace(*axis.get_ylim(), 301))
    inside = group.iid.contains(view.in_space(np.stack([x, y], axis=-1)))
    axis.contourf(x, y, inside, levels=[0.5, 1.5], colors=[SEEN_COLOR])
    if not inside.all():
        axis.contour(x, y, inside, levels=[0.5], colors=SPLIT_COLORS["iid"], linestyles=":", linewidths=1.0)


class _ArmView:
    """The table as one sees it who stands opposite the robot and looks down; where the border is a height, from the side."""

    def __init__(self, group: TaskGroup) -> None:
        self.from_side = group.name == "pick-low-high"
        self.axes = [0, 2] if self.from_side else [1, 0]
        self.names = ["xyz"[axis] + " (m)" for axis in self.axes]
        self.place = PLACES[group.family]
        self.table = np.array(TABLES[group.family])[:, self.axes] if group.family in TABLES else np.empty((0, 2))
        self.also_shown = self.table if group.family == "push" else np.empty((0, 2))  # it was enlarged for the far tasks

    def kept(self, group: TaskGroup) -> str:
        """The filter in words."""
        assert isinstance(group.iid, Box)
        borders = [f"at {axis} ≥ {low:.3g} m" for axis, low in zip("xyz", group.iid.low, strict=True) if math.isfinite(low)]
        borders += [f"at {axis} ≤ {high:.3g} m" for axis, high in zip("xyz", group.iid.high, strict=True) if math.isfinite(high)]
        if math.isfinite(group.iid.farthest):
            borders.append(f"within {group.iid.farthest:g} m of where the gripper starts (in x and y)")
        what = "gripper" if group.family == "reach" else "object"
        seen = "; seen from the side, with the robot on the left" if self.from_side else ""
        return f"episodes are kept if the {what} stays {' and '.join(borders)}{seen}"

    def shown(self, starts: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The two coordinates of starts and goals that a panel shows."""
        objects = np.pad(starts.reshape(-1, 2), ((0, 0), (0, 1)), constant_values=self.place.table)  # Reach has none
        return objects[:, self.axes], goals[:, self.axes]

    def in_space(self, points: np.ndarray) -> np.ndarray:
        """Points of a panel as goals; in the coordinate that is not shown, level with the gripper."""
        goals = np.broadcast_to(self.place.gripper, (*points.shape[:-1], 3)).copy()
        goals[..., self.axes] = points
        return goals

    def furnish(self, axis: Axes) -> None:
        across, upwards = (self.place.gripper[axis] for axis in self.axes)
        axis.scatter(across, upwards, marker="P", s=40, color="black", edgecolors="white", linewidths=0.6, zorder=4)
        if self.table.size:
            (left, low), (right, high) = self.table
            axis.add_patch(Rectangle((left, low), right - left, high - low, fill=False, edgecolor=DATA_COLOR))
        if not self.from_side:
            axis.invert_yaxis()  # with y to the right, x grows towards the viewer


class _HandView:
    """How far the point at which thumb and finger meet is shifted from its centre."""

    names = ("shift in x (mm)", "shift in y (mm)")
    also_shown = np.empty((0, 2))

    def kept(self, group: TaskGroup) -> str:
        return "where thumb and finger meet; all data is kept; goals that are the initial pose are not shown"

    def shown(self, starts: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tips = goals.reshape(-1, 5, 3)
        moved = (tips[:, hand.THUMB] != hand.FINGERTIPS[hand.THUMB]).any(axis=-1)
        shift = hand._meeting_point(tips[moved]) - hand.MEETING
        return np.empty((0, 2)), 1000 * shift[:, :2]

    def in_space(self, points: np.ndarray) -> np.ndarray:
        shift = np.pad(points / 1000, [(0, 0)] * (points.ndim - 1) + [(0, 1)])
        return hand.meet(hand.MEETING + shift, np.zeros(points.shape[:-1], int))

    def furnish(self, axis: Axes) -> None:
        axis.axhline(0.0, color=DATA_COLOR, linewidth=0.5)
        axis.axvline(0.0, color=DATA_COLOR, linewidth=0.5)
