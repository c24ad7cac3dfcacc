"""Episodes of any length: how often each transition and each goal is drawn, and the statistics that
follow from it.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from goatrl import algorithms
from goatrl.episodes import make_episodes
from goatrl.learn import normalize
from goatrl.learn.parameters import override
from goatrl.learn.samplers import GoalMixes, Hindsight, PolicyGoals, ValueGoals
from goatrl.learn.values import followed
from goatrl.training import offline
from goatrl.types import Batch, Episodes, GoatError, Rows, Settings
from helpers import make_batch

pytestmark = pytest.mark.usefixtures("few_percentiles")

LENGTHS = (1, 2, 5)
SIZE = 40_000
SURE = 1e-3  # what a fixed seed must not fall below

# How this file tells where a drawn number came from, as in test_samplers.py:
#   observation (n, i), achieved (100 n + i, 7), action (100 n + t), desired goal (100 n + 50, 7)


def lists(lengths: tuple[int, ...] = LENGTHS) -> dict[str, list[np.ndarray]]:
    steps = [np.arange(length + 1.0) for length in lengths]
    return {
        "observations": [np.stack([0 * i + n, i], axis=-1) for n, i in enumerate(steps)],
        "achieved": [np.stack([100 * n + i, 0 * i + 7.0], axis=-1) for n, i in enumerate(steps)],
        "actions": [(100.0 * n + i)[:-1, None] for n, i in enumerate(steps)],
        "goals": [np.array([100.0 * n + 50, 7.0]) for n in range(len(lengths))],
    }


def on_device(episodes: Episodes) -> Episodes:
    return jax.tree.map(jnp.asarray, episodes)


LABELLED = on_device(make_episodes(**lists()))


@partial(jax.jit, static_argnums=0)
def drawn(size: int, sampler, episodes: Episodes, rows: Rows, seed: int = 0) -> Batch:
    return sampler.sample(jax.random.key(seed), episodes, size, 0.1, rows)


def draw(sampler, episodes: Episodes = LABELLED, rows: Rows | None = None) -> Batch:
    batch = drawn(SIZE, sampler, episodes, rows or episodes.rows)
    return jax.tree.map(np.asarray, batch)


def places(numbers: np.ndarray) -> list[tuple[int, int]]:
    """Episode and step of what was achieved or done."""
    return [tuple(map(int, divmod(number, 100))) for number in numbers]


def assert_drawn_as_often(found: list, expected: dict) -> None:
    """Each with its probability, and nothing else."""
    assert sum(expected.values()) == 1
    assert set(found) <= set(expected)
    counts = dict.fromkeys(expected, 0)
    for each in found:
        counts[each] += 1
    share = [float(each) * len(found) for each in expected.values()]
    if len(share) > 1:
        assert chisquare(list(counts.values()), share).pvalue > SURE


def relabelled(lengths: tuple[int, ...] = LENGTHS) -> dict[tuple[int, int, int], Fraction]:
    """By enumeration: the probability of every (episode, t, i) with i uniform in t + 1 … T."""
    transitions = sum(lengths)
    return {
        (n, t, i): Fraction(1, transitions * (length - t))
        for n, length in enumerate(lengths)
        for t in range(length)
        for i in range(t + 1, length + 1)
    }


# Which transitions and goals are drawn


def test_every_transition_is_equally_likely() -> None:
    batch = draw(Hindsight())
    found = places(batch.action[:, 0])
    transitions = [(n, t) for n, length in enumerate(LENGTHS) for t in range(length)]
    assert_drawn_as_often(found, dict.fromkeys(transitions, Fraction(1, 8)))
    episode, step = batch.observation.T
    np.testing.assert_array_equal(batch.action[:, 0], 100 * episode + step)
    np.testing.assert_array_equal(batch.next_observation, np.stack([episode, step + 1], axis=-1))
    np.testing.assert_array_equal(batch.initial_observation, np.stack([episode, 0 * step], -1))
    np.testing.assert_array_equal(batch.achieved[:, 0], 100 * episode + step)
    np.testing.assert_array_equal(batch.next_achieved[:, 0], 100 * episode + step + 1)


def test_hindsight_goals_are_those_of_an_enumeration() -> None:
    batch = draw(Hindsight())
    goals = [step for _, step in places(batch.goal[:, 0])]
    assert [n for n, _ in places(batch.goal[:, 0])] == batch.observation[:, 0].astype(int).tolist()
    found = [(n, t, i) for (n, t), i in zip(places(batch.action[:, 0]), goals, strict=True)]
    assert_drawn_as_often(found, relabelled())
    np.testing.assert_array_equal(batch.offset, np.array(goals) - batch.observation[:, 1])


def test_without_hindsight_goals_are_the_episodes_own() -> None:
    batch = draw(Hindsight(0.0))
    np.testing.assert_array_equal(batch.goal[:, 0], 100 * batch.observation[:, 0] + 50)


def test_goals_from_anywhere_are_uniform_over_all_steps() -> None:
    mixes = GoalMixes(ValueGoals(future=0.0, random=1.0), PolicyGoals(future=0.0, random=1.0))
    everywhere = [(n, i) for n, length in enumerate(LENGTHS) for i in range(length + 1)]
    for goals in (draw(mixes).goal, draw(mixes).policy_goal):
        assert_drawn_as_often(places(goals[:, 0]), dict.fromkeys(everywhere, Fraction(1, 11)))


def test_geometric_goals_and_what_lies_ahead_stay_inside_the_episode() -> None:
    mixes = GoalMixes(ValueGoals(discount=0.5, geometric=True), PolicyGoals(), steps=3)
    batch = draw(mixes)
    episode, step = batch.observation.astype(int).T
    last = np.array(LENGTHS)[episode]
    half = {}
    for n, length in enumerate(LENGTHS):
        for t in range(length):
            for ahead in range(1, length - t):
                half[n, t + ahead, t] = Fraction(1, 8 * 2**ahead)
            half[n, length, t] = Fraction(1, 8 * 2 ** (length - t - 1))  # all that would lie beyond
    found = [(n, i, t) for (n, i), t in zip(places(batch.goal[:, 0]), step.tolist(), strict=True)]
    assert_drawn_as_often(found, half)
    seen = batch.extra_observations["ahead"]
    np.testing.assert_array_equal(seen[:, 0], episode)
    np.testing.assert_array_equal(seen[:, 1], np.minimum(step + 3, last))
    way = batch.extra_goals["way"][:, 0]
    np.testing.assert_array_equal(
        way, np.minimum(100 * episode + step + 3, batch.policy_goal[:, 0])
    )


@pytest.mark.parametrize(("first", "count"), [(0, 1), (1, 1), (1, 2), (2, 1)])
def test_only_the_episodes_of_the_rows_are_drawn(first: int, count: int) -> None:
    rows = Rows(jnp.int32(first), jnp.int32(count))
    anywhere = GoalMixes(ValueGoals(future=0.0, random=1.0), PolicyGoals())
    batch = draw(anywhere, rows=rows)
    allowed = set(range(first, first + count))
    assert set(batch.observation[:, 0].astype(int)) == allowed
    assert {n for n, _ in places(batch.goal[:, 0])} == allowed
    transitions = [(n, t) for n in allowed for t in range(LENGTHS[n])]
    share = Fraction(1, len(transitions))
    assert_drawn_as_often(places(batch.action[:, 0]), dict.fromkeys(transitions, share))


def test_goals_may_change_within_an_episode() -> None:
    given = lists()
    given["goals"] = [1000.0 + actions * [1.0, 0.0] for actions in given["actions"]]
    episodes = on_device(make_episodes(**given))
    # rows that no action follows repeat the goal before
    rows = np.asarray(episodes.goals)[:, 0] - 1000.0
    np.testing.assert_array_equal(rows, [0, 0, 100, 101, 101, 200, 201, 202, 203, 204, 204])
    batch = draw(Hindsight(0.0), episodes)
    np.testing.assert_array_equal(batch.goal[:, 0], 1000.0 + batch.action[:, 0])
    kept = GoalMixes(ValueGoals(future=0.0), PolicyGoals(future=0.0))
    np.testing.assert_array_equal(
        draw(kept, episodes).policy_goal[:, 0] - 1000.0, batch.action[:, 0]
    )


# Statistics


def brute_force(episodes: Episodes, lengths: tuple[int, ...]) -> normalize.Normalizer:
    seen = np.asarray(episodes.observations, np.float64).reshape(-1, 3)
    paths = [np.float64(path) for path in episodes.paths()]
    share = relabelled(lengths)
    mean = sum(float(p) * paths[n][i] for (n, _, i), p in share.items())
    var = sum(float(p) * (paths[n][i] - mean) ** 2 for (n, _, i), p in share.items())
    return normalize.Normalizer(seen.mean(0), seen.std(0), mean, np.sqrt(var))


@pytest.mark.parametrize("lengths", [(1, 2, 5), (4, 1, 1, 7, 3), (3, 3, 3)])
def test_statistics_are_those_of_an_enumeration(lengths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    episodes = make_episodes(
        [rng.normal(size=(length + 1, 3)) for length in lengths],
        [rng.normal(size=(length + 1, 2)) for length in lengths],
        [rng.normal(size=(length, 1)) for length in lengths],
        rng.normal(size=(len(lengths), 2)),
    )
    assert (episodes.lengths is None) == (len(set(lengths)) == 1)
    expected = brute_force(episodes, lengths)
    found = normalize.from_episodes(episodes)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), found, expected)


def test_both_layouts_have_the_same_statistics(odd_episodes: Episodes) -> None:
    flat = _flat(odd_episodes)
    one, other = normalize.from_episodes(odd_episodes), normalize.from_episodes(flat)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5), one, other)
    assert flat.spec(1.0) == odd_episodes.spec(1.0)
    np.testing.assert_array_equal(flat.steps(), odd_episodes.steps())
    np.testing.assert_array_equal(np.stack(flat.paths()), np.stack(odd_episodes.paths()))


def _flat(episodes: Episodes) -> Episodes:
    """Episodes of one length in the layout of those that differ."""
    rows = [np.asarray(each) for each in (episodes.observations, episodes.achieved)]
    actions = np.pad(np.asarray(episodes.actions), ((0, 0), (0, 1), (0, 0)))
    observations, achieved, actions = (
        each.reshape(-1, each.shape[-1]) for each in (*rows, actions)
    )
    lengths = np.full(episodes.count, episodes.horizon, np.int32)
    return Episodes(observations, achieved, actions, np.asarray(episodes.goals), lengths)


# How an episode ends


def test_nothing_follows_an_end_short_of_the_goal() -> None:
    """All three were ended by their environment; only the second at its goal."""
    given = lists()
    given["goals"][1] = given["achieved"][1][-1]
    episodes = on_device(make_episodes(**given, terminated=[True, True, True]))
    batch = draw(Hindsight(), episodes)
    last = batch.observation[:, 1] + 1 == np.array(LENGTHS)[batch.observation[:, 0].astype(int)]
    np.testing.assert_array_equal(batch.ended, last & (batch.observation[:, 0] != 1))
    running = on_device(make_episodes(**given, terminated=[False, True, False]))
    np.testing.assert_array_equal(draw(Hindsight(), running).ended, 0.0)


def test_an_end_by_time_is_none() -> None:
    assert draw(Hindsight()).ended is None
    assert make_episodes(**lists(), terminated=np.zeros(3)).terminated is None


def test_episodes_of_one_length_may_be_ended_too() -> None:
    given = lists((3, 3))
    episodes = make_episodes(**given, terminated=[False, True])
    assert episodes.lengths is None
    batch = draw(Hindsight(), on_device(episodes))
    np.testing.assert_array_equal(batch.ended, (batch.observation == [1, 2]).all(axis=-1))


def test_an_end_stops_the_bootstrap_of_every_critic() -> None:
    values = jnp.asarray([[1.0, 2.0], [3.0, 4.0]])
    numbers = {name: jnp.zeros((2, 1)) for name in ("observation", "action", "next_observation")}
    numbers |= {name: jnp.zeros((2, 1)) for name in ("initial_observation", "achieved", "goal")}
    batch = make_batch(**numbers, reward=jnp.zeros(2), offset=jnp.zeros(2))
    assert followed(batch, values) is values
    ended = dataclasses.replace(batch, ended=jnp.asarray([0.0, 1.0]))
    np.testing.assert_array_equal(followed(ended, values), [[1.0, 0.0], [3.0, 0.0]])


@pytest.mark.parametrize("name", ["goat", "goat_v", "iql_her", "gofar_binary", "msg_her"])
def test_training_sees_an_end(name: str) -> None:
    given = lists()
    members = [(override(algorithms.get(name).build(Settings(target_period=2)), SMALL), 0)]

    def trained(**flags):
        episodes = make_episodes(**given, **flags)
        *_, chunk = offline.train(
            members, episodes.spec(0.1), episodes, updates=4, batch_size=8, interval=4
        )
        return chunk.metrics["value_loss"]

    assert not np.array_equal(trained(), trained(terminated=[True, True, True]))


SMALL = {"architecture.hidden": (8,)}


# Several datasets in one program


def test_datasets_of_different_lengths_train_beside_each_other() -> None:
    rng = np.random.default_rng(0)

    def made(lengths: tuple[int, ...]) -> Episodes:
        return make_episodes(
            [rng.normal(size=(length + 1, 3)) for length in lengths],
            [rng.normal(size=(length + 1, 2)) for length in lengths],
            [rng.uniform(-1, 1, (length, 1)) for length in lengths],
            rng.normal(size=(len(lengths), 2)),
        )

    datasets = [made((1, 2, 5)), made((5, 3))]
    algorithm = override(algorithms.get("goat").build(Settings(target_period=2)), SMALL)
    members = [(algorithm, 0), (algorithm, 1)]
    spec = datasets[0].spec(0.5)
    settings = {"updates": 4, "batch_size": 16, "interval": 4}
    *_, together = offline.train(members, spec, datasets, **settings)
    for place, (member, episodes) in enumerate(zip(members, datasets, strict=True)):
        *_, alone = offline.train([member], spec, episodes, **settings)
        for name, values in alone.metrics.items():
            np.testing.assert_allclose(together.metrics[name][place], values[0], rtol=2e-4)


# The ways in which they come


def test_however_they_come_they_are_the_same() -> None:
    given, whole = lists(), make_episodes(**lists())
    longest = max(LENGTHS)
    padded = {
        name: np.stack([np.pad(a, ((0, longest + 1 - len(a)), (0, 0)), mode="edge") for a in each])
        for name, each in given.items()
        if name != "goals"
    }
    flat = {name: np.concatenate(each) for name, each in given.items() if name != "goals"}
    goals = np.stack(given["goals"])
    repeated = [
        np.repeat(goal[None], length, 0) for goal, length in zip(goals, LENGTHS, strict=True)
    ]
    for other in (
        make_episodes(**padded, goals=goals, lengths=LENGTHS),
        make_episodes(**flat, goals=goals, lengths=np.array(LENGTHS, np.int64)),
        make_episodes(**flat, goals=np.concatenate(repeated), lengths=LENGTHS),
        make_episodes(**{**given, "goals": repeated}),
        make_episodes(**whole.arrays()),
    ):
        assert other.checksum() == whole.checksum()
    assert (whole.count, whole.horizon, whole.actions.shape) == (3, 5, (11, 1))
    assert [path.tolist() for path in whole.paths()] == [a.tolist() for a in given["achieved"]]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.booleans())
def test_every_step_is_found_where_it_was_put(lengths: list[int], changing: bool) -> None:
    given = lists(tuple(lengths))
    if changing:
        given["goals"] = [1000.0 + actions * [1.0, 0.0] for actions in given["actions"]]
    episodes = make_episodes(**given)
    assert (episodes.count, episodes.horizon) == (len(lengths), max(lengths))
    one_layout = len(set(lengths)) == 1 and (not changing or max(lengths) == 1)
    assert (episodes.lengths is None) == one_layout
    walked = [(n, t) for n, length in enumerate(lengths) for t in range(length)]
    assert list(zip(*(each.tolist() for each in episodes.steps()), strict=True)) == walked
    for n, t in walked:
        for name in ("observations", "achieved", "actions"):
            found = getattr(episodes, name)[episodes.at(n, t)]
            np.testing.assert_array_equal(found, given[name][n][t])
        wanted = given["goals"][n][t] if changing else given["goals"][n]
        np.testing.assert_array_equal(episodes.desired(n, t), wanted)
        assert episodes.length(n) == lengths[n]
    for n, length in enumerate(lengths):
        last = episodes.achieved[episodes.at(n, length)]
        np.testing.assert_array_equal(last, given["achieved"][n][-1])
    assert make_episodes(**episodes.arrays()).checksum() == episodes.checksum()


def test_lists_of_one_length_are_ordinary_arrays() -> None:
    given = lists((4, 4))
    stacked = make_episodes(**{name: np.stack(each) for name, each in given.items()})
    for same in (make_episodes(**given), make_episodes(**given, lengths=[4, 4])):
        assert same.lengths is None
        assert same.checksum() == stacked.checksum()
    changing = np.zeros((2, 4, 2))
    assert make_episodes(**{**given, "goals": changing}).lengths is None  # it never changes
    changing[1, 2] = 1.0
    assert make_episodes(**{**given, "goals": changing}).goals.shape == (10, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"observations": [np.ones((2, 2))] * 3},
            "observations of episode 1 has 2 rows, but its 2",
        ),
        ({"actions": [np.ones((0, 1))] * 3}, "actions of episode 0 is empty"),
        ({"goals": np.ones((2, 2))}, "goals has 2 episodes, but actions has 3"),
        ({"goals": np.ones((3, 1))}, "goals have 1 numbers, but achieved goals have 2"),
        ({"goals": [np.ones((n, 2)) for n in (1, 4, 5)]}, "goals of episode 1 has 4 rows"),
        ({"achieved": [np.ones((n + 1, n)) for n in LENGTHS]}, "achieved of episode 1 has shape"),
        (
            {"achieved": [np.full((n + 1, 2), np.nan) for n in LENGTHS]},
            "achieved of episode 0 cont",
        ),
        ({"terminated": [True]}, "terminated must have a true or false for each of 3 episodes"),
    ],
)
def test_lists_that_do_not_fit_are_refused(change: dict, message: str) -> None:
    with pytest.raises(GoatError, match=message):
        make_episodes(**{**lists(), **change})


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([1, 2, 0], "episode 2 has 0 actions"),
        (
            [1, 2, 4],
            "observations has shape .11, 2., but 3 episodes of up to 4 actions need 10 rows",
        ),
        ([1.5, 2, 5], "lengths must be a list of whole numbers"),
        ([[1, 2, 5]], "lengths must be a list of whole numbers"),
        ([np.nan, 2, 5], "lengths must be a list of whole numbers"),
        ([2**40, 2, 5], "lengths must be a list of whole numbers"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(lengths: list, message: str) -> None:
    given = make_episodes(**lists()).arrays()
    with pytest.raises(GoatError, match=message):
        make_episodes(**{**given, "lengths": lengths})


def test_one_long_episode_costs_what_it_holds() -> None:
    """A thousand steps beside 999 episodes of ten: padded, they would take a hundred times as
    much.
    """
    lengths = (10,) * 999 + (1000,)
    episodes = make_episodes(
        [np.zeros((length + 1, 4)) for length in lengths],
        [np.zeros((length + 1, 2)) for length in lengths],
        [np.zeros((length, 2)) for length in lengths],
        np.zeros((1000, 2)),
    )
    steps, actions = sum(lengths) + 1000, sum(lengths)
    own = 4 * (6 * steps + 2 * actions + 2 * 1000)
    held = sum(leaf.nbytes for leaf in jax.tree.leaves(episodes))
    assert own <= held <= 1.1 * own
