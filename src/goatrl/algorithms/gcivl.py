"""GCIVL: implicit V-learning towards goals (Park et al., 2025, OGBench)."""

from goatrl.algorithms.registry import register
from goatrl.learn.agent import Agent
from goatrl.learn.expectiles import ExpectileV
from goatrl.learn.policies import AWR
from goatrl.learn.samplers import GoalMixes, ValueGoals
from goatrl.types import Settings

# Values learn of current, later and random goals; policies of later ones.
VALUE_GOALS = ValueGoals(current=0.2, future=0.5, random=0.3, geometric=True)


@register("GCIVL")
def gcivl(s: Settings) -> Agent:
    """Imitation weighted by how much nearer to the goal a step comes, by an expectile of V."""
    return Agent(
        policy=AWR(),
        value=ExpectileV(expectile=0.9),
        sampler=GoalMixes(VALUE_GOALS),
        polyak=s.polyak,
        target_period=s.target_period,
    )
