"""Pictures of datasets and of task groups: where starts, goals and episodes lie, and what the IID
filter keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from goatrl.data import check
from goatrl.data.check import Finding
from goatrl.report.figures import DATA_COLOR, GOAL_COLOR, OURS_COLOR, SPLIT_COLORS
from goatrl.tasks import TaskGroup
from goatrl.tasks.panels import Panel, Surroundings
from goatrl.types import ActionBounds, Episodes, distance

DATA_START = "#4f9d69"
SEEN_COLOR = "#dcefe2"


def dataset(episodes: Episodes, title: str, group: TaskGroup | None = None) -> Figure:
    """Where a dataset goes: places it visits and where episodes start; where they end and should
    have ended; the actions taken.

    Seen in the first two coordinates of a goal; ends also in the first and third, where those
    differ by more than a hair. With a group, a dotted line is the border of what its IID filter
    keeps, in panels where there is one.
    """
    achieved, goals = np.asarray(episodes.achieved), np.asarray(episodes.goals)
    begun = achieved[episodes.at(np.arange(episodes.count), 0)]
    spread = np.diff(
        np.quantile(achieved.reshape(-1, goals.shape[1]), [0.005, 0.995], axis=0), axis=0
    )[0]
    in_space = goals.shape[1] == 3 and spread[2] > 0.1 * spread[0]
    figure = Figure(figsize=(3.3 * (4 if in_space else 3), 3.1), layout="constrained")
    figure.suptitle(title, fontsize=10)
    begins, *ends, actions = figure.subplots(1, 4 if in_space else 3)
    few = np.linspace(0, episodes.count - 1, min(episodes.count, 300)).astype(
        int
    )  # more would only cover each other
    last = episodes.length(few)
    _visited(begins, achieved, goals, (0, 1), group, begun)
    begins.scatter(*begun[few][:, :2].T, s=5, color=DATA_START, linewidths=0)
    begins.set_title("visited, and starts", fontsize=9)
    for space, view in zip(ends, [(0, 1), (0, 2)], strict=False):
        _visited(space, achieved, goals, view, group, begun)
        space.scatter(
            *np.asarray(episodes.desired(few, last))[:, view].T,
            marker="*",
            s=16,
            color=GOAL_COLOR,
            linewidths=0,
            label="desired",
        )
        space.scatter(
            *achieved[episodes.at(few, last)][:, view].T,
            s=5,
            color=OURS_COLOR,
            linewidths=0,
            label="end",
        )
        space.set_title("ends, and desired goals", fontsize=9)
        space.legend(fontsize=7, loc="upper right", markerscale=1.5)
    taken = np.asarray(episodes.actions)[episodes.at(*episodes.steps())]
    names = [f"axis {axis}" for axis in range(taken.shape[1])] if taken.shape[1] <= 4 else None
    actions.hist(taken, bins=41, histtype="step", density=True, label=names)
    if names:
        actions.legend(fontsize=7, frameon=False)
    actions.set_title("actions, by axis", fontsize=9)
    actions.tick_params(labelsize=6)
    return figure


def checked(
    episodes: Episodes,
    title: str,
    threshold: float | None,
    bounds: ActionBounds | None,
    findings: Sequence[Finding],
) -> Figure:
    """What `goat data check` looks at: how long episodes are and how much of their ends is
    repeated, how far from their goals they end, which actions they take; and its findings.
    """
    height = 2.9 + 0.2 * max(len(findings), 1)
    figure = Figure(figsize=(9.9, height))
    edges = {"top": 1 - 0.55 / height, "bottom": 1 - 2.5 / height, "left": 0.06, "right": 0.98}
    lengths, distances, actions = figure.subplots(1, 3, gridspec_kw=edges)
    figure.suptitle(title, fontsize=10)
    episode, step = episodes.steps()
    taken = np.bincount(episode)
    frames = check.repeated(episodes)
    bins = np.linspace(0, taken.max() + 1, 31)
    lengths.hist(taken, bins=bins, color=DATA_COLOR)
    if frames.any():
        lengths.hist(frames[frames > 0], bins=bins, color=GOAL_COLOR, label="repeated at the end")
        lengths.legend(fontsize=7, frameon=False)
    lengths.set_title("actions per episode", fontsize=9)
    last = step == taken[episode] - 1
    ends = np.asarray(episodes.achieved)[episodes.at(episode[last], step[last] + 1)]
    far = distance(ends, np.asarray(episodes.desired(episode[last], step[last])))
    distances.hist(far, bins=30, color=DATA_COLOR)
    if threshold is not None:
        distances.axvline(threshold, color=OURS_COLOR, linestyle=":", label="threshold")
        distances.legend(fontsize=7, frameon=False)
    distances.set_title("distance to the goal at the end", fontsize=9)
    done = np.asarray(episodes.actions)[episodes.at(episode, step)]
    actions.hist(done, bins=41, histtype="step", density=True)
    ends_of_range = (-1.0, 1.0) if bounds is None else (min(bounds.low), max(bounds.high))
    for each in ends_of_range:
        actions.axvline(each, color=OURS_COLOR, linestyle=":")
    actions.set_title("actions, by axis, and their bounds", fontsize=9)
    for axis in (lengths, distances, actions):
        axis.tick_params(labelsize=6)
    lines = [f"{'✗' if each.fatal else '!'} {each.what}" for each in findings]
    text = "\n".join(lines) or "nothing suspicious"
    figure.text(0.03, 1 - 2.85 / height, text, fontsize=8, va="top", linespacing=1.5)
    return figure


def _visited(
    space: Axes,
    achieved: np.ndarray,
    goals: np.ndarray,
    view: tuple[int, int],
    group: TaskGroup | None,
    begun: np.ndarray,
) -> None:
    """Grey where the episodes went, dark where often. Objects that flew off are left out of the
    picture.
    """
    places = achieved[..., view].reshape(-1, 2)
    both = np.concatenate(
        [
            np.quantile(places, [0.005, 0.995], axis=0),
            goals[:, view].min(0)[None],
            goals[:, view].max(0)[None],
        ]
    )
    low, high = both.min(axis=0), both.max(axis=0)
    margin = 0.06 * max((high - low).max(), 1e-6)
    shown = np.stack([low - margin, high + margin], axis=1)
    shade = LogNorm() if len(places) > 1 else None
    space.hist2d(
        places[:, 0],
        places[:, 1],
        bins=60,
        range=shown,
        cmin=1,
        cmap="Greys",
        norm=shade,
        rasterized=True,
    )
    space.set_aspect("equal")
    space.set_xlim(*shown[0])
    space.set_ylim(*shown[1])
    unit = "" if group is None or not group.family.unit else f" ({group.family.unit})"
    space.set_xlabel("xyz"[view[0]] + unit, fontsize=8)
    space.set_ylabel("xyz"[view[1]] + unit, fontsize=8)
    space.tick_params(labelsize=6)
    if group is not None:
        _border(space, group, np.median(begun, axis=0), view)


def _border(space: Axes, group: TaskGroup, start: np.ndarray, view: tuple[int, int]) -> None:
    """A dotted line around what the group's filter keeps; coordinates that the panel does not show
    are as at the start.
    """

    def in_space(points: np.ndarray) -> np.ndarray:
        places = np.broadcast_to(start, (*points.shape[:-1], len(start))).copy()
        places[..., view] = points
        return places

    if _outline(space, _filtered(space, group, in_space)):
        space.plot(
            [], [], ":", color=SPLIT_COLORS["iid"], linewidth=1.0, label="IID filter"
        )  # contours have no label


def regions(groups: Sequence[TaskGroup], count: int = 90) -> Figure:
    """Where starts and goals of robot tasks lie, and what the IID filter keeps: a row per group, a
    panel per task.
    """
    columns = max(len(group.tasks) for group in groups)
    width, height = (
        0.5 + 2.05 * max(columns, 4),
        0.65 + 2.65 * len(groups),
    )  # the legend is as wide as four panels
    figure = Figure(figsize=(width, height))
    edges = {
        "left": 0.5 / width,
        "right": (0.5 + 2.05 * columns) / width,
        "top": 1.0 - 1.05 / height,
        "bottom": 0.4 / height,
    }
    axes = figure.subplots(
        len(groups), columns, squeeze=False, gridspec_kw={**edges, "wspace": 0.07, "hspace": 0.42}
    )
    for row, group in zip(axes, groups, strict=True):
        _task_panels(row, group, count)
    shown = [group.panel(group).surroundings for group in groups if group.panel is not None]
    robots = any(around.gripper is not None for around in shown)
    mark = partial(Line2D, [], [], linestyle="")
    handles = [
        mark(
            marker="s",
            markersize=4,
            color=OURS_COLOR,
            label="starts of the object" if robots else "starts",
        ),
        mark(marker="*", markersize=6, color=GOAL_COLOR, label="goals"),
        *(
            [mark(marker="P", markersize=6, color="black", label="gripper at the start")]
            if robots
            else []
        ),
        Patch(
            facecolor=SEEN_COLOR,
            edgecolor=SPLIT_COLORS["iid"],
            linestyle=":",
            label="kept by the IID filter",
        ),
        *([Patch(facecolor="none", edgecolor=DATA_COLOR, label="table")] if robots else []),
        *(
            [Patch(facecolor=DATA_COLOR, label="walls")]
            if any(len(around.walls) for around in shown)
            else []
        ),
    ]
    figure.legend(
        handles=handles,
        ncols=len(handles),
        loc="upper left",
        bbox_to_anchor=(0.4 / width, 1.0),
        title="Seen from above, with the robot at the upper edge" if robots else "Seen from above",
        alignment="left",
        fontsize=8,
        title_fontsize=8,
        frameon=False,
    )
    return figure


def _task_panels(panels: np.ndarray, group: TaskGroup, count: int) -> None:
    assert group.panel is not None
    panel = group.panel(group)
    around = panel.surroundings
    drawn = [panel.shown(*task.draw(0, count)) for task in group.tasks]
    points = np.concatenate([part for pair in drawn for part in pair])
    if around.whole_table:
        points = np.concatenate([points, around.table])
    centre, half = (
        (points.min(axis=0) + points.max(axis=0)) / 2,
        0.58 * np.ptp(points, axis=0).max(),
    )
    for axis in panels[len(drawn) :]:
        axis.axis("off")
    for axis, task, (starts, goals) in zip(panels, group.tasks, drawn, strict=False):
        axis.set_aspect("equal")
        axis.set_xlim(centre[0] - half, centre[0] + half)
        axis.set_ylim(centre[1] - half, centre[1] + half)
        _seen(axis, group, panel)
        _furnish(axis, around)
        axis.scatter(*starts.T, marker="s", s=6, color=OURS_COLOR, linewidths=0, zorder=3)
        axis.scatter(*goals.T, marker="*", s=18, color=GOAL_COLOR, linewidths=0, zorder=3)
        axis.set_title(
            f"{task.name} · {task.split.upper()}",
            fontsize=9,
            fontweight="bold",
            color=SPLIT_COLORS[task.split],
            pad=4,
        )
        axis.spines[:].set_color(SPLIT_COLORS[task.split])
        axis.tick_params(labelsize=6, length=2, labelleft=axis is panels[0])
        axis.locator_params(nbins=5)
        axis.set_xlabel(panel.names[0], fontsize=7, labelpad=1)
    panels[0].set_ylabel(panel.names[1], fontsize=7, labelpad=2)
    name = panels[0].text(
        0.0, 1.15, group.label, transform=panels[0].transAxes, fontsize=10, fontweight="bold"
    )
    panels[0].annotate(
        panel.caption,
        (1.0, 0.0),
        (8, 0),
        xycoords=name,
        textcoords="offset points",
        fontsize=8.5,
        va="bottom",
    )


def _furnish(axis: Axes, around: Surroundings) -> None:
    if around.gripper is not None:
        axis.scatter(
            *around.gripper,
            marker="P",
            s=40,
            color="black",
            edgecolors="white",
            linewidths=0.6,
            zorder=4,
        )
    if around.table.size:
        (left, low), (right, high) = around.table
        axis.add_patch(
            Rectangle((left, low), right - left, high - low, fill=False, edgecolor=DATA_COLOR)
        )
    for (left, low), (right, high) in around.walls:
        axis.add_patch(Rectangle((left, low), right - left, high - low, color=DATA_COLOR))
    if around.from_above:
        axis.invert_yaxis()
    if around.centred:
        axis.axhline(0.0, color=DATA_COLOR, linewidth=0.5)
        axis.axvline(0.0, color=DATA_COLOR, linewidth=0.5)


def _seen(axis: Axes, group: TaskGroup, panel: Panel) -> None:
    """Shade what the group's own filter accepts."""
    filtered = _filtered(axis, group, panel.in_space)
    axis.contourf(*filtered, levels=[0.5, 1.5], colors=[SEEN_COLOR])
    _outline(axis, filtered)


Filtered = tuple[
    np.ndarray, np.ndarray, np.ndarray
]  # x and y of points of a panel, and whether the filter keeps them


def _filtered(
    axis: Axes, group: TaskGroup, in_space: Callable[[np.ndarray], np.ndarray]
) -> Filtered:
    x, y = np.meshgrid(np.linspace(*axis.get_xlim(), 301), np.linspace(*axis.get_ylim(), 301))
    return x, y, group.iid.contains(in_space(np.stack([x, y], axis=-1)))


def _outline(axis: Axes, filtered: Filtered) -> bool:
    """A dotted line around what is kept; whether there is one to draw."""
    *_, inside = filtered
    partly = bool(inside.any() and not inside.all())
    if partly:
        axis.contour(
            *filtered, levels=[0.5], colors=SPLIT_COLORS["iid"], linestyles=":", linewidths=1.0
        )
    return partly
