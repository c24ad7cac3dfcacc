"""Agents in a user's environment: the same episodes for all, outcomes known by hand, one line for
what does not fit.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gymnasium.vector import SyncVectorEnv

import goatrl
from goatrl import cli
from goatrl import data as datasets
from goatrl.episodes import make_episodes
from goatrl.evaluation import environments
from goatrl.evaluation.episodes import SCHEMA
from goatrl.evaluation.worlds import Environment, Success
from goatrl.types import ActionBounds, GoatError, Spec, TrainState, pytree
from helpers import acting
from worlds import HORIZON, THRESHOLD

SPEC = Spec(observation_dim=2, goal_dim=2, action_dim=2, horizon=HORIZON, goal_threshold=THRESHOLD)
POINT = "worlds:worlds/Point-v0"
SOMEWHERE = Environment(POINT)


@pytree
class Walker:
    """Walks straight at the goal with at most the given speed."""

    speed: float

    def act(self, state: TrainState, observation: jax.Array, goal: jax.Array) -> jax.Array:
        return jnp.clip(goal - observation, -self.speed, self.speed) + state.params["drift"]


@pytree
class Network:
    """A network of two layers, whose sums round."""

    def act(self, state: TrainState, observation: jax.Array, goal: jax.Array) -> jax.Array:
        hidden = jnp.tanh(jnp.concatenate([observation, goal], axis=-1) @ state.params["first"])
        return jnp.tanh(hidden @ state.params["second"])


def judge(
    name: str,
    *speeds: float,
    episodes: int = 6,
    drift: float = 0.0,
    bounds: ActionBounds | None = None,
    **options: Any,
) -> pa.Table:
    members = [(Walker(speed), seed) for seed, speed in enumerate(speeds)]
    state = acting(drift=jnp.full((len(members), 1, 1), drift))
    where = Environment(f"worlds:worlds/{name}-v0", **options)
    return environments.evaluate(members, state, SPEC, where, episodes, action_bounds=bounds)


def paths(table: pa.Table) -> list[np.ndarray]:
    return [np.reshape(path, (-1, 2)) for path in table.column("path").to_pylist()]


def test_outcomes_known_by_hand() -> None:
    table = judge("Point", 1.0, 0.0)
    assert table.schema == SCHEMA
    assert table.column("seed").to_pylist() == [0] * 6 + [1] * 6
    assert table.column("episode").to_pylist() == [*range(6), *range(6)]
    assert set(table.column("task").to_pylist()) == {"worlds/Point-v0"}
    assert set(table.column("split").to_pylist()) == {None}
    for row, path in zip(table.to_pylist(), paths(table), strict=True):
        start, goal = np.array(row["start"]), np.array(row["goal"])
        speed = 1.0 - row["seed"]
        steps = np.arange(1, HORIZON + 1)[:, None]
        walked = start + np.sign(goal - start) * np.minimum(speed * steps, np.abs(goal - start))
        np.testing.assert_allclose(path, [start, *walked], atol=1e-5)
        distance = np.linalg.norm(walked - goal, axis=-1)
        assert row["return"] == (distance <= THRESHOLD).sum()
        assert row["success"] == (distance[-1] <= THRESHOLD)
        assert row["final_distance"] == pytest.approx(distance[-1], abs=1e-5)
    assert all(table.column("success").to_pylist()[:6]), (
        "it arrives in at most five steps, and stays"
    )


def test_every_agent_meets_the_same_episodes_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    table = judge("Point", 1.0, 0.5, 0.0)
    for column in ("start", "goal"):
        drawn = np.array(table.column(column).to_pylist()).reshape(3, 6, 2)
        np.testing.assert_array_equal(drawn, np.broadcast_to(drawn[:1], drawn.shape))
        assert len(np.unique(drawn[0], axis=0)) == 6
    assert judge("Point", 1.0, 0.5, 0.0).equals(table)
    monkeypatch.setattr(environments, "SIDE_BY_SIDE", 7)  # in rounds, the last of them not full
    assert judge("Point", 1.0, 0.5, 0.0).equals(table)
    assert judge("Point", 1.0, episodes=4).equals(table.slice(0, 4)), (
        "alone as in company, few as the first of many"
    )


def test_the_number_of_copies_and_of_agents_changes_no_episode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even in the last bit, though products of few rows round differently."""
    rng = np.random.default_rng(0)
    shapes = {"first": (3, 4, 256), "second": (3, 256, 2)}
    weights = {
        name: jnp.float32(rng.normal(0, 0.5 if name == "first" else 0.05, shape))
        for name, shape in shapes.items()
    }

    def found(agents: int) -> list[pa.Table]:
        members = [(Network(), seed) for seed in range(agents)]
        state = acting(**{name: array[:agents] for name, array in weights.items()})
        table = environments.evaluate(members, state, SPEC, Environment(POINT), 5)
        return [table.slice(5 * seed, 5) for seed in range(agents)]

    first, *_ = found(3)
    assert len(np.unique(np.concatenate(paths(first)), axis=0)) > 40, "they do move"
    assert found(1)[0].equals(first)
    for copies in (1, 4, 32):
        monkeypatch.setattr(environments, "SIDE_BY_SIDE", copies)
        assert found(1)[0].equals(first)


