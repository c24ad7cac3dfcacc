"""Train on arrays of your own, and evaluate in a task group of your own.

python examples/own_data.py
"""

import dataclasses

import numpy as np

import goatrl
from goatrl.tasks import Task, get
from goatrl.tasks.regions import Points

GOALS = np.array([[8.0, 0.0], [0.0, 8.0], [-8.0, 0.0]])


def walks(episodes: int = 60, steps: int = 49) -> dict[str, np.ndarray]:
    """A point that walks to one of two goals, noisily; the third goal is never shown."""
    rng = np.random.default_rng(0)
    goals = GOALS[rng.integers(2, size=episodes)]
    positions, actions = [np.zeros((episodes, 2))], []
    for _ in range(steps):
        towards = np.clip(goals - positions[-1], -1.0, 1.0)
        actions.append(np.clip(towards + rng.normal(0.0, 0.1, towards.shape), -1.0, 1.0))
        positions.append(positions[-1] + actions[-1])
    seen = np.stack(positions, axis=1)
    return {
        "observations": seen,
        "achieved": seen,
        "actions": np.stack(actions, axis=1),
        "goals": goals,
    }


def main(updates: int | None = 2_000) -> None:
    origin = Points(np.zeros((1, 2)))
    seen = Task("Seen", "iid", origin, Points(GOALS[:2]), episodes=2, bound=20.0)
    unseen = Task("Unseen", "ood", origin, Points(GOALS[2:]), episodes=1, bound=20.0)
    like = get("pointreach-expert-10")
    group = dataclasses.replace(like, name="three-goals", label="Three goals", tasks=(seen, unseen))
    if "three-goals" not in goatrl.tasks.groups():
        goatrl.register_task_group(group)

    data = goatrl.make_dataset(**walks(), goal_threshold=1.0)
    for algorithm in ("bc", "wgcsl"):
        agents = goatrl.train(algorithm, data, seeds=2, updates=updates, batch_size=128)
        print(f"{algorithm}\n{goatrl.tabulate(goatrl.evaluate(agents, 'three-goals'))}\n")


if __name__ == "__main__":
    main()
