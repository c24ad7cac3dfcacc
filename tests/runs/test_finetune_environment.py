"""Fine-tuning in an environment of the user's own: its episodes, exactly resumed, and one line for
what does not work.
"""

from __future__ import annotations

import dataclasses
import sys
from contextlib import nullcontext
from pathlib import Path

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

from goatrl.data.problems import Problem
from goatrl.episodes import make_episodes
from goatrl.evaluation import environment_group, environments
from goatrl.evaluation.environment_group import group_of
from goatrl.evaluation.worlds import Environment
from goatrl.experiments import export as cards
from goatrl.experiments.loading import of_run
from goatrl.learn.parameters import stack
from goatrl.robots import Finetuning
from goatrl.runs import export, finetune
from goatrl.runs.folder import Interrupted
from goatrl.runs.offline import Run, configure
from goatrl.runs.online import OnlineRun
from goatrl.tasks import draw_mix
from goatrl.training.offline import act
from goatrl.types import ActionBounds, GoatError, Settings, Spec
from helpers import error_line, goat
from worlds import HORIZON, THRESHOLD

pytestmark = pytest.mark.usefixtures("few_percentiles")

SPEC = Spec(observation_dim=2, goal_dim=2, action_dim=2, horizon=HORIZON, goal_threshold=THRESHOLD)
POINT = Environment("worlds:worlds/Point-v0")
EPISODES = 12
MADE = export.Exported(b"", {"goatrl": "0"}, 0.0, "NumPy")


@pytest.fixture(autouse=True)
def small_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Finetuning(5, batch_size=8, round=4, evaluate_every=2, evaluated_episodes=6)
    monkeypatch.setattr(environment_group, "Finetuning", lambda batches: recipe)


def trained(folder: Path) -> Run:
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (5, HORIZON, 2))
    achieved = np.concatenate([np.zeros((5, 1, 2)), actions.cumsum(axis=1)], axis=1)
    episodes = make_episodes(achieved, achieved, actions, achieved[:, -1])
    problem = Problem(episodes, SPEC, Settings(), None)
    run = Run(folder)
    config = configure(
        "wgcsl",
        problem,
        seeds=(0, 3),
        updates=20,
        batch_size=8,
        overrides={"architecture.hidden": (8,)},
    )
    run.train(config, problem)
    return run


def test_fine_tuned_agents_act_in_the_units_of_their_data(tmp_path: Path) -> None:
    run = trained(tmp_path / "run")
    config = run.config()
    wide = dataclasses.replace(config, action_bounds=ActionBounds((0.0, -2.0), (4.0, 2.0)))
    run.write_config(wide)
    where = Environment("worlds:worlds/Wide-v0")
    list(OnlineRun(tmp_path / "online").train(finetune.plan(run, "own", where, EPISODES)))
    found = of_run(tmp_path / "online")
    assert found.action_bounds == wide.action_bounds
    observation, goal = np.zeros((2, 2))
    assert 0.0 <= found.policy(0)(observation, goal)[0] <= 4.0
    assert "in `worlds:worlds/Wide-v0`" in "\n".join(cards._card(found, 0, MADE, "policy.py"))


def test_a_start_is_a_seed_and_decides_the_goal() -> None:
    group = group_of(POINT, SPEC)
    (task,) = group.tasks
    starts, goals = draw_mix(group.tasks, [0, 5], 6)
    assert len(np.unique(starts)) == 6
    again = task.draw([0, 5], 6)
    np.testing.assert_array_equal(again[0], starts)
    np.testing.assert_array_equal(again[1], goals)
    assert not np.isin(task.draw([0, 6], 6)[0], starts).any()
    with environments.opened(POINT, SPEC, 6) as worlds:
        seen = environments.first_observations(worlds, [int(s) for s in starts[:, 0]], POINT)
    np.testing.assert_array_equal(seen["desired_goal"], goals)
    np.testing.assert_array_equal(group.family.initial(starts), seen["achieved_goal"])
    with group.family.simulator(6) as simulator:
        taken = simulator.rollout(starts, lambda seen: np.full((6, 2), 0.25), HORIZON)
    np.testing.assert_array_equal(taken.achieved[:, 0], seen["achieved_goal"])
    np.testing.assert_allclose(np.diff(taken.achieved, axis=1), 0.25, atol=1e-6)
    np.testing.assert_array_equal(taken.actions, 0.25)


def test_the_time_limit_makes_episodes_shorter() -> None:
    assert group_of(Environment("worlds:worlds/Short-v0"), SPEC).spec.horizon == 3
    assert group_of(Environment("worlds:worlds/Short-v0", horizon=2), SPEC).spec.horizon == 2
    longer = {"max_episode_steps": 5}
    assert group_of(Environment("worlds:worlds/Short-v0", longer), SPEC).spec.horizon == 5
    assert group_of(POINT, SPEC).spec.horizon == HORIZON


