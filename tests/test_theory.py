"""The theorems: exact against brute force, true on arbitrary problems, attained where we say so,
false without any one term.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import re
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import theory
from theory import (
    GoalProblem,
    Sample,
    paper_bound,
    reweighted,
    sharp_bound,
    variation_divergence,
    visited,
    worst_case_shift,
)

PAGE = (Path(__file__).parents[1] / "docs" / "theory.md").read_text()
SLACK = 1e-9  # of floating point; no inequality below needs more
DISCOUNTS = (0.0, 0.5, 0.9)


def uniform(size: int) -> np.ndarray:
    return np.full(size, 1.0 / size)


def point_mass(shape: tuple[int, ...], at: tuple[int, ...]) -> np.ndarray:
    masses = np.zeros(shape)
    masses[at] = 1.0
    return masses


@st.composite
def distributions(draw, size: int | None = None, least: float = 0.0):
    size = draw(st.integers(2, 6)) if size is None else size
    few = st.integers(0 if least == 0.0 else 1, 3).map(float)  # many ties and zeros
    masses = np.asarray(
        draw(
            st.lists(st.one_of(few, st.floats(max(least, 1e-3), 1.0)), min_size=size, max_size=size)
        )
    )
    return masses / masses.sum() if masses.sum() > 0 else uniform(size)


@st.composite
def sources_and_caps(draw, least: float = 0.0):
    source = draw(distributions(least=least))
    one_over = st.integers(1, source.size).map(lambda whole: 1.0 / whole)
    return source, draw(st.one_of(one_over, st.floats(1.0 / source.size, 1.2)))


# Theorem 3.2


def extreme_targets(size: int, cap: float) -> np.ndarray:
    """Every corner of {Z: Σ Z = 1, 0 ≤ Z ≤ C}: some points at C, one with the rest. d_1 is convex,
    so one of them maximises it.
    """
    full = min(math.floor(1.0 / cap + 1e-9), size)
    masses = ([cap] * full + [max(1.0 - cap * full, 0.0)] + [0.0] * size)[:size]
    return np.unique(np.asarray(list(itertools.permutations(masses))), axis=0)


def test_divergence_by_hand():
    assert variation_divergence(
        np.array([0.5, 0.5, 0.0]), np.array([0.2, 0.5, 0.3])
    ) == pytest.approx(0.6)
    assert variation_divergence(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == 2.0


@given(st.data(), st.integers(2, 6))
def test_divergence_is_the_supremum_over_all_subsets(data, size):
    first, second = data.draw(distributions(size)), data.draw(distributions(size))
    subsets = np.asarray(list(itertools.product([0.0, 1.0], repeat=size)))
    np.testing.assert_allclose(
        variation_divergence(first, second),
        2.0 * np.max(np.abs(subsets @ (first - second))),
        atol=SLACK,
    )


@given(sources_and_caps())
def test_worst_case_is_that_of_all_corners(example):
    source, cap = example
    corners = extreme_targets(source.size, cap)
    np.testing.assert_allclose(
        worst_case_shift(source, cap), np.max(np.abs(corners - source).sum(axis=1)), atol=SLACK
    )
    worst = theory.worst_target(source, cap)
    assert np.all((worst >= 0.0) & (worst <= cap + SLACK))
    np.testing.assert_allclose(worst.sum(), 1.0)


@given(sources_and_caps())
def test_worst_case_is_the_formula_over_the_lightest_sets(example):
    source, cap = example
    lightest = np.concatenate([[0.0], np.cumsum(np.sort(source))])
    given_to = np.minimum(1.0, cap * np.arange(source.size + 1))
    np.testing.assert_allclose(
        worst_case_shift(source, cap), 2.0 * np.max(given_to - lightest), atol=SLACK
    )


def test_worst_case_keeps_the_shape_of_pairs():
    source = np.array([[0.4, 0.1], [0.3, 0.2]])
    np.testing.assert_allclose(theory.worst_target(source, 0.6), [[0.0, 0.6], [0.0, 0.4]])
    assert worst_case_shift(source, 0.6) == pytest.approx(2 * (1 - 0.3))


@given(st.integers(2, 40), st.floats(0.0, 1.0))
def test_uniform_worst_case_in_closed_form(size, mix):
    cap = 1.0 / size + mix * (1.2 - 1.0 / size)
    exact = worst_case_shift(uniform(size), cap)
    np.testing.assert_allclose(theory.uniform_worst_case_shift(size, cap), exact, atol=SLACK)
    assert exact <= theory.uniform_worst_case_shift_of_volume(size, cap) + SLACK


@pytest.mark.parametrize("size", [3, 10, 49])
def test_the_printed_closed_form_is_exact_where_one_over_c_is_whole(size):
    for whole in range(1, size + 1):
        printed = theory.uniform_worst_case_shift_of_volume(size, 1.0 / whole)
        np.testing.assert_allclose(
            worst_case_shift(uniform(size), 1.0 / whole), printed, atol=SLACK
        )


def test_the_printed_closed_form_is_too_large_elsewhere():
    """10 points, C = 0.3: three points hold 0.9, or four hold 1; a set of 3⅓ points would be
    needed.
    """
    assert worst_case_shift(uniform(10), 0.3) == pytest.approx(1.2)
    assert theory.uniform_worst_case_shift_of_volume(10, 0.3) == pytest.approx(4 / 3)


@given(sources_and_caps())
def test_no_source_beats_the_uniform_one(example):
    source, cap = example
    best = theory.uniform_worst_case_shift(source.size, cap)
    if np.ptp(source) > 1e-6:
        assert worst_case_shift(source, cap) > best
    else:
        np.testing.assert_allclose(worst_case_shift(source, cap), best, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "cap"), [(2, 0.7), (3, 0.4), (4, 0.25), (4, 0.3), (4, 0.5), (4, 1.0), (5, 0.45)]
)
def test_the_least_worst_case_by_linear_programming(size, cap):
    """Minimise t over all sources S with Σ_x |Z(x) − S(x)| ≤ t for every corner Z. Variables: S, t,
    and u_Z(x) ≥ |Z(x) − S(x)|.
    """
    corners = extreme_targets(size, cap)
    slacks = len(corners) * size
    eye = np.eye(slacks)
    every = np.tile(np.eye(size), (len(corners), 1))
    below = np.hstack([every, np.zeros((slacks, 1)), -eye])  # S − Z ≤ u
    above = np.hstack([-every, np.zeros((slacks, 1)), -eye])  # Z − S ≤ u
    sums = np.hstack(
        [
            np.zeros((len(corners), size)),
            -np.ones((len(corners), 1)),
            np.kron(np.eye(len(corners)), np.ones(size)),
        ]
    )
    limits = np.concatenate([corners.ravel(), -corners.ravel(), np.zeros(len(corners))])
    cost = point_mass((size + 1 + slacks,), (size,))
    whole = np.concatenate([np.ones(size), np.zeros(1 + slacks)])[None]
    solution = linprog(cost, np.vstack([below, above, sums]), limits, whole, [1.0])
    assert solution.fun == pytest.approx(theory.uniform_worst_case_shift(size, cap))
    np.testing.assert_allclose(solution.x[:size], uniform(size), atol=1e-7)


@given(sources_and_caps(), st.integers(1, 4), st.data())
def test_where_data_has_no_support(example, unseen, data):
    """Weights cannot create points. Uniform on the support is still the best, and nothing helps if
    all targets fit outside.
    """
    seen, cap = example
    source = np.concatenate([np.zeros(unseen), seen / seen.sum()])
    weights = np.asarray(
        data.draw(st.lists(st.floats(0.05, 1.0), min_size=source.size, max_size=source.size))
    )
    best = worst_case_shift((source > 0) / np.sum(source > 0), cap)
    assert best <= worst_case_shift(reweighted(source, weights), cap) + SLACK
    if np.sum(source == 0) * cap >= 1.0:
        assert best == pytest.approx(2.0)


@given(sources_and_caps(least=0.05), st.floats(0.0, 1.0), st.floats(0.01, 1.0))
def test_weights_that_fall_with_density_and_keep_its_order_never_harm(example, power, level):
    source, cap = example
    before = worst_case_shift(source, cap)
    assert worst_case_shift(reweighted(source, source**-power), cap) <= before + SLACK
    assert (
        worst_case_shift(reweighted(source, np.clip(level / source, 0.5, 1.0)), cap)
        <= before + SLACK
    )  # the range of UW


def test_weights_that_turn_the_order_round_can_harm():
    source = np.array([0.49, 0.51])
    assert worst_case_shift(source, 0.6) < worst_case_shift(
        reweighted(source, np.array([1.0, 0.5])), 0.6
    )


def test_impossible_arguments_are_refused():
    with pytest.raises(ValueError, match="at least 1 / 4"):
        worst_case_shift(uniform(4), 0.2)
    with pytest.raises(ValueError, match="not a distribution"):
        variation_divergence(np.array([0.5, 0.6]), uniform(2))
    with pytest.raises(ValueError, match="not a distribution"):
        worst_case_shift(np.array([1.5, -0.5]), 1.0)


# Theorem 3.1: exact values


@st.composite
def problems(draw):
    """Any dynamics, rewards of both signs, and a generator for everything else."""
    states, actions, goals = (
        draw(st.integers(1, 4)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 3)),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sharpness = draw(st.sampled_from([0.05, 1.0]))  # nearly deterministic, or anything
    transition = rng.dirichlet(np.full(states, sharpness), (states, actions))
    reward = rng.uniform(-1.0, 1.0, (states, actions, goals)) + draw(
        st.sampled_from([-1.0, 0.0, 1.0])
    )
    return GoalProblem(transition, reward, draw(st.sampled_from(DISCOUNTS))), rng


def any_policy(problem: GoalProblem, rng: np.random.Generator) -> np.ndarray:
    states, actions, goals = problem.reward.shape
    return rng.dirichlet(np.full(actions, rng.choice([0.1, 1.0])), (states, goals))


def near(policy: np.ndarray, problem: GoalProblem, rng: np.random.Generator) -> np.ndarray:
    share = rng.choice([0.0, 0.01, 0.3, 1.0])
    return (1.0 - share) * policy + share * any_policy(problem, rng)


def any_pairs(problem: GoalProblem, rng: np.random.Generator) -> np.ndarray:
    states, _, goals = problem.reward.shape
    return rng.dirichlet(np.full(states * goals, rng.choice([0.1, 1.0, 10.0]))).reshape(
        states, goals
    )


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_values_of_a_grid_follow_from_distances(discount):
    """d > 0 steps away the first reward comes with step d, at the goal at once; then one every
    step.
    """
    problem = theory.grid(4, 3, discount)
    x, y = np.arange(12) % 4, np.arange(12) // 4
    distance = np.abs(x[:, None] - x[None]) + np.abs(y[:, None] - y[None])
    expected = float(discount) ** np.maximum(distance - 1, 0) / (1.0 - discount)
    np.testing.assert_allclose(
        theory.values(problem, theory.optimal_policy(problem)), expected, atol=SLACK
    )


@given(problems())
def test_values_and_occupancies_satisfy_their_equations(example):
    problem, rng = example
    policy = any_policy(problem, rng)
    value = theory.values(problem, policy)
    np.testing.assert_allclose(
        np.einsum("sga,sga->sg", policy, theory.action_values(problem, policy)), value, atol=1e-8
    )
    np.testing.assert_allclose(
        np.einsum("sga,sga->sg", policy, theory.advantages(problem, policy)), 0.0, atol=1e-8
    )
    visits = theory.occupancy(problem, policy)
    np.testing.assert_allclose(visits.sum(axis=-1), 1.0)
    reward = np.einsum("sga,sag->sg", policy, problem.reward)
    np.testing.assert_allclose(
        np.einsum("xgs,sg->xg", visits, reward) / (1.0 - problem.discount), value, atol=1e-8
    )


@given(problems())
def test_no_policy_beats_the_optimal_one(example):
    problem, rng = example
    best = theory.values(problem, theory.optimal_policy(problem))
    assert np.all(best >= theory.values(problem, any_policy(problem, rng)) - 1e-7)


# Theorem 3.1: the bound holds


@settings(max_examples=200)
@given(problems(), st.booleans())
def test_the_bounds_hold(example, optimal):
    """For every expert, also a poor one, every surrogate, policy, source and target."""
    problem, rng = example
    expert = theory.optimal_policy(problem) if optimal else any_policy(problem, rng)
    surrogate = near(expert, problem, rng)
    policy = near(surrogate, problem, rng)
    source, target = any_pairs(problem, rng), any_pairs(problem, rng)
    loss = theory.suboptimality(problem, target, expert, policy)
    paper = paper_bound(problem, expert, surrogate, policy, source, target)
    data = visited(source, theory.occupancy(problem, expert))
    sharp = sharp_bound(problem, expert, surrogate, policy, data, target)
    assert loss <= sharp.total + 1e-7
    assert sharp.total <= paper.total + 1e-7
    assert (
        sharp.shift <= 0.5 * paper.shift + SLACK
    )  # what a policy makes of two distributions is no further apart than they are


@settings(max_examples=200)
@given(problems())
def test_the_sharp_bound_holds_for_any_data_and_weights(example):
    """The data need not come from the expert, nor start where the test does."""
    problem, rng = example
    expert = any_policy(problem, rng)
    surrogate = near(expert, problem, rng)
    policy = near(surrogate, problem, rng)
    data, target = any_pairs(problem, rng), any_pairs(problem, rng)
    weights = rng.uniform(0.1, 1.0, data.shape)
    bound = sharp_bound(problem, expert, surrogate, policy, data, target, weights=weights)
    assert theory.suboptimality(problem, target, expert, policy) <= bound.total + 1e-7
    same = sharp_bound(problem, expert, surrogate, policy, reweighted(data, weights), target)
    assert bound.total == pytest.approx(same.total)


def star_policy(problem: GoalProblem, wrong: dict[int, float]) -> np.ndarray:
    """The expert's, but at the centre the next action with this probability, goal by goal."""
    policy = theory.optimal_policy(problem).copy()
    actions = policy.shape[-1]
    for goal, share in wrong.items():
        policy[0, goal] = (1.0 - share) * np.eye(actions)[goal] + share * np.eye(actions)[
            (goal + 1) % actions
        ]
    return policy


