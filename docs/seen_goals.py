"""Success towards goals of the kind that the data shows, from starts of its kind: the IID task of a
group, with episodes of its own, of which none is an evaluation episode. Each --set is a setting.

    python docs/seen_goals.py slide-left-right --inputs upright-frame \\
        --set hindsight.probability=1 --set hindsight.probability=1 hindsight.random=0.3
"""

from __future__ import annotations

import argparse
import json
import sys

import numpy as np

import goatrl
from goatrl import tasks
from goatrl.evaluation.episodes import success_rate

EPISODES = 200
SEED = (77,)  # of the episodes; evaluation has another


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("group", help="a group of robots, whose dataset is made")
    parser.add_argument("--algorithm", default="wgcsl")
    parser.add_argument("--updates", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--inputs", default="absolute")
    parser.add_argument("--set", nargs="+", action="append", metavar="NAME=VALUE")
    chosen = parser.parse_args()

    problem, group = goatrl.load_dataset(chosen.group), tasks.get(chosen.group)
    shown = [task for task in group.tasks if task.split == "iid"]
    for numbers in chosen.set or [[]]:
        agents = goatrl.train(
            chosen.algorithm,
            problem,
            seeds=chosen.seeds,
            updates=chosen.updates,
            inputs=chosen.inputs,
            set=dict(each.split("=") for each in numbers),
        )
        success = success_rate(agents.members, agents.state, group, shown, SEED, EPISODES)
        percent = np.round(100 * success, 1).tolist()
        print(json.dumps({"set": numbers, "success of each seed": percent}))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
