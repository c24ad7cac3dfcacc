"""Records the golden trajectories, two robots of each family. Only for a wished change of
physics.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from contacts import FAMILIES, contact_rich, starts_of
from goatrl.sim.mujoco import Simulator

for family in FAMILIES:
    starts = starts_of(family, 2)
    actions, observations, _ = contact_rich(Simulator(family, 2), starts, seed=1)
    np.savez_compressed(
        Path(__file__).with_name(f"{family}.npz"),
        starts=starts,
        actions=actions,
        observations=observations[::7],
    )
