"""A robot's control loop with an exported policy. It imports neither JAX nor goatrl.

goat export runs/goat --format numpy --out policy.py
python examples/robot_side.py policy.py

The robot is a point here, that of PointReach. Replace `Point` by what reads your sensors and moves
your motors. A policy.onnx runs the same way; it needs onnxruntime.
"""

import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

Policy = Callable[[np.ndarray, np.ndarray], np.ndarray]
PERIOD = 0.02  # seconds from one action to the next


class Point:
    """It moves by its action, at most 1 along each axis."""

    def __init__(self) -> None:
        self.position = np.zeros(2)

    def observe(self) -> np.ndarray:
        return self.position

    def move(self, action: np.ndarray) -> None:
        self.position = self.position + action

    def stop(self) -> None:
        """Hold the motors, however the loop ended."""


def load(path: Path) -> Policy:
    """act(observation, goal) → action, for one pair."""
    if path.suffix == ".onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(path)

        def act(observation: np.ndarray, goal: np.ndarray) -> np.ndarray:
            pair = {"observation": np.float32(observation)[None], "goal": np.float32(goal)[None]}
            return session.run(["action"], pair)[0][0]

        return act
    spec = importlib.util.spec_from_file_location("policy", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.act


def control(act: Policy, robot: Point, goal: np.ndarray, steps: int, period: float) -> float:
    """Drive the robot for some steps. Returns the longest time that the policy took, in seconds."""
    longest = 0.0
    try:
        for _ in range(steps):
            begin = time.perf_counter()
            action = act(robot.observe(), goal)
            took = time.perf_counter() - begin
            if not np.isfinite(action).all():
                raise RuntimeError("the policy returned no number: is a sensor missing?")
            robot.move(np.clip(action, -1.0, 1.0))
            longest = max(longest, took)
            time.sleep(max(period - took, 0.0))
    finally:
        robot.stop()
    return longest


def main(path: str, period: float = PERIOD) -> None:
    robot, goal = Point(), np.array([6.0, 8.0])
    longest = control(load(Path(path)), robot, goal, steps=49, period=period)
    distance = np.linalg.norm(robot.position - goal)
    print(f"{distance:.2f} from the goal; the slowest action took {1e3 * longest:.2f} ms")


if __name__ == "__main__":
    main(sys.argv[1])
