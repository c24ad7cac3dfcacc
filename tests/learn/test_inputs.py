"""What networks see: (s, g), (s, g − φ(s)), or everything from where the achieved goal is."""

from __future__ import annotations

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl import algorithms
from goatrl.episodes import make_episodes
from goatrl.learn import networks, normalize, symmetry
from goatrl.learn.networks import Architecture, View, init_mlp, mlp
from goatrl.training import offline
from goatrl.types import GoatError, Layout, Settings
from helpers import network

pytestmark = pytest.mark.usefixtures("few_percentiles")

# gripper (2), block (2), speed
OBSERVATION = jnp.asarray([[1.0, 2.0, 4.0, 6.0, 9.0]])
GOAL = jnp.asarray([[10.0, 20.0]])
ACTION = jnp.asarray([[0.5]])


def test_a_difference_is_seen_beside_the_whole_observation():
    seen = View((2, 3))(OBSERVATION, GOAL, ACTION)
    expected = [[1.0, 2.0, 4.0, 6.0, 9.0], [6.0, 14.0], [0.5]]
    for found, wanted in zip(seen, expected, strict=True):
        np.testing.assert_array_equal(found, [wanted])


def test_in_the_goal_frame_nothing_has_a_place_of_its_own():
    seen = np.concatenate(View((2, 3), (0, 1))(OBSERVATION, GOAL, ACTION), axis=1)
    np.testing.assert_array_equal(seen, [[9.0, -3.0, -4.0, 6.0, 14.0, 0.5]])
    moved = OBSERVATION + jnp.asarray([[7.0, -3.0, 7.0, -3.0, 0.0]])
    again = View((2, 3), (0, 1))(moved, GOAL + jnp.asarray([[7.0, -3.0]]), ACTION)
    np.testing.assert_array_equal(np.concatenate(again, axis=1), seen)


def test_upright_the_frame_moves_along_the_table_but_not_up():
    view = View((2, 3), (0, 1), vertical=(1,))
    seen = np.concatenate(view(OBSERVATION, GOAL, ACTION), axis=1)
    # speed, the gripper from the block, the block's height, the goal from the block, the action
    np.testing.assert_array_equal(seen, [[9.0, -3.0, -4.0, 6.0, 6.0, 14.0, 0.5]])

    def moved(by):
        observation = OBSERVATION + jnp.asarray([[*by, *by, 0.0]])
        return np.concatenate(view(observation, GOAL + jnp.asarray([by]), ACTION), axis=1)

    np.testing.assert_array_equal(moved([7.0, 0.0]), seen)
    np.testing.assert_array_equal(moved([0.0, 7.0]) - seen, [[0, 0, 0, 7.0, 0, 0, 0]])


def test_bounded_heights_are_those_of_the_data():
    """What is above them is lowered with all that is seen from it, and what is below is lifted."""
    view = View((2, 3), (0, 1), vertical=(1,), bounded=True)
    lowest, highest = jnp.asarray([-jnp.inf, 1.0]), jnp.asarray([jnp.inf, 2.0])

    def seen(height):
        observation = jnp.asarray([[1.0, height + 0.5, 4.0, height, 9.0]])
        return view.within(observation, jnp.asarray([[10.0, height + 3.0]]), lowest, highest)

    for height, expected in ((5.0, 2.0), (2.0, 2.0), (1.25, 1.25), (-3.0, 1.0)):
        observation, goal = seen(height)
        np.testing.assert_array_equal(observation, [[1.0, expected + 0.5, 4.0, expected, 9.0]])
        np.testing.assert_array_equal(goal, [[10.0, expected + 3.0]])


def episodes_of(heights):
    """Places of a block in two dimensions, and of a hand 1 beside it."""
    rng = np.random.default_rng(0)
    block = np.stack([rng.normal(size=(40, 6)), rng.uniform(*heights, (40, 6))], axis=-1)
    observations = np.concatenate([block + np.array([1.0, 0.0]), block], axis=-1)
    return make_episodes(observations, block, rng.uniform(-1, 1, (40, 5, 1)), block[:, -1] + 0.1)


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({}, [0.0, 1.0]),
        ({"reflection": [{"goal": {"0": 5.0}}]}, [0.0, 1.0]),
        ({"reflection": [{"goal": {"1": 3.0}}]}, [0.0, 3.0]),
        ({"translation": [{"goal": [1], "by": [-2.0, 5.0]}]}, [-2.0, 6.0]),
        (
            {"rotation": [{"goal": {"places": [[0, 1]]}, "around": [0.0, 0.0], "by": [-1, 1]}]},
            [-np.inf, np.inf],
        ),
    ],
)
def test_bounds_are_those_of_what_training_sees(about, expected):
    data = episodes_of((0.0, 1.0))
    maps = symmetry.read(json.dumps(about) if about else "", data.spec(0.1))
    view = View((2, 3), (0, 1), vertical=(1,), bounded=True)
    found = normalize.from_episodes(data, view, maps)
    assert (found.lowest[0], found.highest[0]) == (-np.inf, np.inf)
    np.testing.assert_allclose([found.lowest[1], found.highest[1]], expected, atol=0.02)
    others = normalize.from_episodes(data, dataclasses.replace(view, bounded=False), maps)
    assert others.lowest is None
    np.testing.assert_array_equal(found.goal_mean, others.goal_mean)


