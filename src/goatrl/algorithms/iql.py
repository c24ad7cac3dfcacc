"""IQL+HER."""

from goatrl.algorithms.registry import register
from goatrl.learn.agent import Agent, weighted_regression
from goatrl.learn.values import ImplicitQ
from goatrl.learn.weights import ExpAdvantage
from goatrl.types import Settings


@register("IQL+HER")
def iql_her(s: Settings) -> Agent:
    """Exponentially weighted imitation with implicit Q-learning: no action outside the data is ever
    valued.
    """
    return weighted_regression(s, ExpAdvantage(), value=ImplicitQ())
