"""Runs beside each other: what differs, and the numbers, computed by hand."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from goatrl import data as datasets
from goatrl.data.problems import open_problem
from goatrl.disk import checkpoint
from goatrl.experiments import comparison
from goatrl.report import comparison as shown
from goatrl.report import figures
from goatrl.types import Episodes, GoatError
from helpers import made_run, point_episodes

GROUP = "pointreach-expert-10"
FIRST = {"R10": [[1, 0], [1, 1]], "R20": [[0, 0], [1, 0]]}
SECOND = {"R10": [[1, 1], [1, 1]], "R20": [[1, 1], [0, 1]]}


def evaluated(folder: Path, table: pa.Table, **changes) -> comparison.EvaluatedRun:
    made_run(folder, table, **{"group": GROUP, **changes})
    return comparison.read(folder)


def triple(found) -> tuple[float, ...]:
    return tuple(round(number, 6) for number in dataclasses.astuple(found))


def test_the_numbers_are_those_computed_by_hand(tmp_path: Path) -> None:
    """Of two seeds that are drawn twice, a quarter of all draws has both times the one: so an
    interval reaches from the lower seed to the higher.
    """
    first = evaluated(tmp_path / "a", point_episodes(FIRST), overrides={"discount": 0.9})
    second = evaluated(tmp_path / "b", point_episodes(SECOND), overrides={"discount": 0.95})
    found = comparison.compare([first, second])
    assert (found.columns, found.notes, found.episodes) == (("discount",), (), 16)
    assert [place.title for place in found.places] == ["mixed (R10)", "OOD (R20)"]
    one, two = found.rows
    assert (one.differs, two.differs) == ({"discount": "0.9"}, {"discount": "0.95"})
    assert triple(one.places["mixed (R10)"].success) == (0.75, 0.5, 1.0)
    assert triple(one.places["OOD (R20)"].success) == (0.25, 0.0, 0.5)
    assert triple(two.places["OOD (R20)"].success) == (0.75, 0.5, 1.0)
    assert triple(two.places["OOD (R20)"].returns) == (7.5, 5.0, 10.0)
    assert triple(one.overall.success) == (0.5, 0.25, 0.75)
    assert one.overall.improvement is None
    # On R10 seeds of 1 and 1 against 0.5 and 1: a win, a tie, and both again. On R20 1 and 0.5
    # against 0 and 0.5: three wins and a tie.
    assert triple(two.places["mixed (R10)"].improvement) == (0.75, 0.5, 1.0)
    assert two.places["OOD (R20)"].improvement.value == pytest.approx(0.875)
    assert two.overall.improvement.value == pytest.approx((0.75 + 0.875) / 2)
    table = list(csv.DictReader(shown.to_csv(found).splitlines()))
    assert [row["tasks"] for row in table[:5]] == ["mixed (R10)", "OOD (R20)", "R10", "R20", "all"]
    assert (table[0]["run"], table[0]["discount"], table[0]["seeds"]) == (
        str(tmp_path / "a"),
        "0.9",
        "2",
    )
    assert (table[0]["better"], table[9]["better"]) == ("", "0.8125")
    assert (table[6]["return"], table[6]["return_low"]) == ("7.5000", "5.0000")


def test_splits_of_several_tasks_are_averages_over_tasks() -> None:
    places = comparison._places({"A": "ood", "B": "iid", "C": "ood", "own/World-v0": None})
    assert [(place.title, place.tasks) for place in places] == [
        ("IID (B)", ("B",)),
        ("OOD (2 tasks)", ("A", "C")),
        ("own/World-v0", ("own/World-v0",)),
    ]


def test_the_table_in_a_terminal(tmp_path: Path) -> None:
    runs = [
        evaluated(tmp_path / "a", point_episodes(FIRST), overrides={"discount": 0.9}),
        evaluated(
            tmp_path / "b", point_episodes({task: each[:1] for task, each in SECOND.items()})
        ),
    ]
    found = comparison.compare([dataclasses.replace(run, name=run.name[-1]) for run in runs])
    console = Console(width=100)
    with console.capture() as captured:
        (drawn,) = shown.terminal(found, 100)
        console.print(drawn)
    lines = [line.split() for line in captured.get().splitlines()]
    assert ["a", "0.9", "2", "0.75", "7.5", "0.25", "2.5"] in lines
    assert ["0.50–1.00", "5.0–10.0", "0.00–0.50", "0.0–5.0"] in lines
    assert lines[-1] == ["b", "0.98", "1", "1.00", "10.0", "1.00", "10.0", "0.88"], (
        "a single seed has no interval"
    )
    assert shown.key(found).startswith("mean over tasks, below it its 95 % interval, 1 to 2 seeds;")
    last = list(csv.DictReader(shown.to_csv(found).splitlines()))[-1]
    assert (last["success_low"], last["better"], last["better_low"]) == ("", "0.8750", "")


def test_what_differs_is_a_table_of_its_own_in_a_narrow_terminal(tmp_path: Path) -> None:
    many = {"discount": 0.9, "learning_rate": 0.001, "polyak": 0.9}
    runs = [
        evaluated(tmp_path / "a", point_episodes(FIRST), overrides=many),
        evaluated(tmp_path / "b", point_episodes(SECOND)),
    ]
    found = comparison.compare([dataclasses.replace(run, name=run.name[-1]) for run in runs])
    console = Console(width=70)
    with console.capture() as captured:
        for drawn in shown.terminal(found, 70):
            console.print(drawn)
    lines = [line.split() for line in captured.get().splitlines()]
    assert ["a", "b"] in lines
    assert ["learning_rate", "0.001", "0.0005"] in lines
    assert ["a", "0.75", "7.5", "0.25", "2.5"] in lines


def test_the_figure_has_a_panel_for_each_place_and_labels_of_what_differs(tmp_path: Path) -> None:
    found = comparison.compare(
        [
            evaluated(tmp_path / "a", point_episodes(FIRST), overrides={"discount": 0.9}),
            evaluated(tmp_path / "b", point_episodes(SECOND), algorithm="gcsl"),
        ]
    )
    left, right = figures.comparison(found).axes
    assert [left.get_title(), right.get_title()] == ["mixed (R10)", "OOD (R20)"]
    assert [each.get_text() for each in left.get_yticklabels()] == [
        "wgcsl, discount 0.9",
        "gcsl, discount 0.98",
    ]
    np.testing.assert_allclose(right.collections[1].get_offsets(), [[0.25, 0], [0.75, 1]])


# What differs


def differing(tmp_path: Path, *runs: dict) -> tuple[list[str], list[list[str]]]:
    found = comparison.compare(
        [
            evaluated(tmp_path / str(place), point_episodes(FIRST), **run)
            for place, run in enumerate(runs)
        ]
    )
    return list(found.columns), [list(row.differs.values()) for row in found.rows]


def test_numbers_of_another_algorithm_belong_to_it(tmp_path: Path) -> None:
    """BC relabels nothing and has no advantage, which its name says. What the user has set is
    shown where both have it.
    """
    columns, values = differing(
        tmp_path,
        {"algorithm": "bc"},
        {"overrides": {"learning_rate": 0.001, "exp_advantage.beta": 3.0}},
        {"overrides": {"learning_rate": 0.001}},
    )
    assert columns == ["algorithm", "learning_rate", "exp_advantage.beta"]
    assert values == [["bc", "0.0005", ""], ["wgcsl", "0.001", "3"], ["wgcsl", "0.001", "2"]]


def test_symmetries_are_named_by_their_kind(tmp_path: Path) -> None:
    signs = {"goal": {"0": 0.0}, "action": {"0": 0.0}}
    one, other = ({"observation": {"0": total}, **signs} for total in (0.0, 1.0))
    declared = [{}, {"symmetry": json.dumps({"reflection": [one]})}]
    table = point_episodes(FIRST)
    runs = [evaluated(tmp_path / str(n), table, overrides=each) for n, each in enumerate(declared)]
    found = comparison.compare(runs)
    assert [row.differs for row in found.rows] == [{"symmetry": ""}, {"symmetry": "reflection"}]
    moved = {"symmetry": json.dumps({"reflection": [other]})}
    runs.append(evaluated(tmp_path / "other", table, overrides=moved))
    plain, *shown = (row.differs["symmetry"] for row in comparison.compare(runs).rows)
    assert plain == ""
    assert len(set(shown)) == 2
    assert all(re.fullmatch("reflection [0-9a-f]{8}", each) for each in shown)


def test_lists_inputs_updates_and_batches(tmp_path: Path) -> None:
    problem = open_problem(GROUP, None)
    columns, values = differing(
        tmp_path,
        {"step": 24, "updates": 24},
        {
            "step": 16,  # stopped
            "updates": 24,
            "batch_size": 8,
            "overrides": {**problem.seen_as("difference"), "architecture.hidden": "8,8"},
        },
    )
    assert columns == ["architecture.hidden", "inputs", "updates", "batch_size"]
    assert values == [
        ["256x256x256", "absolute", "24", "128"],
        ["8x8", "difference", "16", "8"],
    ]


def test_data_goes_by_its_name_and_by_its_checksum_where_names_clash(tmp_path: Path) -> None:
    episodes = open_problem(GROUP, None).episodes
    less = Episodes(*(np.asarray(leaf)[:5] for leaf in dataclasses.astuple(episodes)[:4]))
    for file, each in (("a/mine.npz", episodes), ("b/mine.npz", less), ("other.npz", less)):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        datasets.save(each, tmp_path / file)
    runs = [
        {"data": tmp_path / file, "problem": open_problem(GROUP, tmp_path / file)}
        for file in ("a/mine.npz", "b/mine.npz", "other.npz")
    ]
    columns, values = differing(tmp_path / "runs", *runs)
    sums = [each.checksum()[:8] for each in (episodes, less)]
    assert columns == ["data"]
    assert values == [[f"mine.npz {sums[0]}"], [f"mine.npz {sums[1]}"], ["other.npz"]]
    assert differing(tmp_path / "same", *runs[1:]) == ([], [[], []]), "the same data, elsewhere"


def test_action_bounds_are_one_column(tmp_path: Path) -> None:
    episodes, runs = open_problem(GROUP, None).episodes, []
    table = point_episodes({"Own-v0": [[1, 0], [1, 1]]})
    for place, bounds in enumerate((None, (-2.0, 2.0), (-2.0, [2.0, 3.0]))):
        file = tmp_path / f"{place}.npz"
        datasets.save(episodes, file, bounds, goal_threshold=0.5)
        problem = open_problem(None, file)
        runs.append(evaluated(tmp_path / str(place), table, problem=problem))
    found = comparison.compare(runs)
    assert [list(row.differs.values()) for row in found.rows] == [
        ["[-1, 1]"],
        ["[-2, 2]"],
        ["[-2, 2], [-2, 3]"],
    ]
    assert found.columns == ("action bounds",), "the data is the same"


def test_an_environment_is_one_row_of_the_file(tmp_path: Path) -> None:
    table = point_episodes({"Own-v0": [[1, 0], [1, 1]], **FIRST})
    runs = [evaluated(tmp_path / name, table) for name in "ab"]
    written = shown.to_csv(comparison.compare(runs)).splitlines()
    over = [row["tasks"] for row in csv.DictReader(written)]
    assert over[: len(over) // 2] == ["mixed (R10)", "OOD (R20)", "Own-v0", "R10", "R20", "all"]


def test_names_are_short_where_that_leaves_no_doubt() -> None:
    assert comparison.short_names(["uncertainty.w", "rnd.w", "q_ensemble.tau"]) == {
        "uncertainty.w": "uncertainty.w",
        "rnd.w": "rnd.w",
        "q_ensemble.tau": "tau",
    }


def test_runs_that_differ_in_nothing_go_by_their_name(tmp_path: Path) -> None:
    found = comparison.compare([evaluated(tmp_path / name, point_episodes(FIRST)) for name in "ab"])
    assert [found.label(row) for row in found.rows] == [str(tmp_path / name) for name in "ab"]


# What they share


def test_only_what_all_share_is_compared(tmp_path: Path) -> None:
    longer = {"R10": [[*each, 0] for each in SECOND["R10"]], "Own-v0": [[0, 0], [0, 0]]}
    runs = [
        evaluated(tmp_path / "a", point_episodes(FIRST)),
        evaluated(tmp_path / "b", point_episodes(longer)),
    ]
    found = comparison.compare(runs)
    assert [place.title for place in found.places] == ["mixed (R10)"]
    assert found.rows[1].places["mixed (R10)"].success.value == 1.0, "without the third episode"
    assert found.notes == (
        "compared only on what all share: without R20, Own-v0",
        "compared only on the episodes that all share of R10",
    )


def test_other_goals_under_the_same_name_are_no_comparison(tmp_path: Path) -> None:
    runs = [
        evaluated(tmp_path / "a", point_episodes(FIRST)),
        evaluated(tmp_path / "b", point_episodes(FIRST, goal=6.0)),
    ]
    with pytest.raises(GoatError, match="share no evaluated episodes; evaluate them on the same"):
        comparison.compare(runs)


def test_an_environment_with_another_threshold_is_another_place(tmp_path: Path) -> None:
    file = tmp_path / "mine.npz"
    datasets.save(open_problem(GROUP, None).episodes, file)
    table = point_episodes({"Own-v0": [[1, 0], [1, 1]]})
    near, far, again = (
        evaluated(tmp_path / str(place), table, problem=open_problem(None, file, threshold))
        for place, threshold in enumerate((0.5, 1.0, 0.5))
    )
    with pytest.raises(GoatError, match="share no evaluated episodes"):
        comparison.compare([near, far])
    assert [place.title for place in comparison.compare([near, again]).places] == ["Own-v0"]
    flagged = point_episodes({"Own-v0 (success=flag)": [[1, 0], [1, 1]]})
    judged = [
        evaluated(
            tmp_path / f"flag-{threshold}", flagged, problem=open_problem(None, file, threshold)
        )
        for threshold in (0.5, 1.0)
    ]
    assert comparison.compare(judged).places, "its own flag decides there"


def test_a_page_leaves_out_what_cannot_be_compared(tmp_path: Path) -> None:
    file = tmp_path / "mine.npz"
    datasets.save(open_problem(GROUP, None).episodes, file)
    table = point_episodes({"Own-v0": [[1, 0], [1, 1]]})
    for name, threshold in (("near", 0.5), ("again", 0.5), ("far", 1.0), ("old", 1.0)):
        evaluated(tmp_path / name, table, step=8, problem=open_problem(None, file, threshold))
    checkpoint.save(tmp_path / "old" / "checkpoint.safetensors", {"x": np.zeros(1)}, {"step": 12})
    folders = [tmp_path / name for name in ("near", "again", "far", "old")]
    first, second = shown.sections(folders)
    assert (len(first["algorithms"]), len(second["algorithms"])) == (2, 1)
    assert first["name"] != second["name"]
    for section in (first, second):
        assert [note for note in section["notes"] if "left out" in note and "/old was" in note]


def test_charts_call_runs_by_what_is_short(tmp_path: Path) -> None:
    def labels(parents: str, names: str, **changes: str) -> list[str]:
        runs = [
            evaluated(
                tmp_path / parent / name, point_episodes(FIRST), overrides=dict.fromkeys(changes, n)
            )
            for n, (parent, name) in enumerate(zip(parents, names, strict=True), start=1)
        ]
        return shown.describe("runs", comparison.compare(runs))["algorithms"]

    assert labels("pp", "ab", discount="") == ["discount 1", "discount 2"]
    long = {"polyak": "", "discount": "", "learning_rate": ""}
    assert labels("qq", "ab", **long) == ["a", "b"]
    assert labels("rs", "aa", **long) == ["run 1", "run 2"]


def test_what_cannot_be_compared_is_one_line(tmp_path: Path) -> None:
    run = evaluated(tmp_path / "a", point_episodes(FIRST), step=8)
    with pytest.raises(GoatError, match="is named twice"):
        comparison.compare([run, run])
    checkpoint.save(tmp_path / "a" / "checkpoint.safetensors", {"any": np.zeros(1)}, {"step": 16})
    with pytest.raises(GoatError, match="evaluated at update 8, but is trained to 16 by now; run:"):
        comparison.read(tmp_path / "a")
    (tmp_path / "a" / "episodes.parquet").write_bytes(b"PAR1")
    with pytest.raises(GoatError, match=r"damaged .*; delete it and run: goat evaluate"):
        comparison.read(tmp_path / "a")
    (tmp_path / "a" / "episodes.parquet").unlink()
    with pytest.raises(GoatError, match=f"not evaluated yet; run: goat evaluate {tmp_path / 'a'}"):
        comparison.read(tmp_path / "a")
    with pytest.raises(GoatError, match="is not a run: it has no config"):
        comparison.read(tmp_path)
