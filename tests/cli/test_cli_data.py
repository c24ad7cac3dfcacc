"""Datasets of robots from the command line: made once, found again, verified, offered where they
are missing.
"""

from __future__ import annotations

import dataclasses
import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from safetensors import numpy as safetensors

import goatrl
from goatrl import cli, tasks
from goatrl.cli import datasets as making_commands
from goatrl.cli.console import console
from goatrl.data import cache, collect, load
from goatrl.disk import files
from goatrl.experiments import suites
from goatrl.report import data_figures, figures
from goatrl.tasks import registry
from helpers import goat

NAME = "hand-near-far"


@pytest.fixture(autouse=True)
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six episodes instead of ten thousand, in a cache of its own."""
    group = tasks.get(NAME)
    collection = dataclasses.replace(group.collection, episodes=6)
    monkeypatch.setitem(registry._GROUPS, NAME, dataclasses.replace(group, collection=collection))
    monkeypatch.setattr(collect, "WAVE", 8)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_all_means_the_groups_of_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither PointReach's, which are made whenever they are needed, nor variants."""
    made: list[str] = []
    drawn: list[str] = []
    monkeypatch.setattr(
        cli.data, "make_with_progress", lambda group, threads: made.append(group.name)
    )
    monkeypatch.setattr(
        data_figures, "regions", lambda groups: drawn.extend(group.name for group in groups)
    )
    monkeypatch.setattr(figures, "save", lambda figure, path: None)
    assert goat("data", "make", "--all") == 0
    assert goat("figure", "regions", "--out", "regions.png") == 0
    assert made == drawn == list(suites.get("paper").groups)


def test_a_dataset_is_made_once_and_found_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert goat("data", "make", NAME) == 0
    assert "6 of 6 episodes (100 %), 75 % of those simulated kept" in capsys.readouterr().out
    assert goat("data", "make", NAME) == 0
    assert "already made" in capsys.readouterr().out
    assert goat("data", "info", NAME, "--figure", "hand.png") == 0
    shown = capsys.readouterr().out
    for fact in ("63 / 15 / 20", "desired goal reached", "goals of Far ever achieved"):
        assert fact in shown
    assert Path("hand.png").stat().st_size > 5_000


def test_another_seed_needs_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert goat("data", "make", NAME, "--seed", 3) == 2
    assert "add --out FILE to use --seed or --expert" in capsys.readouterr().err
    assert goat("data", "make", NAME, "--seed", 3, "--out", "three.npz") == 0
    assert goat("data", "info", "three.npz", "--group", NAME) == 0


def test_an_expert_of_ones_own_collects_into_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = Path(goatrl.__file__).parent / "experts"
    for suffix in (".json", ".safetensors"):
        shutil.copy(shipped / f"hand{suffix}", tmp_path)
    for out, more in (("shipped.npz", []), ("same.npz", ["--expert", tmp_path])):
        assert goat("data", "make", NAME, "--out", out, *more) == 0
    assert "6 of 6 episodes (100 %), 75 % of those simulated kept" in capsys.readouterr().out
    assert (
        load("same.npz").checksum()
        == load("shipped.npz").checksum()
        == cache.make(tasks.get(NAME)).checksum()
    )
    arrays = safetensors.load((tmp_path / "hand.safetensors").read_bytes())
    (tmp_path / "hand.safetensors").write_bytes(
        safetensors.save({name: 0.5 * array for name, array in arrays.items()})
    )
    assert goat("data", "make", NAME, "--expert", tmp_path, "--out", "other.npz") == 0
    assert load("other.npz").checksum() != load("same.npz").checksum()
    assert sorted(path.name for path in Path().glob("*.npz")) == [
        "other.npz",
        "same.npz",
        "shipped.npz",
    ], "no beginnings are left"


