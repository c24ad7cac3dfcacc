"""A sample of `make test-faults`: steps at which a process ends or a disk fails, and two commands
at once.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from crashes import together
from crashes.commands import COMMANDS, TRAIN, goat, small
from crashes.layer import ERRORS
from crashes.walk import Found, Walk
from goatrl.disk import files
from goatrl.disk.claims import claimed

SAMPLE = 12  # points of each command
# Others take seconds a point.
QUICK = ["train", "evaluate", "bench", "data make", "data make --out", "sweep", "compare", "export"]


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with small():
        yield


@pytest.mark.parametrize("command", QUICK)
def test_nothing_is_lost_and_the_next_start_ends_in_the_same_bytes(
    tmp_path: Path, command: str
) -> None:
    walk, found = Walk(command, tmp_path), Found()
    points = list(walk.points())
    assert {point.fault for point in points} > {*ERRORS}
    for point in random.Random(command).sample(points, SAMPLE):
        walk.visit(point, found)
    assert found.visited == SAMPLE
    assert not found.problems


def test_the_walk_finds_what_it_looks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is written in place is unreadable after some faults."""

    def in_place(path: Path, write) -> None:
        with files._file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
            write(file)

    monkeypatch.setattr("goatrl.data.storage.write_atomically", in_place)
    walk, found = Walk("data make --out", tmp_path), Found()
    for point in walk.points():
        walk.visit(point, found)
    assert found.corrupt


@pytest.mark.parametrize("command", together.COMMANDS_AT_ONCE)
def test_two_at_once_lose_and_double_nothing(tmp_path: Path, command: str) -> None:
    found = together.pairs(command, tmp_path, range(2))
    assert found.orders == 2
    assert not found.problems


def test_suites_of_different_seeds_are_merged(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert not together.merged(tmp_path / "empty", range(2))


@pytest.mark.parametrize(
    ("command", "claim"),
    [
        ("train", "run/.in-use"),
        ("finetune", "online/.in-use"),
        ("sweep", "sweep/.in-use"),
        ("sweep", "sweep/learning_rate=0.1/.in-use"),
        ("ablate", "ablation/.in-use"),
        ("data make", "cache/goatrl/datasets/.reach-left-right.npz.in-use"),
        ("data convert", "minari/.goatrl-crash--point-v0/.in-use"),
    ],
)
def test_what_is_in_use_is_refused_by_name(tmp_path: Path, command: str, claim: str) -> None:
    with claimed(tmp_path, tmp_path / claim):
        code, said = goat(COMMANDS[command][0], tmp_path)
    assert code == 1
    assert "is in use by process" in said.splitlines()[-1]
    assert said.splitlines()[-1].startswith("goat: ")


def test_another_configuration_is_never_written_over_one_that_trains(tmp_path: Path) -> None:
    assert goat(TRAIN, tmp_path)[0] == 0
    config = tmp_path / "run" / "config.json"
    before = config.read_bytes()
    for path in (tmp_path / "run").iterdir():
        if path != config:
            path.unlink()  # as after the first moments of a run
    other = [*TRAIN, "--set", "learning_rate=0.5"]
    with claimed(tmp_path / "run"):
        assert goat(other, tmp_path)[0] == 1
    assert config.read_bytes() == before
    assert goat(other, tmp_path)[0] == 0, "but it may be when that one has ended"
    assert config.read_bytes() != before
