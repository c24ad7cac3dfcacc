"""Reports to TensorBoard, MLflow and Weights & Biases: what their clients are told."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from goatrl import data as datasets
from goatrl.episodes import make_episodes
from goatrl.runs import trackers
from goatrl.types import GoatError
from helpers import error_line, goat

Calls = list[tuple[Any, ...]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Clients that note what they are told."""
    found: Calls = []

    def noting(name: str) -> Any:
        return lambda *args, **options: found.append((name, *args, *options.items()))

    def module(name: str, **functions: Any) -> None:
        made = ModuleType(name)
        vars(made).update(functions)
        monkeypatch.setitem(sys.modules, name, made)

    def writer(folder: str) -> Any:
        found.append(("writer", folder))
        names = ("add_scalar", "flush", "close")
        return SimpleNamespace(**{name: noting(name) for name in names})

    def init(**options: Any) -> Any:
        found.append(("init", options))
        return SimpleNamespace(log=noting("log"), finish=noting("finish"))

    module("tensorboard")
    module("tensorboard.summary", Writer=writer)
    fluent = ("start_run", "log_params", "log_metrics", "end_run")
    module("mlflow", **{name: noting(name) for name in fluent})
    module("wandb", init=init)
    return found


ABOUT = {"algorithm": "bc", "learning_rate": 0.5}


def tell(kind: trackers.Kind) -> None:
    with trackers.opened([kind], Path("runs/mine"), ABOUT) as (tracker,):
        tracker.report(20, {"policy_loss": 0.25, "value_loss": 2.0})


def test_tensorboard(calls: Calls) -> None:
    tell("tensorboard")
    assert calls == [
        ("writer", "runs/mine/tensorboard"),
        ("add_scalar", "policy_loss", 0.25, 20),
        ("add_scalar", "value_loss", 2.0, 20),
        ("flush",),
        ("close",),
    ]


def test_mlflow(calls: Calls) -> None:
    tell("mlflow")
    assert calls == [
        ("start_run", ("run_name", "runs/mine")),
        ("log_params", ABOUT),
        ("log_metrics", {"policy_loss": 0.25, "value_loss": 2.0}, ("step", 20)),
        ("end_run",),
    ]


def test_wandb(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    tell("wandb")
    assert calls == [
        ("init", {"project": "goatrl", "name": "runs/mine", "config": ABOUT}),
        ("log", {"policy_loss": 0.25, "value_loss": 2.0}, ("step", 20)),
        ("finish",),
    ]
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    tell("wandb")
    assert calls[3][1]["project"] == "mine"


def test_all_are_closed_if_one_fails(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("no\nconnection")

    monkeypatch.setattr(sys.modules["mlflow"], "log_metrics", refuse)
    with (
        pytest.raises(GoatError, match=r"mlflow failed \(RuntimeError: no connection\); rerun the"),
        trackers.opened(["tensorboard", "mlflow"], Path("run"), ABOUT) as both,
    ):
        both[1].report(1, {})
    assert ("close",) in calls
    assert ("end_run",) in calls


def test_events_can_be_read(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with trackers.opened(["tensorboard"], tmp_path, ABOUT) as (tracker,):
        for step in (20, 40):
            tracker.report(step, {"policy_loss": step / 80})
        found = EventAccumulator(str(tmp_path / "tensorboard"))
        found.Reload()  # while it is being written
        read = found.Tensors("policy_loss")
        assert [(e.step, float(e.tensor_proto.float_val[0])) for e in read] == [
            (20, 0.25),
            (40, 0.5),
        ]


def test_goat_train_and_finetune(
    calls: Calls,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (5, 8, 2))
    achieved = np.concatenate([np.zeros((5, 1, 2)), actions.cumsum(axis=1)], axis=1)
    datasets.save(make_episodes(achieved, achieved, actions, achieved[:, -1]), "mine.npz")
    options = ["--goal-threshold", 0.5, "--seeds", 1, "--updates", 40, "--batch-size", 8]
    options += ["--set", "architecture.hidden=[8]", "--data", "mine.npz"]
    assert goat("train", "gcsl", *options, "--out", "run", "--log", "tensorboard", "wandb") == 0
    scalars = [call for call in calls if call[0] == "add_scalar"]
    rows = Path("run/metrics.csv").read_text().splitlines()[1:]
    assert sorted({step for *_, step in scalars}) == [int(row.split(",")[0]) for row in rows]
    assert {name for _, name, *_ in scalars} == {"policy_loss"}
    assert [call for call in calls if call[0] == "log"][-1][-1] == ("step", 40)
    (init,) = (call[1] for call in calls if call[0] == "init")
    assert init["config"]["algorithm"] == "gcsl"
    assert init["config"]["architecture.hidden"] == [8]

    calls.clear()
    words = ("--environment", "worlds:worlds/Point-v0", "--episodes", 8, "--out", "online")
    assert goat("finetune", "run", *words, "--log", "mlflow") == 0
    first, last = (call for call in calls if call[0] == "log_metrics")
    assert first[1:] == ({"success": pytest.approx(first[1]["success"])}, ("step", 0))
    assert {"success", "explored", "policy_loss"} <= set(last[1])

    monkeypatch.setitem(sys.modules, "wandb", None)
    capsys.readouterr()
    assert goat("train", "gcsl", *options, "--out", "other", "--log", "wandb") == 2
    assert "--log wandb needs a package that is missing" in (line := error_line(capsys))
    assert line.endswith("run `pip install wandb`")
    assert not Path("other").exists(), "refused before anything is done"
