"""The example scripts run as they are, only shorter."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import goatrl
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
    file, run = ROOT / "examples" / "relay.py", tmp_path / "run"
    assert len(file.read_text().splitlines()) <= 70
    quick = ("--seeds", 2, "--updates", 40, "--set", "architecture.hidden=64,64")
    with own_algorithms():
        assert goat("train", file, "--group", "pointreach-expert-10", *quick, "--out", run) == 0
        assert goat("evaluate", run, "--tasks", "R10", "--algorithm", file) == 0
    assert "Relay on Expert 10" in capsys.readouterr().out


def test_the_robot_needs_neither_jax_nor_goatrl(tmp_path: Path) -> None:
    run, goal = tmp_path / "run", np.array([6.0, 8.0])
    quick = ("--seeds", 1, "--updates", 200, "--set", "architecture.hidden=32,32")
    assert goat("train", "gcsl", "--group", "pointreach-expert-10", *quick, "--out", run) == 0
    example, ends = load("robot_side"), []
    code = (
        "import sys\n"
        "for name in ('jax', 'jaxlib', 'goatrl', 'onnx'):\n"
        "    sys.modules[name] = None\n"  # whoever imports it fails
        "sys.path.insert(0, sys.argv[1])\n"
        "import robot_side\n"
        "robot_side.main(sys.argv[2], period=0.0)\n"
    )
    for format, name in (("numpy", "policy.py"), ("onnx", "policy.onnx")):
        assert goat("export", run, "--format", format, "--out", tmp_path / name) == 0
        shown = subprocess.run(
            [sys.executable, "-c", code, str(ROOT / "examples"), str(tmp_path / name)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        found = re.fullmatch(r"(\d+\.\d\d) from the goal; the slowest action took .* ms\n", shown)
        assert found, shown
        robot = example.Point()
        example.control(example.load(tmp_path / name), robot, goal, 49, 0.0)
        ends.append(robot.position)
        distance = np.linalg.norm(robot.position - goal)
        assert float(found[1]) == pytest.approx(distance, abs=0.01)
        assert distance < 9.0, "it moves towards the goal"
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-3)


def test_a_maze_is_driven_as_it_is_evaluated(tmp_path: Path) -> None:
    """By a policy that learned to go straight to its goal."""
    rng = np.random.default_rng(0)
    seen, goals = rng.uniform(-1.2, 1.2, (200, 2, 4)), rng.uniform(-1.2, 1.2, (200, 2))
    actions = np.clip(goals[:, None] - seen[:, :1, :2], -1, 1)
    data = goatrl.make_dataset(seen, seen[..., :2], actions, goals, goal_threshold=0.45)
    quick = {"updates": 200, "set": {"architecture.hidden": (32,)}, "seeds": 1}
    agents = goatrl.train("bc", data, out=tmp_path / "run", **quick)
    maze, steps, episodes = "gymnasium_robotics:PointMaze_UMaze-v3", 60, 12
    ends = {"continuing_task": False}
    table = goatrl.evaluate(
        agents, environment=maze, environment_args=ends, horizon=steps, count=episodes
    )
    met = sum(table.column("success").to_pylist())
    assert 0 < met < episodes
    code = (
        "import sys\n"
        "for name in ('jax', 'jaxlib', 'goatrl', 'onnx'):\n"
        "    sys.modules[name] = None\n"  # whoever imports it fails
        "sys.path.insert(0, sys.argv[1])\n"
        "import drive\n"
        "drive.main(*sys.argv[2:])\n"
    )
    where = (maze, "--environment-args", json.dumps(ends), "--horizon", str(steps))
    counted = ("--episodes", str(episodes), "--goal-threshold", "0.45")
    for format, name in (("numpy", "policy.py"), ("onnx", "policy.onnx")):
        assert goat("export", tmp_path / "run", "--format", format, "--out", tmp_path / name) == 0
        shown = subprocess.run(
            [sys.executable, "-c", code, ROOT / "examples", tmp_path / name, *where, *counted],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert shown.startswith(f"{met} of {episodes} goals reached; an action took ")


def test_an_environment_of_any_kind_is_driven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a policy that ends 0.28 beyond the goal, which the world's own flag calls a success."""
    policy = tmp_path / "policy.py"
    policy.write_text(
        "def act(observation, goal):\n    return (goal - observation + 0.2).astype('f')\n"
    )
    quick = ("--horizon", "8", "--episodes", "5")
    monkeypatch.syspath_prepend(ROOT / "examples")  # as of a script
    example = load("drive")
    flag = ("--environment-args", '{"flag": "is_success"}')
    for options, reached in (
        (("--goal-threshold", "0.1"), 0),
        (("--goal-threshold", "0.3"), 5),
        (flag, 5),
    ):
        example.main(str(policy), "worlds:worlds/Point-v0", *options, *quick)
        assert capsys.readouterr().out.startswith(f"{reached} of 5 goals reached")


def test_the_robot_stops_if_the_policy_fails() -> None:
    example, stopped = load("robot_side"), []
    robot = example.Point()
    robot.stop = lambda: stopped.append(True)
    with pytest.raises(RuntimeError, match="is a sensor missing"):
        example.control(lambda s, g: np.full(2, np.nan), robot, np.zeros(2), 3, 0.0)
    assert stopped == [True]
    np.testing.assert_array_equal(robot.position, [0.0, 0.0])
