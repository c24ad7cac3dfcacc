"""GCIQL: implicit Q-learning towards goals (Park et al., 2025, OGBench)."""

from goatrl.algorithms.gcivl import VALUE_GOALS
from goatrl.algorithms.registry import register
from goatrl.learn.agent import Agent
from goatrl.learn.expectiles import ExpectileQ
from goatrl.learn.policies import DDPGBC
from goatrl.learn.samplers import GoalMixes
from goatrl.types import Settings


@register("GCIQL")
def gciql(s: Settings) -> Agent:
    """Maximises Q near the data's actions; Q bootstraps from an expectile of itself."""
    return Agent(
        policy=DDPGBC(alpha=1.0),
        value=ExpectileQ(expectile=0.9),
        sampler=GoalMixes(VALUE_GOALS),
        polyak=s.polyak,
        target_period=s.target_period,
    )
