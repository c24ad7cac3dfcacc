"""A symmetry that holds is accepted; one wrong sign, or an edge, is found."""

from __future__ import annotations

import json
from collections.abc import Iterator

import jax
import numpy as np
import pytest

from goatrl.episodes import make_episodes
from goatrl.learn import symmetry
from goatrl.learn.networks import MLP
from goatrl.training import symmetry_check
from goatrl.types import Episodes, GoatError

EPISODES, STEPS = 200, 20


def pushed(edge: float | None = None) -> Episodes:
    """A hand and a block on a line, all right of 0; x, speed and turn of the block, and its
    distance from the hand. The hand drags the block when it is near, and turns it by how far off
    its middle it is. Behind the edge the block slips the other way.
    """
    rng = np.random.default_rng(0)
    hand, block = rng.uniform(0.5, 2.5, (2, EPISODES))
    turn, speed, seen, actions = np.zeros(EPISODES), np.zeros(EPISODES), [], []
    for _ in range(STEPS + 1):
        seen.append(np.stack([hand, block, block - hand, speed, turn], axis=-1))
        action = np.clip(2.0 * (block - hand) + rng.normal(0, 0.8, EPISODES), -1, 1)
        actions.append(action[:, None])
        near = np.exp(-((block - hand) ** 2) / 0.1)
        speed = 0.1 * near * action
        if edge is not None:
            speed = np.where(block > edge, -speed, speed)
        turn = turn + near * (block - hand) * np.abs(action)
        hand, block = hand + 0.1 * action, block + speed
    observations = np.stack(seen, axis=1)
    achieved = observations[:, :, 1:2]
    return make_episodes(observations, achieved, np.stack(actions[:-1], axis=1), achieved[:, -1])


MIRROR = {
    "observation": {"0": 0.2, "1": 0.2, "2": 0.0, "3": 0.0, "4": 0.0},
    "goal": {"0": 0.2},
    "action": {"0": 0.0},
}


def checked(about: dict, data: Episodes) -> symmetry_check.Checked:
    (found,) = symmetry.read(json.dumps(about), data.spec(0.1))
    return symmetry_check.check(data, found)


