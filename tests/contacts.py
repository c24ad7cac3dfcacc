"""Trajectories with many contacts, for tests that compare simulations."""

from __future__ import annotations

import numpy as np

from goatrl import tasks
from goatrl.robots.physics.simulator import Simulator

GROUPS = {group.family.name: group for group in tasks.robots()}  # the last group of each robot
ROBOTS = tuple(GROUPS)
STEPS = 50
APPROACH = 15


def simulator_of(robot: str, count: int, threads: int | None = None) -> Simulator:
    return GROUPS[robot].family.simulator(count, threads)


def starts_of(robot: str, count: int, seed: int = 0) -> np.ndarray:
    return GROUPS[robot].tasks[0].draw(seed, count)[0]


def contact_rich(
    simulator: Simulator, starts: np.ndarray, seed: int = 0, actions: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Actions that go to the object, grip it, then move at random (or given ones); observations and
    achieved goals they lead to.
    """
    made = actions is None
    if actions is None:
        dimension = GROUPS[simulator.robot.name].spec.action_dim
        actions = np.random.default_rng(seed).uniform(-1, 1, (STEPS, len(starts), dimension))
    observations, achieved = [], []
    seen, reached = simulator.reset(starts)
    for step in range(len(actions)):
        observations.append(seen)
        achieved.append(reached)
        if made and simulator.robot.start_dim:
            actions[step, :, 3] = 1.0 if step < APPROACH else -1.0
            if step < APPROACH:
                actions[step, :, :3] = np.clip(10 * (seen[:, 3:6] - seen[:, :3]), -1, 1)
        seen, reached = simulator.step(actions[step])
    return actions, np.stack([*observations, seen]), np.stack([*achieved, reached])
