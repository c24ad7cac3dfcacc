"""Whether critics know where a goal is: on PointReach, how often the action straight towards a goal
is worth more to them than the one straight away from it, and the mean cosine between the policy's
action and the former. States are those of the data, goals what the same episode achieves 3 to 10
steps later and has not met yet.

    python docs/directions.py wgcsl gciql smore --group pointreach-non-expert-10
"""

from __future__ import annotations

import argparse
import json

import jax
import jax.numpy as jnp
import numpy as np

import goatrl
from goatrl import algorithms
from goatrl.training import offline
from goatrl.types import Episodes

STATES = 4_000


def pairs(episodes: Episodes, count: int, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """States and goals a few steps ahead of them, not met yet: (N, 2) each."""
    rng = np.random.default_rng(0)
    achieved = np.asarray(episodes.achieved)
    episode = rng.integers(len(achieved), size=count)
    step = rng.integers(achieved.shape[1] - 10, size=count)
    later = step + rng.integers(3, 10, size=count, endpoint=True)
    states, goals = achieved[episode, step], achieved[episode, later]
    ahead = np.linalg.norm(states - goals, axis=1) > threshold
    return states[ahead], goals[ahead]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("algorithms", nargs="+", help="algorithms with a critic Q(s, a, g)")
    parser.add_argument("--group", default="pointreach-non-expert-10")
    parser.add_argument("--updates", type=int)
    chosen = parser.parse_args()

    problem = goatrl.load_dataset(chosen.group)
    states, goals = pairs(problem.episodes, STATES, problem.spec.goal_threshold)
    towards = (goals - states) / np.linalg.norm(goals - states, axis=1, keepdims=True)
    for name in chosen.algorithms:
        algorithm = algorithms.get(name).build(problem.settings)
        updates = chosen.updates or problem.settings.updates
        *_, last = offline.train(
            [(algorithm, 0)],
            problem.spec,
            problem.episodes,
            updates=updates,
            batch_size=problem.settings.batch_size,
            interval=updates,
        )
        state = jax.tree.map(lambda leaf: leaf[0], last.state)
        at = state.normalizer.observation(jnp.asarray(states))
        to = state.normalizer.goal(jnp.asarray(goals))
        near, far = (
            algorithm.value.values(state.params["value"], at, to, jnp.asarray(action)).mean(axis=0)
            for action in (towards, -towards)
        )
        act = np.asarray(algorithm.act(state, at, to))
        cosine = (act * towards).sum(axis=1) / np.maximum(np.linalg.norm(act, axis=1), 1e-6)
        found = {"towards is worth more": (near > far).mean(), "cosine": cosine.mean()}
        rounded = {what: round(float(number), 2) for what, number in found.items()}
        print(json.dumps({"algorithm": name, **rounded}), flush=True)


if __name__ == "__main__":
    main()