def test_one_copy_will_do() -> None:
    table, several = judge("Single", 1.0, 0.5), judge("Point", 1.0, 0.5)
    assert table.drop_columns("task").equals(several.drop_columns("task"))


def test_progress_is_told_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "SIDE_BY_SIDE", 4)
    told: list[tuple[int, int]] = []
    state = acting(drift=jnp.zeros((2, 1, 1)))
    members = [(Walker(1.0), 0), (Walker(0.5), 1)]
    where = Environment("worlds:worlds/Short-v0")  # ends after 3 steps
    environments.evaluate(members, state, SPEC, where, 5, lambda *done: told.append(done))
    ends = [before + step for before in (0, 8, 16) for step in (1, 2, 8)]
    assert told == [(end, 3 * HORIZON) for end in ends]


def test_arguments_reach_the_constructor() -> None:
    table, named = judge("Point", 1.0, arguments={"ends": True}), judge("Ends", 1.0)
    assert set(table.column("task").to_pylist()) == {"worlds/Point-v0 (ends=true)"}
    assert table.drop_columns("task").equals(named.drop_columns("task"))
    with pytest.raises(GoatError, match=r"Point-v0' cannot be created \(TypeError.*'end'"):
        judge("Point", 1.0, arguments={"end": True})


@pytest.mark.parametrize("steps", [3, 12])
def test_the_horizon_is_the_users(steps: int) -> None:
    table, whole = judge("Point", 0.25, horizon=steps), judge("Point", 0.25)
    assert set(table.column("task").to_pylist()) == {f"worlds/Point-v0 (horizon={steps})"}
    for row, path, full in zip(table.to_pylist(), paths(table), paths(whole), strict=True):
        assert len(path) == steps + 1
        both = min(steps, HORIZON) + 1
        np.testing.assert_array_equal(path[:both], full[:both])
        distance = np.linalg.norm(path - row["goal"], axis=-1)
        assert row["success"] == (distance[-1] <= THRESHOLD)
        assert row["return"] == (distance[1:] <= THRESHOLD).sum()
    short = judge("Short", 1.0, horizon=5)
    assert {len(path) for path in paths(short)} == {4}, "its time limit ends it earlier"


@pytest.mark.parametrize("flag", environments.FLAGS)
@pytest.mark.parametrize("ends", [False, True])
def test_success_may_be_what_the_environment_says(flag: str, ends: bool) -> None:
    options = {"arguments": {"flag": flag, "ends": ends}, "success": "flag"}
    table = judge("Point", 0.3, episodes=20, drift=0.01, **options)
    right = 0
    for row, path in zip(table.to_pylist(), paths(table), strict=True):
        flags = path[1:, 0] > row["goal"][0]
        assert row["success"] == flags[-1]
        assert row["return"] == flags.sum()
        right += row["success"]
    assert 0 < right < 20, "both happen"
    (task,) = set(table.column("task").to_pylist())
    assert task == f"worlds/Point-v0 (flag={flag}, ends={str(ends).lower()}, success=flag)"


@pytest.mark.parametrize(
    ("value", "truth"),
    [(True, True), (np.float32(0.0), False), (1, True), (np.array([1.0]), True)],
)
def test_a_flag_is_true_or_false(value: object, truth: bool) -> None:
    flags, told = environments._flagged({"success": [value], "_success": [True]}, 1, SOMEWHERE)
    assert (flags.tolist(), told.tolist()) == ([truth], [True])


@pytest.mark.parametrize("value", [np.nan, "abc", 2, None, np.inf, np.array([True, False])])
def test_a_flag_that_says_nothing_is_no_success(value: object) -> None:
    info = {"success": np.array([value, None], object)[:1], "_success": [True]}
    with pytest.raises(GoatError, match=r"success in the info of .* must be true or") as caught:
        environments._flagged(info, 1, SOMEWHERE)
    assert caught.value.exit_code == 1


