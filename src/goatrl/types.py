"""The nouns of the package, when a goal is reached, and the one error type that users see.

Array layout of a dataset of N episodes with T actions each (PointReach and the robots: T = 49):

    step               0     1     2    ...   T-1    T
    observations[n]    o_0   o_1   o_2        o_T-1  o_T      (N, T+1, observation_dim)
    achieved[n]        φ_0   φ_1   φ_2        φ_T-1  φ_T      (N, T+1, goal_dim)
    actions[n]         a_0   a_1   a_2        a_T-1           (N, T,   action_dim)
    goals[n]           g (one desired goal an episode)        (N, goal_dim)

Action a_t leads from o_t to o_t+1, and its reward is paid on φ_t+1.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
from collections.abc import Iterable
from typing import Any, Protocol, TypeVar, dataclass_transform

import jax
import numpy as np

Class = TypeVar("Class")

# Nested dictionaries, tuples and dataclasses with arrays at the leaves: networks, optimiser states,
# weight statistics.
Pytree = Any
Metrics = dict[str, jax.Array]


class GoatError(Exception):
    """An error the user can fix. The message is one line and says what to do."""

    exit_code = 2  # bad usage


def unknown(kind: str, name: str, known: Iterable[str]) -> GoatError:
    """The error for a name that does not exist, with the nearest names that do."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
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


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where an observation holds places in the space of goals, by columns."""

    achieved: tuple[int, ...]  # the achieved goal, one column for each of its numbers
    positions: tuple[int, ...] = ()  # other places, such as the gripper's, one after the other


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
    """An offline dataset; the layout is drawn at the top of this module."""

    observations: jax.Array
    achieved: jax.Array
    actions: jax.Array
    goals: jax.Array

    @property
    def count(self) -> int:
        return int(self.actions.shape[0])

    @property
    def horizon(self) -> int:
        return int(self.actions.shape[1])

    @property
    def rows(self) -> Rows:
        return Rows(0, self.count)

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

    def checksum(self) -> str:
        """SHA-256 over shapes and bytes: the name of a dataset in every record."""
        digest = hashlib.sha256()
        for field in dataclasses.fields(self):
            if getattr(self, field.name) is None:
                continue  # a dataset without it keeps the name that it had before there was such
            array = np.ascontiguousarray(getattr(self, field.name), dtype=np.float32)
            digest.update(f"{field.name}{array.shape}".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()


def make_episodes(observations: Any, achieved: Any, actions: Any, goals: Any) -> Episodes:
    """Episodes from any arrays, as float32, after every check that can be made without knowing the
    task.
    """
    given = {"observations": observations, "achieved": achieved, "actions": actions, "goals": goals}
    arrays: dict[str, np.ndarray] = {}
    for name, value in given.items():
        try:
            array = np.asarray(value)
        except ValueError:
            raise GoatError(
                f"{name} must be a regular array; all episodes must have the same length"
            ) from None
        if array.dtype.kind not in "fiu":
            raise GoatError(f"{name} must contain numbers, not {array.dtype}")
        rank = 2 if name == "goals" else 3
        if array.ndim != rank:
            raise GoatError(f"{name} must have {rank} axes, not shape {array.shape}")
        if array.size == 0:
            raise GoatError(
                f"{name} is empty (shape {array.shape}); a dataset needs at least one episode "
                "with one action"
            )
        with np.errstate(over="ignore"):
            array = array.astype(np.float32)
        if not np.isfinite(array).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise GoatError(
                f"{name} contains a value that is not finite in float32, first at index {where}; "
                "clean the data first"
            )
        arrays[name] = array
    count, horizon = arrays["actions"].shape[:2]
    for name in ("observations", "achieved"):
        if arrays[name].shape[:2] != (count, horizon + 1):
            raise GoatError(
                f"{name} has shape {arrays[name].shape}, but {count} episodes with {horizon} "
                "actions need "
                f"({count}, {horizon + 1}, …): one more observation than actions"
            )
    if arrays["goals"].shape != (count, arrays["achieved"].shape[2]):
        raise GoatError(
            f"goals has shape {arrays['goals'].shape}, but {count} episodes with achieved goals of "
            f"{arrays['achieved'].shape[2]} numbers need ({count}, {arrays['achieved'].shape[2]})"
        )
    return Episodes(**arrays)  # type: ignore[arg-type]


@pytree
class Batch:
    """B transitions as a sampler draws them, one row each: (B, …).

    Values are learned for `goal`, the policy is trained towards `policy_goal`; most samplers draw
    one goal for both. `offset` is how many steps ahead `goal` (not `policy_goal`) was achieved, 0
    if it was not taken from later in the same episode. `mask` is 0 where the transition reaches the
    goal and 1 elsewhere: algorithms for which an episode ends at its goal multiply what they
    bootstrap by it.

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