def test_the_terms_by_hand():
    """A line of three, γ = ½, from the left end to the right: the expert is at the three states for
    ½, ¼ and ¼ of the time.
    """
    problem = theory.grid(3, 1, 0.5)
    stay = np.eye(5)[0]
    expert = theory.optimal_policy(problem)
    surrogate, policy = expert.copy(), expert.copy()
    surrogate[0, 2] = 0.6 * expert[0, 2] + 0.4 * stay
    policy[1, 2] = stay
    source = point_mass((3, 3), (0, 2))
    target = 0.5 * source + 0.5 * point_mass((3, 3), (1, 2))
    sample = Sample(np.array([0, 1, 1, 2]), np.array([2, 2, 2, 2]), math.log(3), 0.1)

    paper = paper_bound(problem, expert, surrogate, policy, source, target, sample)
    expected = theory.Bound(8.0, (0.4 + 1 + 1 + 0) / 4, 0.5 * 0.4, 1.0, math.sqrt(math.log(60) / 8))
    np.testing.assert_allclose(astuple(paper), astuple(expected), atol=SLACK)
    assert paper_bound(
        problem, expert, surrogate, policy, source, target
    ).imitation_loss == pytest.approx(0.5 * 0.4 + 0.25)

    data = visited(source, theory.occupancy(problem, expert))
    weights = np.array([1.0, 2.0, 2.0])[:, None] * np.ones(
        (3, 3)
    )  # with mean 1: ⅔, 4/3, 4/3, so that each state has ⅓
    sharp = sharp_bound(problem, expert, surrogate, policy, data, target, sample, weights)
    expected = theory.Bound(
        4.0, (0.4 * 2 / 3 + 4 / 3 + 4 / 3) / 4, 0.4 / 3, 1 / 12, 4 / 3 * math.sqrt(math.log(30) / 8)
    )
    np.testing.assert_allclose(astuple(sharp), astuple(expected), atol=SLACK)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_each_constant_of_the_sharp_bound_is_attained(discount):
    """Goal 0 of a star, where one wrong step costs 1 / (1 − γ), everything that there is."""
    problem = theory.star(2, discount)
    expert, wrong = star_policy(problem, {}), star_policy(problem, {0: 1.0})
    target = point_mass((3, 2), (0, 0))
    data = visited(target, theory.occupancy(problem, expert))
    elsewhere = data.copy()  # the same, without the one pair at which the policy is wrong
    elsewhere[0] = elsewhere[0, ::-1]
    assert theory.suboptimality(problem, target, expert, wrong) == pytest.approx(
        1.0 / (1.0 - discount)
    )
    for term, surrogate, pairs in [
        ("imitation_loss", expert, data),
        ("estimation_gap", wrong, data),
        ("shift", expert, elsewhere),
    ]:
        bound = sharp_bound(problem, expert, surrogate, wrong, pairs, target)
        assert getattr(bound, term) == pytest.approx(1.0 - discount)
        assert bound.total == pytest.approx(1.0 / (1.0 - discount)), term


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_the_printed_scale_is_attained_by_rewards_of_both_signs(discount):
    """So 2 R_max / (1 − γ)² cannot be lowered for |r| ≤ R_max; for rewards of 0 and 1 it is twice
    what is needed.
    """
    binary = theory.star(2, discount)
    signed = replace(binary, reward=2.0 * binary.reward - 1.0)
    target = point_mass((3, 2), (0, 0))
    for problem, times in [(signed, 1.0), (binary, 2.0)]:
        expert, wrong = star_policy(problem, {}), star_policy(problem, {0: 1.0})
        bound = paper_bound(problem, expert, expert, wrong, target, target)
        assert bound.total == pytest.approx(
            times * theory.suboptimality(problem, target, expert, wrong)
        )


