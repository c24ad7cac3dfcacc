"""The evidence of docs/frontier.md: whose goals of HandReach are met."""

import numpy as np

from fingers import FINGERS, achieved, fingers
from goatrl.tasks.shadow_hand import FINGERTIPS, MEETING, meet


def test_a_goal_names_its_finger() -> None:
    goals = meet(np.tile(MEETING, (4, 1)), np.arange(4))
    at_rest = FINGERTIPS.ravel()[None]
    assert fingers(np.concatenate([goals, at_rest])).tolist() == FINGERS.tolist()


def test_what_has_been_achieved_within_the_threshold() -> None:
    seen = np.array([[0.0, 0.0], [3.0, 4.0]])
    goals = np.array([[3.0, 4.5], [3.0, 5.5], [0.6, 0.8]])
    assert achieved(goals, seen, threshold=1.0).tolist() == [True, False, True]
