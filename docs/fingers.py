"""Which goals of HandReach are met: those of each finger, from records, beside the share of them
that the dataset has ever achieved.

    python docs/fingers.py results/robots GOAT "bounded, random, averaged, 5 policies"
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import goatrl
from goatrl import tasks
from goatrl.experiments import suites
from goatrl.experiments.planning import suite_cells
from goatrl.experiments.records import Cell
from goatrl.tasks.shadow_hand import FINGERTIPS

GROUP = "hand-near-far"
FINGERS = np.array(["first", "middle", "ring", "little", "at rest"])


def fingers(goals: np.ndarray) -> np.ndarray:
    """The finger that each goal has bent towards the thumb: (N, 15) → (N,) names."""
    tips = goals.reshape(-1, 5, 3)[:, :4]
    moved = np.linalg.norm(tips - FINGERTIPS[:4], axis=-1)
    return FINGERS[np.where(moved.max(axis=1) < 1e-3, 4, moved.argmax(axis=1))]


def achieved(goals: np.ndarray, seen: np.ndarray, threshold: float) -> np.ndarray:
    """Whether anything seen lies within the threshold of each goal: (N, D), (M, D) → (N,)."""
    return np.array([((seen - goal) ** 2).sum(axis=1).min() <= threshold**2 for goal in goals])


def goals_and_success(cell: Cell, task: str) -> tuple[np.ndarray, np.ndarray]:
    """Of every evaluation episode: its goal, and the share of seeds that met it."""
    chosen = cell.column("task") == task
    episode, success = (cell.column(name)[chosen] for name in ("episode", "success"))
    share = np.bincount(episode, weights=success) / np.bincount(episode)
    _, first = np.unique(episode, return_index=True)
    return np.stack(cell.column("goal")[chosen][first]), share


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="a folder of records of the suite frontier")
    parser.add_argument("columns", nargs="*", help="headings of the suite; Expert comes first")
    chosen = parser.parse_args()

    cells = suite_cells(suites.get("frontier"), chosen.folder)
    hand = {cell.label: cell for cell in cells if cell.config.group == GROUP}
    seen = np.asarray(goatrl.load_dataset(GROUP).episodes.achieved).reshape(-1, 15)
    for task in tasks.get(GROUP).tasks:
        goals, _ = goals_and_success(hand["Expert"], task.name)
        finger = fingers(goals)
        shown = achieved(goals, seen, tasks.get(GROUP).spec.goal_threshold)
        for name in FINGERS:
            mine = finger == name
            if not mine.any():
                continue
            line = {"task": task.name, "finger": name, "goals": int(mine.sum())}
            line["achieved in the data"] = round(100 * float(shown[mine].mean()))
            for label in ("Expert", *chosen.columns):
                _, success = goals_and_success(hand[label], task.name)
                line[label] = round(100 * float(success[mine].mean()))
            print(json.dumps(line))


if __name__ == "__main__":
    main()