def test_an_informative_case():
    """Both bounds exclude something: values lie in [0, 2], and a policy that never arrives loses
    E_T V^E.
    """
    problem = theory.grid(3, 3, 0.5)
    expert = theory.optimal_policy(problem)
    source = uniform(81).reshape(9, 9)
    target = theory.worst_target(source, 1.05 / 81)
    surrogate = 0.99 * expert + 0.01 * theory.uniform_policy(problem)
    policy = 0.99 * surrogate + 0.01 * theory.uniform_policy(problem)
    pairs = visited(source, theory.occupancy(problem, expert))
    sample = theory.draw(pairs, 100_000, 81 * math.log(2.0), 0.05, np.random.default_rng(0))
    at_stake = float(np.sum(target * theory.values(problem, expert)))
    paper = paper_bound(problem, expert, surrogate, policy, source, target, sample)
    sharp = sharp_bound(problem, expert, surrogate, policy, pairs, target, sample)
    assert (
        theory.suboptimality(problem, target, expert, policy) < sharp.total < paper.total < at_stake
    )
    assert sharp.total < 0.25 * at_stake


# Theorem 3.1: the bound fails without any one of its terms


def without(bound: theory.Bound, term: str) -> float:
    return replace(bound, **{term: 0.0}).total


@pytest.mark.parametrize("bound_of", [paper_bound, sharp_bound])
@pytest.mark.parametrize("term", ["imitation_loss", "estimation_gap", "shift"])
def test_no_term_can_be_dropped(bound_of, term):
    """The other terms are 0 in turn; the policy is wrong for goal 0 only, so data with goal 1 does
    not show it.
    """
    problem = theory.star(2, 0.0)
    expert, wrong = star_policy(problem, {}), star_policy(problem, {0: 1.0})
    target = point_mass((3, 2), (0, 0))
    source = point_mass((3, 2), (0, 1)) if term == "shift" else target
    bound = bound_of(
        problem, expert, wrong if term == "estimation_gap" else expert, wrong, source, target
    )
    loss = theory.suboptimality(problem, target, expert, wrong)
    assert without(bound, term) == 0.0 < loss <= bound.total


