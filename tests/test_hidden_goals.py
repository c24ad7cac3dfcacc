"""The evidence of docs/frontier.md: what is hidden of a dataset, and what is judged."""

import dataclasses

import numpy as np
import pytest

from goatrl import make_dataset
from goatrl.data.problems import Problem
from goatrl.tasks import Task
from hidden_goals import PARTS


def ending_at(start: np.ndarray, goals: np.ndarray) -> Problem:
    """Objects that go straight to their goals, in three steps."""
    shares = np.linspace(0.0, 1.0, 4)[None, :, None]
    places = start[:, None] + shares * (goals - start)[:, None]
    return make_dataset(places, places, np.zeros((len(places), 3, 1)), goals, goal_threshold=0.05)


def drawn(task: Task) -> tuple[np.ndarray, np.ndarray]:
    starts, goals = task.draw(3, 100)
    return np.concatenate([starts, np.full((100, 1), goals[:, 2].min())], axis=1), goals


@pytest.mark.parametrize("name", PARTS)
def test_what_is_judged_is_hidden(name: str) -> None:
    part = PARTS[name]
    start, goals = drawn(part.hidden)
    start[:, 2] = part.place.table
    assert part.of(ending_at(start, goals)).episodes.count == 0
    inside, seen = drawn(part.kept)
    inside[:, 2] = part.place.table
    problem = ending_at(inside, seen)
    assert part.of(problem).episodes.count > 80
    # Nor is an episode kept that passes through what is hidden.
    places = np.array(problem.episodes.achieved)
    places[:, 1] = inside + np.array([0.0, -0.05, 0.08])  # inwards, and up
    passing = dataclasses.replace(
        problem, episodes=dataclasses.replace(problem.episodes, achieved=places)
    )
    assert part.of(passing).episodes.count == 0
