"""Environments of the user's own, opened and closed: what does not fit, fails or does not come back
is one line.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import signal
import textwrap
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.envs.registration import find_highest_version, get_env_id, parse_env_id
from gymnasium.spaces import Box, Dict
from gymnasium.vector import SyncVectorEnv, VectorEnv

from goatrl.data.minari import KEYS
from goatrl.types import GoatError, Spec, require_finite, unknown

FIRST_SEED = 1_000_000  # of the episodes: data tends to be collected with small numbers
TIMEOUT, LONGEST_TIMEOUT = 600.0, 1e6  # seconds
AGAIN = 1.0  # seconds after which a call that was interrupted in vain is interrupted once more

Success = Literal["threshold", "flag"]


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


@contextmanager
def opened(where: Environment, spec: Spec, count: int) -> Iterator[VectorEnv]:
    """Copies of an environment that are closed in the end."""
    with _closed(open_copies(where, spec, count), where) as worlds:
        yield worlds


@contextmanager
def some_opened(where: Environment, spec: Spec, most: int) -> Iterator[VectorEnv]:
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
            raise GoatError(f"module '{module}' cannot be imported: {short(error)}") from error
        except Exception as error:
            raise GoatError(
                f"module '{module}' cannot be imported ({type(error).__name__}: {short(error)})"
            ) from error
    try:
        # What the checker would find is checked here, in words for users of goatrl.
        return gymnasium.make_vec(
            name, count, vectorization_mode="sync", disable_env_checker=True, **arguments
        )
    except gymnasium.error.UnregisteredEnv as error:
        hint = "" if module else "; if your own module registers it, write MODULE:ID"
        raise GoatError(
            f"unknown environment '{name}' ({short(error).rstrip('.')}){hint}"
        ) from None
    except Exception as error:  # a constructor can fail in many ways
        raise NotCreated(
            f"environment '{name}' cannot be created ({type(error).__name__}: {short(error)})"
        ) from error


def _check_spaces(worlds: VectorEnv, name: str, spec: Spec) -> None:
    seen, actions = worlds.single_observation_space, worlds.single_action_space
    if not isinstance(seen, Dict) or not all(isinstance(seen.spaces.get(key), Box) for key in KEYS):
        raise GoatError(
            f"{name} has no goals: its observations are not a dictionary of the vectors "
            f"{', '.join(KEYS)}"
        )
    if not isinstance(actions, Box) or not np.issubdtype(actions.dtype, np.floating):
        raise GoatError(
            f"{name} does not fit: its actions are {short(actions)}, but agents produce vectors "
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
        seen = in_numbers(worlds.reset(seed=list(seeds))[0])  # type: ignore[arg-type]  # one each, as sync ones take them
        for key in KEYS:
            require_finite(seen[key], key, f"a reset of {where.id}")
        return seen


def in_numbers(seen: Any) -> dict[str, np.ndarray]:
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
            f"{where.id} failed in {what} ({type(error).__name__}: {short(error)}); add "
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


def short(text: object) -> str:
    return textwrap.shorten(str(text), 200, placeholder="…")
