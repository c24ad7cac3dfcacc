"""goatrl: which offline goal-conditioned agent reaches goals that its data never showed?

Importing it registers the robots' tasks with Gymnasium: gymnasium.make("goatrl/PushRight2Left-v0").
"""

__version__ = "0.1.0"

from goatrl.experiments.loading import load_policy
from goatrl.sim.registration import register_environments

__all__ = ["load_policy"]

register_environments()
