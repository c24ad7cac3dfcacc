"""The expert as an agent: it acts as it did when it collected the data, and learns nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl import algorithms, tasks
from goatrl.data import cache, experts
from goatrl.episodes import make_episodes
from goatrl.experiments import grid, planning, records, suites
from goatrl.learn import normalize
from goatrl.learn.parameters import override
from goatrl.types import GoatError
from helpers import goat

GROUPS = ["reach-left-right", "push-near-far", "hand-near-far"]


@pytest.mark.parametrize("name", GROUPS)
def test_it_acts_as_when_it_collected(name: str) -> None:
    group = tasks.get(name)
    built = algorithms.get("expert").build(group.settings)
    agent = override(built, {"robot": group.family.name})
    state, rng = agent.init(jax.random.key(0), group.spec), np.random.default_rng(0)
    expert = experts.get(group.family)
    seen, goals = (
        mean + std * rng.normal(size=(20, len(mean)))
        for mean, std in (expert.observation, expert.goal)
    )
    actions = normalize.act(agent, state, jnp.float32(seen), jnp.float32(goals))
    np.testing.assert_allclose(actions, expert.act(seen, goals), atol=1e-4)


def test_it_is_no_algorithm_to_train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "expert" not in algorithms.entries()
    assert (
        goat("train", "expert", "--group", "pointreach-expert-10", "--out", tmp_path / "run") == 2
    )
    assert "expert does not learn" in capsys.readouterr().err


def test_a_point_has_none() -> None:
    group = tasks.get("pointreach-expert-10")
    agent = algorithms.get("expert").build(group.settings)
    with pytest.raises(GoatError, match="acts on a task group of its robot"):
        agent.init(jax.random.key(0), group.spec)


def test_it_is_a_column_of_one_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = tasks.get("reach-left-right")
    rng = np.random.default_rng(0)
    episodes = make_episodes(
        rng.normal(size=(2, 50, 10)),
        rng.normal(size=(2, 50, 3)),
        rng.uniform(-1, 1, (2, 49, 4)),
        rng.normal(size=(2, 3)),
    )
    monkeypatch.setattr(cache, "of_group", lambda group: episodes)
    monkeypatch.setattr("goatrl.data.of_group", lambda group: episodes)
    suite = suites.get("paper")

    def plan() -> list[planning.PlannedCell]:
        return planning.plan(
            suite, tmp_path, seeds=3, groups=[group.name], algorithm_names=["expert"]
        )

    (cell,) = plan()
    assert (cell.missing, cell.config.updates) == ((0,), 0)
    few = [dataclasses.replace(task, episodes=4) for task in group.tasks]
    assert (
        grid.run([dataclasses.replace(cell, tasks=tuple(few))], tmp_path, lambda each: None) == []
    )
    (found,) = records.read_all(tmp_path)
    assert (found.label, found.seeds) == ("Expert", (0,))
    assert found.per_seed("success", "Right") == 1.0
    (again,) = plan()
    assert again.missing == ()
