"""GOAT and its variants: weight = uncertainty × exponential advantage × data selection."""

from goatrl.algorithms.registry import register
from goatrl.learn.agent import Agent, weighted_regression
from goatrl.learn.values import QEnsemble, VEnsemble
from goatrl.learn.weights import RND, Chi2, ExpAdvantage, PercentileSelection, Uncertainty
from goatrl.types import Settings

ENSEMBLE = 5


def selection(s: Settings) -> PercentileSelection:
    return PercentileSelection(s.alpha_max, s.alpha_growth)


@register("GOAT")
def goat(s: Settings) -> Agent:
    """Weighted imitation with ensemble advantage, data selection and uncertainty weight."""
    return weighted_regression(
        s, ExpAdvantage(), selection(s), Uncertainty(s.w), value=QEnsemble(ENSEMBLE)
    )


@register("GOAT(tau)")
def goat_tau(s: Settings) -> Agent:
    """GOAT whose critics are trained by expectile regression, τ < 0.5."""
    return weighted_regression(
        s, ExpAdvantage(), selection(s), Uncertainty(s.w_tau), value=QEnsemble(ENSEMBLE, s.tau)
    )


@register("GOAT(1-tau)")
def goat_tau_optimistic(s: Settings) -> Agent:
    """GOAT(tau) with the expectile mirrored: 1 − τ > 0.5."""
    return weighted_regression(
        s,
        ExpAdvantage(),
        selection(s),
        Uncertainty(s.w_tau),
        value=QEnsemble(ENSEMBLE, 1.0 - s.tau),
    )


@register("GOAT(V)")
def goat_v(s: Settings) -> Agent:
    """GOAT with V(s, g) instead of Q(s, a, g)."""
    return weighted_regression(
        s, ExpAdvantage(), selection(s), Uncertainty(s.w), value=VEnsemble(ENSEMBLE)
    )


@register("GOAT(V+chi2)")
def goat_v_chi2(s: Settings) -> Agent:
    """GOAT with V(s, g) and the χ² weight max(A, 0)."""
    return weighted_regression(
        s, Chi2(0.0), selection(s), Uncertainty(s.w), value=VEnsemble(ENSEMBLE)
    )


@register("GOAT(RND)")
def goat_rnd(s: Settings) -> Agent:
    """GOAT whose uncertainty is the error of random network distillation."""
    return weighted_regression(s, ExpAdvantage(), selection(s), RND(s.w), value=QEnsemble(ENSEMBLE))


@register("GOAT(released)")
def goat_released(s: Settings) -> Agent:
    """What the released command runs: uncertainty weight without tanh and with w = 1.5, 2A against
    the percentile of A, τ = 0.5.
    """
    select = PercentileSelection(s.released_alpha_max, s.alpha_growth, scale=2.0)
    return weighted_regression(
        s, ExpAdvantage(), select, Uncertainty(1.5, tanh=False), value=QEnsemble(ENSEMBLE, 0.5)
    )