def test_a_missing_flag_is_refused_by_name() -> None:
    with pytest.raises(GoatError, match=r"worlds/Point-v0 does not say whether .* --success thres"):
        judge("Point", 1.0, success="flag")


def test_options_that_make_no_sense() -> None:
    with pytest.raises(GoatError, match="horizon must be at least 1, not 0"):
        Environment(POINT, horizon=0)
    with pytest.raises(GoatError, match="unknown rule of success 'flags'; did you mean flag"):
        Environment(POINT, success="flags")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["Short", "Ends"])
def test_the_environment_may_end_an_episode_earlier(name: str) -> None:
    table, whole = judge(name, 1.0), judge("Point", 1.0)
    for row, path, full in zip(table.to_pylist(), paths(table), paths(whole), strict=True):
        met = np.linalg.norm(full - row["goal"], axis=-1) <= THRESHOLD
        last = (
            3 if name == "Short" else max(int(np.argmax(met)), 1)
        )  # nothing ends before the first action
        np.testing.assert_array_equal(path, full[: last + 1])
        assert row["success"] == met[last]
        assert row["return"] == met[1 : last + 1].sum()


def test_actions_are_stretched_to_the_bounds() -> None:
    assert environments.check(Environment(POINT), SPEC) is None
    note = environments.check(Environment("worlds:worlds/Wide-v0"), SPEC)
    assert note is not None
    assert (
        "agents act in [-1, 1], the environment in Box([ 0. -2.], [4. 2.], (2,), float32)" in note
    )
    np.testing.assert_allclose(paths(judge("Wide", 0.5)), paths(judge("Point", 0.5)), atol=1e-6)


def test_actions_are_in_the_units_of_the_agents_data() -> None:
    """The world is Wide, 0 … 4 and −2 … 2: agents whose data has half of that move half as far."""
    wide, half = ActionBounds((0.0, -2.0), (4.0, 2.0)), ActionBounds((1.0, -1.0), (3.0, 1.0))
    assert environments.check(Environment("worlds:worlds/Wide-v0"), SPEC, 2, wide) is None
    assert environments.check(Environment("worlds:worlds/Wide-v0"), SPEC, 2, half) is None
    same = judge("Wide", 0.5, bounds=wide)
    np.testing.assert_allclose(paths(same), paths(judge("Point", 0.5)), atol=1e-6)
    start, full, slow = (
        np.array(paths(judge("Wide", 1.0, bounds=bounds)))[:, 1] for bounds in (None, wide, half)
    )
    first = np.array(judge("Wide", 1.0).column("start").to_pylist())
    np.testing.assert_allclose(start, full, atol=1e-6)
    np.testing.assert_allclose(slow - first, (full - first) / 2, atol=1e-6)
    beyond = ActionBounds((0.0, -3.0), (4.0, 3.0))
    note = environments.check(Environment("worlds:worlds/Wide-v0"), SPEC, 2, beyond)
    assert note is not None
    assert "the environment clips their actions to Box(" in note


