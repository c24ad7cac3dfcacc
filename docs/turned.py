"""Where a puck ends if an episode is played through a symmetry: the expert's actions, each seen
through a map, from a start that is seen through it too. Prints how far from where the map says, in
centimetres. No agent is involved, and no episode is one of an evaluation.

    python docs/turned.py slide-left-right --angles 0.1 0.2 0.4 0.8
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from goatrl import tasks
from goatrl.data import experts
from goatrl.learn import symmetry
from goatrl.learn.symmetry import Map
from goatrl.robots.fetch import FetchFamily
from goatrl.tasks import draw_mix

EPISODES = 200
SEED = (78,)  # of the episodes; evaluation has another
OBJECT = [3, 4]  # where it is on the table


def by_expert(family: FetchFamily, starts: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, ...]:
    """Observations and actions: (T + 1, N, ·), (T, N, ·)."""
    expert, seen, actions = experts.get(family), [], []
    with family.simulator(len(starts), 1) as simulator:
        seen.append(simulator.reset(starts)[0])
        for _ in range(family.spec.horizon):
            actions.append(expert.act(seen[-1].astype(np.float64), goals))
            seen.append(simulator.step(actions[-1])[0])
    return np.stack(seen), np.stack(actions)


def errors(
    family: FetchFamily, chosen: Map, amount: np.ndarray, seen: np.ndarray, actions: np.ndarray
) -> np.ndarray:
    """How far each object ends from where the map says: (N,)."""
    expected = [
        chosen.apply("observation", each, amount)[:, OBJECT] for each in (seen[0], seen[-1])
    ]
    with family.simulator(len(amount), 1) as simulator:
        simulator.reset(expected[0])
        for each in actions:
            turned = np.clip(chosen.apply("action", each, amount), -1.0, 1.0)
            last = simulator.step(turned)[0]
    return np.asarray(np.linalg.norm(last[:, OBJECT] - expected[1], axis=1))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("group", help="a group of the Fetch arm with an object")
    parser.add_argument("--angles", nargs="+", type=float, default=[0.2])
    chosen = parser.parse_args()

    group = tasks.get(chosen.group)
    family = group.family
    assert isinstance(family, FetchFamily)
    shown = [task for task in group.tasks if task.split == "iid"]
    seen, actions = by_expert(family, *draw_mix(shown, SEED, EPISODES))
    side = np.where(np.arange(EPISODES) % 2, 1.0, -1.0)[:, None]
    for each in symmetry.read(json.dumps(family.symmetry), family.spec):
        for angle in chosen.angles if each.kind == "rotation" else [0.0]:
            found = 100 * errors(family, each, angle * side, seen, actions)
            numbers = {"median": np.median(found), "mean": found.mean()}
            rounded = {name: round(float(number), 1) for name, number in numbers.items()}
            print(json.dumps({"map": each.kind, "by": angle, **rounded}))


if __name__ == "__main__":
    main()
