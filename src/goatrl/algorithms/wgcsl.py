"""WGCSL and its variants: GOAT with one critic and without the uncertainty weight."""

from goatrl.algorithms.goat import ENSEMBLE, selection
from goatrl.algorithms.registry import register
from goatrl.learn.agent import Agent, weighted_regression
from goatrl.learn.values import CQLPenalty, QEnsemble
from goatrl.learn.weights import DiscountedRelabeling, ExpAdvantage, LearnedSelection
from goatrl.types import Settings


@register("WGCSL")
def wgcsl(s: Settings) -> Agent:
    """Weighted imitation with exponential advantage and data selection."""
    return weighted_regression(s, ExpAdvantage(), selection(s), value=QEnsemble(1))


@register("WGCSL+ER")
def wgcsl_er(s: Settings) -> Agent:
    """WGCSL whose critic is trained by expectile regression."""
    return weighted_regression(s, ExpAdvantage(), selection(s), value=QEnsemble(1, s.tau))


@register("WGCSL+ER(1-tau)")
def wgcsl_er_optimistic(s: Settings) -> Agent:
    """WGCSL+ER with the expectile mirrored: 1 − τ > 0.5."""
    return weighted_regression(s, ExpAdvantage(), selection(s), value=QEnsemble(1, 1.0 - s.tau))


@register("WGCSL+Ens")
def wgcsl_ens(s: Settings) -> Agent:
    """WGCSL with an ensemble of critics: GOAT without the uncertainty weight."""
    return weighted_regression(s, ExpAdvantage(), selection(s), value=QEnsemble(ENSEMBLE))


@register("WGCSL+DRW")
def wgcsl_drw(s: Settings) -> Agent:
    """WGCSL with the discounted relabelling weight γ^(i − t)."""
    return weighted_regression(
        s, ExpAdvantage(), selection(s), DiscountedRelabeling(), value=QEnsemble(1)
    )


@register("WGCSL+ADSW")
def wgcsl_adsw(s: Settings) -> Agent:
    """WGCSL whose selection threshold is learned per state and goal."""
    return weighted_regression(s, ExpAdvantage(), LearnedSelection(), value=QEnsemble(1))


@register("WGCSL+CQL")
def wgcsl_cql(s: Settings) -> Agent:
    """WGCSL whose critic carries the CQL penalty."""
    return weighted_regression(
        s, ExpAdvantage(), selection(s), value=QEnsemble(1, penalty=CQLPenalty())
    )
