"""Datasets of robots: experts act, the filter keeps, interruptions lose nothing."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl import tasks
from goatrl.data import MissingDataset, cache, collect, experts, of_group
from goatrl.disk.identity import Identity
from goatrl.learn.networks import Architecture, init_mlp, policy_action
from goatrl.learn.normalize import Normalizer
from goatrl.runs import expert_training
from goatrl.tasks import TaskGroup
from goatrl.types import GoatError

ROBOTS = tasks.families()
SMALL = 16
WAVE = collect.WAVE


def few(name: str, episodes: int) -> TaskGroup:
    group = tasks.get(name)
    assert group.collection is not None
    return dataclasses.replace(
        group, collection=dataclasses.replace(group.collection, episodes=episodes)
    )


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(collect, "WAVE", SMALL)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_an_expert_acts_as_the_network_it_was_trained_as() -> None:
    generator = np.random.default_rng(0)
    params = init_mlp(jax.random.key(0), 7, 2, Architecture((5, 5, 5)))
    statistics = {"mean": generator.normal(size=7), "std": generator.uniform(0.5, 2.0, 7)}
    cuts = (slice(4), slice(4, 7))
    normalizer = Normalizer(
        *(jnp.float32(value[cut]) for cut in cuts for value in statistics.values())
    )
    layers = tuple((np.float64(layer["w"]), np.float64(layer["b"])) for layer in params.layers)
    halves = [
        tuple(np.float64(np.float32(value[cut])) for value in statistics.values()) for cut in cuts
    ]
    expert = experts.Expert("any", layers, halves[0], halves[1], {})
    observations, goals = 10 * generator.normal(size=(20, 4)), 10 * generator.normal(size=(20, 3))
    expected = policy_action(
        params,
        normalizer.observation(jnp.float32(observations)),
        normalizer.goal(jnp.float32(goals)),
    )
    found = expert.act(observations, goals)
    np.testing.assert_allclose(found, expected, atol=2e-6)
    np.testing.assert_array_equal(found, np.round(found, 6))


def test_an_expert_multiplies_on_one_thread_only(monkeypatch):
    library, tanh, threads = experts._matrix_library(), np.tanh, []

    def count(x):
        threads.extend(each["num_threads"] for each in library.info())
        return tanh(x)

    monkeypatch.setattr(np, "tanh", count)
    with library.limit(limits=2):
        before = library.info()
        experts.get(ROBOTS["reach"]).act(np.zeros((1, 10)), np.zeros((1, 3)))
        assert library.info() == before
    assert set(threads) == {1}


@pytest.mark.parametrize(
    "robot", [name for name, robot in ROBOTS.items() if robot.expert is not None]
)
def test_every_expert_ships_with_its_card(robot: str) -> None:
    expert, spec = experts.get(ROBOTS[robot]), ROBOTS[robot].spec
    assert expert.layers[0][0].shape[0] == spec.observation_dim + spec.goal_dim
    assert expert.layers[-1][1].shape == (spec.action_dim,)
    for key in (
        "hyperparameters",
        "schedule",
        "seed",
        "curve",
        "success",
        "episodes",
        "steps",
        "versions",
    ):
        assert key in expert.card
    assert 0.5 < expert.card["success"] <= 1.0
    recipe = expert_training.plan(robot).identity
    card = {name: expert.card[name] for name in recipe.about if name in expert.card}
    assert Identity.from_json({"config": card}, recipe.kind, robot).diff(recipe) == []


@pytest.mark.parametrize("robot", ["push", "pick"])
def test_an_expert_stays_with_what_it_has_placed(robot: str) -> None:
    """A critic whose values were too high once made one flee from it, at full success."""
    group, expert = tasks.get(f"{robot}-left-right"), experts.get(ROBOTS[robot])
    assert group.collection is not None
    starts, goals = group.collection.task.draw([0, 0], 24)
    with group.family.simulator(24) as simulator:
        taken = simulator.rollout(
            starts, lambda observations: expert.act(observations, goals), group.spec.horizon
        )
    placed = np.linalg.norm(taken.achieved[:, -1] - goals, axis=-1) <= group.spec.goal_threshold
    apart = np.linalg.norm(taken.observations[:, -1, :3] - taken.achieved[:, -1], axis=-1)
    assert placed.mean() > 0.9
    assert np.quantile(apart[placed], 0.75) < 0.15


def test_unknown_experts_are_refused() -> None:
    with pytest.raises(GoatError, match="did you mean push"):
        expert_training.plan("pussh")
    with pytest.raises(GoatError, match="point has no expert"):
        experts.get(ROBOTS["point"])


def test_exploration_is_as_the_paper_says() -> None:
    generator = np.random.default_rng(0)
    taken = collect.explore(np.zeros((20_000, 4)), generator, noise=0.2, random=0.3)
    assert np.abs(taken).max() <= 1.0
    # A mixture: 0.7 of a Gaussian with variance 0.04, 0.3 of a uniform one with variance 1/3.
    assert math.isclose(taken.var(), 0.7 * 0.04 + 0.3 / 3, rel_tol=0.03)
    # Whole actions are random, not single components: |a| > 0.6 is 3 σ of the noise.
    large = (np.abs(taken) > 0.6).any(axis=1).mean()
    assert math.isclose(large, 0.3 * (1 - 0.6**4) + 0.7 * 0.0108, rel_tol=0.05)
    np.testing.assert_array_equal(
        collect.explore(np.full((3, 2), 0.5), generator, 0.0, 0.0), np.full((3, 2), 0.5)
    )


@pytest.mark.parametrize("name", ["push-left-right", "pick-low-high", "hand-near-far"])
def test_the_same_dataset_with_any_number_of_threads(name: str) -> None:
    group = few(name, 12)
    one, other = cache.make(group, threads=1), cache.make(group, threads=2)
    assert one.checksum() == other.checksum()


@pytest.mark.parametrize("name", ["slide-near-far", "hand-near-far"])
def test_the_same_dataset_with_any_number_of_processes(name: str) -> None:
    group = few(name, 40)
    one, other = cache.make(group, threads=2), cache.make(group)
    assert one.checksum() == other.checksum()


def test_another_seed_is_another_dataset() -> None:
    group = few("hand-near-far", 8)
    assert cache.make(group, seed=0).checksum() != cache.make(group, seed=1).checksum()


@pytest.mark.parametrize("name", ["push-near-far", "slide-left-right"])
def test_only_episodes_that_stay_in_the_seen_region_are_kept(name: str) -> None:
    group = few(name, 10)
    kept = cache.make(group)
    assert kept.count == 10
    assert group.kept(np.asarray(kept.achieved)).all()
    # Kept episodes are whole: every one moved to its last step.
    assert (np.abs(np.diff(np.asarray(kept.observations), axis=1)).max(axis=-1) > 0).all()


def test_stopping_early_changes_no_kept_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Robots that leave the seen region rest; with the filter off during simulation the same
    episodes are kept.
    """
    group, expert = few("push-left-right", 8), experts.get(ROBOTS["push"])
    first = next(collect.waves(group, expert, seed=0))
    everywhere = dataclasses.replace(group, iid=tasks.get("hand-near-far").iid)
    starts = collect._starts_and_goals(group, [0, 0], SMALL)
    monkeypatch.setattr(collect, "_starts_and_goals", lambda *_: starts)
    monkeypatch.setattr(
        type(everywhere.iid), "contains", lambda self, points: np.ones(points.shape[:-1], bool)
    )
    unfiltered = next(collect.waves(everywhere, expert, seed=0)).kept
    monkeypatch.undo()
    stay = group.kept(np.asarray(unfiltered.achieved))
    assert 0 < stay.sum() < SMALL
    np.testing.assert_array_equal(
        np.asarray(unfiltered.observations)[stay], first.kept.observations
    )


