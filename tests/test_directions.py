"""The evidence of docs/newer.md: goals that lie ahead."""

import numpy as np

from directions import pairs
from goatrl.episodes import make_episodes


def test_goals_lie_three_to_ten_steps_ahead_and_are_not_met_yet() -> None:
    """The point walks by 1 for half of its 40 steps and then stands still."""
    place = np.minimum(np.arange(41.0), 20.0)
    achieved = np.stack([place, 0 * place], axis=-1)[None]
    episodes = make_episodes(achieved, achieved, np.zeros((1, 40, 2)), achieved[:, -1])
    states, goals = pairs(episodes, 2_000, threshold=4.5)
    ahead = (goals - states)[:, 0]
    assert sorted(set(ahead)) == [5, 6, 7, 8, 9, 10]
    assert states[:, 0].max() == 15.0, "five steps before it stands still"
    assert not states[:, 1].any()
