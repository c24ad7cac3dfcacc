"""How simulated datasets come to be: an expert at work, with noise, or what a group's own recording
does.

Episodes are simulated in waves. The noise, starts and goals of a wave depend on the seed and on its
number alone, so the same dataset comes out with any number of cores, and also when it was made in
several goes.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from goatrl.data.experts import Expert
from goatrl.episodes import make_episodes
from goatrl.robots.exploration import explore
from goatrl.robots.workers import Pending, portable, the_same, workers
from goatrl.tasks import TaskGroup
from goatrl.tasks.regions import Region
from goatrl.types import Episodes, GoatError

WAVE = 512
CANDIDATES = 16  # starts drawn for each robot of a wave, to find one in the seen region


@dataclasses.dataclass(frozen=True)
class Wave:
    """What one wave adds to a dataset."""

    number: int
    simulated: int
    kept: Episodes | None  # none may have stayed in the seen region


def waves(
    group: TaskGroup,
    expert: Expert | None,
    seed: int,
    first: int = 0,
    wanted: int = 1,
    threads: int | None = None,
) -> Iterator[Wave]:
    """Wave after wave, without end: the episodes whose achieved goals all lie in the group's seen
    region.

    If many are `wanted`, every core simulates a wave of its own, unless `threads` of this process
    are to do it. A recording is made on one core.
    """
    if group.recording is not None:
        for number in itertools.count(first):
            lot = group.recording.record(seed, number)
            yield Wave(number, lot.count, lot)
    assert expert is not None
    if threads is not None or wanted <= WAVE or not portable(group):
        for number in itertools.count(first):
            yield simulate(group, expert, seed, number, WAVE, threads)
    else:
        yield from _on_all_cores(group, expert, seed, first, wanted)


def _on_all_cores(
    group: TaskGroup, expert: Expert, seed: int, first: int, wanted: int
) -> Iterator[Wave]:
    pool, numbers = workers(), itertools.count(first)
    running: deque[Pending] = deque()
    kept, simulated = 0, 0
    try:
        while True:
            share = max(kept, 1) / simulated if simulated else 1.0
            needed = math.ceil(max(wanted - kept, 1) / (share * WAVE))
            while len(running) < min(needed, pool.count):
                about = group, expert, seed, next(numbers), WAVE
                running.append(pool.submit(simulate_elsewhere, *about))
            wave = running.popleft().result()
            kept += 0 if wave.kept is None else wave.kept.count
            simulated += wave.simulated
            yield wave
    finally:
        for future in running:
            future.cancel()


def simulate_elsewhere(group: TaskGroup, expert: Expert, seed: int, number: int, size: int) -> Wave:
    """A wave in a process of its own, which makes the robot's model once."""
    group = dataclasses.replace(group, family=the_same(group.family))
    return simulate(group, expert, seed, number, size, threads=1)


def simulate(
    group: TaskGroup,
    expert: Expert,
    seed: int,
    number: int,
    size: int,
    threads: int | None,
) -> Wave:
    collection = group.collection
    assert collection is not None
    starts, goals = _starts_and_goals(group, [seed, number], size)
    generator = np.random.default_rng([seed, number])

    def act(seen: np.ndarray) -> np.ndarray:
        return explore(expert.act(seen, goals), generator, collection.noise, collection.random)

    # Who may come back is not stopped.
    inside = None if collection.by_end else group.iid.contains
    with group.family.simulator(size, threads) as simulator:
        taken = simulator.rollout(starts, act, group.spec.horizon, inside=inside)
    kept = group.kept(taken.achieved)
    parts = (taken.observations[kept], taken.achieved[kept], taken.actions[kept], goals[kept])
    return Wave(number, size, make_episodes(*parts) if kept.any() else None)


def _starts_and_goals(
    group: TaskGroup, seed: list[int], size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Of one wave. Objects that start outside the seen region are not simulated: the filter would
    drop them in any case.
    """
    assert group.collection is not None
    starts, goals = group.collection.task.draw(seed, CANDIDATES * size)
    if starts.shape[1] and not group.collection.by_end:
        starts = starts[group.iid.contains(group.family.initial(starts))]
    return starts[:size], goals[:size]


Progress = Callable[[int, int, int], None]  # kept episodes, of how many, simulated


def join(parts: list[Episodes], count: int) -> Episodes:
    """The first `count` episodes of several lots, all of one length."""
    lots = [part.arrays() for part in parts]
    return make_episodes(
        **{name: np.concatenate([lot[name] for lot in lots])[:count] for name in lots[0]}
    )


def cut(episodes: Episodes, seen: Region) -> Episodes:
    """What is left of episodes without the steps outside of a region: every stretch within it, of
    one action at least, becomes an episode of its own, whose goal is where it ends.
    """
    paths = episodes.paths()
    inside = seen.contains(np.concatenate(paths))
    first = np.cumsum([0, *map(len, paths)])[:-1]
    begins = inside & ~np.insert(inside[:-1], 0, False)
    begins[first] = inside[first]
    ends = inside & ~np.append(inside[1:], False)
    ends[np.append(first[1:], len(inside)) - 1] |= inside[np.append(first[1:], len(inside)) - 1]
    stretches = list(zip(np.flatnonzero(begins), np.flatnonzero(ends), strict=True))
    kept = [(begin, end) for begin, end in stretches if end > begin]
    if not kept:
        raise GoatError("nothing of the dataset lies in the seen region; choose another")
    rows = np.concatenate([np.arange(begin, end + 1) for begin, end in kept])
    last = np.array([end for _, end in kept])
    observations, achieved = (
        np.asarray(each).reshape(len(inside), -1)
        for each in (episodes.observations, episodes.achieved)
    )
    actions = np.asarray(episodes.actions)
    if episodes.lengths is None:  # a row for every step
        actions = np.pad(actions, ((0, 0), (0, 1), (0, 0)))
    actions = actions.reshape(len(inside), -1)
    lengths = [end - begin for begin, end in kept]
    return make_episodes(
        observations[rows], achieved[rows], actions[rows], achieved[last], lengths=lengths
    )
