"""Agents in an environment of the user's own: any of Gymnasium's that says what it achieves and
what it should.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import signal
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any, Literal, NamedTuple

import gymnasium
import jax
import numpy as np
import pyarrow as pa
from gymnasium.envs.registration import find_highest_version, get_env_id, parse_env_id
from gymnasium.spaces import Box, Dict
from gymnasium.vector import SyncVectorEnv, VectorEnv

from goatrl.data.minari import KEYS
from goatrl.data.sizes import check_fits_memory
from goatrl.evaluation.episodes import SCHEMA
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
    unknown,
)

EPISODES = 100
FIRST_SEED = 1_000_000  # of the episodes: data tends to be collected with small numbers
SIDE_BY_SIDE = 32  # the most copies of an environment that are open at a time
ROWS = 32  # episodes that a policy sees at once, whether or not there are so many
NEAR = 1e-6  # bounds that differ by less are the same
TIMEOUT, LONGEST_TIMEOUT = 600.0, 1e6  # seconds
AGAIN = 1.0  # seconds after which a call that was interrupted in vain is interrupted once more
LONGEST_PATH = 3  # numbers of a goal up to which paths are recorded
FLAGS = ("success", "is_success")  # in an environment's info, the first that is there

Success = Literal["threshold", "flag"]
Policy = Callable[[np.ndarray, np.ndarray], np.ndarray]  # observations, goals → actions


@dataclasses.dataclass(frozen=True)
class Environment:
    """An environment, and what an episode in it is."""

    id: str  # MODULE:ID imports the module first
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of its constructor
    horizon: int | None = None  # the most actions of an episode; None: as many as in the data
    # the goal threshold, or what the environment itself says
    success: Success = "threshold"
    timeout: float = TIMEOUT  # seconds that a reset or a step of all its copies may take

    def __post_init__(self) -> None:
        if not 0.0 < self.timeout <= LONGEST_TIMEOUT:
            raise GoatError(
                f"the timeout must be above 0 and at most {LONGEST_TIMEOUT:g} seconds, not "
                f"{self.timeout:g}"
            )
        if self.horizon is not None and self.horizon < 1:
            raise GoatError(f"the horizon must be at least 1, not {self.horizon}")
        if self.success not in ("threshold", "flag"):
            raise unknown("rule of success", self.success, ("threshold", "flag"))

    @property
    def task(self) -> str:
        """As what its episodes are recorded, once its module is imported: with its version (the
        latest, if the name leaves it out) and its settings.
        """
        namespace, name, version = parse_env_id(self.id.rpartition(":")[2])
        if version is None:
            version = find_highest_version(namespace, name)
        return f"{get_env_id(namespace, name, version)}{self.settings}"

    @property
    def settings(self) -> str:
        """All that is not at its default, as part of a name."""
        chosen = {
            **self.arguments,
            **({} if self.horizon is None else {"horizon": self.horizon}),
            **({} if self.success == "threshold" else {"success": self.success}),
        }
        texts = [
            f"{name}={value if isinstance(value, str) else json.dumps(value, default=str)}"
            for name, value in chosen.items()
        ]
        return f" ({', '.join(texts)})" if texts else ""

    def steps(self, spec: Spec) -> int:
        return spec.horizon if self.horizon is None else self.horizon


class NotCreated(GoatError):
    """A constructor has failed."""


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
                f"actions to {_short(space)}"
            )
        if (space.low == -1.0).all() and (space.high == 1.0).all():
            return None
        stretched = (
            "-1 is mapped to its lower bound and 1 to its upper bound; unless both are finite, "
            "actions are only clipped"
        )
        return (
            f"agents act in [-1, 1], the environment in {_short(space)}: {stretched}. If the "
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
    with _some_opened(where, spec, min(SIDE_BY_SIDE, members * len(seeds))) as worlds:
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
            seen = _numbers(found)
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
            f"{key} in the info of {where.id} must be true or false, not {_short(value)}, so that "
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


@contextmanager
def opened(where: Environment, spec: Spec, count: int) -> Iterator[VectorEnv]:
    """Copies of an environment that are closed in the end."""
    with _closed(open_copies(where, spec, count), where) as worlds:
        yield worlds


@contextmanager
def _some_opened(where: Environment, spec: Spec, most: int) -> Iterator[VectorEnv]:
    """The same, but a single one if there cannot be several at a time."""
    worlds = None
    with suppress(NotCreated):
        worlds = open_copies(where, spec, most)
    with _closed(worlds or open_copies(where, spec, 1), where) as found:
        yield found


@contextmanager
def _closed(worlds: VectorEnv, where: Environment) -> Iterator[VectorEnv]:
    try:
        yield worlds
    except BaseException:
        _give_up(worlds, where)
        raise
    with blamed("close", where):
        worlds.close()


def _give_up(worlds: VectorEnv, where: Environment) -> None:
    """Close after an error, which says more than that closing fails as well."""
    with suppress(GoatError), blamed("close", where):
        worlds.close()


def open_copies(where: Environment, spec: Spec, count: int) -> VectorEnv:
    """`count` copies of an environment, checked to fit agents of this spec."""
    with _limited("its constructor", where):
        worlds = _make(where.id, where.arguments, count)
    try:
        _check_spaces(worlds, where.id, spec)
        _check_seed(worlds, where, spec)
    except BaseException:
        _give_up(worlds, where)
        raise
    return worlds


def time_limit(worlds: VectorEnv) -> int | None:
    """The most actions of an episode, if the environment has such a limit."""
    assert isinstance(worlds, SyncVectorEnv)
    spec = worlds.envs[0].spec
    return None if spec is None else spec.max_episode_steps


def _make(name: str, arguments: Mapping[str, Any], count: int) -> VectorEnv:
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
        return gymnasium.make_vec(
            name, count, vectorization_mode="sync", disable_env_checker=True, **arguments
        )
    except gymnasium.error.UnregisteredEnv as error:
        hint = "" if module else "; if your own module registers it, write MODULE:ID"
        raise GoatError(
            f"unknown environment '{name}' ({_short(error).rstrip('.')}){hint}"
        ) from None
    except Exception as error:  # a constructor can fail in many ways
        raise NotCreated(
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


def _check_seed(worlds: VectorEnv, where: Environment, spec: Spec) -> None:
    """The same seed must give the same start and goal, in every environment and each time."""
    resets = [first_observations(worlds, [FIRST_SEED] * worlds.num_envs, where) for _ in range(2)]
    for key in ("achieved_goal", "desired_goal"):
        places = np.concatenate([seen[key] for seen in resets])
        if np.linalg.norm(places - places[0], axis=-1).max() > 0.1 * spec.goal_threshold:
            raise GoatError(
                f"{where.id} draws starts or goals that do not depend on its seed; draw them from "
                "self.np_random in reset"
            )


def first_observations(
    worlds: VectorEnv, seeds: Sequence[int], where: Environment
) -> dict[str, np.ndarray]:
    """What all copies show after a reset, each with its own seed: key → (N, ·)."""
    with blamed("reset", where):
        seen = _numbers(worlds.reset(seed=list(seeds))[0])  # type: ignore[arg-type]  # one each, as sync ones take them
        for key in KEYS:
            require_finite(seen[key], key, f"a reset of {where.id}")
        return seen


def _numbers(seen: Any) -> dict[str, np.ndarray]:
    with np.errstate(over="ignore"):  # what is too large is infinite, and refused as such
        return {key: np.asarray(seen[key], np.float32) for key in KEYS}


@contextmanager
def blamed(what: str, where: Environment) -> Iterator[None]:
    """An environment's own fault, in one line; that it does not come back is one, too."""
    try:
        with _limited(what, where):
            yield
    except GoatError:
        raise
    except Exception as error:
        raise GoatError(
            f"{where.id} failed in {what} ({type(error).__name__}: {_short(error)}); add "
            "--debug to see where"
        ) from error


class _Late(BaseException):
    """Raised inside an environment's code, which may catch every Exception."""


class TimedOut(GoatError):
    """An environment that does not come back."""

    exit_code = 1


@contextmanager
def _limited(what: str, where: Environment) -> Iterator[None]:
    """Interrupt a call that takes too long, by a signal. Only the main thread can be."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    inside = True

    def interrupt(number: int, frame: FrameType | None) -> None:
        if inside:
            raise _Late

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, where.timeout, AGAIN)
    try:
        try:
            yield
        finally:
            inside = False
    except _Late:
        raise TimedOut(
            f"{where.id} did not come back from {what} within {where.timeout:g} s; mend it, or "
            "allow more with --timeout"
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)


def _short(text: object) -> str:
    return textwrap.shorten(str(text), 200, placeholder="…")
