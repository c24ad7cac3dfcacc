"""The report as its readers meet it: in a real browser."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from selenium.webdriver.common.keys import Keys

from browser import Browser, find_browser
from goatrl import algorithms, cli, tasks
from goatrl.data.cache import checksums
from goatrl.evaluation.episodes import SCHEMA
from goatrl.experiments import (
    curves,
    finetuning,
    paper,
    planning,
    records,
    statistics,
    suites,
    timing,
)
from goatrl.experiments.claims import Outcome
from goatrl.experiments.columns import Column
from goatrl.experiments.records import Cell, CellConfig, Training
from goatrl.learn.parameters import hyperparameters
from goatrl.report import cells_page, maps, tables, video, webpage
from goatrl.tasks import TaskGroup
from goatrl.types import GoatError
from helpers import (
    learning,
    made_by_hand,
    made_curve,
    made_run,
    made_timing,
    point_episodes,
    walks,
)

SUITE = suites.get("paper")
GROUPS, LABELS, SEEDS = ("push-left-right", "hand-near-far"), ("GOAT", "WGCSL", "BC"), 3
POINT = "pointreach-expert-10"
VIEWS = (
    "#/",
    "#/paper",
    "#/paper/push-left-right",
    "#/paper/hand-near-far",
    "#/pointreach",
    f"#/pointreach/{POINT}",
    "#/finetune-ddpg",
    "#/finetune-own",
    "#/training-time",
    "#/everything",
)
# label → how it learns
TUNED = {"GOAT": (0.4, 0.9, 3), "MARWIL+HER": (0.3, 0.7, 6), "random": (0.05, 0.5, 9)}
VERSIONS = {
    "goatrl": "0.1.0",
    "jax": "0.10.2",
    "mujoco": "3.3.7",
    "python": "3.12.3",
    "device": "none",
}


def write_suite(folder: Path, groups: Sequence[str], labels: Sequence[str], seeds: int = 5) -> None:
    """Records as a benchmark leaves them, whose agents succeed about as often as the paper's."""
    for group in groups:
        for column in SUITE.columns:
            if column.label in labels:
                records.add(folder, make_cell(tasks.get(group), column, seeds))


def make_cell(group: TaskGroup, column: Column, seeds: int) -> Cell:
    published = paper.results("benchmark_success", "success")
    rng = np.random.default_rng([SUITE.groups.index(group.name), SUITE.columns.index(column)])
    parts = []
    for task in group.evaluated():
        starts, goals = task.evaluation()
        rates = {
            each.split: published[group.label, each.name, column.label][0] / 100
            for each in group.tasks
        }
        if task.split == "map":
            near = np.linalg.norm(goals[:, None] - goals[group.iid.contains(goals)], axis=-1).min(
                axis=1
            )
            chance = np.where(near == 0, rates["iid"], rates["ood"] * np.exp(-2 * near))
        else:
            chance = np.full(len(goals), published[group.label, task.name, column.label][0] / 100)
        for seed in range(seeds):
            success = rng.uniform(size=len(goals)) < np.clip(chance + rng.normal(0, 0.04), 0, 1)
            parts.append(
                pa.table(
                    {
                        "task": [task.name] * len(goals),
                        "split": [task.split] * len(goals),
                        "seed": [seed] * len(goals),
                        "episode": range(len(goals)),
                        "success": success,
                        "return": np.where(
                            success,
                            rng.integers(20, 49, len(goals)),
                            rng.integers(0, 3, len(goals)),
                        ),
                        "final_distance": rng.uniform(0, 0.1, len(goals)).astype(np.float32),
                        "start": starts.tolist(),
                        "goal": goals.tolist(),
                        "path": [None] * len(goals),
                    },
                    SCHEMA,
                )
            )
    entry = algorithms.get(column.algorithm)
    config = CellConfig(
        group.name,
        entry.name,
        "",
        hyperparameters(entry.build(group.settings)),
        group.spec,
        checksums().get(group.name, "0" * 64),
        group.evaluation_checksum(),
        group.settings.updates,
        group.settings.batch_size,
    )
    course = np.exp(-np.linspace(0, 4, 50)) + 0.1 * rng.uniform(size=(seeds, 50))
    names = ("policy_loss",) if column.label == "BC" else ("policy_loss", "value_loss", "value")
    curves = {name: (course * (place + 1)).round(4).tolist() for place, name in enumerate(names)}
    training = Training(tuple(range(seeds)), VERSIONS, seeds, 61.0, curves)
    return Cell(SUITE.name, column.label, config, (training,), pa.concat_tables(parts))


def make_point_cell(label: str, reached: int) -> Cell:
    """Without curves, as of old."""
    return made_by_hand(POINT, walks(POINT, reached, (0, 1), 7), (0, 1), label)


