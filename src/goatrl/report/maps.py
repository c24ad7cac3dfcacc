"""Coverage maps: which goals on a grid an agent reaches from one start."""

from __future__ import annotations

import dataclasses

import numpy as np

from goatrl import tasks
from goatrl.experiments.records import Cell

TOLERANCE = 1e-5  # metres: records hold goals in float32
EDGE = 0.5  # of a square, by which a start may lie beyond the map's edge and still be drawn


@dataclasses.dataclass(frozen=True, eq=False)
class Coverage:
    """Squares as one sees them who stands opposite the robot: y to the right, and x towards the
    viewer or z upwards.

           left    y →   right
    top    success[0, 0]  …       first row: the smallest x, or the largest z
      ↓    …
    """

    axes: tuple[int, int]  # the coordinates to the right and from top to bottom
    across: np.ndarray  # centres of the columns
    down: np.ndarray  # centres of the rows
    success: np.ndarray  # (rows, columns): share of seeds that reach the square's goal
    seen: np.ndarray  # (rows, columns): whether the goal is IID
    seeds: int
    # Of the object, or of the gripper where there is none, in columns and rows from the upper left
    # corner; Slide's lie off the map.
    start: tuple[float, float] | None

    def reached(self, seen: bool) -> float:
        """The share reached in IID or OOD squares; nan where there are none."""
        squares = self.success[self.seen == seen]
        return float(squares.mean()) if squares.size else float("nan")

    def border(self) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """The sides at which an IID and an OOD square meet, from corner to corner:
        (column, row).
        """
        upright = [
            ((c + 1, r), (c + 1, r + 1))
            for r, c in np.argwhere(self.seen[:, 1:] != self.seen[:, :-1]).tolist()
        ]
        level = [
            ((c, r + 1), (c + 1, r + 1))
            for r, c in np.argwhere(self.seen[1:] != self.seen[:-1]).tolist()
        ]
        return upright + level


def coverage(cell: Cell) -> Coverage | None:
    """The map of a cell, if it has one: those of the main table do, but for groups whose goals have
    no plane.
    """
    rows = np.flatnonzero(cell.column("split") == "map")
    if not rows.size:
        return None
    group = tasks.get(cell.config.group)
    goals = np.array(cell.episodes.column("goal").take(rows).to_pylist())
    flat = np.ptp(goals, axis=0) <= TOLERANCE
    if goals.shape[1] != 3 or flat.sum() != 1:
        return None
    horizontal, vertical = [axis for axis in (1, 0, 2) if not flat[axis]]
    across, column = _places(goals[:, horizontal])
    down, row = _places(goals[:, vertical], falling=vertical == 2)
    reached, count = np.zeros((len(down), len(across))), np.zeros((len(down), len(across)))
    np.add.at(reached, (row, column), cell.column("success")[rows])
    np.add.at(count, (row, column), 1)
    squares = np.tile(goals[0], (*count.shape, 1))
    squares[..., horizontal], squares[..., vertical] = across[None, :], down[:, None]
    first = np.array(cell.episodes.column("start")[int(rows[0])].as_py())
    (begin,) = group.family.initial(first[None])
    start = _position(begin[horizontal], across), _position(begin[vertical], down)
    on_the_map = all(
        -EDGE <= at <= length + EDGE
        for at, length in zip(start, (len(across), len(down)), strict=True)
    )
    return Coverage(
        axes=(horizontal, vertical),
        across=across,
        down=down,
        success=reached / np.maximum(count, 1),
        seen=group.iid.contains(squares),
        seeds=len(cell.seeds),
        start=start if on_the_map else None,
    )


def _places(values: np.ndarray, falling: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The values without repetition, in order, and the place of each in it."""
    _, first, place = np.unique(
        (values / TOLERANCE).round(), return_index=True, return_inverse=True
    )
    known = values[first]
    return (known[::-1], len(known) - 1 - place) if falling else (known, place)


def _position(value: float, centres: np.ndarray) -> float:
    return float((value - centres[0]) / (centres[1] - centres[0]) + 0.5)
