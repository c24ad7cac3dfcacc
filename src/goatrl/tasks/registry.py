"""All task groups, by name, and the robots that they are for."""

from __future__ import annotations

from goatrl.robots import Family
from goatrl.tasks import fetch, hidden, ogbench, pointreach, shadow_hand
from goatrl.tasks.types import TaskGroup
from goatrl.types import GoatError, unknown

_GROUPS: dict[str, TaskGroup] = {}


def register_task_group(group: TaskGroup) -> TaskGroup:
    """Register a task group, and with it its robot.

    Args:
        group: the tasks of one dataset, in and out of its distribution.

    Returns:
        The same group.
    """
    if group.name in _GROUPS:
        raise GoatError(f"a task group named {group.name} already exists; choose another name")
    if families().get(group.family.name, group.family) is not group.family:
        raise GoatError(f"a robot named {group.family.name} already exists; choose another name")
    _GROUPS[group.name] = group
    return group


def unregister_task_group(name: str) -> None:
    del _GROUPS[get(name).name]


def groups() -> dict[str, TaskGroup]:
    return dict(_GROUPS)


def robots() -> tuple[TaskGroup, ...]:
    """The robots' groups of the paper, in its order; no others are among these."""
    return (*fetch.GROUPS, *shadow_hand.GROUPS)


def families() -> dict[str, Family]:
    """The robots of all groups."""
    return {group.family.name: group.family for group in _GROUPS.values()}


def get(name: str) -> TaskGroup:
    if name not in _GROUPS:
        raise unknown("task group", name, _GROUPS)
    return _GROUPS[name]


for _group in (
    *fetch.GROUPS,
    *shadow_hand.GROUPS,
    *pointreach.GROUPS,
    *fetch.VARIANTS,
    *ogbench.GROUPS,
    *hidden.GROUPS,
):
    register_task_group(_group)
