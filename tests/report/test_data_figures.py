"""Pictures of datasets and task groups: each panel shows the draws and the filter that it names."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from matplotlib.contour import ContourSet
from PIL import Image

from goatrl import cli, tasks
from goatrl.episodes import make_episodes
from goatrl.report import data_figures
from goatrl.tasks.regions import everywhere
from goatrl.types import Episodes


def test_a_dataset_in_space_is_seen_from_above_and_from_the_side(odd_episodes: Episodes) -> None:
    figure = data_figures.dataset(odd_episodes, "odd")
    begins, above, side, _ = figure.axes
    achieved, goals = np.asarray(odd_episodes.achieved), np.asarray(odd_episodes.goals)
    panels = (
        (begins, [0, 1], [achieved[:, 0]]),
        (above, [0, 1], [goals, achieved[:, -1]]),
        (side, [0, 2], [goals, achieved[:, -1]]),
    )
    for axis, view, drawn in panels:
        _, *points = axis.collections  # the first is the shading
        for found, expected in zip(points, drawn, strict=True):
            np.testing.assert_allclose(found.get_offsets(), expected[:, view])
    assert (side.get_xlabel(), side.get_ylabel()) == ("x", "z"), (
        "without a group, the unit is not known"
    )


def test_starts_ends_and_goals_of_episodes_of_different_lengths() -> None:
    """Two episodes along x, the second of which changes its goal."""
    paths = [np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[5.0, 5.0], [6.0, 5.0], [7.0, 5.0]])]
    goals = [[[3.0, 3.0]], [[8.0, 8.0], [9.0, 9.0]]]
    actions = [np.full((1, 1), 0.5), np.full((2, 1), 0.5)]
    figure = data_figures.dataset(make_episodes(paths, paths, actions, goals), "two")
    begins, ends, taken = figure.axes
    assert begins.collections[-1].get_offsets().tolist() == [[0.0, 0.0], [5.0, 5.0]]
    desired, reached = ends.collections[-2:]
    assert desired.get_offsets().tolist() == [[3.0, 3.0], [9.0, 9.0]]
    assert reached.get_offsets().tolist() == [[1.0, 0.0], [7.0, 5.0]]
    ((low, high),) = [
        (each.get_xy()[:, 0].min(), each.get_xy()[:, 0].max()) for each in taken.patches
    ]
    assert low <= 0.5 <= high
    assert low > -0.1, "the rows without an action are not drawn"


def test_a_flat_dataset_is_seen_from_above_only(odd_episodes: Episodes) -> None:
    flat = np.asarray(odd_episodes.achieved) * [1.0, 1.0, 1e-3]
    assert (
        len(data_figures.dataset(dataclasses.replace(odd_episodes, achieved=flat), "flat").axes)
        == 3
    )


@pytest.mark.parametrize(
    ("name", "borders"),
    [
        ("slide-near-far", [(0, 1.4), (0, 1.4), (0, 1.4)]),
        ("pick-low-high", [None, None, (1, 0.6)]),
        ("reach-left-right", [(1, 0.7489), (1, 0.7489), None]),
    ],
)
def test_a_groups_dataset_shows_what_the_filter_keeps(
    name: str, borders: list, odd_episodes: Episodes
) -> None:
    """A line where one of a panel's two coordinates has the filter's value; none where the border
    cannot be seen.
    """
    achieved, goals = (
        np.asarray(part) * 0.1 + [1.35, 0.8, 0.5]
        for part in (odd_episodes.achieved, odd_episodes.goals)
    )
    achieved[:, 0] = [1.35, 0.8, 0.5]
    episodes = dataclasses.replace(odd_episodes, achieved=achieved, goals=goals)
    *panels, _ = data_figures.dataset(episodes, name, tasks.get(name)).axes
    assert [(axis.get_xlabel(), axis.get_ylabel()) for axis in panels] == [
        ("x (m)", "y (m)")
    ] * 2 + [("x (m)", "z (m)")]
    for axis, border in zip(panels, borders, strict=True):
        lines = [
            each.get_paths()[0].vertices
            for each in axis.collections
            if isinstance(each, ContourSet)
        ]
        assert len(lines) == (border is not None)
        for line in lines:
            np.testing.assert_allclose(line[:, border[0]], border[1], atol=0.005)
            assert "IID filter" in axis.get_legend_handles_labels()[1]


def marked(axis, marker: str) -> np.ndarray:
    """Where a panel of `regions` has squares (starts), stars (goals) or a cross (the gripper)."""
    gripper, starts, goals = [
        each for each in axis.collections if hasattr(each, "get_sizes") and len(each.get_sizes())
    ]
    return np.asarray({"s": starts, "*": goals, "P": gripper}[marker].get_offsets())


def shaded(axis, *points: tuple[float, float]) -> list[bool]:
    """Whether the panel's first layer covers some points."""
    return [
        any(path.contains_point(point) for path in axis.collections[0].get_paths())
        for point in points
    ]


