"""The suites of fine-tuning: what their records say, and a whole one on a tiny schedule."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import PathCollection
from PIL import Image
from rich.console import Console

from goatrl import data as datasets
from goatrl import tasks
from goatrl.cli.bench import print_verdicts
from goatrl.cli.live_table import LiveTable
from goatrl.data.problems import Problem
from goatrl.disk import checksum
from goatrl.episodes import make_episodes
from goatrl.experiments import curves, estimate, experiment, finetuning, records
from goatrl.experiments.claims import Outcome
from goatrl.experiments.columns import Column
from goatrl.experiments.curves import NEVER, Curve
from goatrl.experiments.experiment import Progress
from goatrl.experiments.finetuning import SUITES
from goatrl.experiments.kinds import finetuning as kind
from goatrl.experiments.statistics import Interval
from goatrl.report import figures
from goatrl.report import finetuning as tuning
from goatrl.robots import Finetuning
from goatrl.runs import finetune
from goatrl.runs.offline import Run, configure
from goatrl.runs.online import OnlineRun
from goatrl.training.offline import Diverged
from goatrl.types import Episodes, GoatError
from helpers import goat, learning, made_by_hand, made_curve

pytestmark = pytest.mark.usefixtures("few_percentiles")

HELD, NOT_HELD = Outcome.HELD, Outcome.NOT_HELD
DDPG, OWN = SUITES["finetune-ddpg"], SUITES["finetune-own"]


def rates(*seeds: list[float]) -> np.ndarray:
    return np.array(seeds)


# Records


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    curve = made_curve("CQL+HER", learning(0.1, 0.8, 4))
    curves.write(tmp_path, curve)
    (found,) = curves.read_all(tmp_path)
    for field in dataclasses.fields(Curve):
        np.testing.assert_equal(getattr(found, field.name), getattr(curve, field.name))
    (path,) = tmp_path.iterdir()
    assert path.name == "finetune-ddpg--push-left-right--CQL+HER.parquet"
    assert path.stat().st_size < 10_000, "small enough for a repository"
    table = pq.read_table(path)
    assert table.column_names == ["suite", "group", "label", "seed", "steps", "success"]
    assert table.num_rows == 5 * 21
    about = json.loads(table.schema.metadata[b"goatrl"])
    assert about["config"] == curve.config
    assert about["versions"]["offline"]["goatrl"] == "0.1.0"


def test_two_kinds_of_records_share_a_folder(tmp_path: Path) -> None:
    curves.write(tmp_path, made_curve("GOAT", learning(0.1, 0.8, 4)))
    episode = {
        "task": "R10",
        "split": "mixed",
        "seed": 0,
        "episode": 0,
        "success": True,
        "return": 1,
        "final_distance": 0.0,
        "start": [0.0, 0.0],
        "goal": [1.0, 0.0],
    }
    records.add(tmp_path, made_by_hand("pointreach-expert-10", [episode], (0,)))
    assert len(curves.read_all(tmp_path)) == len(records.read_all(tmp_path)) == 1
    (tmp_path / "cut.parquet").write_bytes(b"PAR1")
    for read in (curves.read_all, records.read_all):
        with pytest.raises(GoatError, match=r"cut\.parquet is damaged"):
            read(tmp_path)


@pytest.mark.parametrize("missing", ["rows", "schema"])
def test_a_damaged_record_is_one_line(tmp_path: Path, missing: str) -> None:
    curve = made_curve("GOAT", learning(0.1, 0.8, 4))
    curves.write(tmp_path, curve)
    (path,) = tmp_path.iterdir()
    table = pq.read_table(path)
    about = checksum.without_place(json.loads(table.schema.metadata[b"goatrl"]))
    table = (
        table.slice(1).replace_schema_metadata({b"goatrl": json.dumps(about).encode()})
        if missing == "rows"
        else table.replace_schema_metadata({b"goatrl": b'{"kind": "curve", "schema": 3}'})
    )
    pq.write_table(table, path)
    with pytest.raises(
        GoatError,
        match="damaged or not a record" if missing == "rows" else "newer version of goatrl",
    ) as caught:
        curves.read_all(tmp_path)
    assert "\n" not in str(caught.value)


def test_any_label_is_a_file_name(tmp_path: Path) -> None:
    curves.write(tmp_path, made_curve("../a b/c", learning(0.1, 0.8, 4)))
    (path,) = tmp_path.iterdir()
    assert path.name == "finetune-ddpg--push-left-right--.._a_b_c.parquet"
    assert curves.read_all(tmp_path)[0].label == "../a b/c"


# Statistics


def test_when_a_level_is_reached() -> None:
    steps = np.array([0, 10, 20, 30])
    success = rates([0.1, 0.5, 0.3, 0.9], [0.6, 0.0, 0.0, 0.0], [0.0, 0.1, 0.2, 0.4])
    assert curves.first_reached(steps, success, 0.5).tolist() == [10, 0, NEVER]
    assert curves.first_reached(steps, success, np.array([0.6, 0.7, 0.4])).tolist() == [
        30,
        NEVER,
        30,
    ]
    flat = np.full((1, 4), 0.1)
    assert curves.first_reached(steps, flat, curves.final(flat)).tolist() == [0], (
        "a mean of equal numbers is not above them"
    )


def test_the_end_is_the_mean_of_the_last_three_evaluations() -> None:
    assert curves.final(rates([1.0, 0.1, 0.2, 0.6])).tolist() == pytest.approx([0.3])
    assert curves.final(rates([0.1, 0.2, 0.4])).tolist() == pytest.approx([0.3]), (
        "not of the one before the first episode"
    )
    assert curves.final(rates([0.2])).tolist() == pytest.approx([0.2]), "unless there is no other"


def test_intervals_are_over_seeds_and_always_the_same() -> None:
    curve = made_curve("GOAT", rates([0.0, 0.2], [1.0, 0.2]))
    drawn = curves.resampled(curve)
    np.testing.assert_array_equal(drawn, curves.resampled(curve))
    assert set(drawn[:, 0]) == {0.0, 0.5, 1.0}
    assert (drawn[:, 0] == 0.5).mean() == pytest.approx(0.5, abs=0.05)
    low, high = curves.bounds(drawn)
    assert (low.tolist(), high.tolist()) == ([0.0, 0.2], [1.0, 0.2])
    alone = made_curve("GOAT", rates([0.3, 0.7]))
    for end in curves.bounds(curves.resampled(alone)):
        np.testing.assert_array_equal(end, alone.mean)
    other = dataclasses.replace(curve, group="pick-left-right")
    assert not np.array_equal(drawn, curves.resampled(other))


def some_curves(goat: np.ndarray, random: np.ndarray, suite: str = "finetune-ddpg") -> list[Curve]:
    return [made_curve("GOAT", goat, suite, every=10), made_curve("random", random, every=10)]


def test_standings_by_hand() -> None:
    found = some_curves(
        rates([0.1, 0.6, 0.6, 0.9, 0.9, 0.9], [0.1, 0.2, 0.6, 0.5, 0.1, 0.3]),
        rates([0.0, 0.0, 0.2, 0.5, 0.5, 0.5], [0.0, 0.1, 0.2, 0.3, 0.7, 0.5]),
    )
    goat, random = curves.summaries(found, curves.references(found))
    assert goat.level == random.level == pytest.approx(0.5)
    assert goat.start == Interval(0.1, 0.1, 0.1)
    assert goat.final.value == pytest.approx(0.6)
    assert (goat.final.low, goat.final.high) == (pytest.approx(0.3), pytest.approx(0.9))
    assert goat.steps.value == 20, "the mean curve is at 0.4, then at 0.6"
    assert goat.each == (10, 20)
    assert random.steps.value == 40
    assert random.each == (30, 40)
    assert goat.steps.low == 10
    assert 20 <= goat.steps.high <= NEVER


def test_a_level_that_only_some_seeds_reach() -> None:
    found = some_curves(
        rates([0.1, 0.2, 0.2, 0.2], [0.1, 0.9, 0.9, 0.9]),
        rates([0.3, 0.5, 0.5, 0.5], [0.3, 0.5, 0.5, 0.5]),
    )
    goat, _ = curves.summaries(found, curves.references(found))
    assert goat.each == (NEVER, 10)
    assert goat.steps == Interval(10, 10, NEVER), (
        "in a quarter of the resamples there is no second seed"
    )
    assert curves.span(goat.steps) == "10 [10–never]"


def test_without_random_networks_there_is_no_level() -> None:
    goat, random = some_curves(learning(0.2, 0.9, 3), learning(0.1, 0.5, 3))
    for reference in (
        {},
        {"pick-left-right": random},
        {goat.group: dataclasses.replace(random, steps=2 * random.steps)},
        {goat.group: dataclasses.replace(random, config={**random.config, "evaluation": "other"})},
    ):
        (found,) = curves.summaries([goat], reference)
        assert (found.level, found.steps, found.each) == (None, None, ())


# Claims


@pytest.mark.parametrize(
    ("goat", "outcome", "numbers"),
    [
        ([0.2, 0.6, 0.6, 0.6], HELD, "GOAT 10 [10–10], random 20 [20–20]; holds in 100 %"),
        ([0.2, 0.3, 0.6, 0.6], NOT_HELD, "GOAT 20 [20–20], random 20 [20–20]; holds in 0 %"),
        (
            [0.2, 0.3, 0.3, 0.3],
            NOT_HELD,
            "GOAT never [never–never], random 20 [20–20]; holds in 0 %",
        ),
    ],
)
def test_goat_before_random(
    goat: list[float], outcome: Outcome, numbers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = some_curves(rates(goat, goat), rates([0.1, 0.2, 0.6, 0.7], [0.1, 0.2, 0.6, 0.7]))
    first, second, *others = finetuning.check(DDPG, found)
    assert first.claim == f"Push Left-Right: {finetuning.FASTER}"
    assert first.outcome == outcome
    ends = f"random ends at 50.0 %, GOAT at {100 * np.mean(goat[1:]):.1f} %"
    assert first.evidence == f"{ends}; environment steps to get there: {numbers} of resamples"
    print_verdicts([first])
    assert (
        " ".join(capsys.readouterr().out.split()) == f"{outcome}: {first.claim} ({first.evidence})"
    )
    assert second.claim.startswith("Pick Left-Right")
    assert second.outcome == Outcome.NOT_CHECKED, "nothing is recorded of it"
    assert [each.outcome for each in others] == [Outcome.NOT_CHECKED] * 4, "they need all agents"


@pytest.mark.parametrize(("best", "outcome"), [("GOAT", HELD), ("GCSL", NOT_HELD)])
def test_goat_above_all_others_that_go_on_by_themselves(best: str, outcome: Outcome) -> None:
    ends = {column.label: 0.9 if column.label == best else 0.6 for column in OWN.columns}
    found = [
        made_curve(label, agreed([0.2, end, end, end]), "finetune-own")
        for label, end in ends.items()
    ]
    random = made_curve("random", agreed([0.1, 0.2, 0.3, 0.4]))
    verdicts = {verdict.claim: verdict for verdict in finetuning.check(OWN, [*found, random])}
    assert verdicts[f"Push Left-Right: {finetuning.FASTER}"].outcome == HELD, (
        "beside the random networks of the other suite"
    )
    verdict = verdicts[f"Push Left-Right: {finetuning.HIGHEST}"]
    assert verdict.outcome == outcome
    assert f"{best} 90.0 % [90.0–90.0]" in verdict.evidence
    assert verdicts[f"Push Left-Right: {finetuning.OFF_POLICY}"].outcome == Outcome.NOT_CHECKED, (
        "nothing of the other suite is recorded"
    )
    assert [v.outcome for v in finetuning.check(OWN, found[1:])] == [Outcome.NOT_CHECKED] * 6


def test_a_single_seed_decides_nothing() -> None:
    course = rates([0.2, 0.9, 0.9, 0.9])
    random = made_curve("random", agreed([0.1, 0.2, 0.3, 0.4]))
    verdict = evaluated(DDPG, finetuning.FASTER, [made_curve("GOAT", course), random])
    assert verdict.outcome == Outcome.UNDECIDED
    assert verdict.evidence.endswith("; a single seed decides nothing")
    of_two = [made_curve("GOAT", agreed([0.2, 0.9, 0.9, 0.9])), random]
    assert evaluated(DDPG, finetuning.FASTER, of_two).outcome == HELD
    assert (
        evaluated(DDPG, finetuning.FASTER, [*of_two, made_curve("Mine", course)]).outcome == HELD
    ), "not of the suite"
    assert (
        evaluated(DDPG, finetuning.FASTER, [*of_two, made_curve("GCSL", course)]).outcome == HELD
    ), "not of this claim"


def agreed(course: list[float]) -> np.ndarray:
    """Two seeds that are the same."""
    return rates(course, course)


def evaluated(
    suite: finetuning.FinetuningSuite, claim: str, found: list[Curve]
) -> finetuning.Verdict:
    return next(
        verdict
        for verdict in finetuning.check(suite, found)
        if verdict.claim == f"Push Left-Right: {claim}"
    )


@pytest.mark.parametrize(
    ("slow", "outcome"), [(("GCSL", "CQL+HER"), HELD), (("GCSL", "CQL+HER", "WGCSL"), NOT_HELD)]
)
def test_most_agents_before_random(slow: tuple[str, ...], outcome: Outcome) -> None:
    random = made_curve("random", agreed([0.1, 0.2, 0.6, 0.7]))
    labels = [column.label for column in DDPG.columns if column.label != "random"]
    courses = {
        label: [0.2, 0.2, 0.2, 0.6] if label in slow else [0.2, 0.6, 0.6, 0.6] for label in labels
    }
    found = [random, *(made_curve(label, agreed(course)) for label, course in courses.items())]
    verdict = evaluated(DDPG, finetuning.MOST, found)
    assert verdict.outcome == outcome
    assert verdict.evidence.startswith("environment steps: GOAT 9,800 [9,800–9,800], WGCSL ")
    assert verdict.evidence.endswith(
        "GCSL 29,400 [29,400–29,400], random 19,600 [19,600–19,600]; holds in "
        f"{100 if outcome == HELD else 0} % of resamples"
    )
    assert evaluated(DDPG, finetuning.MOST, found[1:]).outcome == Outcome.NOT_CHECKED


def test_goat_over_the_whole_run() -> None:
    ends_low = made_curve("GOAT", agreed([0.8, 0.8, 0.8, 0.4]))  # 70 % of all evaluations
    others = [
        made_curve(column.label, agreed([0.2, 0.8, 0.8, 0.9])) for column in DDPG.columns[1:]
    ]  # 67.5 %
    verdict = evaluated(DDPG, finetuning.LEADS, [ends_low, *others])
    assert verdict.outcome == HELD
    assert verdict.evidence.startswith("GOAT 70.0 % [70.0–70.0], WGCSL 67.5 % [67.5–67.5]")
    assert "random" not in verdict.evidence
    ends_higher = made_curve("GOAT", agreed([0.2, 0.8, 0.8, 0.8]))
    assert evaluated(DDPG, finetuning.LEADS, [ends_higher, *others]).outcome == NOT_HELD
    longer = made_curve("GOAT", agreed([0.8, 0.8, 0.8, 0.8, 0.8]))
    assert evaluated(DDPG, finetuning.LEADS, [longer, *others]).outcome == Outcome.NOT_CHECKED, (
        "not evaluated at the same steps"
    )


@pytest.mark.parametrize(("gcsl", "outcome"), [(0.5, HELD), (0.4, NOT_HELD), (0.3, NOT_HELD)])
def test_by_ddpg_and_by_their_own_algorithm(gcsl: float, outcome: Outcome) -> None:
    own = [made_curve(column.label, agreed([0.4, 0.4]), "finetune-own") for column in OWN.columns]
    by_ddpg = [
        made_curve(column.label, agreed([gcsl if column.label == "GCSL" else 0.5] * 2))
        for column in OWN.columns
    ]
    verdict = evaluated(OWN, finetuning.OFF_POLICY, [*own, *by_ddpg])
    assert verdict.outcome == outcome
    same, mine = (
        "50.0 % [50.0–50.0] and 40.0 % [40.0–40.0]",
        f"{100 * gcsl:.1f} % [{100 * gcsl:.1f}–{100 * gcsl:.1f}]",
    )
    assert verdict.evidence == (
        f"by DDPG+HER and by its own: GOAT {same}, WGCSL {same}, MARWIL+HER {same}, GCSL {mine} "
        "and 40.0 % [40.0–40.0]; "
        f"holds in {100 if outcome == HELD else 0} % of resamples"
    )
    longer = [made_curve(column.label, agreed([0.5] * 3)) for column in OWN.columns]
    assert evaluated(OWN, finetuning.OFF_POLICY, [*own, *longer]).outcome == Outcome.NOT_CHECKED, (
        "not evaluated at the same steps"
    )


def test_seeds_that_disagree_decide_nothing() -> None:
    """Half of GOAT's seeds learn, half do not: in 6 % of the resamples of four all fail, in 31 % at
    most one learns.
    """
    learns, fails, random = [0.2, 0.9, 0.9, 0.9], [0.2, 0.2, 0.2, 0.2], [0.1, 0.3, 0.4, 0.5]
    goat, steady = rates(learns, learns, fails, fails), rates(*[[0.2, 0.5, 0.5, 0.5]] * 4)
    agents = [
        made_curve(column.label, goat if column.label == "GOAT" else steady)
        for column in DDPG.columns[:-1]
    ]
    found = [*agents, made_curve("random", rates(*[random] * 4))]
    drawn = curves.overall(curves.resampled(agents[0]))
    share = np.mean(drawn > np.mean([0.2, 0.5, 0.5, 0.5]) + 1e-9)
    assert share == pytest.approx(11 / 16, abs=0.04)
    verdict = evaluated(DDPG, finetuning.LEADS, found)
    assert verdict.outcome == Outcome.UNDECIDED
    assert verdict.evidence.endswith(
        f"GCSL in {100 * share:.0f} %; holds in {100 * share:.0f} % of resamples"
    )
    assert verdict.evidence.startswith("GOAT 46.2 % [20.0–72.5], WGCSL 42.5 % [42.5–42.5]")
    assert evaluated(DDPG, finetuning.FASTER, found).outcome == Outcome.UNDECIDED
    assert evaluated(DDPG, finetuning.MOST, found).outcome == HELD, (
        "the four others are faster in all resamples"
    )
    own = [
        made_curve(
            column.label, steady if column.label == "GOAT" else agreed(fails), "finetune-own"
        )
        for column in OWN.columns
    ]
    assert evaluated(OWN, finetuning.OFF_POLICY, [*own, *found]).outcome == Outcome.UNDECIDED
    assert evaluated(OWN, finetuning.HIGHEST, own).outcome == HELD


# Suites


def test_the_paper_experiments() -> None:
    assert [column.label for column in DDPG.columns] == [
        "GOAT",
        "WGCSL",
        "CQL+HER",
        "MARWIL+HER",
        "GCSL",
        "random",
    ]
    assert [column.label for column in OWN.columns] == ["GOAT", "WGCSL", "MARWIL+HER", "GCSL"]
    assert (DDPG.by, OWN.by) == ("ddpg_her", "own")
    assert DDPG.groups == OWN.groups == ("push-left-right", "pick-left-right")


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
@pytest.mark.parametrize("group", DDPG.groups)
def test_every_curve_can_be_planned_before_anything_is_trained(
    suite: finetuning.FinetuningSuite, group: str
) -> None:
    for column in suite.columns:
        if column.algorithm != curves.RANDOM:
            config = configure(column.algorithm, small_problem(group), seeds=(0, 1))
            about = finetune.describe(config, suite.by)
            assert (about["episodes"], about["by"], about["from"]["algorithm"]) == (
                4_000,
                suite.by,
                column.algorithm,
            )


def small_problem(group: str) -> Problem:
    spec = tasks.get(group).spec
    shapes = [
        (3, 11, spec.observation_dim),
        (3, 11, spec.goal_dim),
        (3, 10, spec.action_dim),
        (3, spec.goal_dim),
    ]
    episodes = make_episodes(*(np.random.default_rng(0).uniform(-1, 1, shape) for shape in shapes))
    return Problem(episodes, episodes.spec(0.05), tasks.get(group).settings, tasks.get(group))


# Tables and figures


def test_tables(tmp_path: Path) -> None:
    found = some_curves(
        rates([0.1, 0.2, 0.2, 0.2], [0.1, 0.9, 0.9, 0.9]),
        rates([0.3, 0.5, 0.5, 0.5], [0.3, 0.5, 0.5, 0.5]),
    )
    random = curves.references(found)
    standings = curves.summaries(found, random)
    text = tuning.markdown(DDPG, standings, finetuning.check(DDPG, found))
    assert "## Push Left-Right: random ends at 50.0 %" in text
    assert "| GOAT | 10.0 | 55.0 [20.0–90.0] | 10 [10–never] | 1 of 2 |" in text
    assert "- **not held**: Push Left-Right: GOAT's" in text
    assert "- **not checked**: Pick Left-Right" in text
    rows = list(csv.DictReader(tuning.to_csv(found, standings).splitlines()))
    assert [(row["label"], row["seed"]) for row in rows] == list(
        itertools.product(["GOAT", "random"], ["mean", "0", "1"])
    )
    assert [row["steps"] for row in rows] == ["10", "", "10", "10", "10", "10"]
    assert (
        rows[0]
        | {"steps_high": "", "final": "0.5500", "final_high": "0.9000", "random_final": "0.5000"}
        == rows[0]
    )
    assert "random is not recorded" in tuning.markdown(DDPG, curves.summaries(found[:1], {}), [])


def test_the_table_fits_a_terminal() -> None:
    found = [*all_curves(DDPG), made_curve("Mine", rates([0.0] * 21))]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(tuning.terminal(curves.summaries(found, curves.references(found))))
    shown = console.export_text()
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    assert "never [never–never]  0 of 1" in shown
    assert re.search(
        r"MARWIL\+HER +\d+\.\d +\d+\.\d \[\d+\.\d–\d+\.\d\] +[\d,]+ \[[\d,]+–[\d,]+\] +5 of 5",
        shown,
    )


def all_curves(suite: finetuning.FinetuningSuite) -> list[Curve]:
    return [
        made_curve(
            column.label,
            learning(0.3 - 0.05 * place, 0.9 - 0.1 * place, 3 + place, seed=place),
            suite.name,
            group,
        )
        for group in suite.groups
        for place, column in enumerate(suite.columns)
    ]


def test_the_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for curve in all_curves(DDPG) + all_curves(OWN):
        curves.write(tmp_path / "records", curve)
    for name in ("one.pdf", "one.svg", "again.svg", "one.png", "own.png"):
        suite = "finetune-own" if name == "own.png" else "finetune-ddpg"
        assert (
            goat(
                "figure",
                "finetune",
                tmp_path / "records",
                "--suite",
                suite,
                "--out",
                tmp_path / name,
            )
            == 0
        )
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "again.svg").read_bytes()
    assert (tmp_path / "one.pdf").read_bytes().startswith(b"%PDF")
    with Image.open(tmp_path / "one.png") as wide, Image.open(tmp_path / "own.png") as other:
        assert min(wide.width, other.width) > 800
        assert len(np.unique(np.asarray(wide.convert("L")))) > 50


def test_lines_bands_rings_and_names() -> None:
    found = all_curves(DDPG)
    panels = {group: [curve for curve in found if curve.group == group] for group in DDPG.groups}
    drawn = figures.finetuning(
        panels, curves.references(found), tuning.tones(curve.label for curve in found)
    )
    for axis, mine in zip(drawn.axes, panels.values(), strict=True):
        lines = {
            line.get_label(): line for line in axis.lines if not line.get_label().startswith("_")
        }
        assert list(lines) == [curve.label for curve in mine]
        for curve in mine:
            np.testing.assert_allclose(lines[curve.label].get_ydata(), 100 * curve.mean)
            np.testing.assert_allclose(lines[curve.label].get_xdata(), curve.steps / 1_000)
        assert lines["GOAT"].get_color() == figures.PALETTE[0]
        assert {text.get_text() for text in axis.texts} == set(lines)
        there = [
            each
            for each in curves.summaries(mine, curves.references(found))
            if each.steps.value < NEVER
        ]
        rings = [drawn for drawn in axis.collections if isinstance(drawn, PathCollection)]
        assert [float(ring.get_offsets()[0, 0]) for ring in rings] == [
            each.steps.value / 1_000 for each in there
        ]


def test_the_same_algorithm_has_the_same_colour_everywhere() -> None:
    assert tuning.tones(["GOAT", "Mine", "GCSL", "Other"]) == {
        "GOAT": 0,
        "Mine": 6,
        "GCSL": 5,
        "Other": 7,
    }
    assert len(set(tuning.TONES.values())) == len(tuning.TONES)


@given(st.lists(st.integers(0, 1_000).map(lambda tenths: tenths / 10), min_size=1, max_size=12))
def test_names_never_cover_each_other(heights: list[float]) -> None:
    places = figures.apart(sorted(heights), 7.0, 100.0)
    assert max(places) <= 100
    assert all(after - before >= 7 - 1e-9 for before, after in itertools.pairwise(places))
    if all(after - before >= 7 for before, after in itertools.pairwise(sorted(heights))):
        assert places == sorted(heights), "those that are apart stay where they are"


# The command


SMALL = "reach-left-right"
EPISODES = 8  # two rounds
QUICK = Column("GOAT", "gcsl")


def bench(*arguments: object, suite: str = "finetune-ddpg") -> int:
    return goat(
        "bench",
        suite,
        "--data",
        f"{SMALL}=small.npz",
        "--seeds",
        2,
        "--updates",
        20,
        "--out",
        "out",
        *arguments,
    )


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both suites on Reach, with next to no data and very little to do; an imitator, which compiles
    soon, in GOAT's place.
    """
    monkeypatch.chdir(tmp_path)
    for name, columns in (("finetune-ddpg", (QUICK, DDPG.columns[-1])), ("finetune-own", (QUICK,))):
        suite = dataclasses.replace(SUITES[name], groups=(SMALL,), columns=columns)
        monkeypatch.setitem(SUITES, name, suite)
        monkeypatch.setitem(experiment._EXPERIMENTS, name, kind.Finetuning(suite))
    recipe = Finetuning(5, batch_size=8, round=4, evaluate_every=1, evaluated_episodes=4)
    monkeypatch.setitem(vars(tasks.get(SMALL).family), "finetuning", recipe)
    episodes: Episodes = small_problem(SMALL).episodes
    datasets.save(episodes, Path("small.npz"))


