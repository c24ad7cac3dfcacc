"""An exported policy in a maze. It imports neither JAX nor goatrl.

goat export runs/mirror --format numpy --out policy.py
python examples/maze_robot.py policy.py mazes:Lower-v0 149

docs/maze.md has the mazes; 149 is the most actions of an episode. Starts and goals are those of
`goat evaluate`. A policy.onnx runs the same way; it needs onnxruntime.
"""

import sys
import time
from pathlib import Path

import gymnasium
import numpy as np

from robot_side import Policy, load

FIRST_SEED = 1_000_000  # of `goat evaluate`


def drive(act: Policy, maze: gymnasium.Env, seed: int, steps: int) -> tuple[bool, list[float]]:
    """One episode. Returns whether it ended at its goal, and how long each action took, in
    seconds.
    """
    seen, info = maze.reset(seed=seed)
    took = []
    for _ in range(steps):
        begin = time.perf_counter()
        action = act(seen["observation"], seen["desired_goal"])
        took.append(time.perf_counter() - begin)
        seen, _, terminated, truncated, info = maze.step(action)
        if terminated or truncated:
            break
    return bool(info["success"]), took


def main(path: str, name: str, steps: int, episodes: int = 100) -> None:
    sys.path.append(".")  # where mazes.py is
    maze = gymnasium.make(name, continuing_task=False)
    act = load(Path(path))
    reached, times = 0, []
    for episode in range(episodes):
        success, took = drive(act, maze, FIRST_SEED + episode, steps)
        reached += success
        times += took
    maze.close()
    print(f"{reached} of {episodes} goals reached; an action took {1e3 * np.median(times):.3f} ms")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
