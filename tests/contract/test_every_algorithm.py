"""The contract, for every registered algorithm and variant: whatever registers itself is tested
here without a further line.
"""

from __future__ import annotations

import dataclasses
import json
from functools import cache, lru_cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goatrl import algorithms, tasks
from goatrl.data import of_group
from goatrl.disk import checkpoint
from goatrl.episodes import make_episodes
from goatrl.learn import normalize
from goatrl.learn.parameters import hyperparameters, override
from goatrl.training import offline
from goatrl.types import Settings, TrainState
from helpers import ROOT, own_algorithms

SETTINGS = Settings(updates=8, batch_size=16, target_period=4, polyak=0.9, alpha_growth=5.0)
SEEDS = (3, 11)
EPISODES = of_group(tasks.get("pointreach-non-expert-10"))
SPEC = EPISODES.spec(goal_threshold=1.0)
UNEQUAL = make_episodes(
    *(
        [np.asarray(part)[n, : end + extra] for n, end in enumerate((1, 2, 49, 7))]
        for part, extra in (
            (EPISODES.observations, 1),
            (EPISODES.achieved, 1),
            (EPISODES.actions, 0),
        )
    ),
    np.asarray(EPISODES.goals)[:4],
    terminated=[True, False, False, True],
)
NORMALIZER = normalize.from_episodes(EPISODES)
# The contract says nothing about the size of networks, or of how many values percentiles are.
SMALL = {"architecture.hidden": (32,), "percentile_selection.capacity": 1_000}
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FILES = {path.stem: path for path in EXAMPLES if "@register(" in path.read_text()}


@pytest.fixture(scope="module", params=(*sorted(algorithms.entries()), *FILES))
def name(request: pytest.FixtureRequest) -> str:
    """Every algorithm in turn; those of one size share the programs that make networks."""
    return request.param


@cache
def entry(name: str) -> algorithms.Entry:
    if name not in FILES:
        return algorithms.get(name)
    with own_algorithms():
        return algorithms.load_file(FILES[name])


def build(name: str):
    algorithm = entry(name).build(SETTINGS)
    known = hyperparameters(algorithm)
    return override(algorithm, {name: size for name, size in SMALL.items() if name in known})


def run(members) -> offline.Chunk:
    *_, last = offline.train(members, SPEC, EPISODES, updates=8, batch_size=16, interval=4)
    return last


@lru_cache(maxsize=1)  # tests of one algorithm run one after the other
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


def test_metrics_are_finite_and_named(name: str) -> None:
    metrics = trained(name).metrics
    assert any(metric.endswith("_loss") for metric in metrics), "progress bars show losses"
    for values in metrics.values():
        assert values.shape == (len(SEEDS), 4)  # the last chunk: four updates of each seed
        assert np.isfinite(values).all()


def test_episodes_may_differ_in_length_and_in_how_they_end(name: str) -> None:
    members = [(build(name), seed) for seed in SEEDS]  # as elsewhere: their networks are compiled
    *_, last = offline.train(members, SPEC, UNEQUAL, updates=4, batch_size=16, interval=4)
    assert all(np.isfinite(values).all() for values in last.metrics.values())
    assert all(np.isfinite(leaf).all() for leaf in leaves(last.state.params))


def test_training_moves_every_network(name: str) -> None:
    state = trained(name).state
    start = offline.init([(build(name), seed) for seed in SEEDS], SPEC, NORMALIZER)
    assert np.asarray(state.step).tolist() == [8, 8]
    for tree, before in ((state.params, start.params), (state.target, start.target)):
        for part in tree:
            if leaves(before[part]):
                assert not same_bytes(tree[part], before[part]), f"{part} did not move"
    for part in state.target:
        if leaves(state.target[part]):
            assert not same_bytes(state.params[part], state.target[part]), "targets lag behind"


def test_same_seed_same_bytes(name: str) -> None:
    again = run([(build(name), seed) for seed in SEEDS])
    assert same_bytes(again.state, trained(name).state)


def test_a_seed_does_not_depend_on_its_company(name: str) -> None:
    """In another place, beside another seed. As many as before, so that nothing compiles again."""
    first = run([(build(name), SEEDS[1]), (build(name), 99)]).state
    one, other = (
        jax.tree.map(lambda leaf, m=m: leaf[m], state.params)
        for state, m in ((first, 0), (trained(name).state, 1))
    )
    for mine, before in zip(leaves(one), leaves(other), strict=True):
        np.testing.assert_allclose(mine, before, rtol=2e-3, atol=2e-4)


def test_seeds_differ(name: str) -> None:
    params = trained(name).state.params
    first, second = (jax.tree.map(lambda leaf, i=i: leaf[i], params) for i in (0, 1))
    assert not same_bytes(first, second)


def test_actions_are_in_range_and_depend_on_the_goal(name: str) -> None:
    state = jax.tree.map(lambda leaf: leaf[0], trained(name).state)
    observation = jnp.zeros((3, 2))
    goal = jnp.asarray(
        [[10.0, 0.0], [-10.0, 0.0], [0.0, 1e6]]
    )  # the last one far outside, to be clipped
    action = np.asarray(normalize.act(build(name), state, observation, goal))
    assert action.shape == (3, 2)
    assert np.abs(action).max() <= 1.0
    assert not np.array_equal(action[0], action[1])


def test_what_a_benchmark_keeps_of_agents_acts_as_they_do(name: str) -> None:
    algorithm, whole = build(name), trained(name).state
    kept = offline.prune_to_policy(algorithm, SPEC, whole)
    pair = (EPISODES.observations[:5, 0], EPISODES.goals[:5])
    for member in range(len(SEEDS)):
        one, other = (
            normalize.act(algorithm, jax.tree.map(lambda leaf, m=member: leaf[m], each), *pair)
            for each in (whole, kept)
        )
        np.testing.assert_array_equal(one, other)
    assert not jax.tree.leaves(kept.optimizer), "acting needs no optimiser"


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


def test_a_float_is_a_sweep_axis(name: str) -> None:
    """An agent beside one with other numbers learns what it learns beside one with its own."""
    algorithm = build(name)
    floats = {k: v for k, v in hyperparameters(algorithm).items() if isinstance(v, float)}
    assert floats, "there is nothing to sweep"
    other = override(algorithm, {key: value * 0.9 for key, value in floats.items()})
    state = run([(algorithm, SEEDS[0]), (other, SEEDS[0])]).state
    same, changed = (jax.tree.map(lambda leaf, m=m: leaf[m], state.params) for m in (0, 1))
    alone = jax.tree.map(lambda leaf: leaf[0], trained(name).state.params)
    for one, two in zip(leaves(alone), leaves(same), strict=True):
        np.testing.assert_allclose(one, two, rtol=2e-3, atol=2e-4)
    assert not same_bytes(same, changed)


def test_hyperparameters_can_be_listed_recorded_and_set(name: str) -> None:
    algorithm = build(name)
    found = hyperparameters(algorithm)
    assert json.loads(json.dumps(found)).keys() == found.keys()
    for parameter, value in found.items():
        if isinstance(value, float):
            changed = override(algorithm, {parameter: value + 0.125})
            assert hyperparameters(changed)[parameter] == value + 0.125


def test_the_algorithm_is_immutable(name: str) -> None:
    algorithm = build(name)
    field = dataclasses.fields(algorithm)[0].name
    with pytest.raises(AttributeError):
        setattr(algorithm, field, None)