def files() -> dict[Path, int]:
    """All but the tables, and when each was written."""
    found = [
        path
        for path in Path("out").rglob("*")
        if path.is_file() and path.suffix not in (".md", ".csv")
    ]
    return {path: path.stat().st_mtime_ns for path in found}


def forbidden(*arguments: object, **named: object) -> None:
    raise AssertionError("this is done already")


def test_a_suite_from_beginning_to_end(
    small: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ("--episodes", EPISODES)
    # Stopped while GOAT goes on online: its offline run is there, and is not trained again.
    shown: Callable[..., None] = LiveTable.show

    def stop(screen: LiveTable, progress: Progress) -> None:
        shown(screen, progress)
        if progress.what == "fine-tuning" and progress.done == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LiveTable, "show", stop)
        assert bench(*chosen) == 130
    told = capsys.readouterr()
    assert "finetune-ddpg: 2 curves of 2 seeds, 2 to run, records in out" in told.out
    assert "expected to take about" in told.out
    assert "rerun the command to resume" in told.err
    assert not list(Path("out").glob("*.parquet"))
    with monkeypatch.context() as patch:
        patch.setattr(Run, "train", forbidden)
        assert bench(*chosen) == 0
    printed = capsys.readouterr().out
    assert "reach-left-right, GOAT:" in printed
    assert "wrote finetune-ddpg.md, finetune-ddpg.csv to out" in printed
    assert any(
        f"{word}: Reach Left-Right: {finetuning.FASTER}" in " ".join(printed.split())
        for word in ("held", "undecided", "not held")
    )

    assert {str(path.relative_to("out").parent) for path in files()} == {
        ".",
        "offline/reach-left-right--gcsl",
        "finetune-ddpg/reach-left-right--GOAT",
        "finetune-ddpg/reach-left-right--random",
    }
    found = {curve.label: curve for curve in curves.read_all(Path("out"))}
    for label, curve in found.items():
        run = OnlineRun(Path("out/finetune-ddpg") / f"reach-left-right--{label}")
        assert curve.steps.tolist() == [0, 4 * 49, 8 * 49]
        assert [
            list(zip(curve.steps.tolist(), row, strict=True)) for row in curve.success.tolist()
        ] == list(run.curves().values())
        assert json.loads(run.config_path.read_text())["config"] == curve.config
    assert set(found["GOAT"].versions) == {"offline", "online"}
    assert set(found["random"].versions) == {"online"}

    # What is recorded is not run again, and does not need the runs.
    for name in ("offline", "finetune-ddpg"):
        (Path("out") / name).rename(f"elsewhere-{name}")
    before = files()
    with monkeypatch.context() as patch:
        patch.setattr(finetuning, "_run", forbidden)
        assert bench(*chosen) == 0
    assert "2 curves of 2 seeds, 0 to run" in capsys.readouterr().out
    assert files() == before
    for name in ("offline", "finetune-ddpg"):
        Path(f"elsewhere-{name}").rename(Path("out") / name)
    before = files()

    # Another configuration is refused, whatever it differs in.
    for other, message in (
        (
            (*chosen[:-1], 4),
            "another configuration (differs in episodes, schedule.capacity); add --episodes",
        ),
        (
            (*chosen, "--updates", 40),
            "another configuration (differs in from.updates)",
        ),
        ((*chosen, "--seeds", 3), "another configuration (differs in seeds)"),
        (("--algorithms", "bc", "gcsl", *chosen, "--updates", 40), "differs in from"),
    ):
        assert bench(*other) == 2
        assert message in capsys.readouterr().err
    assert files() == before

    # The other suite shares the offline runs, and random networks to compare with.
    with monkeypatch.context() as patch:
        patch.setattr(Run, "train", forbidden)
        assert bench(*chosen, suite="finetune-own") == 0
    level = curves.final(found["random"].mean)
    assert f"random ends at {100 * level:.1f} %" in Path("out/finetune-own.md").read_text()
    assert goat("report", "out") == 0
    assert (
        "goat bench finetune-own --seeds 2 --updates 20 --episodes 8"
        in Path("report.html").read_text()
    )


