"""Symmetries of a problem: maps of observation, goal and action under which its dynamics are the
same. Training sees its transitions through them, inside jit; the dataset is left as it is.

A symmetry is declared as data, in TOML or JSON::

    [[reflection]]                      # x becomes (sum − x)
    observation = { 1 = 1.5, 7 = 0.0 }  # column = sum
    goal = { 1 = 1.5 }
    action = { 1 = 0.0 }
    swap = [[9, 10]]                    # columns of the observation that change places

    [[translation]]                     # x becomes x + d, the same d for all columns
    observation = [0, 3]
    goal = [0]
    by = [-0.1, 0.1]                    # the range from which d is drawn
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from goatrl.types import Batch, GoatError, Spec

SPACES = ("observation", "goal", "action")


@dataclasses.dataclass(frozen=True)
class Map:
    """A map that is applied to every second row (a reflection), or with a number that is drawn for
    each row (a translation). `x → sign · x[order] + offset + d · direction`, for each space.
    """

    kind: str
    sign: Mapping[str, np.ndarray]
    offset: Mapping[str, np.ndarray]
    direction: Mapping[str, np.ndarray]
    order: np.ndarray  # of the observation's columns
    by: tuple[float, float] = (0.0, 0.0)

    def apply(self, space: str, x: Any, amount: Any) -> Any:
        """All rows, each by its own amount: (B, …, ·), (B, 1) → (B, …, ·)."""
        ordered = x[..., self.order] if space == "observation" else x
        numpy = x.__array_namespace__()
        sign, offset, direction = (
            numpy.broadcast_to(numpy.asarray(each[space], dtype=x.dtype), x.shape)
            for each in (self.sign, self.offset, self.direction)
        )
        return sign * ordered + offset + _along(amount, x) * direction


def _along(rows: Any, x: Any) -> Any:
    """One number a row, (B, 1), with as many axes as x."""
    return rows.reshape(-1, *(1,) * (x.ndim - 1))


def read(text: str, spec: Spec) -> tuple[Map, ...]:
    """The maps that a declaration in JSON names, for a problem of these sizes."""
    if not text:
        return ()
    sizes = dict(zip(SPACES, (spec.observation_dim, spec.goal_dim, spec.action_dim), strict=True))
    try:
        return _maps_of(json.loads(text), sizes)
    except GoatError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise GoatError(f"a symmetry is not as docs/inputs.md shows it: {error}") from None


def _maps_of(declared: Any, sizes: Mapping[str, int]) -> tuple[Map, ...]:
    kinds = {"reflection": _reflection, "translation": _translation}
    if not isinstance(declared, dict) or not declared or declared.keys() - kinds.keys():
        names = ", ".join(declared) if isinstance(declared, dict) else str(declared)
        raise GoatError(
            f"a symmetry has [[reflection]] and [[translation]], not {names or 'nothing'}"
        )
    for kind, maps in declared.items():
        if not isinstance(maps, list):
            raise GoatError(f"a symmetry has several {kind}s: write [[{kind}]], not [{kind}]")
    return tuple(
        make(each, sizes) for kind, make in kinds.items() for each in declared.get(kind, ())
    )


def _reflection(about: Mapping[str, Any], sizes: Mapping[str, int]) -> Map:
    _check_names("reflection", about, {*SPACES, "swap"})
    sign = {space: np.ones(size) for space, size in sizes.items()}
    offset = {space: np.zeros(size) for space, size in sizes.items()}
    for space in SPACES:
        columns = about.get(space, {})
        if not isinstance(columns, dict):
            raise GoatError(f"a reflection has {space} = {{ column = sum }}, not {columns}")
        for column, total in columns.items():
            place = _column(column, space, sizes)
            sign[space][place], offset[space][place] = -1.0, float(total)
    order, pairs = np.arange(sizes["observation"]), about.get("swap", [])
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise GoatError(f"a reflection has swap = [[column, column]], not {pairs}")
    swapped = [_column(each, "observation", sizes) for pair in pairs for each in pair]
    if len(set(swapped)) < len(swapped):
        raise GoatError(f"a reflection swaps a column once, not as in {pairs}")
    order[swapped] = [place for pair in pairs for place in map(int, reversed(pair))]
    reflected = Map("reflection", sign, offset, _nothing(sizes), order)
    # Seen twice through a mirror, all is as it was.
    twice = sign["observation"] * offset["observation"][order] + offset["observation"]
    if np.abs(twice).max() > 1e-9 or (sign["observation"][order] != sign["observation"]).any():
        raise GoatError("a reflection that is applied twice must change nothing; check its swaps")
    return reflected


def _translation(about: Mapping[str, Any], sizes: Mapping[str, int]) -> Map:
    _check_names("translation", about, {"observation", "goal", "by"})
    by = about.get("by")
    if not isinstance(by, list) or len(by) != 2 or not by[0] < by[1]:
        raise GoatError(f"a translation needs by = [low, high], not {by}")
    low, high = by
    direction = _nothing(sizes)
    for space in ("observation", "goal"):
        for column in about.get(space, ()):
            direction[space][_column(column, space, sizes)] = 1.0
    ones = {space: np.ones(size) for space, size in sizes.items()}
    return Map(
        "translation",
        ones,
        _nothing(sizes),
        direction,
        np.arange(sizes["observation"]),
        (float(low), float(high)),
    )


def _nothing(sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    return {space: np.zeros(size) for space, size in sizes.items()}


def _check_names(kind: str, about: Mapping[str, Any], known: set[str]) -> None:
    if wrong := sorted(about.keys() - known):
        raise GoatError(f"a {kind} has {', '.join(sorted(known))}, not {', '.join(wrong)}")


def _column(column: Any, space: str, sizes: Mapping[str, int]) -> int:
    place = int(column)
    if not 0 <= place < sizes[space]:
        raise GoatError(
            f"a symmetry names column {place} of the {space}, which has {sizes[space]} columns "
            "(from 0)"
        )
    return place


@cache
def _maps(text: str, sizes: tuple[int, int, int]) -> tuple[Map, ...]:
    return read(text, Spec(*sizes, horizon=1, goal_threshold=1.0))


def augment(text: str, key: jax.Array, batch: Batch) -> Batch:
    """A batch, each row of which is seen through maps that are drawn for it."""
    sizes = tuple(each.shape[-1] for each in (batch.observation, batch.goal, batch.action))
    for place, each in enumerate(_maps(text, sizes)):
        batch = transform(
            each, draw(each, jax.random.fold_in(key, place), len(batch.reward)), batch
        )
    return batch


@dataclasses.dataclass(frozen=True)
class Drawn:
    """Whether a map is applied to a row, and by how much."""

    applied: Any  # (B, 1)
    amount: Any  # (B, 1)


def draw(chosen: Map, key: jax.Array, rows: int) -> Drawn:
    if chosen.kind == "reflection":
        return Drawn(jax.random.bernoulli(key, 0.5, (rows, 1)), jnp.zeros((rows, 1)))
    low, high = chosen.by
    amount = jax.random.uniform(key, (rows, 1), minval=low, maxval=high)
    return Drawn(jnp.ones((rows, 1), bool), amount)


def transform(chosen: Map, drawn: Drawn, batch: Batch) -> Batch:
    """All of a transition by the same map: the reward is as it was."""

    def mapped(space: str) -> Callable[[jax.Array], jax.Array]:
        return lambda x: jnp.where(
            _along(drawn.applied, x), chosen.apply(space, x, drawn.amount), x
        )

    observation, goal = mapped("observation"), mapped("goal")
    return dataclasses.replace(
        batch,
        observation=observation(batch.observation),
        next_observation=observation(batch.next_observation),
        initial_observation=observation(batch.initial_observation),
        achieved=goal(batch.achieved),
        next_achieved=goal(batch.next_achieved),
        goal=goal(batch.goal),
        policy_goal=goal(batch.policy_goal),
        action=mapped("action")(batch.action),
        extra_observations=jax.tree.map(observation, batch.extra_observations),
        extra_goals=jax.tree.map(goal, batch.extra_goals),
    )


def of(algorithm: Any, spec: Spec) -> tuple[Map, ...]:
    """Those that an algorithm declares."""
    return read(getattr(algorithm, "symmetry", ""), spec)


Moments = tuple[np.ndarray, np.ndarray]  # mean and standard deviation


def mixed(chosen: Map, space: str, moments: Moments) -> Moments:
    """Of what is seen through a map as often as training sees it so."""
    mean, std = moments
    if chosen.kind == "translation":
        low, high = chosen.by
        reach = chosen.direction[space] * (high - low)
        moved = mean + chosen.direction[space] * (low + high) / 2
        return moved, np.sqrt(std**2 + reach**2 / 12)
    order = chosen.order if space == "observation" else slice(None)
    image = chosen.sign[space] * mean[..., order] + chosen.offset[space]
    middle = (mean + image) / 2
    square = (mean**2 + image**2 + std**2 + std[..., order] ** 2) / 2
    return middle, np.sqrt(np.maximum(square - middle**2, 0.0))