@pytest.fixture(scope="module")
def data() -> Episodes:
    return pushed()


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_fitted_twice() -> Iterator[None]:
    """Most maps of these data are judged by the same model."""
    fit, known = symmetry_check._fit, {}

    def once(network: MLP, inputs: jax.Array, changes: jax.Array, key: jax.Array) -> MLP:
        given = (*jax.tree.leaves(network), inputs, changes, jax.random.key_data(key))
        name = b"".join(np.asarray(each).tobytes() for each in given)
        if name not in known:
            known[name] = fit(network, inputs, changes, key)
        return known[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(symmetry_check, "_fit", once)
        yield


def without(space: str, column: str) -> dict:
    signs = {name: columns for name, columns in MIRROR[space].items() if name != column}
    return {"reflection": [MIRROR | {space: signs}]}


def test_a_mirror_that_nobody_has_looked_behind_is_accepted(data):
    found = checked({"reflection": [MIRROR]}, data)
    assert found.holds
    assert found.telling.all()
    assert (found.image - found.original).max() < 0.5 * symmetry_check.LIMIT


def test_a_mirror_through_the_origin_is_one_of_places_too(data):
    arrays = data.arrays()
    arrays["observations"] = arrays["observations"][:, :, 1:] - np.float32([0.1, 0, 0, 0])
    arrays["achieved"], arrays["goals"] = arrays["achieved"] - 0.1, arrays["goals"] - 0.1
    origin = {"observation": dict.fromkeys("0123", 0.0), "goal": {"0": 0.0}, "action": {"0": 0.0}}
    assert (arrays["achieved"] > 0.0).all(), "nobody has looked behind it"
    found = checked({"reflection": [origin]}, make_episodes(**arrays))
    assert found.holds
    assert found.telling.all()


def test_episodes_may_have_different_lengths(data):
    lengths = STEPS - np.arange(EPISODES) % 5
    ragged = make_episodes(**data.arrays(), lengths=lengths)
    assert ragged.lengths is not None
    assert checked({"reflection": [MIRROR]}, ragged).holds
    with pytest.raises(GoatError, match="this reflection maps goals otherwise than columns 1"):
        checked(without("goal", "0"), ragged)


@pytest.mark.parametrize(
    ("space", "column"),
    [("action", "0"), ("observation", "3"), ("observation", "4")],
)
def test_a_wrong_sign_is_found_and_named(data, space, column):
    found = checked(without(space, column), data)
    assert not found.holds
    assert (space, int(column)) in found.suspects


def test_columns_that_contradict_each_other_are_found(data):
    found = checked(without("observation", "2"), data)  # the distance, and not what it is between
    assert not found.holds
    assert found.familiar < symmetry_check.STRANGE


def test_planes_that_do_not_agree_are_found(data):
    """The model sees how far the block is from the hand, which the mirror changes by 0.06."""
    apart = {"observation": MIRROR["observation"] | {"1": 0.26}, "goal": {"0": 0.26}}
    found = checked({"reflection": [MIRROR | apart]}, data)
    assert not found.holds
    assert not len(found.broken), "no column by itself is wrong"
    assert found.contradicted == (0, 1, 2)
    assert found.suspects == (), "no sign is wrong"
    assert checked({"reflection": [MIRROR]}, data).contradicted == ()


@pytest.mark.parametrize(
    ("images", "columns"),
    [
        ([[1.0, 5.0, 1.0, 4.0, 0.0], [1.0, 3.0, -2.0, 5.0, 9.0]], ()),
        ([[1.0, 5.0, 1.0, 4.0, 0.0], [1.0, 3.0, -2.0, 4.8, 9.0]], (1, 2, 3)),
        ([[1.0, 5.0, 1.0, 4.2, 0.0], [1.0, 3.0, -2.0, 4.8, 9.0]], (1, 2, 3)),
    ],
)
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_images_must_obey_the_relations_of_the_data(images, columns, offset):
    """The first column is constant, the last one is free, and the one before is a difference."""
    rng = np.random.default_rng(0)
    known = rng.normal(size=(50, 5)).astype(np.float32)
    known[:, 0], known[:, 3] = 1.0, known[:, 1] - known[:, 2]
    known[:, 3] += rng.normal(0.0, 3e-4, 50)  # sensors are not exact
    images = np.float32(images)
    for each in (known, images):
        each[:, 4] += offset
    assert symmetry_check._contradicted(known, images, 50) == columns
    assert symmetry_check._contradicted(known, images, 4) == (), "four places lie in one plane"
    for one in (known[:, 1:2], known[:, :1]):
        assert symmetry_check._contradicted(one, one, 50) == (), "a single column obeys nothing"


def test_relations_are_those_of_all_episodes(data):
    """Whichever half the model is fitted on, a kind of block that is rare is in neither or one."""
    order = np.random.default_rng(0).permutation(EPISODES)
    kind = np.zeros((EPISODES, STEPS + 1, 3))
    kind[np.arange(EPISODES), :, np.arange(EPISODES) % 2] = 1.0
    kind[order[-1]] = [0.0, 0.0, 1.0]  # held out
    arrays = data.arrays()
    arrays["observations"] = np.concatenate([arrays["observations"], kind], axis=-1)
    found = checked({"reflection": [MIRROR]}, make_episodes(**arrays))
    assert found.contradicted == ()
    assert found.holds


def test_a_goal_must_be_mapped_like_what_is_achieved(data):
    with pytest.raises(GoatError, match="maps goals otherwise than columns 1 of the observation"):
        checked({"reflection": [MIRROR | {"goal": {}}]}, data)


def moved(low: float, high: float) -> dict:
    return {"translation": [{"observation": [0, 1], "goal": [0], "by": [low, high]}]}


def test_a_translation_holds_on_a_plain_and_not_across_an_edge(data):
    assert checked(moved(-0.8, 0.8), data).holds
    found = checked(moved(-0.8, 0.8), pushed(edge=1.5))
    assert 1 in found.broken


def test_what_leaves_the_data_cannot_be_checked(data):
    with pytest.raises(GoatError, match="hardly any transition lies where there are data"):
        checked(moved(50.0, 60.0), data)


def test_too_few_episodes_are_refused(data):
    few = Episodes(*(np.asarray(each)[:3] for each in (
        data.observations, data.achieved, data.actions, data.goals
    )))  # fmt: skip
    with pytest.raises(GoatError, match="at least 4 episodes"):
        checked(moved(-1.0, 1.0), few)


def test_transitions_do_not_reach_from_one_episode_into_the_next() -> None:
    """Observations (n, i): the row of the last step of an episode is no start of a transition."""
    lengths = (1, 3, 2)
    seen = [
        np.stack([np.full(length + 1, n), np.arange(length + 1)], axis=-1)
        for n, length in enumerate(lengths)
    ]
    actions = [10.0 * n + np.arange(length)[:, None] for n, length in enumerate(lengths)]
    episodes = make_episodes(seen, seen, actions, np.zeros((3, 2)))
    found = symmetry_check.Transitions.of(episodes, np.array([2, 1]), np.random.default_rng(0))
    assert sorted(found.action[:, 0].tolist()) == [10.0, 11.0, 12.0, 20.0, 21.0]
    np.testing.assert_array_equal(found.after - found.before, np.tile([0.0, 1.0], (5, 1)))
    np.testing.assert_array_equal(found.before @ [10.0, 1.0], found.action[:, 0])


def shoved() -> Episodes:
    """A hand and a puck on a plane; place, speed and heading of the puck, and the hand's place.
    The hand drags the puck when it is near, and turns it. All of it is at one side of the middle.
    """
    rng = np.random.default_rng(0)
    hand, puck = rng.uniform(0.5, 2.5, (2, EPISODES, 2))
    speed, heading, seen, actions = np.zeros((EPISODES, 2)), np.zeros((EPISODES, 1)), [], []
    for _ in range(STEPS + 1):
        seen.append(np.concatenate([hand, puck, speed, heading], axis=-1))
        action = np.clip(puck - hand + rng.normal(0, 0.5, (EPISODES, 2)), -1, 1)
        actions.append(action)
        near = np.exp(-((puck - hand) ** 2).sum(axis=1, keepdims=True) / 0.3)
        speed = 0.1 * near * action
        heading = heading + near * 0.3 * np.linalg.norm(action, axis=1, keepdims=True)
        hand, puck = hand + 0.1 * action, puck + speed
    observations = np.stack(seen, axis=1)
    achieved = observations[:, :, 2:4]
    return make_episodes(observations, achieved, np.stack(actions[:-1], axis=1), achieved[:, -1])


TURN = {
    "observation": {"places": [[0, 1], [2, 3]], "vectors": [[4, 5]], "angles": [6]},
    "goal": {"places": [[0, 1]]},
    "action": {"vectors": [[0, 1]]},
    "around": [0.0, 0.0],
    "by": [-0.6, 0.6],
}


def test_a_rotation_is_accepted_and_one_with_a_pair_turned_the_wrong_way_is_not():
    data = shoved()
    assert checked({"rotation": [TURN]}, data).holds
    wrong = TURN | {"action": {"vectors": [[1, 0]]}}
    found = checked({"rotation": [wrong]}, data)
    assert not found.holds
    assert found.suspects[0][0] == "action"
    still = TURN | {"goal": {}}
    with pytest.raises(GoatError, match="this rotation maps goals otherwise than columns 2, 3"):
        checked({"rotation": [still]}, data)


@pytest.mark.parametrize("by", [[-np.pi, np.pi], [-0.4, 0.0], [0.0, 2 * np.pi]])
def test_goals_that_turn_otherwise_are_refused_whatever_the_range(by):
    """At one end of each of these ranges, all would agree."""
    data = shoved()
    for goal in ({"places": [[1, 0]]}, {}):
        with pytest.raises(GoatError, match="this rotation maps goals otherwise"):
            checked({"rotation": [TURN | {"by": by, "goal": goal}]}, data)
