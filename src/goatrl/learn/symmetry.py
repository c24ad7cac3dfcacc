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

    [[rotation]]                        # pairs (x, y) turn by an angle, counterclockwise
    observation = { places = [[0, 1], [3, 4]], vectors = [[6, 7]], angles = [5] }
    goal = { places = [[0, 1]] }
    action = { vectors = [[0, 1]] }
    around = [1.0, 0.7]                 # places turn around this one
    by = [-0.3, 0.3]                    # the range from which the angle is drawn, in radians
"""

from __future__ import annotations

import dataclasses
import json
import math
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
    each row (a translation, a rotation). `x → sign · x[order] + offset + d · direction`, for each
    space.
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

    def otherwise(self, space: str, column: int) -> Map:
        """With the other sign of one column."""
        sign, offset = self.sign[space].copy(), self.offset[space].copy()
        sign[column], offset[column] = -sign[column], 0.0
        return dataclasses.replace(
            self, sign={**self.sign, space: sign}, offset={**self.offset, space: offset}
        )


@dataclasses.dataclass(frozen=True)
class Rotation(Map):
    """A turn by an angle d: `x → offset + cos d · y + sin d · turn · y[partner]`, y = x − offset,
    in columns that turn, and `x + d · direction` in the others.
    """

    partner: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    turn: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)  # −1 of x, 1 of y
    places: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, int))  # observed

    def apply(self, space: str, x: Any, amount: Any) -> Any:
        numpy = x.__array_namespace__()
        turn, centre, direction = (
            numpy.broadcast_to(numpy.asarray(each[space], dtype=x.dtype), x.shape)
            for each in (self.turn, self.offset, self.direction)
        )
        angle, away = _along(amount, x), x - centre
        turned = numpy.cos(angle) * away + numpy.sin(angle) * turn * away[..., self.partner[space]]
        return numpy.where(turn != 0.0, centre + turned, x + angle * direction)

    def otherwise(self, space: str, column: int) -> Map:
        """With a column, and that which turns with it, turned the other way."""
        pair = [column, self.partner[space][column]]
        turn, direction = self.turn[space].copy(), self.direction[space].copy()
        turn[pair], direction[pair] = -turn[pair], -direction[pair]
        return dataclasses.replace(
            self, turn={**self.turn, space: turn}, direction={**self.direction, space: direction}
        )


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
    kinds = {"reflection": _reflection, "translation": _translation, "rotation": _rotation}
    if not isinstance(declared, dict) or not declared or declared.keys() - kinds.keys():
        names = ", ".join(declared) if isinstance(declared, dict) else str(declared)
        raise GoatError(
            "a symmetry has [[reflection]], [[translation]] and [[rotation]], not "
            f"{names or 'nothing'}"
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
    by, direction = _range("translation", about), _nothing(sizes)
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
        by,
    )


def _rotation(about: Mapping[str, Any], sizes: Mapping[str, int]) -> Map:
    _check_names("rotation", about, {*SPACES, "around", "by"})
    by, around = _range("rotation", about), about.get("around")
    partner = {space: np.arange(size) for space, size in sizes.items()}
    turn, centre, angles = _nothing(sizes), _nothing(sizes), _nothing(sizes)
    for space in SPACES:
        turned = about.get(space, {})
        if not isinstance(turned, dict) or turned.keys() - {"places", "vectors", "angles"}:
            raise GoatError(
                f"a rotation has {space} = {{ places = [[x, y]], vectors = [[x, y]], "
                f"angles = [column] }}, not {turned}"
            )
        places, vectors = turned.get("places", []), turned.get("vectors", [])
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in [*places, *vectors]):
            raise GoatError(f"a rotation turns pairs [[x, y]], not as in {turned}")
        if places and not (isinstance(around, list) and len(around) == 2):
            raise GoatError(f"a rotation of places needs around = [x, y]{_given(around)}")
        columns = [_column(each, space, sizes) for pair in [*places, *vectors] for each in pair]
        for each in turned.get("angles", []):
            angles[space][_column(each, space, sizes)] = 1.0
        if len(set(columns)) < len(columns) or angles[space][columns].any():
            raise GoatError(f"a rotation turns a column once, not as in {turned}")
        first, second = columns[::2], columns[1::2]
        partner[space][first], partner[space][second] = second, first
        turn[space][first], turn[space][second] = -1.0, 1.0
        of_places = columns[: 2 * len(places)]
        if places:
            centre[space][of_places] = np.tile(np.asarray(around), len(places))
        if space == "observation":
            placed = np.sort(np.array(of_places, int))
    ones = {space: np.ones(size) for space, size in sizes.items()}
    order = np.arange(sizes["observation"])
    return Rotation("rotation", ones, centre, angles, order, by, partner, turn, placed)


def _range(kind: str, about: Mapping[str, Any]) -> tuple[float, float]:
    by = about.get("by")
    if not isinstance(by, list) or len(by) != 2 or not by[0] < by[1]:
        raise GoatError(f"a {kind} needs by = [low, high], the lower number first{_given(by)}")
    low, high = map(float, by)
    if kind == "rotation" and high - low > 2.0 * math.pi + 1e-6:
        raise GoatError(f"a rotation turns by radians, at most once around{_given(by)}")
    return low, high


def _given(value: Any) -> str:
    return "; it is missing" if value is None else f", not {value}"


def _nothing(sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    return {space: np.zeros(size) for space, size in sizes.items()}


def _check_names(kind: str, about: Mapping[str, Any], known: set[str]) -> None:
    if wrong := sorted(about.keys() - known):
        raise GoatError(f"a {kind} has {', '.join(sorted(known))}, not {', '.join(wrong)}")


def _column(column: Any, space: str, sizes: Mapping[str, int]) -> int:
    try:
        place = int(column)
    except (TypeError, ValueError):
        raise GoatError(f"columns of the {space} are numbers from 0, not '{column}'") from None
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
        # what is turned may leave the range of actions
        action=jnp.clip(mapped("action")(batch.action), -1.0, 1.0),
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
    if isinstance(chosen, Rotation):
        return _turned(chosen, space, moments)
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


def extremes(chosen: Map, ends: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest goals that training sees, if those of the data are known."""
    if isinstance(chosen, Rotation):
        turned, angles = chosen.turn["goal"] != 0.0, chosen.direction["goal"]
        low, high = (end + angles * by for end, by in zip(ends, chosen.by, strict=True))
        return np.where(turned, -np.inf, low), np.where(turned, np.inf, high)
    amounts = [np.full((1, 1), by) for by in chosen.by]
    seen = [chosen.apply("goal", end[None], by)[0] for end in ends for by in amounts]
    if chosen.kind == "reflection":  # which half of the rows are not seen through
        seen += ends
    return np.min(seen, axis=0), np.max(seen, axis=0)


def _turned(chosen: Rotation, space: str, moments: Moments) -> Moments:
    """As if the two coordinates of a pair were not correlated."""
    mean, std = moments
    (low, high), turn, partner = chosen.by, chosen.turn[space], chosen.partner[space]
    width = high - low
    cos, sin = (np.sin(high) - np.sin(low)) / width, (np.cos(low) - np.cos(high)) / width
    cos2 = 0.5 + (np.sin(2 * high) - np.sin(2 * low)) / (4 * width)
    both = (np.cos(2 * low) - np.cos(2 * high)) / (4 * width)  # of sin · cos
    centre, away = chosen.offset[space], mean - chosen.offset[space]
    other = away[..., partner]
    middle = centre + cos * away + sin * turn * other
    square = cos2 * (away**2 + std**2) + (1 - cos2) * (other**2 + std[..., partner] ** 2)
    square += 2 * both * turn * away * other
    spread = np.sqrt(np.maximum(square - (middle - centre) ** 2, 0.0))
    angles = chosen.direction[space]
    moved, wider = mean + angles * (low + high) / 2, np.sqrt(std**2 + angles**2 * width**2 / 12)
    return np.where(turn != 0, middle, moved), np.where(turn != 0, spread, wider)
