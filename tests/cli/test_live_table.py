"""What a benchmark shows while it runs."""

from __future__ import annotations

import dataclasses
import io
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from goatrl import tasks
from goatrl.cli import live_table as module
from goatrl.cli import progress
from goatrl.cli.live_table import LiveTable
from goatrl.experiments import suites
from goatrl.experiments.experiment import Progress
from goatrl.experiments.kinds.grid import Grid
from goatrl.experiments.planning import PlannedCell

SUITE = suites.get("paper")


def planned(group: str, label: str) -> PlannedCell:
    nothing: Any = None
    return PlannedCell(SUITE, label, tasks.get(group), None, nothing, nothing, None, (0,), ())


def screen(board: LiveTable) -> str:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(board)
    return console.export_text()


class Evaluated:
    """A record of which only the numbers matter."""

    config = dataclasses.make_dataclass("Config", ["group"])("push-left-right")

    def per_seed(self, metric: str, task: str) -> Any:
        return np.full(2, 0.96 if task == "Right2Right" else 0.5)


def test_the_whole_suite_fits_a_terminal() -> None:
    board = LiveTable(
        [planned(group, column.label) for group in SUITE.groups for column in SUITE.columns],
        brief=Grid(SUITE).brief,
    )
    lines = screen(board).splitlines()
    assert all(any(column.label in line for line in lines) for column in SUITE.columns)
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    assert sum(line.count("·") for line in lines) == 99


def test_a_label_is_no_markup() -> None:
    assert "BC [/v2]" in screen(
        LiveTable([planned("push-left-right", "BC [/v2]")], brief=Grid(SUITE).brief)
    )


def test_a_cell_that_compiles_is_not_yet_training() -> None:
    cell = planned("push-left-right", "GOAT")
    board = LiveTable([cell], brief=Grid(SUITE).brief)
    board.show(Progress([cell], "compiling", 0, 1))
    (line,) = (each for each in screen(board).splitlines() if "compiling" in each)
    assert "compiling GOAT on Push Left-Right" in line
    assert f"about {progress.usual()}" in line
    assert "%" not in screen(board)
    board.show(Progress([cell], "compiling", 1, 1))
    assert "compiling" not in screen(board)
    assert "%" not in screen(board)


def test_the_bar_of_what_diverged_goes_and_comes_again_for_another_try() -> None:
    cell = planned("push-left-right", "GOAT")
    board = LiveTable([cell], brief=Grid(SUITE).brief)
    board.show(Progress([cell], "training", 10, 40))
    board.show(Progress([cell], "training", 40, 40, diverged=True))
    assert "training GOAT" not in screen(board)
    assert "diverged" in screen(board)
    board.show(Progress([cell], "training", 10, 40))
    assert "training GOAT" in screen(board)
    assert "25 %" in screen(board)


def test_a_cell_is_trained_evaluated_and_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = planned("push-left-right", "GOAT")
    board = LiveTable([cell], brief=Grid(SUITE).brief)
    board.show(Progress([cell], "training", 0, 40))
    assert "0 %" in screen(board)
    board.show(Progress([cell], "training", 10, 40, {"policy_loss": 0.5}))
    assert "25 %" in screen(board)
    assert "training GOAT on Push Left-Right" in screen(board)
    board.show(Progress([cell], "training", 40, 40))
    assert "training GOAT" not in screen(board)
    board.show(Progress([cell], "evaluating", 1, 4))
    assert "25 %" in screen(board)
    shown: list[str] = []
    monkeypatch.setattr(module.console, "print", lambda text, **_: shown.append(text))
    board.show(Progress([cell], "evaluating", 1, 1, recorded=Evaluated()))  # type: ignore[arg-type]
    assert "96 50" in screen(board)
    assert shown[0].endswith("push-left-right, GOAT: 96 50"), "a log has a line for it"


def test_a_log_shows_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(module, "console", Console(file=file, width=60))
    now = [0.0]
    clock = dataclasses.make_dataclass("Clock", ["monotonic"])(lambda: now[0])
    for each in (module, progress):
        monkeypatch.setattr(each, "time", clock)
    cell = planned("push-left-right", "GOAT")
    board = LiveTable([cell], brief=Grid(SUITE).brief)
    for done in range(0, 101, 10):
        board.show(Progress([cell], "training", done, 100, losses={"policy_loss": 0.5}))
        now[0] += 12.0
    told = "training GOAT on Push Left-Right"
    assert file.getvalue().splitlines() == [
        f"   {minutes} min  {told}, {share} %, policy 0.5"
        for minutes, share in (("0.6", 30), ("1.2", 60), ("1.8", 90))
    ], "a line every 30 s at most"
