"""MARWIL: WGCSL without data selection."""

from goatrl.algorithms.goat import ENSEMBLE
from goatrl.algorithms.registry import register
from goatrl.learn.agent import Agent, weighted_regression
from goatrl.learn.values import QEnsemble
from goatrl.learn.weights import ExpAdvantage
from goatrl.types import Settings


@register("MARWIL+HER")
def marwil_her(s: Settings) -> Agent:
    """Exponentially weighted imitation of relabelled data."""
    return weighted_regression(s, ExpAdvantage(), value=QEnsemble(1))


@register("MARWIL")
def marwil(s: Settings) -> Agent:
    """Exponentially weighted imitation without relabelling."""
    return weighted_regression(s, ExpAdvantage(), value=QEnsemble(1), relabel=0.0)


@register("MARWIL+HER+Ens")
def marwil_her_ens(s: Settings) -> Agent:
    """MARWIL+HER with an ensemble of critics."""
    return weighted_regression(s, ExpAdvantage(), value=QEnsemble(ENSEMBLE))
