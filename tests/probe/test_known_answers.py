"""Problems so small that the answer is known."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl import algorithms
from goatrl.episodes import make_episodes
from goatrl.learn import normalize
from goatrl.learn.parameters import hyperparameters, override
from goatrl.training import offline
from goatrl.types import Episodes, Settings, TrainState

SETTINGS = Settings(updates=800, batch_size=64, target_period=4, polyak=0.8, alpha_growth=0.1)


def fit(
    name: str, episodes: Episodes, threshold: float, updates: int, **changes: float | None
) -> tuple[object, TrainState]:
    algorithm = algorithms.get(name).build(SETTINGS)
    small = {"architecture.hidden": (64, 64), "percentile_selection.capacity": 5_000}
    known = {key: value for key, value in small.items() if key in hyperparameters(algorithm)}
    algorithm = override(algorithm, known | changes)
    members = [(algorithm, 0)]
    *_, last = offline.train(
        members,
        episodes.spec(threshold),
        episodes,
        updates=updates,
        batch_size=64,
        interval=updates,
    )
    return algorithm, jax.tree.map(lambda leaf: leaf[0], last.state)


def corridor() -> Episodes:
    """A walker goes 0 → 1 → 2 → 3 with action +0.9 and waits at its goal 3 with action 0."""
    positions = np.array([0.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0])[None, :, None]
    actions = np.array([0.9, 0.9, 0.9, 0.0, 0.0, 0.0])[None, :, None]
    return make_episodes(positions, positions, actions, np.array([[3.0]]))


# With γ = ½ and reward 1 on every arrival at, or wait in, 3: V(3) = V(2) = 1/(1−γ) = 2, V(1) = γ·2,
# V(0) = γ²·2.
CORRIDOR_VALUES = [0.5, 1.0, 2.0, 2.0]


@pytest.mark.parametrize("name", ["goat", "goat_v", "wgcsl", "iql_her"])
def test_values_of_the_corridor(name: str) -> None:
    changes = {"hindsight.probability": 0.0, "discount": 0.5}
    if name == "iql_her":
        changes["implicit_q.tau"] = (
            0.5  # one action per state: any expectile is the value, the mean is learned fastest
        )
    algorithm, state = fit(name, corridor(), 0.1, 800, **changes)
    places = state.normalizer.observation(jnp.asarray([[0.0], [1.0], [2.0], [3.0]]))
    goal = state.normalizer.goal(jnp.full((4, 1), 3.0))
    action = jnp.asarray([[0.9], [0.9], [0.9], [0.0]])
    values = np.asarray(algorithm.value.values(state.params["value"], places, goal, action)).mean(
        axis=0
    )
    np.testing.assert_allclose(values, CORRIDOR_VALUES, atol=0.15)


def pucks() -> Episodes:
    """Pucks that are hit once, each harder than the one before, and slide on for three steps. They
    pass where softer hits end. State: place and speed.
    """
    speeds = np.arange(1.0, 7.0)
    steps = np.array([0.0, 3.0, 5.0, 6.0, 6.0, 6.0, 6.0, 6.0])  # of a hit of 1
    places = speeds[:, None] * steps[None]
    moves = np.diff(places, axis=1, append=places[:, -1:])
    actions = np.zeros((len(speeds), len(steps) - 1, 1))
    actions[:, 0, 0] = speeds / 10
    observations = np.stack([places, moves], axis=-1)
    return make_episodes(observations, places[..., None], actions, places[:, -1:])


@pytest.mark.parametrize(
    ("share", "behind", "without", "most"),
    [("passed", 6.0, 5.0, 1.0), ("random", 6.0, 5.0, 2.0), ("random", -6.0, 3.0, 1.5)],
)
def test_goals_that_are_not_to_come_teach_values_that_they_are_lost(
    share: str, behind: float, without: float, most: float
) -> None:
    """At rest, nothing is to be had behind a goal or short of it. Values that only know goals to
    come promise as much as on the way.
    """
    lost = np.array([[12.0, 0.0], [18.0, 0.0], [24.0, 0.0], [30.0, 0.0]])
    goals = lost[:, :1] - behind
    promised = {}
    for number in (None, 0.3):
        changes = {"discount": 0.8, f"hindsight.{share}": number}
        algorithm, state = fit("wgcsl", pucks(), 0.5, 1_500, **changes)
        seen = state.normalizer.observation(jnp.asarray(lost))
        goal = state.normalizer.goal(jnp.asarray(goals))
        action = jnp.zeros((len(lost), 1))
        values = algorithm.value.values(state.params["value"], seen, goal, action)
        promised[number] = float(np.abs(values).mean())
    assert promised[None] > without, promised
    assert promised[0.3] < most, promised


def test_pessimistic_expectile_undervalues_a_coin_toss() -> None:
    """From the same place and with the same action, half of the episodes arrive: τ < ½ must say
    less than ½.
    """
    arrive = np.array([0.0, 1.0])[None, :, None]
    stay = np.array([0.0, 0.0])[None, :, None]
    positions = np.concatenate([arrive, stay])
    episodes = make_episodes(positions, positions, np.full((2, 1, 1), 0.5), np.ones((2, 1)))
    values = {}
    for tau in (0.1, 0.5, 0.9):
        changes = {"hindsight.probability": 0.0, "discount": 0.0, "q_ensemble.tau": tau}
        algorithm, state = fit("wgcsl_er", episodes, 0.1, 400, **changes)
        place = state.normalizer.observation(jnp.zeros((1, 1)))
        goal = state.normalizer.goal(jnp.ones((1, 1)))
        values[tau] = float(
            algorithm.value.values(state.params["value"], place, goal, jnp.full((1, 1), 0.5))[0, 0]
        )
    # The τ-expectile of a fair coin is τ itself.
    np.testing.assert_allclose([values[0.1], values[0.5], values[0.9]], [0.1, 0.5, 0.9], atol=0.12)


def line_world(reach: float) -> Episodes:
    """Walks on a line with clip(g − s, −1, 1) from 0 to goals within ±reach."""
    goals = np.linspace(-reach, reach, 21)[:, None]
    position, positions, actions = np.zeros_like(goals), [np.zeros_like(goals)], []
    for _ in range(12):
        actions.append(np.clip(goals - position, -1, 1))
        position = position + actions[-1]
        positions.append(position)
    observations = np.stack(positions, axis=1)
    return make_episodes(observations, observations, np.stack(actions, axis=1), goals)


@pytest.mark.parametrize("name", ["goat", "wgcsl"])
def test_a_goal_beyond_the_data_is_reached(name: str) -> None:
    episodes = line_world(4.0)
    assert float(np.abs(episodes.achieved).max()) <= 4.0
    algorithm, state = fit(name, episodes, 0.5, 800)
    goals = jnp.asarray([[-6.0], [6.0], [3.0]])  # two beyond anything seen, one within
    position = jnp.zeros_like(goals)
    for _ in range(12):
        position = position + normalize.act(algorithm, state, position, goals)
    np.testing.assert_allclose(np.asarray(position), np.asarray(goals), atol=0.5)


def walks() -> Episodes:
    """Random walks on a line, from 0 and within ±5. The goal of one is where it ends."""
    rng, position = np.random.default_rng(0), np.zeros((60, 1))
    positions, actions = [position], rng.uniform(-1, 1, (12, 60, 1))
    for action in actions:
        position = np.clip(position + action, -5, 5)
        positions.append(position)
    achieved = np.stack(positions, axis=1)
    return make_episodes(achieved, achieved, actions.swapaxes(0, 1), position)


@cache
def distances(name: str, **changes: float) -> tuple[np.ndarray, float]:
    """Of an agent that has seen random walks: from three goals at the end, and from all on the
    way.
    """
    algorithm, state = fit(name, walks(), 0.5, 800, **changes)
    goals = jnp.asarray([[-2.0], [1.2], [3.0]])
    position, path = jnp.zeros_like(goals), []
    for _ in range(12):
        position = position + normalize.act(algorithm, state, position, goals)
        path.append(np.abs(position - goals))
    return path[-1], float(np.mean(path))


NEWER = [
    ("gcivl", {}),
    ("gciql", {}),
    ("hiql", {}),
    ("crl", {"ddpgbc.alpha": 0.3}),  # more of its own than imitation
    ("qrl", {"quasimetric.groups": 8}),  # a line needs no more
    ("smore", {}),
    ("trl", {}),
]


@pytest.mark.parametrize(("name", "changes"), NEWER, ids=[name for name, _ in NEWER])
def test_random_walks_teach_more_than_to_imitate_them(name: str, changes: dict[str, float]) -> None:
    end, way = distances(name, **changes)
    _, imitated = distances("gcsl")
    assert end.max() <= 0.5
    assert way <= 0.9 * imitated


def test_data_selection_forgets_the_bad_half() -> None:
    """Half of the data walks away from its goal; plain imitation averages to standing still,
    weighted imitation does not.
    """
    good = line_world(4.0)
    bad_actions = -np.asarray(good.actions)
    bad_positions = -np.asarray(good.observations)
    both = make_episodes(
        np.concatenate([good.observations, bad_positions]),
        np.concatenate([good.achieved, bad_positions]),
        np.concatenate([good.actions, bad_actions]),
        np.concatenate([good.goals, good.goals]),
    )
    goals = jnp.asarray(good.goals)
    reached = {}
    for name in ("bc", "wgcsl"):
        changes = {"hindsight.probability": 0.0} if name == "wgcsl" else {}
        algorithm, state = fit(name, both, 0.5, 800, **changes)
        position = jnp.zeros_like(goals)
        for _ in range(12):
            position = position + normalize.act(algorithm, state, position, goals)
        reached[name] = float((jnp.abs(position - goals) <= 0.5).mean())
    assert reached["bc"] < 0.5
    assert reached["wgcsl"] > 0.9
