"""The contract, for every registered algorithm and variant: whatever registers itself is tested
here without a further line.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl import algorithms, tasks
from goatrl.data import of_group
from goatrl.disk import checkpoint
from goatrl.experiments import agents
from goatrl.learn import normalize
from goatrl.learn.parameters import hyperparameters, override
from goatrl.training import offline
from goatrl.types import Settings, TrainState

SETTINGS = Settings(updates=8, batch_size=16, target_every=4, target_keep=0.9, alpha_growth=5.0)
SEEDS = (3, 11)
EPISODES = of_group(tasks.get("pointreach-non-expert-10"))
SPEC = EPISODES.spec(goal_threshold=1.0)
NORMALIZER = normalize.from_episodes(EPISODES)
NAMES = [
    pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in sorted(algorithms.entries())
]
every_algorithm = pytest.mark.parametrize("name", NAMES)


def build(name: str):
    return algorithms.get(name).build(SETTINGS)


def run(members) -> offline.Chunk:
    *_, last = offline.train(members, SPEC, EPISODES, updates=8, batch_size=16, interval=4)
    return last


@cache
def trained(name: str) -> offline.Chunk:
    return run([(build(name), seed) for seed in SEEDS])


def leaves(tree) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def same_bytes(one, other) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(leaves(one), leaves(other), strict=True))


def test_the_paper_is_complete() -> None:
    benchmark = "goat goat_tau wgcsl gcsl bc gofar marwil_her iql_her ddpg_her cql_her msg_her"
    appendix = (
        "goat_v goat_v_chi2 goat_rnd wgcsl_er wgcsl_ens wgcsl_drw wgcsl_adsw wgcsl_cql marwil "
        "gofar_her gofar_binary "
        "gofar_binary_q gofar_binary_exp gofar_binary_relabel gofar_binary_exp_relabel "
        "ddpg_her_ens marwil_her_ens goat_released"
    )
    assert set(f"{benchmark} {appendix}".split()) <= set(algorithms.entries())


@every_algorithm
def test_metrics_are_finite_and_named(name: str) -> None:
    metrics = trained(name).metrics
    assert "policy_loss" in metrics
    for values in metrics.values():
        assert values.shape == (len(SEEDS), 4)  # the last chunk: four updates of each seed
        assert np.isfinite(values).all()


@every_algorithm
def test_training_moves_every_network(name: str) -> None:
    state = trained(name).state
    start = offline.init([(build(name), seed) for seed in SEEDS], SPEC, NORMALIZER)
    assert np.asarray(state.step).tolist() == [8, 8]
    for part in ("policy", "value"):
        if start.params[part] == ():
            continue
        for tree, before in ((state.params, start.params), (state.target, start.target)):
            assert not same_bytes(tree[part], before[part]), f"{part} did not move"
    assert not same_bytes(state.params, state.target), "the target must lag behind"


@every_algorithm
def test_same_seed_same_bytes(name: str) -> None:
    again = run([(build(name), seed) for seed in SEEDS])
    assert same_bytes(again.state, trained(name).state)


@every_algorithm
def test_a_seed_in_a_group_is_the_seed_alone(name: str) -> None:
    alone = run([(build(name), SEEDS[1])]).state
    together = jax.tree.map(lambda leaf: leaf[1:2], trained(name).state)
    for one, other in zip(leaves(alone.params), leaves(together.params), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4)


@every_algorithm
def test_seeds_differ(name: str) -> None:
    params = trained(name).state.params
    first, second = (jax.tree.map(lambda leaf, i=i: leaf[i], params) for i in (0, 1))
    assert not same_bytes(first, second)


@every_algorithm
def test_actions_are_in_range_and_depend_on_the_goal(name: str) -> None:
    state = jax.tree.map(lambda leaf: leaf[0], trained(name).state)
    observation = jnp.zeros((3, 2))
    goal = jnp.asarray(
        [[10.0, 0.0], [-10.0, 0.0], [0.0, 1e6]]
    )  # the last one far outside, to be clipped
    action = np.asarray(build(name).act(state, observation, goal))
    assert action.shape == (3, 2)
    assert np.abs(action).max() <= 1.0
    assert not np.array_equal(action[0], action[1])


@every_algorithm
def test_what_a_benchmark_keeps_of_agents_acts_as_they_do(name: str) -> None:
    algorithm, whole = build(name), trained(name).state
    kept = agents.that_acts(algorithm, SPEC, whole)
    pair = (EPISODES.observations[:5, 0], EPISODES.goals[:5])
    for member in range(len(SEEDS)):
        one, other = (
            algorithm.act(jax.tree.map(lambda leaf, m=member: leaf[m], each), *pair)
            for each in (whole, kept)
        )
        np.testing.assert_array_equal(one, other)
    assert not jax.tree.leaves((kept.target, kept.optimizer))


@every_algorithm
def test_checkpoint_is_the_identity(name: str, tmp_path: Path) -> None:
    state = trained(name).state
    path = tmp_path / "state.safetensors"
    checkpoint.save(path, state, {"step": 8})
    restored = checkpoint.restore(
        path,
        jax.eval_shape(lambda: offline.init([(build(name), s) for s in SEEDS], SPEC, NORMALIZER)),
    )
    assert isinstance(restored, TrainState)
    assert same_bytes(restored, state)
    assert checkpoint.describe(path) == {"step": 8}


@every_algorithm
def test_a_float_is_a_sweep_axis(name: str) -> None:
    slow, fast = (override(build(name), {"learning_rate": rate}) for rate in (1e-5, 1e-2))
    state = run([(slow, SEEDS[0]), (fast, SEEDS[0])]).state
    start = offline.init([(slow, SEEDS[0])], SPEC, NORMALIZER).params["policy"]
    pairs = list(zip(leaves(state.params["policy"]), leaves(start), strict=True))
    moved = [
        sum(np.abs(after[member] - before[0]).sum() for after, before in pairs) for member in (0, 1)
    ]
    assert moved[1] > 10 * moved[0]


@every_algorithm
def test_hyperparameters_are_numbers_with_distinct_names(name: str) -> None:
    algorithm = build(name)
    found = hyperparameters(algorithm)
    assert {"learning_rate", "discount", "relabel"} <= set(found)
    assert all(value is None or isinstance(value, int | float | str) for value in found.values())
    for parameter, value in found.items():
        if isinstance(value, float):
            assert (
                hyperparameters(override(algorithm, {parameter: value + 0.125}))[parameter]
                == value + 0.125
            )


@every_algorithm
def test_the_composition_is_immutable(name: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        build(name).learning_rate = 1.0
