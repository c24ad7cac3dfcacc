"""The contrastive critic: numbers by hand."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl.learn.contrastive import ContrastiveQ, contrastive_loss
from goatrl.learn.networks import Architecture
from goatrl.types import Spec
from helpers import ensemble, make_batch, network

both_ways = pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
KEY = jax.random.key(0)
BATCH = make_batch(
    observation=jnp.asarray([[1.0], [2.0]]),
    action=jnp.asarray([[0.5], [-1.0]]),
    next_observation=jnp.zeros((2, 1)),
    initial_observation=jnp.zeros((2, 1)),
    achieved=jnp.zeros((2, 1)),
    goal=jnp.asarray([[2.0], [-1.0]]),
    reward=jnp.zeros(2),
    offset=jnp.asarray([1, 2]),
)
# φ(s, a) = (s, a, 0, 0) and (a, 0, 0, 0); ψ(g) = (g, 1, 0, 0) and (2g, 0, 0, 0)
EMPTY = [0.0] * 4
PART = ContrastiveQ(latent=4)
PARAMS = {
    "action": ensemble(
        network(([[1.0, 0, 0, 0], [0, 1.0, 0, 0]], EMPTY)),
        network(([EMPTY, [1.0, 0, 0, 0]], EMPTY)),
    ),
    "goal": ensemble(
        network(([[1.0, 0, 0, 0]], [0, 1.0, 0, 0])),
        network(([[2.0, 0, 0, 0]], EMPTY)),
    ),
}


@both_ways
def test_own_goals_are_positives_and_all_others_negatives(wrap):
    logits = jnp.log(jnp.asarray([[[3.0, 1.0], [1.0 / 3.0, 1.0]]]))
    # own: ¾ and ½; others: 1 − ½ and 1 − ¼
    expected = -np.log([0.75, 0.5, 0.5, 0.75]).mean()
    np.testing.assert_allclose(wrap(contrastive_loss)(logits), expected, rtol=1e-6)


def test_the_loss_pairs_every_action_with_every_goal():
    """d = 4: the first head's s g + a is (2.5, −0.5; 3, −3) by row and goal, the second's 2 a g is
    (2, −1; −4, 2), both halved.
    """
    loss, metrics = PART.loss(PARAMS, PARAMS, BATCH, BATCH.action, 0.9, KEY)
    logits = np.array([[[2.5, -0.5], [3.0, -3.0]], [[2.0, -1.0], [-4.0, 2.0]]]) / 2
    sign = np.array([[1, -1], [-1, 1]])
    np.testing.assert_allclose(loss, np.log1p(np.exp(-sign * logits)).mean(), rtol=1e-6)
    np.testing.assert_allclose(metrics["value"], (2.5 - 3.0 + 2.0 + 2.0) / 8, rtol=1e-6)


def test_values_pair_a_row_with_its_own_goal():
    values = PART.values(PARAMS, BATCH.observation, BATCH.goal, BATCH.action)
    np.testing.assert_allclose(values, [[1.25, -1.5], [1.0, 1.0]])


def test_the_advantage_is_over_the_policys_action():
    action = jnp.asarray([[0.0], [1.0]])
    found, values = PART.advantage(PARAMS, PARAMS, BATCH, action, action, 0.9)
    np.testing.assert_allclose(values, [[1.0, -0.5], [0.0, -1.0]])
    np.testing.assert_allclose(found, [(0.25 + 1.0) / 2, (-1.0 + 2.0) / 2])


def test_no_network_sees_observation_and_goal():
    """So that no difference can be taken, whatever is asked for."""
    asked = dataclasses.replace(Architecture((4,)), inputs="goal-frame", achieved=(0, 1))
    params = PART.init(KEY, Spec(3, 2, 1, 5, 0.1), asked)
    assert params["action"].layers[0]["w"].shape == (2, 4, 4)
    assert params["goal"].layers[0]["w"].shape == (2, 2, 4)
    assert params["action"].view is params["goal"].view is None
