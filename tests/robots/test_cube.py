"""OGBench's cube: episodes are those of its own environment, and its rules made the data."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goatrl import tasks
from goatrl.data import cache
from goatrl.robots import cube
from goatrl.robots.cube import CUBE, GRIPPER, SINGLE, Cubes, drawing_from, make_world
from goatrl.tasks import ogbench
from goatrl.tasks.ogbench import CARRIED, Play
from goatrl.types import GoatError, reached

needs_library = pytest.mark.skipif(
    importlib.util.find_spec("ogbench") is None, reason="needs the extra ogbench"
)


class Scripted:
    """Draws what it is told, whatever is asked for."""

    def __init__(self, *numbers: Any) -> None:
        self.numbers = iter(numbers)

    def uniform(self, low: Any, high: Any, size: Any = None) -> Any:
        return next(self.numbers)

    def permutation(self, count: int) -> np.ndarray:
        return np.arange(count)


def ogbenchs(number: int, start: np.ndarray) -> tuple[Any, np.ndarray]:
    """OGBench's environment at the start of its task with this number, and what it shows there."""
    from ogbench.manipspace.envs.cube_env import CubeEnv

    world = CubeEnv("single", use_oracle_rep=True)
    away = start[4:6] - np.array(CARRIED[number - 1][0])
    goal_pose = np.array([0.4, 0.1, 0.25]), 0.3  # of the gripper, where its goal is shown
    world.np_random = Scripted(*goal_pose, start[:3], start[3], away, start[6])
    seen, info = world.reset(options={"task_id": number})
    goal = ogbench.PLAY.tasks[number - 1].goal.sample(np.random.default_rng(0), 1)[0]
    # Its goal was shown after two steps, in which the cube sinks by 0.04 mm.
    np.testing.assert_allclose(info["goal"], goal, atol=1e-3)
    return world, seen


def grasping(seen: np.ndarray, step: int, goal: np.ndarray) -> np.ndarray:
    """Actions that take the cube and carry it towards a goal: (N, 28) → (N, 5)."""
    gripper, place = seen[:, list(GRIPPER)], seen[:, list(CUBE)]
    towards = (place if step < 25 else goal) - gripper
    closing = np.full((len(seen), 1), -1.0 if step < 20 else 1.0)
    return np.concatenate([2.0 * towards, 0.0 * closing, closing], axis=-1)


@needs_library
@pytest.mark.filterwarnings("ignore")  # of an environment that is not ours
def test_the_cube_moves_as_in_ogbenchs_tasks() -> None:
    """From the start of an episode on, several at once, with its own flag for success."""
    starts = np.stack([ogbench.PLAY.tasks[task].draw(0, 1)[0][0] for task in range(2)])
    goals = np.stack([ogbench.PLAY.tasks[task].draw(0, 1)[1][0] for task in range(2)])
    steps, taken = iter(range(60)), Cubes(make_world(), 2)
    moved = taken.rollout(starts, lambda seen: grasping(seen, next(steps), goals), 60)
    met = []
    for row, start in enumerate(starts):
        alone, seen = ogbenchs(row + 1, start)
        np.testing.assert_array_equal(moved.observations[row, 0], seen)
        for step, action in enumerate(moved.actions[row], start=1):
            seen, *_, info = alone.step(np.clip(action, -1.0, 1.0))
            np.testing.assert_array_equal(moved.observations[row, step], seen)
            np.testing.assert_array_equal(
                moved.achieved[row, step], alone.compute_oracle_observation()
            )
            met.append(bool(info["success"]))
            assert reached(moved.achieved[row, step], goals[row], 0.4) == met[-1]
    assert set(met) == {True, False}  # it was carried there
    np.testing.assert_allclose(SINGLE.initial(starts), moved.achieved[:, 0], atol=1e-12)


@needs_library
def test_an_episode_is_decided_by_its_start() -> None:
    """Whatever was simulated before, in whichever company; and it leaves no trace."""
    starts = ogbench.SIDE.tasks[0].draw(1, 3)[0]
    actions = np.random.default_rng(0).uniform(-1.5, 1.5, (5, 3, 5))
    world = make_world()
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    with Cubes(world, 3) as together:
        first = together.rollout(starts, iter_of(actions), 5).observations
        again = together.rollout(starts, iter_of(actions), 5).observations
    alone = Cubes(world, 1).rollout(starts[2:], iter_of(actions[:, 2:]), 5).observations
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first[2:], alone)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def iter_of(actions: np.ndarray) -> Any:
    each = iter(actions)
    return lambda seen: next(each)


