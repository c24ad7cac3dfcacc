"""How the world moves: one object per robot, and the simulators behind them.

Whatever depends on the robot is asked of its `Family`; nothing asks for its name. MuJoCo is
imported by `physics` alone, which a family loads when it first simulates.
"""

from goatrl.robots.family import Drawn, ExpertTraining, Family, Finetuning

__all__ = ["Drawn", "ExpertTraining", "Family", "Finetuning"]
