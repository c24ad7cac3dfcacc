"""QRL: quasimetric reinforcement learning (Wang et al., 2023)."""

from goatrl.algorithms.registry import register
from goatrl.learn.agent import Agent
from goatrl.learn.policies import DDPGBC
from goatrl.learn.quasimetric import Quasimetric
from goatrl.learn.samplers import GoalMixes, ValueGoals
from goatrl.types import Settings


@register("QRL")
def qrl(s: Settings) -> Agent:
    """Comes nearer to the goal, near the data's actions, by a learned quasimetric."""
    return Agent(
        policy=DDPGBC(alpha=0.3),
        value=Quasimetric(),
        sampler=GoalMixes(ValueGoals(future=0.0, random=1.0)),
        polyak=s.polyak,
        target_period=s.target_period,
    )
