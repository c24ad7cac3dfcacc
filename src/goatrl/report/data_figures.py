"""Pictures of datasets and of task groups: where starts, goals and episodes lie, and what the IID
filter keeps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from goatrl.report.figures import DATA_COLOR, GOAL_COLOR, OURS_COLOR, SPLIT_COLORS
from goatrl.report.maps import PLACES
from goatrl.tasks import TaskGroup, shadow_hand
from goatrl.tasks.regions import Box
from goatrl.types import Episodes

DATA_START = "#4f9d69"
SEEN_COLOR = "#dcefe2"
# Two corners of each table whose edge is near, in metres; a test compares them with the simulator.
TABLES = {
    "push": ((0.95, 0.4, 0.0), (1.65, 1.1, 0.4)),
    "pick": ((1.05, 0.4, 0.0), (1.55, 1.1, 0.4)),
}


def dataset(episodes: Episodes, title: str, group: TaskGroup | None = None) -> Figure:
    """Where a dataset goes: places it visits and where episodes start; where they end and should
    have ended; the actions taken.

    Seen in the first two coordinates of a goal; ends also in the first and third, where those
    differ by more than a hair. With a group, a dotted line is the border of what its IID filter
    keeps, in panels where there is one.
    """
    achieved, goals = np.asarray(episodes.achieved), np.asarray(episodes.goals)
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
    _visited(begins, achieved, goals, (0, 1), group)
    begins.scatter(*achieved[few, 0][:, :2].T, s=5, color=DATA_START, linewidths=0)
    begins.set_title("visited, and starts", fontsize=9)
    for space, view in zip(ends, [(0, 1), (0, 2)], strict=False):
        _visited(space, achieved, goals, view, group)
        space.scatter(
            *goals[few][:, view].T,
            marker="*",
            s=16,
            color=GOAL_COLOR,
            linewidths=0,
            label="desired",
        )
        space.scatter(
            *achieved[few, -1][:, view].T, s=5, color=OURS_COLOR, linewidths=0, label="end"
        )
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


def _visited(
    space: Axes,
    achieved: np.ndarray,
    goals: np.ndarray,
    view: tuple[int, int],
    group: TaskGroup | None,
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
    unit = "" if group is None or group.family == "point" else " (m)"
    space.set_xlabel("xyz"[view[0]] + unit, fontsize=8)
    space.set_ylabel("xyz"[view[1]] + unit, fontsize=8)
    space.tick_params(labelsize=6)
    if group is not None:
        _border(space, group, np.median(achieved[:, 0], axis=0), view)


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
    handles = [
        Line2D(
            [],
            [],
            linestyle="",
            marker="s",
            markersize=4,
            color=OURS_COLOR,
            label="starts of the object",
        ),
        Line2D([], [], linestyle="", marker="*", markersize=6, color=GOAL_COLOR, label="goals"),
        Line2D(
            [],
            [],
            linestyle="",
            marker="P",
            markersize=6,
            color="black",
            label="gripper at the start",
        ),
        Patch(
            facecolor=SEEN_COLOR,
            edgecolor=SPLIT_COLORS["iid"],
            linestyle=":",
            label="kept by the IID filter",
        ),
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
        _seen(axis, group, view)
        view.furnish(axis)
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
        axis.set_xlabel(view.names[0], fontsize=7, labelpad=1)
    panels[0].set_ylabel(view.names[1], fontsize=7, labelpad=2)
    name = panels[0].text(
        0.0, 1.15, group.label, transform=panels[0].transAxes, fontsize=10, fontweight="bold"
    )
    panels[0].annotate(
        view.kept(group),
        (1.0, 0.0),
        (8, 0),
        xycoords=name,
        textcoords="offset points",
        fontsize=8.5,
        va="bottom",
    )


def _seen(axis: Axes, group: TaskGroup, view: _ArmView | _HandView) -> None:
    """Shade what the group's own filter accepts."""
    filtered = _filtered(axis, group, view.in_space)
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