def failures(
    bound_of,
    problem,
    policies,
    data,
    target,
    size,
    delta,
    term=None,
    log_policies=None,
    weights=None,
):
    """The exact probability, over all samples, that the bound fails for some policy."""
    expert, options = (
        theory.optimal_policy(problem),
        {} if weights is None else {"weights": weights},
    )
    losses = [theory.suboptimality(problem, target, expert, policy) for policy in policies]
    log_policies = math.log(len(policies)) if log_policies is None else log_policies
    support, total = np.argwhere(data > 0), 0.0
    for chosen in itertools.product(support, repeat=size):
        states, goals = np.asarray(chosen).T
        sample = Sample(states, goals, log_policies, delta)
        bounds = [
            bound_of(problem, expert, expert, policy, data, target, sample, **options)
            for policy in policies
        ]
        totals = [bound.total if term is None else without(bound, term) for bound in bounds]
        if any(loss > limit + SLACK for loss, limit in zip(losses, totals, strict=True)):
            total += np.prod(data[states, goals])
    return total


def star_pairs(masses: np.ndarray) -> np.ndarray:
    """All pairs at the centre; without discounting these are all that are visited."""
    return np.concatenate([masses[None], np.zeros((masses.size, masses.size))])


@settings(max_examples=25)
@given(
    distributions(3),
    st.lists(st.tuples(*[st.sampled_from([0.0, 0.5, 1.0])] * 3), min_size=1, max_size=3),
    st.integers(1, 4),
    st.data(),
)
def test_the_bound_fails_with_probability_delta_at_most(masses, shares, size, data):
    problem, delta = theory.star(3, 0.0), data.draw(st.sampled_from([0.2, 0.5, 0.8]))
    policies = [star_policy(problem, dict(enumerate(share))) for share in shares]
    pairs = star_pairs(masses)
    assert failures(sharp_bound, problem, policies, pairs, pairs, size, delta) <= delta
    weights = np.broadcast_to(np.asarray([1.0, 0.5, 0.2]), pairs.shape)
    target = reweighted(pairs, weights)
    assert (
        failures(sharp_bound, problem, policies, pairs, target, size, delta, weights=weights)
        <= delta
    )


