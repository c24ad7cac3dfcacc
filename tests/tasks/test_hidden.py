"""What is hidden of a dataset, and what is evaluated."""

import numpy as np
import pytest

from goatrl import tasks
from goatrl.data import cache
from goatrl.episodes import make_episodes
from goatrl.robots.fetch import FetchFamily
from goatrl.tasks import Task, TaskGroup, hidden
from goatrl.tasks.shadow_hand import FINGERTIPS
from goatrl.types import Episodes

*PARTS, OF_HANDS = hidden.GROUPS
named = pytest.mark.parametrize("group", PARTS, ids=lambda group: group.name)


def moved(group: TaskGroup, task: Task) -> Episodes:
    """Objects that go straight to the goals of a task, in three steps."""
    assert isinstance(group.family, FetchFamily)
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
    passing[:, 2] = passing[:, 1] - [0.0, 0.02, 0.0] if inwards else outside.goals
    assert kept(group, make_episodes(passing, passing, empty, inside.goals)) == 0
    places = inside.achieved
    meant = make_episodes(places, places, empty, outside.goals)
    assert kept(group, meant) == 0


@pytest.mark.parametrize("group", hidden.GROUPS, ids=lambda group: group.name)
def test_no_way_is_one_of_an_ood_task(group: TaskGroup) -> None:
    """From a start of such a task to a goal of it."""
    whole = group.cut_from
    assert whole is not None
    unseen = [task for task in whole.tasks if task.split == "ood"]
    assert unseen
    for task in group.tasks:
        starts, goals = task.draw(5, 500)
        for other in unseen:
            inside = other.goal.contains(goals)
            if starts.shape[1]:
                inside &= other.start.contains(starts)
            # at most on a border that belongs to both
            assert inside.mean() < 0.01, (task.name, other.name)


def test_the_rest_of_the_group_is_as_it_was() -> None:
    for group in hidden.GROUPS:
        whole = group.cut_from
        assert whole is not None
        assert group.family is whole.family
        assert (group.settings, group.spec) == (whole.settings, whole.spec)
        assert cache.source(group) is whole, "it has no dataset of its own to make"
        assert group not in tasks.robots()
        ours, theirs = (
            np.concatenate([task.evaluation()[1] for task in each.tasks]) for each in (group, whole)
        )
        moving = np.ptp(theirs, axis=0) > 0
        at_rest = theirs[:, moving] == rest_of(group)[moving]
        theirs = theirs[~at_rest.all(axis=1)]
        same = (ours[:, None, moving] == theirs[None, :, moving]).all(axis=-1)
        assert not same.any(), "an evaluation goal of the benchmark"


def rest_of(group: TaskGroup) -> np.ndarray:
    """The initial pose, which is a goal in itself; of objects there is none."""
    return FINGERTIPS.ravel() if group is OF_HANDS else np.full(3, np.nan)


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
    assert isinstance(group.family, FetchFamily)
    assert part.achieved[..., 0].max() < group.family.gripper[0] + hidden.SHORT


def test_nothing_of_the_hands_data_is_hidden() -> None:
    path = np.random.default_rng(0).normal(size=(3, 5, 15))
    whole = make_episodes(path, path, np.zeros((3, 4, 1)), path[:, 0])
    assert cache._part(whole, OF_HANDS).checksum() == whole.checksum()