def test_data_filtered_by_its_end_starts_on_both_sides_and_ends_on_one() -> None:
    variant = tasks.get("slide-left-right-by-end")
    border = variant.iid.low[1]
    wave = next(collect.waves(variant, experts.get(ROBOTS["slide"]), seed=0))
    objects = np.asarray(wave.kept.achieved)[:, :, 1]
    assert (objects[:, -1] >= border - 1e-6).all()
    started_left = (objects[:, 0] < border).mean()
    assert 0.1 < started_left < 0.9


def test_a_dataset_is_the_one_that_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole recipe: expert, noise, share of random actions, waves, filter. Of the robots'
    datasets the fastest to make. What the others add to it are regions.
    """
    monkeypatch.setattr(collect, "WAVE", WAVE)
    name = "reach-left-right"
    assert cache.make(tasks.get(name)).checksum() == cache.checksums()[name]


def test_objects_that_start_outside_are_not_simulated() -> None:
    group = few("slide-left-right", 8)
    starts, goals = collect._starts_and_goals(group, [0, 3], SMALL)
    assert starts.shape == (SMALL, 2)
    assert goals.shape == (SMALL, 3)
    assert (starts[:, 1] >= group.iid.low[1] - 1e-6).all()


def test_an_interrupted_dataset_is_taken_up_where_it_was(tmp_path: Path) -> None:
    group, partial = few("hand-near-far", 40), tmp_path / "x.partial.npz"
    whole = cache.make(group)

    class Killed(Exception):
        pass

    def die(kept: int, count: int, simulated: int) -> None:
        if kept >= 32:
            raise Killed

    with pytest.raises(Killed):
        cache.make(group, partial=partial, save_seconds=0.0, on_progress=die)
    seen = []
    again = cache.make(
        group,
        partial=partial,
        on_progress=lambda kept, count, simulated: seen.append((kept, simulated)),
    )
    assert seen == [(16, 16), (32, 32), (40, 48)]
    one, other = again, whole
    assert one.checksum() == other.checksum()


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 no archive", None])
def test_a_damaged_or_foreign_beginning_is_not_taken_up(
    tmp_path: Path, damage: bytes | None
) -> None:
    group, partial = few("hand-near-far", 10), tmp_path / "x.partial.npz"
    if damage is None:
        other = cache._Partial("00" * 32).after(
            next(collect.waves(group, experts.get(ROBOTS["hand"]), seed=5))
        )
        other.save(partial)
    else:
        partial.write_bytes(damage)
    one, fresh = cache.make(group, partial=partial), cache.make(group)
    assert one.checksum() == fresh.checksum()


def test_the_cache(tmp_path: Path) -> None:
    group = few("hand-near-far", 6)
    with pytest.raises(MissingDataset, match="goat data make hand-near-far"):
        of_group(group)
    path = cache.make_cached(group)
    assert path == tmp_path / "goatrl" / "datasets" / "hand-near-far.npz"
    assert sorted(each.name for each in path.parent.iterdir()) == [
        "hand-near-far.about",
        "hand-near-far.npz",
    ]
    one, other = of_group(group), cache.make(group)
    assert one.checksum() == other.checksum()


def test_a_damaged_cache_is_one_line(tmp_path: Path) -> None:
    group = few("hand-near-far", 6)
    path = cache.make_cached(group)
    about = path.with_suffix(".about")
    written = about.read_text()
    about.write_text("0" * 64 + " " + written.split()[1])
    with pytest.raises(GoatError, match=r"its checksum differs\); delete it"):
        of_group(group)
    about.write_text(written.split()[0] + " " + "0" * 64)
    with pytest.raises(GoatError, match="made by another version"):
        of_group(group)
    about.write_text(written)
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(GoatError, match=r"hand-near-far\.npz is damaged; delete it"):
        of_group(group)
    about.unlink()
    with pytest.raises(GoatError, match=r"without hand-near-far\.about; copy that, too, or delete"):
        of_group(group)


# Datasets in users' caches are compared with these; another recipe would have them made again.
RECIPES = {
    "reach-left-right": "ab664438b36672d8ecc670bd3fc847d366e3afc918c27668f7bb734fd0cef617",
    "reach-near-far": "d48137c51581c0f63e19dda941cb6019b7b0233ce6c311cd06268763b01e0155",
    "push-left-right": "1c95e7e204ceeea25bc26f1faa8b78969630664fd2482f2d2fcfa26d17d65796",
    "push-near-far": "b71ffa5cf3861179759528e61152fdefaa7006fe55b7ad3d9f0d8baa97d1d8b3",
    "pick-left-right": "d24218a706ed9beaee10b10116868b994c34c56aae42e4cc86bf24d21133dc64",
    "pick-low-high": "bb3411b1b0e10e0ddd0c860e42cedef8144f3469d594e423296638fa13021b72",
    "slide-left-right": "ba023f3c79a2692b753fd421f37711a091d1f6585bfc6aa95fff71fa479f42c4",
    "slide-near-far": "98a8a4fa916d79431169aba8b3922824ae1edbbdf01097af1cb85709e14121f8",
    "hand-near-far": "f78f295986d3e69da7b2d01f11d115379d77dbf7976d6a936e4bd60fe15753d4",
    "slide-left-right-by-end": "64be957d5846e6920597fecd750822ddf245795d0144f4272886c6539dd37c5c",
}


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_have_not_changed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "WAVE", WAVE)
    group = tasks.get(name)
    assert cache._recipe(group, 0, experts.get(group.family)) == RECIPES[name]
