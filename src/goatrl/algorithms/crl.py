"""CRL: contrastive reinforcement learning (Eysenbach et al., 2022)."""

from goatrl.algorithms.registry import register
from goatrl.learn.agent import Agent
from goatrl.learn.contrastive import ContrastiveQ
from goatrl.learn.policies import DDPGBC
from goatrl.learn.samplers import GoalMixes, ValueGoals
from goatrl.types import Settings


@register("CRL")
def crl(s: Settings) -> Agent:
    """Maximises, near the data's actions, how much likelier they make the goal."""
    return Agent(
        policy=DDPGBC(alpha=3.0),
        value=ContrastiveQ(),
        sampler=GoalMixes(ValueGoals(future=1.0, geometric=True)),
        polyak=s.polyak,
        target_period=s.target_period,
    )
