"""Symmetries by hand: what becomes of a transition, and of the statistics that normalise it."""

from __future__ import annotations

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl.episodes import make_episodes
from goatrl.learn import normalize, symmetry
from goatrl.learn.agent import Agent
from goatrl.learn.networks import Architecture
from goatrl.learn.policies import WeightedBC
from goatrl.learn.samplers import Hindsight
from goatrl.training import offline
from goatrl.types import GoatError, Spec

pytestmark = pytest.mark.usefixtures("few_percentiles")

SPEC = Spec(observation_dim=3, goal_dim=2, action_dim=1, horizon=4, goal_threshold=0.1)
REFLECTION = {
    "reflection": [
        {"observation": {"0": 2.0}, "goal": {"1": 3.0}, "action": {"0": 0.0}, "swap": [[1, 2]]}
    ]
}
TRANSLATION = {"translation": [{"observation": [0, 2], "goal": [1], "by": [1.0, 2.0]}]}
ROTATION = {
    "rotation": [
        {
            "observation": {"places": [[0, 2]], "angles": [1]},
            "goal": {"places": [[0, 1]]},
            "around": [1.0, -3.0],
            "by": [-0.5, 0.5],
        }
    ]
}
QUARTER = np.pi / 2


def only(about: dict) -> symmetry.Map:
    (found,) = symmetry.read(json.dumps(about), SPEC)
    return found


