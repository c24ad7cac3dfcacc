"""An expert at work, with noise: how the robots' datasets come to be.

Episodes are simulated in waves. The noise, starts and goals of a wave depend on the seed and on its
number alone, so the same dataset comes out with any number of threads, and also when it was made in
several goes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from goatrl.data.experts import Expert
from goatrl.robots.exploration import explore
from goatrl.tasks import TaskGroup
from goatrl.types import Episodes, make_episodes

WAVE = 512
CANDIDATES = 16  # starts drawn for each robot of a wave, to find one in the seen region


@dataclasses.dataclass(frozen=True)
class Wave:
    """What one wave adds to a dataset."""

    number: int
    simulated: int
    kept: Episodes | None  # none may have stayed in the seen region


def waves(
    group: TaskGroup, expert: Expert, seed: int, first: int = 0, threads: int | None = None
) -> Iterator[Wave]:
    """Wave after wave, without end: the episodes whose achieved goals all lie in the group's seen
    region.
    """
    collection = group.collection
    assert collection is not None
    with group.family.simulator(WAVE, threads) as simulator:
        number = first
        while True:
            starts, goals = _starts_and_goals(group, [seed, number])
            generator = np.random.default_rng([seed, number])

            def act(
                seen: np.ndarray,
                goals: np.ndarray = goals,
                generator: np.random.Generator = generator,
            ) -> np.ndarray:
                return explore(
                    expert.act(seen, goals), generator, collection.noise, collection.random
                )

            inside = (
                None if collection.by_end else group.iid.contains
            )  # who may come back is not stopped
            taken = simulator.rollout(starts, act, group.spec.horizon, inside=inside)
            kept = group.kept(taken.achieved)
            parts = (
                taken.observations[kept],
                taken.achieved[kept],
                taken.actions[kept],
                goals[kept],
            )
            yield Wave(number, WAVE, make_episodes(*parts) if kept.any() else None)
            number += 1


def _starts_and_goals(group: TaskGroup, seed: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Of one wave. Objects that start outside the seen region are not simulated: the filter would
    drop them in any case.
    """
    assert group.collection is not None
    starts, goals = group.collection.task.draw(seed, CANDIDATES * WAVE)
    if starts.shape[1] and not group.collection.by_end:
        starts = starts[group.iid.contains(group.family.initial(starts))]
    return starts[:WAVE], goals[:WAVE]


Progress = Callable[[int, int, int], None]  # kept episodes, of how many, simulated


def join(parts: list[Episodes], count: int) -> Episodes:
    """The first `count` episodes of several lots."""
    fields = [field.name for field in dataclasses.fields(Episodes)]
    arrays = {
        name: np.concatenate([np.asarray(getattr(part, name)) for part in parts])[:count]
        for name in fields
    }
    return make_episodes(**arrays)
