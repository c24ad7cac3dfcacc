"""Averages over tasks and how sure they are, from raw records alone."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from goatrl import tasks
from goatrl.experiments import paper
from goatrl.experiments.records import Cell

if TYPE_CHECKING:  # a suite carries conclusions, which are checked with these statistics
    from goatrl.experiments.columns import Column
    from goatrl.experiments.suites import Suite

Value = Any  # a float; for resampled scores an array, one float per resample
RESAMPLES = (
    10_000  # at the ends of a 95 % interval, shares of resamples are exact to 0.2 points then
)
LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class Interval:
    value: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """One algorithm on one group. Its tasks share their seeds: a seed is the same agent in each."""

    group: str
    seeds: tuple[int, ...]
    episodes: Mapping[
        str, np.ndarray
    ]  # task → (..., seeds, episodes), where leading axes are resamples

    @property
    def means(self) -> np.ndarray:
        """Of each seed on each task: (..., tasks, seeds)."""
        return np.stack([_over_episodes(values) for values in self.episodes.values()], axis=-2)


@dataclasses.dataclass(frozen=True, eq=False)
class Scores:
    """All that is recorded of one algorithm, group by group."""

    label: str
    blocks: tuple[Block, ...]

    def only(self, *, split: str | None = None, groups: Collection[str] | None = None) -> Scores:
        """The tasks of one split, of some groups, or both."""
        found = []
        for block in self.blocks:
            kept = {
                name: v
                for name, v in block.episodes.items()
                if split in (None, tasks.get(block.group).task(name).split)
            }
            if kept and (groups is None or block.group in groups):
                found.append(dataclasses.replace(block, episodes=kept))
        return Scores(self.label, tuple(found))

    def by_task(self) -> dict[tuple[str, str], np.ndarray]:
        """(group, task) → the mean of each seed: (..., seeds)."""
        return {
            (block.group, name): _over_episodes(v)
            for block in self.blocks
            for name, v in block.episodes.items()
        }


def _over_episodes(values: np.ndarray) -> np.ndarray:
    """Resamples have one episode, and ten thousand means of one number take long."""
    return values[..., 0] if values.shape[-1] == 1 else values.mean(axis=-1)


Statistic = Callable[[Scores], Value]


def scores(
    cells: Iterable[Cell], label: str, metric: str = "success", split: str | None = None
) -> Scores:
    """The raw episodes of one column: all tasks, or those of one split. Maps of coverage are
    pictures, and stay out.
    """
    return Scores(label, tuple(_block(cell, metric) for cell in cells if cell.label == label)).only(
        split=split
    )


def _block(cell: Cell, metric: str) -> Block:
    order = np.argsort(
        cell.column("episode"), kind="stable"
    )  # seeds share their episodes: the same ones stand together
    of_task, of_seed, values = (cell.column(name)[order] for name in ("task", "seed", metric))
    values = values.astype(float)
    episodes = {
        task.name: np.stack(
            [values[(of_task == task.name) & (of_seed == seed)] for seed in cell.seeds]
        )
        for task in tasks.get(cell.config.group).tasks
    }
    return Block(cell.config.group, cell.seeds, episodes)


def average(scores: Scores) -> Value:
    """Mean over tasks of their means: every task counts the same, as in the paper's averages."""
    return np.concatenate([block.means.mean(axis=-1) for block in scores.blocks], axis=-1).mean(
        axis=-1
    )


def interquartile_mean(scores: Scores) -> Value:
    """Mean of the middle half of all (seed, task) means: neither the easiest nor the hardest decide
    it (Agarwal et al., 2021).
    """
    means = [block.means for block in scores.blocks]
    ordered = np.sort(
        np.concatenate([each.reshape(*each.shape[:-2], -1) for each in means], axis=-1), axis=-1
    )
    quarter = ordered.shape[-1] // 4
    return ordered[..., quarter : ordered.shape[-1] - quarter].mean(axis=-1)


def episode_noise(scores: Scores) -> float:
    """The standard error of the average that is due to the finite number of evaluation episodes
    alone, with these seeds.

    It is that of episodes whose starts and goals are drawn at random, the same ones for all seeds:
    what is hard for one is often hard for all. Those of PointReach are fixed: there it is no error,
    only how much goals differ.
    """
    errors = [
        _error_of_task(values) for block in scores.blocks for values in block.episodes.values()
    ]
    return float(np.linalg.norm(errors) / len(errors))


def _error_of_task(values: np.ndarray) -> float:
    over_seeds = values.mean(axis=0)
    if len(over_seeds) < 2:
        return 0.0  # one says nothing about its noise
    return float(over_seeds.std(ddof=1) / np.sqrt(len(over_seeds)))


