"""The newer algorithms against NumPy, written again from their equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from algorithms.in_numpy import assert_same_updates, network, scalars
from goatrl.types import Batch

DISCOUNT = 0.98


def bootstrapped(batch: Batch, later: np.ndarray) -> np.ndarray:
    """−1 a step up to the goal. Where an episode was ended, nothing is reached any more."""
    later = np.where(batch.ended == 1, -1.0 / (1.0 - DISCOUNT), later)
    return np.where(batch.reward == 1, 0.0, -1.0 + DISCOUNT * later)


def expectile_v(params: Any, target: Any, batch: Batch, tau: float) -> float:
    old, later = (
        scalars(target, seen, batch.goal) for seen in (batch.observation, batch.next_observation)
    )
    advantage = bootstrapped(batch, later.min(axis=0)) - old.mean(axis=0)
    error = bootstrapped(batch, later) - scalars(params, batch.observation, batch.goal)
    return float((np.where(advantage < 0, 1 - tau, tau) * error**2).mean(axis=-1).sum())


def clone(policy: Any, batch: Batch, weight: Any) -> float:
    """Weighted imitation towards the policy's goals."""
    action = np.tanh(network(policy, batch.observation, batch.policy_goal))
    return float((weight * ((batch.action - action) ** 2).mean(axis=-1)).mean())


def test_gcivl() -> None:
    def loss(params: Any, still: Any, target: Any, batch: Batch) -> float:
        here, there = (
            scalars(still["value"], seen, batch.policy_goal).mean(axis=0)
            for seen in (batch.observation, batch.next_observation)
        )
        there = np.where(batch.ended == 1, -1.0 / (1.0 - DISCOUNT), there)
        weight = np.minimum(np.exp(10.0 * (there - here)), 100.0)
        value = expectile_v(params["value"], target["value"], batch, 0.9)
        return value + clone(params["policy"], batch, weight)

    assert_same_updates("gcivl", loss)


def extracted(params: Any, still: Any, batch: Batch, values: Any, alpha: float) -> float:
    """DDPG+BC towards the policy's goals; `values` is a function of actions: (B, D) → (N, B)."""
    action, as_it_was = (
        np.tanh(network(each["policy"], batch.observation, batch.policy_goal))
        for each in (params, still)
    )
    scale = np.abs(values(as_it_was).min(axis=0)).mean() + 1e-6
    squares = ((batch.action - action) ** 2).sum(axis=-1)
    return float(-values(action).min(axis=0).mean() / scale + alpha * 0.5 * squares.mean())


def test_gciql() -> None:
    def loss(params: Any, still: Any, target: Any, batch: Batch) -> float:
        now, goal = batch.observation, batch.goal
        q = scalars(target["value"]["q"], now, goal, batch.action).min(axis=0)
        error = q - scalars(params["value"]["v"], now, goal)
        v_loss = (np.where(error < 0, 0.1, 0.9) * error**2).mean()
        aim = bootstrapped(batch, scalars(still["value"]["v"], batch.next_observation, goal))
        q_error = scalars(params["value"]["q"], now, goal, batch.action) - aim
        policy = extracted(
            params,
            still,
            batch,
            lambda action: scalars(still["value"]["q"], now, batch.policy_goal, action),
            1.0,
        )
        return float(v_loss + (q_error**2).mean(axis=-1).sum() + policy)

    assert_same_updates("gciql", loss)


def test_hiql() -> None:
    def loss(params: Any, still: Any, target: Any, batch: Batch) -> float:
        now, ahead, way = batch.observation, batch.extra_goals["ahead"], batch.extra_goals["way"]

        def weight(later: np.ndarray, goal: np.ndarray) -> np.ndarray:
            won = scalars(still["value"], later, goal) - scalars(still["value"], now, goal)
            return np.minimum(np.exp(3.0 * won.mean(axis=0)), 100.0)

        action = np.tanh(network(params["policy"]["low"], now, ahead))
        subgoal = network(params["policy"]["high"], now, batch.policy_goal)
        low = weight(batch.next_observation, ahead) * ((batch.action - action) ** 2).mean(axis=-1)
        far = weight(batch.extra_observations["way"], batch.policy_goal)
        high = far * ((way - subgoal) ** 2).mean(axis=-1)
        value = expectile_v(params["value"], target["value"], batch, 0.7)
        return float(value + low.mean() + high.mean())

    assert_same_updates("hiql", loss)


def test_crl() -> None:
    def loss(params: Any, still: Any, target: Any, batch: Batch) -> float:
        def embedded(of: Any, action: np.ndarray, goal: np.ndarray) -> tuple[np.ndarray, ...]:
            pair = network(of["value"]["action"], batch.observation, action)
            return pair, network(of["value"]["goal"], goal)

        pair, goal = embedded(params, batch.action, batch.goal)
        logits = pair @ goal.swapaxes(1, 2) / np.sqrt(6)
        own = np.eye(len(batch.reward))
        entropy = np.log1p(np.exp(-logits)) * own + np.log1p(np.exp(logits)) * (1 - own)

        def values(action: np.ndarray) -> np.ndarray:
            pair, goal = embedded(still, action, batch.policy_goal)
            return (pair * goal).sum(axis=-1) / np.sqrt(6)

        return float(entropy.mean()) + extracted(params, still, batch, values, 3.0)

    assert_same_updates("crl", loss, **{"contrastive_q.latent": 6})


