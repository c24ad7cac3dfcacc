"""What is said about a dataset."""

from __future__ import annotations

import numpy as np

from goatrl.cli.inspection import describe
from goatrl.episodes import make_episodes


def test_what_is_said_about_episodes_of_different_lengths() -> None:
    """The first never meets its goal. The second meets its first goal at once, and its second one
    at its end.
    """
    paths = [[[0.0], [1.0]], [[5.0], [6.0], [7.0], [8.0]]]
    goals = [[[3.0]], [[6.0], [8.0], [8.0]]]
    actions = [[[-0.5]], [[-0.5], [0.5], [0.25]]]
    arrays = [[np.array(each) for each in part] for part in (paths, paths, actions, goals)]
    episodes = make_episodes(*arrays, terminated=[True, False])
    facts = describe(episodes, None, 0.1)
    assert facts["episodes"] == "2, 1 ended by termination"
    assert facts["actions per episode"] == "1 … 3, 4 in all"
    assert facts["action range"] == "-0.5 … 0.5"
    assert facts["desired goal reached"] == (
        "50.0 % of episodes at the last step, 1.0 steps per episode"
    )
