"""Agents in an environment of the user's own: any of Gymnasium's that says what it achieves and
what it should.
"""

from __future__ import annotations

import importlib
import itertools
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import gymnasium
import jax
import numpy as np
import pyarrow as pa
from gymnasium.spaces import Box, Dict
from gymnasium.vector import VectorEnv

from goatrl.data.minari import KEYS
from goatrl.evaluation.episodes import SCHEMA
from goatrl.learn.parameters import stack
from goatrl.robots.family import OnProgress
from goatrl.training.offline import Members, act
from goatrl.types import ActionBounds, GoatError, Spec, TrainState, distance, reached

EPISODES = 100
FIRST_SEED = 1_000_000  # of the episodes: data tends to be collected with small numbers
SIDE_BY_SIDE = 32  # about how many environments are open at a time
NEAR = 1e-6  # bounds that differ by less are the same
LONGEST_PATH = 3  # numbers of a goal up to which paths are recorded


def check(
    name: str, spec: Spec, episodes: int = EPISODES, action_bounds: ActionBounds | None = None
) -> str | None:
    """Refuse an environment that agents of this spec cannot act in; otherwise say what becomes of
    actions, if they change.
    """
    _check_count(episodes)
    with _opened(name, spec, 1) as worlds:
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
                f"actions to {_short(space)}"
            )
        if (space.low == -1.0).all() and (space.high == 1.0).all():
            return None
        stretched = (
            "-1 is mapped to its lower bound and 1 to its upper bound; unless both are finite, "
            "actions are only clipped"
        )
        return f"agents act in [-1, 1], the environment in {_short(space)}: {stretched}"


