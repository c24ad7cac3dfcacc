"""The evidence of docs/frontier.md: which goals are still to come, and which are lost."""

import numpy as np
import pytest

from lost_goals import returns, situations

# A puck is hit at step 0, passes 0.2 and stops at 0.3.
PLACES = np.array([0.0, 0.2, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3])[:, None]


def test_goals_are_told_apart_by_what_becomes_of_them() -> None:
    found = situations(PLACES, threshold=0.05)
    assert found["stops there"] == [(1, goal) for goal in range(2, 8)]
    assert found["has passed"] == [(step, 1) for step in range(2, 7)]
    assert found["passes"] == [], "from the start, 0.2 is farther than what is compared"
    slower = np.concatenate([PLACES[:1], [[0.1]], PLACES[1:]])
    assert situations(slower, threshold=0.05)["passes"] == [(1, 2)]


def test_returns_by_hand() -> None:
    # 0.3 is met at steps 2, 3 and 4, that is 1, 2 and 3 steps after step 0
    assert returns(PLACES[:5], np.array([[0, 4]]), 0.05, 0.5) == pytest.approx(0.5 + 0.25 + 0.125)
    assert returns(PLACES[:5], np.array([[2, 1]]), 0.05, 0.5) == 0.0