def test_regions_show_the_draws_and_the_filter() -> None:
    group = tasks.get("push-near-far")
    panels = data_figures.regions([group], count=30).axes
    titles = ["Near2Near · IID", "Near2Far · OOD", "Far2Near · OOD", "Far2Far · OOD"]
    assert [axis.get_title() for axis in panels] == titles
    for axis, task in zip(panels, group.tasks, strict=True):
        starts, goals = task.draw(0, 30)
        np.testing.assert_array_equal(marked(axis, "s"), starts[:, ::-1])  # y across, x upwards
        np.testing.assert_array_equal(marked(axis, "*"), goals[:, 1::-1])
        np.testing.assert_allclose(marked(axis, "P"), [[0.7489, 1.3479]], atol=1e-4)
        assert shaded(
            axis, (0.75, 1.35), (0.75, 1.49), (0.75, 1.51), (0.61, 1.35), (0.58, 1.35)
        ) == [
            True,
            True,
            False,
            True,
            False,
        ]
        assert axis.title.get_color() == data_figures.SPLIT_COLORS[task.split]
        low, high = axis.get_ylim()
        assert low > 1.65 > 0.95 > high, "the whole table is in view, x grows downwards"
        (table,) = axis.patches
        assert (
            table.get_x(),
            table.get_y(),
            table.get_width(),
            table.get_height(),
        ) == pytest.approx((0.4, 0.95, 0.7, 0.7))


def test_regions_shade_what_the_groups_own_filter_keeps() -> None:
    group = tasks.get("slide-near-far")
    points = [(0.75, 1.3), (0.75, 1.5)]
    assert shaded(data_figures.regions([group]).axes[0], *points) == [True, False]
    unfiltered = dataclasses.replace(group, iid=everywhere(3))
    assert shaded(data_figures.regions([unfiltered]).axes[0], *points) == [True, True]


def test_regions_show_heights_from_the_side() -> None:
    group = tasks.get("pick-low-high")
    low, high = data_figures.regions([group], count=30).axes
    assert (low.get_xlabel(), low.get_ylabel()) == ("x (m)", "z (m)")
    np.testing.assert_array_equal(marked(high, "*"), group.task("High").draw(0, 30)[1][:, [0, 2]])
    np.testing.assert_allclose(marked(high, "s")[:, 1], 0.4247, atol=1e-4)
    assert shaded(low, (1.3, 0.45), (1.3, 0.59), (1.3, 0.61)) == [True, True, False]
    assert low.get_ylim()[0] < low.get_ylim()[1]


def test_regions_of_the_hand_are_shifts_in_millimetres() -> None:
    near, far = data_figures.regions([tasks.get("hand-near-far")], count=200).axes
    shifts = [np.abs(np.asarray(axis.collections[-1].get_offsets())) for axis in (near, far)]
    assert 4.5 < shifts[0].max() <= 5.0 + 1e-6
    assert shifts[1].min() >= 5.0 - 1e-6
    assert 14.5 < shifts[1].max() <= 15.0 + 1e-6
    assert 160 < len(shifts[0]) < 195, "the initial pose is no meeting"
    assert len(shifts[1]) == 200
    assert shaded(far, (0.0, 0.0), (14.0, -14.0)) == [True, True]


def test_regions_leave_empty_places_and_say_what_is_kept() -> None:
    figure = data_figures.regions(
        [tasks.get(name) for name in ("reach-near-far", "slide-left-right", "hand-near-far")]
    )
    axes = np.array(figure.axes).reshape(3, 4)
    assert [[axis.axison for axis in row] for row in axes] == [
        [True] * 2 + [False] * 2,
        [True] * 4,
        [True] * 2 + [False] * 2,
    ]
    said = [" ".join(text.get_text() for text in row[0].texts) for row in axes]
    assert said[0].startswith(
        "Reach Near-Far episodes are kept if the gripper stays within 0.15 m of where the gripper "
        "starts"
    )
    assert said[1] == "Slide Left-Right episodes are kept if the object stays at y ≥ 0.749 m"
    assert "all data is kept" in said[2]
    assert marked(axes[0, 0], "s").size == 0, "Reach has no object"


def test_goat_figure_regions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
        assert (
            cli.main(["figure", "regions", "--groups", name, "--out", str(tmp_path / "no.png")])
            == 2
        )
        assert message in capsys.readouterr().err
    assert not (tmp_path / "no.png").exists()


def test_regions_of_a_maze_have_walls_and_no_gripper() -> None:
    group = tasks.get("ogbench-pointmaze-ood")
    figure = data_figures.regions([group])
    assert [axis.get_title() for axis in figure.axes] == [
        "Seen · IID",
        "Room · OOD",
        "Corridor · OOD",
    ]
    for axis in figure.axes:
        walls = [patch.get_bbox().bounds for patch in axis.patches]
        assert len(walls) == 64 - 26
        assert (-6.0, -6.0, 4.0, 4.0) in walls  # the corner at row and column 0
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["starts", "goals", "kept by the IID filter", "walls"]


def test_regions_of_a_cube_are_drawn_in_metres() -> None:
    group = tasks.get("ogbench-cube-ood")
    figure = data_figures.regions([group])
    assert [axis.get_title() for axis in figure.axes][:2] == ["Seen · IID", "Unseen · OOD"]
    for axis, least in zip(figure.axes, (-0.3, 0.14), strict=False):
        starts, goals = (np.asarray(each.get_offsets()) for each in axis.collections[-2:])
        assert -0.3 <= starts[:, 0].min() <= starts[:, 0].max() <= 0.1
        assert least - 1e-9 <= goals[:, 0].min() <= goals[:, 0].max() <= 0.3 + 1e-9
        for points in (starts, goals):
            assert 0.3 <= points[:, 1].min() + 1e-9 <= points[:, 1].max() <= 0.55 + 1e-9
