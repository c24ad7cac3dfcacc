"""Figures: they show something, the same bytes every time, in the format that the file's name asks for."""

from __future__ import annotations

import dataclasses
import itertools
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from PIL import Image

from conftest import made_by_hand
from goatrl import cli, tasks
from goatrl.benchmark.records import Cell
from goatrl.benchmark.statistics import Average, Interval
from goatrl.data import point
from goatrl.report import figures, maps
from goatrl.report.tables import Entry
from goatrl.tasks.regions import everywhere
from goatrl.types import Episodes, GoatError

GROUP = tasks.get("pointreach-expert-10")


def make_cell(reached: int) -> Cell:
    """An agent that walks straight to the first `reached` goals of each task, and half-way to the others."""
    rows = []
    for task in GROUP.tasks:
        for episode, goal in enumerate(task.evaluation()[1]):
            share = np.linspace(0.0, 1.0 if episode < reached else 0.5, 6)
            place = {"start": [0.0, 0.0], "goal": goal.tolist(), "path": (share[:, None] * goal).ravel().tolist()}
            outcome = {"success": episode < reached, "return": 1, "final_distance": 0.0}
            rows.append(place | outcome | {"task": task.name, "split": "iid", "seed": 0, "episode": episode})
    return made_by_hand(GROUP.name, rows, seeds=(0,))


def trajectories() -> Figure:
    episodes = point.make(GROUP.name)
    return figures.trajectories({"Expert 10": (episodes, {"GOAT": make_cell(15)})}, "R10", 11.0, ["GOAT"])


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
        return Average(label, split, 4, mean, 1.0, Interval(mean, mean - 5.0, mean + 3.0), mean, paper, 4)

    numbers = [("GOAT", 90.0, 70.0, 72.0), ("BC", 95.0, 20.0, 25.0), ("Mine", 50.0, 40.0, None)]
    by_split = [(label, {"iid": iid, "ood": ood, "all": (iid + ood) / 2}, paper) for label, iid, ood, paper in numbers]
    return [average(label, split, mean, paper) for label, means, paper in by_split for split, mean in means.items()]


def aggregate() -> Figure:
    return figures.aggregate(averages(), full=100.0)


def map_cell(group: str, reached: Callable[[np.ndarray], np.ndarray], seeds: tuple[int, ...] = (0,)) -> Cell:
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
    return figures.coverage({"Push": {"GOAT": right, "BC": right}, "Pick": {"GOAT": low}}, ["GOAT", "BC"])


def density() -> Figure:
    grid = np.linspace(-12.0, 12.0, 9)
    x, y = np.meshgrid(grid, grid)
    return figures.density(grid, 1.0 + x**2 + 2.0 * (y - 3.0) ** 2, point.make(GROUP.name))


def dataset() -> Figure:
    return figures.dataset(point.make("pointreach-non-expert-10"), "Non-Expert 10")


def regions() -> Figure:
    return figures.regions([tasks.get(name) for name in ("push-near-far", "pick-low-high", "hand-near-far")], count=20)


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
def test_an_svg_is_valid_and_the_same_every_time(tmp_path: Path, draw: Callable[[], Figure]) -> None:
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
    episodes = point.make(GROUP.name)
    for name, reached in (("a", 20), ("b", 0)):
        rows = {"Expert 10": (episodes, {"GOAT": make_cell(reached)})}
        figures.save(figures.trajectories(rows, "R10", 11.0, ["GOAT"]), tmp_path / f"{name}.svg")
    assert (tmp_path / "a.svg").read_bytes() != (tmp_path / "b.svg").read_bytes()


