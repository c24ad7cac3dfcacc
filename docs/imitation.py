"""How far from the expert's action agents are, on episodes that they were not trained on, by where
the object is: the squared error of each of the action's numbers, and how long their action is along
the expert's (1 is as long). No task is run and no evaluation goal is used. Each --set is an agent.

    python docs/imitation.py pick-low-high --inputs absolute goal-frame upright-frame
    python docs/imitation.py hand-near-far --set hindsight.probability=0.5 \\
        --set hindsight.probability=0.5 weighted_bc.loss=distance
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import sys

import numpy as np

import goatrl
from goatrl import tasks
from goatrl.data import experts
from goatrl.data.problems import Problem

HELD_OUT, SEEN = 0.1, 400  # share of the episodes, and how many of them are looked at
FEWEST = 50  # states of a situation
MOVED = 1e-3  # metres
LIFTED = 0.03


def parted(problem: Problem) -> tuple[Problem, np.ndarray]:
    """The problem without some episodes, and these."""
    episodes = problem.episodes
    order = np.random.default_rng(0).permutation(episodes.count)
    first = int(HELD_OUT * episodes.count)
    kept = np.sort(order[first:])
    rest = dataclasses.replace(problem, episodes=episodes.only(kept))
    return rest, order[:first][:SEEN]


def places(
    achieved: np.ndarray, goals: np.ndarray, threshold: float, fewest: int = FEWEST
) -> dict[str, np.ndarray]:
    """Which states belong to which situation: (N, T, 3), (N, T, 3) → name → (N · T,). Where more
    than an object's place is achieved, there is one situation alone.
    """
    if achieved.shape[-1] > 3:
        return {"all": np.ones(achieved.shape[:2], bool).reshape(-1)}
    at = np.linalg.norm(achieved - goals, axis=-1) < threshold
    untouched = np.linalg.norm(achieved - achieved[:, :1], axis=-1) < MOVED
    lifted = achieved[..., 2] > achieved[:, :1, 2] + LIFTED
    found = {
        "all": np.ones_like(at),
        "object untouched, away from its goal": untouched & ~at,
        "object moved, away from its goal": ~untouched & ~at,
        "object at its goal, lying": at & ~lifted,
        "object at its goal, lifted": at & lifted,
    }
    return {name: rows.reshape(-1) for name, rows in found.items() if rows.sum() >= fewest}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("group", help="a group of robots, whose dataset is made")
    parser.add_argument("--algorithm", default="wgcsl")
    parser.add_argument("--updates", type=int, default=4_000)
    parser.add_argument("--inputs", nargs="+", default=["absolute"])
    parser.add_argument("--set", nargs="+", action="append", metavar="NAME=VALUE")
    chosen = parser.parse_args()

    problem = goatrl.load_dataset(chosen.group)
    rest, held_out = parted(problem)
    whole = problem.episodes
    observations, achieved = (
        np.asarray(each)[held_out][:, :-1] for each in (whole.observations, whole.achieved)
    )
    goals = np.repeat(np.asarray(whole.goals)[held_out][:, None], achieved.shape[1], axis=1)
    situations = places(achieved, goals, problem.spec.goal_threshold)
    seen, wanted = (each.reshape(-1, each.shape[-1]) for each in (observations, goals))
    right = experts.get(tasks.get(chosen.group).family).act(seen.astype(np.float64), wanted)
    for inputs, numbers in itertools.product(chosen.inputs, chosen.set or [[]]):
        agents = goatrl.train(
            chosen.algorithm,
            rest,
            seeds=1,
            updates=chosen.updates,
            inputs=inputs,
            set=dict(each.split("=") for each in numbers),
        )
        action = agents.policy(0)(seen, wanted)
        error, along = (action - right) ** 2, action * right
        found = {
            name: {
                "states": int(rows.sum()),
                "squared error": round(float(error[rows].mean()), 4),
                "of each number": np.round(error[rows].mean(0), 3).tolist(),
                "length": round(float(along[rows].sum() / (right[rows] ** 2).sum()), 2),
            }
            for name, rows in situations.items()
        }
        print(json.dumps({"inputs": inputs, "set": numbers, "by situation": found}))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
