"""Figures: they show something, the same bytes every time, in the format that the file's name asks
for.
"""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from PIL import Image

from goatrl import tasks
from goatrl.data import of_group
from goatrl.experiments.records import Cell
from goatrl.experiments.statistics import Average, Interval
from goatrl.report import data_figures, figures, maps
from goatrl.report.tables import Entry
from goatrl.types import GoatError
from helpers import made_by_hand

GROUP = tasks.get("pointreach-expert-10")


def make_cell(reached: int) -> Cell:
    """An agent that walks straight to the first `reached` goals of each task, and half-way to the
    others.
    """
    rows = []
    for task in GROUP.tasks:
        for episode, goal in enumerate(task.evaluation()[1]):
            share = np.linspace(0.0, 1.0 if episode < reached else 0.5, 6)
            place = {
                "start": [0.0, 0.0],
                "goal": goal.tolist(),
                "path": (share[:, None] * goal).ravel().tolist(),
            }
            outcome = {"success": episode < reached, "return": 1, "final_distance": 0.0}
            rows.append(
                place | outcome | {"task": task.name, "split": "iid", "seed": 0, "episode": episode}
            )
    return made_by_hand(GROUP.name, rows, seeds=(0,))


def trajectories() -> Figure:
    episodes = of_group(tasks.get(GROUP.name))
    return figures.trajectories(
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
    return figures.coverage(
        {"Push": {"GOAT": right, "BC": right}, "Pick": {"GOAT": low}}, ["GOAT", "BC"]
    )


def density() -> Figure:
    grid = np.linspace(-12.0, 12.0, 9)
    x, y = np.meshgrid(grid, grid)
    return figures.density(grid, 1.0 + x**2 + 2.0 * (y - 3.0) ** 2, of_group(tasks.get(GROUP.name)))


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


@pytest.mark.parametrize("draw", DRAWN)
def test_a_png_opens_and_is_not_blank(tmp_path: Path, draw: Callable[[], Figure]) -> None:
    one, other = tmp_path / "one.png", tmp_path / "new" / "other.png"
    figures.save(draw(), one)
    with Image.open(one) as image:
        assert image.format == "PNG"
        assert min(image.size) > 200
    assert len(colors(one)) > 20
    figures.save(draw(), other)
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("draw", DRAWN)
def test_an_svg_is_valid_and_the_same_every_time(
    tmp_path: Path, draw: Callable[[], Figure]
) -> None:
    one, other = tmp_path / "one.svg", tmp_path / "other.svg"
    figures.save(draw(), one)
    figures.save(draw(), other)
    root = ElementTree.fromstring(one.read_text())
    assert root.tag.endswith("svg")
    assert sum(element.tag.endswith("path") for element in root.iter()) > 20
    assert one.read_bytes() == other.read_bytes()


def test_a_pdf_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("one.pdf", "other.PDF"):
        figures.save(bars(), tmp_path / name)
    content = (tmp_path / "one.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert content == (tmp_path / "other.PDF").read_bytes()


@pytest.mark.parametrize("name", ["figure.gif", "figure", "figure.png.txt", "png"])
def test_an_unknown_ending_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(GoatError, match=r"ends in \.png, \.svg, \.pdf"):
        figures.save(Figure(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_other_input_gives_another_picture(tmp_path: Path) -> None:
    episodes = of_group(tasks.get(GROUP.name))
    for name, reached in (("a", 20), ("b", 0)):
        rows = {"Expert 10": (episodes, {"GOAT": make_cell(reached).episodes})}
        figures.save(figures.trajectories(rows, "R10", 11.0, ["GOAT"]), tmp_path / f"{name}.svg")
    assert (tmp_path / "a.svg").read_bytes() != (tmp_path / "b.svg").read_bytes()


def test_trajectories_show_the_data_the_paths_and_the_goals() -> None:
    figure = figures.trajectories(
        {
            "Expert 10": (of_group(tasks.get(GROUP.name)), {"GOAT": make_cell(15).episodes}),
            "None": (of_group(tasks.get(GROUP.name)), {}),
        },
        "R20",
        21.0,
        ["GOAT", "HER"],
    )
    axes = np.array(figure.axes).reshape(2, 3)
    data, goat, her = axes[0]
    assert data.get_title() == "data: Expert 10"
    assert goat.get_title() == "GOAT  75 %"
    # The line of the horizontal axis comes first, then one line an episode.
    assert len(data.lines) == 1 + 10
    assert len(goat.lines) == 1 + 20
    path = np.asarray(goat.lines[1].get_xydata())
    np.testing.assert_allclose(path[[0, -1]], [[0, 0], [20, 0]], atol=1e-5)
    assert len(goat.collections[0].get_offsets()) == 20
    assert len(data.collections[0].get_offsets()) == 10
    # An agent without a record leaves an empty place.
    assert not her.axison
    assert not axes[1, 1].axison
    assert not her.lines


def test_trajectories_have_their_colors(tmp_path: Path) -> None:
    figures.save(trajectories(), tmp_path / "a.png")
    assert rgb(figures.GOAL_COLOR) in colors(tmp_path / "a.png")


def test_bars_stand_at_our_numbers_and_ticks_at_the_papers() -> None:
    near, far = bars().axes
    assert (near.get_ylabel(), far.get_ylabel()) == ("success on R10", "success on R20")
    heights = sorted(patch.get_height() for patch in near.patches)
    assert heights == [0.25, 0.75, 1.0]
    assert [patch.get_height() for patch in far.patches] == [0.5]
    ticks = [
        tuple(offset)
        for collection in near.collections
        for offset in getattr(collection, "get_offsets", list)()
    ]
    assert {round(float(y), 2) for _, y in ticks if np.isfinite(y)} >= {0.86, 1.0}
    assert [label.get_text() for label in near.get_xticklabels()] == ["Expert 10", "Non-Expert 50"]
    # Bars of one dataset stand side by side.
    edges = sorted((patch.get_x(), patch.get_x() + patch.get_width()) for patch in near.patches)
    assert all(left[1] <= right[0] + 1e-9 for left, right in itertools.pairwise(edges))


def test_bars_of_datasets_without_a_common_task_have_a_panel_each() -> None:
    parts = (("Reach", "Left", 0.5), ("Reach", "Right", 1.0), ("Push", "Near", 0.25))
    figure = figures.bars(
        [Entry(dataset, task, "GOAT", mean, 0.0, 2, None) for dataset, task, mean in parts]
    )
    reach, push = figure.axes
    assert (reach.get_ylabel(), push.get_ylabel()) == ("success on Reach", "success on Push")
    assert [[label.get_text() for label in axis.get_xticklabels()] for axis in (reach, push)] == [
        ["Left", "Right"],
        ["Near"],
    ]
    assert [[patch.get_height() for patch in axis.patches] for axis in (reach, push)] == [
        [0.5, 1.0],
        [0.25],
    ]
    assert reach.get_xlim() == (-0.5, 1.5)


def test_bars_without_a_paper_do_not_mention_one() -> None:
    with_paper, without = (
        bars(),
        figures.bars([entry for entry in entries() if entry.paper is None]),
    )
    texts = [
        {text.get_text() for text in figure.legends[0].get_texts()}
        for figure in (with_paper, without)
    ]
    assert texts == [{"GOAT", "Mine", "paper"}, {"Mine"}]


def test_averages_stand_with_their_intervals_and_the_papers() -> None:
    iid, ood = aggregate().axes
    assert (iid.get_title(), ood.get_title()) == ("IID tasks (4)", "OOD tasks (4)")
    assert [label.get_text() for label in iid.get_yticklabels()] == ["BC", "Mine", "GOAT"], (
        "upwards by the OOD average"
    )
    for axis, means in ((iid, [95.0, 50.0, 90.0]), (ood, [20.0, 40.0, 70.0])):
        lines, dots, diamonds = axis.collections
        np.testing.assert_allclose(
            dots.get_offsets(), [[mean, height] for height, mean in enumerate(means)]
        )
        ends = np.array([segment[:, 0] for segment in lines.get_segments()])
        np.testing.assert_allclose(ends, [[mean - 5.0, mean + 3.0] for mean in means])
        np.testing.assert_allclose(diamonds.get_offsets(), [[25.0, 0], [72.0, 2]])
        assert axis.get_xlim()[0] == 0.0
        assert 100.0 < axis.get_xlim()[1] < 110.0


def test_averages_over_all_where_a_split_has_none() -> None:
    axes = figures.aggregate([each for each in averages() if each.split != "iid"], full=100.0).axes
    assert [axis.get_title() for axis in axes] == ["OOD tasks (4)", "all tasks (4)"]


def test_long_headings_above_maps_are_wrapped() -> None:
    low = maps.coverage(map_cell("pick-low-high", lambda goal: goal[2] < 0.6))
    assert low is not None
    label = "bounded, mirror, turns, random, averaged, wide"
    drawn = figures.coverage({"Pick": {"GOAT": low, label: low}}, ["GOAT", label])
    short, long = (axis.get_title().splitlines() for axis in drawn.axes)
    assert (short[0], len(short)) == ("GOAT", 2)
    assert " ".join(long[:-1]) == label
    assert max(map(len, long)) <= figures.HEADING


def test_a_map_is_seen_by_one_who_stands_opposite_the_robot() -> None:
    # Right of the gripper (y), and of that the half that is near the robot (small x).
    far_right = maps.coverage(
        map_cell("push-left-right", lambda goal: (goal[1] > 0.749) & (goal[0] < 1.347))
    )
    assert far_right is not None
    assert far_right.axes == (1, 0)
    expected = np.zeros((10, 10))
    expected[:5, 5:] = 1.0
    np.testing.assert_array_equal(far_right.success, expected)
    np.testing.assert_array_equal(far_right.seen, np.tile(np.arange(10) >= 5, (10, 1)))
    assert (far_right.reached(seen=True), far_right.reached(seen=False)) == (0.5, 0.0)
    assert sorted(far_right.border()) == [((5, row), (5, row + 1)) for row in range(10)]
    np.testing.assert_allclose(far_right.start, [5 + 0.1 / 0.03, 5.0], atol=1e-3)


def test_a_map_of_heights_is_upright() -> None:
    low = maps.coverage(map_cell("pick-low-high", lambda goal: goal[2] < 0.6))
    assert low is not None
    assert low.axes == (1, 2)
    assert low.success.shape == (13, 8)
    assert low.success[0].max() == 0.0, "the highest goals are at the top"
    assert low.success[-1].min() == 1.0
    np.testing.assert_array_equal(low.success == 1.0, low.seen)
    assert {start[1] for start, _ in low.border()} == {8}
    assert low.start[1] == pytest.approx(13.0, abs=1e-4), "the object lies on the table"


def test_a_map_is_a_mean_over_seeds() -> None:
    far = maps.coverage(
        map_cell("reach-near-far", lambda goal: 1 + (goal[1] > 0.749), seeds=(0, 1))
    )
    assert far is not None
    np.testing.assert_array_equal(
        far.success, np.tile(np.where(np.arange(10) >= 5, 1.0, 0.5), (10, 1))
    )
    assert far.seeds == 2
    assert far.seen.sum() == 16, "four by four squares lie in the disc"
    assert len(far.border()) == 4 * 4
    np.testing.assert_allclose(far.start, [5.0, 5.0], atol=1e-4)


def test_a_start_beyond_the_map_is_not_drawn() -> None:
    slide = maps.coverage(map_cell("slide-near-far", lambda goal: np.ones(())))
    assert slide is not None
    assert slide.start is None, "the puck starts before the first row of goals"
    (axis,) = figures.coverage({"Slide": {"GOAT": slide}}, ["GOAT"]).axes
    assert [type(each) for each in axis.collections] == [LineCollection]


def test_older_records_and_points_have_no_map() -> None:
    assert maps.coverage(make_cell(3)) is None


def test_coverage_has_a_row_per_group_and_a_panel_per_agent() -> None:
    axes = np.array(coverage().axes).reshape(2, 2)
    assert axes[0, 0].get_title() == "GOAT\nIID 100 %, OOD 0 %"
    (image,) = axes[0, 1].images
    shown = np.asarray(image.get_array())
    assert (shown[:, :5].max(), shown[:, 5:].min()) == (0.0, 1.0)
    assert axes[0, 0].get_ylim() == (10, 0), "the first row is at the top"
    np.testing.assert_array_equal(
        image.cmap(image.norm(1.0))[:3], np.array(rgb(figures.MAP_COLOR)) / 255
    )
    (border,) = [each for each in axes[0, 0].collections if isinstance(each, LineCollection)]
    assert {x for segment in border.get_segments() for x in segment[:, 0]} == {5.0}
    assert not axes[1, 1].axison, "no record, no panel"
    assert [axes[row, 0].get_ylabel().split("\n")[0] for row in range(2)] == ["Push", "Pick"]


def test_density_is_the_inverse_spread_the_right_way_up() -> None:
    grid = np.array([-1.0, 0.0, 1.0])
    spread = np.array(
        [[1.0, 1.0, 0.5], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    )  # smallest at (x, y) = (1, -1)
    figure = figures.density(grid, spread, of_group(tasks.get(GROUP.name)))
    (image,) = figure.axes[0].images
    shown = np.asarray(image.get_array())
    np.testing.assert_array_equal(shown, 1.0 / spread)
    assert image.origin == "lower"
    assert list(image.get_extent()) == [-1.5, 1.5, -1.5, 1.5]  # each cell is centred on its goal
