"""Figures in the space of goals show the paths, the goals, and which of them are reached."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from drawings import GROUP, colors, coverage, make_cell, map_cell, rgb, trajectories
from goatrl import tasks
from goatrl.data import of_group
from goatrl.report import figures, goal_figures, maps


def test_other_input_gives_another_picture(tmp_path: Path) -> None:
    episodes = of_group(tasks.get(GROUP.name))
    for name, reached in (("a", 20), ("b", 0)):
        rows = {"Expert 10": (episodes, {"GOAT": make_cell(reached).episodes})}
        figures.save(
            goal_figures.trajectories(rows, "R10", 11.0, ["GOAT"]), tmp_path / f"{name}.svg"
        )
    assert (tmp_path / "a.svg").read_bytes() != (tmp_path / "b.svg").read_bytes()


def test_trajectories_show_the_data_the_paths_and_the_goals() -> None:
    figure = goal_figures.trajectories(
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


def test_long_headings_above_maps_are_wrapped() -> None:
    low = maps.coverage(map_cell("pick-low-high", lambda goal: goal[2] < 0.6))
    assert low is not None
    label = "bounded, mirror, turns, random, averaged, wide"
    drawn = goal_figures.coverage({"Pick": {"GOAT": low, label: low}}, ["GOAT", label])
    short, long = (axis.get_title().splitlines() for axis in drawn.axes)
    assert (short[0], len(short)) == ("GOAT", 2)
    assert " ".join(long[:-1]) == label
    assert max(map(len, long)) <= goal_figures.HEADING


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
    (axis,) = goal_figures.coverage({"Slide": {"GOAT": slide}}, ["GOAT"]).axes
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
        image.cmap(image.norm(1.0))[:3], np.array(rgb(goal_figures.MAP_COLOR)) / 255
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
    figure = goal_figures.density(grid, spread, of_group(tasks.get(GROUP.name)))
    (image,) = figure.axes[0].images
    shown = np.asarray(image.get_array())
    np.testing.assert_array_equal(shown, 1.0 / spread)
    assert image.origin == "lower"
    assert list(image.get_extent()) == [-1.5, 1.5, -1.5, 1.5]  # each cell is centred on its goal