def test_an_agent_acts_beyond_the_heights_of_its_data_as_it_does_at_their_end():
    data, actions = episodes_of((0.0, 1.0)), {}
    for inputs in ("upright-frame", "bounded-frame"):
        numbers = {"inputs": inputs, "achieved": (2, 3), "positions": (0, 1), "vertical": (1,)}
        agent = algorithms.get("bc").build(Settings())
        agent = dataclasses.replace(agent, architecture=Architecture((16,), **numbers))
        (last,) = offline.train(
            [(agent, 0)], data.spec(0.1), data, updates=20, batch_size=16, interval=20
        )
        state = jax.tree.map(lambda leaf: leaf[0], last.state)
        seen = jnp.asarray([[1.0, height, 0.0, height] for height in (0.5, 1.0, 3.0)])
        actions[inputs] = np.asarray(normalize.act(agent, state, seen, seen[:, 2:] + 0.5))[:, 0]
    inside, at_end, beyond = actions["bounded-frame"]
    assert beyond == pytest.approx(at_end, abs=1e-3)  # no height is exactly 1
    assert abs(inside - at_end) > 0.01
    assert abs(beyond - actions["upright-frame"][2]) > 0.01
    assert inside == pytest.approx(actions["upright-frame"][0], abs=1e-6)


def test_columns_keep_their_order_and_axes():
    view = View((3, 0), (2, 1))
    seen = np.concatenate(view(OBSERVATION, GOAL), axis=1)
    # speed, then (4, 2) − (6, 1), then (10, 20) − (6, 1)
    np.testing.assert_array_equal(seen, [[9.0, -2.0, 1.0, 4.0, 19.0]])
    assert view.axes == {3: 0, 0: 1, 2: 0, 1: 1}


@pytest.mark.parametrize(
    ("inputs", "size"),
    [
        ("absolute", 8),
        ("difference", 8),
        ("goal-frame", 6),
        ("upright-frame", 7),
        ("bounded-frame", 7),
    ],
)
def test_a_network_is_as_wide_as_what_it_sees(inputs, size):
    shape = Architecture((3,), inputs=inputs, achieved=(2, 3), positions=(0, 1), vertical=(1,))
    net = init_mlp(jax.random.key(0), 8, 1, shape)
    assert net.layers[0]["w"].shape == (size, 3)
    assert mlp(net, OBSERVATION, GOAL, ACTION).shape == (1, 1)


def test_the_network_is_applied_to_what_it_sees():
    plain = network(([[1.0], [10.0], [0.0], [0.0], [0.0], [100.0], [0.0]], [0.0]))
    seeing = dataclasses.replace(plain, view=View((2, 3)))
    np.testing.assert_allclose(mlp(plain, OBSERVATION, GOAL), [[1.0 + 20.0 + 1000.0]])
    np.testing.assert_allclose(mlp(seeing, OBSERVATION, GOAL), [[1.0 + 20.0 + 600.0]])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"inputs": "polar"}, "must be one of absolute, difference, goal-frame, upright-frame"),
        ({"inputs": "upright-frame", "achieved": (0, 1)}, "upright-frame needs architecture.vert"),
        ({"inputs": "bounded-frame", "achieved": (0, 1)}, "bounded-frame needs architecture.vert"),
        ({"inputs": "difference"}, "needs architecture.achieved"),
        (
            {"inputs": "goal-frame", "achieved": (0, 1), "positions": (2, 3, 4)},
            "must name as many columns as a goal has numbers",
        ),
    ],
)
def test_what_cannot_be_seen_is_refused(settings, message):
    with pytest.raises(GoatError, match=message):
        Architecture(**settings).view  # noqa: B018


def episodes():
    rng = np.random.default_rng(0)
    observations = rng.normal([1.0, 5.0, -3.0], [0.1, 2.0, 30.0], size=(40, 6, 3))
    achieved = observations[:, :, 1:2]
    return make_episodes(
        observations, achieved, rng.uniform(-1, 1, (40, 5, 2)), achieved[:, -1] + 1
    )


