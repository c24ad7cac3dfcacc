"""Training while acting: the same updates as offline, on a buffer that grows between them. For
experts and for fine-tuning.

A round is: every member acts in its own robots with exploration, its buffer takes the episodes in,
then all members make the round's updates in one scan. The randomness of a round depends on seeds
and on its number alone, so that a run goes on exactly where it was saved.
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
from goatrl.robots import Family
from goatrl.robots.exploration import explore
from goatrl.tasks import Task, draw_mix
from goatrl.training.offline import Chunk, Members, act, init, run_chunk, same_rows, seed_keys
from goatrl.types import Episodes, GoatError, Spec, TrainState, pytree, reached


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How much is done in a round, and what the buffer holds."""

    episodes: int = 128  # of each member, per round
    updates: int = 200  # per round
    batch_size: int = 1024
    capacity: int = 20_000  # episodes; the oldest make room
    noise: float = 0.2
    random: float = 0.3
    # -1 pays -1 and 0 instead of 0 and 1: fresh critics, which begin at 0, are near the truth
    # sooner
    reward_offset: float = 0.0
    adapt_normalizer: bool = (
        True  # whether input statistics follow what is seen, or stay as they came with the agents
    )

    def check(self, target_period: int) -> None:
        if self.updates % target_period:
            raise GoatError(
                f"updates per round must be a multiple of target_period ({target_period}), not "
                f"{self.updates}"
            )
        if self.capacity < self.episodes:
            raise GoatError(
                f"a buffer of {self.capacity} episodes is too small for rounds of {self.episodes}"
            )

    @property
    def slots(self) -> int:
        """The capacity in whole rounds, so that a round never wraps around the end."""
        return self.capacity // self.episodes * self.episodes


@pytree
class Statistics:
    """Sums over all that a member has seen, in float64: the goals of HandReach differ by
    millimetres.
    """

    count: np.ndarray  # ()
    observations: np.ndarray  # (2, observation_dim): sums and sums of squares
    goals: np.ndarray  # (2, goal_dim), of goals as relabelling draws them


@pytree
class OnlineState:
    """Everything that changes; leading axis: members."""

    round: np.ndarray  # ()
    train: TrainState
    buffer: Episodes
    statistics: Statistics


@dataclasses.dataclass(frozen=True)
class Round:
    """What the host sees of a round."""

    number: int  # from 1
    state: OnlineState
    chunk: Chunk
    success: (
        np.ndarray
    )  # (members,): share of exploring episodes that met their goal at the last step


def start(
    members: Members, spec: Spec, schedule: Schedule, trained: TrainState | None = None
) -> OnlineState:
    """Before the first round: fresh agents, or ones that were trained before, with empty
    buffers.
    """
    shapes = {
        "observations": (spec.horizon + 1, spec.observation_dim),
        "achieved": (spec.horizon + 1, spec.goal_dim),
        "actions": (spec.horizon, spec.action_dim),
        "goals": (spec.goal_dim,),
    }
    empty = {
        name: jnp.zeros((len(members), schedule.slots, *shape)) for name, shape in shapes.items()
    }
    number = len(members)
    return OnlineState(
        round=np.zeros((), np.int64),
        train=init(members, spec) if trained is None else trained,
        buffer=Episodes(**empty),
        statistics=Statistics(
            np.zeros(number),
            np.zeros((number, 2, spec.observation_dim)),
            np.zeros((number, 2, spec.goal_dim)),
        ),
    )


