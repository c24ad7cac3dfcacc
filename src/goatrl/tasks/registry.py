"""All task groups, by name."""

from __future__ import annotations

from goatrl.tasks import fetch, pointreach, shadow_hand
from goatrl.tasks.types import TaskGroup
from goatrl.types import unknown

_GROUPS = {
    group.name: group
    for group in (*fetch.GROUPS, *shadow_hand.GROUPS, *pointreach.GROUPS, *fetch.VARIANTS)
}


def groups() -> dict[str, TaskGroup]:
    return dict(_GROUPS)


def robots() -> tuple[TaskGroup, ...]:
    """The robots' groups of the paper, in its order; variants of them are not among these."""
    return (*fetch.GROUPS, *shadow_hand.GROUPS)


def get(name: str) -> TaskGroup:
    if name not in _GROUPS:
        raise unknown("task group", name, _GROUPS)
    return _GROUPS[name]
