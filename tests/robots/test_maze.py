"""OGBench's maze: episodes are those of its own environment, and its rules made the data."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from goatrl import tasks
from goatrl.data import cache, collect
from goatrl.episodes import make_episodes
from goatrl.robots.maze import MEDIUM, Points, make_world
from goatrl.robots.ogbench import held_at_goal
from goatrl.tasks import ogbench
from goatrl.tasks.ogbench import CORRIDOR, EVALUATED, OPEN, ROOM, SEEN, Cells, Navigation
from goatrl.types import GoatError, reached

needs_library = pytest.mark.skipif(
    importlib.util.find_spec("ogbench") is None, reason="needs the extra ogbench"
)


def test_an_episode_ends_where_its_goal_is_first_reached() -> None:
    """Goal 0 within 1: reached at the start, which does not count, and at steps 2 and 4; never."""
    paths = np.array([[[0.0], [2.0], [1.0], [3.0], [0.5]], [[9.0], [8.0], [7.0], [6.0], [5.0]]])
    held = held_at_goal(paths[None], np.zeros((2, 1)), 1.0)
    assert held[0, :, :, 0].tolist() == [[0.0, 2.0, 1.0, 1.0, 1.0], [9.0, 8.0, 7.0, 6.0, 5.0]]


def test_cells_are_where_they_are_drawn() -> None:
    assert ogbench.centres(np.array([[1, 1], [6, 2]])).tolist() == [[0.0, 0.0], [4.0, 20.0]]
    drawn = Cells(ROOM).sample(np.random.default_rng(0), 200)
    assert Cells(ROOM).contains(drawn).all()
    assert not Cells((*SEEN, *CORRIDOR)).contains(drawn).any()
    away = np.abs(drawn[:, None] - ogbench.centres(np.array(ROOM))).max(axis=-1).min(axis=-1)
    assert away.max() <= 1.0 < away.max() + 0.1


def test_what_lies_outside_is_cut_out() -> None:
    """Steps at negative places are left out, and single ones that no action leaves or reaches."""
    path = [
        [[3.0], [1.0], [-1.0], [2.0], [-2.0], [4.0], [5.0]],
        [[1.0], [2.0], [3.0]] + [[-1.0]] * 4,
    ]
    actions = [[[10.0 * row + step] for step in range(6)] for row in range(2)]
    whole = make_episodes(path, path, actions, [[0.0], [0.0]])

    @dataclasses.dataclass
    class Positive:
        def sample(self, generator: np.random.Generator, count: int) -> np.ndarray:
            raise NotImplementedError

        def contains(self, points: np.ndarray) -> np.ndarray:
            return np.asarray(points[..., 0] > 0)

    left = collect.cut(whole, Positive())
    assert np.asarray(left.lengths).tolist() == [1, 1, 2]
    assert [each[:, 0].tolist() for each in left.paths()] == [[3, 1], [4, 5], [1, 2, 3]]
    episode, step = left.steps()
    assert np.asarray(left.actions)[left.at(episode, step)][:, 0].tolist() == [0, 5, 10, 11]
    assert np.asarray(left.goals)[:, 0].tolist() == [1, 5, 3]
    with pytest.raises(GoatError, match="nothing of the dataset"):
        collect.cut(make_episodes(*[[[[-1.0], [-1.0]]]] * 2, [[[0.0]]], [[0.0]]), Positive())


@needs_library
def test_the_maze_and_its_tasks_are_ogbenchs() -> None:
    world = make_world("medium")
    assert {tuple(cell) for cell in np.argwhere(world.maze_map == 0)} == set(OPEN)
    assert [(info["init_ij"], info["goal_ij"]) for info in world.task_infos] == list(EVALUATED)
    assert world.ij_to_xy((6, 2)) == tuple(ogbench.centres(np.array([6, 2])))
    spread = np.array([world.add_noise((0.0, 0.0)) for _ in range(500)])
    assert 0.95 < np.abs(spread).max() <= ogbench.SPREAD
    assert MEDIUM.spec.goal_threshold == world._goal_tol


@needs_library
def test_points_move_as_in_ogbenchs_environment() -> None:
    """Into walls and along them, several at once, with its own flag for success."""
    generator = np.random.default_rng(0)
    starts = Cells(OPEN).sample(generator, 3)
    goals = starts + 2.0
    actions = generator.uniform(-1.5, 1.5, (60, 3, 2))
    taken = iter(actions)
    moved = Points(make_world("medium"), 3).rollout(starts, lambda seen: next(taken), 60).achieved
    for number, (start, goal) in enumerate(zip(starts, goals, strict=True)):
        alone = make_world("medium")
        alone.reset(options={"task_info": {"init_ij": (1, 1), "goal_ij": (1, 1)}})
        alone.set_goal(goal_xy=goal)
        alone.set_xy(start)
        for step, action in enumerate(actions[:, number], start=1):
            seen, *_, info = alone.step(np.clip(action, -1.0, 1.0))
            np.testing.assert_allclose(moved[number, step], seen, atol=1e-9)
            assert reached(seen, goal, 1.0) == bool(info["success"])


@needs_library
def test_a_recording_is_decided_by_seed_and_number() -> None:
    short = Navigation(steps=300, lot=2)
    first = short.record(0, 0)
    assert first.checksum() == short.record(0, 0).checksum() != short.record(0, 1).checksum()
    assert first.checksum() != short.record(1, 0).checksum()
    places = np.asarray(first.achieved)
    assert Cells(OPEN).contains(places).all()
    # It walks: at 0.2 a step, less for noise, it comes a few cells far.
    assert np.linalg.norm(places - places[:, :1], axis=-1).max(axis=-1).min() > ogbench.UNIT


@needs_library
def test_a_recording_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    recording = Navigation(episodes=5, steps=20, lot=2)
    group = dataclasses.replace(ogbench.NAVIGATE, recording=recording)
    whole = cache.make(group)
    assert (whole.count, whole.horizon) == (5, 20)
    partial, seen = tmp_path / "partial.npz", []

    def stop(kept: int, count: int, simulated: int) -> None:
        seen.append(kept)
        if kept == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.make(group, partial=partial, on_progress=stop, save_seconds=0.0)
    resumed: list[int] = []
    again = cache.make(
        group, partial=partial, on_progress=lambda kept, *_: resumed.append(kept), save_seconds=0.0
    )
    assert (seen, resumed[0]) == ([0, 2, 4], 2)
    assert again.checksum() == whole.checksum()


@needs_library
def test_the_dataset_of_the_split_is_cut_from_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    whole = dataclasses.replace(ogbench.NAVIGATE, recording=Navigation(2, 600, lot=2))
    split = dataclasses.replace(ogbench.SPLIT, cut_from=whole)
    with pytest.raises(GoatError, match="goat data make ogbench-pointmaze`"):
        cache.of_group(split)
    cache.make_cached(whole)
    left = cache.of_group(split)
    assert left.checksum() == cache.make(split).checksum()
    assert Cells(SEEN).contains(np.concatenate(left.paths())).all()
    assert len(left.steps()[0]) < len(cache.of_group(whole).steps()[0])


def test_the_split_shows_neither_the_room_nor_the_corridor() -> None:
    group = tasks.get("ogbench-pointmaze-ood")
    assert sorted((*SEEN, *ROOM, *CORRIDOR)) == sorted(OPEN)
    for task in group.tasks:
        starts, goals = task.evaluation()
        assert group.iid.contains(starts).all()
        assert group.iid.contains(goals).all() == (task.split == "iid")
        assert group.iid.contains(goals).any() == (task.split == "iid")