@needs_library
@pytest.mark.filterwarnings("ignore")  # of an environment that is not ours
def test_tasks_and_bounds_are_ogbenchs() -> None:
    import gymnasium
    from ogbench.manipspace.envs.cube_env import CubeEnv

    world = CubeEnv("single")
    for task, info, (start, goal) in zip(
        ogbench.PLAY.tasks, world.task_infos, CARRIED, strict=True
    ):
        assert info["init_xyzs"].tolist() == [[*start, cube.HEIGHT]]
        assert info["goal_xyzs"].tolist() == [[*goal, cube.HEIGHT]]
        starts, goals = task.evaluation()
        assert len(starts) == 50
        away = np.abs(starts[:, 4:6] - np.array(start)).max(axis=0)
        assert ((away > 0.008) & (away <= 0.01)).all()
        np.testing.assert_allclose(
            goals / 10.0 + [0.425, 0.0, 0.0], info["goal_xyzs"].repeat(50, 0)
        )
    np.testing.assert_array_equal(world._arm_sampling_bounds, ogbench.GRIPPERS)
    np.testing.assert_array_equal(world._object_sampling_bounds, ogbench.TABLE)
    np.testing.assert_array_equal(world._target_sampling_bounds, ogbench.TABLE)
    assert gymnasium.spec("cube-single-v0").max_episode_steps == SINGLE.spec.horizon
    assert world.action_space.shape == (SINGLE.spec.action_dim,)


@needs_library
def test_a_recording_is_decided_by_seed_and_number() -> None:
    short = Play(steps=100, lot=2)
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    first = short.record(0, 0)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    assert first.checksum() == short.record(0, 0).checksum() != short.record(0, 1).checksum()
    assert first.checksum() != short.record(1, 0).checksum()
    observations, places = np.asarray(first.observations), np.asarray(first.achieved)
    assert (observations.shape, places.shape) == ((2, 101, 28), (2, 101, 3))
    assert SINGLE.layout is not None
    np.testing.assert_array_equal(observations[..., list(SINGLE.layout.achieved)], places)
    assert np.abs(np.asarray(first.actions)).max() <= 1.0
    # A plan takes less than 100 steps. The first one carried its cube.
    assert places[0, :, 2].max() > 1.0
    assert np.linalg.norm(places[0, -1, :2] - places[0, 0, :2]) > 0.4


def test_global_numbers_go_on_as_before() -> None:
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    drawn: list[float] = []

    def draw_and_stop(seed: int) -> None:
        with drawing_from(np.random.default_rng(seed)):
            drawn.append(np.random.uniform())  # noqa: NPY002
            raise KeyboardInterrupt

    for seed in (0, 0, 1):
        with pytest.raises(KeyboardInterrupt):
            draw_and_stop(seed)
    assert drawn[0] == drawn[1] != drawn[2]
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@needs_library
def test_the_dataset_of_the_split_is_cut_from_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    whole = dataclasses.replace(ogbench.PLAY, recording=Play(2, 150, lot=2))
    split = dataclasses.replace(ogbench.SIDE, cut_from=whole)
    with pytest.raises(GoatError, match="goat data make ogbench-cube`"):
        cache.of_group(split)
    cache.make_cached(whole)
    left, all_of_it = cache.of_group(split), cache.of_group(whole)
    assert np.concatenate(left.paths())[:, 1].max() <= 1.0 + 1e-6
    assert np.concatenate(all_of_it.paths())[:, 1].max() > 1.0
    assert len(left.steps()[0]) < len(all_of_it.steps()[0])


def test_no_unseen_goal_is_reached_from_where_the_data_was() -> None:
    group = tasks.get("ogbench-cube-ood")
    for task in group.tasks:
        starts, goals = task.evaluation()
        assert group.iid.contains(group.family.initial(starts)).all()
        nearest = np.maximum(goals[:, 1] - 1.0, 0.0)  # distance to the seen side
        assert (nearest >= 0.4).all() if task.split == "ood" else (nearest == 0.0).all()
    assert group.iid.contains(np.array([[9.0, -9.0, 3.0], [0.0, 1.01, 0.2]])).tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize("package", ["ogbench", "dm_control"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] == "ogbench":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(GoatError, match=r"^the cube needs the package ogbench: run `pip install"):
        make_world()
