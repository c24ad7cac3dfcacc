"""Agents in an environment of the user's own: any of Gymnasium's that says what it achieves and
what it should.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import pyarrow as pa
from gymnasium.spaces import Box
from gymnasium.vector import VectorEnv

from goatrl.data.minari import KEYS
from goatrl.data.sizes import check_fits_memory
from goatrl.evaluation.episodes import SCHEMA
from goatrl.evaluation.worlds import (
    FIRST_SEED,
    Environment,
    blamed,
    first_observations,
    in_numbers,
    opened,
    short,
    some_opened,
)
from goatrl.learn.parameters import stack
from goatrl.robots.family import Act, OnProgress
from goatrl.training.offline import Members, act
from goatrl.types import (
    ActionBounds,
    GoatError,
    NotFinite,
    Spec,
    TrainState,
    distance,
    reached,
    require_finite,
)

EPISODES = 100
SIDE_BY_SIDE = 32  # the most copies of an environment that are open at a time
ROWS = 32  # episodes that a policy sees at once, whether or not there are so many
NEAR = 1e-6  # bounds that differ by less are the same
LONGEST_PATH = 3  # numbers of a goal up to which paths are recorded
FLAGS = ("success", "is_success")  # in an environment's info, the first that is there

Policy = Callable[[np.ndarray, np.ndarray], np.ndarray]  # observations, goals → actions


class Taken(NamedTuple):
    """Some episodes side by side. Of one that ended early, only `lengths` actions count."""

    observations: np.ndarray  # (N, T+1, observation_dim), float32
    achieved: np.ndarray  # (N, T+1, goal_dim), float32
    actions: np.ndarray  # (N, T, action_dim), in [-1, 1]
    goals: np.ndarray  # (N, goal_dim), float32
    lengths: np.ndarray  # (N,)
    met: np.ndarray  # (N, T), whether each action led to success


def check(
    where: Environment,
    spec: Spec,
    episodes: int = EPISODES,
    action_bounds: ActionBounds | None = None,
) -> str | None:
    """Refuse an environment that agents of this spec cannot act in; otherwise say what becomes of
    actions, if they change.
    """
    _check_count(episodes)
    with opened(where, spec, 1) as worlds:
        space = worlds.single_action_space
        assert isinstance(space, Box)
        if action_bounds is not None:
            within = (np.array(action_bounds.low) >= space.low - NEAR) & (
                np.array(action_bounds.high) <= space.high + NEAR
            )
            return (
                None
                if within.all()
                else f"agents act within the bounds of their data; the environment clips their "
                f"actions to {short(space)}"
            )
        if (space.low == -1.0).all() and (space.high == 1.0).all():
            return None
        stretched = (
            "-1 is mapped to its lower bound and 1 to its upper bound; unless both are finite, "
            "actions are only clipped"
        )
        return (
            f"agents act in [-1, 1], the environment in {short(space)}: {stretched}. If the "
            "data's actions are in the environment's units, declare their bounds and train again"
        )


def evaluate(
    members: Members,
    state: TrainState,
    spec: Spec,
    where: Environment,
    episodes: int = EPISODES,
    on_progress: OnProgress | None = None,
    action_bounds: ActionBounds | None = None,
) -> pa.Table:
    """One row per member and episode, as for tasks. All members are evaluated on the same
    episodes, whose seeds determine starts and goals.

    An episode has one goal, that of its first observation, and as many actions as the longest of
    the data or as the horizon says, unless the environment ends it earlier. Success means that the
    goal achieved at the last step is within the goal threshold, or that the environment's own flag
    is set then. The return is the number of such steps. The environment's own reward is ignored.
    """
    _check_count(episodes)
    agents = stack([algorithm for algorithm, _ in members]), state
    seeds = [FIRST_SEED + episode for episode in range(episodes)]
    task, taken = side_by_side(
        act, agents, len(members), seeds, spec, where, on_progress, action_bounds
    )
    rows: list[dict[str, Any]] = []
    for (_, seed), mine in zip(members, taken, strict=True):
        for episode in range(episodes):
            length, goal = int(mine.lengths[episode]), mine.goals[episode]
            path, met = mine.achieved[episode, : length + 1], mine.met[episode, :length]
            rows.append(
                {
                    "task": f"{task}{where.settings}",
                    "split": None,  # what the data covers of it is unknown
                    "seed": seed,
                    "episode": episode,
                    "success": bool(met[-1]),
                    "return": int(met.sum()),
                    "final_distance": float(distance(path[-1], goal)),
                    "start": path[0].tolist(),
                    "goal": goal.tolist(),
                    "path": path.ravel().tolist() if spec.goal_dim <= LONGEST_PATH else None,
                }
            )
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def side_by_side(
    act: Act,
    agents: tuple[Any, Any],
    members: int,
    seeds: Sequence[int],
    spec: Spec,
    where: Environment,
    on_progress: OnProgress | None = None,
    action_bounds: ActionBounds | None = None,
) -> tuple[str, list[Taken]]:
    """The name of an environment, and what each member does in the episodes of these seeds.
    `agents` are the algorithms and their states.

    Copies of the environment are opened, as many as its constructor allows, and their number
    changes no episode: a policy always sees as many, as matrix products of few rows are compiled to
    round differently.
    """
    # Policies act where the environments are, on the processor.
    agents = jax.device_put(agents, jax.devices("cpu")[0])
    alone: list[Callable[..., Any]] = [
        partial(act, *jax.tree.map(lambda leaf, m=member: leaf[m : m + 1], agents))
        for member in range(members)
    ]
    shown = [
        np.zeros((1, ROWS, size), np.float32) for size in (spec.observation_dim, spec.goal_dim)
    ]

    def policy(who: np.ndarray, observations: np.ndarray, goals: np.ndarray) -> np.ndarray:
        actions = np.zeros((len(who), spec.action_dim), np.float32)
        for member in np.unique(who):
            rows = np.flatnonzero(who == member)
            for whole, part in zip(shown, (observations, goals), strict=True):
                whole[0, : len(rows)] = part[rows]
            actions[rows] = np.asarray(alone[member](*shown))[0, : len(rows)]
        return actions

    parts = []
    steps = where.steps(spec)
    with some_opened(where, spec, min(SIDE_BY_SIDE, members * len(seeds))) as worlds:
        assert worlds.spec is not None
        all_of_them = np.arange(members * len(seeds))
        firsts = range(0, len(all_of_them), worlds.num_envs)

        def told(before: int, step: int) -> None:
            if on_progress is not None:
                on_progress(before * steps + step, len(firsts) * steps)

        for done, first in enumerate(firsts):
            # the last round may not be full
            which = np.resize(all_of_them[first : first + worlds.num_envs], worlds.num_envs)
            who, episodes = np.divmod(which, len(seeds))
            drawn = [seeds[episode] for episode in episodes]
            told_here = partial(told, done)
            parts.append(
                rollout(worlds, partial(policy, who), drawn, spec, where, told_here, action_bounds)
            )
        name = worlds.spec.id
    joined = [np.concatenate(part)[: len(all_of_them)] for part in zip(*parts, strict=True)]
    each = [np.split(array, members) for array in joined]
    return name, [Taken(*mine) for mine in zip(*each, strict=True)]


def rollout(
    worlds: VectorEnv,
    policy: Policy,
    seeds: Sequence[int],
    spec: Spec,
    where: Environment,
    on_step: Callable[[int], None] = lambda step: None,
    action_bounds: ActionBounds | None = None,
) -> Taken:
    """An episode of each environment. If all end early, the last step is still told.

    An environment that ends early begins another episode, which is not looked at.
    """
    steps, count = where.steps(spec), len(seeds)
    numbers = spec.observation_dim + spec.goal_dim + 2 * spec.action_dim
    check_fits_memory(4 * numbers * count * (steps + 1), f"{count} episodes of {steps} actions")
    seen = first_observations(worlds, seeds, where)
    goals = seen["desired_goal"]
    observations = np.zeros((count, steps + 1, spec.observation_dim), np.float32)
    achieved = np.zeros((count, steps + 1, spec.goal_dim), np.float32)
    observations[:, 0], achieved[:, 0] = seen["observation"], seen["achieved_goal"]
    actions = np.zeros((count, steps, spec.action_dim))
    flags, told = np.zeros((2, count, steps), bool)
    lengths = np.full(count, steps)
    for step in range(steps):
        actions[:, step] = policy(seen["observation"], goals)
        require_finite(actions[lengths > step, step], "an agent's action", where.id)
        with blamed("step", where):
            found, _, terminated, truncated, info = worlds.step(
                _stretched(actions[:, step], worlds.single_action_space, action_bounds)
            )
            seen = in_numbers(found)
            flags[:, step], told[:, step] = _flagged(info, count, where)
            for key in KEYS[:2]:
                require_finite(seen[key][lengths > step], key, f"step {step + 1} in {where.id}")
        observations[:, step + 1], achieved[:, step + 1] = (
            seen["observation"],
            seen["achieved_goal"],
        )
        lengths = np.where(terminated | truncated, np.minimum(lengths, step + 1), lengths)
        ended = (lengths <= step + 1).all()
        on_step(steps if ended else step + 1)
        if ended:
            break
    if where.success == "threshold":
        met = reached(achieved[:, 1:], goals[:, None], spec.goal_threshold)
    else:
        met = flags
        if not told[np.arange(count), lengths - 1].all():
            raise GoatError(
                f"{where.id} does not say whether an episode succeeded: its info has no "
                f"{' or '.join(FLAGS)} at the last step; use --success threshold"
            )
    return Taken(observations, achieved, actions, goals, lengths, np.asarray(met))


def _check_count(episodes: int) -> None:
    if episodes < 1:
        raise GoatError(f"the number of episodes must be at least 1, not {episodes}")


def _flagged(
    info: Mapping[str, Any], count: int, where: Environment
) -> tuple[np.ndarray, np.ndarray]:
    """Which environments say that they succeed, and which say whether."""
    flags, told = np.zeros((2, count), bool)
    for key in FLAGS:
        if key in info:
            fresh = np.asarray(info[f"_{key}"], bool) & ~told
            flags[fresh] = [_truth(value, key, where) for value in np.asarray(info[key])[fresh]]
            told |= fresh
    return flags, told


def _truth(value: Any, key: str, where: Environment) -> bool:
    """What an environment says, if that is true or false: to Python, NaN and any word are true."""
    found = np.asarray(value)
    if found.size != 1 or found.dtype.kind not in "biuf" or found.item() not in (0, 1):
        raise NotFinite(
            f"{key} in the info of {where.id} must be true or false, not {short(value)}, so that "
            "nothing was recorded; mend the environment"
        )
    return bool(found.item())


def _stretched(actions: np.ndarray, space: Any, bounds: ActionBounds | None) -> np.ndarray:
    """Actions in [-1, 1] on the scale of the agents' data, or else on the environment's."""
    if bounds is not None:
        return np.clip(bounds.restored(actions), space.low, space.high).astype(space.dtype)
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    bounded = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
    return np.clip((low + high) / 2 + (high - low) / 2 * actions, space.low, space.high).astype(
        space.dtype
    )
