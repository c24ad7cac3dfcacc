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
from matplotlib.figure import Figure
from PIL import Image

from drawings import DRAWN, aggregate, averages, bars, colors, entries
from goatrl.report import figures
from goatrl.report.tables import Entry
from goatrl.types import GoatError


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
