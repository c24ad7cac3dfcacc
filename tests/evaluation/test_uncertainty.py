"""What an agent is uncertain about."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl import algorithms
from goatrl.evaluation import uncertainty
from goatrl.evaluation.uncertainty import portions, rank_by_weight, value_spread
from goatrl.learn import normalize
from goatrl.learn.networks import Architecture, init_mlp, policy_action
from goatrl.training.offline import init
from goatrl.types import Episodes, GoatError, Settings, Spec, TrainState, pytree

pytestmark = pytest.mark.usefixtures("few_percentiles")


@pytree
class HandValue:
    """Two values, 1 and 3 times the goal's first coordinate: their standard deviation is that
    coordinate.
    """

    scale: float
    size: int = 2

    def values(
        self, params: jax.Array, observation: jax.Array, goal: jax.Array, action: jax.Array
    ) -> jax.Array:
        assert observation.shape == goal.shape == action.shape
        return params * jnp.stack([goal[:, 0], 3.0 * goal[:, 0]])


@pytree
class Valued:
    value: Any

    def act(self, state: TrainState, observation: jax.Array, goal: jax.Array) -> jax.Array:
        return policy_action(state.params["policy"], observation, goal)


def valued_state(factors: list[float]) -> TrainState:
    normalizer = normalize.identity(Spec(2, 2, 2, 49, 1.0))
    params = {
        "value": jnp.array(factors),
        "policy": jax.vmap(lambda k: init_mlp(k, 4, 2, Architecture((3,))))(
            jax.random.split(jax.random.key(0), 2)
        ),
    }
    step = jnp.zeros(2)
    repeated = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), normalizer)
    return TrainState(step, params, {}, {}, {}, repeated)


def one_of(state: Any, member: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[member], state)


def test_value_spread_is_the_members_own() -> None:
    state, goals = valued_state([1.0, 5.0]), np.array([[0.0, 9.0], [1.0, 9.0], [-2.0, 9.0]])
    np.testing.assert_allclose(
        value_spread(Valued(HandValue(1.0)), one_of(state, 0), goals), [0.0, 1.0, 2.0], atol=1e-6
    )
    np.testing.assert_allclose(
        value_spread(Valued(HandValue(1.0)), one_of(state, 1), goals), [0.0, 5.0, 10.0], atol=1e-6
    )


@pytest.mark.parametrize("agent", [Valued(None), Valued(HandValue(1.0, size=1))])
def test_value_spread_needs_an_ensemble(agent: Any) -> None:
    with pytest.raises(GoatError, match="no value ensemble"):
        value_spread(agent, one_of(valued_state([1.0, 1.0]), 0), np.zeros((1, 2)))


def test_portions_follow_the_rank() -> None:
    rank = np.array([3.0, 1.0, 2.0, 4.0])
    found = portions(
        rank,
        weight=rank / 10,
        loss=np.array([1.0, 2.0, 4.0, 8.0]),
        distance=np.array([0.0, 6.0, 2.0, 4.0]),
        size=2,
    )
    np.testing.assert_allclose(found.weight, [0.15, 0.35])
    np.testing.assert_allclose(
        found.loss, [3.0, 4.5]
    )  # of ranks 1 and 2: 2 and 4; of ranks 3 and 4: 1 and 8
    np.testing.assert_allclose(found.distance, [4.0, 2.0])


@pytest.mark.parametrize("name", ["goat", "hiql"])  # the latter has two policies
def test_weights_rise_from_portion_to_portion(name: str, point_episodes: Episodes) -> None:
    spec = point_episodes.spec(1.0)
    members = [(algorithms.get(name).build(Settings()), 0)]
    state = jax.tree.map(
        lambda leaf: leaf[0], init(members, spec, normalize.from_episodes(point_episodes))
    )
    found = rank_by_weight(members[0][0], state, point_episodes, spec)
    assert found.weight.shape == found.loss.shape == found.distance.shape == (10,)
    assert (np.diff(found.weight) >= 0).all()  # many are clipped to 1
    assert 0.5 <= found.weight[0] < found.weight[-1] <= 1.0
    achieved = np.asarray(point_episodes.achieved)
    assert 0 < found.distance.mean() < np.ptp(achieved[..., 0]) ** 2 + np.ptp(achieved[..., 1]) ** 2
    again = rank_by_weight(members[0][0], state, point_episodes, spec)
    np.testing.assert_array_equal(found.loss, again.loss)


def test_ranking_needs_an_ensemble(point_episodes: Episodes) -> None:
    spec = point_episodes.spec(1.0)
    members = [(algorithms.get("wgcsl").build(Settings()), 0)]
    state = jax.tree.map(lambda leaf: leaf[0], init(members, spec))
    with pytest.raises(GoatError, match="no value ensemble"):
        uncertainty.rank_by_weight(members[0][0], state, point_episodes, spec)
