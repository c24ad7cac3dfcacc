"""The nouns of the package, when a goal is reached, and the one error type that users see.

Array layout of N episodes with T actions each and one goal each (PointReach and the robots:
T = 49):

    step               0     1     2    ...   T-1    T
    observations[n]    o_0   o_1   o_2        o_T-1  o_T      (N, T+1, observation_dim)
    achieved[n]        φ_0   φ_1   φ_2        φ_T-1  φ_T      (N, T+1, goal_dim)
    actions[n]         a_0   a_1   a_2        a_T-1           (N, T,   action_dim)
    goals[n]           g (one desired goal an episode)        (N, goal_dim)

Action a_t leads from o_t to o_t+1, and its reward is paid on φ_t+1.

Episodes of other lengths, or with goals that change, lie one behind the other: S rows for N
episodes, one for every step. Here one of two actions, then one of one:

    row                0     1     2     3     4
    observations       o_0   o_1   o_2   o_0   o_1      (S, observation_dim)
    achieved           φ_0   φ_1   φ_2   φ_0   φ_1      (S, goal_dim)
    actions            a_0   a_1   0     a_0   0        (S, action_dim)
    goals              g_0   g_1   g_1   g_0   g_0      (S, goal_dim), or (N, goal_dim)
    lengths            2                 1              (N,)

`Episodes.at`, `length`, `desired`, `draw` and `draw_place` are the same for both, inside jit too.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import math
from collections.abc import Iterable
from typing import Any, Protocol, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

Class = TypeVar("Class")

# Nested dictionaries, tuples and dataclasses with arrays at the leaves: networks, optimiser states,
# weight statistics.
Pytree = Any
Metrics = dict[str, jax.Array]


class GoatError(Exception):
    """An error the user can fix. The message is one line and says what to do."""

    exit_code = 2  # bad usage


def require_finite(numbers: np.ndarray, what: str, where: str) -> None:
    """Refuse numbers that are none: an agent or a world that is broken has not failed, and nothing
    may be recorded of it.
    """
    if not np.isfinite(numbers).all():
        raise NotFinite(
            f"{what} is not finite ({where}), so that nothing was recorded; check the agent's "
            "training and the environment"
        )


class NotFinite(GoatError):
    """An evaluation that has no result."""

    exit_code = 1


def unknown(kind: str, name: str, known: Iterable[str]) -> GoatError:
    """The error for a name that does not exist, with the nearest names that do."""
    names = [f"'{each}'" if " " in each else each for each in sorted(known)]
    parts = [each for each in names if name and each.endswith(f".{name}")]
    begun = [each for each in names if name and each.strip("'").startswith(name)]
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    near = list(dict.fromkeys((*parts, *begun, *close)))[:3]
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"
    return GoatError(f"unknown {kind} '{name}'; {hint}")


def static(*, default: Any) -> Any:
    """A dataclass field that shapes the program (a size, a choice) instead of being a
    number in it.
    """
    return dataclasses.field(default=default, metadata={"static": True})


@dataclass_transform(frozen_default=True, field_specifiers=(static, dataclasses.field))
def pytree(cls: type[Class]) -> type[Class]:
    """A frozen dataclass that JAX can trace: plain fields are leaves, `static` fields are compiled
    in.
    """
    frozen = dataclasses.dataclass(frozen=True)(cls)
    fields = dataclasses.fields(frozen)  # type: ignore[arg-type]
    fixed = [field.name for field in fields if field.metadata.get("static")]
    names = [field.name for field in fields if field.name not in fixed]
    keys = [jax.tree_util.GetAttrKey(name) for name in names]

    # `register_dataclass` takes classes whose fields have the same names for one another, now and
    # then, and runs the program of one with the other (JAX 0.10.2; tests/test_types.py). Here the
    # class itself is part of what is compared.
    def flatten(part: Class) -> tuple[list[Any], tuple[Any, ...]]:
        choices = (getattr(part, name) for name in fixed)
        return [getattr(part, name) for name in names], (frozen, *choices)

    def flatten_with_keys(part: Class) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
        children, about = flatten(part)
        return list(zip(keys, children, strict=True)), about

    def unflatten(about: tuple[Any, ...], children: Any) -> Class:
        given = zip((*names, *fixed), (*children, *about[1:]), strict=True)
        return frozen(**dict(given))

    jax.tree_util.register_pytree_with_keys(frozen, flatten_with_keys, unflatten, flatten)
    return frozen


@dataclasses.dataclass(frozen=True)
class Spec:
    """All that a learner may know about a problem. It comes with the dataset and contains no task
    name.
    """

    observation_dim: int
    goal_dim: int
    action_dim: int
    horizon: int
    goal_threshold: float

    def __post_init__(self) -> None:
        if min(self.observation_dim, self.goal_dim, self.action_dim, self.horizon) < 1:
            raise ValueError("dimensions and horizon must be at least 1")
        if not (math.isfinite(self.goal_threshold) and self.goal_threshold > 0):
            raise ValueError("the goal threshold must be a positive number")


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where an observation holds places in the space of goals, by columns."""

    achieved: tuple[int, ...]  # the achieved goal, one column for each of its numbers
    positions: tuple[int, ...] = ()  # other places, such as the gripper's, one after the other
    # which numbers of a goal are heights that matter; None: nobody has said
    vertical: tuple[int, ...] | None = None