def test_actions_without_bounds_stay_as_they_are() -> None:
    taken = np.array(paths(judge("Open", 0.0, drift=-0.25)))
    steps = np.diff(taken, axis=1)
    np.testing.assert_allclose(steps[..., 0], -0.25, atol=1e-6)
    np.testing.assert_array_equal(steps[..., 1], 0.0)  # clipped to the one bound that it has


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "worlds/Piont-v0",
            "unknown environment 'worlds/Piont-v0' (Environment `Piont` doesn't exist in "
            "namespace worlds. Did you",
        ),
        ("Nothing-v0", "doesn't exist); if your own module registers it, write MODULE:ID"),
        ("no id", "environment 'no id' cannot be created (Error: Malformed environment ID"),
        (
            "no_such_module:Point-v0",
            "no module 'no_such_module' in the current folder or among the installed packages",
        ),
        ("worlds.deep:Point-v0", "no module 'worlds.deep'"),
        (
            "faulty_world:Point-v0",
            "module 'faulty_world' cannot be imported (NameError: name 'nonsense' is not defined)",
        ),
        (
            "needy_world:Point-v0",
            "module 'needy_world' cannot be imported: No module named 'something_else'",
        ),
        (
            "worlds/Plain-v0",
            "has no goals: its observations are not a dictionary of the vectors observation, "
            "achieved_goal, desired",
        ),
        ("worlds/Large-v0", "does not fit: its observation has shape (3,), but the data has (2,)"),
        ("worlds/Flat-v0", "does not fit: its action has shape (3,), but the data has (2,)"),
        (
            "worlds/Buttons-v0",
            "does not fit: its actions are Discrete(4), but agents produce vectors of length 2",
        ),
        ("worlds/Unseeded-v0", "draws starts or goals that do not depend on its seed"),
        ("worlds/Unmade-v0", "cannot be created (OSError: no licence for this simulator)"),
        (
            "worlds/Broken-v0",
            "worlds/Broken-v0 failed in step (ZeroDivisionError: in the user's own code); add "
            "--debug to see where",
        ),
    ],
)
def test_what_does_not_fit_is_one_clear_line(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "faulty_world.py").write_text("nonsense\n")
    (tmp_path / "needy_world.py").write_text("import something_else\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(GoatError) as refused:
        environments.evaluate(
            [(Walker(1.0), 0)], acting(drift=jnp.zeros((1, 1, 1))), SPEC, Environment(name), 2
        )
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytree
class Steering:
    """Accelerates at the goal and brakes; walls are in its way."""

    def act(self, state: TrainState, observation: jax.Array, goal: jax.Array) -> jax.Array:
        ahead = goal - observation[..., :2] + state.params["aside"]
        return jnp.clip(5.0 * ahead - 2.0 * observation[..., 2:], -1.0, 1.0)


def test_a_maze_of_gymnasium_robotics() -> None:
    """Its flag is 0.45 around the goal, at which it ends if it is told so."""
    spec = Spec(observation_dim=4, goal_dim=2, action_dim=2, horizon=60, goal_threshold=0.45)
    state = acting(aside=jnp.zeros((1, 1, 1)))

    def found(success: Success, **arguments: Any) -> list[dict[str, Any]]:
        name = "gymnasium_robotics:PointMaze_UMaze-v3"
        where = Environment(name, arguments, success=success)
        return environments.evaluate([(Steering(), 0)], state, spec, where, 8).to_pylist()

    ended = found("flag", continuing_task=False)
    assert ended == [
        {**row, "task": ended[0]["task"]} for row in found("threshold", continuing_task=False)
    ]
    met = [row["success"] for row in ended]
    assert 0 < sum(met) < 8, "there is a wall"
    assert [len(row["path"]) < 2 * 61 for row in ended] == met
    assert [row["return"] for row in ended] == list(map(int, met))
    whole = found("flag", continuing_task=True)
    assert {len(row["path"]) for row in whole} == {2 * 61}
    assert max(row["return"] for row in whole) > 10, "it stays"


def test_no_episode_is_refused() -> None:
    with pytest.raises(GoatError, match="number of episodes must be at least 1, not 0"):
        judge("Point", 1.0, episodes=0)


def test_goat_evaluate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run on the user's own data, judged in a module of the folder that they are in."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    Path("my_world.py").write_text(
        "import gymnasium\nimport worlds\n\n"
        "gymnasium.register('MyWorld-v0', entry_point=worlds.Point)\n"
        "gymnasium.register('MyOtherWorld-v0', entry_point=worlds.Point, max_episode_steps=2)\n"
    )

    def goat(*words: str) -> int:
        return cli.main(list(words))

    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (20, HORIZON, 2))
    achieved = np.concatenate([np.zeros((20, 1, 2)), actions.cumsum(axis=1)], axis=1)
    datasets.save(make_episodes(achieved, achieved, actions, achieved[:, -1]), "mine.npz")
    train = [
        "--data",
        "mine.npz",
        "--goal-threshold",
        str(THRESHOLD),
        "--seeds",
        "2",
        "--updates",
        "20",
        "--batch-size",
        "16",
    ]
    assert goat("train", "gcsl", *train, "--out", "run") == 0
    assert "goat evaluate run --environment ID" in capsys.readouterr().out
    assert goat("evaluate", "run", "--environment", "my_world:MyWorld-v0", "--episodes", "5") == 0
    shown = capsys.readouterr().out
    assert "GCSL on my_world:MyWorld-v0" in shown
    first = pq.read_table("run/episodes.parquet")
    assert first.num_rows == 2 * 5
    assert {len(path) for path in first.column("path").to_pylist()} == {2 * (HORIZON + 1)}
    assert goat("evaluate", "run", "--environment", "MyOtherWorld-v0", "--episodes", "3") == 0
    both = pq.read_table("run/episodes.parquet")
    assert both.slice(0, 10).equals(first), "the other environment's episodes stay"
    assert both.num_rows == 2 * 5 + 2 * 3
    assert goat("evaluate", "run", "--environment", "MyWorld-v0", "--episodes", "5") == 0
    assert (
        pq.read_table("run/episodes.parquet")
        .filter(pa.array([False] * 6 + [True] * 10))
        .equals(first)
    ), "again the same"
    for group in ("pointreach-expert-10", "pointreach-non-expert-10"):
        assert goat("evaluate", "run", "--group", group) == 0
        splits = pq.read_table("run/episodes.parquet").column("split").to_pylist()
        assert (splits.count(None), len(splits)) == (16, 16 + 2 * 2 * 20), (
            "of groups, the last one's tasks only"
        )
    assert goat("evaluate", "run", "--environment", "MyWorld-v0", "--episodes", "5") == 0
    assert pq.read_table("run/episodes.parquet").num_rows == 16 + 2 * 2 * 20
    options = ("--environment-args", '{"ends": true}', "--horizon", "4", "--episodes", "3")
    assert goat("evaluate", "run", "--environment", "MyWorld-v0", *options) == 0
    task = "MyWorld-v0 (ends=true, horizon=4)"
    assert pq.read_table("run/episodes.parquet").column("task").to_pylist()[-6:] == [task] * 6
    again = goatrl.evaluate(
        goatrl.load_agents("run"),
        environment="MyWorld-v0",
        environment_args={"ends": True},
        horizon=4,
        count=3,
    )
    assert again.equals(pq.read_table("run/episodes.parquet").slice(96, 6))
    assert (
        goat(
            "figure",
            "trajectories",
            "run",
            "--environment",
            "MyWorld-v0",
            *options,
            "--out",
            "paths.svg",
        )
        == 0
    )
    drawn = Path("paths.svg").read_text()
    for text in ("goal coordinate 0", "goal coordinate 1", "goal threshold (0.5)", "seed 1"):
        assert f"<!-- {text}" in drawn
    capsys.readouterr()
    for words, message in {
        (
            "--environment",
            "MyWorld-v0",
            "--group",
            "pointreach-expert-10",
        ): "either in an --environment or on the --tasks",
        ("--environment", "MyWorld-v0", "--episodes", "0"): "must be at least 1",
        ("--environment", "worlds/Large-v0"): "does not fit",
        (
            "--group",
            "pointreach-expert-10",
            "--episodes",
            "5",
        ): "use --episodes only with --environment",
        (): "specify --group or --environment",
        ("--horizon", "3"): "describe an environment; name it with --environment",
        ("--environment", "MyWorld-v0", "--environment-args", "ends"): "is not JSON (Expecting",
        ("--environment", "MyWorld-v0", "--environment-args", "[1]"): "must be a JSON object",
    }.items():
        assert goat("evaluate", "run", *words) == 2
        text = capsys.readouterr().err.strip()
        assert message in text
        assert "\n" not in text


