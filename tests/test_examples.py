"""The example scripts run as they are, only shorter."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from goatrl import tasks
from helpers import ROOT, goat, own_algorithms


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_training_and_evaluation(capsys: pytest.CaptureFixture[str]) -> None:
    load("train_and_evaluate").main(updates=40)
    shown = capsys.readouterr().out
    assert "| R20 | ood | " in shown
    assert "first step towards (10, 0): [" in shown


def test_own_data_in_an_own_task_group(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        load("own_data").main(updates=40)
    finally:
        tasks.unregister_task_group("three-goals")
    assert capsys.readouterr().out.count("| Unseen | ood | ") == 2


def test_a_two_level_algorithm_trains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, run = ROOT / "examples" / "hiql.py", tmp_path / "run"
    assert len(file.read_text().splitlines()) <= 90
    quick = ("--seeds", 2, "--updates", 40, "--set", "architecture.hidden=64,64")
    with own_algorithms():
        assert goat("train", file, "--group", "pointreach-expert-10", *quick, "--out", run) == 0
        assert goat("evaluate", run, "--tasks", "R10", "--algorithm", file) == 0
    assert "HIQL on Expert 10" in capsys.readouterr().out