@dataclasses.dataclass(frozen=True)
class ActionBounds:
    """What −1 and 1 stand for in the data's own actions, by dimension."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    @classmethod
    def of(cls, low: Any, high: Any) -> ActionBounds:
        """These bounds, after checks."""
        ends = [np.asarray(each, np.float64) for each in (low, high)]
        if any(each.ndim != 1 or not np.isfinite(each).all() for each in ends):
            raise GoatError("action bounds must be finite, one number for each dimension")
        if ends[0].shape != ends[1].shape or (ends[0] >= ends[1]).any():
            raise GoatError("every lower action bound must be below its upper one")
        return cls(*(tuple(each.tolist()) for each in ends))

    @classmethod
    def native_of(cls, size: int) -> ActionBounds:
        """−1 and 1, as agents act."""
        return cls((-1.0,) * size, (1.0,) * size)

    def __str__(self) -> str:
        """Each different range once: "[-0.3, 0.3], [0, 1]"."""
        ends = zip(self.low, self.high, strict=True)
        return ", ".join(dict.fromkeys(f"[{low:g}, {high:g}]" for low, high in ends))

    @property
    def native(self) -> bool:
        """Whether they are −1 and 1, as agents act."""
        return set(self.low) == {-1.0} and set(self.high) == {1.0}

    def scaled(self, actions: Any) -> np.ndarray:
        """The data's actions as agents act: in [−1, 1]."""
        low, high = np.array(self.low), np.array(self.high)
        return np.asarray((2.0 * (actions - low) / (high - low) - 1.0), np.float32)

    def restored(self, actions: Any) -> np.ndarray:
        """What agents do in the data's own units."""
        low, high = np.array(self.low), np.array(self.high)
        return np.asarray(low + (high - low) * (actions + 1.0) / 2.0, np.float32)


# One definition for NumPy and for JAX arrays. Numbers stay in the precision they come in, so that
# rewards within a compiled program, recorded episodes and exported datasets agree.


def distance(achieved: Any, goal: Any) -> Any:
    """‖φ(s) − g‖: (…, goal_dim) → (…)."""
    difference = achieved - goal
    numpy = difference.__array_namespace__()  # NumPy's or JAX's
    return numpy.sqrt(numpy.sum(difference**2, axis=-1))


def reached(achieved: Any, goal: Any, threshold: float) -> Any:
    """Whether ‖φ(s) − g‖ ≤ δ: (…, goal_dim) → (…)."""
    return distance(achieved, goal) <= threshold


def check_goal_threshold(threshold: float) -> None:
    if not (math.isfinite(threshold) and threshold > 0):
        raise GoatError(f"the goal threshold must be a positive number, not {threshold:g}")


@dataclasses.dataclass(frozen=True)
class Settings:
    """The numbers that the paper sets per task group; the defaults are those of most groups."""

    updates: int = 40_000
    batch_size: int = 512
    target_period: int = 20
    polyak: float = 0.95
    relabel: float = 1.0
    alpha_growth: float = 0.01
    alpha_max: float = 80.0
    released_alpha_max: float = (
        80.0  # in the released configuration, which has other exceptions than the paper
    )
    w: float = 2.0
    w_tau: float = 2.0
    tau: float = 0.3


@pytree
class Rows:
    """The episodes that may be drawn: `count` of them, from `first` on."""

    first: Any
    count: Any

    def draw(self, key: jax.Array, size: int) -> jax.Array:
        """Episodes drawn uniformly: (size,)."""
        return self.first + jax.random.randint(key, (size,), 0, self.count)


