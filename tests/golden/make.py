"""Records the golden trajectories, two of each robot. Only for a wished change of
physics.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from contacts import ROBOTS, contact_rich, simulator_of, starts_of

for robot in ROBOTS:
    starts = starts_of(robot, 2)
    actions, observations, _ = contact_rich(simulator_of(robot, 2), starts, seed=1)
    np.savez_compressed(
        Path(__file__).with_name(f"{robot}.npz"),
        starts=starts,
        actions=actions,
        observations=observations[::7],
    )
