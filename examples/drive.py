"""An exported policy in a Gymnasium environment. It imports neither JAX nor goatrl.

goat export runs/mirror --format numpy --out policy.py
python examples/drive.py policy.py mazes:Lower-v0 --horizon 149
python examples/drive.py policy.py gymnasium_robotics:PointMaze_UMaze-v3 --horizon 149
  --environment-args '{"continuing_task": false}'

Starts and goals are those of `goat evaluate`, and so is success: the goal within --goal-threshold
at the last step, or without one the environment's own flag. Actions are in the units of the data
that the policy learned from, and so should be the environment's. A policy.onnx runs the same way;
it needs onnxruntime.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np

from robot_side import Policy, load

FIRST_SEED = 1_000_000  # of `goat evaluate`


def drive(
    act: Policy, world: gymnasium.Env, seed: int, horizon: int, threshold: float | None
) -> tuple[bool, list[float]]:
    """One episode. Returns whether it ended at its goal, and how long each action took, in
    seconds.
    """
    seen, info = world.reset(seed=seed)
    goal, took = seen["desired_goal"], []
    for _ in range(horizon):
        begin = time.perf_counter()
        action = act(seen["observation"], goal)
        took.append(time.perf_counter() - begin)
        action = np.clip(action, world.action_space.low, world.action_space.high)
        seen, _, terminated, truncated, info = world.step(action)
        if terminated or truncated:
            break
    if threshold is not None:
        return bool(np.linalg.norm(seen["achieved_goal"] - goal) <= threshold), took
    return bool(info["success"] if "success" in info else info["is_success"]), took


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(description="Drive a robot with an exported policy.")
    parser.add_argument("policy", type=Path)
    parser.add_argument("environment", help="ID, or MODULE:ID to import the module first")
    parser.add_argument("--environment-args", type=json.loads, default={}, metavar="JSON")
    parser.add_argument("--horizon", type=int, required=True, help="the most actions of an episode")
    parser.add_argument("--goal-threshold", type=float)
    parser.add_argument("--episodes", type=int, default=100)
    given = parser.parse_args(arguments)

    sys.path.append(".")  # where the module may be
    world = gymnasium.make(given.environment, disable_env_checker=True, **given.environment_args)
    act = load(given.policy)
    reached, times = 0, []
    for episode in range(given.episodes):
        seed = FIRST_SEED + episode
        success, took = drive(act, world, seed, given.horizon, given.goal_threshold)
        reached += success
        times += took
    world.close()
    median = 1e3 * np.median(times)
    print(f"{reached} of {given.episodes} goals reached; an action took {median:.3f} ms")


if __name__ == "__main__":
    main(*sys.argv[1:])