@pytree
class Episodes:
    """An offline dataset; both layouts are drawn at the top of this module."""

    observations: jax.Array
    achieved: jax.Array
    actions: jax.Array
    goals: jax.Array
    lengths: jax.Array | None = None  # how many actions each episode has, where they lie flat
    terminated: jax.Array | None = None  # (N,): which episodes their environment ended, if any

    @property
    def count(self) -> int:
        return int((self.actions if self.lengths is None else self.lengths).shape[0])

    @property
    def horizon(self) -> int:
        """The number of actions of the longest episode."""
        return int(self.actions.shape[1]) if self.lengths is None else int(self.lengths.max())

    @property
    def rows(self) -> Rows:
        return Rows(0, self.count)

    def at(self, episode: Any, step: Any) -> Any:
        """Where steps of episodes lie: an index of observations, achieved and actions."""
        return (episode, step) if self.lengths is None else self._bounds()[episode] + step

    def length(self, episode: Any) -> Any:
        """The number of actions of episodes, which is also their last step."""
        return self.actions.shape[1] if self.lengths is None else self.lengths[episode]

    def desired(self, episode: Any, step: Any) -> Any:
        """The goals that episodes were after at these steps: (…, goal_dim)."""
        return self.goals[episode if len(self.goals) == self.count else self.at(episode, step)]

    def draw(
        self, which: jax.Array, when: jax.Array, size: int, rows: Rows
    ) -> tuple[jax.Array, jax.Array]:
        """Transitions drawn uniformly by two keys: their episodes and their steps, (size,) each."""
        if self.lengths is None:
            return rows.draw(which, size), jax.random.randint(when, (size,), 0, self.horizon)
        bounds = self._bounds()
        before = bounds - jnp.arange(len(bounds))  # transitions of earlier episodes
        first, end = before[rows.first], before[rows.first + rows.count]
        number = jax.random.randint(which, (size,), first, end)
        after = jnp.searchsorted(before, number, side="right", method="scan_unrolled")
        return after - 1, number - before[after - 1]

    def draw_place(self, which: jax.Array, when: jax.Array, size: int, rows: Rows) -> Any:
        """Steps of any episode drawn uniformly, its last among them: an index like that of `at`."""
        if self.lengths is None:
            return rows.draw(which, size), jax.random.randint(when, (size,), 0, self.horizon + 1)
        bounds = self._bounds()
        first, end = bounds[rows.first], bounds[rows.first + rows.count]
        return jax.random.randint(which, (size,), first, end)

    def steps(self, chosen: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """All transitions of all episodes or of those chosen, in order: their episodes and steps.
        For the host.
        """
        episodes = np.arange(self.count) if chosen is None else np.asarray(chosen)
        lengths = np.broadcast_to(np.asarray(self.length(episodes)), episodes.shape)
        first = np.repeat(np.cumsum(lengths) - lengths, lengths)
        return np.repeat(episodes, lengths), np.arange(lengths.sum()) - first

    def paths(self) -> list[np.ndarray]:
        """What each episode achieves, step by step: N arrays (T+1, goal_dim). For the host."""
        achieved = np.asarray(self.achieved)
        return list(achieved) if self.lengths is None else np.split(achieved, self._bounds()[1:-1])

    def only(self, chosen: np.ndarray) -> Episodes:
        """Some episodes, by their numbers or a mask, in order. For the host."""
        kept = np.arange(self.count)[chosen]
        if not len(kept):
            raise GoatError("no episode of the dataset is left; choose another part of it")
        rows = kept
        if self.lengths is not None:
            bounds = self._bounds()
            rows = np.concatenate([np.arange(bounds[each], bounds[each + 1]) for each in kept])
        by_episode = {"lengths", "terminated"}
        if len(self.goals) == self.count:
            by_episode.add("goals")
        arrays = self.arrays().items()
        return Episodes(**{n: each[kept if n in by_episode else rows] for n, each in arrays})

    def _bounds(self) -> Any:
        """The first row of every episode in the flat layout, and behind the last: (N + 1,)."""
        assert self.lengths is not None
        numpy = self.lengths.__array_namespace__()
        ends = numpy.cumsum(self.lengths + 1)
        return numpy.concatenate([numpy.zeros(1, ends.dtype), ends])

    def spec(self, goal_threshold: float) -> Spec:
        return Spec(
            observation_dim=int(self.observations.shape[-1]),
            goal_dim=int(self.goals.shape[-1]),
            action_dim=int(self.actions.shape[-1]),
            horizon=self.horizon,
            goal_threshold=goal_threshold,
        )

    def layout(self) -> Layout | None:
        """Which columns of an observation are the achieved goal, if all of it is in there."""
        seen, goals = (np.asarray(each) for each in (self.observations, self.achieved))
        columns: list[int] = []
        for goal in np.moveaxis(goals, -1, 0):
            free = (c for c in range(seen.shape[-1]) if c not in columns)
            column = next((c for c in free if np.array_equal(seen[..., c], goal)), None)
            if column is None:
                return None
            columns.append(column)
        return Layout(tuple(columns))

    def arrays(self) -> dict[str, np.ndarray]:
        """What there is of it, by name."""
        found = ((each.name, getattr(self, each.name)) for each in dataclasses.fields(self))
        return {name: np.asarray(value) for name, value in found if value is not None}

    def checksum(self) -> str:
        """SHA-256 over shapes and bytes: the name of a dataset in every record."""
        digest = hashlib.sha256()
        for name, value in self.arrays().items():
            array = np.ascontiguousarray(value, dtype=np.float32)
            digest.update(f"{name}{array.shape}".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()


@pytree
class Batch:
    """B transitions as a sampler draws them, one row each: (B, …).

    Values are learned for `goal`, the policy is trained towards `policy_goal`; most samplers draw
    one goal for both. `offset` is how many steps ahead `goal` (not `policy_goal`) was achieved, 0
    if it was not taken from later in the same episode. `mask` is 0 where the transition reaches the
    goal and 1 elsewhere: algorithms for which an episode ends at its goal multiply what they
    bootstrap by it. `ended` is 1 where the environment ended the episode short of its own goal, so
    that no reward follows; None if the data has no such end. `imitated` is 0 where the goal is for
    values alone; None if there are no such rows.

    A sampler that draws more puts it into one of the three dictionaries: observations and goals are
    normalised like those above, `extras` are left as they are.
    """

    observation: jax.Array
    action: jax.Array
    next_observation: jax.Array
    initial_observation: jax.Array
    achieved: jax.Array
    next_achieved: jax.Array
    goal: jax.Array
    policy_goal: jax.Array
    reward: jax.Array
    mask: jax.Array
    offset: jax.Array
    ended: jax.Array | None = None
    imitated: jax.Array | None = None
    extra_observations: dict[str, jax.Array] = dataclasses.field(default_factory=dict)
    extra_goals: dict[str, jax.Array] = dataclasses.field(default_factory=dict)
    extras: dict[str, jax.Array] = dataclasses.field(default_factory=dict)


@pytree
class TrainState:
    """Everything that changes while training, for one seed; with a leading axis, for many."""

    step: jax.Array
    params: Pytree
    target: Pytree
    optimizer: Pytree
    weight_state: Pytree  # running statistics and small networks of an imitation's weights
    normalizer: Pytree  # set by the training loop, which applies it


class Sampler(Protocol):
    """Draws what an algorithm learns from, inside jit."""

    def sample(
        self,
        key: jax.Array,
        episodes: Episodes,
        size: int,
        threshold: float,
        rows: Rows,
    ) -> Batch:
        """`size` transitions with their goals; a goal within `threshold` counts as reached.

        Only the episodes of `rows` may be drawn: others belong to other agents that train beside
        this one, or to a part of a buffer that is not filled yet.
        """


class Algorithm(Protocol):
    """The contract. All methods are pure. The object is a pytree whose float leaves may carry a
    sweep axis.

    The training loop samples, normalises and calls: an algorithm sees normalised inputs only, in
    `update` as in `act`.
    """

    @property
    def sampler(self) -> Sampler: ...

    @property
    def target_period(self) -> int:
        """The training loop calls `update_target` after every so many updates."""

    def init(self, key: jax.Array, spec: Spec) -> TrainState: ...

    def update(
        self, state: TrainState, batch: Batch, key: jax.Array
    ) -> tuple[TrainState, Metrics]: ...

    def update_target(self, state: TrainState) -> TrainState:
        """Move the target networks towards the online ones."""

    def act(self, state: TrainState, observation: jax.Array, goal: jax.Array) -> jax.Array:
        """Actions in [-1, 1]: (B, observation_dim), (B, goal_dim) → (B, action_dim)."""
