"""How fast one GOAT update is, as ratios and rates of one run on one machine.

    python benchmarks/update_speed.py                  # what this machine can do
    python benchmarks/update_speed.py --members 5 60   # seeds in one vmap

Sizes are those of Push: 5,000 episodes of 49 actions, observation 25, goal 3, action 4, batch 512,
5 critics.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from goatrl import algorithms
from goatrl.episodes import make_episodes
from goatrl.learn import normalize, quantile
from goatrl.learn.networks import Architecture, init_ensemble, init_mlp
from goatrl.learn.parameters import stack
from goatrl.training import offline as training
from goatrl.types import Episodes, Settings

EPISODES, HORIZON, OBSERVATION, GOAL, ACTION, BATCH, CRITICS = 5_000, 49, 25, 3, 4, 512, 5


def dataset() -> Episodes:
    rng = np.random.default_rng(0)
    achieved = np.cumsum(rng.normal(0, 0.02, (EPISODES, HORIZON + 1, GOAL)), axis=1)
    observations = rng.normal(size=(EPISODES, HORIZON + 1, OBSERVATION))
    observations[..., :GOAL] = achieved
    return make_episodes(
        observations, achieved, rng.uniform(-1, 1, (EPISODES, HORIZON, ACTION)), achieved[:, -1]
    )


def best_time(call: Callable[[], object], repeats: int) -> float:
    jax.block_until_ready(call())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - start)
    return min(times)


def trainer(episodes: Episodes, members: int, updates: int, name: str) -> Callable[[], object]:
    """A function that trains all members for some more updates, in the real training scan."""
    settings = Settings()
    group = [(algorithms.get(name).build(settings), seed) for seed in range(members)]
    spec = episodes.spec(0.05)
    stacked, keys = (
        stack([algorithm for algorithm, _ in group]),
        training.seed_keys(group, stream=1),
    )
    on_device, rows, _ = training.pool([episodes] * members)
    state = training.init(group, spec, normalize.from_episodes(episodes))
    training.check_schedule(updates, updates, settings.target_period)
    periods = updates // settings.target_period

    def call() -> object:
        nonlocal state
        state, metrics = training.run_chunk(
            stacked, state, keys, on_device, periods, BATCH, spec.goal_threshold, rows
        )
        return metrics

    return call


def update_time(
    episodes: Episodes, members: int, updates: int, repeats: int, name: str = "goat"
) -> float:
    """Seconds for one update of all members."""
    return best_time(trainer(episodes, members, updates, name), repeats) / updates


def matrix_products_time(repeats: int) -> float:
    """Seconds for the matrix products of one GOAT update and nothing else: no bias, activation,
    optimiser, sampling.
    """
    key = jax.random.key(0)
    seen, shape = OBSERVATION + GOAL, Architecture()
    actor = [layer["w"] for layer in init_mlp(key, seen, ACTION, shape).layers]
    critics = [layer["w"] for layer in init_ensemble(key, CRITICS, seen + ACTION, 1, shape).layers]
    x, xa = (
        jax.random.normal(key, (BATCH, OBSERVATION + GOAL)),
        jax.random.normal(key, (BATCH, OBSERVATION + GOAL + ACTION)),
    )

    def forward(weights: list[jax.Array], x: jax.Array) -> jax.Array:
        for w in weights:
            x = x @ w
        return x

    def products(
        actor: list[jax.Array], critics: list[jax.Array], x: jax.Array, xa: jax.Array
    ) -> object:
        ensemble = jax.vmap(forward, in_axes=(0, None))
        both = jnp.concatenate([xa, xa + 1])
        action, actor_back = jax.vjp(lambda w: forward(w, x), actor)  # π(s), with gradient
        value, critic_back = jax.vjp(lambda w: ensemble(w, xa), critics)  # Q_i(s, a), with gradient
        others = forward(actor, x + 1), forward(actor[::1], x + 2)  # π(s'), target π(s')
        values = (
            ensemble(critics, both),
            ensemble(critics, xa + 2),
        )  # Q_i at (s; s') and target Q_i at s'
        return actor_back(action), critic_back(value), others, values

    compiled = jax.jit(products)
    return best_time(lambda: [compiled(actor, critics, x, xa) for _ in range(20)], repeats) / 20


def percentile_time(members: int, updates: int, repeats: int) -> float:
    """Seconds for pushing a batch and reading the percentile, per update of all members."""
    fifo = jax.vmap(lambda _: quantile.make_fifo(50_000))(jnp.arange(members))
    new = jax.random.normal(jax.random.key(0), (members, BATCH))

    def step(fifo: quantile.Fifo, _: None) -> tuple[quantile.Fifo, jax.Array]:
        fifo = jax.vmap(quantile.push)(fifo, new)
        return fifo, jax.vmap(quantile.percentile, in_axes=(0, None))(fifo, 80.0)

    run = jax.jit(lambda fifo: jax.lax.scan(step, fifo, length=updates))
    return best_time(lambda: run(fifo), repeats) / updates


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    on_cpu = jax.default_backend() == "cpu"
    parser.add_argument("--members", type=int, nargs="+", default=[1] if on_cpu else [1, 5, 20, 60])
    parser.add_argument("--updates", type=int, default=40 if on_cpu else 1000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--algorithm", default="goat")
    given = parser.parse_args(arguments)
    episodes = dataset()
    report: dict[str, object] = {
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "algorithm": given.algorithm,
    }
    for members in given.members:
        seconds = update_time(episodes, members, given.updates, given.repeats, given.algorithm)
        percentile = percentile_time(members, given.updates, given.repeats)
        report[f"{members} members"] = {
            "update ms": seconds * 1e3,
            "member-updates per second": members / seconds,
            "percentile share": percentile / seconds,
        }
    if on_cpu:
        products = matrix_products_time(given.repeats)
        report["matrix products ms"] = products * 1e3
        report["update / matrix products"] = report["1 members"]["update ms"] / (products * 1e3)  # type: ignore[index]
        report["peak memory GiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    else:
        report["peak device memory GiB"] = (
            jax.devices()[0].memory_stats()["peak_bytes_in_use"] / 2**30
        )
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