def tuned_curves() -> list[curves.Curve]:
    """Of both suites: random networks are part of the first alone."""
    groups = ("push-left-right", "pick-left-right")
    by_ddpg = [
        made_curve(label, learning(*course), group=group)
        for group in groups
        for label, course in TUNED.items()
    ]
    return [*by_ddpg, made_curve("GOAT", learning(0.4, 0.45, 9), "finetune-own")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two experiments, one of them with pictures, one in fine-tuning, and training times."""
    folder = tmp_path_factory.mktemp("experiments")
    write_suite(folder / "paper", GROUPS, LABELS, SEEDS)
    for algorithm, (label, reached) in enumerate((("GOAT", 15), ("Goal BC", 4))):
        cell = make_point_cell(label, reached)
        records.add(
            folder / "pointreach",
            dataclasses.replace(
                cell, config=dataclasses.replace(cell.config, algorithm=f"a{algorithm}")
            ),
        )
    media = folder / "paper" / "media"
    media.mkdir()
    Image.new("RGB", (40, 30), "navy").save(media / "push-left-right--dataset.png")
    Image.new("RGB", (60, 30), "navy").save(media / "push-left-right--GOAT--uncertainty.png")
    clip = np.zeros((10, 32, 32, 3), np.uint8)
    imageio.imwrite(media / "push-left-right--GOAT--Right2Left.mp4", clip, **video.WRITERS[".mp4"])
    (folder / "notes").mkdir()
    for curve in tuned_curves():
        curves.write(folder / "finetune", curve)
    for place, column in enumerate(timing.COLUMNS):
        timing.write(
            folder / "training-time",
            made_timing(
                column.label, (0.1 + 0.05 * place, 0.11 + 0.05 * place, 0.2 + 0.05 * place)
            ),
        )
    return folder


@pytest.fixture(scope="module")
def page(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "report.html"
    assert cli.main(["report", str(folder), "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    programs = find_browser()
    if programs is None:
        pytest.skip(
            "no Chromium with chromedriver; `make browser` installs Debian's, which lets these "
            "tests run"
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("no_proxy", "*")  # the driver is on this machine
        browser = Browser(*programs)
    with browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser, page: Path) -> Iterator[Browser]:
    """On the table of the paper's suite, at a desk, by day. Whatever a test does, it must not make
    the page complain.
    """
    chromium.size(1280, 900)
    chromium.prefer("light")
    chromium.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": 1, "y": 1})
    chromium.open(page, "#/paper")
    yield chromium
    assert chromium.complaints() == []


@pytest.fixture(scope="module")
def cells(folder: Path) -> list[Cell]:
    return planning.suite_cells(SUITE, folder / "paper")


class Markup(HTMLParser):
    """What a page consists of, and whether every element is closed where it should be."""

    VOID = frozenset(("meta", "link", "input", "img", "br", "wbr", "hr", "source"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, name: str) -> list[str | None]:
        return [attributes[name] for _, attributes in self.elements if name in attributes]


def check_markup(text: str) -> Markup:
    markup = Markup(text)
    assert markup.open == []
    ids = markup.all("id")
    assert len(ids) == len(set(ids)), "ids are unique"
    known = set(ids)
    for name in ("aria-labelledby", "aria-describedby"):
        assert {each for value in markup.all(name) for each in (value or "").split()} <= known
    assert all(attributes.get("alt") for tag, attributes in markup.elements if tag == "img")
    assert not [
        value
        for name in ("src", "href")
        for value in markup.all(name)
        if (value or "").startswith(("http", "//"))
    ]
    return markup


def stored(page: Path) -> dict:
    """The aggregates inside a page."""
    return stored_in(page.read_text())


def stored_in(html: str) -> dict:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html)
    return json.loads(text)


def rows(browser: Browser) -> list[list[str]]:
    """Group and task of each row of the table."""
    return browser.run(
        """[...document.querySelectorAll('.results tbody tr:not(.group)')]
            .map(row => row.querySelector('td')).filter(cell => cell.dataset.task)
            .map(cell => [cell.dataset.group, cell.dataset.task])"""
    )


def in_order() -> list[list[str]]:
    return [[group, task.name] for group in GROUPS for task in tasks.get(group).tasks]


def sorted_by(cells: Sequence[Cell], label: str) -> list[list[str]]:
    """The highest first; equal ones as they were."""
    mean = {
        (e.dataset, e.task): round(e.mean, 1)
        for e in tables.entries(SUITE, cells, "success")
        if e.column == label
    }
    return sorted(in_order(), key=lambda row: -mean[tasks.get(row[0]).label, row[1]])


def head(label: str) -> str:
    """Where the heading of a column is."""
    return f".results thead th:nth-child({['Task', *LABELS].index(label) + 1})"


def order_of(browser: Browser, label: str) -> str:
    return browser.run(f"document.querySelector('{head(label)}').getAttribute('aria-sort')")


# The file


def test_the_file_is_whole_and_asks_for_nothing(page: Path) -> None:
    markup = check_markup(page.read_text())
    assert [tag for tag, _ in markup.elements if tag in ("main", "header", "footer", "nav")] == [
        "header",
        "nav",
        "main",
        "footer",
    ]
    assert "default-src 'none'" in markup.all("content")[-1]
    assert not [
        tag for tag, attributes in markup.elements if tag == "script" and "src" in attributes
    ]
    assert page.stat().st_size < 1_000_000


def test_the_same_records_give_the_same_bytes(folder: Path, page: Path) -> None:
    assert webpage.page(folder) == page.read_text()


def test_one_folder_of_records_is_enough(folder: Path) -> None:
    assert [
        each.name for each in cells_page.experiments(webpage.record_folders(folder / "pointreach"))
    ] == ["pointreach"]
    assert [each.name for each in cells_page.experiments(webpage.record_folders(folder))] == [
        "paper",
        "pointreach",
    ], "in the order of the suites"


def test_experiments_are_told_apart(folder: Path, tmp_path: Path) -> None:
    goat = next(cell for cell in records.read_all(folder / "paper") if cell.label == "GOAT")
    records.add(tmp_path / "mine", goat)
    records.add(tmp_path / "robots", dataclasses.replace(goat, suite="ablation-rnd"))
    assert [each.name for each in cells_page.experiments(webpage.record_folders(tmp_path))] == [
        "mine",
        "robots",
    ]
    other = next(cell for cell in records.read_all(folder / "paper") if cell.label == "BC")
    records.add(tmp_path / "robots", other)
    assert [each.name for each in cells_page.experiments(webpage.record_folders(tmp_path))] == [
        "robots paper",
        "mine",
        "ablation-rnd",
    ], "the fullest first"
    (tmp_path / "mine").rename(tmp_path / "ablation-rnd")
    assert [each.name for each in cells_page.experiments(webpage.record_folders(tmp_path))] == [
        "robots paper",
        "ablation-rnd",
        "robots ablation-rnd",
    ]


def test_a_clip_that_two_experiments_show_is_in_the_page_once(folder: Path, tmp_path: Path) -> None:
    goat, bc = (
        next(
            cell
            for cell in records.read_all(folder / "paper")
            if (cell.config.group, cell.label) == ("push-left-right", label)
        )
        for label in ("GOAT", "BC")
    )
    shutil.copytree(folder / "paper" / "media", tmp_path / "media")
    records.add(tmp_path, dataclasses.replace(goat, suite="ablation-rnd"))
    records.add(tmp_path, bc)
    assert [
        [cell.label for cell in each.cells]
        for each in cells_page.experiments(webpage.record_folders(tmp_path))
    ] == [
        ["GOAT", "BC"],
        ["GOAT"],
    ]
    page = webpage.page(tmp_path)
    (clip,) = (tmp_path / "media").glob("*.mp4")
    assert page.count('"label":"GOAT","task":"Right2Left","source"') == 2
    assert page.count(base64.b64encode(clip.read_bytes()).decode()) == 1


def test_folders_without_records_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GoatError, match="no such folder"):
        webpage.page(tmp_path / "nowhere")
    (tmp_path / "inside").mkdir()
    with pytest.raises(GoatError, match=r"no records in .*goat bench"):
        webpage.page(tmp_path)


def test_no_text_of_a_record_can_leave_the_data(tmp_path: Path) -> None:
    label = "</script><script>document.title = 'taken'</script><!--"
    records.add(tmp_path, make_point_cell(label, 3))
    text = webpage.page(tmp_path)
    check_markup(text)
    (tmp_path / "page.html").write_text(text)
    assert stored(tmp_path / "page.html")["experiments"][0]["algorithms"] == [label]


def test_what_is_not_finite_is_left_out(tmp_path: Path) -> None:
    cell = make_point_cell("GOAT", 3)
    training = dataclasses.replace(
        cell.trainings[0], curves={"value": [[1.0, float("nan")], [3.0, 4.0]]}
    )
    records.add(tmp_path, dataclasses.replace(cell, trainings=(training,)))
    (tmp_path / "page.html").write_text(webpage.page(tmp_path))
    (group,) = stored(tmp_path / "page.html")["experiments"][0]["groups"]
    assert group["curves"]["GOAT"]["value"] == [[2.0, None], [1.0, None], [3.0, None]]


def test_the_command_gives_the_records_again(folder: Path, cells: list[Cell]) -> None:
    def command(*cells: Cell) -> str:
        return cells_page.command(cells_page.Experiment("x", SUITE, cells, folder))

    groups = "--groups push-left-right hand-near-far"
    assert command(*cells) == f"goat bench paper {groups} --algorithms goat wgcsl bc --seeds 3"
    first = dataclasses.replace(
        cells[0], config=dataclasses.replace(cells[0].config, updates=80, checksum="other")
    )
    assert (
        command(first)
        == "goat bench paper --groups push-left-right --algorithms goat --seeds 3 --updates 80 "
        "--data push-left-right=FILE"
    )
    mine = dataclasses.replace(
        cells[0],
        label="Mine",
        config=dataclasses.replace(cells[0].config, algorithm="mine", source="1234"),
    )
    assert (
        command(mine) == "goat bench paper --groups push-left-right --algorithms FILE.py --seeds 3"
    )


def test_the_best_is_best_over_the_tasks_that_all_have(folder: Path, cells: list[Cell]) -> None:
    """One that was only run on the easier group neither wins by that nor loses to averages over the
    harder one. Only where as many cells are compared on that group alone, all are.
    """
    pushed = [cell for cell in cells if cell.config.group == "push-left-right"]
    late = ["GoFAR", "MARWIL+HER", "IQL+HER"]  # columns of the suite that have just begun
    assert not set(late) & set(LABELS)
    for labels, together in ((["Lucky"], False), (late[-1:], False), (late, True)):
        more = [dataclasses.replace(pushed[-1], label=label) for label in labels]
        found = cells_page.describe(cells_page.Experiment("x", SUITE, [*cells, *more], folder))
        compared = [*pushed, *more] if together else cells
        averages = {
            each.label: each.mean
            for each in statistics.summary(SUITE, compared, "success")
            if each.split == "ood"
        }
        best = max(averages.values())
        first, *others = [label for label, mean in averages.items() if mean == best]
        assert (
            [each["label"] for each in found["averages"]["success"]["ood"]]
            == list(averages)
            == [*LABELS, *(labels if together else ())]
        )
        assert found["best"]["ood"] == {
            "label": first,
            "others": len(others),
            "value": round(best, 1),
            "tasks": 3 if together else 4,  # OOD tasks of Push alone, or of both groups
        }
        assert sorted(found["algorithms"]) == sorted([*LABELS, *labels])


# In the browser


def test_the_browser_tells_what_goes_wrong(browser: Browser, tmp_path: Path) -> None:
    wrong = (
        "console.warn('warned')",
        "console.error('told')",
        "throw Error('thrown')",
        "Promise.reject(Error('refused'))",
    )
    text = (
        "".join(f"<script>{each}</script>" for each in wrong)
        + "<img src='http://goatrl.invalid/none.png'>"
    )
    (tmp_path / "page.html").write_text(text)
    browser.requests()
    browser.open(tmp_path / "page.html")
    found = browser.complaints()
    assert all(
        any(word in each for each in found)
        for word in ("warned", "told", "thrown", "refused", "none.png")
    ), found
    assert len(found) == 5
    assert "http://goatrl.invalid/none.png" in browser.requests()


def test_one_seed_has_no_deviation(browser: Browser, tmp_path: Path) -> None:
    write_suite(tmp_path, ["hand-near-far"], ["GOAT"], seeds=1)
    (tmp_path / "page.html").write_text(webpage.page(tmp_path))
    browser.open(tmp_path / "page.html", f"#/{tmp_path.name}")
    browser.point("td[data-task=Near]")
    assert browser.run("document.querySelectorAll('.results .spread').length") == 0
    assert re.match(
        r"GOAT on .*Mean[\d.]+95 %", browser.run("document.getElementById('tip').textContent")
    )
    assert browser.run("document.querySelector('.tabled .key').textContent").startswith(
        "One seed, the paper’s below."
    )


def test_runs_beside_each_other(browser: Browser, tmp_path: Path) -> None:
    for name, discount, successes in (
        ("a", 0.9, {"R10": [[1, 0], [1, 1]], "R20": [[0, 0], [1, 0]]}),
        ("b", 0.95, {"R10": [[1, 1], [1, 1]], "R20": [[1, 1], [0, 1]]}),
    ):
        table = point_episodes(successes)
        made_run(tmp_path / "mine" / name, table, overrides={"discount": discount})
    (tmp_path / "page.html").write_text(webpage.page(tmp_path / "mine"))
    browser.open(tmp_path / "page.html", "#/runs%20in%20mine")
    check_markup(browser.run("document.documentElement.outerHTML"))
    cells = browser.run(
        "[...document.querySelectorAll('.results tbody tr:last-child td')].map(c => c.textContent)"
    )
    # Computed by hand in tests/experiments/test_comparison.py.
    assert cells[:4] == ["0.95", "2", "100 100 to 100", "10.0 10.0 to 10.0"]
    assert cells[4] == "75 50 to 100"
    assert cells[6].startswith("0.81 ")
    titles = "[...document.querySelectorAll('svg.chart > title')].map(each => each.textContent)"
    assert browser.run(titles) == ["Success (%), mixed (R10)", "Success (%), OOD (R20)"]
    browser.point("input[value=return] + span", click=True)
    assert browser.run(titles) == ["Return (steps), mixed (R10)", "Return (steps), OOD (R20)"]
    described = "document.querySelector('svg.chart > desc').textContent"
    assert (
        browser.run(described)
        == "discount 0.9 7.5 (5.0 to 10.0); discount 0.95 10.0 (10.0 to 10.0)"
    )
    assert browser.run("document.querySelector('a[href=\"#/runs%20in%20mine\"]').textContent")


def test_every_view_is_drawn_without_complaint_or_network(browser: Browser) -> None:
    for view in VIEWS:
        browser.go("#/elsewhere")
        browser.go(view)
        check_markup(browser.run("document.documentElement.outerHTML"))
        if view != "#/everything":
            assert browser.run("document.querySelectorAll('h1').length") == 1
        assert browser.run("document.activeElement.tagName") == "H1", (
            "a reader who cannot see hears where he is"
        )
        assert browser.run(
            "[...document.querySelectorAll('main input, main select')].every(each => "
            "each.labels.length)"
        )
        assert browser.run(
            "[...document.querySelectorAll('main svg[role=img]')].every(each => "
            "each.querySelector('title').textContent)"
        )
        assert browser.run("[...document.querySelectorAll('th')].every(each => each.scope)")
    assert browser.complaints() == []
    assert browser.requests()
    assert {url.partition(":")[0] for url in browser.requests()} <= {
        "file",
        "data",
        "blob",
        "about",
    }


@pytest.mark.parametrize("metric", ["success", "return"])
def test_the_numbers_are_those_of_the_tables(
    browser: Browser, cells: list[Cell], metric: str
) -> None:
    browser.point(f".tabled input[value={metric}] + span", click=True)
    shown = browser.run(
        "Object.fromEntries([...document.querySelectorAll('.results td[data-label]')].map(cell => ["
        "[cell.dataset.group, cell.dataset.task, cell.dataset.label].join(), cell.textContent]))"
    )
    labels = {tasks.get(group).label: group for group in GROUPS}
    entries = tables.entries(SUITE, cells, metric)
    assert len(shown) == len(entries) == 6 * 3
    for entry in entries:
        text = shown[f"{labels[entry.dataset]},{entry.task},{entry.column}"]
        assert text.startswith(f"{entry.mean:.1f} ±{entry.std:.1f}")
        assert f"paper {entry.paper[0]:.1f} ±{entry.paper[1]:.1f}" in text
        assert ("far apart" in text) == entry.far
    for group, task in in_order():
        row = [entry for entry in entries if (labels[entry.dataset], entry.task) == (group, task)]
        best = max(round(entry.mean, 1) for entry in row)
        for entry in row:
            text = shown[f"{group},{task},{entry.column}"]
            assert (" best" in text and "second" not in text) == (round(entry.mean, 1) == best)


# The first screen


def test_the_first_screen_begins_with_the_finding(
    browser: Browser, page: Path, cells: list[Cell]
) -> None:
    browser.go("#/")
    ood = [each for each in statistics.summary(SUITE, cells, "success") if each.split == "ood"]
    first, second, _ = sorted(ood, key=lambda each: -each.mean)

    def sure(each: statistics.Average) -> str:
        interval = each.interval
        return f"{each.mean:.1f} % (95 % interval {interval.low:.1f} to {interval.high:.1f})"

    assert said(browser, ".finding-words") == (
        f"{first.label} has the highest success on unseen tasks: {sure(first)} over 4 tasks. "
        f"{second.label} follows with {sure(second)}."
    )
    assert browser.run(
        "[...document.querySelectorAll('.finding svg > title')].map(e => e.textContent)"
    ) == [
        "Averages: Success (%), OOD tasks",
        "Averages: Success (%), IID tasks",
        f"Coverage of {first.label}",
    ]
    assert first.label == "GOAT", "of which there is a clip"
    assert said(browser, ".finding .clip figcaption").startswith("GOAT on Right2Left OOD")
    bottom = browser.run("document.querySelector('.finding').getBoundingClientRect().bottom")
    assert bottom <= 900, "all of it without scrolling"
    assert browser.run("document.querySelector('#experiments').textContent") == "All experiments"


def test_the_finding_has_the_share_of_the_expert(browser: Browser, tmp_path: Path) -> None:
    """GOAT reaches 3 of 4 goals, on the map those that the data has seen; the expert all."""
    write_suite(tmp_path / "paper", ["push-left-right"], ["GOAT", "BC"], seeds=2)
    goat, bc = records.read_all(tmp_path / "paper")
    if goat.label != "GOAT":
        goat, bc = bc, goat
    splits = goat.column("split")
    place = np.arange(len(splits))

    def reaching(cell: Cell, success: np.ndarray) -> Cell:
        at = cell.episodes.schema.get_field_index("success")
        episodes = cell.episodes.set_column(at, SCHEMA.field("success"), pa.array(success))
        return dataclasses.replace(cell, episodes=episodes)

    seen = tasks.get("push-left-right").iid.contains(goat.column("goal"))
    ours = reaching(goat, np.where(splits == "map", seen, place % 4 != 0))
    expert = dataclasses.replace(
        reaching(goat, np.ones(len(splits), bool)),
        label="Expert",
        config=dataclasses.replace(goat.config, algorithm="expert", updates=0),
    )
    for cell in (ours, reaching(bc, np.zeros(len(splits), bool)), expert):
        records.add(tmp_path / "robots", cell)
    records.add(tmp_path / "points", make_point_cell("GOAT", 20))
    shutil.rmtree(tmp_path / "paper")
    (tmp_path / "page.html").write_text(webpage.page(tmp_path))
    browser.open(tmp_path / "page.html", "#/")
    assert said(browser, ".finding-words") == (
        "GOAT has the highest success on unseen tasks: 75.0 % (95 % interval 75.0 to 75.0) over 3 "
        "tasks, 75 % of the expert’s success. BC follows with 0.0 % (95 % interval 0.0 to 0.0)."
    ), "the fullest experiment, not that with the highest number"
    maps_of = "[...document.querySelectorAll('.finding .maps .panel > figcaption')]"
    assert browser.run(f"{maps_of}.map(e => e.textContent)") == [
        "GOATIID 100 %OOD 0 %",
        "ExpertIID 100 %OOD 100 %",
    ]
    assert browser.run("document.querySelectorAll('.finding .ceiling').length") == 2
    assert browser.run("document.querySelector('.finding .clip')") is None
    row = "document.querySelector('.experiments a[href=\"#/robots\"]').closest('tr').innerText"
    assert browser.run(row).split("\t")[2:4] == ["2", "GOAT 75.0\u00a0% OOD"]
    browser.go("#/robots")
    assert "Expert" not in browser.run("document.querySelector('.cards').textContent"), (
        "the best are those that learn"
    )


def said(browser: Browser, selector: str) -> str:
    """What stands there, with ordinary blanks."""
    text = browser.run(f"document.querySelector('{selector}').textContent")
    return text.replace("\u00a0", " ")


def test_the_map_is_of_the_group_that_says_most(browser: Browser) -> None:
    def group(name: str, mine: int, expert: int | None, clip: str = "") -> dict:
        of = {"A": {"iid": 90, "ood": mine}}
        if expert is not None:
            of["Expert"] = {"iid": 100, "ood": expert}
        return {"name": name, "maps": {"of": of}, "clips": [{"label": clip}] if clip else []}

    def chosen(ceiling: str | None, *groups: dict) -> str | None:
        made = json.dumps({"ceiling": ceiling, "groups": groups})
        return browser.run(f"tellingGroup({made}, 'A')?.name ?? null")

    near, far = group("near", 95, 100), group("far", 60, 80)
    assert chosen("Expert", near, far) == "far", "where the expert is furthest ahead"
    assert chosen("Expert", {**near, "clips": [{"label": "A"}]}, far) == "near", "with a clip"
    assert chosen("Expert", {**near, "clips": [{"label": "B"}]}, far) == "far", "not of another"
    assert chosen(None, group("near", 70, None), group("far", 20, None)) == "far"
    assert chosen("Expert", {"name": "hand", "maps": None, "clips": []}) is None


def test_experiments_stand_in_families(browser: Browser) -> None:
    browser.go("#/")
    families = browser.run(
        "[...document.querySelectorAll('.experiments tbody')].map(body => [body.querySelector("
        "'.group').textContent, [...body.querySelectorAll('a')].map(e => e.hash)])"
    )
    assert families == [
        ["The paper's benchmark", ["#/paper"]],
        ["PointReach", ["#/pointreach"]],
        ["Online fine-tuning", ["#/finetune-ddpg", "#/finetune-own"]],
        ["Training time", ["#/training-time"]],
    ]
    lines = browser.run(
        "[...document.querySelectorAll('.experiments tbody tr:not(.group)')].map(row => "
        "[...row.children].map(each => each.textContent.replaceAll('\u00a0', ' ')))"
    )
    paper_line, points, tuned, _, times = lines
    assert paper_line[1].endswith(" 2 of 9 datasets: Push Left-Right, HandReach Near-Far.")
    assert paper_line[2] == "3"
    assert re.fullmatch(r"GOAT \d+\.\d % OOD", paper_line[3])
    assert (paper_line[4], tuned[4]) == ("–", "2 held"), "of some algorithms nothing is concluded"
    assert points[3] == "GOAT 75 % OOD"
    assert [line[2] for line in lines] == ["3", "2", "5", "5", "–"]
    assert times[3] == f"{timing.COLUMNS[0].label} 5.5 s shortest"
    moved(browser, "document.querySelector('.experiments a[href$=own]').click()")
    assert browser.run("document.querySelector('h1').textContent") == "finetune-own"
    assert browser.run(
        "[...document.querySelectorAll('#experiments a')].map(e => e.textContent)"
    ) == ["All experiments", "finetune-ddpg", "finetune-own"], "those of the same family"


def test_a_family_is_the_first_word_of_a_suite() -> None:
    found = [
        webpage.family({"kind": "grid", "suite": suite})
        for suite in ("paper", "frontier-development", "ablation-rnd", "mine-too")
    ]
    assert found == ["The paper's benchmark", "Beyond the paper", "Ablations", "Mine"]
    assert webpage.family({"kind": "runs"}) == "Own runs"
    words = {suite.name.partition("-")[0] for suite in suites.SUITES}
    words |= {name.partition("-")[0] for name in (*finetuning.SUITES, timing.NAME)}
    assert words <= set(webpage.FAMILIES)


def test_later_experiments_of_a_suite_say_how_they_differ(
    browser: Browser, folder: Path, tmp_path: Path
) -> None:
    cells = records.read_all(folder / "paper")
    for cell in cells:
        records.add(tmp_path / "one", cell)
    moved = dataclasses.replace(
        cells[0], config=dataclasses.replace(cells[0].config, checksum="other")
    )
    records.add(tmp_path / "two", moved)
    (tmp_path / "page.html").write_text(webpage.page(tmp_path))
    browser.open(tmp_path / "page.html", "#/")
    label = tasks.get(moved.config.group).label
    assert browser.run(
        "document.querySelector('.experiments tbody tr:last-child .about').textContent"
    ) == (f"As one. 1 of 9 datasets: {label}; other dataset files.")


# The address


def test_a_link_gives_the_same_view_again(browser: Browser, page: Path, cells: list[Cell]) -> None:
    query = "metric=return&split=ood&group=push-left-right&text=left2&paper=hidden"
    browser.open(page, f"#/paper?{query}&sort=WGCSL&direction=ascending")
    returns = {
        entry.task: entry.mean
        for entry in tables.entries(SUITE, cells, "return")
        if entry.column == "WGCSL" and entry.dataset == "Push Left-Right"
    }
    expected = sorted(("Left2Right", "Left2Left"), key=lambda task: returns[task])
    assert [task for _, task in rows(browser)] == expected
    assert order_of(browser, "WGCSL") == "ascending"
    assert chosen(browser) == ["return", "return", "ood", "push-left-right", "left2", False]
    assert "Return (steps)" in said(browser, ".results thead")
    browser.open(page, "#/paper?metric=love&split=none&group=x&sort=y&direction=up")
    assert rows(browser) == in_order(), "what there is not is not asked for"
    assert chosen(browser) == ["success", "success", "all", "", "", True]


def chosen(browser: Browser) -> list[str | bool]:
    """Of all controls of the table's view."""
    return browser.run(
        """[
            ...[...document.querySelectorAll('main input[type=radio]:checked')].map(e => e.value),
            document.querySelector('.tabled select').value,
            document.querySelector('.tabled input[type=search]').value,
            document.querySelector('.tabled .check input').checked,
        ]"""
    )


def moved(browser: Browser, script: str) -> None:
    """Run what leads to another address, and wait until it is shown."""
    browser.execute_async_script(
        f"""const [done, before] = [arguments[0], location.hash];
        addEventListener('hashchange', function heard() {{
            if (location.hash === before) return;
            removeEventListener('hashchange', heard);
            setTimeout(done);
        }});
        {script};"""
    )


def test_choices_stand_in_the_address_and_can_be_taken_back(browser: Browser) -> None:
    def at() -> str:
        return browser.run("location.hash")

    def back() -> None:
        moved(browser, "history.back()")

    browser.point(".tabled input[value=return] + span", click=True)
    assert at() == "#/paper?metric=return"
    browser.point(f"{head('WGCSL')} button", click=True)
    by_wgcsl = rows(browser)
    assert at() == "#/paper?metric=return&sort=WGCSL&direction=descending"
    browser.point(f"{head('Task')} button", click=True)
    assert at() == "#/paper?metric=return&sort=Task&direction=ascending"
    browser.point(".tabled input[type=search]", click=True)
    browser.press("left2")
    assert at() == "#/paper?metric=return&text=left2&sort=Task&direction=ascending"
    assert browser.run("document.activeElement.type") == "search", "and one can write on"
    back()
    assert (rows(browser), order_of(browser, "WGCSL")) == (by_wgcsl, "descending")
    assert chosen(browser) == ["return", "return", "all", "", "", True], "letters are no steps"
    back()
    assert (at(), rows(browser)) == ("#/paper?metric=return", in_order())
    links = "[...document.querySelectorAll('main a')].map(e => e.hash)"
    assert "#/paper/push-left-right?metric=return" in browser.run(links)
    back()
    assert at() == "#/paper"
    assert chosen(browser)[:2] == ["success", "success"]
    assert "#/paper/push-left-right" in browser.run(links)
    browser.go("#/paper/push-left-right")
    browser.run(
        "(e => { e.value = 'value_loss'; e.dispatchEvent(new Event('change')) "
        "})(document.querySelector('main select'))"
    )
    assert at() == "#/paper/push-left-right?curve=value_loss"
    back()
    assert browser.run("document.querySelector('main select').value") == "policy_loss"


def test_sorting_by_mouse_and_by_keyboard(browser: Browser, cells: list[Cell]) -> None:
    assert rows(browser) == in_order()
    browser.point(f"{head('WGCSL')} button", click=True)
    assert rows(browser) == sorted_by(cells, "WGCSL")
    assert (order_of(browser, "WGCSL"), order_of(browser, "GOAT")) == ("descending", "none")
    assert (
        browser.run("document.getElementById('said').textContent")
        == "Sorted by WGCSL, highest first"
    )
    browser.press(Keys.ENTER)  # the heading has the focus
    assert order_of(browser, "WGCSL") == "ascending"
    assert [row[1] for row in rows(browser)] != [row[1] for row in in_order()]
    browser.press(Keys.ENTER)
    assert (rows(browser), order_of(browser, "WGCSL")) == (in_order(), "none")
    browser.press(Keys.TAB)
    browser.press(" ")
    assert order_of(browser, "BC") == "descending"
    assert rows(browser) == sorted_by(cells, "BC")
    browser.point(f"{head('Task')} button", click=True)
    assert [task for _, task in rows(browser)] == [
        "Far",
        "Left2Left",
        "Left2Right",
        "Near",
        "Right2Left",
        "Right2Right",
    ]


def test_filters(browser: Browser, cells: list[Cell]) -> None:
    def shown() -> list[str]:
        return [task for _, task in rows(browser)]

    def average() -> str:
        return browser.run("document.querySelector('.results tfoot td').firstChild.textContent")

    ours = {
        each.split: each
        for each in statistics.summary(SUITE, cells, "success")
        if each.label == "GOAT"
    }
    assert average() == f"{ours['all'].mean:.1f}"
    browser.point(".tabled input[value=iid] + span", click=True)
    assert shown() == ["Right2Right", "Near"]
    assert average() == f"{ours['iid'].mean:.1f}"
    assert browser.run(
        "[...document.querySelectorAll('.results tbody .split')].map(each => each.textContent)"
    ) == ["IID", "IID"]
    browser.press(Keys.ARROW_RIGHT)
    assert shown() == ["Right2Left", "Left2Right", "Left2Left", "Far"]
    assert average() == f"{ours['ood'].mean:.1f}"
    browser.run(
        "(e => { e.value = 'push-left-right'; e.dispatchEvent(new Event('change')) "
        "})(document.querySelector('.tabled select'))"
    )
    assert shown() == ["Right2Left", "Left2Right", "Left2Left"]
    browser.point(".tabled input[type=search]", click=True)
    browser.press("LEFT2")
    assert shown() == ["Left2Right", "Left2Left"]
    browser.press("x")
    assert shown() == []
    assert "No task matches" in browser.run("document.querySelector('.results tbody').textContent")
    browser.point(".tabled .check input", click=True)
    assert browser.run("document.querySelector('.results').classList.contains('ours-only')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_became_of_the_conclusions(browser: Browser, scheme: str) -> None:
    browser.prefer(scheme)
    found = [
        {"claim": f"Claim {place}.", "outcome": o, "evidence": "1 > 0"}
        for place, o in enumerate([*Outcome, Outcome.HELD])
    ]
    made = json.dumps({"kind": "grid", "verdicts": found})
    assert browser.run(f"outcomes({made})[1]") == "2 held, 1 undecided, 1 not held"
    assert (
        browser.run(f"outcomes({json.dumps({'verdicts': found[:1] + found[2:3]})})[1]")
        == "1 held, 1 not held"
    )
    assert browser.run(f"outcomes({json.dumps({'verdicts': found[3:4]})})") is None
    browser.run(f"MAIN.replaceChildren(verdicts({made})) || 0")
    marks = browser.run("[...document.querySelectorAll('.mark')].map(mark => mark.textContent)")
    assert marks == ["✓ Held", "? Undecided", "✗ Not held", "✓ Held"]
    assert "1 of 5 not checked" in browser.run("MAIN.textContent")
    colors = browser.run(
        "[...document.querySelectorAll('.verdicts li')].map(li => "
        "[getComputedStyle(li.querySelector('.mark')).color, "
        "getComputedStyle(li).backgroundColor].map(color => color.match(/[\\d.]+/g).map(Number)))"
    )
    assert len({tuple(mark) for mark, _ in colors}) == 3
    assert min(contrast(mark, ground) for mark, ground in colors) >= 4.5


def contrast(one: list[float], other: list[float]) -> float:
    """Of two colours from 0 to 255, as WCAG defines it."""

    def luminance(color: list[float]) -> float:
        shares = [value / 255 for value in color[:3]]
        linear = [
            share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4
            for share in shares
        ]
        return sum(
            weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True)
        )

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_a_cell_shows_its_seeds_and_its_interval(browser: Browser, cells: list[Cell]) -> None:
    (cell,) = [c for c in cells if c.label == "WGCSL" and c.config.group == "push-left-right"]
    block = statistics.scores([cell], "WGCSL").blocks[0]
    alone = statistics.Scores(
        "WGCSL",
        (dataclasses.replace(block, episodes={"Right2Left": block.episodes["Right2Left"]}),),
    )
    sure = statistics.interval(alone, statistics.average)

    def tip() -> str | None:
        return browser.run(
            "document.getElementById('tip').hidden ? null : "
            "document.getElementById('tip').textContent"
        )

    place = "td[data-group=push-left-right][data-task=Right2Left][data-label=WGCSL]"
    assert tip() is None
    browser.point(place)
    for value in cell.per_seed("success", "Right2Left"):
        assert f"{100 * value:.1f}" in tip()
    assert (
        f"{100 * sure.low:.1f} to {100 * sure.high:.1f}Episodes "
        f"alone±{100 * statistics.episode_noise(alone):.1f}" in tip()
    )
    assert "WGCSL on Push Left-Right, Right2Left OOD" in tip()
    assert (
        browser.run(f"document.querySelector('{place}').getAttribute('aria-describedby')") == "tip"
    )
    browser.press(Keys.ESCAPE)
    assert tip() is None
    # The same by keyboard: one stop for all cells, arrows among them.
    browser.run("document.querySelector('.results thead th:last-child button').focus()")
    browser.press(Keys.TAB)  # the link of the first group
    browser.press(Keys.TAB)
    assert "GOAT on Push Left-Right, Right2Right" in tip()
    browser.press(Keys.ARROW_RIGHT)
    browser.press(Keys.ARROW_DOWN)
    assert "WGCSL on Push Left-Right, Right2Left" in tip()
    browser.press(Keys.ARROW_UP)
    browser.press(Keys.ARROW_UP)
    assert "WGCSL on Push Left-Right, Right2Right" in tip(), "there is nothing above"
    box = browser.run(
        """(box => [box.left, box.top, innerWidth - box.right, innerHeight - box.bottom])
            (document.getElementById('tip').getBoundingClientRect())"""
    )
    assert min(box) >= 0, "all of it is in view"
    browser.press(Keys.TAB)
    assert tip() is None


def luminance(color: str) -> float:
    red, green, blue = (float(part) / 255 for part in re.findall(r"[\d.]+", color)[:3])
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def color(browser: Browser, name: str) -> str:
    """A variable of the style sheet, as it is now."""
    return browser.run(
        f"""(probe => {{
            document.body.append(probe);
            probe.style.color = 'var(--{name})';
            const found = getComputedStyle(probe).color;
            probe.remove();
            return found;
        }})(document.createElement('i'))"""
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_by_day_and_by_night(browser: Browser, scheme: str) -> None:
    browser.prefer(scheme)
    grounds = {
        name: luminance(color(browser, name))
        for name in ("page", "card", "faint", "iid-soft", "ood-soft", "mixed-soft")
    }
    assert (grounds["page"] < 0.1) == (scheme == "dark")
    pairs = [
        (text, ground) for text in ("ink", "soft", "accent") for ground in ("page", "card", "faint")
    ]
    pairs += [
        (text, ground) for text in ("iid", "ood", "mixed") for ground in ("card", f"{text}-soft")
    ]
    for text, ground in [*pairs, ("good", "card"), ("bad", "card")]:
        light, dark = sorted((luminance(color(browser, text)), grounds[ground]), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, f"{text} on {ground}"


def test_the_toggle_overrules_the_system(browser: Browser) -> None:
    by_day = color(browser, "page")
    browser.point("#theme", click=True)
    by_night = color(browser, "page")
    assert luminance(by_night) < 0.1 < luminance(by_day)
    assert browser.run("document.getElementById('theme').textContent") == "Light colours"
    browser.prefer("dark")
    browser.press(Keys.ENTER)
    assert color(browser, "page") == by_day
    browser.run("localStorage.clear()")


def test_a_phone_needs_no_sideways_scrolling(browser: Browser, page: Path) -> None:
    browser.size(320, 640)
    for view in VIEWS:
        browser.open(page, view)
        assert browser.run("document.documentElement.scrollWidth") <= 320, view
        texts = "[...document.querySelectorAll('main h1, main h2, main p, main label')]"
        assert browser.run(f"{texts}.every(each => each.getBoundingClientRect().right <= 320)")
    browser.open(page, "#/paper")
    inside = browser.run(
        """(frame => {
            frame.scrollLeft = 90;
            const first = frame.querySelector('tbody th[scope=row]').getBoundingClientRect();
            return [frame.scrollWidth > frame.clientWidth, frame.scrollLeft, first.left - frame.getBoundingClientRect().left];
        })(document.querySelector('.tabled .frame'))"""
    )
    assert inside[0], "the table scrolls in its own frame"
    assert inside[1] > 50
    assert abs(inside[2]) < 5, "and its first column stays"


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_cut_off_and_axes_have_units(browser: Browser, page: Path, width: int) -> None:
    browser.size(width, 900)
    cut_off = """[...document.querySelectorAll('main svg text')].filter(text => {
        const [outer, inner] = [text.ownerSVGElement, text].map(e => e.getBoundingClientRect());
        return inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.bottom > outer.bottom + 1;
    }).map(text => text.textContent)"""
    last = (
        "[...document.querySelectorAll('main svg.chart')].map(e => "
        "[...e.querySelectorAll('.quiet')].map(t => t.textContent).join(' '))"
    )
    for view in VIEWS:
        browser.open(page, view)
        assert browser.run("document.documentElement.scrollWidth") <= width, view
        assert browser.run(cut_off) == [], view
        axes = list(filter(None, browser.run(last)))  # paths have none
        assert all(re.search(r"\d (%|s|steps)( |$)", axis) for axis in axes), view
    browser.open(page, "#/paper?metric=return")
    steps = tasks.get("push-left-right").spec.horizon
    assert all(axis.endswith(f" {steps} steps") for axis in browser.run(last))


def test_paper_shows_the_table_without_controls(browser: Browser) -> None:
    browser.prefer("dark", "print")
    assert browser.run(
        "[...document.querySelectorAll('.controls')].every(each => getComputedStyle(each).display "
        "=== 'none')"
    )
    assert browser.run("getComputedStyle(document.querySelector('.frame')).maxHeight") == "none"
    assert luminance(color(browser, "ink")) < 0.1, "dark ink, whatever the screen had"
    browser.prefer("light")


def test_maps_show_what_is_reached(browser: Browser, cells: list[Cell]) -> None:
    browser.go("#/paper/push-left-right")
    drawn = {
        cell.label: maps.coverage(cell) for cell in cells if cell.config.group == "push-left-right"
    }
    for label, coverage in drawn.items():
        squares, caption = browser.run(
            f"""(svg => [
                [...svg.querySelectorAll('.square')].map(e => ['x', 'y', 'fill-opacity'].map(name => +e.getAttribute(name))),
                svg.closest('figure').querySelector('figcaption').textContent,
            ])([...document.querySelectorAll('svg')].find(e => e.querySelector('title')?.textContent === 'Coverage of {label}'))"""
        )
        for x, y, opacity in squares:
            assert opacity == pytest.approx(coverage.success[y, x], abs=0.006)
        assert len(squares) == 100
        assert (
            caption == f"{label}IID {100 * coverage.reached(True):.0f} %OOD "
            f"{100 * coverage.reached(False):.0f} %"
        )
    border = browser.run("document.querySelector('.border').getAttribute('d')")
    assert sorted(re.findall(r"M(\d+) (\d+)L(\d+) (\d+)", border)) == sorted(
        ("5", f"{r}", "5", f"{r + 1}") for r in range(10)
    )
    browser.go("#/paper/hand-near-far")
    assert "Coverage" not in browser.run("document.querySelector('main').textContent"), (
        "the hand has no plane"
    )


def test_curves_bars_and_settings_of_a_group(browser: Browser) -> None:
    browser.go("#/paper/push-left-right")
    titles = (
        "[...document.querySelectorAll('main svg[role=img] title:first-child')].map(e => "
        "e.textContent)"
    )
    assert {
        f"Success (%) on {task.name}, {task.split.upper()}"
        for task in tasks.get("push-left-right").tasks
    } <= set(browser.run(titles))
    assert {f"{label}: policy loss" for label in LABELS} <= set(browser.run(titles))
    browser.run(
        "(e => { e.value = 'value_loss'; e.dispatchEvent(new Event('change')) "
        "})(document.querySelector('main select'))"
    )
    assert "GOAT: value loss" in browser.run(titles)
    assert "BC: value loss" not in browser.run(titles), "imitation has no value"
    assert browser.run("document.querySelector('details').open") is False
    settings = browser.run(
        "[...document.querySelectorAll('details tr')].map(row => [...row.children].map(each => "
        "each.textContent))"
    )
    assert ["uncertainty.w", "2.5", "", ""] in settings
    assert ["jax", *["0.10.2"] * 3] in settings


def test_pictures_and_clips(browser: Browser) -> None:
    browser.go("#/paper/push-left-right")
    widths = (
        "Promise.all([...document.querySelectorAll('img')].map(image => "
        "image.decode().then(() => image.naturalWidth)))"
    )
    assert browser.run(widths) == [40, 60], "the dataset, and what the uncertainty weight prefers"
    clip = browser.run(
        """new Promise(done => {
            const clip = document.querySelector('video');
            const caption = clip.closest('figure').querySelector('figcaption').textContent;
            const tell = () => done([clip.controls, clip.muted, clip.autoplay, clip.paused, clip.duration, caption]);
            clip.readyState ? tell() : clip.addEventListener('loadedmetadata', tell);
        })"""
    )
    assert clip[:4] == [True, True, False, True]
    assert clip[4] == pytest.approx(0.4, abs=0.1)
    assert clip[5].startswith("GOAT on Right2Left OOD")


def test_paths_of_points(browser: Browser) -> None:
    browser.go(f"#/pointreach/{POINT}")
    shown = (
        "[...document.querySelectorAll('.reached')].map(path => "
        "path.getAttribute('d').split('M').length - 1)"
    )
    assert browser.run(shown) == [2 * 15, 2 * 4], "seeds × goals"
    goals = browser.run(
        "[...document.querySelector('.reached').closest('svg').querySelectorAll('.goal')].map(e "
        "=> e.getAttribute('fill-opacity'))"
    )
    assert (len(goals), set(goals)) == (18, {"0", "0.5", "1"}), (
        "two of the twenty goals stand on others"
    )
    assert "75 % reached" in browser.run("document.querySelector('main').textContent")
    assert "made without learning curves" in browser.run(
        "document.querySelector('main').textContent"
    )


def test_what_can_be_said_of_an_incomplete_suite(browser: Browser) -> None:
    text = browser.run("document.querySelector('main').innerText")
    assert "2 of 9" in text
    assert "331" not in text
    assert re.search(r"\d of 6 not checked", text)


def test_nothing_moves_for_those_who_do_not_want_it(browser: Browser) -> None:
    moving = (
        "[...document.querySelectorAll('*')].filter(e => "
        "parseFloat(getComputedStyle(e).transitionDuration) > 0).length"
    )
    assert browser.run(moving) > 0
    browser.prefer("light", motion="reduce")
    assert browser.run(moving) == 0


# Fine-tuning


def test_one_folder_of_curves_is_enough(folder: Path) -> None:
    described = stored_in(webpage.page(folder / "finetune"))["experiments"]
    assert [each["name"] for each in described] == ["finetune-ddpg", "finetune-own"]
    assert described == stored_in(webpage.page(folder))["experiments"][2:4], "after the others"
    assert described[0]["reproduction"]["command"] == (
        "goat bench finetune-ddpg --algorithms goat marwil+her random --seeds 5 --data "
        "push-left-right=FILE pick-left-right=FILE"
    )


def test_charts_show_means_intervals_and_where_random_ends(browser: Browser) -> None:
    browser.go("#/finetune-ddpg")
    titles = browser.run(
        "[...document.querySelectorAll('main svg.chart > title')].map(e => e.textContent)"
    )
    assert titles == [
        f"{name} Left-Right: success while agents go on online" for name in ("Push", "Pick")
    ]
    charts = "[...document.querySelectorAll('main svg.chart')]"
    lines = browser.run(
        f"{charts}.flatMap(e => [...e.querySelectorAll('.tuned')]).map(e => e.getAttribute('d'))"
    )
    heights = browser.run(
        f"[...{charts}[0].querySelectorAll('.rule')].map(e => +e.getAttribute('y1'))"
    )
    (bottom, top), found = (heights[0], heights[-1]), tuned_curves()
    for curve, line in zip(found[:6], lines, strict=True):
        drawn = np.array(
            [[float(n) for n in point.split()] for point in line.removeprefix("M").split("L")]
        )
        np.testing.assert_allclose(drawn[:, 1], bottom + (top - bottom) * curve.mean, atol=0.2)
        assert (np.diff(drawn[:, 0]) > 0).all()
    level = browser.run("+document.querySelector('main svg.chart .level').getAttribute('y1')")
    assert level == pytest.approx(bottom + (top - bottom) * curves.final(found[2].mean), abs=0.3)
    names = (
        "[...document.querySelector('main "
        "svg.chart').querySelectorAll('text:not(.quiet)')].map(e => e.textContent)"
    )
    assert browser.run(names) == list(TUNED), "named beside their ends"
    inside = """[...document.querySelectorAll('main svg.chart')].every(chart => [...chart.querySelectorAll('text')]
        .every(text => text.getBoundingClientRect().right <= chart.getBoundingClientRect().right))"""
    assert browser.run(inside), "and not cut off"


def test_a_evaluation_shows_its_values(browser: Browser) -> None:
    browser.go("#/finetune-ddpg")
    goat = tuned_curves()[0]
    low, high = curves.bounds(curves.resampled(goat))

    def tip() -> str | None:
        return browser.run(
            "document.getElementById('tip').hidden ? null : "
            "document.getElementById('tip').textContent"
        )

    def values(place: int) -> str:
        return f"GOAT{100 * goat.mean[place]:.1f} {100 * low[place]:.1f} to {100 * high[place]:.1f}"

    browser.run("document.querySelectorAll('main .stop')[3].id = 'third'")
    browser.point("#third rect")
    assert "29,400 environment steps of each seed, Push Left-Right" in tip()
    assert values(3) in tip()
    assert browser.run("getComputedStyle(document.querySelector('#third .cursor')).opacity") == "1"
    browser.press(Keys.ESCAPE)
    assert tip() is None
    # The same by keyboard: one stop for a chart, arrows inside.
    browser.run("document.querySelector('main .stop').focus()")
    assert values(0) in tip()
    browser.press(Keys.ARROW_LEFT)
    assert values(0) in tip(), "there is nothing before the start"
    browser.press(Keys.ARROW_RIGHT)
    browser.press(Keys.ARROW_RIGHT)
    assert values(2) in tip()
    spoken = browser.run("document.activeElement.getAttribute('aria-label')")
    assert spoken.startswith(
        f"19,600 environment steps: GOAT {100 * goat.mean[2]:.1f} %, MARWIL+HER"
    )
    browser.press(Keys.TAB)
    assert "0 environment steps of each seed, Pick Left-Right" in tip()


def test_steps_statements_and_settings_of_fine_tuning(browser: Browser) -> None:
    browser.go("#/finetune-ddpg")
    found = tuned_curves()
    standings = curves.summaries(found[:6], curves.references(found))
    rows = browser.run(
        "[...document.querySelectorAll('.reach tbody tr:not(.group)')].map(row => "
        "[...row.children].map(each => each.textContent))"
    )
    assert [row[0] for row in rows] == [*TUNED, *TUNED]
    for row, each in zip(rows, standings, strict=True):
        assert row[1:3] == [f"{100 * each.start.value:.1f}", f"{100 * each.final.value:.1f}"]
        assert row[4].removesuffix(" fewest") == curves.count(each.steps.value)
        assert row[5] == f"{curves.count(each.steps.low)} to {curves.count(each.steps.high)}"
        assert row[7].split(" · ") == [curves.count(steps) for steps in each.each]
    assert [row[0] for row in rows if "fewest" in row[4]] == ["GOAT", "GOAT"]
    suite = finetuning.SUITES["finetune-ddpg"]
    checked = [
        verdict
        for verdict in finetuning.check(suite, found)
        if verdict.outcome != Outcome.NOT_CHECKED
    ]
    assert len(checked) == len(suite.groups)
    for verdict in checked:
        assert f"✓ Held{verdict.claim}{verdict.evidence}" in browser.run(
            "document.querySelector('.verdicts').textContent"
        )
    cells = "row => [...row.children].map(each => each.textContent)"
    settings = browser.run(f"[...document.querySelectorAll('details tr')].map({cells})")
    assert ["from.updates", "40000", "40000", ""] in settings
    assert ["schedule.episodes", "8", "8", "8"] in settings
    browser.go("#/finetune-own")
    text = browser.run("document.querySelector('main').textContent")
    assert f"random ends at {100 * standings[0].level:.1f} %" in text, (
        "as the other suite has recorded it"
    )
    assert "5 of 6 not checked" in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_are_visible_by_day_and_by_night(browser: Browser, scheme: str) -> None:
    browser.prefer(scheme)
    ground = luminance(color(browser, "card"))
    for place in range(11):
        light, dark = sorted((luminance(color(browser, f"series-{place}")), ground), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3, f"series {place}"


def test_training_times_are_shown_from_the_shortest(browser: Browser) -> None:
    browser.go("#/training-time")
    rows = browser.run(
        "[...document.querySelectorAll('#main table.results tbody tr')].map((row) => "
        "row.innerText.split('\\t'))"
    )
    # made in this order
    assert [row[0] for row in rows] == [column.label for column in timing.COLUMNS]
    assert rows[0][1:3] == ["5.5", "5.0 to 10.0"]
    assert rows[1][1:3] == ["8.0", "7.5 to 12.5"]
    assert browser.run("document.querySelectorAll('#main svg .bar').length") == len(rows)
