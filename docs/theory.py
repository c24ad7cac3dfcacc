"""The two theorems of the paper on finite spaces, where every quantity can be computed and every
inequality checked.

Array layout, with S states, G goals and A actions::

    transition    P(s' | s, a)                           (S, A, S)
    reward        r(s, a, g)                             (S, A, G)
    policy        π(a | s, g)                            (S, G, A)
    pairs         a distribution over x = (s, g)         (S, G)
    occupancy     d_π(s | s_0, g), axes s_0, g, s        (S, G, S)

docs/theory.md states the theorems, their assumptions, and where the code departs from what is
printed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


# Theorem 3.2: distribution shift


def variation_divergence(first: Array, second: Array) -> float:
    """d_1 = 2 sup_J |P_1(J) − P_2(J)|: 0 for equal distributions, 2 for disjoint ones (paper,
    section 3.3).

    The best J is where P_1 > P_2, so d_1 is Σ |P_1 − P_2|.
    """
    return float(np.sum(np.abs(_distribution(first) - _distribution(second))))


def worst_target(source: Array, cap: float) -> Array:
    """A Z that maximises d_1(Z, source) over the paper's family: Σ Z = 1 and 0 ≤ Z ≤ C (`cap`).

    d_1 / 2 is the largest Z(J) − S(J), and no Z gives J more than min(1, C |J|). Of all J of one
    size the lightest under S is best, so a Z that spends its mass on the points of S in ascending
    order, at most C on each, is best for every size at once.
    """
    source = _distribution(source)
    if cap * source.size < 1.0 - 1e-9:
        raise ValueError(
            f"no distribution on {source.size} points stays below {cap}; the cap is at least 1 / "
            f"{source.size}"
        )
    target = np.empty(source.size)
    target[np.argsort(source, axis=None, kind="stable")] = np.clip(
        1.0 - cap * np.arange(source.size), 0.0, cap
    )
    return target.reshape(source.shape)


def worst_case_shift(source: Array, cap: float) -> float:
    """sup_Z d_1(Z, source) = 2 max_j [min(1, C j) − the sum of the j smallest masses of the
    source].
    """
    return variation_divergence(worst_target(source, cap), source)


def uniform_worst_case_shift(size: int, cap: float) -> float:
    """sup_Z d_1(Z, uniform) on n points: 2 max(⌊1/C⌋ (C − 1/n), 1 − ⌈1/C⌉ / n), the least of all
    sources (Theorem 3.2).
    """
    return 2.0 * max(math.floor(1.0 / cap) * (cap - 1.0 / size), 1.0 - math.ceil(1.0 / cap) / size)


def uniform_worst_case_shift_of_volume(volume: float, cap: float) -> float:
    """2 (1 − 1 / (C |X|)), the paper's closed form (appendix, step 1 of the proof of Theorem 3.2).

    It needs a set of volume exactly 1/C. On n points there is one only if 1/C is an integer;
    otherwise it is an upper bound.
    """
    return 2.0 * (1.0 - 1.0 / (cap * volume))


def reweighted(source: Array, weights: Array) -> Array:
    """P_S'(x) ∝ h(x) P_S(x) (paper, section 3.3)."""
    weighted = _distribution(source) * weights
    return np.asarray(weighted / np.sum(weighted))


def _distribution(masses: Array) -> Array:
    masses = np.asarray(masses, np.float64)
    if np.min(masses) < 0.0 or abs(np.sum(masses) - 1.0) > 1e-9:
        raise ValueError(
            f"not a distribution: the smallest mass is {np.min(masses)}, their sum {np.sum(masses)}"
        )
    return masses


# Theorem 3.1: a goal-conditioned problem and its exact values


@dataclass(frozen=True)
class GoalProblem:
    """A goal-augmented Markov decision process on finite sets (paper, section 2.1)."""

    transition: Array
    reward: Array
    discount: float


def grid(width: int, height: int, discount: float) -> GoalProblem:
    """Every cell is a state and a goal. Actions: stay, or one step in four directions. A step that
    ends on the goal pays 1.
    """
    cells = [(x, y) for y in range(height) for x in range(width)]
    transition = np.zeros((len(cells), 5, len(cells)))
    for state, (x, y) in enumerate(cells):
        for action, (dx, dy) in enumerate([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)]):
            beyond = (x + dx, y + dy)
            transition[state, action, cells.index(beyond) if beyond in cells else state] = 1.0
    return GoalProblem(transition, transition, discount)  # r(s, a, g) = P(s' = g | s, a)