def train_online(
    members: Members,
    spec: Spec,
    family: Family,
    tasks: Sequence[Task],
    schedule: Schedule,
    state: OnlineState,
) -> Iterator[Round]:
    """Round after round, without end. Every task gives the same share of the episodes."""
    every = members[0][0].target_period
    schedule.check(every)
    algorithms = stack([algorithm for algorithm, _ in members])
    keys = seed_keys(members, stream=2)
    with family.simulator(len(members) * schedule.episodes) as simulator:
        while True:
            number = int(state.round)
            fresh = _collect(
                members, algorithms, state.train, simulator, spec, tasks, schedule, number
            )
            met = reached(fresh.achieved[:, :, -1], fresh.goals, spec.goal_threshold)
            statistics = _seen(state.statistics, fresh)
            buffer = _insert(
                state.buffer,
                jax.tree.map(jnp.float32, fresh),
                number * schedule.episodes % schedule.slots,
            )
            agents = state.train
            if schedule.adapt_normalizer:
                first = members[0][0]
                normalizer = _normalizer(statistics, view_of(first), symmetry.of(first, spec))
                bounds = agents.normalizer.lowest, agents.normalizer.highest
                normalizer = dataclasses.replace(normalizer, lowest=bounds[0], highest=bounds[1])
                agents = dataclasses.replace(agents, normalizer=normalizer)
            filled = min((number + 1) * schedule.episodes, schedule.slots)
            agents, metrics = run_chunk(
                algorithms,
                agents,
                keys,
                buffer,
                schedule.updates // every,
                schedule.batch_size,
                spec.goal_threshold,
                same_rows(len(members), filled),
                schedule.reward_offset,
            )
            state = OnlineState(np.asarray(number + 1), agents, buffer, statistics)
            step = (number + 1) * schedule.updates
            chunk = Chunk(
                step, agents, {name: np.asarray(values) for name, values in metrics.items()}
            )
            yield Round(number + 1, state, chunk, met.mean(axis=1))


def _collect(
    members: Members,
    algorithms: Any,
    agents: TrainState,
    simulator: Any,
    spec: Spec,
    tasks: Sequence[Task],
    schedule: Schedule,
    number: int,
) -> Episodes:
    """One round of episodes of every member: (members, episodes, …), float64."""
    drawn = [draw_mix(tasks, [seed, number], schedule.episodes) for _, seed in members]
    starts, goals = np.concatenate([s for s, _ in drawn]), np.stack([g for _, g in drawn])
    generators = [np.random.default_rng([seed, number, 1]) for _, seed in members]
    aims = jnp.float32(goals)

    def choose(observations: np.ndarray) -> np.ndarray:
        seen = jnp.float32(observations).reshape(*aims.shape[:2], -1)
        actions = np.asarray(act(algorithms, agents, seen, aims), np.float64)
        noisy = [
            explore(a, g, schedule.noise, schedule.random)
            for a, g in zip(actions, generators, strict=True)
        ]
        return np.concatenate(noisy)

    taken = simulator.rollout(starts, choose, spec.horizon)
    parts = (taken.observations, taken.achieved, taken.actions)
    observations, achieved, actions = (
        part.reshape(len(members), -1, *part.shape[1:]) for part in parts
    )
    return Episodes(observations, achieved, actions, goals)  # type: ignore[arg-type]


@partial(jax.jit, donate_argnums=0)
def _insert(buffer: Episodes, fresh: Episodes, place: int) -> Episodes:
    return jax.tree.map(
        lambda old, new: jax.lax.dynamic_update_slice_in_dim(old, new, place, axis=1), buffer, fresh
    )


def _seen(before: Statistics, fresh: Episodes) -> Statistics:
    """The sums after a round. Relabelling draws later steps more often; goals are weighted by how
    often.
    """
    observations = np.asarray(fresh.observations, np.float64)
    members, episodes, steps = observations.shape[:3]
    flat = observations.reshape(members, -1, observations.shape[-1])
    weights = normalize.future_goal_weights(steps - 1)[None, None, :, None]
    later = np.asarray(fresh.achieved, np.float64)[:, :, 1:]
    goals = np.stack([(weights * later).sum((1, 2)), (weights * later**2).sum((1, 2))], axis=1)
    return Statistics(
        before.count + episodes,
        before.observations + np.stack([flat.sum(1), (flat**2).sum(1)], axis=1) / steps,
        before.goals + goals,
    )


def _normalizer(
    statistics: Statistics, view: View | None = None, maps: Sequence[Map] = ()
) -> Normalizer:
    def moments(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, square = np.moveaxis(sums / statistics.count[:, None, None], 1, 0)
        return mean, np.sqrt(np.maximum(square - mean**2, 0.0))

    return normalize.from_moments(
        moments(statistics.observations), moments(statistics.goals), view, maps
    )