def test_trajectories_show_the_data_the_paths_and_the_goals() -> None:
    figure = figures.trajectories(
        {"Expert 10": (point.make(GROUP.name), {"GOAT": make_cell(15)}), "None": (point.make(GROUP.name), {})},
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
    ticks = [tuple(offset) for collection in near.collections for offset in getattr(collection, "get_offsets", list)()]
    assert {round(float(y), 2) for _, y in ticks if np.isfinite(y)} >= {0.86, 1.0}
    assert [label.get_text() for label in near.get_xticklabels()] == ["Expert 10", "Non-Expert 50"]
    # Bars of one dataset stand side by side.
    edges = sorted((patch.get_x(), patch.get_x() + patch.get_width()) for patch in near.patches)
    assert all(left[1] <= right[0] + 1e-9 for left, right in itertools.pairwise(edges))


def test_bars_without_a_paper_do_not_mention_one() -> None:
    with_paper, without = bars(), figures.bars([entry for entry in entries() if entry.paper is None])
    texts = [{text.get_text() for text in figure.legends[0].get_texts()} for figure in (with_paper, without)]
    assert texts == [{"GOAT", "Mine", "paper"}, {"Mine"}]


def test_averages_stand_with_their_intervals_and_the_papers() -> None:
    iid, ood = aggregate().axes
    assert (iid.get_title(), ood.get_title()) == ("IID tasks (4)", "OOD tasks (4)")
    assert [label.get_text() for label in iid.get_yticklabels()] == ["BC", "Mine", "GOAT"], "upwards by the OOD average"
    for axis, means in ((iid, [95.0, 50.0, 90.0]), (ood, [20.0, 40.0, 70.0])):
        lines, dots, diamonds = axis.collections
        np.testing.assert_allclose(dots.get_offsets(), [[mean, height] for height, mean in enumerate(means)])
        ends = np.array([segment[:, 0] for segment in lines.get_segments()])
        np.testing.assert_allclose(ends, [[mean - 5.0, mean + 3.0] for mean in means])
        np.testing.assert_allclose(diamonds.get_offsets(), [[25.0, 0], [72.0, 2]])
        assert axis.get_xlim()[0] == 0.0
        assert 100.0 < axis.get_xlim()[1] < 110.0


def test_averages_over_all_where_a_split_has_none() -> None:
    axes = figures.aggregate([each for each in averages() if each.split != "iid"], full=100.0).axes
    assert [axis.get_title() for axis in axes] == ["OOD tasks (4)", "all tasks (4)"]


def test_a_map_is_seen_by_one_who_stands_opposite_the_robot() -> None:
    # Right of the gripper (y), and of that the half that is near the robot (small x).
    far_right = maps.coverage(map_cell("push-left-right", lambda goal: (goal[1] > 0.749) & (goal[0] < 1.347)))
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
    far = maps.coverage(map_cell("reach-near-far", lambda goal: 1 + (goal[1] > 0.749), seeds=(0, 1)))
    assert far is not None
    np.testing.assert_array_equal(far.success, np.tile(np.where(np.arange(10) >= 5, 1.0, 0.5), (10, 1)))
    assert far.seeds == 2
    assert far.seen.sum() == 16, "four by four squares lie in the disc"
    assert len(far.border()) == 4 * 4
    np.testing.assert_allclose(far.start, [5.0, 5.0], atol=1e-4)


def test_older_records_and_points_have_no_map() -> None:
    assert maps.coverage(make_cell(3)) is None


def test_coverage_has_a_row_per_group_and_a_panel_per_agent() -> None:
    axes = np.array(coverage().axes).reshape(2, 2)
    assert axes[0, 0].get_title() == "GOAT\nIID 100 %, OOD 0 %"
    (image,) = axes[0, 1].images
    shown = np.asarray(image.get_array())
    assert (shown[:, :5].max(), shown[:, 5:].min()) == (0.0, 1.0)
    assert axes[0, 0].get_ylim() == (10, 0), "the first row is at the top"
    np.testing.assert_array_equal(image.cmap(image.norm(1.0))[:3], np.array(rgb(figures.MAP_COLOR)) / 255)
    (border,) = [each for each in axes[0, 0].collections if isinstance(each, LineCollection)]
    assert {x for segment in border.get_segments() for x in segment[:, 0]} == {5.0}
    assert not axes[1, 1].axison, "no record, no panel"
    assert [axes[row, 0].get_ylabel().split("\n")[0] for row in range(2)] == ["Push", "Pick"]


def test_density_is_the_inverse_spread_the_right_way_up() -> None:
    grid = np.array([-1.0, 0.0, 1.0])
    spread = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])  # smallest at (x, y) = (1, -1)
    figure = figures.density(grid, spread, point.make(GROUP.name))
    (image,) = figure.axes[0].images
    shown = np.asarray(image.get_array())
    np.testing.assert_array_equal(shown, 1.0 / spread)
    assert image.origin == "lower"
    assert list(image.get_extent()) == [-1.5, 1.5, -1.5, 1.5]  # each cell is centred on its goal


def test_a_dataset_in_space_is_seen_from_above_and_from_the_side(odd_episodes: Episodes) -> None:
    figure = figures.dataset(odd_episodes, "odd")
    begins, above, side, _ = figure.axes
    achieved, goals = np.asarray(odd_episodes.achieved), np.asarray(odd_episodes.goals)
    panels = (begins, [0, 1], [achieved[:, 0]]), (above, [0, 1], [goals, achieved[:, -1]]), (side, [0, 2], [goals, achieved[:, -1]])
    for axis, view, drawn in panels:
        _, *points = axis.collections  # the first is the shading
        for found, expected in zip(points, drawn, strict=True):
            np.testing.assert_allclose(found.get_offsets(), expected[:, view])


def test_a_flat_dataset_is_seen_from_above_only(odd_episodes: Episodes) -> None:
    flat = np.asarray(odd_episodes.achieved) * [1.0, 1.0, 1e-3]
    assert len(figures.dataset(dataclasses.replace(odd_episodes, achieved=flat), "flat").axes) == 3


def marked(axis, marker: str) -> np.ndarray:
    """Where a panel of `regions` has squares (starts), stars (goals) or a cross (the gripper)."""
    gripper, starts, goals = [each for each in axis.collections if hasattr(each, "get_sizes") and len(each.get_sizes())]
    return np.asarray({"s": starts, "*": goals, "P": gripper}[marker].get_offsets())


