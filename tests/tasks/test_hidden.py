"""What is hidden of a dataset, and what is evaluated."""

import numpy as np
import pytest

from goatrl import tasks
from goatrl.data import cache
from goatrl.robots.fetch import FetchFamily
from goatrl.tasks import Task, TaskGroup, hidden
from goatrl.tasks.shadow_hand import FINGERTIPS
from goatrl.types import Episodes, make_episodes

OF_OBJECTS = [group for group in hidden.GROUPS if isinstance(group.family, FetchFamily)]
(OF_HANDS,) = (group for group in hidden.GROUPS if group not in OF_OBJECTS)
named = pytest.mark.parametrize("group", OF_OBJECTS, ids=lambda group: group.name)


def moved(group: TaskGroup, task: Task) -> Episodes:
    """Objects that go straight to the goals of a task, in three steps."""
    starts, goals = task.draw(3, 100)
    first = group.family.initial(starts)[:, None]
    places = first + np.linspace(0.0, 1.0, 4)[None, :, None] * (goals[:, None] - first)
    return make_episodes(places, places, np.zeros((len(places), 3, 1)), goals)


def kept(group: TaskGroup, episodes: Episodes) -> int:
    assert group.keeps is not None
    return int(group.keeps(episodes).sum())


@named
def test_what_is_evaluated_is_hidden(group: TaskGroup) -> None:
    inside, outside = (moved(group, task) for task in group.tasks)
    assert kept(group, outside) == 0
    assert kept(group, inside) > 60
    # Nor is an episode kept that passes through what is hidden, or was meant to end there.
    passing, empty = np.array(inside.achieved), np.zeros((100, 3, 1))
    inwards = group.name == "slide-left-right-hidden"
    passing[:, 1] = passing[:, 0] - 0.05 if inwards else outside.goals
    assert kept(group, make_episodes(passing, passing, empty, inside.goals)) == 0
    places = inside.achieved
    meant = make_episodes(places, places, empty, outside.goals)
    assert kept(group, meant) == 0


def test_thumb_and_finger_are_meant_to_meet_near_the_middle() -> None:
    inside, outside = (task.draw(3, 100)[1] for task in OF_HANDS.tasks)
    at_rest = np.tile(FINGERTIPS.ravel(), (5, 1))
    goals = np.concatenate([inside, outside, at_rest])
    path = np.zeros((len(goals), 4, 15))
    episodes = make_episodes(path, path, np.zeros((len(goals), 3, 1)), goals)
    assert OF_HANDS.keeps is not None
    assert OF_HANDS.keeps(episodes).tolist() == [True] * 100 + [False] * 100 + [True] * 5


def test_the_rest_of_the_group_is_as_it_was() -> None:
    for group in hidden.GROUPS:
        whole = group.cut_from
        assert whole is not None
        assert (group.family, group.settings, group.spec) == (
            whole.family,
            whole.settings,
            whole.spec,
        )
        assert group.name == f"{whole.name}-hidden"
        assert not set(group.tasks) & set(whole.tasks), "no evaluation episode of the benchmark"
        assert [task.split for task in group.tasks] == ["iid", "ood"]
        assert cache.source(group) is whole, "it has no dataset of its own to make"
        assert group not in tasks.robots()


def test_whole_episodes_of_the_other_dataset_are_left() -> None:
    group = tasks.get("slide-near-far-hidden")
    inside, outside = (moved(group, task) for task in group.tasks)
    every = {
        name: np.concatenate([value, outside.arrays()[name]])
        for name, value in inside.arrays().items()
    }
    whole = make_episodes(**every)
    part = cache._part(whole, group)
    assert part.count == kept(group, inside)
    assert group.keeps is not None
    np.testing.assert_array_equal(part.actions, whole.only(group.keeps(whole)).actions)
    assert part.achieved[..., 0].max() < group.family.gripper[0] + hidden.SHORT  # type: ignore[attr-defined]
