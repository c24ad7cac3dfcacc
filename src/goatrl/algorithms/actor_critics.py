"""The value-based baselines: the policy maximises a critic."""

from goatrl.algorithms.goat import ENSEMBLE
from goatrl.algorithms.registry import register
from goatrl.learn.agent import Agent, actor_critic
from goatrl.learn.values import CQLPenalty, QEnsemble
from goatrl.types import Settings


@register("DDPG+HER")
def ddpg_her(s: Settings) -> Agent:
    """Deterministic policy gradient on relabelled data."""
    return actor_critic(s, QEnsemble(1))


@register("DDPG+HER+Ens")
def ddpg_her_ens(s: Settings) -> Agent:
    """DDPG+HER that maximises the mean of an ensemble of critics."""
    return actor_critic(s, QEnsemble(ENSEMBLE))


@register("CQL+HER")
def cql_her(s: Settings) -> Agent:
    """DDPG+HER with the CQL penalty on values of actions outside the data."""
    return actor_critic(s, QEnsemble(1, penalty=CQLPenalty()))


@register("MSG+HER")
def msg_her(s: Settings) -> Agent:
    """DDPG+HER that maximises mean − 5 standard deviations of an ensemble of critics."""
    return actor_critic(s, QEnsemble(ENSEMBLE), pessimism=5.0)