def test_an_environment_that_does_not_come_back_is_stopped_and_named() -> None:
    with pytest.raises(GoatError) as caught:
        judge("Hanging", 1.0, timeout=0.2)
    assert str(caught.value) == (
        "worlds:worlds/Hanging-v0 did not come back from step within 0.2 s; mend it, or allow more "
        "with --timeout"
    )
    assert caught.value.exit_code == 1
    assert judge("Point", 1.0, episodes=1, timeout=30.0).num_rows == 1, "no timer is left"
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(GoatError, match="timeout must be above 0"):
            Environment(POINT, timeout=wrong)


def test_an_error_is_not_hidden_by_one_of_closing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("lost the simulator")

    monkeypatch.setattr(SyncVectorEnv, "close", fail)
    with pytest.raises(GoatError, match="did not come back from step"):
        judge("Hanging", 1.0, timeout=0.2)
    with pytest.raises(GoatError, match="does not fit"):
        judge("Large", 1.0)
    with pytest.raises(GoatError, match=r"failed in close \(RuntimeError: lost the simulator\)"):
        judge("Point", 1.0, episodes=1)


def test_what_is_not_finite_is_no_failed_episode() -> None:
    with pytest.raises(GoatError, match=r"observation is not finite \(step 1 in worlds:worlds/Num"):
        judge("Numberless", 1.0)
    for drift in (float("nan"), float("inf")):
        with pytest.raises(GoatError, match="an agent's action is not finite") as caught:
            judge("Point", 1.0, drift=drift)
        assert caught.value.exit_code == 1


def test_a_horizon_that_no_memory_holds_is_refused() -> None:
    with pytest.raises(GoatError, match="episodes of 1000000000000 actions declares"):
        judge("Point", 1.0, horizon=10**12)