@pytest.mark.parametrize("bound_of", [paper_bound, sharp_bound])
def test_the_sample_term_cannot_be_dropped(bound_of):
    """A policy that is wrong for one pair in ten: a sample of five misses that pair more often than
    not.
    """
    problem = theory.star(2, 0.0)
    pairs, policies = star_pairs(np.array([0.1, 0.9])), [star_policy(problem, {0: 1.0})]
    assert failures(bound_of, problem, policies, pairs, pairs, 5, 0.2) <= 0.2
    assert failures(
        bound_of, problem, policies, pairs, pairs, 5, 0.2, term="sample"
    ) == pytest.approx(0.9**5)


def test_the_number_of_policies_cannot_be_dropped():
    """Four of eight goals wrong: whichever four samples are drawn, one of these 70 policies looks
    perfect on them.
    """
    problem = theory.star(8, 0.0)
    expert = theory.optimal_policy(problem)
    pairs = star_pairs(uniform(8))
    for goals in itertools.combinations(
        range(8), 4
    ):  # samples with repetitions leave even more goals unseen
        policy = star_policy(problem, {goal: 1.0 for goal in range(8) if goal not in goals})
        sample = Sample(np.zeros(4, int), np.asarray(goals), math.log(70), 0.5)
        loss = theory.suboptimality(problem, pairs, expert, policy)
        assert loss <= sharp_bound(problem, expert, expert, policy, pairs, pairs, sample).total
        assert (
            loss
            > sharp_bound(
                problem, expert, expert, policy, pairs, pairs, replace(sample, log_policies=0.0)
            ).total
        )


