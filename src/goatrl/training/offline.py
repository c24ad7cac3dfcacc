"""Training: the dataset on the device, all updates between two reports in one scan, all seeds in
one vmap.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from goatrl.learn import normalize, symmetry
from goatrl.learn.networks import View, view_of
from goatrl.learn.normalize import Normalizer
from goatrl.learn.parameters import stack
from goatrl.learn.symmetry import Map
from goatrl.training import memory
from goatrl.types import Algorithm, Episodes, GoatError, Rows, Spec, TrainState

Members = Sequence[tuple[Algorithm, int]]  # what trains together: one composition and one seed each


class Diverged(GoatError):
    """A loss is no longer a number."""

    exit_code = 1


@dataclasses.dataclass(frozen=True)
class Chunk:
    """What the host sees of some updates: the state after them and every metric of every update."""

    step: int
    state: TrainState  # leading axis: members
    metrics: dict[str, np.ndarray]  # name → (members, updates of this chunk)

    def metrics_of(self, members: slice) -> Chunk:
        """The same with the metrics of some members alone."""
        mine = {name: values[members] for name, values in self.metrics.items()}
        return dataclasses.replace(self, metrics=mine)

    def check_finite(self, seeds: Sequence[int]) -> None:
        """Raise with the first update at which any metric of any member is not finite."""
        first: tuple[int, int, str] | None = None
        for name, values in self.metrics.items():
            for member, update in np.argwhere(~np.isfinite(values)):
                found = (int(update), int(member), name)
                first = found if first is None else min(first, found)
        if first is not None:
            update, member, name = first
            step = self.step - self.metrics[name].shape[1] + update + 1
            raise Diverged(
                f"training diverged: {name} of seed {seeds[member]} is not finite at update {step}"
            )


def init(members: Members, spec: Spec, normalizer: Normalizer | None = None) -> TrainState:
    """The state of all members before the first update; without a normaliser, with one that
    changes nothing.
    """
    if normalizer is None:
        normalizer = normalize.identity(spec, view_of(members[0][0]))
    algorithms = stack([algorithm for algorithm, _ in members])
    states = jax.vmap(lambda algorithm, key: algorithm.init(key, spec))(
        algorithms, seed_keys(members, stream=0)
    )
    repeated = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf[None], (len(members), *leaf.shape)), normalizer
    )
    return dataclasses.replace(states, normalizer=repeated)


def train(
    members: Members,
    spec: Spec,
    episodes: Episodes | Sequence[Episodes],
    *,
    updates: int,
    batch_size: int,
    interval: int,
    state: TrainState | None = None,
) -> Iterator[Chunk]:
    """Train all members from `state` (or from scratch) to `updates`, a chunk of `interval` updates
    at a time.

    All members learn from the same episodes, or each from its own: datasets of equal shapes.

    The randomness of update i of a member depends on its seed and on i alone: neither on the other
    members, nor on where a run was interrupted. Arithmetic does depend on how many members share a
    matrix product: on a GPU always (TF32 kernels are chosen by shape), on a CPU from about eight
    on. There a seed alone and in company agree in distribution, not in every digit.
    """
    every = members[0][0].target_period
    check_schedule(updates, interval, every)
    with memory.refused_if_exhausted(len(members)):
        algorithms, state, keys, shared, rows = _on_device(members, spec, episodes, state)
        step = int(np.asarray(state.step)[0])
    while step < updates:
        periods = min(interval, updates - step) // every
        with memory.refused_if_exhausted(len(members)):
            state, metrics = run_chunk(
                algorithms, state, keys, shared, periods, batch_size, spec.goal_threshold, rows
            )
            told = {name: np.asarray(values) for name, values in metrics.items()}
        step += periods * every
        yield Chunk(step, state, told)


def compile_ahead(
    members: Members,
    spec: Spec,
    episodes: Episodes | Sequence[Episodes],
    *,
    batch_size: int,
    interval: int,
) -> None:
    """Compile, in whichever thread, what `train` will run with the same arguments. Nothing of them
    is put on the device, which may be full of what trains meanwhile.
    """
    algorithms, state, keys, shared, rows = shapes(members, spec, episodes)
    periods = interval // members[0][0].target_period
    settings = periods, batch_size, spec.goal_threshold
    with memory.refused_if_exhausted(len(members)):
        # What is compiled here is found by an ordinary call.
        run_chunk.lower(algorithms, state, keys, shared, *settings, rows).compile()


def shapes(
    members: Members, spec: Spec, episodes: Episodes | Sequence[Episodes]
) -> tuple[Any, Any, Any, Any, Any]:
    """Those of what `_on_device` returns."""
    different = _different([episodes] if isinstance(episodes, Episodes) else episodes)

    def arrays(*datasets: Episodes) -> tuple[Any, TrainState, jax.Array, Episodes, Rows]:
        return (
            stack([algorithm for algorithm, _ in members]),
            init(members, spec),
            seed_keys(members, stream=1),
            _joined(datasets),
            same_rows(len(members), 0),
        )

    return jax.eval_shape(arrays, *different)


def _on_device(
    members: Members,
    spec: Spec,
    episodes: Episodes | Sequence[Episodes],
    state: TrainState | None,
) -> tuple[Any, TrainState, jax.Array, Episodes, Rows]:
    shared, rows, normalizers = pool(
        [episodes] * len(members) if isinstance(episodes, Episodes) else episodes,
        view_of(members[0][0]),
        symmetry.of(members[0][0], spec),
    )
    if state is None:
        fresh = init(members, spec)
        state = dataclasses.replace(fresh, normalizer=normalizers)
    algorithms = stack([algorithm for algorithm, _ in members])
    return algorithms, state, seed_keys(members, stream=1), shared, rows


def pool(
    datasets: Sequence[Episodes], view: View | None = None, maps: Sequence[Map] = ()
) -> tuple[Episodes, Rows, Normalizer]:
    """The datasets of all members one behind the other on the device, each once, and every member's
    rows and normaliser.
    """
    different = _different(datasets)
    places = {id(episodes): place for place, episodes in enumerate(different)}
    mine = np.array([places[id(episodes)] for episodes in datasets])
    counts = np.array([episodes.count for episodes in different])
    firsts = np.cumsum(counts) - counts
    normalizers = [normalize.from_episodes(episodes, view, maps) for episodes in different]
    return (
        _joined(different),
        Rows(jnp.asarray(firsts[mine]), jnp.asarray(counts[mine])),
        jax.tree.map(lambda *each: jnp.stack(each)[mine], *normalizers),
    )


def _different(datasets: Sequence[Episodes]) -> list[Episodes]:
    return list({id(episodes): episodes for episodes in datasets}.values())


def _joined(datasets: Sequence[Episodes]) -> Episodes:
    joined: Episodes = jax.tree.map(lambda *parts: jnp.concatenate(parts), *datasets)
    return joined


def same_rows(members: int, count: int) -> Rows:
    """The first `count` episodes, for every member."""
    return Rows(jnp.zeros(members, jnp.int32), jnp.full(members, count, jnp.int32))


def default_interval(updates: int, every: int) -> int:
    """Fifty reports a run: often enough to stop soon after Ctrl-C, seldom enough to cost
    nothing.
    """
    every = max(every, 1)  # what is less is refused by `check_schedule`
    return max(updates // 50 // every, 1) * every


def check_schedule(updates: int, interval: int, every: int) -> None:
    if every < 1:
        raise GoatError(f"target_period must be at least 1, not {every}")
    for name, value in (("updates", updates), ("interval", interval)):
        if value <= 0 or value % every:
            near = max(round(value / every), 1) * every
            raise GoatError(
                f"{name} must be a positive multiple of target_period ({every}), not {value}; "
                f"try {near}"
            )


# The incoming state is not donated: if a chunk diverges, the state before it is still there to be
# saved.
@partial(jax.jit, static_argnums=(4, 5, 6, 8))
def run_chunk(
    algorithms: Any,
    state: TrainState,
    keys: jax.Array,
    episodes: Episodes,
    periods: int,
    batch_size: int,
    threshold: float,
    rows: Rows,
    reward_offset: float = 0.0,
) -> tuple[TrainState, dict[str, jax.Array]]:
    """`periods` target periods of updates for every member; metrics have shape (members, updates).

    Each member draws from its `rows` of the episodes that all share, or, where these have a leading
    axis of members, of its own. `reward_offset` is added to the rewards 0 and 1.
    """

    def member(
        algorithm: Algorithm, state: TrainState, key: jax.Array, episodes: Episodes, rows: Rows
    ) -> tuple[TrainState, dict[str, jax.Array]]:
        def update(state: TrainState, _: None) -> tuple[TrainState, dict[str, jax.Array]]:
            sample_key, update_key = jax.random.split(jax.random.fold_in(key, state.step))
            batch = algorithm.sampler.sample(sample_key, episodes, batch_size, threshold, rows)
            batch = dataclasses.replace(batch, reward=batch.reward + reward_offset)
            if declared := getattr(algorithm, "symmetry", ""):
                batch = symmetry.augment(declared, jax.random.fold_in(sample_key, 0), batch)
            return normalize.update(algorithm, state, batch, update_key)

        def period(state: TrainState, _: None) -> tuple[TrainState, dict[str, jax.Array]]:
            state, metrics = jax.lax.scan(update, state, length=algorithm.target_period)
            return algorithm.update_target(state), metrics

        state, metrics = jax.lax.scan(period, state, length=periods)
        return state, jax.tree.map(jnp.ravel, metrics)

    own = episodes.goals.ndim == 3
    return jax.vmap(member, in_axes=(0, 0, 0, 0 if own else None, 0))(
        algorithms, state, keys, episodes, rows
    )


@jax.jit
def act(algorithms: Any, state: TrainState, observations: jax.Array, goals: jax.Array) -> jax.Array:
    """Actions of every member in its own episodes: (members, episodes, ·), (members,
    episodes, ·).
    """
    return jax.vmap(normalize.act)(algorithms, state, observations, goals)


def prune_to_policy(algorithm: Algorithm, spec: Spec, agents: TrainState) -> TrainState:
    """Agents with None for all arrays that their actions do not depend on: a tenth is left of GOAT,
    without its critics.
    """
    one = jax.eval_shape(lambda many: jax.tree.map(lambda leaf: leaf[0], many), agents)
    program = jax.make_jaxpr(partial(normalize.act, algorithm))(
        one, jnp.zeros((1, spec.observation_dim)), jnp.zeros((1, spec.goal_dim))
    ).jaxpr
    read = {id(variable) for variable in program.outvars} | {
        id(each) for equation in program.eqns for each in equation.invars
    }
    arrays, structure = jax.tree.flatten(agents)
    variables = program.invars[: len(arrays)]  # then come observation and goal
    kept = [
        array if id(variable) in read else None
        for array, variable in zip(arrays, variables, strict=True)
    ]
    return dataclasses.replace(jax.tree.unflatten(structure, kept), step=agents.step)


def seed_keys(members: Members, stream: int) -> jax.Array:
    return jax.vmap(lambda seed: jax.random.fold_in(jax.random.key(seed), stream))(
        jnp.asarray([seed for _, seed in members])
    )