def evaluate(
    members: Members,
    state: TrainState,
    spec: Spec,
    name: str,
    episodes: int = EPISODES,
    on_progress: OnProgress | None = None,
    action_bounds: ActionBounds | None = None,
) -> pa.Table:
    """One row per member and episode, as for tasks. All members are evaluated on the same
    episodes, whose seeds determine starts and goals.

    An episode has one goal, that of its first observation, and as many actions as the longest of
    the data, unless the environment ends it earlier. Success means that the goal achieved at the
    last step is within the goal threshold. The return is the number of steps within it. The
    environment's own reward is ignored.
    """
    _check_count(episodes)
    # Policies act where the environments are, on the processor.
    agents = jax.device_put(
        (stack([algorithm for algorithm, _ in members]), state), jax.devices("cpu")[0]
    )
    rounds = min(-(-episodes * len(members) // SIDE_BY_SIDE), episodes)
    side = -(-episodes // rounds)
    firsts = range(0, episodes, side)
    done = itertools.count(1)

    def policy(observations: np.ndarray, goals: np.ndarray) -> np.ndarray:
        if on_progress is not None:
            on_progress(next(done), len(firsts) * spec.horizon)
        actions = act(
            *agents, *(array.reshape(len(members), side, -1) for array in (observations, goals))
        )
        return np.asarray(actions).reshape(len(observations), -1)

    parts = []
    with _opened(name, spec, len(members) * side) as worlds:
        assert worlds.spec is not None
        task = worlds.spec.id
        for first in firsts:
            seeds = [FIRST_SEED + first + episode for _ in members for episode in range(side)]
            parts.append(
                [
                    array.reshape(len(members), side, *array.shape[1:])
                    for array in _rollouts(worlds, policy, seeds, spec, action_bounds)
                ]
            )
    paths, goals, lengths = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    rows: list[dict[str, Any]] = []
    for member, (_, seed) in enumerate(members):
        for episode in range(episodes):
            path, goal = (
                paths[member, episode, : lengths[member, episode] + 1],
                goals[member, episode],
            )
            met = reached(path[1:], goal, spec.goal_threshold)
            rows.append(
                {
                    "task": task,
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


def _rollouts(
    worlds: VectorEnv,
    policy: Callable[[np.ndarray, np.ndarray], np.ndarray],
    seeds: Sequence[int],
    spec: Spec,
    action_bounds: ActionBounds | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is achieved in an episode of each environment, (N, T+1, goal_dim), its goals and how
    many actions it took.

    An environment that ends early begins another episode, which is not looked at.
    """
    seen = _reset(worlds, seeds)
    goals = seen["desired_goal"]
    achieved = np.zeros((len(seeds), spec.horizon + 1, spec.goal_dim), np.float32)
    achieved[:, 0] = seen["achieved_goal"]
    lengths = np.full(len(seeds), spec.horizon)
    for step in range(1, spec.horizon + 1):
        actions = policy(seen["observation"], goals)
        actions = _stretched(actions, worlds.single_action_space, action_bounds)
        with _blamed("step"):
            seen, _, terminated, truncated, _ = worlds.step(actions)
        seen = _numbers(seen)
        achieved[:, step] = seen["achieved_goal"]
        lengths = np.where(terminated | truncated, np.minimum(lengths, step), lengths)
        if (lengths <= step).all():
            break
    return achieved, goals, lengths


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


@contextmanager
def _opened(name: str, spec: Spec, count: int) -> Iterator[VectorEnv]:
    """`count` copies of an environment, checked to fit agents of this spec."""
    worlds = _make(name, count)
    try:
        _check_spaces(worlds, name, spec)
        _check_seed(worlds, name, spec)
        yield worlds
    finally:
        worlds.close()


def _make(name: str, count: int) -> VectorEnv:
    module = name.rpartition(":")[0]
    if module:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            if not error.name or f"{module}.".startswith(f"{error.name}."):
                raise GoatError(
                    f"no module '{module}' in the current folder or among the installed packages"
                ) from None
            raise GoatError(f"module '{module}' cannot be imported: {_short(error)}") from error
        except Exception as error:
            raise GoatError(
                f"module '{module}' cannot be imported ({type(error).__name__}: {_short(error)})"
            ) from error
    try:
        # What the checker would find is checked here, in words for users of goatrl.
        return gymnasium.make_vec(name, count, vectorization_mode="sync", disable_env_checker=True)
    except gymnasium.error.UnregisteredEnv as error:
        hint = "" if module else "; if your own module registers it, write MODULE:ID"
        raise GoatError(
            f"unknown environment '{name}' ({_short(error).rstrip('.')}){hint}"
        ) from None
    except Exception as error:  # a constructor can fail in many ways
        raise GoatError(
            f"environment '{name}' cannot be created ({type(error).__name__}: {_short(error)})"
        ) from error


def _check_count(episodes: int) -> None:
    if episodes < 1:
        raise GoatError(f"the number of episodes must be at least 1, not {episodes}")


def _check_spaces(worlds: VectorEnv, name: str, spec: Spec) -> None:
    seen, actions = worlds.single_observation_space, worlds.single_action_space
    if not isinstance(seen, Dict) or not all(isinstance(seen.spaces.get(key), Box) for key in KEYS):
        raise GoatError(
            f"{name} has no goals: its observations are not a dictionary of the vectors "
            f"{', '.join(KEYS)}"
        )
    if not isinstance(actions, Box) or not np.issubdtype(actions.dtype, np.floating):
        raise GoatError(
            f"{name} does not fit: its actions are {_short(actions)}, but agents produce vectors "
            f"of length {spec.action_dim}"
        )
    shapes = {**{key: seen[key].shape for key in KEYS}, "action": actions.shape}
    sizes = (spec.observation_dim, spec.goal_dim, spec.goal_dim, spec.action_dim)
    for (what, shape), size in zip(shapes.items(), sizes, strict=True):
        if shape != (size,):
            raise GoatError(
                f"{name} does not fit: its {what} has shape {shape}, but the data has {(size,)}"
            )


def _check_seed(worlds: VectorEnv, name: str, spec: Spec) -> None:
    """The same seed must give the same start and goal, in every environment and each time."""
    resets = [_reset(worlds, [FIRST_SEED] * worlds.num_envs) for _ in range(2)]
    for key in ("achieved_goal", "desired_goal"):
        places = np.concatenate([seen[key] for seen in resets])
        if np.linalg.norm(places - places[0], axis=-1).max() > 0.1 * spec.goal_threshold:
            raise GoatError(
                f"{name} draws starts or goals that do not depend on its seed; draw them from "
                "self.np_random in reset"
            )


def _reset(worlds: VectorEnv, seeds: Sequence[int]) -> dict[str, np.ndarray]:
    with _blamed("reset"):
        return _numbers(worlds.reset(seed=list(seeds))[0])  # type: ignore[arg-type]  # one each, as sync ones take them


def _numbers(seen: Any) -> dict[str, np.ndarray]:
    return {key: np.asarray(seen[key], np.float32) for key in KEYS}


@contextmanager
def _blamed(what: str) -> Iterator[None]:
    """An environment's own fault, in one line."""
    try:
        yield
    except GoatError:
        raise
    except Exception as error:
        raise GoatError(
            f"the environment failed in {what} ({type(error).__name__}: {_short(error)}); add "
            "--debug to see where"
        ) from error


def _short(text: object) -> str:
    return textwrap.shorten(str(text), 200, placeholder="…")