def test_weights_are_paid_for_in_the_last_term():
    """A rare pair is weighted up to one half: without the factor max h the bound fails whenever the
    sample misses it.
    """
    problem = theory.star(2, 0.0)
    pairs, weights = (
        star_pairs(np.array([0.02, 0.98])),
        np.broadcast_to(np.array([0.5 / 0.02, 0.5 / 0.98]), (3, 2)),
    )
    target, wrong = star_pairs(uniform(2)), star_policy(problem, {0: 1.0})
    expert = theory.optimal_policy(problem)
    missed = Sample(
        np.zeros(10, int), np.ones(10, int), 0.0, 0.1
    )  # with probability 0.98^10 = 0.82, far more than δ
    bound = sharp_bound(problem, expert, expert, wrong, pairs, target, missed, weights)
    assert bound.sample == pytest.approx(25.0 * theory.sample_term(10, 0.0, 0.1))
    unpaid = replace(bound, sample=bound.sample / 25.0)
    assert unpaid.total < theory.suboptimality(problem, target, expert, wrong) <= bound.total


# Where the paper's statement needs mending


def test_the_largest_reward_is_not_enough_for_costs():
    """Rewards of −1 and 0: with R_max = max r = 0 the printed bound would be 0."""
    binary = theory.star(2, 0.5)
    problem = replace(binary, reward=binary.reward - 1.0)
    expert, wrong = star_policy(problem, {}), star_policy(problem, {0: 1.0})
    target = point_mass((3, 2), (0, 0))
    assert np.max(problem.reward) == 0.0
    bound = paper_bound(problem, expert, expert, wrong, target, target)
    assert 0.0 < theory.suboptimality(problem, target, expert, wrong) <= bound.total