def test_a_file_that_was_interrupted_is_taken_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    group = tasks.get(NAME)
    more = dataclasses.replace(group, collection=dataclasses.replace(group.collection, episodes=20))
    monkeypatch.setitem(registry._GROUPS, NAME, more)
    monkeypatch.setattr(
        cache.make, "__kwdefaults__", {**cache.make.__kwdefaults__, "save_seconds": 0.0}
    )
    waves, begun = collect.waves, []

    def interrupted(
        *arguments: object, first: int = 0, **options: object
    ) -> Iterator[collect.Wave]:
        begun.append(first)
        for wave in waves(*arguments, first=first, **options):  # type: ignore[arg-type]
            yield wave
            if len(begun) == 1:
                raise KeyboardInterrupt

    monkeypatch.setattr(collect, "waves", interrupted)
    assert goat("data", "make", NAME, "--out", "x.npz") == 130
    assert "rerun the command to resume" in capsys.readouterr().err
    assert goat("data", "make", NAME, "--out", "x.npz") == 0
    assert begun == [0, 1]
    assert load("x.npz").checksum() == cache.make(more).checksum()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["make", NAME, "--expert", "."], "add --out FILE to use --seed or --expert"),
        (
            ["make", NAME, "--expert", ".", "--out", "x.npz"],
            "`goat expert train hand` writes both when it finishes",
        ),
        (["make", NAME, "--out", "x.txt"], "cannot write x.txt: name a file that ends in .npz"),
        (
            ["make", "pointreach-expert-10", "--expert", ".", "--out", "x.npz"],
            "not collected by an expert",
        ),
        (["make"], "specify task groups (see `goat list`) or --all"),
        (["make", NAME, "push-left-right", "--out", "x.npz"], "--out takes only one dataset"),
        (["make", "pointreach-expert-10"], "generated when needed, not cached"),
        (["make", "push-left"], "did you mean push-left-right"),
        (["info", NAME], f"run `goat data make {NAME}`, or add --yes"),
        (["verify", NAME], "has not been made yet"),
    ],
)
def test_errors_are_one_helpful_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert goat("data", *arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_which_datasets_are_missing_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert goat("bench", "paper", "--groups", NAME, "push-left-right", "slide-near-far") == 2
    line = (
        f"3 datasets have not been made yet: run `goat data make {NAME} push-left-right "
        "slide-near-far`, or add --yes"
    )
    assert line in capsys.readouterr().err


def answered(monkeypatch: pytest.MonkeyPatch, answer: str | None) -> list[str]:
    """The questions that a user at a terminal is asked, each answered with this, or with Ctrl-D."""
    asked: list[str] = []

    def reply(question: str) -> str:
        asked.append(question)
        if answer is None:
            raise EOFError
        return answer

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr(console, "input", reply)
    return asked


@pytest.mark.parametrize("answer", ["n", "no", "what?", None])
def test_nothing_is_made_unless_wanted(
    answer: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answered(monkeypatch, answer)
    assert goat("bench", "paper", "--groups", NAME, "push-left-right", "slide-near-far") == 2
    (question,) = asked
    assert f"{NAME}, push-left-right, slide-near-far. Make them now" in question
    assert "3 datasets have not been made yet" in capsys.readouterr().err
    assert not cache.cached(tasks.get(NAME)).exists()


@pytest.mark.parametrize("answer", ["", "y", "Yes "])
def test_what_is_missing_is_made_if_wanted(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answered(monkeypatch, answer)
    assert goat("data", "info", NAME) == 0
    assert cache.cached(tasks.get(NAME)).exists()
    assert goat("data", "info", NAME) == 0
    assert len(asked) == 1


def test_verifying(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert goat("data", "make", NAME) == 0
    checksum = cache.of_group(tasks.get(NAME)).checksum()
    monkeypatch.setattr(cache, "checksums", lambda: {NAME: checksum})
    assert goat("data", "verify", NAME) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"same {NAME} {checksum}", (
        "on one line, wherever it is read"
    )
    monkeypatch.setattr(cache, "checksums", lambda: {NAME: "0" * 64})
    assert goat("data", "verify", NAME) == 1
    assert f"checksum differs from ours: {NAME}" in capsys.readouterr().err


def test_what_is_missing_is_made_under_yes(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "train",
        "bc",
        "--group",
        NAME,
        "--seeds",
        1,
        "--updates",
        20,
        "--batch-size",
        8,
        "--out",
        "run",
    ]
    assert goat(*arguments) == 2
    assert "has not been made yet" in capsys.readouterr().err
    assert goat(*arguments, "--yes") == 0
    assert "6 of 6 episodes (100 %), 75 % of those simulated kept" in capsys.readouterr().out


@pytest.mark.parametrize(("answer", "code"), [("", 0), ("y", 0), ("n", 2)])
def test_what_is_missing_is_offered(
    answer: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        making_commands.sys, "stdin", type("Terminal", (), {"isatty": staticmethod(lambda: True)})
    )
    asked = []
    monkeypatch.setattr(
        making_commands.console, "input", lambda question: asked.append(question) or answer
    )
    assert goat("data", "info", NAME) == code
    assert len(asked) == 1
    assert NAME in asked[0]


def test_a_full_disk_leaves_nothing_half_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", refuse)
    assert goat("data", "make", NAME) == 1
    assert "no space left on the disk" in capsys.readouterr().err
    assert not list(Path("cache").rglob("*.npz"))


def test_names_that_look_like_markup_are_printed_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "[red]a[v2][bold].npz"
    assert cli.main(["data", "make", "pointreach-expert-10", "--out", name]) == 0
    assert name in capsys.readouterr().out
    for command in ("info", "check"):
        assert cli.main(["data", command, name]) == 0
        assert name in capsys.readouterr().out