def test_what_diverges_stops_no_other_curve(
    small: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(cell: finetuning.PlannedCurve, folder: Path, on_progress: object) -> None:
        if cell.label == "GOAT":
            raise Diverged("training diverged: policy_loss of seed 0 is not finite at update 3")
        curves.write(folder, made_curve(cell.label, learning(0.1, 0.5, 3), group=SMALL))

    monkeypatch.setattr(finetuning, "_run", run)
    assert bench() == 1
    told = capsys.readouterr()
    assert "random ends at" in told.out
    assert (
        told.err.strip()
        == "goat: GOAT on Reach Left-Right: training diverged: policy_loss of seed 0 is not "
        "finite at update 3"
    )
    assert [curve.label for curve in curves.read_all(Path("out"))] == ["random"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bench", "finetune-dpg"], "unknown suite 'finetune-dpg'; did you mean finetune-ddpg"),
        (
            ["bench", "finetune-ddpg", "--groups", "push-left"],
            "unknown group of finetune-ddpg 'push-left'",
        ),
        (
            ["bench", "finetune-ddpg", "--algorithms", "gaot"],
            "unknown algorithm 'gaot'; did you mean goat",
        ),
        (["bench", "finetune-own", "--algorithms", "random"], "unknown algorithm 'random'"),
        (["bench", "finetune-ddpg", "--algorithms", "random", "--seeds", "0"], "at least one seed"),
        (
            ["bench", "finetune-ddpg", "--algorithms", "random", "--episodes", "10"],
            "multiple of 8",
        ),
        (
            ["bench", "pointreach", "--episodes", "8"],
            "does not take --episodes",
        ),
        (["figure", "finetune", ".", "--out", "x.png"], "no records of suite finetune-ddpg in ."),
        (
            ["figure", "finetune", ".", "--suite", "paper", "--out", "x.png"],
            "unknown fine-tuning suite 'paper'",
        ),
    ],
)
def test_errors_are_one_helpful_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert goat(*arguments) == 2
    text = capsys.readouterr().err.strip()
    assert message in text
    assert "\n" not in text
    assert not list(tmp_path.iterdir())


def test_values_without_actions_are_refused_before_training(
    small: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench("--algorithms", "goat_v") == 2
    assert "Q(s, a, g), while goat_v learns V(s, g); " in capsys.readouterr().err
    assert not Path("out").exists()


def test_the_suites_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert goat("list") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in SUITES)


def test_more_work_takes_longer(small: None) -> None:
    def seconds(*, seeds: int = 2, episodes: int = EPISODES, labels: int = 2) -> float:
        columns = SUITES["finetune-ddpg"].columns[:labels]
        data = {SMALL: Path("small.npz")}
        planned = finetuning.plan(
            SUITES["finetune-ddpg"],
            Path("out"),
            seeds=seeds,
            columns=columns,
            data=data,
            episodes=episodes,
        )
        return estimate.finetuning_seconds(planned)

    assert seconds(labels=1) < seconds() < seconds(episodes=400) < seconds(episodes=400, seeds=5)