def star(leaves: int, discount: float) -> GoalProblem:
    """One choice, for ever: action i leads from the centre, state 0, to leaf i + 1. Goal i is leaf
    i + 1; being there pays 1.
    """
    transition = np.tile(np.eye(leaves + 1)[:, None, :], (1, leaves, 1))
    transition[0] = np.eye(leaves, leaves + 1, k=1)
    return GoalProblem(transition, transition[:, :, 1:], discount)


def values(problem: GoalProblem, policy: Array) -> Array:
    """V^π(s, g), from V = r_π + γ P_π V: (S, G)."""
    reward = np.einsum("sga,sag->gs", policy, problem.reward)
    return np.linalg.solve(_evaluation(problem, policy), reward[..., None])[..., 0].T


def action_values(problem: GoalProblem, policy: Array) -> Array:
    """Q^π(s, a, g) as (S, G, A), the layout of a policy."""
    ahead = np.einsum("sat,tg->sga", problem.transition, values(problem, policy))
    return problem.reward.transpose(0, 2, 1) + problem.discount * ahead


def advantages(problem: GoalProblem, policy: Array) -> Array:
    """A^π(s, a, g) = Q^π(s, a, g) − V^π(s, g): (S, G, A)."""
    return action_values(problem, policy) - values(problem, policy)[..., None]


def optimal_policy(problem: GoalProblem) -> Array:
    """A policy of the highest values, by policy iteration. Equally good actions are
    equally likely.
    """
    policy, value = uniform_policy(problem), np.asarray(-np.inf)
    while np.max(values(problem, policy) - value) > 1e-9:
        value, gain = values(problem, policy), action_values(problem, policy)
        best = gain >= np.max(gain, axis=-1, keepdims=True) - 1e-9
        policy = best / np.sum(best, axis=-1, keepdims=True)
    return policy


def uniform_policy(problem: GoalProblem) -> Array:
    states, actions, goals = problem.reward.shape
    return np.full((states, goals, actions), 1.0 / actions)


def occupancy(problem: GoalProblem, policy: Array) -> Array:
    """d_π(s | s_0, g) = (1 − γ) Σ_t γ^t Pr(s_t = s | π, s_0, g) (paper, section 3.3): (S, G, S)."""
    visits = (1.0 - problem.discount) * np.linalg.inv(_evaluation(problem, policy)).transpose(
        1, 0, 2
    )
    return np.clip(visits, 0.0, None)  # a state that is never visited comes out as ±1e-17


def visited(pairs: Array, visits: Array) -> Array:
    """The pairs (s, g) with (s_0, g) from `pairs` and s ∼ d(· | s_0, g): (S, G)."""
    return np.einsum("xg,xgs->sg", pairs, visits)


def surrogate_policy(behaviour: Array, weights: Array) -> Array:
    """π̂_E(a | s, g) ∝ w(s, a, g) π_b(a | s, g) (paper, section 3.3); for advantage weighting w =
    exp(β A).
    """
    weighted = behaviour * weights
    return np.asarray(weighted / np.sum(weighted, axis=-1, keepdims=True))


def _evaluation(problem: GoalProblem, policy: Array) -> Array:
    """I − γ P_π for every goal: (G, S, S)."""
    step = np.einsum("sga,sat->gst", policy, problem.transition)
    return np.asarray(np.eye(step.shape[-1]) - problem.discount * step)


# Theorem 3.1: the bound


def total_variation(first: Array, second: Array) -> Array:
    """D_TV(π_1(· | s, g), π_2(· | s, g)) = ½ Σ_a |π_1 − π_2|, in [0, 1]: (S, G)."""
    return np.asarray(0.5 * np.sum(np.abs(first - second), axis=-1))


def discrepancy(pairs: Array, first: Array, second: Array) -> float:
    """E_{(s, g) ∼ pairs} D_TV(π_1, π_2). The paper's ε^ρ is this on `visited(ρ, d_E)` (section
    3.3).
    """
    return float(np.sum(_distribution(pairs) * total_variation(first, second)))


def suboptimality(problem: GoalProblem, target: Array, expert: Array, policy: Array) -> float:
    """E_{(s_0, g) ∼ T} [V^E(s_0, g) − V^π(s_0, g)] (paper, eq. 1)."""
    return float(
        np.sum(_distribution(target) * (values(problem, expert) - values(problem, policy)))
    )


@dataclass(frozen=True)
class Sample:
    """m independent pairs on which the imitation loss is measured.

    The surrogate and a finite set Π with the learned policy in it must be chosen before these are
    drawn; the bound then holds for all of Π at once, with probability at least 1 − δ.
    """

    states: npt.NDArray[np.int64]  # (m,)
    goals: npt.NDArray[np.int64]  # (m,)
    log_policies: float  # log |Π|
    delta: float


