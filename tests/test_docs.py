"""README and docs/ are executed: every command, every Python block, every file that they ask the
reader to write.
"""

from __future__ import annotations

import dataclasses
import gc
import pydoc
import re
import shlex
import shutil
from functools import cache, partial
from pathlib import Path

import pytest

import goatrl
from goatrl import algorithms, cli, learn, tasks, types
from goatrl.algorithms import registry
from goatrl.data import problems
from goatrl.experiments import curves, finetuning, planning, records, suites, timing
from goatrl.learn import (
    contrastive,
    expectiles,
    policies,
    quantile,
    quasimetric,
    samplers,
    values,
    weights,
)
from goatrl.learn.networks import Architecture
from goatrl.report import finetuning as tuning
from goatrl.report import tables
from goatrl.report import timing as times
from goatrl.tasks import registry as task_registry
from goatrl.training import symmetry_check
from helpers import keep_few_advantages

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of every fenced block. What is not to be executed has another language than
    bash or python.
    """
    return re.findall(r"```(\w+)\n(.*?)```", page.read_text(), flags=re.DOTALL)


def commands(block: str) -> list[str]:
    return [line for line in block.replace("\\\n", " ").splitlines() if line.startswith("goat ")]


def executed(page: Path) -> bool:
    own_test = page.name == "theory.md"  # tests/test_theory.py compares what it prints, too
    return not own_test and any(
        kind == "python" or (kind == "bash" and commands(text)) for kind, text in blocks(page)
    )


EXECUTED = [page for page in PAGES if executed(page)]


def test_both_make_commands_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in ("demo", "test"):
        assert f"make {target}" in README
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_the_pages_with_commands_are_known() -> None:
    names = {page.name for page in EXECUTED}
    assert names >= {
        "README.md",
        "command-line.md",
        "robots.md",
        "own-data.md",
        "own-environment.md",
        "own-algorithm.md",
        "benchmark.md",
    }
    for name in ("README.md", "own-data.md", "own-algorithm.md"):
        assert {
            kind for kind, _ in blocks(next(page for page in EXECUTED if page.name == name))
        } >= {"bash", "python"}


def quickened(text: str) -> str:
    """What a page runs, with few updates, seeds, episodes, repetitions and points of a picture."""
    text = re.sub(r"(--updates |\"updates\": )\d+", r"\g<1>40", text)
    text = re.sub(r"(--seeds |\"seeds\": )[3-9]", r"\g<1>2", text)
    text = re.sub(r"^(goat (?:evaluate|figure) .*--episodes) \d+", r"\1 4", text)
    text = re.sub(r"^goat view ", "goat view --episodes 1 --size 96 ", text)
    return re.sub(r"range\(\d{3}\)", "range(40)", text)


# Minari's collector leaves temporary folders to the garbage collector.
@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")
@pytest.mark.parametrize("page", EXECUTED, ids=lambda page: page.name)
def test_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, in one folder, as a reader would; every page on its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    monkeypatch.syspath_prepend(tmp_path)  # a reader's scripts find the files beside them
    # Little of everything: that a page runs is tested here, not what it finds.
    little = {"updates": 40, "batch_size": 32}
    quick = {
        name: dataclasses.replace(group, settings=dataclasses.replace(group.settings, **little))
        for name, group in tasks.groups().items()
    }
    monkeypatch.setattr(task_registry, "_GROUPS", quick)
    monkeypatch.setattr(problems, "Settings", partial(types.Settings, **little))
    sizes, *others = Architecture.__init__.__defaults__
    assert sizes == (256, 256, 256)
    monkeypatch.setattr(Architecture.__init__, "__defaults__", ((32, 32), *others))
    keep_few_advantages(monkeypatch)
    monkeypatch.setattr(symmetry_check, "UPDATES", 300)
    monkeypatch.setitem(goatrl.evaluate.__kwdefaults__, "count", 4)
    # what a page registers is forgotten after it
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    for language, block in blocks(page):
        if language == "python":
            name = re.match(r"# (\w+\.py)\n", block)
            if name:
                Path(name[1]).write_text(block)
            else:
                exec(compile(quickened(block), page.name, "exec"), {"__name__": "page"})
        if language == "bash":
            for line in commands(block):
                line = quickened(line)
                assert cli.main(shlex.split(line, comments=True)[1:]) == 0, line
    gc.collect()  # whatever a page leaves behind is told here, not in another test


def test_links_of_the_docs_lead_somewhere() -> None:
    for page in [
        *PAGES,
        ROOT / "CHANGELOG.md",
        ROOT / "results" / "README.md",
        ROOT / "results" / "NOTES.md",
        ROOT / "benchmarks" / "README.md",
    ]:
        for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text()):
            there = page if not target else page.parent / target
            assert "://" in target or there.exists(), f"{page.name} links to {target}"
            if anchor and there.suffix == ".md":
                assert anchor in anchors(there), f"{page.name} links to {target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub makes them: in lower case, spaces as dashes, without
    punctuation.
    """
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_messages_that_are_explained_exist() -> None:
    """The longest piece of each message in docs/troubleshooting.md, between the names that
    differ.
    """
    sources = [*(ROOT / "src").rglob("*.py"), ROOT / "Makefile"]
    # A message may be written as several literals, one below the other.
    written = re.sub(r'"\n\s*f?"', "", "\n".join(path.read_text() for path in sources))
    page = " ".join((ROOT / "docs" / "troubleshooting.md").read_text().split())
    messages = [*re.findall(r"\*\*`([^`]+)`", page), *re.findall(r"\| `([^`]+)` \|", page)]
    assert len(messages) >= 25
    for message in messages:
        if not message.startswith("RESOURCE_EXHAUSTED"):  # which is JAX's
            assert max(message.split("…"), key=len) in written, message


