"""What a dataset is known by, which of its episodes are chosen, errors that name the near, and
dataclasses that JAX traces.
"""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from goatrl.episodes import make_episodes
from goatrl.types import Episodes, GoatError, pytree, static, unknown
from helpers import NAMES, arrays


@pytest.mark.parametrize("name", NAMES)
def test_the_checksum_changes_with_every_value(name: str) -> None:
    small = arrays(count=2, horizon=2)
    before = make_episodes(**small).checksum()
    seen = {before}
    for place in np.ndindex(small[name].shape):
        changed = {key: value.copy() for key, value in small.items()}
        changed[name][place] += 1.0
        seen.add(make_episodes(**changed).checksum())
    assert len(seen) == small[name].size + 1


def test_the_checksum_changes_with_the_shape_alone() -> None:
    flat = np.arange(12.0, dtype=np.float32)
    one = Episodes(
        flat.reshape(1, 6, 2),
        flat.reshape(1, 6, 2),
        flat[:5].reshape(1, 5, 1),
        flat[:2].reshape(1, 2),
    )
    same = Episodes(*(np.array(getattr(one, name)) for name in NAMES))
    other = dataclasses.replace(one, observations=flat.reshape(1, 3, 4))
    assert one.checksum() == same.checksum()
    assert one.checksum() != other.checksum()


def test_the_checksum_does_not_depend_on_memory_layout_or_device() -> None:
    episodes = make_episodes(**arrays())
    turned = dataclasses.replace(episodes, actions=np.asfortranarray(episodes.actions))
    on_device = jax.tree.map(jax.numpy.asarray, episodes)
    assert episodes.checksum() == turned.checksum() == on_device.checksum()


def test_values_that_trade_places_change_the_checksum() -> None:
    given = arrays()
    swapped = given | {"goals": given["goals"][::-1]}
    assert make_episodes(**given).checksum() != make_episodes(**swapped).checksum()


def test_unknown_names_the_near_ones() -> None:
    message = str(unknown("algorithm", "wgscl", ["goat", "wgcsl", "gcsl", "bc"]))
    assert message.startswith("unknown algorithm 'wgscl'; did you mean wgcsl")
    assert "bc" not in message


def test_unknown_lists_all_where_none_is_near() -> None:
    error = unknown("suite", "zzz", iter(["b", "a"]))
    assert isinstance(error, GoatError)
    assert str(error) == "unknown suite 'zzz'; known: a, b"


def test_a_pytree_traces_its_fields_and_compiles_in_its_static_ones() -> None:
    @pytree
    class Part:
        weight: float
        size: int = static(default=3)

    part = Part(2.0)
    assert jax.tree.leaves(part) == [2.0]
    assert jax.tree.structure(part) != jax.tree.structure(Part(2.0, size=4))
    with pytest.raises(dataclasses.FrozenInstanceError):
        part.weight = 1.0  # type: ignore[misc]


def test_the_checksum_survives_a_new_field_that_a_dataset_does_not_have() -> None:
    @pytree
    class Later(Episodes):
        lengths: jax.Array | None = None

    shapes = ((2, 4, 3), (2, 4, 2), (2, 3, 1), (2, 2))
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    known = Episodes(*arrays).checksum()
    assert Later(*arrays).checksum() == known
    assert Later(*arrays, lengths=np.ones(2, np.float32)).checksum() != known


def test_some_episodes_in_both_layouts() -> None:
    steps = np.arange(1.0, 7.0)[:, None]  # o of three episodes, with one action each
    equal = make_episodes(
        steps.reshape(3, 2, 1), steps.reshape(3, 2, 1), np.ones((3, 1, 1)), [[7.0], [8.0], [9.0]]
    )
    for chosen in (np.array([0, 2]), np.array([True, False, True])):
        two = equal.only(chosen)
        assert two.observations[..., 0].tolist() == [[1.0, 2.0], [5.0, 6.0]]
        assert (two.count, two.goals.tolist()) == (2, [[7.0], [9.0]])
    flat = make_episodes(
        [steps[:3], steps[3:5], steps[3:6]],
        [steps[:3], steps[3:5], steps[3:6]],
        [steps[:2], steps[3:4], steps[3:5]],
        [[7.0], [8.0], [9.0]],
        terminated=[True, False, False],
    )
    two = flat.only(np.array([False, True, True]))
    assert two.achieved[:, 0].tolist() == [4.0, 5.0, 4.0, 5.0, 6.0]
    assert (two.lengths.tolist(), two.goals.tolist()) == ([1, 2], [[8.0], [9.0]])
    assert [path[:, 0].tolist() for path in flat.only([0]).paths()] == [[1.0, 2.0, 3.0]]
    changing = make_episodes(*[np.arange(n * 2.0).reshape(2, n, 1) for n in (3, 3, 2, 3)])
    assert changing.only([1]).goals[:, 0].tolist() == [3.0, 4.0, 4.0], "one for every step"
    with pytest.raises(GoatError, match="no episode of the dataset is left"):
        equal.only(np.zeros(3, bool))


def test_a_class_never_runs_the_program_of_another() -> None:
    """Each is forgotten before the next is made, so that they could share an address."""

    @jax.jit
    def act(agent, x):
        return agent.act(x)

    def other(number: int):
        @pytree
        class Own:
            gain: float = 1.0

            def act(self, x):
                return number * self.gain * x

        return Own()

    assert [float(act(other(number), 1.0)) for number in range(40)] == [*map(float, range(40))]
