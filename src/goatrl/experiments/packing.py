"""Which cells train together, in one program: those that differ only in floats, and on a GPU in
their dataset.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import jax

from goatrl.data.problems import Problem, open_problem
from goatrl.experiments.planning import PlannedCell
from goatrl.training import memory

Together = list[PlannedCell]  # cells that train in one program
Open = Callable[[str, Path | None], Problem]


def batches(planned: Iterable[PlannedCell], opened: Open = open_problem) -> list[Together]:
    """What is missing, in order, as lists of cells that train together: one program for all that
    have the same shapes, as far as the device's memory and `memory.MOST_MEMBERS` allow.

    A processor gains nothing from more agents at once, and an interruption would lose all of them:
    there, cells of one group train together.
    """
    across_groups = jax.default_backend() != "cpu"

    @functools.cache
    def dataset(group: str, data: Path | None) -> tuple[tuple[bool, ...], int]:
        """How its episodes lie, of one length, ended by nobody, with one goal each, or not, and
        their bytes. Also those of a task group may have many lengths, if they are parts of longer
        ones.
        """
        found = opened(group, data).episodes
        lie = found.lengths is None, found.terminated is None, len(found.goals) == found.count
        return lie, memory.of_arrays(found)

    def shape(cell: PlannedCell) -> tuple[Any, ...]:
        config = cell.config
        where = None if across_groups else config.group
        structure = jax.tree.structure(cell.algorithm)
        lie = dataset(config.group, cell.data)[0] if across_groups else ()
        return where, structure, lie, config.spec, config.updates, config.batch_size

    found: dict[tuple[Any, ...], Together] = {}
    for cell in planned:
        if cell.missing:
            found.setdefault(shape(cell), []).append(cell)
    most = memory.available()

    def fits(cells: Together) -> bool:
        members, one = _count(cells), cells[0]
        if members > memory.MOST_MEMBERS:
            return False
        if math.isinf(most):  # no dataset need be opened
            return True
        datasets = sum(dataset(*place)[1] for place in {(c.config.group, c.data) for c in cells})
        return datasets + members * memory.of_member(one.algorithm, one.config.spec) <= most

    return [piece for cells in found.values() for piece in _split(cells, fits)]


def _split(cells: Together, fits: Callable[[Together], bool]) -> list[Together]:
    """In order, into as few and as even pieces of whole cells as fit. A single cell always does:
    there is no less.
    """
    for count in range(1, len(cells)):
        pieces = _pieces(cells, count)
        if all(len(piece) == 1 or fits(piece) for piece in pieces):
            return pieces
    return [[cell] for cell in cells]


def _pieces(cells: Together, count: int) -> list[Together]:
    """Every cell goes where the middle of its members lies, if all are cut into equal parts."""
    found: dict[int, Together] = {}
    members, before = _count(cells), 0
    for cell in cells:
        middle = 2 * before + len(cell.missing)
        found.setdefault(count * middle // (2 * members), []).append(cell)
        before += len(cell.missing)
    return list(found.values())


def _count(cells: Sequence[PlannedCell]) -> int:
    return sum(len(cell.missing) for cell in cells)
