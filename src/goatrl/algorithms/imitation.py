"""Plain imitation: no weights, no critics."""

from goatrl.algorithms.registry import register
from goatrl.learn.agent import Agent, weighted_regression
from goatrl.types import Settings


@register("GCSL")
def gcsl(s: Settings) -> Agent:
    """Imitation of relabelled data."""
    return weighted_regression(s)


@register("BC")
def bc(s: Settings) -> Agent:
    """Imitation of the data as it is: GCSL without relabelling."""
    return weighted_regression(s, relabel=0.0)
