"""Datasets are checked once, where they are made; everything after that relies on it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from goatrl.episodes import make_episodes
from goatrl.types import GoatError
from helpers import NAMES, arrays


def test_valid_arrays_become_float32_episodes() -> None:
    given = arrays()
    episodes = make_episodes(**given)
    for name in NAMES:
        made = getattr(episodes, name)
        assert made.dtype == np.float32
        np.testing.assert_array_equal(made, given[name].astype(np.float32))
    assert (episodes.count, episodes.horizon) == (3, 4)
    spec = episodes.spec(0.05)
    assert dataclasses.astuple(spec) == (5, 2, 1, 4, 0.05)


def test_lists_and_integers_are_numbers_too() -> None:
    episodes = make_episodes(
        [[[1], [2]]], [[[1], [2]]], np.ones((1, 1, 1), np.int8), np.ones((1, 1), np.uint16)
    )
    assert episodes.observations.dtype == np.float32
    assert episodes.observations.tolist() == [[[1.0], [2.0]]]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "change", [lambda a: a[0], lambda a: a[None]], ids=["an axis less", "an axis more"]
)
def test_wrong_rank_is_refused(name: str, change) -> None:
    given = arrays()
    given[name] = change(given[name])
    with pytest.raises(GoatError, match=rf"{name} (must have .*3 axes|has shape \(1, 3, 2\))"):
        make_episodes(**given)


@pytest.mark.parametrize("name", NAMES)
def test_another_number_of_episodes_is_refused(name: str) -> None:
    given = arrays()
    given[name] = given[name][:-1]
    # The actions set the number; where they are short, the observations are the first that do not
    # fit.
    with pytest.raises(GoatError, match="observations" if name == "actions" else name):
        make_episodes(**given)


@pytest.mark.parametrize("name", ["observations", "achieved"])
@pytest.mark.parametrize("steps", [4, 6])
def test_anything_but_one_observation_more_than_actions_is_refused(name: str, steps: int) -> None:
    given = arrays()
    given[name] = np.ones((3, steps, given[name].shape[2]))
    with pytest.raises(GoatError, match=rf"{name} has shape \(3, {steps}, .*need \(3, 5, …\)"):
        make_episodes(**given)


def test_goals_and_achieved_goals_must_have_one_size() -> None:
    given = arrays()
    given["goals"] = np.ones((3, 5))  # the size of an observation, an easy mistake
    with pytest.raises(GoatError, match=r"goals has shape \(3, 5\).*need \(3, 2\)"):
        make_episodes(**given)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_empty_arrays_are_refused(name: str, axis: int) -> None:
    given = arrays()
    shape = list(given[name].shape)
    shape[axis] = 0
    given[name] = np.zeros(shape)
    with pytest.raises(GoatError, match=f"{name} is empty"):
        make_episodes(**given)


def test_no_action_at_all_is_refused() -> None:
    given = arrays(horizon=0)
    with pytest.raises(GoatError, match="actions is empty"):
        make_episodes(**given)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", NAMES)
def test_values_that_are_not_finite_are_refused_with_their_place(name: str, bad: float) -> None:
    given = arrays()
    place = (2, 1) if name == "goals" else (2, 3, 0)
    given[name][place] = bad
    with pytest.raises(GoatError) as caught:
        make_episodes(**given)
    assert f"{name} contains" in str(caught.value)
    assert f"index {place};" in str(caught.value)


@pytest.mark.parametrize("bad", [1e39, -1e300])
def test_a_float64_beyond_float32_is_refused(bad: float) -> None:
    given = arrays()
    given["actions"][1, 2, 0] = bad
    with pytest.raises(
        GoatError,
        match=r"actions contains a value that is not finite in float32, first at index \(1, 2, 0\)",
    ):
        make_episodes(**given)


@pytest.mark.parametrize("dtype", [object, str, bytes, bool, complex, "M8[s]"])
@pytest.mark.parametrize("name", NAMES)
def test_what_holds_no_numbers_is_refused(name: str, dtype) -> None:
    given = arrays()
    given[name] = np.ones(given[name].shape).astype(int).astype(dtype)
    with pytest.raises(GoatError, match=f"{name} must contain numbers"):
        make_episodes(**given)


def test_ragged_lists_are_refused() -> None:
    given: dict = arrays()
    given["actions"] = [[[1.0]], [[1.0], [2.0]]]
    with pytest.raises(GoatError, match="actions"):
        make_episodes(**given)
