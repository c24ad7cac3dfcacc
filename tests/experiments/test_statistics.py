"""Statistics: averages by hand, resamples whose outcome is known, and the paper's numbers over the
same tasks.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest

from goatrl import tasks
from goatrl.experiments import paper, statistics, suites
from goatrl.experiments.records import Cell
from goatrl.experiments.statistics import (
    Block,
    Interval,
    Scores,
    average,
    interquartile_mean,
    interval,
)
from helpers import made_by_hand

POINTREACH, ROBOTS = suites.get("pointreach"), suites.get("paper")
EXPERT, NON_EXPERT = "pointreach-expert-10", "pointreach-non-expert-10"
REACH, PICK, PUSH = "reach-left-right", "pick-low-high", "push-left-right"


def make_cell(
    group: str,
    episodes: Mapping[str, Sequence[Sequence[int]]],
    label: str = "GOAT",
    first_seed: int = 0,
) -> Cell:
    """Task → the return of every episode, seed by seed; an episode with a return is a success."""
    rows = [
        {
            "task": task,
            "split": "any",
            "seed": seed,
            "episode": episode,
            "success": value > 0,
            "return": value,
        }
        | {"final_distance": 0.0, "start": [0.0], "goal": [0.0], "path": None}
        for task, by_seed in episodes.items()
        for seed, values in enumerate(by_seed, start=first_seed)
        for episode, value in enumerate(values)
    ]
    seeds = tuple(range(first_seed, first_seed + len(next(iter(episodes.values())))))
    return made_by_hand(group, rows, seeds, label)


def by_hand(
    *groups: Mapping[str, Sequence],
    names: Sequence[str] = (EXPERT, NON_EXPERT),
    label: str = "GOAT",
) -> Scores:
    """Task → (seeds, episodes), group by group."""
    blocks = []
    for name, episodes in zip(names, groups, strict=False):
        arrays = {task: np.array(values) for task, values in episodes.items()}
        blocks.append(Block(name, tuple(range(len(next(iter(arrays.values()))))), arrays))
    return Scores(label, tuple(blocks))


YES, NO = [True] * 20, [False] * 20
CELLS = [
    make_cell(EXPERT, {"R10": [[3, 0], [1, 1]], "R20": [[0, 0], [0, 4]]}),
    make_cell(NON_EXPERT, {"R10": [[0, 0]], "R20": [[5, 5]]}),
    make_cell(EXPERT, {"R10": [[0, 0]], "R20": [[0, 0]]}, label="HER"),
]


def test_scores_are_the_raw_episodes_of_one_column() -> None:
    scores = statistics.scores(CELLS, "GOAT")
    assert scores.label == "GOAT"
    assert [(block.group, block.seeds) for block in scores.blocks] == [
        (EXPERT, (0, 1)),
        (NON_EXPERT, (0,)),
    ]
    assert {task: values.tolist() for task, values in scores.blocks[0].episodes.items()} == {
        "R10": [[True, False], [True, True]],
        "R20": [[False, False], [False, True]],
    }
    assert statistics.scores(CELLS, "GOAT", "return").blocks[0].episodes["R20"].tolist() == [
        [0.0, 0.0],
        [0.0, 4.0],
    ]
    assert statistics.scores(CELLS, "Nobody").blocks == ()


def test_scores_of_one_split() -> None:
    far = statistics.scores(CELLS, "GOAT", split="ood")
    assert [list(block.episodes) for block in far.blocks] == [["R20"], ["R20"]]
    assert (
        statistics.scores(CELLS, "GOAT", split="iid").blocks == ()
    )  # R10 lies in and around the data


def test_scores_do_not_depend_on_the_order_of_the_rows() -> None:
    cell = dataclasses.replace(CELLS[0], episodes=CELLS[0].episodes.take([7, 2, 5, 0, 3, 6, 1, 4]))
    np.testing.assert_array_equal(
        statistics.scores([cell], "GOAT").blocks[0].means, [[0.5, 1.0], [0.0, 0.5]]
    )


def test_maps_of_coverage_stay_out() -> None:
    group = tasks.get(REACH)
    cell = make_cell(REACH, {"Right": [[1, 1]], "Left": [[0, 1]]})
    rows = cell.episodes.to_pylist()
    maps = [row | {"task": "Coverage", "split": "map", "success": False} for row in rows]
    mapped = dataclasses.replace(
        cell, episodes=pa.Table.from_pylist(rows + maps, schema=cell.episodes.schema)
    )
    assert group.coverage is not None
    assert list(statistics.scores([mapped], "GOAT").blocks[0].episodes) == ["Right", "Left"]
    assert average(statistics.scores([mapped], "GOAT")) == pytest.approx(0.75)
    assert [each.tasks for each in statistics.summary(ROBOTS, [mapped], "success")] == [1, 1, 2]


def test_every_task_counts_the_same_in_an_average() -> None:
    # Task means (0.5 + 1) / 2 and (0 + 0.5) / 2 of two seeds, then 0 and 1 of one seed.
    assert average(statistics.scores(CELLS, "GOAT")) == pytest.approx((0.75 + 0.25 + 0.0 + 1.0) / 4)
    assert average(statistics.scores(CELLS, "GOAT", "return")) == pytest.approx(
        (1.25 + 1.0 + 0.0 + 5.0) / 4
    )
    assert average(statistics.scores(CELLS, "GOAT", split="ood")) == pytest.approx((0.25 + 1.0) / 2)


def test_the_interquartile_mean_leaves_out_a_quarter_on_each_side() -> None:
    eight = by_hand({"R10": [[0.0], [9.0], [1.0], [2.0]], "R20": [[5.0], [4.0], [100.0], [3.0]]})
    assert interquartile_mean(eight) == pytest.approx((2 + 3 + 4 + 5) / 4)
    six = by_hand(
        {"R10": [[0.0], [1.0], [2.0]]}, {"R20": [[3.0], [4.0], [50.0]]}
    )  # a quarter of six is one
    assert interquartile_mean(six) == pytest.approx((1 + 2 + 3 + 4) / 4)
    assert interquartile_mean(by_hand({"R10": [[1.0, 2.0]]})) == pytest.approx(1.5)


def test_a_quarter_is_neither_a_third_nor_nothing() -> None:
    # Squares of 0 to 11: a quarter of twelve is three, a third four. The middle six sum to 199, the
    # middle four to 126, all to 506.
    squares = [[float(place**2)] for place in (7, 2, 11, 0, 9, 4, 1, 10, 5, 8, 3, 6)]
    found = interquartile_mean(
        by_hand({"R10": squares[:4], "R20": squares[4:8]}, {"R10": squares[8:]})
    )
    assert found == pytest.approx(199 / 6)
    assert not any(found == pytest.approx(other) for other in (126 / 4, 506 / 12))


@pytest.mark.parametrize("statistic", [average, interquartile_mean])
def test_nothing_to_be_unsure_of(statistic) -> None:
    scores = by_hand({"R10": [YES, YES], "R20": [YES, YES]}, {"R10": [YES], "R20": [YES]})
    assert interval(scores, statistic) == Interval(1.0, 1.0, 1.0)
    assert interval(by_hand({"R10": [[2.5] * 7] * 3}), statistic) == Interval(2.5, 2.5, 2.5)


def test_the_tasks_of_a_group_are_drawn_with_the_same_seeds() -> None:
    # The seed that always succeeds on one task always fails on the other: drawn together they
    # cancel.
    opposite = by_hand({"R10": [YES, NO], "R20": [NO, YES]})
    assert interval(opposite, average) == Interval(0.5, 0.5, 0.5)
    apart = by_hand({"R10": [YES, NO]}, {"R10": [NO, YES]})
    assert interval(apart, average) == Interval(0.5, 0.0, 1.0)


def test_two_seeds_are_drawn_as_often_as_chance_has_it() -> None:
    drawn = average(statistics.resampled(by_hand({"R10": [YES, NO]}), 4000, 0))
    assert drawn.shape == (4000,)
    assert [np.mean(drawn == value) for value in (0.0, 0.5, 1.0)] == pytest.approx(
        [0.25, 0.5, 0.25], abs=0.03
    )


def test_seeds_of_the_same_mean_leave_no_interval_however_episodes_vary() -> None:
    # 10 of 20 and 5 of 20 successes: of the first seed the first ones, of each other one place
    # later.
    half, quarter = (
        [np.roll(np.arange(20) < count, seed) for seed in range(4)] for count in (10, 5)
    )
    scores = by_hand({"R10": half}, {"R20": quarter})
    assert statistics.episode_noise(scores) > 0.04
    assert interval(scores, average) == Interval(0.375, 0.375, 0.375)
    better = statistics.improvement_interval(by_hand({"R10": half}), by_hand({"R10": quarter}))
    assert better == Interval(1.0, 1.0, 1.0)


def test_a_drawn_seed_counts_with_its_recorded_mean() -> None:
    mixed = by_hand({"R10": [[True] * 2 + [False] * 18, [True] * 18 + [False] * 2]})
    drawn = statistics.resampled(mixed, 4000, 0).blocks[0].means[:, 0]
    assert drawn.shape == (4000, 2)
    assert set(drawn.ravel()) == {0.1, 0.9}
    assert np.mean(drawn == 0.1) == pytest.approx(0.5, abs=0.02)


def test_the_interval_of_three_seeds_by_hand() -> None:
    # Seeds 0, 3 and 6: all three draws are the lowest in 1 of 27, at most 1 on average in 4 of 27;
    # so are the highest.
    scores = by_hand({"R10": [[0.0], [3.0], [6.0]]})
    assert interval(scores, average) == Interval(3.0, 0.0, 6.0)  # 2.5 % are less than 1 of 27
    assert interval(scores, average, level=0.8) == Interval(
        3.0, 1.0, 5.0
    )  # 10 % lie between 1 and 4 of 27
    drawn = average(statistics.resampled(scores, 4000, 0))
    assert drawn.var() == pytest.approx(
        6 / 3, rel=0.1
    )  # the variance of the seeds, 6, over their number


def test_an_interval_follows_its_seed() -> None:
    scores = by_hand({"R10": [[value] for value in (0.0, 0.1, 0.35, 0.6, 1.0)]})
    assert interval(scores, average, seed=3) == interval(scores, average, seed=3)
    assert interval(scores, average, resamples=50, seed=3) != interval(
        scores, average, resamples=50, seed=4
    )


def test_the_noise_of_episodes_by_hand() -> None:
    # Means over seeds, R10: ½, 1, ½, 1 with a variance of 1/12 (unbiased), over 4 episodes; R20:
    # 1.5 and 4.5, 4.5, over 2. As if every seed had episodes of its own it would be √((1/3 + 0) /
    # 4) / 2 and √((8 + 2) / 2) / 2.
    scores = by_hand({"R10": [[0, 1, 0, 1], [1, 1, 1, 1]], "R20": [[0.0, 4.0], [3.0, 5.0]]})
    near, far = math.sqrt(1 / 12 / 4), math.sqrt(4.5 / 2)
    assert statistics.episode_noise(scores.only(split="ood")) == pytest.approx(far)
    assert statistics.episode_noise(scores) == pytest.approx(math.sqrt(near**2 + far**2) / 2)
    assert statistics.episode_noise(by_hand({"R10": [[1.0], [0.0]]})) == 0.0, (
        "one episode says nothing about it"
    )
    # However much seeds differ.
    assert statistics.episode_noise(by_hand({"R10": [YES, NO]})) == 0.0


def test_the_noise_of_episodes_is_the_spread_of_evaluations_done_again() -> None:
    """All seeds meet the same goals: a hard one, here a high draw, is hard for each."""
    generator = np.random.default_rng(0)
    rates = np.array([0.2, 0.5, 0.9])[:, None]
    again = [
        by_hand({task: generator.random((1, 50)) < rates for task in ("R10", "R20")})
        for _ in range(1000)
    ]
    spread = np.std([average(each) for each in again])
    assert np.mean([statistics.episode_noise(each) for each in again]) == pytest.approx(
        spread, rel=0.06
    )


def test_what_is_drawn_for_a_task_does_not_depend_on_the_split() -> None:
    half = [True] * 10 + [False] * 10
    scores = by_hand({"R10": [half, YES], "R20": [half, NO]}, {"R10": [half], "R20": [half]})
    together = statistics.resampled(scores, 100, 0).only(split="ood")
    alone = statistics.resampled(scores.only(split="ood"), 100, 0)
    for one, other in zip(together.blocks, alone.blocks, strict=True):
        np.testing.assert_array_equal(one.episodes["R20"], other.episodes["R20"])


def test_the_probability_of_improvement_by_hand() -> None:
    one = by_hand({"R10": [[0.0], [2.0]], "R20": [[1.0], [1.0]]})
    other = by_hand({"R10": [[1.0], [2.0], [3.0]], "R20": [[1.0], [0.0]]})
    # R10: 2 beats 1 and ties with 2, of six pairs; R20: two ties and two wins, of four.
    expected = ((1 + 0.5) / 6 + (2 + 2 * 0.5) / 4) / 2
    assert statistics.probability_of_improvement(one, other) == pytest.approx(expected)
    assert statistics.probability_of_improvement(other, one) == pytest.approx(1 - expected)
    assert statistics.probability_of_improvement(one, one) == pytest.approx(0.5)


def test_improvement_is_over_the_tasks_that_both_have() -> None:
    one = by_hand({"R10": [YES]}, {"R10": [NO]})
    other = by_hand({"R10": [NO], "R20": [YES]})
    assert statistics.improvement_interval(one, other) == Interval(1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="at least one"):
        statistics.probability_of_improvement(one, by_hand({"R20": [YES]}))


def test_resampling_does_not_pull_an_improvement_towards_one_half() -> None:
    # Distinct seeds, in percent: 19 of 25 pairs are won. With episodes drawn as well, close seeds
    # would often change places.
    one, other = ([51, 53, 55, 57, 59], [50, 52, 54, 56, 40])
    first, second = (
        by_hand({"R10": np.arange(100) < np.array(successes)[:, None]})
        for successes in (one, other)
    )
    point = statistics.probability_of_improvement(first, second)
    assert point == pytest.approx(19 / 25)
    drawn = statistics.resampled_improvement(first, second, 20_000)
    assert drawn.mean() == pytest.approx(point, abs=4 * drawn.std() / math.sqrt(20_000))


def test_one_half_is_exactly_that() -> None:
    # Three tasks with 0.4, 0.8 and 0.3, whose mean in floating point is a little more than one
    # half.
    def seeds(won: int) -> list[list[float]]:
        return [[1.0]] * won + [[-1.0]] * (10 - won)

    names = [EXPERT, NON_EXPERT, "pointreach-non-expert-50"]
    one = by_hand(*({"R10": seeds(won)} for won in (4, 8, 3)), names=names)
    other = by_hand(*[{"R10": [[0.0]]}] * 3, names=names)
    assert np.mean([0.4, 0.8, 0.3]) > 0.5
    assert statistics.probability_of_improvement(one, other) == 0.5


def test_both_sides_of_an_improvement_are_drawn_apart() -> None:
    # Against itself: with the same draws on both sides it would always be one half.
    scores = by_hand({"R10": [YES, NO, YES, NO]})
    found = statistics.improvement_interval(scores, scores)
    assert found.value == 0.5
    assert found.low < 0.3
    assert found.high > 0.7
    assert found == statistics.improvement_interval(scores, scores)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([1.0, 2.0, 3.0], [10.0, 20.0, 30.0], 1.0),
        ([3.0, 2.0, 1.0], [10.0, 20.0, 30.0], -1.0),
        ([1.0, 3.0, 2.0], [10.0, 20.0, 30.0], 0.5),
        ([1.0, 1.0, 2.0], [10.0, 20.0, 30.0], math.sqrt(3.0) / 2.0),
        ([0.3, 0.1 + 0.2, 2.0], [10.0, 20.0, 30.0], math.sqrt(3.0) / 2.0),  # equal but for rounding
        ([1.0, 1.0, 1.0], [10.0, 20.0, 30.0], math.nan),
        ([1.0, 2.0, 3.0], [10.0, 10.0, 10.0], math.nan),
        ([1.0], [2.0], math.nan),
    ],
)
def test_rank_correlation(ours: list, theirs: list, expected: float) -> None:
    assert statistics.rank_correlation(ours, theirs) == pytest.approx(expected, nan_ok=True)


def test_a_summary_in_percent_beside_the_papers_average() -> None:
    cells = [
        make_cell(REACH, {"Right": [[1, 1], [1, 0]], "Left": [[0, 0], [0, 1]]}),
        make_cell(PICK, {"Low": [[1, 1], [1, 1]], "High": [[0, 0], [1, 1]]}),
    ]
    iid, ood, everything = statistics.summary(ROBOTS, cells, "success")
    assert [(e.label, e.split, e.tasks, e.of, e.group) for e in (iid, ood, everything)] == [
        ("GOAT", "iid", 2, 9, ""),
        ("GOAT", "ood", 2, 17, ""),
        ("GOAT", "all", 4, 26, ""),
    ]
    assert (iid.mean, ood.mean, everything.mean) == pytest.approx((87.5, 37.5, 62.5))
    # The seeds' own averages: 100 and 75, 0 and 75, 50 and 75; the deviation is divided by the
    # number of seeds.
    assert (iid.std, ood.std, everything.std) == pytest.approx((12.5, 37.5, 12.5))
    assert (iid.paper, ood.paper) == pytest.approx(((100.0 + 99.8) / 2, (99.0 + 71.9) / 2))
    assert ood.iqm == pytest.approx((0 + 50) / 2)  # of 0, 0, 50, 100
    assert ood.interval.value == ood.mean
    # One seed of four varies, on one task of two: half of two episodes, whose variance is 1/2.
    assert ood.episode_noise == pytest.approx(100 * math.sqrt(0.5 / 2) / 2 / 2)
    assert 0.0 <= ood.interval.low < ood.mean < ood.interval.high <= 100.0
    assert statistics.summary(ROBOTS, cells, "return")[0].mean == pytest.approx(0.875)


def unlearned(cell: Cell) -> Cell:
    return dataclasses.replace(cell, config=dataclasses.replace(cell.config, updates=0))


def test_averages_as_shares_of_the_experts() -> None:
    expert = unlearned(make_cell(REACH, {"Right": [[1, 1]], "Left": [[1, 0]]}, "Expert"))
    cells = [make_cell(REACH, {"Right": [[1, 1], [1, 0]], "Left": [[0, 0], [0, 1]]}), expert]
    found = statistics.averages(ROBOTS, cells, "success")
    shares = {(each.label, each.split, each.group): each.share for each in found}
    assert shares["GOAT", "all", "Reach Left-Right"] == pytest.approx(100 * 50 / 75)
    assert shares["GOAT", "iid", ""] == pytest.approx(75)
    assert shares["GOAT", "ood", ""] == pytest.approx(50)
    assert not any(share for (label, _, _), share in shares.items() if label == "Expert")
    assert all(each.share is None for each in statistics.averages(ROBOTS, cells, "return"))
    alone = statistics.averages(ROBOTS, cells[:1], "success")
    assert all(each.share is None for each in alone), "there is no expert"


def test_a_share_is_of_the_same_tasks() -> None:
    """The expert is recorded for fewer groups."""
    cells = [
        make_cell(REACH, {"Right": [[1, 1]], "Left": [[0, 1]]}),
        make_cell(PICK, {"Low": [[1, 1]], "High": [[0, 0]]}),
        unlearned(make_cell(REACH, {"Right": [[1, 1]], "Left": [[1, 1]]}, "Expert")),
    ]
    found = statistics.averages(ROBOTS, cells, "success")
    shares = {(each.label, each.split, each.group): each.share for each in found}
    assert shares["GOAT", "all", "Reach Left-Right"] == pytest.approx(75)
    assert shares["GOAT", "ood", ""] is None


def test_a_summary_has_the_interval_of_the_same_tasks() -> None:
    cells = [make_cell(REACH, {"Right": [[1, 0, 1, 1]] * 2, "Left": [[0, 1, 1, 0], [0, 0, 0, 1]]})]
    ood = statistics.summary(ROBOTS, cells, "success")[1]
    alone = interval(statistics.scores(cells, "GOAT", split="ood"), average)
    assert (ood.interval.low, ood.interval.high) == pytest.approx(
        (100 * alone.low, 100 * alone.high)
    )


@pytest.mark.parametrize(
    ("label", "iid", "ood"),
    [
        ("GOAT(tau)", 91.2, 70.9),
        ("GOAT", 90.3, 67.9),
        ("BC", 59.5, 21.7),
        ("IQL+HER", 89.3, 60.0),
        ("MSG+HER", 68.5, 43.1),
    ],
)
def test_the_papers_averages_are_those_that_it_prints(label: str, iid: float, ood: float) -> None:
    cells = [
        make_cell(name, {task.name: [[1]] for task in tasks.get(name).tasks}, label)
        for name in ROBOTS.groups
    ]
    found = statistics.summary(ROBOTS, cells, "success")
    assert [each.tasks for each in found] == [each.of for each in found] == [9, 17, 26]
    assert [each.paper for each in found[:2]] == pytest.approx([iid, ood], abs=0.051)


def test_averages_of_groups() -> None:
    cells = [
        make_cell(REACH, {"Right": [[1, 1]], "Left": [[0, 1]]}),
        make_cell(
            PUSH,
            {"Right2Right": [[1]], "Right2Left": [[0]], "Left2Right": [[0]], "Left2Left": [[0]]},
        ),
    ]
    reach, push = (each for each in statistics.averages(ROBOTS, cells, "success") if each.group)
    assert (reach.group, reach.tasks, reach.of, reach.mean) == (
        "Reach Left-Right",
        2,
        2,
        pytest.approx(75.0),
    )
    assert (push.group, push.tasks, push.of, push.mean) == (
        "Push Left-Right",
        4,
        4,
        pytest.approx(25.0),
    )
    assert (reach.paper, push.paper) == pytest.approx(
        (99.5, 75.575)
    )  # the paper prints 99.5 and 75.6
    assert {reach.split, push.split} == {"all"}


def test_only_the_splits_that_exist() -> None:
    goat, her = ([cell for cell in CELLS if cell.label == label] for label in ("GOAT", "HER"))
    found = [
        *statistics.summary(POINTREACH, goat, "success"),
        *statistics.summary(POINTREACH, her, "success"),
    ]
    assert [(each.label, each.split, each.tasks) for each in found] == [
        ("GOAT", "ood", 2),
        ("GOAT", "all", 4),
        ("HER", "ood", 1),
        ("HER", "all", 2),
    ]
    assert found[0].mean == pytest.approx(0.625)  # a share, as the paper has it for PointReach
    assert found[0].paper == pytest.approx((0.48 + 0.69) / 2)
    assert math.isnan(found[0].std)  # two seeds on one dataset, one on the other
    assert found[3].std == 0.0


def test_seeds_of_other_numbers_are_not_averaged_with_each_other() -> None:
    one = {"R10": [[1], [0]], "R20": [[1], [0]]}
    same = [make_cell(EXPERT, one), make_cell(NON_EXPERT, one)]
    shifted = [make_cell(EXPERT, one), make_cell(NON_EXPERT, one, first_seed=5)]
    assert statistics.summary(POINTREACH, same, "success")[1].std == pytest.approx(0.5)
    assert math.isnan(statistics.summary(POINTREACH, shifted, "success")[1].std)


def test_what_the_paper_does_not_have() -> None:
    mine = [dataclasses.replace(CELLS[0], label="Mine")]
    assert {each.paper for each in statistics.summary(POINTREACH, mine, "success")} == {None}
    imbalanced = [make_cell("pointreach-imbalanced-expert-10", {"R10": [[1]], "R20": [[1]]})]
    assert {
        each.paper
        for each in statistics.averages(suites.get("pointreach-imbalanced"), imbalanced, "success")
    } == {None}


def test_columns_stand_in_the_suites_order_and_the_users_own_last() -> None:
    one = {"R10": [[1]], "R20": [[1]]}
    cells = [make_cell(EXPERT, one, label) for label in ("Mine", "HER", "Another", "GOAT")]
    found = statistics.summary(POINTREACH, cells, "success")
    assert list(dict.fromkeys(each.label for each in found)) == ["GOAT", "HER", "Mine", "Another"]


def test_only_groups_that_all_columns_have_are_compared() -> None:
    """GOAT(tau) alone has the second group: an average over it must not stand beside those over the
    first.
    """

    def cell(group: str, label: str) -> Cell:
        return made_by_hand(group, fake_rows(group), (0,), label)

    def over(cells: list[Cell]) -> list[tuple[str, str, int]]:
        return [
            (each.label, each.split, each.tasks)
            for each in statistics.summary(ROBOTS, cells, "success")
        ]

    first = [cell("reach-left-right", "GOAT"), cell("reach-left-right", "GOAT(tau)")]
    second, mine = cell("push-near-far", "GOAT(tau)"), cell("reach-near-far", "Mine")
    both = [
        (label, split, tasks)
        for label in ("GOAT(tau)", "GOAT")
        for split, tasks in (("iid", 1), ("ood", 1), ("all", 2))
    ]
    assert over([*first, second]) == both
    assert over([*first, second, mine]) == both, (
        "a user's own column on another group changes nothing"
    )
    assert over([first[0], second]) == [], "two columns without a common group"
    assert over([mine]) == [
        ("Mine", split, tasks) for split, tasks in (("iid", 1), ("ood", 1), ("all", 2))
    ]
    more = [cell("push-near-far", "GOAT"), second, cell("reach-near-far", "WGCSL")]
    assert over([*first, *more]) == [
        (label, split, tasks)
        for label in ("GOAT(tau)", "GOAT")
        for split, tasks in (("iid", 2), ("ood", 4), ("all", 6))
    ], "a column that has just begun takes no task from the others"
    groups = [
        each
        for each in statistics.averages(ROBOTS, [*first, second, mine], "success")
        if each.group
    ]
    assert [(each.label, each.group) for each in groups] == [
        ("GOAT(tau)", "Reach Left-Right"),
        ("GOAT(tau)", "Push Near-Far"),
        ("GOAT", "Reach Left-Right"),
        ("Mine", "Reach Near-Far"),
    ]


def test_what_is_drawn_depends_on_the_group_and_the_key_alone() -> None:
    seeds = {
        "R10": [[float(place)] for place in range(8)],
        "R20": [[float(place)] for place in range(8)],
    }
    drawn = statistics.resampled(by_hand(seeds), 50, 0).blocks[0].episodes
    np.testing.assert_array_equal(drawn["R10"], drawn["R20"])
    beside = statistics.resampled(
        by_hand(seeds, seeds, names=(NON_EXPERT, EXPERT), label="HER"), 50, 0
    ).blocks
    np.testing.assert_array_equal(beside[1].episodes["R10"], drawn["R10"])
    others = [
        beside[0],
        *(
            statistics.resampled(by_hand(seeds), 50, *key).blocks[0]
            for key in ((1,), (0, 1), (0, "GOAT"))
        ),
    ]
    assert not any(np.array_equal(other.episodes["R10"], drawn["R10"]) for other in others)


@pytest.mark.parametrize(
    "suite", [suite for suite in suites.SUITES if suite.averages], ids=lambda suite: suite.name
)
def test_the_papers_averages_are_of_the_suites_columns(suite: suites.Suite) -> None:
    published = paper.averages(suite.averages)
    labels = [column.label for column in suite.columns]
    assert {label for _, label in published} <= set(labels)
    assert {over for over, _ in published} <= {
        "iid",
        "ood",
        "all",
        *(tasks.get(name).label for name in suite.groups),
    }
    splits = {task.split for name in suite.groups for task in tasks.get(name).tasks}
    assert any(over == ("ood" if "ood" in splits else "iid") for over, _ in published)


def test_the_papers_average_stands_beside_a_whole_suite_only() -> None:
    suite = suites.get("ablation-drw")
    cells = [made_by_hand(name, fake_rows(name), (0,), "WGCSL+DRW") for name in suite.groups]
    whole = {each.split: each.paper for each in statistics.summary(suite, cells, "success")}
    assert whole == {"iid": 88.4, "ood": 59.5, "all": None}
    part = {each.split: each.paper for each in statistics.summary(suite, cells[1:], "success")}
    assert part == {"iid": None, "ood": None, "all": None}


def fake_rows(name: str) -> list[dict]:
    point = {
        "start": [0.0],
        "goal": [0.0],
        "path": None,
        "final_distance": 0.0,
        "return": 0,
        "episode": 0,
        "seed": 0,
    }
    return [
        point | {"task": task.name, "split": task.split, "success": True}
        for task in tasks.get(name).tasks
    ]