def test_agents_are_fine_tuned_and_loaded_without_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, run = trained(tmp_path / "run"), OnlineRun(tmp_path / "online")
    plan = finetune.plan(source, where=POINT, episodes=EPISODES)
    reports = list(run.train(plan))
    assert [report.round for report in reports] == [0, 1, 2, 3]
    arrays = load_file(run.checkpoint_path)
    achieved, actions = arrays["buffer/achieved"], arrays["buffer/actions"]
    assert achieved.shape == (2, EPISODES, HORIZON + 1, 2)
    np.testing.assert_allclose(np.diff(achieved, axis=2), actions, atol=1e-5)
    drawn = [draw_mix(plan.tasks, [3, number], 4)[1] for number in range(3)]
    np.testing.assert_allclose(arrays["buffer/goals"][1], np.concatenate(drawn), atol=1e-6)
    curves = run.curves()
    assert [steps for steps, _ in curves[3]] == [0, 2 * 4 * HORIZON, 3 * 4 * HORIZON]

    members, state = plan.members, source.restore()[1]
    (task,) = plan.tasks
    seeds = [int(seed) for seed in task.draw([1, 1, 0], 6)[0][:, 0]]
    agents = stack([algorithm for algorithm, _ in members]), plan.trained
    _, taken = environments.side_by_side(act, agents, 2, seeds, SPEC, POINT)
    rates = [mine.met[:, -1].mean() for mine in taken]
    assert [curves[seed][0][1] for seed in (0, 3)] == pytest.approx(rates, abs=1e-4)
    jax.tree.map(
        np.testing.assert_array_equal, plan.trained.params["policy"], state.params["policy"]
    )

    monkeypatch.delitem(sys.modules, "worlds")
    monkeypatch.setattr("goatrl.evaluation.worlds._make", None)  # nothing is opened
    loaded = of_run(run.folder)
    assert (loaded.spec, loaded.group) == (SPEC, None)
    assert loaded.label == "WGCSL fine-tuned by DDPG+HER"


def test_it_resumes_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = trained(tmp_path / "run")
    whole, cut = OnlineRun(tmp_path / "whole"), OnlineRun(tmp_path / "cut")

    def plan() -> finetune.OnlinePlan:
        return finetune.plan(source, by="own", where=POINT, episodes=EPISODES)

    list(whole.train(plan()))
    with monkeypatch.context() as stopping:
        stopping.setattr("goatrl.runs.online.stop_request", lambda: nullcontext(lambda: True))
        with pytest.raises(Interrupted, match="stopped after round 1 of 3"):
            list(cut.train(plan()))
    list(cut.train(plan()))
    states = load_file(whole.checkpoint_path), load_file(cut.checkpoint_path)
    assert states[0].keys() == states[1].keys()
    for name, array in states[0].items():
        np.testing.assert_array_equal(states[1][name], array)
    assert cut.metrics_path.read_text() == whole.metrics_path.read_text()


def test_another_environment_is_another_run(tmp_path: Path) -> None:
    source, run = trained(tmp_path / "run"), OnlineRun(tmp_path / "online")
    run.prepare(finetune.plan(source, where=POINT, episodes=EPISODES))
    (run.folder / "metrics.csv").touch()
    run.prepare(finetune.plan(source, where=POINT, episodes=EPISODES))
    for other in (Environment(POINT.id, {"ends": False}), Environment(POINT.id, horizon=5)):
        with pytest.raises(GoatError, match="differs in"):
            run.prepare(finetune.plan(source, where=other, episodes=EPISODES))


def test_goat_finetune(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    trained(Path("run"))
    capsys.readouterr()
    place = ("--environment", POINT.id, "--environment-args", '{"ends": false}')
    assert goat("finetune", "run", *place, "--episodes", 4, "--out", "online") == 0
    shown = capsys.readouterr().out
    assert "mean success in worlds:worlds/Point-v0: " in " ".join(shown.split())
    again = (
        f"goat evaluate online --environment {POINT.id} --environment-args '{{\"ends\": false}}'"
    )
    assert f"evaluate it: {again}\n" in shown
    assert goat("evaluate", "online", *place, "--episodes", 2) == 0
    capsys.readouterr()
    for words, message in {
        (): "specify --group or --environment",
        (*place, "--group", "reach-left-right"): "either on the tasks of a --group or in an --env",
        ("--environment-args", "{}"): "name it with --environment",
        ("--environment", "worlds/Ends-v0"): "worlds/Ends-v0 ended an episode after",
        ("--environment", "worlds/Broken-v0"): "worlds/Broken-v0 failed in step",
        ("--environment", "worlds/Large-v0"): "worlds/Large-v0 does not fit",
    }.items():
        assert goat("finetune", "run", *words, "--episodes", 4, "--out", "other") == 2
        assert message in error_line(capsys)
    assert goat("finetune", "--random", "reach-left-right", *place, "--out", "other") == 2
    assert "omit --by, --group and --environment" in error_line(capsys)
