"""The evidence of docs/frontier.md: which situation a state belongs to."""

import numpy as np

from goatrl import make_dataset
from imitation import parted, places


def test_a_state_belongs_to_where_its_object_is() -> None:
    start, beside, above = (1.0, 0.0, 0.4), (1.2, 0.0, 0.4), (1.2, 0.0, 0.6)
    achieved = np.array([[start, (1.1, 0.0, 0.4), beside, above], [start, start, start, above]])
    goals = np.array([[beside] * 4, [above] * 4])
    found = places(achieved, goals, threshold=0.05, fewest=1)
    assert {name: rows.tolist() for name, rows in found.items()} == {
        "all": [True] * 8,
        "object untouched, away from its goal": [True, *[False] * 3, True, True, True, False],
        "object moved, away from its goal": [False, True, False, True, *[False] * 4],
        "object at its goal, lying": [False, False, True, *[False] * 5],
        "object at its goal, lifted": [*[False] * 7, True],
    }
    assert list(places(achieved, goals, threshold=0.05, fewest=3)) == [
        "all",
        "object untouched, away from its goal",
    ]


def test_held_out_episodes_are_not_trained_on() -> None:
    numbers = np.broadcast_to(np.arange(20.0)[:, None, None], (20, 3, 1))
    problem = make_dataset(
        numbers, numbers, np.zeros((20, 2, 1)), numbers[:, 0], goal_threshold=0.1
    )
    rest, held_out = parted(problem)
    kept = np.asarray(rest.episodes.goals)[:, 0].tolist()
    assert len(held_out) == 2
    assert sorted([*kept, *held_out.tolist()]) == list(range(20))
    assert np.asarray(rest.episodes.observations)[:, 0, 0].tolist() == kept