def test_every_algorithm_is_documented() -> None:
    page = (ROOT / "docs" / "algorithms.md").read_text()
    ours = [
        name
        for name, entry in algorithms.entries().items()
        if entry.build.__module__.startswith("goatrl.algorithms.")
    ]
    for name in ours:
        shown = name if not name.startswith("gofar_binary") else "gofar_binary"
        assert f"`{shown}`" in page, f"{name} is not in docs/algorithms.md"


def test_every_function_that_the_docs_name_exists() -> None:
    page = (ROOT / "docs" / "algorithms.md").read_text()
    rooms = {
        "types": types,
        "samplers": samplers,
        "values": values,
        "weights": weights,
        "quantile": quantile,
        "policies": policies,
        "expectiles": expectiles,
        "contrastive": contrastive,
        "quasimetric": quasimetric,
    }
    named = re.findall(rf"`({'|'.join(rooms)})\.(\w+)`", page)
    assert len(named) >= 15
    for room, function in named:
        assert hasattr(rooms[room], function), f"goatrl.learn.{room}.{function}"
    assert learn.__doc__


@cache
def cells_of(folder: Path) -> list[records.Cell]:
    """Most suites lie in the same folder of hundreds of records."""
    return records.read_all(folder)


@pytest.mark.parametrize(
    "written",
    sorted((ROOT / "results").glob("*/*/table.csv")),
    ids=lambda path: "/".join(path.parts[-3:-1]),
)
def test_published_tables_are_those_of_the_records(written: Path) -> None:
    suite, folder = suites.get(written.parent.name), written.parents[1]
    cells = planning.select_cells(suite, cells_of(folder), folder)
    by_metric = {metric: tables.entries(suite, cells, metric) for metric in ("success", "return")}
    assert written.read_text() == tables.to_csv(by_metric)
    for metric, table in by_metric.items():
        assert written.with_name(f"{metric}.md").read_text() == tables.markdown(table)


def test_tables_are_printed_again_without_datasets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    for record in (ROOT / "results" / "robots").glob("hand-near-far--gofar*.parquet"):
        shutil.copy(record, tmp_path)
    assert cli.main(["bench", "ablation-gofar", "--out", str(tmp_path)]) == 0
    published = ROOT / "results" / "robots" / "ablation-gofar"
    assert {path.name: path.read_text() for path in (tmp_path / "ablation-gofar").iterdir()} == {
        path.name: path.read_text() for path in published.iterdir()
    }


def test_curves_are_printed_again_without_datasets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    published = ROOT / "results" / "finetune"
    for record in published.glob("finetune-ddpg--push-left-right--*.parquet"):
        shutil.copy(record, tmp_path)
    command = [
        "bench",
        "finetune-ddpg",
        "--groups",
        "push-left-right",
        "--algorithms",
        "goat",
        "wgcsl",
        "random",
    ]
    assert cli.main([*command, "--out", str(tmp_path)]) == 2
    assert "add --episodes 2000" in " ".join(capsys.readouterr().err.split())
    assert cli.main([*command, "--episodes", "2000", "--out", str(tmp_path)]) == 0
    again = (tmp_path / "finetune-ddpg.csv").read_text()
    assert (published / "finetune-ddpg.csv").read_text().startswith(again), "Push comes first there"


def test_published_curves_are_those_of_the_records() -> None:
    recorded = curves.read_all(ROOT / "results" / "finetune")
    for suite in finetuning.SUITES.values():
        found, random = suite.order(recorded), curves.references(recorded)
        written = ROOT / "results" / "finetune" / f"{suite.name}.csv"
        assert written.exists() == bool(found)
        if found:
            standings = curves.summaries(found, random)
            assert written.read_text() == tuning.to_csv(found, standings)
            assert written.with_suffix(".md").read_text() == tuning.markdown(
                suite, standings, finetuning.check(suite, recorded)
            )


def test_published_times_are_those_of_the_records() -> None:
    folder = ROOT / "results" / "training-time"
    found = timing.read_all(folder)
    labels = [column.label for column in timing.COLUMNS]
    assert [each.label for each in found] == labels[: len(found)]
    assert len(found) >= len(timing.PAPER)
    assert (folder / "training-time.md").read_text() == times.markdown(found, timing.check(found))
    assert (folder / "training-time.csv").read_text() == times.to_csv(found)


def test_the_way_from_a_file_to_the_page_exists() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    hops = re.findall(r"^\| *\d+ \| .* \| `([\w.]+)` \|$", page, flags=re.MULTILINE)
    assert 5 <= len(hops) <= 10
    for hop in hops:
        assert callable(pydoc.locate(f"goatrl.{hop}")), hop
    for room in {path.name for path in (ROOT / "src" / "goatrl").iterdir() if path.is_dir()}:
        if room not in ("__pycache__", "experts", "paper"):  # which hold no code
            assert re.search(rf"^ {room} ", page, flags=re.MULTILINE), f"{room} is not drawn"