@pytest.mark.parametrize("array", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_a_reflection_by_hand(array):
    found, none = only(REFLECTION), array([[0.0]])
    np.testing.assert_array_equal(
        found.apply("observation", array([[0.5, 10.0, 20.0]]), none), [[1.5, 20.0, 10.0]]
    )
    np.testing.assert_array_equal(found.apply("goal", array([[7.0, 1.0]]), none), [[7.0, 2.0]])
    np.testing.assert_array_equal(found.apply("action", array([[0.25]]), none), [[-0.25]])


def test_a_translation_by_hand():
    found, amount = only(TRANSLATION), np.asarray([[0.5], [2.0]])
    seen = found.apply("observation", np.asarray([[1.0, 2.0, 3.0]] * 2), amount)
    np.testing.assert_array_equal(seen, [[1.5, 2.0, 3.5], [3.0, 2.0, 5.0]])
    goals = found.apply("goal", np.zeros((2, 2)), amount)
    np.testing.assert_array_equal(goals, [[0.0, 0.5], [0.0, 2.0]])
    np.testing.assert_array_equal(found.apply("action", np.ones((2, 1)), amount), np.ones((2, 1)))


@pytest.mark.parametrize("array", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_a_rotation_by_hand(array):
    """A quarter to the left around (1, −3), and back."""
    found, amount = only(ROTATION), array([[QUARTER], [-QUARTER], [0.0]])
    seen = found.apply("observation", array([[2.0, 7.0, -3.0]] * 3), amount)
    expected = [[1.0, 7.0 + QUARTER, -2.0], [1.0, 7.0 - QUARTER, -4.0], [2.0, 7.0, -3.0]]
    np.testing.assert_allclose(seen, expected, atol=1e-6)
    goals = found.apply("goal", array([[1.0, -1.0]] * 3), amount)
    np.testing.assert_allclose(goals, [[-1.0, -3.0], [3.0, -3.0], [1.0, -1.0]], atol=1e-6)


def test_columns_may_be_strings_as_those_of_a_reflection():
    text = json.dumps({"rotation": [ROTATION["rotation"][0] | {"goal": {"places": [["0", "1"]]}}]})
    (found,) = symmetry.read(text, SPEC)
    (known,) = symmetry.read(json.dumps(ROTATION), SPEC)
    goals, amount = np.asarray([[1.0, -1.0]]), np.asarray([[QUARTER]])
    np.testing.assert_array_equal(
        found.apply("goal", goals, amount), known.apply("goal", goals, amount)
    )


def test_the_range_of_goals_that_are_angles():
    text = json.dumps({"rotation": [{"goal": {"angles": [1]}, "by": [-2.0, 3.0]}]})
    (found,) = symmetry.read(text, SPEC)
    low, high = symmetry.extremes(found, (np.asarray([0.0, 1.0]), np.asarray([5.0, 6.0])))
    assert (low.tolist(), high.tolist()) == ([0.0, -1.0], [5.0, 9.0])


def test_vectors_turn_around_nothing_and_actions_stay_in_their_range():
    about = {
        "action": {"vectors": [[0, 1]]},
        "observation": {"vectors": [[1, 0]]},
        "by": [0.7, 0.8],
    }
    text = json.dumps({"rotation": [about]})
    (found,) = symmetry.read(text, dataclasses.replace(SPEC, action_dim=2))
    eighth = np.asarray([[np.pi / 4]])
    np.testing.assert_allclose(
        found.apply("observation", np.asarray([[1.0, 1.0, 5.0]]), eighth), [[np.sqrt(2), 0.0, 5.0]],
        atol=1e-12,
    )  # fmt: skip
    batch = dataclasses.replace(sampled(4), action=jnp.full((4, 2), 0.9))
    seen = symmetry.augment(text, jax.random.key(0), batch).action
    np.testing.assert_array_equal(seen[:, 1], 1.0)  # not 1.27
    assert (seen[:, 0] > 0.0).all()
    assert (seen[:, 0] < 0.11).all()


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"turning": []}, "not turning"),
        ({"rotation": [{"by": [0.1, 0.1]}]}, r"a rotation needs by = \[low, high\]"),
        ({"rotation": [{"goal": [[0, 1]], "by": [0, 1]}]}, "a rotation has goal = { places"),
        ({"rotation": [{"goal": {"places": [[0, 1]]}, "by": [0, 1]}]}, r"needs around = \[x, y\]"),
        ({"rotation": [{"goal": {"vectors": [0, 1]}, "by": [0, 1]}]}, r"turns pairs \[\[x, y\]\]"),
        ({"rotation": [{"goal": {"vectors": [[0, 2]]}, "by": [0, 1]}]}, "column 2 of the goal"),
        ({"rotation": [{"goal": {"vectors": [[0, 0]]}, "by": [0, 1]}]}, "turns a column once"),
        (
            {"rotation": [{"goal": {"vectors": [[0, 1]], "angles": [1]}, "by": [0, 1]}]},
            "turns a column once",
        ),
        ({"reflection": [{"velocity": {}}]}, "not velocity"),
        ({"reflection": [{"observation": {"3": 0.0}}]}, "column 3 of the observation, which has 3"),
        ({"translation": [{"goal": [2], "by": [0, 1]}]}, "column 2 of the goal, which has 2"),
        ({"translation": [{"goal": [0], "by": [1, 1]}]}, r"needs by = \[low, high\]"),
        ({"translation": [{"goal": [0], "by": 0.1}]}, r"needs by = \[low, high\]"),
        ({"reflection": {"goal": {"0": 0.0}}}, r"write \[\[reflection\]\]"),
        ({"reflection": [{"observation": [1]}]}, "column = sum"),
        ({"reflection": [{"observation": {"x": 0.0}}]}, "are numbers from 0, not 'x'"),
        ({"reflection": [{"observation": {"0": "x"}}]}, "not as docs/inputs.md shows it"),
        (
            {"rotation": [{"goal": {"vectors": [[0, 1]]}, "by": [-180, 180]}]},
            r"by radians, at most once around, not \[-180, 180\]",
        ),
        ({"translation": [{"goal": [0]}]}, r"needs by = \[low, high\].*; it is missing"),
        ({"reflection": [{"swap": [0, 1]}]}, r"swap = \[\[column, column\]\]"),
        ({"reflection": [{"swap": [[0, 1], [1, 2]]}]}, "swaps a column once"),
        ({"reflection": [{"observation": {"0": 1.0}, "swap": [[0, 1]]}]}, "applied twice"),
        ({}, "not nothing"),
        ([1], "not \\[1\\]"),
    ],
)
def test_a_declaration_that_means_nothing_is_refused(about, message):
    with pytest.raises(GoatError, match=message):
        only(about)


def episodes():
    rng = np.random.default_rng(0)
    observations = rng.normal([1.0, 5.0, -3.0], [0.5, 2.0, 3.0], size=(50, 5, 3))
    achieved = observations[:, :, :2]
    return make_episodes(
        observations, achieved, rng.uniform(-1, 1, (50, 4, 1)), achieved[:, -1] + 1
    )


def sampled(size: int = 256):
    data = episodes()
    return Hindsight(0.5).sample(jax.random.key(0), data, size, 0.1, data.rows)