def shaded(axis, *points: tuple[float, float]) -> list[bool]:
    """Whether the panel's first layer covers some points."""
    return [any(path.contains_point(point) for path in axis.collections[0].get_paths()) for point in points]


def test_regions_show_the_draws_and_the_filter() -> None:
    group = tasks.get("push-near-far")
    panels = figures.regions([group], count=30).axes
    titles = ["Near2Near · IID", "Near2Far · OOD", "Far2Near · OOD", "Far2Far · OOD"]
    assert [axis.get_title() for axis in panels] == titles
    for axis, task in zip(panels, group.tasks, strict=True):
        starts, goals = task.draw(0, 30)
        np.testing.assert_array_equal(marked(axis, "s"), starts[:, ::-1])  # y across, x upwards
        np.testing.assert_array_equal(marked(axis, "*"), goals[:, 1::-1])
        np.testing.assert_allclose(marked(axis, "P"), [[0.7489, 1.3479]], atol=1e-4)
        assert shaded(axis, (0.75, 1.35), (0.75, 1.49), (0.75, 1.51), (0.61, 1.35), (0.58, 1.35)) == [
            True,
            True,
            False,
            True,
            False,
        ]
        assert axis.title.get_color() == figures.SPLIT_COLORS[task.split]
        low, high = axis.get_ylim()
        assert low > 1.65 > 0.95 > high, "the whole table is in view, x grows downwards"
        (table,) = axis.patches
        assert (table.get_x(), table.get_y(), table.get_width(), table.get_height()) == pytest.approx((0.4, 0.95, 0.7, 0.7))


def test_regions_shade_what_the_groups_own_filter_keeps() -> None:
    group = tasks.get("slide-near-far")
    points = [(0.75, 1.3), (0.75, 1.5)]
    assert shaded(figures.regions([group]).axes[0], *points) == [True, False]
    unfiltered = dataclasses.replace(group, iid=everywhere(3))
    assert shaded(figures.regions([unfiltered]).axes[0], *points) == [True, True]


def test_regions_show_heights_from_the_side() -> None:
    group = tasks.get("pick-low-high")
    low, high = figures.regions([group], count=30).axes
    assert (low.get_xlabel(), low.get_ylabel()) == ("x (m)", "z (m)")
    np.testing.assert_array_equal(marked(high, "*"), group.task("High").draw(0, 30)[1][:, [0, 2]])
    np.testing.assert_allclose(marked(high, "s")[:, 1], 0.4247, atol=1e-4)
    assert shaded(low, (1.3, 0.45), (1.3, 0.59), (1.3, 0.61)) == [True, True, False]
    assert low.get_ylim()[0] < low.get_ylim()[1]


def test_regions_of_the_hand_are_shifts_in_millimetres() -> None:
    near, far = figures.regions([tasks.get("hand-near-far")], count=200).axes
    shifts = [np.abs(np.asarray(axis.collections[-1].get_offsets())) for axis in (near, far)]
    assert 4.5 < shifts[0].max() <= 5.0 + 1e-6
    assert shifts[1].min() >= 5.0 - 1e-6
    assert 14.5 < shifts[1].max() <= 15.0 + 1e-6
    assert 160 < len(shifts[0]) < 195, "the initial pose is no meeting"
    assert len(shifts[1]) == 200
    assert shaded(far, (0.0, 0.0), (14.0, -14.0)) == [True, True]


def test_regions_leave_empty_places_and_say_what_is_kept() -> None:
    figure = figures.regions([tasks.get(name) for name in ("reach-near-far", "slide-left-right", "hand-near-far")])
    axes = np.array(figure.axes).reshape(3, 4)
    assert [[axis.axison for axis in row] for row in axes] == [[True] * 2 + [False] * 2, [True] * 4, [True] * 2 + [False] * 2]
    said = [" ".join(text.get_text() for text in row[0].texts) for row in axes]
    assert said[0].startswith("Reach Near-Far episodes are kept if the gripper stays within 0.15 m of where the gripper starts")
    assert said[1] == "Slide Left-Right episodes are kept if the object stays at y ≥ 0.749 m"
    assert "all data is kept" in said[2]
    assert marked(axes[0, 0], "s").size == 0, "Reach has no object"


def test_goat_figure_regions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(cli, "keep_compiled_programs", lambda: None)
    everything, one = tmp_path / "all.png", tmp_path / "one.png"
    assert cli.main(["figure", "regions", "--out", str(everything)]) == 0
    assert cli.main(["figure", "regions", "--groups", "reach-near-far", "--out", str(one)]) == 0
    with Image.open(everything) as all_groups, Image.open(one) as one_group:
        assert all_groups.height > 6 * one_group.height
    capsys.readouterr()
    for name, message in (
        ("pointreach-expert-10", "pointreach-expert-10 has no regions to draw"),
        ("reach", "did you mean reach-"),
    ):
        assert cli.main(["figure", "regions", "--groups", name, "--out", str(tmp_path / "no.png")]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "no.png").exists()
