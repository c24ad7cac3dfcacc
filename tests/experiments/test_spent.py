"""Where the time of a benchmark goes."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import pytest

from goatrl import tasks
from goatrl.experiments import spent
from goatrl.experiments.experiment import Job, Progress, reported_if_failed
from goatrl.experiments.planning import PlannedCell
from goatrl.experiments.spent import Breakdown, Spent
from goatrl.experiments.suites import get
from goatrl.training.offline import Diverged
from helpers import goat

JOBS = [Job("paper", "GOAT", (0, 1), {}), Job("paper", "BC", (0, 1, 2), {})]


def cell(label: str) -> PlannedCell:
    nothing: Any = None
    group = tasks.get("push-left-right")
    return PlannedCell(get("paper"), label, group, None, nothing, nothing, None, (0,), ())


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def listened(*reports: tuple[float, str, str, int], until: float) -> Spent:
    """Reports of (second, label, kind of work, share of four)."""
    clock = Clock()
    found = Spent(clock)
    for second, label, what, done in reports:
        clock.now = 100.0 + second
        found.show(Progress([cell(label)], what, done, 4))
    clock.now = 100.0 + until
    return found


OVERLAPPING = (
    (1.0, "BC", "compiling", 0),
    (3.0, "BC", "compiling", 4),
    (3.0, "BC", "training", 0),
    (10.0, "BC", "training", 4),
    (11.0, "BC", "evaluating", 0),
    (12.0, "GOAT", "training", 0),
    (13.0, "GCSL", "evaluating", 0),
    (14.0, "BC", "evaluating", 4),
    (20.0, "GOAT", "training", 4),
    (21.0, "GCSL", "evaluating", 4),
)


def test_work_that_overlaps_counts_once() -> None:
    found = listened(*OVERLAPPING, until=22.0)
    assert found.kinds == ["compiling", "training", "evaluating"]
    assert found.seconds(["compiling"]) == 2.0
    assert found.seconds(["training"]) == 7.0 + 8.0
    assert found.seconds(["evaluating"]) == 10.0
    assert found.seconds(found.kinds) == 9.0 + 10.0
    assert found.whole == 22.0


def test_what_is_told_and_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = Breakdown.of(listened(*OVERLAPPING, until=22.0))
    assert whole.lines() == [
        "took 22 s: compiling 2 s, training 15 s, evaluating 10 s (partly at the same time), "
        "other 3 s"
    ], "a processor counts no bytes, and is device and cores in one"
    about = whole.to_json(JOBS)
    assert about | {"started": "", "device": "", "cores": 0} == {
        "started": "",
        "device": "",
        "cores": 0,
        "suites": ["paper"],
        "cells": 2,
        "members": 5,
        "seconds": 22.0,
        "compiling": 2.0,
        "training": 15.0,
        "evaluating": 10.0,
        "other": 3.0,
        "device_idle": 5.0,
        "cores_idle": 12.0,
        "peak_bytes": None,
    }

    class Device:
        device_kind = "accelerator"

        def memory_stats(self) -> dict[str, int]:
            return {"peak_bytes_in_use": 5 * 2**29}

    monkeypatch.setattr(jax, "local_devices", lambda: [Device()])
    whole = Breakdown.of(listened(*OVERLAPPING, until=22.0))
    assert whole.lines()[1:] == [
        "the device was idle for 5 s and used at most 2.5 GiB of memory; the cores were idle for "
        "12 s"
    ]
    assert whole.to_json(JOBS)["peak_bytes"] == 5 * 2**29
    timing = Breakdown.of(listened((0, "BC", "measuring", 0), (4, "BC", "measuring", 4), until=5))
    assert timing.lines()[1:] == [
        "the device was idle for 1 s and used at most 2.5 GiB of memory"
    ], "without evaluations there is nothing to say about cores"


def test_one_thing_after_the_other_is_not_at_the_same_time() -> None:
    reports = (0, "BC", "training", 0), (60, "BC", "training", 4), (60, "BC", "evaluating", 0)
    found = Breakdown.of(listened(*reports, (100, "BC", "evaluating", 4), until=101))
    assert found.lines() == ["took 2 min: training 60 s, evaluating 40 s, other 1 s"]


def test_what_diverges_is_over() -> None:
    clock = Clock()
    found = Spent(clock)
    found.show(Progress([cell("BC")], "training", 0, 40))
    clock.now += 3.0
    with (
        pytest.raises(Diverged),
        reported_if_failed([cell("BC")], "training", 40, found.show),
    ):
        raise Diverged("training diverged")
    clock.now += 3.0
    assert found.seconds(["training"]) == 3.0


def test_threads_report_at_the_same_time() -> None:
    found = Spent()

    def work(labels: Sequence[str]) -> None:
        for label in labels:
            for done in range(5):
                found.show(Progress([cell(label)], "evaluating", done, 4))

    threads = [threading.Thread(target=work, args=([f"{n}-{m}" for m in range(50)],)) for n in "ab"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found._pieces) == 100
    assert not found._under_way


def test_a_benchmark_says_and_records_where_its_time_went(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    line = ["bench", "pointreach", "--groups", "pointreach-expert-10", "--updates", 8]
    line += ["--algorithms", "bc", "--out", out]
    assert goat(*line, "--seeds", 1) == 0
    shown = capsys.readouterr().out
    assert "took " in shown
    assert all(f"{what} " in shown for what in ("compiling", "training", "evaluating", "other"))
    assert goat(*line, "--seeds", 1) == 0
    assert "took " not in capsys.readouterr().out, "nothing ran"
    assert goat(*line, "--seeds", 3) == 0
    first, second = map(json.loads, (out / spent.FILE).read_text().splitlines())
    assert (first["suites"], first["cells"], first["members"]) == (["pointreach"], 1, 1)
    assert (second["suites"], second["cells"], second["members"]) == (["pointreach"], 1, 2)
    for each in (first, second):
        parts = each["compiling"] + each["training"] + each["evaluating"] + each["other"]
        assert parts >= each["seconds"] - 0.1
        assert 0 < each["compiling"] < each["seconds"]
    assert goat("report", out, "--out", tmp_path / "page.html") == 0
    assert goat("figure", "bars", out, "--out", tmp_path / "bars.svg") == 0
