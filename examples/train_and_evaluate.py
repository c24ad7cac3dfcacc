"""Train GOAT on a dataset, evaluate it on goals inside and outside of it, and use one agent.

python examples/train_and_evaluate.py
"""

import numpy as np

import goatrl


def main(updates: int | None = None) -> None:
    data = goatrl.load_dataset("pointreach-non-expert-10")
    agents = goatrl.train("goat", data, seeds=3, updates=updates)
    print(goatrl.tabulate(goatrl.evaluate(agents)))

    act = agents.policy(seed=0)  # (observation, goal) → action in [-1, 1]
    print("first step towards (10, 0):", act(np.zeros(2), np.array([10.0, 0.0])))


if __name__ == "__main__":
    main()
