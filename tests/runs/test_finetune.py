"""Fine-tuning: agents go on as they came, in all tasks, and a run that was cut short ends as if it
had not been.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file

from goatrl import tasks
from goatrl.cli.view import View
from goatrl.data import experts
from goatrl.data.problems import Problem, seen_as
from goatrl.disk import checkpoint
from goatrl.episodes import make_episodes
from goatrl.experiments.loading import of_run
from goatrl.learn import normalize
from goatrl.learn.parameters import stack
from goatrl.learn.policies import DDPGObjective
from goatrl.learn.values import QEnsemble
from goatrl.robots import Finetuning
from goatrl.runs import expert_training, finetune
from goatrl.runs.folder import Interrupted
from goatrl.runs.offline import Run, configure
from goatrl.runs.online import OnlinePlan, OnlineRun
from goatrl.tasks import draw_mix, registry
from goatrl.training.offline import act, init
from goatrl.training.online import start
from goatrl.types import Episodes, GoatError, TrainState
from helpers import goat

pytestmark = pytest.mark.usefixtures("few_percentiles")

GROUP = tasks.get("reach-left-right")
SEEDS = (0, 3)
UPDATES = 40
EPISODES = 12  # everywhere, so that programs are compiled once


@pytest.fixture(autouse=True)
def small_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Finetuning(5, batch_size=8, round=4, evaluate_every=2, evaluated_episodes=4)
    # the robot itself is frozen, and another one would compile another model
    monkeypatch.setitem(vars(GROUP.family), "finetuning", recipe)


def some_episodes() -> Episodes:
    generator = np.random.default_rng(0)
    achieved = 1.0 + 0.1 * generator.normal(size=(5, 11, 3))
    observations = np.concatenate([achieved, generator.normal(size=(5, 11, 7))], axis=-1)
    return make_episodes(
        observations, achieved, generator.uniform(-1, 1, (5, 10, 4)), achieved[:, -1]
    )


def trained(
    folder: Path,
    algorithm: str,
    group: str | None = GROUP.name,
    overrides: dict[str, Any] | None = None,
) -> Run:
    """A run as training leaves it, only that its numbers are arbitrary: no two networks are alike,
    nor is the optimiser at rest.
    """
    episodes = some_episodes()
    found = None if group is None else tasks.get(group)
    problem = Problem(episodes, episodes.spec(0.05), GROUP.settings, found)
    run = Run(folder)
    config = configure(algorithm, problem, seeds=SEEDS, updates=UPDATES, overrides=overrides)
    run.prepare(config)
    state = init(config.members(), problem.spec, normalize.from_episodes(episodes))
    generator = np.random.default_rng(1)

    def shifted(leaf: jax.Array) -> jax.Array:
        return (
            leaf + jnp.float32(0.01 * generator.uniform(size=leaf.shape))
            if jnp.issubdtype(leaf.dtype, jnp.floating)
            else leaf
        )

    changed = {
        name: jax.tree.map(shifted, getattr(state, name))
        for name in ("params", "target", "optimizer")
    }
    state = dataclasses.replace(state, step=jnp.full(len(SEEDS), UPDATES, jnp.int32), **changed)
    checkpoint.save(run.checkpoint_path, state, {"step": UPDATES})
    return run


def same(one: object, other: object) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(other)
    jax.tree.map(np.testing.assert_array_equal, one, other)


def agents(run: OnlineRun) -> dict[str, np.ndarray]:
    return {
        name.removeprefix("train/"): array
        for name, array in load_file(run.checkpoint_path).items()
        if name.startswith("train/")
    }


@pytest.mark.parametrize("by", finetune.WAYS)
@pytest.mark.parametrize(
    ("algorithm", "overrides"),
    [("goat", {}), ("wgcsl", {}), ("gcsl", {}), ("cql_her", {}), ("wgcsl", {"averaging": 0.1})],
)
def test_agents_begin_as_they_came(
    tmp_path: Path, algorithm: str, overrides: dict[str, Any], by: str
) -> None:
    run = trained(tmp_path, algorithm, overrides=overrides)
    members, state = run.restore()
    plan = finetune.plan(run, by)
    assert [seed for _, seed in plan.members] == list(SEEDS)
    assert not plan.schedule.adapt_normalizer
    assert plan.schedule.reward_offset == 0.0
    generator = np.random.default_rng(2)
    seen = (
        jnp.float32(generator.normal(1.0, 1.0, (2, 6, 10))),
        jnp.float32(generator.normal(1.0, 0.1, (2, 6, 3))),
    )
    before = act(stack([agent for agent, _ in members]), state, *seen)
    assert np.abs(before[0] - before[1]).max() > 1e-3, "two seeds, two agents"
    np.testing.assert_array_equal(
        act(stack([agent for agent, _ in plan.members]), plan.trained, *seen), before
    )
    if by == "own":
        same(plan.trained, state)
        assert plan.members == members


@pytest.mark.parametrize(
    ("algorithm", "critics"),
    [("goat", 5), ("goat_tau", 5), ("msg_her", 5), ("wgcsl", 1), ("cql_her", 1)],
)
def test_ddpg_takes_over_policies_critics_and_their_targets(
    tmp_path: Path, algorithm: str, critics: int
) -> None:
    run = trained(tmp_path, algorithm)
    members, state = run.restore()
    plan = finetune.plan(run)
    for agent, _ in plan.members:
        assert agent.policy == DDPGObjective()  # maximises the mean of the critics
        assert agent.value == QEnsemble(critics)  # neither an expectile nor the CQL penalty goes on
        assert (agent.sampler.probability, agent.learning_rate, agent.discount) == (
            0.8,
            5e-4,
            members[0][0].discount,
        )
        assert agent.target_period == 5  # the batches of one episode
    assert plan.trained is not None
    for name in ("params", "target", "normalizer"):
        same(getattr(plan.trained, name), getattr(state, name))
    assert any(np.asarray(leaf).any() for leaf in jax.tree.leaves(state.optimizer))
    assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(plan.trained.optimizer)), (
        "a new optimiser"
    )
    assert plan.trained.weight_state == ()
    assert not np.asarray(plan.trained.step).any()


@pytest.mark.parametrize("algorithm", ["wgcsl", "gcsl"])
def test_agents_go_on_seeing_what_they_saw(tmp_path: Path, algorithm: str) -> None:
    """Old networks and new critics alike."""
    layout, symmetry = GROUP.family.layout, json.dumps(GROUP.family.symmetry)
    overrides = {**seen_as("goal-frame", layout), "architecture.hidden": (8,), "symmetry": symmetry}
    run = trained(tmp_path / "run", algorithm, overrides=overrides)
    plan = finetune.plan(run, episodes=EPISODES)
    for agent, _ in plan.members:
        assert agent.architecture == run.config().members()[0][0].architecture
        assert agent.symmetry == symmetry
    reports = list(OnlineRun(tmp_path / "online").train(plan))
    assert reports[-1].round == plan.rounds


@pytest.mark.parametrize("algorithm", ["gcsl", "bc"])
def test_imitators_get_new_critics(tmp_path: Path, algorithm: str) -> None:
    run = trained(tmp_path, algorithm)
    _, state = run.restore()
    plan = finetune.plan(run)
    assert plan.members[0][0].value == QEnsemble(1)
    assert plan.trained is not None
    same(plan.trained.params["policy"], state.params["policy"])
    same(plan.trained.target["policy"], state.target["policy"])
    fresh = init(plan.members, GROUP.spec)
    same(plan.trained.params["value"], fresh.params["value"])
    same(plan.trained.target["value"], fresh.params["value"])


@pytest.mark.parametrize(
    ("algorithm", "known"),
    [
        ("goat_v", "V"),
        ("iql_her", "Q.* only for actions in the data"),
        ("gofar", "V"),
        ("crl", "how often goals follow"),
    ],
)
def test_values_without_actions_are_refused_by_ddpg(
    tmp_path: Path, algorithm: str, known: str
) -> None:
    run = trained(tmp_path, algorithm)
    with pytest.raises(
        GoatError,
        match=rf"which improves a policy through Q.*{algorithm} learns {known}.*use --by own",
    ) as caught:
        finetune.plan(run)
    assert "\n" not in str(caught.value)
    same(finetune.plan(run, by="own").trained, run.restore()[1])


def test_agents_that_are_not_made_of_our_parts_go_on_by_themselves(tmp_path: Path) -> None:
    run = trained(tmp_path, "gcsl")
    members, state = run.restore()

    class Other:
        target_period = 5

    with pytest.raises(GoatError, match=r"parts of goatrl\.learn; use --by own"):
        finetune.as_ddpg(run, [(Other(), seed) for _, seed in members], state, GROUP)  # type: ignore[list-item]


def shares(group: str, goals: np.ndarray, starts: np.ndarray) -> list[int]:
    return [
        int(
            (task.goal.contains(goals) & np.array([_begins(task, start) for start in starts])).sum()
        )
        for task in tasks.get(group).tasks
    ]


def _begins(task: tasks.Task, start: np.ndarray) -> bool:
    return bool(np.asarray(task.start.contains(start[None])).all())


@pytest.mark.parametrize(("group", "batches"), [("push-left-right", 20), ("pick-left-right", 10)])
def test_the_paper_settings_and_the_full_mix(group: str, batches: int) -> None:
    plan = finetune.random_plan(group, range(5))
    assert [task.name for task in plan.tasks] == [
        "Right2Right",
        "Right2Left",
        "Left2Right",
        "Left2Left",
    ]
    schedule = plan.schedule
    assert schedule.updates == batches * schedule.episodes
    assert (schedule.batch_size, schedule.noise, schedule.random, schedule.reward_offset) == (
        512,
        0.2,
        0.3,
        0.0,
    )
    assert plan.rounds * schedule.episodes == 4_000
    agent = plan.members[0][0]
    assert (agent.learning_rate, agent.target_period) == (5e-4, batches)
    for episodes in (schedule.episodes, plan.evaluated_episodes):
        starts, goals = draw_mix(plan.tasks, [0, 0], episodes)
        assert shares(group, goals, starts) == [episodes // 4] * 4


def test_no_member_explores_what_agents_are_evaluated_on() -> None:
    plan = finetune.random_plan("push-left-right", range(5))
    seeds = [seed for _, seed in plan.members]
    explored = {
        draw_mix(plan.tasks, [seed, number], 8)[1].tobytes()
        for seed in seeds
        for number in range(20)
    }
    evaluated = {
        draw_mix(plan.tasks, [*plan.evaluated_by, number], 8)[1].tobytes() for number in range(20)
    }
    assert len(explored) == 100
    assert len(evaluated) == 20
    assert not explored & evaluated


def test_a_run_cut_short_twice_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    source = trained(tmp_path / "source", "wgcsl")

    def plan() -> OnlinePlan:
        return finetune.plan(source, episodes=EPISODES)

    def press_ctrl_c(at: int) -> None:
        for report in cut.train(plan()):
            if report.round == at:
                os.kill(os.getpid(), signal.SIGINT)

    whole, cut = OnlineRun(tmp_path / "whole"), OnlineRun(tmp_path / "cut")
    reports = list(whole.train(plan()))
    assert [report.round for report in reports if report.evaluated is not None] == [0, 2, 3]
    for report in cut.train(plan()):
        if report.round == 1:
            # as a kill would, after the first rows were written and before anything was saved
            break
    assert cut.rounds() == 0
    assert len(cut.metrics_path.read_text().splitlines()) == 1 + 2 * len(SEEDS)
    with pytest.raises(Interrupted, match="stopped after round 2 of 3"):
        press_ctrl_c(at=1)
    assert cut.rounds() == 2
    list(cut.train(plan()))
    assert cut.metrics_path.read_text() == whole.metrics_path.read_text()
    for name in ("checkpoint_path", "best_path"):
        one, other = (load_file(getattr(run, name)) for run in (cut, whole))
        assert one.keys() == other.keys()
        assert all(one[leaf].tobytes() == other[leaf].tobytes() for leaf in one), name
    assert list(cut.train(plan())) == []
    rows = [row.split(",")[:3] for row in whole.metrics_path.read_text().splitlines()[1:]]
    assert rows == [
        [str(number), str(number * 4 * 49), str(seed)] for number in range(4) for seed in SEEDS
    ]
    mean, std = (agents(whole)[f"normalizer/goal_{kind}"] for kind in ("mean", "std"))
    state: TrainState = source.restore()[1]
    same((mean, std), (state.normalizer.goal_mean, state.normalizer.goal_std))


def test_an_algorithm_of_its_own_goes_on_where_it_was(tmp_path: Path) -> None:
    """Weights that depend on the number of updates and on recent advantages do not begin anew."""
    source = trained(tmp_path / "source", "wgcsl")
    run = OnlineRun(tmp_path / "run")
    list(run.train(finetune.plan(source, by="own", episodes=EPISODES)))
    found = agents(run)
    assert found["step"].tolist() == [UPDATES + 5 * EPISODES] * len(SEEDS)
    assert not np.array_equal(
        found["params/policy/0/w"], np.asarray(source.restore()[1].params["policy"].layers[0]["w"])
    )
    assert "weight" in run.metrics_path.read_text().splitlines()[0]


def test_another_agent_never_takes_the_folder(tmp_path: Path) -> None:
    run = OnlineRun(tmp_path / "run")
    source = trained(tmp_path / "source", "gcsl")
    run.prepare(finetune.plan(source, episodes=4))
    run.metrics_path.touch()  # something was saved
    source.folder.rename(tmp_path / "moved")
    run.prepare(finetune.plan(Run(tmp_path / "moved"), episodes=4))
    for other, message in [
        (finetune.plan(trained(tmp_path / "other", "bc"), episodes=4), "differs in from"),
        (
            finetune.plan(Run(tmp_path / "moved"), by="own", episodes=4),
            "differs in by, hyperparameters",
        ),
        (
            finetune.plan(Run(tmp_path / "moved"), where="reach-near-far", episodes=4),
            "differs in group, evaluation",
        ),
    ]:
        with pytest.raises(GoatError, match=rf"has another configuration \({message}"):
            run.prepare(other)


def saved(folder: Path, plan: OnlinePlan, trained: TrainState | None, rounds: int = 3) -> OnlineRun:
    """A run as fine-tuning leaves it, with agents that are known."""
    run = OnlineRun(folder)
    run.prepare(plan)
    checkpoint.save(
        run.checkpoint_path,
        start(plan.members, plan.group.spec, plan.schedule, trained),
        {"round": rounds},
    )
    return run


@pytest.mark.parametrize(
    ("algorithm", "by", "label"),
    [
        ("goat", "ddpg_her", "GOAT fine-tuned by DDPG+HER"),
        ("wgcsl", "own", "WGCSL fine-tuned by WGCSL"),
        ("", "ddpg_her", "random networks fine-tuned by DDPG+HER"),
    ],
)
def test_a_folder_tells_which_agents_it_holds(
    tmp_path: Path, algorithm: str, by: str, label: str
) -> None:
    if algorithm:
        plan = finetune.plan(trained(tmp_path / "source", algorithm), by, episodes=EPISODES)
    else:
        plan = finetune.random_plan(GROUP.name, SEEDS, episodes=EPISODES)
    run = saved(tmp_path / "run", plan, plan.trained, rounds=2)
    found = of_run(run.folder)
    assert found.members == plan.members
    same(found.state, start(plan.members, GROUP.spec, plan.schedule, plan.trained).train)
    assert (found.label, found.spec, found.group) == (label, GROUP.spec, GROUP.name)
    assert found.unfinished == "stopped after round 2 of 3; resume it with `goat finetune`"


def test_an_experts_folder_holds_its_best_agent(tmp_path: Path) -> None:
    plan = expert_training.plan("slide", rounds=2)
    like = jax.eval_shape(lambda: init(plan.members, plan.group.spec))
    best = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like)
    last = jax.tree.map(jnp.ones_like, best)
    small = dataclasses.replace(
        plan, schedule=dataclasses.replace(plan.schedule, capacity=plan.schedule.episodes)
    )
    run = saved(tmp_path, small, last, rounds=2)
    checkpoint.save(run.best_path, best, {"round": 1, "success": 0.5})
    found = of_run(tmp_path)
    same(found.state, best)
    assert (found.label, found.spec, found.group, found.unfinished) == (
        "slide expert",
        plan.group.spec,
        None,
        "",
    )


def test_an_expert_is_exported_as_it_acts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expert_training, "success_rate", lambda *arguments: np.array([0.5]))
    monkeypatch.setattr(OnlineRun, "curves", lambda run: {0: []})
    plan = expert_training.plan("reach", rounds=2)
    state = init(plan.members, plan.group.spec)
    small = dataclasses.replace(
        plan, schedule=dataclasses.replace(plan.schedule, capacity=plan.schedule.episodes)
    )
    run = saved(tmp_path / "run", small, state, rounds=2)
    about = {"round": 1, "success": 0.5, "versions": {}}
    checkpoint.save(run.best_path, state, about)
    expert_training.export(run, plan, tmp_path)
    expert = experts.load(tmp_path, "reach")
    seen, goals = np.random.default_rng(0).normal(size=(3, 10)), np.ones((3, 3))
    acting = jax.tree.map(lambda leaf: leaf[0], state)
    actions = normalize.act(plan.members[0][0], acting, jnp.float32(seen), jnp.float32(goals))
    np.testing.assert_allclose(expert.act(seen, goals), actions, atol=1e-5)


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_command(at_home: None, capsys: pytest.CaptureFixture[str]) -> None:
    trained(Path("run"), "gcsl")
    assert goat("finetune", "run", "--out", "tuned", "--episodes", EPISODES) == 0
    shown = capsys.readouterr().out
    assert "mean success on 2 tasks" in shown
    assert "588 environment steps" in shown
    assert "evaluate it: goat evaluate tuned" in shown
    learned, kept = of_run(Path("tuned")), agents(OnlineRun(Path("tuned")))
    assert (learned.step, learned.unfinished) == (5 * EPISODES, "")
    np.testing.assert_array_equal(
        learned.state.params["policy"].layers[0]["w"], kept["params/policy/0/w"]
    )
    rows = [line.split(",") for line in Path("tuned/metrics.csv").read_text().splitlines()]
    assert rows[0][:5] == ["round", "steps", "seed", "explored", "success"]
    assert [row[0] for row in rows[1:] if row[4]] == ["0", "0", "2", "2", "3", "3"]
    assert goat("finetune", "run", "--out", "tuned", "--episodes", EPISODES) == 0
    assert "already fine-tuned" in capsys.readouterr().out
    assert goat("finetune", "run", "--out", "tuned", "--episodes", 16) == 2
    assert "tuned has another configuration (differs in episodes" in capsys.readouterr().err


def test_fine_tuned_agents_are_evaluated_and_watched(
    at_home: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One fine-tuned agent is the expert that ships with goatrl, the other does the opposite: one
    always arrives, one never.
    """
    few = tuple(dataclasses.replace(task, episodes=3) for task in GROUP.tasks)
    monkeypatch.setitem(registry._GROUPS, GROUP.name, dataclasses.replace(GROUP, tasks=few))
    plan = finetune.plan(trained(Path("run"), "goat"), episodes=EPISODES)
    expert = experts.get(GROUP.family)
    *hidden, (weight, bias) = expert.layers
    networks = [(*hidden, (sign * weight, sign * bias)) for sign in (-1, 1)]
    policy = tuple(
        {"w": jnp.float32([w for w, _ in layers]), "b": jnp.float32([b for _, b in layers])}
        for layers in zip(*networks, strict=True)
    )
    statistics = normalize.Normalizer(
        *(jnp.float32([part, part]) for part in (*expert.observation, *expert.goal))
    )
    assert plan.trained is not None
    known = dataclasses.replace(
        plan.trained, params=plan.trained.params | {"policy": policy}, normalizer=statistics
    )
    saved(Path("tuned"), plan, known)
    for words, tasks_evaluated in [
        ((), ["Right", "Left"]),
        (("--group", "reach-left-right", "--tasks", "left"), ["Right", "Left"]),
        (
            ("--environment", "goatrl/ReachFar-v0", "--episodes", 3),
            ["Right", "Left", "goatrl/ReachFar-v0"],
        ),
    ]:
        assert goat("evaluate", "tuned", *words) == 0
        shown = capsys.readouterr().out
        assert "GOAT fine-tuned by DDPG+HER on" in shown
        assert "0.50 ± 0.50" in shown
        evaluated = pq.read_table("tuned/episodes.parquet").to_pylist()
        assert sorted({row["task"] for row in evaluated}) == sorted(tasks_evaluated)
        assert len(evaluated) == 2 * 3 * len(tasks_evaluated)
        assert all(row["success"] == (row["seed"] == SEEDS[1]) for row in evaluated)
    name, act_as_seen = View(
        GROUP.name, "left", (Path("clip.mp4"),), Path("tuned"), seed=SEEDS[1]
    ).actor(GROUP)
    assert name == "GOAT fine-tuned by DDPG+HER"
    observations, goals = np.random.default_rng(0).normal(1.0, 0.3, (5, 10)), np.full((5, 3), 1.2)
    np.testing.assert_allclose(
        act_as_seen(observations, goals), expert.act(observations, goals), atol=1e-4
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, "mine is not a run: it has no config.json; create one with `goat train`"),
        (
            {"model": "other"},
            "config.json is damaged or not a run's config ('config'); use another folder",
        ),
        (
            {"config": {}},
            "mine is not a run; specify a folder of `goat train`, `goat finetune` or `goat expert "
            "train`",
        ),
        (
            {"config": {"by": "own"}},
            "mine is damaged or was written by another version of goatrl (Object missing required "
            "field 'group'); make it again",
        ),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "mine"],
        ["view", GROUP.name, "--task", "left", "--run", "mine", "--out", "a.gif"],
    ],
)
def test_a_folder_without_agents_is_one_helpful_line(
    at_home: None,
    command: list[str],
    config: object,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("mine").mkdir()
    if config is not None:
        Path("mine/config.json").write_text(json.dumps(config))
    assert goat(*command) == 2
    text = capsys.readouterr().err.strip()
    assert message in text
    assert "\n" not in text


def test_an_unsaved_fine_tuning_says_so(at_home: None, capsys: pytest.CaptureFixture[str]) -> None:
    OnlineRun(Path("tuned")).prepare(finetune.random_plan(GROUP.name, SEEDS, EPISODES))
    assert goat("evaluate", "tuned") == 2
    assert (
        "tuned has no checkpoint yet: it stopped before its first save; rerun its command"
        in capsys.readouterr().err
    )


def test_random_networks_by_command(at_home: None) -> None:
    assert finetune.random_plan(GROUP.name, (0, 1)).trained is None
    assert (
        goat(
            "finetune",
            "--random",
            GROUP.name,
            "--seeds",
            2,
            "--out",
            "fresh",
            "--episodes",
            EPISODES,
        )
        == 0
    )
    run = OnlineRun(Path("fresh"))
    assert [[steps for steps, _ in run.curves()[seed]] for seed in (0, 1)] == [
        [0, 2 * 4 * 49, 3 * 4 * 49]
    ] * 2
    assert agents(run)["normalizer/observation_mean"].any(), "input statistics follow what is seen"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere is not a run"),
        ([], "specify either the folder of a `goat train` run"),
        (["run", "--random", GROUP.name], "specify either the folder of a `goat train` run"),
        (["run", "--by", "onw"], "unknown fine-tuning algorithm 'onw'; did you mean own?"),
        (["run", "--seeds", "2"], "use --seeds only with --random"),
        (["run", "--episodes", "10"], "must be a multiple of 4, not 10; try 8"),
        (
            ["run", "--group", "push-left-right"],
            "run does not fit push-left-right: its observation_dim is 10",
        ),
        (
            ["run", "--group", "pointreach-expert-10"],
            "pointreach-expert-10 has no robot to fine-tune on; groups that have one",
        ),
        (["tuned"], "tuned is not a run of `goat train`; specify one that is"),
        (["alone"], "alone was trained without a task group; specify --group or --environment"),
        (["unsaved"], "unsaved has no checkpoint yet"),
        (["value"], "goat_v learns V(s, g); use --by own"),
        (["--random", "push-left"], "unknown task group 'push-left'; did you mean push-left-right"),
        (["--random", GROUP.name, "--seeds", "0"], "at least one seed"),
        (["--random", GROUP.name, "--by", "own"], "omit --by, --group and --environment"),
    ],
)
def test_errors_are_one_helpful_line(
    at_home: None, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("tuned").mkdir()
    Path("tuned/config.json").write_text(json.dumps({"config": {"by": "ddpg_her"}, "versions": {}}))
    for name in {"run", "unsaved", "alone", "value"} & set(arguments):
        run = trained(
            Path(name),
            "goat_v" if name == "value" else "gcsl",
            None if name == "alone" else GROUP.name,
        )
        if name == "unsaved":
            run.checkpoint_path.unlink()
    assert goat("finetune", *arguments, "--out", "out") == 2
    text = capsys.readouterr().err.strip()
    assert message in text
    assert "\n" not in text
    assert not Path("out").exists()