def draw(
    pairs: Array, size: int, log_policies: float, delta: float, rng: np.random.Generator
) -> Sample:
    """`size` independent pairs."""
    index = rng.choice(pairs.size, size, p=pairs.ravel() / np.sum(pairs))
    states, goals = np.unravel_index(index, pairs.shape)
    return Sample(states, goals, log_policies, delta)


def sample_term(size: int, log_policies: float, delta: float, largest: float = 1.0) -> float:
    """(b − a) √((log |Π| + log 1/δ) / 2m): Hoeffding and a union over Π, for losses in [0,
    `largest`] (Lemma B.6).
    """
    return largest * math.sqrt((log_policies + math.log(1.0 / delta)) / (2.0 * size))


@dataclass(frozen=True)
class Bound:
    """scale · (imitation loss + estimation gap + shift + sample), at least the suboptimality."""

    scale: float
    imitation_loss: float
    estimation_gap: float
    shift: float
    sample: float

    @property
    def total(self) -> float:
        return self.scale * (self.imitation_loss + self.estimation_gap + self.shift + self.sample)


def paper_bound(
    problem: GoalProblem,
    expert: Array,
    surrogate: Array,
    policy: Array,
    source: Array,
    target: Array,
    sample: Sample | None = None,
) -> Bound:
    """Theorem 3.1 as printed: 2 R_max / (1 − γ)² [ε̂^S(π̂_E, π) + ε^S(π̂_E, π_E) + d_1(T, S) +
    √((log 2|Π| + log 1/δ) / 2m)].

    Source and target are distributions of the first pair (s_0, g); the sample comes from
    `visited(source, d_E)`. Without a sample the loss is the expected one and the last term 0. R_max
    is max |r|: with max r the theorem is false for costs.
    """
    pairs = visited(source, occupancy(problem, expert))
    return Bound(
        scale=2.0 * float(np.max(np.abs(problem.reward))) / (1.0 - problem.discount) ** 2,
        imitation_loss=_imitation_loss(pairs, surrogate, policy, sample, np.ones_like(pairs)),
        estimation_gap=discrepancy(pairs, surrogate, expert),
        shift=variation_divergence(target, source),
        sample=0.0
        if sample is None
        else sample_term(sample.states.size, math.log(2.0) + sample.log_policies, sample.delta),
    )


def sharp_bound(
    problem: GoalProblem,
    expert: Array,
    surrogate: Array,
    policy: Array,
    data: Array,
    target: Array,
    sample: Sample | None = None,
    weights: Array | None = None,
) -> Bound:
    """Theorem 3.1 with the least constants for its first three terms, for losses measured on any
    pairs (s, g), weighted or not.

    `data` is where the losses are measured: all pairs of a dataset, of any policy. `weights` h turn
    it into S' ∝ h · data, at the price of a last term that is max h (at mean 1) times as large.

    1. V^E − V^π = E_{d_E} Σ_a (π_E − π) Q^π / (1 − γ), and Q^π varies by at most
       (max r − min r) / (1 − γ) for one goal. This is
       Lemma B.1 with max r − min r for 2 R_max: half of it where rewards have one sign.
    2. E_T' f − E_S' f ≤ ½ d_1(T', S') for every f in [0, 1], here with T' = `visited(target, d_E)`:
       Lemma B.5 with half of d_1.
    3. D_TV is a metric (Lemma B.4), and one side of Hoeffding's inequality is enough (Lemma B.6
       with |Π| for 2|Π|).
    """
    ratio = np.ones_like(data) if weights is None else weights / np.sum(data * weights)
    pairs = data * ratio
    largest = float(np.max(ratio[data > 0.0]))
    return Bound(
        scale=float(np.max(np.ptp(problem.reward, axis=(0, 1)))) / (1.0 - problem.discount) ** 2,
        imitation_loss=_imitation_loss(pairs, surrogate, policy, sample, ratio),
        estimation_gap=discrepancy(pairs, surrogate, expert),
        shift=0.5 * variation_divergence(visited(target, occupancy(problem, expert)), pairs),
        sample=0.0
        if sample is None
        else sample_term(sample.states.size, sample.log_policies, sample.delta, largest),
    )


def _imitation_loss(
    pairs: Array, surrogate: Array, policy: Array, sample: Sample | None, ratio: Array
) -> float:
    """ε(π̂_E, π), or its mean over a sample, weighted by how much more of each pair there should
    be.
    """
    if sample is None:
        return discrepancy(pairs, surrogate, policy)
    return float(np.mean((ratio * total_variation(surrogate, policy))[sample.states, sample.goals]))