def test_what_is_compared_with_the_goal_is_normalised_like_it():
    data = episodes()
    plain = normalize.from_episodes(data)
    seen = normalize.from_episodes(data, View((1,), (0,)))
    for kind in ("mean", "std"):
        before, after = (np.asarray(getattr(n, f"observation_{kind}")) for n in (plain, seen))
        goal, own = (np.asarray(getattr(n, f"goal_{kind}")) for n in (seen, plain))
        # the larger spread, so that nothing that is compared exceeds all bounds
        assert goal[0] == (own[0] if kind == "mean" else max(own[0], *before[:2]))
        np.testing.assert_array_equal(after[:2], [goal[0], goal[0]])
        assert after[2] == before[2]
    (difference,) = View((1,))(seen.observation(data.observations[0]), seen.goal(data.goals[:1]))[
        1:
    ]
    expected = (data.goals[0] - data.observations[0, :, 1:2]) / np.asarray(seen.goal_std)
    np.testing.assert_allclose(difference, expected, rtol=1e-4)


def test_a_layout_is_found_in_the_data():
    assert episodes().layout() == Layout((1,))
    other = dataclasses.replace(episodes(), achieved=episodes().achieved + 1e-3)
    assert other.layout() is None
    seen = np.asarray(episodes().observations)
    twice = np.concatenate([seen[..., 1:2], seen[..., 1:2]], axis=-1)
    doubled = dataclasses.replace(
        episodes(), observations=np.concatenate([seen, twice], axis=-1), achieved=twice
    )
    assert doubled.layout() == Layout((1, 3)), "a column is one number of the goal"


@pytest.mark.parametrize(
    ("achieved", "positions", "message"),
    [
        ((1, 2), None, "must name 1 columns"),
        ((7,), None, "different columns from 0 to 2, not 7"),
        ((1,), (2, 2), "different columns from 0 to 2, not 1, 2, 2"),
        ((1,), (1,), "architecture.positions names 1, which the achieved goal has"),
    ],
)
def test_columns_that_are_not_there_are_refused(achieved, positions, message):
    agent = dataclasses.replace(
        algorithms.get("bc").build(Settings()),
        architecture=Architecture(inputs="goal-frame", achieved=achieved, positions=positions),
    )
    with pytest.raises(GoatError, match=message):
        networks.check_view(agent, episodes().spec(0.1))


@pytest.mark.parametrize("vertical", [(1,), (0, 0), (-1,)])
def test_heights_that_a_goal_does_not_have_are_refused(vertical):
    shape = Architecture(inputs="upright-frame", achieved=(1,), vertical=vertical)
    agent = dataclasses.replace(algorithms.get("bc").build(Settings()), architecture=shape)
    with pytest.raises(GoatError, match="must name different numbers of a goal, from 0 to 0"):
        networks.check_view(agent, episodes().spec(0.1))


@pytest.mark.parametrize("name", ["goat", "gofar", "iql_her", "goat_rnd", "wgcsl_adsw", "cql_her"])
@pytest.mark.parametrize("inputs", ["difference", "goal-frame", "upright-frame"])
def test_every_part_trains_on_what_it_sees(name, inputs):
    built = algorithms.get(name).build(Settings(target_period=2))
    shape = Architecture((8,), inputs=inputs, achieved=(1,), positions=(0,), vertical=(0,))
    algorithm = dataclasses.replace(built, architecture=shape)
    data = episodes()
    run = offline.train(
        [(algorithm, 0)], data.spec(0.1), data, updates=4, batch_size=16, interval=4
    )
    (chunk,) = run
    assert all(np.isfinite(values).all() for values in chunk.metrics.values())
    # Moving every place, goals included, changes nothing in the goal frame, and something else.
    state = jax.tree.map(lambda leaf: leaf[0], chunk.state)
    seen, goals = jnp.asarray(data.observations[:3, 0]), jnp.asarray(data.goals[:3])
    moved = seen + jnp.asarray([[0.5, 0.5, 0.0]])
    before = normalize.act(algorithm, state, seen, goals)
    after = normalize.act(algorithm, state, moved, goals + 0.5)
    same = np.allclose(before, after, atol=1e-5)
    assert same == (inputs == "goal-frame")


def test_users_networks_see_the_same():
    """A file of one's own gets the view from the architecture, without a word about it."""
    shape = Architecture((4,), inputs="difference", achieved=(0,))
    assert networks.init_ensemble(jax.random.key(0), 2, 3, 1, shape).view == View((0,))