def probability_of_improvement(one: Scores, other: Scores) -> Value:
    """How likely a seed of `one` beats a seed of `other`, averaged over the tasks that both have; a
    tie counts half.
    """
    first, second = one.by_task(), other.by_task()
    found = np.stack(
        [_chance_above(first[task], second[task]) for task in first if task in second]
    ).mean(axis=0)
    return found.round(
        12
    )  # what is one half is exactly that, and not above it by an error of rounding


def _chance_above(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    difference = one[..., :, None] - other[..., None, :]
    return np.asarray(((difference > 0) + 0.5 * (difference == 0)).mean(axis=(-2, -1)))


def interval(
    scores: Scores,
    statistic: Statistic,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> Interval:
    """The statistic, and between which values it lies in `level` of all resamples."""
    return percentiles(statistic(scores), statistic(resampled(scores, resamples, seed)), level)


def improvement_interval(
    one: Scores, other: Scores, resamples: int = RESAMPLES, seed: int = 0, level: float = LEVEL
) -> Interval:
    """The probability of improvement and its interval."""
    return percentiles(
        probability_of_improvement(one, other),
        resampled_improvement(one, other, resamples, seed),
        level,
    )


def resampled_improvement(
    one: Scores, other: Scores, resamples: int = RESAMPLES, seed: int = 0
) -> np.ndarray:
    """The probability of improvement in every resample, where both sides are resampled, each for
    itself.
    """
    found = probability_of_improvement(
        resampled(one, resamples, seed, 1), resampled(other, resamples, seed, 2)
    )
    return np.asarray(found)


def increment(after: np.ndarray, before: np.ndarray, level: float = LEVEL) -> Interval:
    """What one adds to the mean of another, seed by seed: (seeds,). Seeds are paired.

    The interval is Student's: of two or three seeds, which users begin with, all resamples often
    lie on the same side of zero by chance alone.
    """
    added = (after - before).round(12)  # what is nothing is exactly that
    count, mean = len(added), float(added.mean())
    if count < 2:
        return Interval(mean, mean, mean)
    from scipy import special  # which every start of the program would wait for

    reach = special.stdtrit(count - 1, (1 + level) / 2) * added.std(ddof=1) / np.sqrt(count)
    return Interval(mean, mean - float(reach), mean + float(reach))


def percentiles(value: Value, drawn: np.ndarray, level: float = LEVEL) -> Interval:
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(value), float(low), float(high))


def resampled(scores: Scores, resamples: int, *key: int | str) -> Scores:
    """The stratified bootstrap of rliable (Agarwal et al., 2021): seeds are drawn with replacement,
    and a drawn seed counts with its recorded mean on each task. Noise of evaluation is in these
    means already; to draw episodes as well would count it twice.

    The stratum is the group: one trained agent, a seed, is evaluated on all tasks of its group,
    which therefore share the draw. In rliable a run is trained on one task, and the stratum is the
    task. What is drawn for a group depends on no other group.
    """
    return Scores(
        scores.label, tuple(_resampled_block(block, resamples, key) for block in scores.blocks)
    )


def _resampled_block(block: Block, resamples: int, key: Sequence[int | str]) -> Block:
    drawn = drawn_seeds(len(block.seeds), resamples, *key, block.group)
    episodes = {
        task: values.mean(axis=-1)[drawn][..., None] for task, values in block.episodes.items()
    }  # as if it had one
    return dataclasses.replace(block, episodes=episodes)


def drawn_seeds(seeds: int, resamples: int, *key: int | str) -> np.ndarray:
    """The places of seeds that are drawn with replacement, always the same ones for a key:
    (resamples, seeds).
    """
    numbers = [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in key]
    return np.random.default_rng(numbers).integers(seeds, size=(resamples, seeds))


def rank_correlation(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Spearman's; nan where one side has no order."""
    if len(set(ours)) < 2 or len(set(theirs)) < 2:
        return float("nan")
    return float(np.corrcoef(_ranks(ours), _ranks(theirs))[0, 1])


def _ranks(values: Sequence[float]) -> np.ndarray:
    """How many are smaller; of those that are equal but for an error of rounding half, itself
    included.
    """
    rounded = np.asarray(values).round(9)
    each, other = rounded[:, None], rounded[None]
    return (each > other).sum(axis=1) + 0.5 * (each == other).sum(axis=1)


@dataclasses.dataclass(frozen=True)
class Average:
    """One algorithm's average over the tasks of a split, or of one group, that are
    recorded of it.
    """

    label: str
    split: str  # iid, ood or all
    tasks: int
    mean: float
    std: (
        float  # over seeds, of the seed's own average; nan where not all groups have the same seeds
    )
    interval: Interval
    episode_noise: float  # the standard error that is due to evaluation episodes alone
    iqm: float
    paper: float | None  # the average of its numbers for the same tasks
    of: int  # how many tasks there are in the suite
    group: str = ""  # the paper's name of the one group that it is over
    share: float | None = None  # of the ceiling's average over the same tasks, in percent


def ceiling(cells: Iterable[Cell]) -> str | None:
    """The column of the expert that collected the data, if it is recorded: what does not learn."""
    return next((cell.label for cell in cells if not cell.config.updates), None)


def shared_groups(suite: Suite, cells: Sequence[Cell]) -> set[str]:
    """The groups over which the columns of the suite are compared: averages over other tasks do not
    compare. Of the groups that each column has records of, those with which most cells take part;
    columns without some of them have no average.
    """
    groups: dict[str, set[str]] = {}
    for cell in cells:
        groups.setdefault(cell.label, set()).add(cell.config.group)
    of_suite = [groups[column.label] for column in suite.columns if column.label in groups]
    found = of_suite or list(groups.values())
    together = set.intersection(*found) if found else set[str]()

    def cells_with(chosen: set[str]) -> int:
        columns = sum(chosen <= each for each in found)
        return len(chosen) * columns if columns > 1 or len(found) == 1 else 0

    return max([together, *found], key=cells_with)


def in_order(columns: Sequence[Column], recorded: Iterable[str]) -> list[str]:
    """The labels that are recorded: those of a suite in its order, then the user's own."""
    found = dict.fromkeys(recorded)
    return [
        label
        for label in dict.fromkeys([*(column.label for column in columns), *found])
        if label in found
    ]


def averages(suite: Suite, cells: Sequence[Cell], metric: str) -> list[Average]:
    """Of every column first its groups, then the splits; all from the same resamples.

    Those of splits are over the same groups for all; a user's own column that is not recorded for
    each of them has none.
    """
    labels = in_order(suite.columns, (cell.label for cell in cells))
    shared, of_columns = (
        shared_groups(suite, cells),
        (scores(cells, label, metric) for label in labels),
    )
    found = [each for column in of_columns for each in _of_column(suite, column, shared, metric)]
    return _beside_the_ceiling(found, ceiling(cells)) if metric == "success" else found


def _beside_the_ceiling(found: Sequence[Average], label: str | None) -> list[Average]:
    highest = {
        (each.group, each.split, each.tasks): each.mean for each in found if each.label == label
    }

    def share(each: Average) -> float | None:
        most = highest.get((each.group, each.split, each.tasks))
        return 100 * each.mean / most if most and each.label != label else None

    return [dataclasses.replace(each, share=share(each)) for each in found]


def summary(suite: Suite, cells: Sequence[Cell], metric: str) -> list[Average]:
    """Averages over IID, OOD and all tasks."""
    return [each for each in averages(suite, cells, metric) if not each.group]


def _of_column(suite: Suite, scores: Scores, shared: set[str], metric: str) -> Iterator[Average]:
    drawn = resampled(scores, RESAMPLES, 0)
    for group in (block.group for block in scores.blocks):
        mine = tasks.get(group)
        one, resamples = (each.only(groups=[group]) for each in (scores, drawn))
        yield _summarise(suite, one, resamples, metric, "all", len(mine.tasks), mine.label)
    if not shared <= {block.group for block in scores.blocks}:
        return
    for name in ("iid", "ood", "all"):
        split = None if name == "all" else name
        part, resamples = (each.only(split=split, groups=shared) for each in (scores, drawn))
        if part.blocks:
            of = sum(
                split in (None, task.split)
                for group in suite.groups
                for task in tasks.get(group).tasks
            )
            yield _summarise(suite, part, resamples, metric, name, of)


def _summarise(
    suite: Suite, scores: Scores, drawn: Scores, metric: str, split: str, of: int, group: str = ""
) -> Average:
    scale = suite.scale(metric)
    sure = percentiles(scale * average(scores), scale * average(drawn))
    return Average(
        label=scores.label,
        split=split,
        tasks=len(scores.by_task()),
        mean=sure.value,
        std=scale * _deviation_over_seeds(scores),
        interval=sure,
        episode_noise=scale * episode_noise(scores),
        iqm=scale * float(interquartile_mean(scores)),
        paper=_average_in_the_paper(suite, scores, metric, group or split, of),
        of=of,
        group=group,
    )


def _deviation_over_seeds(scores: Scores) -> float:
    if len({block.seeds for block in scores.blocks}) > 1:
        return float("nan")
    return float(np.concatenate([block.means for block in scores.blocks]).mean(axis=0).std())


def _average_in_the_paper(
    suite: Suite, scores: Scores, metric: str, over: str, of: int
) -> float | None:
    if (
        suite.averages and metric == "success"
    ):  # a table without single tasks says nothing about some of them
        return (
            paper.averages(suite.averages).get((over, scores.label))
            if len(scores.by_task()) == of
            else None
        )
    published = paper.results(suite.paper[metric], metric) if metric in suite.paper else {}
    places = [
        (tasks.get(group).paper_label, task, scores.label) for group, task in scores.by_task()
    ]
    if not all(place in published for place in places):
        return None
    return float(np.mean([published[place][0] for place in places]))
