"""What to reach: task groups, each one dataset with its in- and out-of-distribution tasks."""

from goatrl.tasks.registry import (
    families,
    get,
    groups,
    register_task_group,
    robots,
    unregister_task_group,
)
from goatrl.tasks.types import Collection, Recording, Script, Task, TaskGroup, draw_mix

__all__ = [
    "Collection",
    "Recording",
    "Script",
    "Task",
    "TaskGroup",
    "draw_mix",
    "families",
    "get",
    "groups",
    "register_task_group",
    "robots",
    "unregister_task_group",
]
