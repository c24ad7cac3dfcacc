"""Online training: buffers that fill up, statistics that follow, rounds that can be taken
up again.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl import algorithms, tasks
from goatrl.disk import checkpoint
from goatrl.episodes import make_episodes
from goatrl.learn import normalize
from goatrl.learn.networks import Architecture
from goatrl.runs.online import OnlinePlan, OnlineRun
from goatrl.training.offline import init, run_chunk, same_rows, seed_keys
from goatrl.training.online import (
    OnlineState,
    Schedule,
    _insert,
    _normalizer,
    _seen,
    start,
    train_online,
)
from goatrl.types import Episodes, GoatError, Settings

pytestmark = pytest.mark.usefixtures("few_percentiles")

GROUP = tasks.get("reach-left-right")
SCHEDULE = Schedule(episodes=3, updates=4, batch_size=8, capacity=7)
MEMBERS = [(algorithms.get("ddpg_her").build(Settings(target_period=2)), seed) for seed in (0, 1)]


def rounds(number: int, state: OnlineState | None = None, schedule: Schedule = SCHEDULE) -> list:
    state = start(MEMBERS, GROUP.spec, schedule) if state is None else state
    found = []
    for done in train_online(MEMBERS, GROUP.spec, GROUP.family, GROUP.tasks, schedule, state):
        # The buffer is handed on from round to round; what is kept of it must be copied.
        found.append(dataclasses.replace(done, state=jax.tree.map(np.array, done.state)))
        if len(found) == number:
            return found
    raise AssertionError


@pytest.fixture(scope="module")
def three() -> list:
    return rounds(3)


def same(one: object, other: object) -> None:
    jax.tree.map(np.testing.assert_array_equal, one, other)


def test_a_round_fills_the_buffer_with_what_was_done(three: list) -> None:
    first = three[0].state.buffer
    assert first.observations.shape == (
        2,
        6,
        50,
        10,
    )  # whole rounds only: 7 episodes do not fit a third one
    assert np.abs(first.observations[:, :3]).sum() > 0
    assert not first.observations[:, 3:].any()
    # An action of the arm is clipped exploration; the gripper moves by at most 0.05 m for each.
    assert np.abs(first.actions[:, :3]).max() <= 1.0
    assert np.abs(np.diff(first.achieved[:, :3], axis=2)).max() < 0.06
    np.testing.assert_allclose(first.observations[:, :3, :, :3], first.achieved[:, :3], atol=1e-6)


def test_the_oldest_episodes_make_room(three: list) -> None:
    first, second, third = (done.state.buffer.observations for done in three)
    np.testing.assert_array_equal(second[:, :3], first[:, :3])
    np.testing.assert_array_equal(third[:, 3:], second[:, 3:])
    assert (third[:, :3] != first[:, :3]).any()


def test_members_act_by_themselves(three: list) -> None:
    buffer = three[0].state.buffer
    assert (buffer.goals[0, :3] != buffer.goals[1, :3]).all()
    assert (buffer.actions[0, :3] != buffer.actions[1, :3]).any()


def test_tasks_are_mixed(three: list) -> None:
    """Three episodes of two tasks: two on the right, one on the left."""
    for goals in three[1].state.buffer.goals:
        right, left = (task.goal.contains(goals[3:]) for task in GROUP.tasks)
        assert (right.sum(), left.sum()) == (2, 1)


def test_statistics_are_those_of_all_that_was_seen(three: list) -> None:
    buffer = three[1].state.buffer
    for member in (0, 1):
        everything = make_episodes(
            **{name: array[member] for name, array in buffer.arrays().items()}
        )
        expected = normalize.from_episodes(everything)
        found = jax.tree.map(
            lambda leaf, member=member: leaf[member], three[1].state.train.normalizer
        )
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), found, expected
        )


def test_statistics_tell_millimetres_apart() -> None:
    generator = np.random.default_rng(0)
    achieved = 1.0 + 1e-3 * generator.normal(size=(1, 40, 11, 3))
    fresh = Episodes(achieved, achieved, np.zeros((1, 40, 10, 2)), achieved[:, :, 0])
    empty = start(
        [MEMBERS[0]], dataclasses.replace(GROUP.spec, observation_dim=3, horizon=10), SCHEDULE
    ).statistics
    spread = np.asarray(_normalizer(_seen(empty, fresh)).goal_std)
    np.testing.assert_allclose(spread, 1e-3, rtol=0.15)


def test_bounds_of_a_dataset_stay_while_the_normalizer_adapts() -> None:
    shape = Architecture(
        (8,), inputs="bounded-frame", achieved=(0, 1, 2), positions=(), vertical=(2,)
    )
    members = [(dataclasses.replace(MEMBERS[0][0], architecture=shape), 0)]
    fresh = init(members, GROUP.spec)
    bounds = jnp.asarray([[-jnp.inf, -jnp.inf, 0.25]])
    known = dataclasses.replace(fresh.normalizer, lowest=bounds)
    begun = start(members, GROUP.spec, SCHEDULE, dataclasses.replace(fresh, normalizer=known))
    done = next(train_online(members, GROUP.spec, GROUP.family, GROUP.tasks, SCHEDULE, begun))
    found = done.state.train.normalizer
    assert found.observation_mean.any()
    np.testing.assert_array_equal(found.lowest, bounds)
    assert np.isinf(found.highest).all()


def test_the_normalizer_can_stay() -> None:
    fixed = dataclasses.replace(SCHEDULE, adapt_normalizer=False)
    (done,) = rounds(1, schedule=fixed)
    assert not done.state.train.normalizer.observation_mean.any()


def test_only_what_is_filled_is_drawn() -> None:
    """Everything beyond the first two episodes is poison."""
    generator = np.random.default_rng(0)
    shapes = {
        "observations": (2, 6, 50, 10),
        "achieved": (2, 6, 50, 3),
        "actions": (2, 6, 49, 4),
        "goals": (2, 6, 3),
    }
    arrays = {name: generator.normal(size=shape) for name, shape in shapes.items()}
    for array in arrays.values():
        array[:, 2:] = np.nan
    state = init(MEMBERS, GROUP.spec)
    stacked = jax.tree.map(
        lambda *leaves: jnp.stack(leaves), *(algorithm for algorithm, _ in MEMBERS)
    )
    buffer = Episodes(**{name: jnp.float32(array) for name, array in arrays.items()})
    _, metrics = run_chunk(
        stacked, state, seed_keys(MEMBERS, 2), buffer, 2, 64, 0.05, same_rows(len(MEMBERS), 2)
    )
    assert all(np.isfinite(values).all() for values in metrics.values())
    _, metrics = run_chunk(
        stacked, state, seed_keys(MEMBERS, 2), buffer, 2, 64, 0.05, same_rows(len(MEMBERS), 3)
    )
    assert not all(np.isfinite(values).all() for values in metrics.values())


def test_rewards_can_be_minus_one_and_zero() -> None:
    generator = np.random.default_rng(0)
    episodes = make_episodes(
        generator.normal(size=(4, 50, 10)),
        np.zeros((4, 50, 3)),
        generator.uniform(-1, 1, (4, 49, 4)),
        np.zeros((4, 3)),
    )
    state = init(MEMBERS[:1], GROUP.spec)
    zero = {
        name: jax.tree.map(jnp.zeros_like, getattr(state, name)) for name in ("params", "target")
    }
    state = dataclasses.replace(state, **zero)
    stacked = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], MEMBERS[0][0])
    keys, rows = seed_keys(MEMBERS[:1], 2), same_rows(1, 4)
    on_device = jax.tree.map(jnp.asarray, episodes)
    losses = {}
    for offset in (0.0, -1.0):
        _, metrics = run_chunk(stacked, state, keys, on_device, 1, 16, 0.05, rows, offset)
        losses[offset] = float(metrics["value_loss"][0, 0])
    # Every goal is met, all values are 0: the TD error is the reward itself.
    assert losses == {0.0: 1.0, -1.0: 0.0}


def test_a_run_goes_on_exactly_where_it_was_saved(three: list, tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "state.safetensors", three[0].state, {})
    restored = checkpoint.restore(
        tmp_path / "state.safetensors", start(MEMBERS, GROUP.spec, SCHEDULE)
    )
    assert restored.statistics.goals.dtype == np.float64
    second, third = rounds(2, restored)
    same(second.state, three[1].state)
    same(third.state, three[2].state)
    np.testing.assert_array_equal(third.success, three[2].success)


def test_inserting_touches_only_its_place() -> None:
    buffer = Episodes(*(jnp.zeros((1, 4, 2)) for _ in range(4)))
    fresh = Episodes(*(jnp.ones((1, 2, 2)) for _ in range(4)))
    np.testing.assert_array_equal(_insert(buffer, fresh, 2).goals[0, :, 0], [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("change", "message"),
    [({"updates": 5}, "multiple of target_period"), ({"capacity": 2}, "too small for rounds of 3")],
)
def test_impossible_schedules_are_refused(change: dict, message: str) -> None:
    with pytest.raises(GoatError, match=message):
        rounds(1, schedule=dataclasses.replace(SCHEDULE, **change))


def plan(number: int, seed: int = 0) -> OnlinePlan:
    about = {"rounds": number, "seed": seed}
    return OnlinePlan(
        MEMBERS[:1], GROUP, GROUP.tasks, SCHEDULE, number, 2, about, evaluated_episodes=2
    )


def test_a_killed_run_leaves_the_same_files(tmp_path: Path) -> None:
    whole, killed = OnlineRun(tmp_path / "whole"), OnlineRun(tmp_path / "killed")
    reports = list(whole.train(plan(4), checkpoint_seconds=0.0))
    assert [report.round for report in reports] == [0, 1, 2, 3, 4]
    assert [report.evaluated is not None for report in reports] == [True, False, True, False, True]
    start_row = whole.metrics_path.read_text().splitlines()[1].split(",")
    assert start_row == ["0", "0", "0", "", f"{reports[0].evaluated:.4f}", "", "", ""], (
        "the curve starts before the first round"
    )
    for report in killed.train(plan(4), checkpoint_seconds=0.0):
        if report.round == 3:
            break  # as a kill would, after the third round was saved
    killed.metrics_path.write_text(
        killed.metrics_path.read_text() + "4,588,0,0.1"
    )  # half a line of a lost round
    assert killed.rounds() == 3
    assert [report.round for report in killed.train(plan(4))] == [4]
    assert killed.metrics_path.read_text() == whole.metrics_path.read_text()
    for name in ("checkpoint_path", "best_path"):
        whole_state = start(MEMBERS[:1], GROUP.spec, SCHEDULE)
        like = whole_state if name == "checkpoint_path" else whole_state.train
        same(
            checkpoint.restore(getattr(killed, name), like),
            checkpoint.restore(getattr(whole, name), like),
        )
    assert list(whole.train(plan(4))) == []


def test_another_runs_folder_is_refused(tmp_path: Path) -> None:
    OnlineRun(tmp_path).prepare(plan(4))
    OnlineRun(tmp_path).metrics_path.touch()  # something was saved
    OnlineRun(tmp_path).prepare(plan(4))
    with pytest.raises(GoatError, match=r"another configuration \(differs in seed\)"):
        OnlineRun(tmp_path).prepare(plan(4, seed=1))
