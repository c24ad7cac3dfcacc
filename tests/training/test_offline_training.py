"""The training loop: exact resume, independence of chunks, divergence, schedules."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np
import pytest

from goatrl import algorithms
from goatrl.episodes import make_episodes
from goatrl.learn import normalize
from goatrl.learn.parameters import override
from goatrl.training import offline
from goatrl.types import Episodes, GoatError, Settings

pytestmark = pytest.mark.usefixtures("few_percentiles")

SETTINGS = Settings(batch_size=16, target_period=4, polyak=0.9)


def members(name: str = "wgcsl", seeds: tuple[int, ...] = (0, 1), **changes: float):
    return [(override(algorithms.get(name).build(SETTINGS), changes), seed) for seed in seeds]


def chunks(
    group,
    episodes: Episodes | Sequence[Episodes],
    updates: int,
    interval: int,
    state=None,
) -> list[offline.Chunk]:
    first = episodes if isinstance(episodes, Episodes) else episodes[0]
    spec = first.spec(1.0)
    return list(
        offline.train(
            group, spec, episodes, updates=updates, batch_size=16, interval=interval, state=state
        )
    )


def bytes_of(tree) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(tree)]


def test_resuming_gives_the_same_bytes(odd_episodes: Episodes) -> None:
    group = members()
    whole = chunks(group, odd_episodes, 24, 8)
    resumed = chunks(group, odd_episodes, 24, 8, state=whole[0].state)
    assert [chunk.step for chunk in whole] == [8, 16, 24]
    assert [chunk.step for chunk in resumed] == [16, 24]
    assert bytes_of(resumed[-1].state) == bytes_of(whole[-1].state)
    np.testing.assert_array_equal(
        resumed[-1].metrics["policy_loss"], whole[-1].metrics["policy_loss"]
    )


def test_chunks_do_not_change_the_randomness(odd_episodes: Episodes) -> None:
    group = members()
    long, short = chunks(group, odd_episodes, 16, 16), chunks(group, odd_episodes, 16, 4)
    losses = np.concatenate([chunk.metrics["policy_loss"] for chunk in short], axis=1)
    np.testing.assert_allclose(losses, long[0].metrics["policy_loss"], rtol=1e-4)


def test_agents_of_different_datasets_learn_what_they_learn_apart(odd_episodes: Episodes) -> None:
    """Bit for bit, also from datasets of other sizes. (A single agent rounds differently: its
    matrix products are no batch of them.)
    """
    larger = (2.0 - np.concatenate([leaf, leaf[:2]]) for leaf in jax.tree.leaves(odd_episodes))
    other = make_episodes(*larger)
    group, datasets = members(seeds=(0, 1, 2, 3)), [other, odd_episodes, odd_episodes, other]
    beside = chunks(group, datasets, 16, 8)[-1]
    for episodes, places in ((odd_episodes, [1, 2]), (other, [0, 3])):
        apart = chunks([group[place] for place in places], episodes, 16, 8)[-1]
        mine = jax.tree.map(lambda leaf, places=places: leaf[np.array(places)], beside.state)
        assert bytes_of(mine) == bytes_of(apart.state)
        for name, values in apart.metrics.items():
            np.testing.assert_array_equal(beside.metrics[name][places], values)


def test_targets_move_only_at_the_end_of_a_period(odd_episodes: Episodes) -> None:
    """After one period of four updates: target = 0.9 · initial + 0.1 · online."""
    group = members(seeds=(0,))
    start = offline.init(group, odd_episodes.spec(1.0), normalize.from_episodes(odd_episodes))
    after = chunks(group, odd_episodes, 4, 4)[0].state
    first = jax.tree.leaves(start.params)[0]
    expected = 0.9 * np.asarray(first) + 0.1 * np.asarray(jax.tree.leaves(after.params)[0])
    np.testing.assert_allclose(
        np.asarray(jax.tree.leaves(after.target)[0]), expected, rtol=1e-5, atol=1e-7
    )


def test_divergence_names_update_seed_and_quantity(odd_episodes: Episodes) -> None:
    group = [*members(seeds=(7,)), *members(seeds=(8,), learning_rate=1e30)]
    first = chunks(group, odd_episodes, 8, 8)[0]
    # The first update throws the networks out of range, the second one sees it.
    with pytest.raises(offline.Diverged, match=r"advantage of seed 8 is not finite at update 2$"):
        first.check_finite([7, 8])


def test_first_bad_update_is_found_in_a_chunk() -> None:
    metrics = {
        "policy_loss": np.array([[1.0, 1.0, np.nan], [1.0, np.inf, 1.0]]),
        "value_loss": np.ones((2, 3)),
    }
    chunk = offline.Chunk(step=30, state=None, metrics=metrics)
    with pytest.raises(
        offline.Diverged, match=r"policy_loss of seed 5 is not finite at update 29$"
    ):
        chunk.check_finite([4, 5])
    dataclasses.replace(chunk, metrics={"value_loss": np.ones((2, 3))}).check_finite([4, 5])


@pytest.mark.parametrize(
    ("updates", "interval", "what"), [(10, 4, "updates"), (0, 4, "updates"), (8, 6, "interval")]
)
def test_a_schedule_that_does_not_fit_is_refused(
    odd_episodes: Episodes, updates: int, interval: int, what: str
) -> None:
    with pytest.raises(GoatError, match=f"{what} must be a positive multiple of target_period"):
        chunks(members(), odd_episodes, updates, interval)


@pytest.mark.parametrize(
    "name", ["bc", "goat", "goat_rnd", "goat_v_chi2", "gofar", "cql_her", "wgcsl_adsw"]
)
def test_shapes_are_those_of_what_is_put_on_the_device(name: str, odd_episodes: Episodes) -> None:
    """To the weakness of a type: whatever differs would be compiled again."""

    def types(tree) -> list[tuple]:
        return [
            (leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False))
            for leaf in jax.tree.leaves(tree)
        ]

    larger = make_episodes(
        *(np.concatenate([leaf, leaf[:2]]) for leaf in jax.tree.leaves(odd_episodes))
    )
    group, datasets = members(name, seeds=(0, 1, 2)), [larger, odd_episodes, larger]
    spec = odd_episodes.spec(1.0)
    there = offline._on_device(group, spec, datasets, None)
    shapes = offline.shapes(group, spec, datasets)
    assert jax.tree.structure(there) == jax.tree.structure(shapes)
    assert types(there) == types(shapes)


def test_what_was_compiled_ahead_is_not_compiled_again(
    odd_episodes: Episodes, compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = members()
    with monkeypatch.context() as patch:
        patch.setattr(offline, "_on_device", None)  # nothing is put there
        offline.compile_ahead(
            group, odd_episodes.spec(1.0), odd_episodes, batch_size=16, interval=8
        )
    assert compilations == ["run_chunk"]
    chunks(group, odd_episodes, 24, 8)
    assert compilations.count("run_chunk") == 1


def test_too_little_memory_is_said_in_one_line(
    odd_episodes: Episodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*arguments: object) -> None:
        raise jax.errors.JaxRuntimeError(
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 5 bytes.\nBuffers: …"
        )

    monkeypatch.setattr(offline, "run_chunk", exhausted)
    with pytest.raises(GoatError, match=r"^the device has too little memory to train 2 agents .*$"):
        chunks(members(), odd_episodes, 8, 8)


def test_other_errors_of_the_device_stay_what_they_are(
    odd_episodes: Episodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise jax.errors.JaxRuntimeError("INTERNAL: something else")

    monkeypatch.setattr(offline, "run_chunk", broken)
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"):
        chunks(members(), odd_episodes, 8, 8)
