"""A task group of one's own, for a robot that is there: fifteen lines, and no suite changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import gymnasium
import numpy as np
import pytest

from goatrl import algorithms, tasks
from goatrl.data import collect, make, minari
from goatrl.evaluation.episodes import evaluate
from goatrl.experiments import suites
from goatrl.report import data_figures
from goatrl.robots.reach import REACH
from goatrl.sim.registration import identifier, is_registered
from goatrl.tasks import Collection, Task, TaskGroup, register_task_group, unregister_task_group
from goatrl.tasks.panels import ArmPanel
from goatrl.tasks.regions import NOTHING, Box
from goatrl.training.offline import init
from goatrl.types import GoatError, Settings

LOW, HIGH = Box((1.2, 0.6, 0.4), (1.5, 0.9, 0.53)), Box((1.2, 0.6, 0.53), (1.5, 0.9, 0.68))
GROUP = TaskGroup(
    "reach-low-high",
    "Reach Low-High",
    REACH,
    Settings(updates=2_500),
    REACH.spec,
    tasks=(Task("Low", "iid", NOTHING, LOW, 3), Task("High", "ood", NOTHING, HIGH, 3)),
    iid=Box((-np.inf,) * 3, (np.inf, np.inf, 0.56)),
    collection=Collection(Task("Standard", "mixed", NOTHING, LOW), episodes=5),
    panel=ArmPanel,
)


@pytest.fixture
def registered() -> Iterator[TaskGroup]:
    yield register_task_group(GROUP)
    unregister_task_group(GROUP.name)


def test_an_untrained_agent_is_evaluated(registered: TaskGroup) -> None:
    group = tasks.get("reach-low-high")
    starts, goals = group.task("high").evaluation()
    assert (starts.shape, goals.shape) == ((3, 0), (3, 3))
    members = [(algorithms.get("goat").build(group.settings), seed) for seed in (0, 1)]
    table = evaluate(members, init(members, group.spec), group)
    assert table.num_rows == 2 * 2 * 3
    assert table["task"].to_pylist() == ["Low"] * 6 + ["High"] * 6
    np.testing.assert_allclose(table["goal"].to_pylist()[6:9], goals, rtol=1e-6)


def test_its_data_is_collected_and_drawn(
    registered: TaskGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "WAVE", 8)
    episodes = make(registered)
    assert episodes.count == 5
    assert registered.kept(np.asarray(episodes.achieved)).all()
    low, _ = data_figures.regions([registered], count=10).axes
    assert (low.get_xlabel(), low.get_ylabel()) == ("x (m)", "z (m)"), "the border is a height"


def test_it_has_no_gymnasium_ids(registered: TaskGroup) -> None:
    """Nor does a task whose id is that of another group's."""
    far = dataclasses.replace(GROUP.tasks[1], name="Far")
    assert identifier(GROUP, far) in gymnasium.registry
    for task in (GROUP.tasks[0], far):
        group = dataclasses.replace(GROUP, tasks=(task, *GROUP.tasks[1:]))
        assert not is_registered(group, task)
        assert task.name in minari.describe(group)["description"]
        assert identifier(group, task) not in minari.describe(group)["description"]
        assert minari._environments(group) == {}


def test_no_suite_changes(registered: TaskGroup) -> None:
    assert not any(registered.name in suite.groups for suite in suites.SUITES)
    assert suites.get("paper").groups == tuple(group.name for group in tasks.robots())
    assert registered.name not in suites.get("paper").groups


def test_names_are_given_once(registered: TaskGroup) -> None:
    with pytest.raises(GoatError, match="a task group named reach-low-high already exists"):
        register_task_group(GROUP)


def test_it_is_gone_afterwards() -> None:
    with pytest.raises(GoatError, match="unknown task group 'reach-low-high'"):
        tasks.get("reach-low-high")