def union(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How much of the line some intervals cover, piece by piece: (…, D), (…, D) → (…)."""
    ends = np.sort(np.concatenate([start, end], axis=-1), axis=-1)
    middle = ((ends[..., 1:] + ends[..., :-1]) / 2)[..., None]
    covered = (start[..., None, :] < middle) & (middle < end[..., None, :])
    return (np.diff(ends) * covered.any(axis=-1)).sum(axis=-1)


def test_qrl() -> None:
    def distance(of: Any, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """(B, 4): two groups of two."""
        lengths = union(start.reshape(-1, 2, 2), end.reshape(-1, 2, 2))
        share = 1.0 / (1.0 + np.exp(-of["value"]["mix"]))
        return share * lengths.mean(axis=-1) + (1.0 - share) * lengths.max(axis=-1)

    def loss(params: Any, still: Any, target: Any, batch: Batch) -> float:
        def state(of: Any, seen: np.ndarray) -> np.ndarray:
            return network(of["value"]["state"], seen)

        def step(of: Any, action: np.ndarray) -> np.ndarray:
            here = state(of, batch.observation)
            return here + network(of["value"]["step"], here, action)

        def goal(of: Any, goal: np.ndarray) -> np.ndarray:
            return network(of["value"]["goal"], goal)

        def violation(of: Any) -> float:
            here, there = state(of, batch.observation), state(of, batch.next_observation)
            excess = np.maximum(distance(of, here, there) - 1.0, 0.0)
            arrived = distance(of, there, goal(of, batch.next_achieved))
            return float((excess**2 + arrived**2).mean())

        apart = distance(params, state(params, batch.observation), goal(params, batch.goal))
        spread = 100.0 * np.log1p(np.exp(5.0 - apart / 100.0)).mean()
        there, guess = state(params, batch.next_observation), step(params, batch.action)
        model = (distance(params, there, guess) + distance(params, guess, there)).mean() / 2
        held = np.exp(still["value"]["log_multiplier"]) * violation(params)
        multiplier = np.exp(params["value"]["log_multiplier"]) * (0.05 - violation(still))

        def values(action: np.ndarray) -> np.ndarray:
            return -distance(still, step(still, action), goal(still, batch.policy_goal))[None]

        policy = extracted(params, still, batch, values, 0.3)
        return float(spread + model + held + multiplier) + policy

    small = {"quasimetric.groups": 2, "quasimetric.group": 2}
    assert_same_updates("qrl", loss, **small)


def test_smore() -> None:
    cost = 0.1  # scores of 100 would leave no digits to the policy's slopes

    def loss(params: Any, still: Any, target: Any, batch: Batch) -> float:
        now, goal, top = batch.observation, batch.goal, cost / (1.0 - DISCOUNT)
        old = scalars(target["value"]["q"], now, goal, batch.action).min(axis=0)
        error = old - scalars(params["value"]["v"], now, goal)
        v_loss = (np.where(error < 0, 0.2, 0.8) * error**2).mean()
        later = scalars(still["value"]["v"], batch.next_observation, goal)
        later = np.where(batch.ended == 1, -top, later)
        q, entering = (
            scalars(params["value"]["q"], now, each, batch.action)
            for each in (goal, batch.next_achieved)
        )
        q_loss = (entering - top) ** 2 + 0.5 * (q + cost - DISCOUNT * later) ** 2
        q_loss += 1e-4 * (1.0 - DISCOUNT) * q**2
        own = batch.policy_goal
        best = scalars(target["value"]["q"], now, own, batch.action).min(axis=0)
        won = best - scalars(still["value"]["v"], now, own)
        weight = np.minimum(np.exp(3.0 * won), 100.0)
        policy = clone(params["policy"], batch, weight)
        return float(v_loss + q_loss.mean(axis=-1).sum()) + policy

    assert_same_updates("smore", loss, **{"score_q.cost": cost})


def test_trl() -> None:
    decay = 0.5

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + np.exp(-x))

    def loss(params: Any, still: Any, target: Any, batch: Batch) -> float:
        now, way, there = (
            batch.observation,
            batch.extra_goals["between"],
            batch.extra_observations["between"],
        )
        passed, done = batch.extras["offset"], batch.extras["action"]
        aim = np.ones(len(passed))
        for rest, inputs in (
            (passed, (now, way, batch.action)),
            (batch.offset - passed, (there, batch.goal, done)),
        ):
            guess = sigmoid(scalars(target["value"], *inputs))
            aim = aim * np.where(rest <= 1, DISCOUNT ** rest.astype(float), guess)
        x = scalars(params["value"], now, batch.goal, batch.action)
        entropy = -aim * np.log(sigmoid(x)) - (1 - aim) * np.log(sigmoid(-x))
        side = np.where(
            aim < sigmoid(scalars(still["value"], now, batch.goal, batch.action)), 0.3, 0.7
        )
        near = (1.0 + np.log(aim) / np.log(DISCOUNT)) ** -decay
        own = batch.policy_goal
        mine = np.tanh(network(still["policy"], now, own))
        q, v = (scalars(still["value"], now, own, action) for action in (batch.action, mine))
        weight = np.minimum(np.exp(3.0 * (q - v).mean(axis=0)), 100.0)
        return float((side * near * entropy).mean()) + clone(params["policy"], batch, weight)

    assert_same_updates("trl", loss, **{"transitive_q.decay": decay})
