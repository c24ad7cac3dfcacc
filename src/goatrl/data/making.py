"""The datasets that goatrl makes itself."""

from __future__ import annotations

from goatrl.data import point
from goatrl.tasks import TaskGroup
from goatrl.types import Episodes, GoatError


def make(group: TaskGroup, seed: int = 0) -> Episodes:
    """The dataset of a task group, the same bytes for the same seed."""
    if group.family != "point":
        raise GoatError(f"the dataset of {group.name} is not made by goatrl; name a file of it with --data")
    return point.make(group.name, seed)
