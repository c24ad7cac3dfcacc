"""A robot of one's own is one file with one registration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import drifting
from goatrl import data, tasks
from goatrl.data import experts
from goatrl.evaluation.episodes import evaluate
from goatrl.types import GoatError, TrainState, pytree
from helpers import acting, goat


@pytest.fixture(autouse=True)
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    drifting.register()
    yield
    tasks.unregister_task_group(drifting.GROUP.name)


@pytree
class Swimmer:
    """Swims at the goal and knows nothing of the current."""

    gain: float

    def act(self, state: TrainState, observation: jax.Array, goal: jax.Array) -> jax.Array:
        return self.gain * state.params["sign"] * (goal - observation)


def test_it_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert goat("list") == 0
    assert "drifting-down-up" in capsys.readouterr().out
    assert tasks.families()["drifting"] is drifting.DRIFTING


def test_its_dataset_is_made(tmp_path: Path) -> None:
    assert goat("data", "make", "drifting-down-up", "--out", "mine.npz") == 0
    made = data.load(tmp_path / "mine.npz")
    assert made.count == 5
    assert made.checksum() == data.of_group(drifting.GROUP).checksum()


def test_agents_are_evaluated() -> None:
    members = [(Swimmer(2.0), seed) for seed in (0, 1)]
    table = evaluate(members, acting(sign=jnp.asarray([1.0, -1.0])), drifting.GROUP)
    rows = table.to_pylist()
    assert [row["success"] for row in rows] == [row["seed"] == 0 for row in rows]
    away = next(row for row in rows if row["seed"] == 1 and row["task"] == "Down")
    path = np.reshape(away["path"], (13, 2))
    # Half a step upstream, a quarter downstream.
    np.testing.assert_allclose(path[:3, 0], [0.0, -0.25, -0.5], atol=1e-6)
    ashore = next(row for row in rows if row["seed"] == 1 and row["task"] == "Up")
    assert np.abs(ashore["path"]).max() == 5.0, "its tasks have walls"


def test_a_run_is_trained_and_evaluated(capsys: pytest.CaptureFixture[str]) -> None:
    assert goat("train", "bc", "--group", "drifting-down-up", "--seeds", 1, "--out", "run") == 0
    assert goat("evaluate", "run") == 0
    assert "Up" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("view", "drifting-down-up", "--task", "up", "--out", "a.gif"), "has no robot to film"),
        (("figure", "regions", "--groups", "drifting-down-up", "--out", "a.png"), "has no regions"),
        (("expert", "train", "drifting", "--out", "e"), "unknown expert 'drifting'"),
    ],
)
def test_what_it_does_not_have_is_refused(
    command: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert goat(*command) == 2
    assert message in capsys.readouterr().err


def test_it_has_neither_expert_nor_simulator() -> None:
    with pytest.raises(GoatError, match="drifting has no expert"):
        experts.get(drifting.DRIFTING)
    with pytest.raises(GoatError, match="drifting has no simulator"):
        drifting.DRIFTING.simulator(1)
