"""Where starts and goals are drawn, and which achieved goals count as seen. A region samples, and
knows what lies in it.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Protocol

import numpy as np

# metres: positions that were stored in float32 must not fall out of their region by rounding
TOLERANCE = 1e-6


class Region(Protocol):
    def sample(self, generator: np.random.Generator, count: int) -> np.ndarray:
        """Points of the region: (count, dimension)."""

    def contains(self, points: np.ndarray) -> np.ndarray:
        """Which of (…, dimension) points lie in it: (…)."""


@dataclasses.dataclass(frozen=True, eq=False)
class Points:
    """A fixed list, in its order; a larger sample begins again."""

    points: np.ndarray

    def sample(self, generator: np.random.Generator, count: int) -> np.ndarray:
        return np.resize(self.points, (count, self.points.shape[1]))

    def contains(self, points: np.ndarray) -> np.ndarray:
        return (np.abs(points[..., None, :] - self.points) <= TOLERANCE).all(axis=-1).any(axis=-1)


@dataclasses.dataclass(frozen=True)
class Box:
    """Uniform between two corners, where wished only at some distance from a centre.

    The distance is taken over as many coordinates as the centre has: with two it is one in the
    plane, with three one in space.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    centre: tuple[float, ...] = (0.0, 0.0)
    nearest: float = 0.0
    farthest: float = math.inf

    def sample(self, generator: np.random.Generator, count: int) -> np.ndarray:
        points = generator.uniform(self.low, self.high, (count, len(self.low)))
        outside = ~self.in_ring(points)
        while outside.any():
            points[outside] = generator.uniform(
                self.low, self.high, (int(outside.sum()), len(self.low))
            )
            outside = ~self.in_ring(points)
        return points

    def contains(self, points: np.ndarray) -> np.ndarray:
        in_box = (points >= np.array(self.low) - TOLERANCE) & (
            points <= np.array(self.high) + TOLERANCE
        )
        return in_box.all(axis=-1) & self.in_ring(points, TOLERANCE)

    def in_ring(self, points: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
        """Whether points are neither too near the centre nor too far from it."""
        if self.nearest == 0.0 and self.farthest == math.inf:
            return np.ones(points.shape[:-1], bool)
        distance = np.linalg.norm(points[..., : len(self.centre)] - np.array(self.centre), axis=-1)
        return (distance >= self.nearest - tolerance) & (distance <= self.farthest + tolerance)


def grid(low: tuple[float, ...], high: tuple[float, ...], cells: tuple[int, ...]) -> Points:
    """The centres of equal cells between two corners, the last coordinate changing fastest."""
    sides = [
        a + (b - a) * (np.arange(n) + 0.5) / n for a, b, n in zip(low, high, cells, strict=True)
    ]
    return Points(np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, len(low)))


@dataclasses.dataclass(frozen=True)
class Redrawn:
    """A point of a box whose coordinate `axis` is then drawn anew: the released environments move
    objects to a side like this.
    """

    box: Box
    axis: int
    low: float
    high: float

    def sample(self, generator: np.random.Generator, count: int) -> np.ndarray:
        points = self.box.sample(generator, count)
        points[:, self.axis] = generator.uniform(self.low, self.high, count)
        return points

    def contains(self, points: np.ndarray) -> np.ndarray:
        low, high = list(self.box.low), list(self.box.high)
        low[self.axis], high[self.axis] = self.low, self.high
        return Box(tuple(low), tuple(high)).contains(points)


@dataclasses.dataclass(frozen=True)
class RedrawnRing:
    """A point of `first` where it lies in the ring of `then`; elsewhere x and y are drawn anew,
    uniformly in that ring.

    So the released Reach environment draws its goals: what `first` has in common with the ring is
    drawn more often.
    """

    first: Box
    then: Box

    def sample(self, generator: np.random.Generator, count: int) -> np.ndarray:
        points = self.first.sample(generator, count)
        outside = ~self.then.in_ring(points)
        points[outside, :2] = self.then.sample(generator, int(outside.sum()))[:, :2]
        return points

    def contains(self, points: np.ndarray) -> np.ndarray:
        return self.then.contains(points)


@dataclasses.dataclass(frozen=True)
class Either:
    """One of two regions, with equal chances."""

    first: Region
    second: Region

    def sample(self, generator: np.random.Generator, count: int) -> np.ndarray:
        both = self.first.sample(generator, count), self.second.sample(generator, count)
        return np.where(generator.uniform(size=(count, 1)) < 0.5, *both)

    def contains(self, points: np.ndarray) -> np.ndarray:
        return self.first.contains(points) | self.second.contains(points)


NOTHING = Box((), ())  # nothing to choose: the robot always starts in the same pose


def everywhere(dimension: int) -> Box:
    return Box((-math.inf,) * dimension, (math.inf,) * dimension)