class _ArmView:
    """The table as one sees it who stands opposite the robot and looks down; where the border is a
    height, from the side.
    """

    def __init__(self, group: TaskGroup) -> None:
        self.from_side = group.name == "pick-low-high"
        self.axes = [0, 2] if self.from_side else [1, 0]
        self.names = ["xyz"[axis] + " (m)" for axis in self.axes]
        self.place = PLACES[group.family]
        self.table = (
            np.array(TABLES[group.family])[:, self.axes]
            if group.family in TABLES
            else np.empty((0, 2))
        )
        self.also_shown = (
            self.table if group.family == "push" else np.empty((0, 2))
        )  # it was enlarged for the far tasks

    def kept(self, group: TaskGroup) -> str:
        """The filter in words."""
        assert isinstance(group.iid, Box)
        borders = [
            f"at {axis} ≥ {low:.3g} m"
            for axis, low in zip("xyz", group.iid.low, strict=True)
            if math.isfinite(low)
        ]
        borders += [
            f"at {axis} ≤ {high:.3g} m"
            for axis, high in zip("xyz", group.iid.high, strict=True)
            if math.isfinite(high)
        ]
        if math.isfinite(group.iid.farthest):
            axes = ", ".join("xyz"[: len(group.iid.centre)])
            borders.append(
                f"within {group.iid.farthest:g} m of where the gripper starts (in {axes})"
            )
        what = "gripper" if group.family == "reach" else "object"
        seen = "; seen from the side, with the robot on the left" if self.from_side else ""
        stays = "ends" if group.collection is not None and group.collection.by_end else "stays"
        return f"episodes are kept if the {what} {stays} {' and '.join(borders)}{seen}"

    def shown(self, starts: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The two coordinates of starts and goals that a panel shows."""
        objects = np.pad(
            starts.reshape(-1, 2), ((0, 0), (0, 1)), constant_values=self.place.table
        )  # Reach has none
        return objects[:, self.axes], goals[:, self.axes]

    def in_space(self, points: np.ndarray) -> np.ndarray:
        """Points of a panel as goals; in the coordinate that is not shown, level with the
        gripper.
        """
        goals = np.broadcast_to(self.place.gripper, (*points.shape[:-1], 3)).copy()
        goals[..., self.axes] = points
        return goals

    def furnish(self, axis: Axes) -> None:
        across, upwards = (self.place.gripper[axis] for axis in self.axes)
        axis.scatter(
            across,
            upwards,
            marker="P",
            s=40,
            color="black",
            edgecolors="white",
            linewidths=0.6,
            zorder=4,
        )
        if self.table.size:
            (left, low), (right, high) = self.table
            axis.add_patch(
                Rectangle((left, low), right - left, high - low, fill=False, edgecolor=DATA_COLOR)
            )
        if not self.from_side:
            axis.invert_yaxis()  # with y to the right, x grows towards the viewer


class _HandView:
    """How far the point at which thumb and finger meet is shifted from its centre."""

    names = ("shift in x (mm)", "shift in y (mm)")
    also_shown = np.empty((0, 2))

    def kept(self, group: TaskGroup) -> str:
        return (
            "where thumb and finger meet; all data is kept; goals that are the initial pose "
            "are not shown"
        )

    def shown(self, starts: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tips = goals.reshape(-1, 5, 3)
        moved = (tips[:, shadow_hand.THUMB] != shadow_hand.FINGERTIPS[shadow_hand.THUMB]).any(
            axis=-1
        )
        shift = shadow_hand.meeting_point(tips[moved]) - shadow_hand.MEETING
        return np.empty((0, 2)), 1000 * shift[:, :2]

    def in_space(self, points: np.ndarray) -> np.ndarray:
        shift = np.pad(points / 1000, [(0, 0)] * (points.ndim - 1) + [(0, 1)])
        return shadow_hand.meet(shadow_hand.MEETING + shift, np.zeros(points.shape[:-1], int))

    def furnish(self, axis: Axes) -> None:
        axis.axhline(0.0, color=DATA_COLOR, linewidth=0.5)
        axis.axvline(0.0, color=DATA_COLOR, linewidth=0.5)
