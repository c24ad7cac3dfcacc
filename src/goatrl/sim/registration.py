"""The ids of the robots' tasks in Gymnasium; the simulator itself is loaded when one of them is
made.
"""

from __future__ import annotations

import gymnasium

from goatrl import tasks
from goatrl.tasks import Task, TaskGroup


def identifier(group: TaskGroup, task: Task) -> str:
    """The robot's name and the task's: goatrl/PushRight2Left-v0."""
    return f"goatrl/{group.label.split()[0]}{task.name}-v0"


def is_registered(group: TaskGroup, task: Task) -> bool:
    """Whether the id stands for this very task: groups that were added later have no ids."""
    found = gymnasium.registry.get(identifier(group, task))
    return found is not None and tasks.get(found.kwargs["group"]).task(task.name) == task


def register_environments() -> None:
    for group in tasks.robots():
        for task in group.tasks:
            gymnasium.register(
                identifier(group, task),
                entry_point="goatrl.sim.gym:RobotTask",
                max_episode_steps=group.spec.horizon,
                kwargs={"group": group.name, "task": task.name},
            )