def test_losses_on_first_pairs_alone_say_nothing():
    """Definition B.3 compares the policies at (s_0, g) itself. On a line of three a policy can stop
    half-way, unseen by it.
    """
    problem = theory.grid(3, 1, 0.5)
    expert = theory.optimal_policy(problem)
    stops = expert.copy()
    stops[1, 2] = np.eye(5)[0]
    start = point_mass((3, 3), (0, 2))
    assert theory.discrepancy(start, expert, stops) == variation_divergence(start, start) == 0.0
    loss = theory.suboptimality(problem, start, expert, stops)
    assert 0.0 < loss <= paper_bound(problem, expert, expert, stops, start, start).total
    assert (
        loss <= sharp_bound(problem, expert, expert, stops, start, start).total
    )  # the first pairs as data: a shift from T' to T


def test_weighted_imitation_also_reweights_the_pairs():
    """One distribution for two pairs: Σ S w π_b log π is greatest at the mean of the surrogates
    under S · Σ_a w π_b, not S.
    """
    source = np.array([[0.5, 0.5]])
    behaviour, weights = np.full((1, 2, 2), 0.5), np.array([[[9.0, 1.0], [0.1, 0.9]]])
    surrogate = theory.surrogate_policy(behaviour, weights)
    best = np.einsum("sg,sga->a", source, behaviour * weights)
    normalizer = np.sum(behaviour * weights, axis=-1)
    np.testing.assert_allclose(
        best / best.sum(), np.einsum("sg,sga->a", reweighted(source, normalizer), surrogate)
    )
    np.testing.assert_allclose(np.einsum("sg,sga->a", source, surrogate), [0.5, 0.5])
    np.testing.assert_allclose(best / best.sum(), [9.1 / 11, 1.9 / 11])


# The page


def test_the_page_prints_what_it_shows():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, flags=re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "theory.md", "exec"), {"__name__": "page"})
    assert printed.getvalue() == shown


def test_every_function_that_the_page_names_exists():
    named = set(re.findall(r"`(\w+)`", PAGE))
    assert len(named) >= 12
    assert not [name for name in named if not hasattr(theory, name)]
