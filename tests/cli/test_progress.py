"""How far a command is, in a terminal and in a log."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from goatrl.cli import console as shared
from goatrl.cli import progress
from goatrl.cli.progress import Pace, shown, training_bar
from goatrl.experiments import estimate


class Clock:
    """Time as the test says."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(progress, "time", found)
    monkeypatch.setattr(estimate, "compilation", lambda: 14.0)
    return found


class Flushed(io.StringIO):
    """A file of which only what was flushed can be read."""

    written = ""

    def flush(self) -> None:
        self.written = self.getvalue()


def log(monkeypatch: pytest.MonkeyPatch, terminal: bool = False) -> Flushed:
    file = Flushed()
    console = Console(file=file, width=60, force_terminal=terminal, color_system=None)
    for module in (progress, shared):
        monkeypatch.setattr(module, "console", console)
    return file


def test_a_log_has_a_line_per_report_at_once(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    file = log(monkeypatch)
    title = "goat, 5 seeds on a file with a long name, which does not wrap"
    with training_bar(title, 0, 2_000) as report:
        assert file.written == f"{title}: compiling, about 14 s\n"
        clock.now += 20
        report(40, {"policy_loss": 1.25, "value_loss": 0.5, "weight": 3.0})
        assert file.written.endswith(f"{title}: 40 of 2,000 updates (2 %), policy 1.2 value 0.5\n")
        clock.now += 60
        report(240, {"policy_loss": 1.0})
        # 200 updates took 60 s, 1,760 take 528
        assert file.written.endswith(
            f"{title}: 240 of 2,000 updates (12 %), policy 1, 9 min left\n"
        )
        clock.now += 528
        report(2_000, {})
    assert file.written.endswith(f"{title}: 2,000 of 2,000 updates (100 %)\n")
    assert file.written.count("\n") == 4


def test_a_resumed_run_is_timed_from_where_it_resumes(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = log(monkeypatch)
    with training_bar("bc", 1_000, 2_000) as report:
        report(1_100, {})
        clock.now += 10
        report(1_200, {})
    assert file.written.endswith("bc: 1,200 of 2,000 updates (60 %), 80 s left\n")


def test_what_has_no_unit_shows_its_share(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    file = log(monkeypatch)
    with shown("evaluating 2 seeds", total=8) as progress:
        progress.report(2, {})
    assert file.written == "evaluating 2 seeds: 25 %\n"


@pytest.mark.parametrize(
    ("seconds", "lines"),
    [
        (0.01, 2),  # the first and the last
        (1.0, 51),  # in 100 s every second report, which is 2 s and 2 %
        (10.0, 51),  # every second one still, which is 2 %
    ],
)
def test_lines_of_a_log_are_not_too_many(clock: Clock, seconds: float, lines: int) -> None:
    pace = Pace()
    due = 0
    for done in range(1, 101):
        clock.now += seconds
        due += pace.due(done, 100)
    assert due == lines


def test_a_long_training_shows_that_it_lives(clock: Clock) -> None:
    pace = Pace()
    assert pace.due(1, 100_000)
    for done in range(2, 40):
        clock.now += 10.0
        assert pace.due(done, 100_000) == (done % 3 == 1), "a line every 30 s"


def test_a_terminal_has_a_bar(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    file = log(monkeypatch, terminal=True)
    with training_bar("bc", 0, 200) as report:
        report(100, {"policy_loss": 2.0})
    assert "50%" in file.written
    assert "policy 2" in file.written
    assert "compiling" not in file.written.splitlines()[-1]


def test_what_is_done_at_once_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for terminal in (False, True):
        file = log(monkeypatch, terminal)
        with shown("evaluating", hidden=True):
            pass
        assert file.getvalue() == ""


def test_trackers_are_told_every_report(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    log(monkeypatch)
    told: list[tuple[int, dict[str, float]]] = []

    class Tracker:
        def report(self, step: int, metrics: dict[str, float]) -> None:
            told.append((step, metrics))

        def close(self) -> None:
            told.append((-1, {}))

    with training_bar("bc", 0, 100, [Tracker()]) as report:
        for step in (1, 2, 3):
            report(step, {"policy_loss": float(step)})
    assert told == [(step, {"policy_loss": float(step)}) for step in (1, 2, 3)]


def test_a_file_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    """A process that dies without ceremony leaves what it has reported."""
    code = (
        "import os\n"
        "from goatrl.cli.progress import training_bar\n"
        "with training_bar('bc', 0, 10) as report:\n"
        "    report(5, {'policy_loss': 1.0})\n"
        "    os._exit(0)\n"
    )
    with (tmp_path / "log").open("w") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert (tmp_path / "log").read_text().splitlines()[-1] == "bc: 5 of 10 updates (50 %), policy 1"
