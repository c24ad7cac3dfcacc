"""Success towards goals that were hidden: a part of what the data of a group show is left out, and
agents are trained on the rest and judged there. All of it is within what the group shows, with
episodes of its own, so that neither an evaluation goal nor an OOD task is used.

    python docs/hidden_goals.py pick-low-high --inputs upright-frame bounded-frame
    python docs/hidden_goals.py slide-left-right --updates 25000 --maps mirror mirror,turns
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import sys
from collections.abc import Callable

import numpy as np

import goatrl
from goatrl import tasks
from goatrl.data.problems import Problem, declared_symmetry
from goatrl.evaluation.episodes import success_rate
from goatrl.tasks import Task
from goatrl.tasks.fetch import PICK, SLIDE, Place
from goatrl.tasks.regions import Redrawn

EPISODES = 200
SEED = (77,)  # of the episodes; evaluation has another
KINDS = {"mirror": "reflection", "turns": "rotation"}
SETTING = {"hindsight.probability": 1.0, "hindsight.random": 0.3, "averaging": 0.1}
SIDE = (-0.15, 0.15)


@dataclasses.dataclass(frozen=True)
class Part:
    """Which episodes are kept, by places of the object and goals as they lie from the gripper's
    initial place and the table, and tasks of what is kept and of what is hidden.
    """

    place: Place
    keeps: Callable[[np.ndarray, np.ndarray], np.ndarray]  # (N, T, 3), (N, 3) → (N,)
    kept: Task
    hidden: Task

    def of(self, problem: Problem) -> Problem:
        episodes, origin = problem.episodes, [*self.place.gripper[:2], self.place.table]
        kept = self.keeps(
            np.asarray(episodes.achieved) - origin, np.asarray(episodes.goals) - origin
        )
        arrays = {
            name: np.asarray(getattr(episodes, name))[kept]
            for name in ("observations", "achieved", "actions", "goals")
        }
        return dataclasses.replace(problem, episodes=dataclasses.replace(episodes, **arrays))


def lifted(name: str, low: float, high: float) -> Task:
    heights = (PICK.table + low, PICK.table + high)
    return Task(name, "iid", PICK.object_near(0.15, 0.1), PICK.box(SIDE, SIDE, heights))


def slid(name: str, start: tuple[float, float], goal: tuple[float, float]) -> Task:
    """Pucks and goals on the right, each between two distances from the middle."""
    middle = SLIDE.gripper[1]
    puck = Redrawn(SLIDE.object_near(0.1, 0.1), 1, middle + start[0], middle + start[1])
    return Task(name, "iid", puck, SLIDE.box((0.1, 0.4), goal, (SLIDE.table, SLIDE.table)))


PARTS = {
    # Blocks were never above 4.5 cm; goals are 11 to 18 cm above the table.
    "pick-low-high": Part(
        PICK,
        lambda places, goals: (places[..., 2].max(axis=1) < 0.045) & (goals[:, 2] < 0.045),
        lifted("kept", 0.0, 0.045),
        lifted("hidden", 0.11, 0.6 - PICK.table),
    ),
    # Pucks on the right slid outwards, by 3 cm at least; goals lie inwards of them.
    "slide-left-right": Part(
        SLIDE,
        lambda places, goals: (
            (places[..., 1].min(axis=1) > places[:, 0, 1] - 0.01)
            & (places[:, -1, 1] > places[:, 0, 1] + 0.03)
            & (goals[:, 1] > places[:, 0, 1] + 0.03)
        ),
        slid("kept", (0.0, 0.05), (0.1, 0.2)),
        slid("hidden", (0.08, 0.1), (0.0, 0.03)),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("group", choices=PARTS, help="a group, whose dataset is made")
    parser.add_argument("--algorithm", default="wgcsl")
    parser.add_argument("--updates", type=int, default=6_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--inputs", nargs="+", default=["upright-frame"])
    parser.add_argument("--maps", nargs="+", default=["none"], help="none, mirror or mirror,turns")
    chosen = parser.parse_args()

    group, part = tasks.get(chosen.group), PARTS[chosen.group]
    problem = goatrl.load_dataset(chosen.group)
    kept = part.of(problem)
    print(f"{kept.episodes.count} of {problem.episodes.count} episodes are kept")
    for inputs, maps in itertools.product(chosen.inputs, chosen.maps):
        kinds = [KINDS[each] for each in maps.split(",") if each != "none"]
        symmetry = declared_symmetry("declared", group, kinds=kinds) if kinds else ""
        agents = goatrl.train(
            chosen.algorithm,
            kept,
            seeds=chosen.seeds,
            updates=chosen.updates,
            inputs=inputs,
            set={**SETTING, "symmetry": symmetry},
        )
        found = {
            task.name: np.round(
                100 * success_rate(agents.members, agents.state, group, [task], SEED, EPISODES), 1
            ).tolist()
            for task in (part.kept, part.hidden)
        }
        print(json.dumps({"inputs": inputs, "maps": maps, **found}))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
