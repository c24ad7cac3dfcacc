"""Charts of results, and how all figures are written: as PNG, SVG or PDF by the file's ending."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from goatrl.disk.files import write_atomically
from goatrl.evaluation.uncertainty import PORTION, Ranking
from goatrl.experiments.comparison import Comparison
from goatrl.experiments.curves import RANDOM, Curve, bounds, resampled, summaries
from goatrl.experiments.statistics import Average
from goatrl.report.shared import span
from goatrl.report.tables import Entry
from goatrl.types import GoatError

FORMATS = ("png", "svg", "pdf")
DATA_COLOR, GOAL_COLOR, OURS_COLOR = "#8a8f98", "#d62728", "#1f5fa8"
PALETTE = (
    *("#1f5fa8", "#4f9d69", "#c8a13a", "#8a8f98", "#b0567d", "#d1622b"),
    *("#6fa8dc", "#2f4f4f", "#9467bd", "#8c564b", "#bcbd22"),
)
SPLIT_COLORS = {"iid": "#2e7d4f", "ood": "#c2410c"}
TOTAL_COLOR = OURS_COLOR


def save(figure: Figure, path: Path) -> None:
    kind = path.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise GoatError(f"cannot draw {path}: name a file that ends in .{', .'.join(FORMATS)}")
    for text in figure.findobj(Text):
        _draw_as_it_is(text)
    buffer = io.BytesIO()
    # Neither a date nor random identifiers: the same records give the same bytes.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with mpl.rc_context({"svg.hashsalt": "goatrl"}):
        figure.savefig(buffer, format=kind, dpi=120, bbox_inches="tight", metadata=metadata)
    write_atomically(path, lambda file: file.write(buffer.getvalue()))


def _draw_as_it_is(drawn: Artist) -> None:
    """The name of a file is no formula, whatever it contains, and need not even be text."""
    assert isinstance(drawn, Text)
    written = drawn.get_text()
    if "$" in written:
        drawn.set_parse_math(False)
    if not written.isascii():
        drawn.set_text(written.encode(errors="backslashreplace").decode())


def bars(table: Sequence[Entry], full: float = 1.0) -> Figure:
    """Success with its deviation over seeds; a tick marks the paper's number. `full` is success
    everywhere.

    A panel for each task with the datasets side by side, or, where they have no task in common, for
    each dataset with its tasks.
    """
    columns = list(dict.fromkeys(entry.column for entry in table))
    tasks: dict[str, list[str]] = {}
    for entry in table:
        tasks.setdefault(entry.dataset, []).append(entry.task)
    common = set.intersection(*map(set, tasks.values()))
    named = [(e.task, e.dataset, e) if common else (e.dataset, e.task, e) for e in table]
    panels = list(dict.fromkeys(panel for panel, _, _ in named))
    places = {
        panel: list(dict.fromkeys(place for mine, place, _ in named if common or mine == panel))
        for panel in panels
    }
    wide = 1 if common else 2
    figure = Figure(
        figsize=(1.6 + wide * 2.2 * max(map(len, places.values())), 2.6 * -(-len(panels) // wide)),
        layout="constrained",
    )
    axes = figure.subplots(-(-len(panels) // wide), wide, squeeze=False).ravel()
    for axis in axes[len(panels) :]:
        axis.axis("off")
    for axis, panel in zip(axes, panels, strict=False):
        found = {(place, entry.column): entry for mine, place, entry in named if mine == panel}
        _bars_side_by_side(axis, places[panel], columns, found)
        axis.set_ylim(0, 1.08 * full)
        axis.set_ylabel(f"success on {panel}")
    if any(entry.paper for entry in table):
        axes[0].scatter([], [], marker="_", s=100, color="black", label="paper")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8, frameon=False
    )
    return figure


def _bars_side_by_side(
    axis: Axes, places: Sequence[str], columns: Sequence[str], at: Mapping[tuple[str, str], Entry]
) -> None:
    width = 0.8 / len(columns)
    for index, column in enumerate(columns):
        found = [(x, at[place, column]) for x, place in enumerate(places) if (place, column) in at]
        x = np.array([place for place, _ in found]) + (index - (len(columns) - 1) / 2) * width
        heights, deviations = (
            [e.mean for _, e in found],
            np.nan_to_num([e.std for _, e in found]),
        )  # a single seed has none
        color = PALETTE[index % len(PALETTE)]
        axis.bar(
            x,
            heights,
            width * 0.9,
            yerr=deviations,
            color=color,
            label=column,
            error_kw={"lw": 0.8},
        )
        theirs = [
            (at_x, e.paper[0]) for at_x, (_, e) in zip(x, found, strict=True) if e.paper is not None
        ]
        if theirs:
            across, up = zip(*theirs, strict=True)
            axis.scatter(
                across, up, marker="_", s=260 * width, color="black", zorder=3, linewidths=1.4
            )
    axis.set_xticks(range(len(places)), [textwrap.fill(place, 20) for place in places])
    axis.set_xlim(-0.5, len(places) - 0.5)
    axis.spines[["top", "right"]].set_visible(False)


def ladder(rungs: Mapping[str, np.ndarray], label: str) -> Figure:
    """Success of one composition after the other: the mean over seeds as a bar with its deviation,
    each seed as a dot.
    """
    each = max(0.75, 0.1 * max(map(len, rungs)))  # wide enough for the longest name
    figure = Figure(figsize=(1.2 + each * len(rungs), 2.9), layout="constrained")
    axis = figure.subplots()
    means = [values.mean() for values in rungs.values()]
    axis.bar(
        range(len(rungs)),
        means,
        0.7,
        yerr=[v.std() for v in rungs.values()],
        color=OURS_COLOR,
        error_kw={"lw": 0.8},
    )
    for place, values in enumerate(rungs.values()):
        axis.scatter(
            place + np.linspace(-0.15, 0.15, len(values)),
            values,
            s=7,
            color="black",
            linewidths=0,
            zorder=3,
        )
    axis.set_xticks(
        range(len(rungs)), [f"{rung}\n{mean:.2f}" for rung, mean in zip(rungs, means, strict=True)]
    )
    axis.set_ylim(0, 1.05)
    axis.set_ylabel(label)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def aggregate(averages: Sequence[Average], full: float = 1.0) -> Figure:
    """Averages over IID and over OOD tasks with their intervals, best on OOD first; a diamond marks
    the paper's.

    Where a suite has no tasks of one of the two splits, the average over all stands in its place.
    """
    present = {average.split for average in averages}
    splits = [
        split
        for split in ("iid", "ood", "all")
        if split in present and not (split == "all" and {"iid", "ood"} <= present)
    ]
    of = {
        split: {average.label: average for average in averages if average.split == split}
        for split in splits
    }
    leading = of["ood"] if "ood" in of else of["all"]
    labels = sorted(
        {label for found in of.values() for label in found},
        key=lambda a: leading[a].mean if a in leading else -1.0,
    )
    figure = Figure(
        figsize=(1.3 + 2.9 * len(splits), 0.9 + 0.27 * len(labels)), layout="constrained"
    )
    axes = figure.subplots(1, len(splits), sharey=True, squeeze=False)[0]
    names = {
        "iid": ("IID tasks", SPLIT_COLORS["iid"]),
        "ood": ("OOD tasks", SPLIT_COLORS["ood"]),
        "all": ("all tasks", TOTAL_COLOR),
    }
    for axis, split in zip(axes, splits, strict=True):
        name, color = names[split]
        rows = [
            (height, of[split][label]) for height, label in enumerate(labels) if label in of[split]
        ]
        heights, means = [height for height, _ in rows], [each.mean for _, each in rows]
        axis.hlines(
            heights,
            [e.interval.low for _, e in rows],
            [e.interval.high for _, e in rows],
            color=color,
            alpha=0.4,
            linewidth=6.0,
        )
        axis.scatter(
            means,
            heights,
            s=12,
            color=color,
            linewidths=0,
            zorder=3,
            label="ours, with 95 % interval",
        )
        theirs = [(each.paper, height) for height, each in rows if each.paper is not None]
        if theirs:
            marks = {
                "marker": "D",
                "s": 26,
                "facecolors": "none",
                "edgecolors": "black",
                "linewidths": 0.9,
                "zorder": 4,
            }
            axis.scatter(*zip(*theirs, strict=True), **marks, label="paper")
        axis.set_title(
            f"{name} ({max(each.tasks for _, each in rows)})",
            fontsize=9,
            fontweight="bold",
            color=color,
        )
        axis.set_xlim(0, 1.03 * full)
        axis.grid(axis="x", color="#e3e5e8", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(labelsize=8, length=2)
        axis.spines[["top", "right", "left"]].set_visible(False)
    axes[0].set_yticks(range(len(labels)), labels)
    handles, texts = max(
        (axis.get_legend_handles_labels() for axis in axes), key=lambda found: len(found[1])
    )
    figure.legend(handles, texts, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return figure


def comparison(found: Comparison) -> Figure:
    """Success of every run with its interval, a panel for each place; runs go by what differs."""
    labels = [found.label(row) for row in found.rows]
    width = 0.6 + 0.075 * max(map(len, labels)) + 2.6 * len(found.places)
    figure = Figure(figsize=(width, 0.9 + 0.27 * len(found.rows)), layout="constrained")
    axes = figure.subplots(1, len(found.places), sharey=True, squeeze=False)[0]
    heights = range(len(found.rows))
    for axis, place in zip(axes, found.places, strict=True):
        results = [row.places[place.title].success for row in found.rows]
        axis.hlines(
            heights,
            [each.low for each in results],
            [each.high for each in results],
            color=TOTAL_COLOR,
            alpha=0.4,
            linewidth=6.0,
        )
        values = [each.value for each in results]
        axis.scatter(values, heights, s=12, color=TOTAL_COLOR, linewidths=0, zorder=3)
        axis.set_title(place.title, fontsize=9)
        axis.set_xlim(-0.02, 1.03)
        axis.grid(axis="x", color="#e3e5e8", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(labelsize=8, length=2)
        axis.spines[["top", "right", "left"]].set_visible(False)
    axes[0].set_yticks(heights, labels)
    axes[0].set_ylim(len(labels) - 0.5, -0.5)  # from above, as in the table
    figure.supxlabel("success: mean with 95 % interval over seeds", fontsize=8)
    return figure


def finetuning(
    panels: Mapping[str, Sequence[Curve]], random: Mapping[str, Curve], tones: Mapping[str, int]
) -> Figure:
    """Success while agents go on online: per group a panel, per initialisation its mean over seeds
    and a 95 % interval.

    Dotted: where random networks end; a ring: the first evaluation that is as high.
    """
    figure = Figure(figsize=(0.4 + 4.3 * len(panels), 3.3), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, (title, found) in zip(axes, panels.items(), strict=True):
        for curve, each in zip(found, summaries(found, random), strict=True):
            color, thousands = PALETTE[tones[curve.label] % len(PALETTE)], curve.steps / 1_000
            low, high = bounds(resampled(curve))
            axis.fill_between(
                thousands, 100 * low, 100 * high, color=color, alpha=0.16, linewidth=0
            )
            style = "--" if curve.label == RANDOM else "-"
            axis.plot(
                thousands,
                100 * curve.mean,
                color=color,
                linewidth=1.6,
                linestyle=style,
                label=curve.label,
            )
            if each.level is not None:
                axis.axhline(
                    100 * each.level, color=DATA_COLOR, linewidth=1.0, linestyle=":", zorder=1
                )
            if each.steps is not None and math.isfinite(each.steps.value):
                height = 100 * curve.mean[curve.steps == each.steps.value]
                ring = {
                    "s": 26,
                    "facecolors": "white",
                    "edgecolors": color,
                    "linewidths": 1.4,
                    "zorder": 4,
                    "clip_on": False,
                }
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
    seeds = span(len(curve.seeds) for found in panels.values() for curve in found)
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
        places[place] = min(
            places[place], most if place == len(places) - 1 else places[place + 1] - gap
        )
    return places


def ranking(rankings: Sequence[Ranking]) -> Figure:
    """Supervised loss and distance to the goal, portion by portion of samples ranked by uncertainty
    weight; a band over seeds.
    """
    figure = Figure(figsize=(7.2, 2.9), layout="constrained")
    size = PORTION / 1_000
    labels = {
        "loss": "supervised loss  ‖a − π(s, g′)‖²",
        "distance": "state-goal distance  ‖g′ − φ(s)‖²",
    }
    for axis, (name, label) in zip(figure.subplots(1, 2), labels.items(), strict=True):
        values = np.stack([getattr(each, name) for each in rankings])
        places = (np.arange(values.shape[1]) + 0.5) * size
        axis.fill_between(
            places, values.min(axis=0), values.max(axis=0), color=OURS_COLOR, alpha=0.2, linewidth=0
        )
        axis.plot(places, values.mean(axis=0), marker="o", markersize=4, color=OURS_COLOR)
        axis.set_title(label, fontsize=9)
        axis.set_xlabel("samples by rising uncertainty weight, in thousands", fontsize=8)
        axis.tick_params(labelsize=7)
        axis.spines[["top", "right"]].set_visible(False)
    return figure
