"""goatrl: which offline goal-conditioned agent reaches goals that its data never showed?

Importing it registers the robots' tasks with Gymnasium: gymnasium.make("goatrl/PushRight2Left-v0").
"""

__version__ = "0.1.0"

from goatrl.sim.registration import register_environments

register_environments()
