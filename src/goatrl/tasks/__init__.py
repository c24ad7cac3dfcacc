"""What to reach: task groups, each one dataset with its in- and out-of-distribution tasks."""

from goatrl.tasks.registry import get, groups, robots
from goatrl.tasks.types import Task, TaskGroup, draw_mix

__all__ = ["Task", "TaskGroup", "draw_mix", "get", "groups", "robots"]
