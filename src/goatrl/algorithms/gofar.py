"""GoFAR and the five ablations of the paper's HandReach study."""

from goatrl.algorithms.registry import register
from goatrl.learn.agent import Agent, weighted_regression
from goatrl.learn.values import DualValue, QEnsemble
from goatrl.learn.weights import Chi2, ExpAdvantage
from goatrl.types import Settings


@register("GoFAR", revision=2)
def gofar(s: Settings) -> Agent:
    """Imitation weighted by max(A + 1, 0), A from discriminator rewards and a dual V; no
    relabelling.
    """
    return weighted_regression(s, Chi2(1.0), value=DualValue(), relabel=0.0)


@register("GoFAR+HER", revision=2)
def gofar_her(s: Settings) -> Agent:
    """GoFAR on relabelled data."""
    return weighted_regression(s, Chi2(1.0), value=DualValue())


@register("GoFAR(binary)")
def gofar_binary(s: Settings) -> Agent:
    """GoFAR with the binary reward."""
    return weighted_regression(s, Chi2(1.0), value=DualValue(reward="binary"), relabel=0.0)


@register("GoFAR(binary+Q)")
def gofar_binary_q(s: Settings) -> Agent:
    """GoFAR with the binary reward and Q(s, a, g) instead of V(s, g)."""
    return weighted_regression(s, Chi2(1.0), value=QEnsemble(1), relabel=0.0)


@register("GoFAR(binary+exp)")
def gofar_binary_exp(s: Settings) -> Agent:
    """GoFAR with the binary reward and the weight exp(A)."""
    return weighted_regression(
        s, ExpAdvantage(beta=1.0), value=DualValue(reward="binary"), relabel=0.0
    )


@register("GoFAR(binary+relabel)")
def gofar_binary_relabel(s: Settings) -> Agent:
    """GoFAR with the binary reward on relabelled data."""
    return weighted_regression(s, Chi2(1.0), value=DualValue(reward="binary"))


@register("GoFAR(binary+exp+relabel)")
def gofar_binary_exp_relabel(s: Settings) -> Agent:
    """GoFAR with the binary reward and the weight exp(A) on relabelled data."""
    return weighted_regression(s, ExpAdvantage(beta=1.0), value=DualValue(reward="binary"))