def test_every_second_row_is_reflected_as_a_whole():
    batch, found = sampled(), only(REFLECTION)
    seen = symmetry.augment(json.dumps(REFLECTION), jax.random.key(1), batch)
    none = jnp.zeros((1, 1))
    turned = np.asarray(seen.action != batch.action)[:, 0]
    assert 90 < turned.sum() < 166
    for name in ("observation", "next_observation", "initial_observation"):
        before, after = np.asarray(getattr(batch, name)), np.asarray(getattr(seen, name))
        image = np.asarray(found.apply("observation", before, none))
        np.testing.assert_allclose(after, np.where(turned[:, None], image, before), rtol=1e-6)
    for name in ("achieved", "next_achieved", "goal", "policy_goal"):
        before, after = np.asarray(getattr(batch, name)), np.asarray(getattr(seen, name))
        image = np.asarray(found.apply("goal", before, none))
        np.testing.assert_allclose(after, np.where(turned[:, None], image, before), rtol=1e-6)
    for name in ("reward", "mask", "offset"):
        np.testing.assert_array_equal(getattr(seen, name), getattr(batch, name))


def test_every_row_is_moved_by_its_own_amount():
    batch = sampled()
    seen = symmetry.augment(json.dumps(TRANSLATION), jax.random.key(1), batch)
    by = np.asarray(seen.observation - batch.observation)
    assert 1.0 <= by[:, 0].min() < 1.1 < 1.9 < by[:, 0].max() <= 2.0 + 1e-5
    np.testing.assert_allclose(by[:, 2], by[:, 0], atol=1e-5)
    np.testing.assert_array_equal(by[:, 1], 0.0)
    np.testing.assert_allclose(seen.goal - batch.goal, by[:, [1, 0]], atol=1e-5)
    np.testing.assert_array_equal(seen.action, batch.action)


@pytest.mark.parametrize(
    "about",
    [REFLECTION, TRANSLATION, ROTATION, REFLECTION | TRANSLATION | ROTATION],
)
def test_statistics_are_those_of_what_training_sees(about):
    """Moments by arithmetic against a sample."""
    data, text = episodes(), json.dumps(about)
    found = normalize.from_episodes(data, maps=symmetry.read(text, data.spec(0.1)))
    flat = data.observations.reshape(-1, 3)
    rows = np.random.default_rng(1).integers(len(flat), size=40_000)
    batch = dataclasses.replace(
        sampled(1),
        observation=jnp.asarray(flat[rows]),
        reward=jnp.zeros(len(rows)),
        **{
            name: jnp.zeros((len(rows), size))
            for name, size in (
                ("next_observation", 3), ("initial_observation", 3), ("action", 1),
                ("achieved", 2), ("next_achieved", 2), ("goal", 2), ("policy_goal", 2),
            )
        },
    )  # fmt: skip
    seen = symmetry.augment(text, jax.random.key(2), batch).observation
    np.testing.assert_allclose(found.observation_mean, seen.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(found.observation_std, seen.std(axis=0), rtol=0.02)


def test_an_agent_learns_what_its_data_show_in_the_mirror():
    """The data are right of 0 and move away from it; left of 0, the mirror says what to do."""
    rng = np.random.default_rng(0)
    observations = rng.uniform([0.2, -1.0, -1.0], [2.0, 1.0, 1.0], size=(100, 5, 3))
    data = make_episodes(
        observations, observations[:, :, :2], observations[:, :-1, :1] / 2, observations[:, -1, :2]
    )
    turn = {"reflection": [{"observation": {"0": 0.0}, "goal": {"0": 0.0}, "action": {"0": 0.0}}]}
    seen = jnp.asarray([[-0.5, 0.0, 0.0], [-1.0, 0.5, 0.0], [-1.5, 0.0, 0.5]])
    error = {}
    for text in ("", json.dumps(turn)):
        shape = Architecture((32,))
        agent = Agent(
            WeightedBC(),
            None,
            architecture=shape,
            learning_rate=5e-3,
            target_period=1,
            symmetry=text,
        )
        *_, last = offline.train(
            [(agent, 0)], data.spec(0.1), data, updates=1000, batch_size=64, interval=1000
        )
        state = jax.tree.map(lambda leaf: leaf[0], last.state)
        actions = normalize.act(agent, state, seen, seen[:, :2])
        error[text] = np.abs(np.asarray(actions)[:, 0] - np.asarray(seen)[:, 0] / 2).max()
    assert error[json.dumps(turn)] < 0.1 < error[""]
