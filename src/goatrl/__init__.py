"""goatrl: which offline goal-conditioned agent reaches goals that its data never showed?"""

__version__ = "0.1.0"
