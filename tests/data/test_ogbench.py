"""OGBench itself: its environment moves, its reader and ours agree. Its package is optional."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goatrl import data as datasets
from helpers import goat

ogbench_utils = pytest.importorskip("ogbench.utils")


def recorded(path: Path, episodes: int, steps: int) -> None:
    """Episodes of a point maze with OGBench's oracle, kept as its scripts do: the action of the
    last row leads nowhere.
    """
    import gymnasium
    import ogbench.locomaze  # noqa: F401

    rng, rows = np.random.default_rng(0), []
    maze = gymnasium.make(
        "pointmaze-medium-v0", terminate_at_goal=False, max_episode_steps=steps + 1
    )
    world: Any = maze.unwrapped
    for episode in range(episodes):
        seen, _ = maze.reset(seed=episode, options={"task_id": 1 + episode})
        ended = False
        while not ended:
            target, _ = world.get_oracle_subgoal(world.get_xy(), world.cur_goal_xy)
            towards = (target - seen) / (np.linalg.norm(target - seen) + 1e-6)
            action = np.clip(towards + rng.normal(0, 0.2, 2), -1, 1)
            after, _, terminated, truncated, _ = maze.step(action)
            ended = terminated or truncated
            rows.append((seen, action, ended))
            seen = after
    maze.close()
    observations, actions, terminals = (np.array(each) for each in zip(*rows, strict=True))
    np.savez_compressed(
        path,
        observations=observations.astype(np.float32),
        actions=actions.astype(np.float32),
        terminals=terminals,
    )


@pytest.mark.filterwarnings("ignore")  # of an environment that is not ours
def test_both_readers_see_the_same_transitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recorded(Path("maze.npz"), episodes=3, steps=20)
    theirs, ours = ogbench_utils.load_dataset("maze.npz"), datasets.load("maze.npz")
    who, when = ours.steps()
    assert ours.count == 3
    assert len(who) == len(theirs["actions"]) == 60
    for name, mine in {
        "observations": ours.observations[ours.at(who, when)],
        "actions": ours.actions[ours.at(who, when)],
        "next_observations": ours.observations[ours.at(who, when + 1)],
    }.items():
        np.testing.assert_array_equal(mine, theirs[name])
    own = ("--data", "maze.npz", "--goal-threshold", 0.5, "--seeds", 1, "--updates", 20)
    assert goat("train", "bc", *own, "--set", "architecture.hidden=8", "--out", "run") == 0
