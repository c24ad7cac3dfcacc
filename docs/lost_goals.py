"""What an agent's critic promises for goals that an object is moving towards, and for goals that it
has passed for good, beside what the data says, on episodes that were not trained on.

    python docs/lost_goals.py slide-near-far --set hindsight.probability=1
    python docs/lost_goals.py slide-near-far --set hindsight.probability=1 hindsight.passed=0.3
"""

from __future__ import annotations

import argparse
import json

import jax
import jax.numpy as jnp
import numpy as np

import goatrl
from goatrl import algorithms
from goatrl.learn.parameters import override
from goatrl.training import offline
from imitation import parted

FAR = 0.1  # metres from the start, so that a goal lies on the object's way
NEAR = 0.15  # at most from the object, so that all are as far
LEFT = 6  # steps after which an object that only passed is gone


def situations(achieved: np.ndarray, threshold: float) -> dict[str, list[tuple[int, int]]]:
    """Steps of one episode with others whose places are goals, by what becomes of them:
    (T + 1, d) → name → [(step, step of the goal), …].
    """
    distance = np.linalg.norm(achieved[:, None] - achieved[None], axis=-1)
    last = len(achieved) - 1
    found: dict[str, list[tuple[int, int]]] = {"stops there": [], "passes": [], "has passed": []}
    for goal in range(last + 1):
        if distance[0, goal] <= FAR:
            continue
        for step in range(last):
            if not threshold < distance[step, goal] < NEAR:
                continue
            if goal > step and (distance[goal:, goal] < threshold).all():
                found["stops there"].append((step, goal))
            elif goal > step and (distance[goal + LEFT :, goal] > threshold).all():
                if goal + LEFT <= last:
                    found["passes"].append((step, goal))
            elif goal < step and (distance[step:, goal] > threshold).all():
                found["has passed"].append((step, goal))
    return found


def returns(achieved: np.ndarray, pairs: np.ndarray, threshold: float, discount: float) -> float:
    """The mean discounted return of the data from some steps of an episode to some goals of it."""
    total = 0.0
    for step, goal in pairs:
        met = np.linalg.norm(achieved[step + 1 :] - achieved[goal], axis=-1) < threshold
        total += float((discount ** np.arange(len(met)) * met).sum())
    return total / len(pairs)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("group", help="a group with an object, whose dataset is made")
    parser.add_argument("--algorithm", default="wgcsl", help="one with a value part")
    parser.add_argument("--updates", type=int, default=15_000)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    chosen = parser.parse_args()

    problem = goatrl.load_dataset(chosen.group)
    rest, held_out = parted(problem)
    threshold = problem.spec.goal_threshold
    algorithm = override(
        algorithms.get(chosen.algorithm).build(problem.settings),
        dict(each.split("=") for each in chosen.set),
    )
    *_, last = offline.train(
        [(algorithm, 0)],
        rest.spec,
        rest.episodes,
        updates=chosen.updates,
        batch_size=problem.settings.batch_size,
        interval=chosen.updates,
    )
    state = jax.tree.map(lambda leaf: leaf[0], last.state)
    rng = np.random.default_rng(0)
    seen: dict[str, list[tuple[np.ndarray, np.ndarray, float]]] = {}
    for episode in held_out:
        observations, achieved = (
            np.asarray(each[episode])
            for each in (problem.episodes.observations, problem.episodes.achieved)
        )
        for name, pairs in situations(achieved, threshold).items():
            if pairs:
                pair = pairs[rng.integers(len(pairs))]  # one each: those of an episode are alike
                there = returns(achieved, np.asarray([pair]), threshold, algorithm.discount)
                row = observations[pair[0]], achieved[pair[1]], there
                seen.setdefault(name, []).append(row)
    for name, rows in seen.items():
        observation, goal, data = map(np.asarray, zip(*rows, strict=True))
        at = state.normalizer.observation(jnp.asarray(observation))
        to = state.normalizer.goal(jnp.asarray(goal))
        action = algorithm.act(state, at, to)
        value = algorithm.value.values(state.params["value"], at, to, action).mean()
        about = {"states": len(rows), "value": round(float(value), 1)}
        print(json.dumps({"the object": name, **about, "data": round(float(data.mean()), 1)}))


if __name__ == "__main__":
    main()
