"""How far the last digits of actions decide where episodes end: the expert acts twice from the same
starts towards the same goals, the second time with tiny noise on its actions. Prints how far the
ends of an episode lie apart, and in which share of them success changes. No episode is one of an
evaluation.

    python docs/last_digits.py reach-left-right push-left-right pick-left-right slide-left-right
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from goatrl import tasks
from goatrl.data import experts
from goatrl.tasks import TaskGroup, draw_mix
from goatrl.types import distance, reached

EPISODES = 200
SEED = (78,)  # of the episodes; evaluation has another
NOISE = 1e-6


def ends(group: TaskGroup, starts: np.ndarray, goals: np.ndarray, noise: float) -> np.ndarray:
    """What the expert has achieved in the end: (N, goal_dim)."""
    expert, generator = experts.get(group.family), np.random.default_rng(0)
    with group.family.simulator(len(starts)) as simulator:
        observations, achieved = simulator.reset(starts)
        for _ in range(group.spec.horizon):
            actions = expert.act(observations.astype(np.float64), goals)
            moved = actions + noise * generator.standard_normal(actions.shape)
            observations, achieved = simulator.step(np.clip(moved, -1.0, 1.0))
    return np.array(achieved)


def compare(group: TaskGroup, episodes: int, noise: float) -> dict[str, float]:
    """Median and upper quartile of the distance between both ends, in units of the threshold, and
    the share of episodes whose success differs.
    """
    shown = [task for task in group.tasks if task.split == "iid"]
    starts, goals = draw_mix(shown, SEED, episodes)
    threshold = group.spec.goal_threshold
    once, again = (ends(group, starts, goals, each) for each in (0.0, noise))
    apart = distance(once, again) / threshold
    differ = reached(once, goals, threshold) != reached(again, goals, threshold)
    return {
        "median": float(np.median(apart)),
        "upper quartile": float(np.quantile(apart, 0.75)),
        "success differs": float(differ.mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("groups", nargs="+", help="groups of robots")
    for name in parser.parse_args().groups:
        found = compare(tasks.get(name), EPISODES, NOISE)
        rounded = {what: float(f"{number:.2g}") for what, number in found.items()}
        print(json.dumps({"group": name, **rounded}), flush=True)


if __name__ == "__main__":
    main()
