"""goat ablate: a run for every rung, one table; nothing is trained twice."""

from __future__ import annotations

import csv
import dataclasses
import os
import signal
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from goatrl import cli, tasks
from goatrl import data as datasets
from goatrl.cli import ablate
from goatrl.data.problems import Problem, declared_symmetry, open_problem, without_group
from goatrl.episodes import make_episodes
from goatrl.experiments import suites
from goatrl.experiments.columns import Column
from goatrl.report import figures
from goatrl.runs.offline import Run
from goatrl.training.offline import Chunk, Diverged
from worlds import HORIZON, THRESHOLD

pytestmark = pytest.mark.usefixtures("few_percentiles")

GROUP = "pointreach-expert-10"
OWN = (
    "--data",
    "mine.npz",
    "--goal-threshold",
    str(THRESHOLD),
    "--environment",
    "worlds:worlds/Point-v0",
    "--episodes",
    "5",
)
BRIEF = ("--seeds", "2", "--updates", "40")


@pytest.fixture(autouse=True)
def short_ladder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rungs that share one compiled program, and data of a point that wanders."""
    whole = suites.get("ablation-components")
    monkeypatch.setattr(
        suites, "get", lambda name: dataclasses.replace(whole, columns=whole.columns[:2])
    )
    monkeypatch.chdir(tmp_path)
    actions = np.random.default_rng(0).uniform(-1, 1, (20, HORIZON, 2))
    achieved = np.concatenate([np.zeros((20, 1, 2)), actions.cumsum(axis=1)], axis=1)
    # observations that do not contain the achieved goal: their ladder is the paper's
    seen = achieved + 1e-3
    datasets.save(make_episodes(seen, achieved, actions, achieved[:, -1]), "mine.npz")


def goat(*words: str) -> int:
    return cli.main(["ablate", *words])


def numbers(folder: str) -> list[dict[str, str]]:
    return list(csv.DictReader(Path(folder, "ablation.csv").read_text().splitlines()))


def test_the_ladder_is_the_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    columns = suites.get("ablation-components").columns
    assert [column.label for column in columns] == [
        "BC",
        "+HER",
        "+EAW",
        "+DSW",
        "+Ens",
        "+UW",
        "+ER",
    ]
    assert len({column.algorithm for column in columns}) == 7, (
        "each rung has a folder of its own name"
    )


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        goat("--help")
    assert ended.value.code == 0
    assert "goat ablate --data mine.npz" in capsys.readouterr().out.split("Examples:", 1)[1]


def test_own_data_in_an_own_environment(capsys: pytest.CaptureFixture[str]) -> None:
    assert goat(*OWN, *BRIEF, "--out", "out") == 0
    shown = capsys.readouterr().out
    rungs = numbers("out")
    assert [(rung["rung"], rung["algorithm"], rung["seeds"]) for rung in rungs] == [
        ("BC", "bc", "2"),
        ("+HER", "gcsl", "2"),
    ]
    for rung in rungs:
        rows = pq.read_table(Path("out", rung["algorithm"], "episodes.parquet")).to_pylist()
        assert len(rows) == 2 * 5
        for metric in ("success", "return"):
            means = [
                np.mean([row[metric] for row in rows if row["seed"] == seed]) for seed in (0, 1)
            ]
            assert (rung[metric], rung[f"{metric}_std"]) == (
                f"{np.mean(means):.4f}",
                f"{np.std(means):.4f}",
            )
    assert rungs[0]["increment"] == ""
    assert "-0.000" not in shown
    assert float(rungs[1]["increment"]) == pytest.approx(
        float(rungs[1]["success"]) - float(rungs[0]["success"]), abs=1e-4
    )
    text = Path("out/ablation.md").read_text()
    first = (
        f"| BC | bc | {float(rungs[0]['success']):.3f} ± {float(rungs[0]['success_std']):.3f} |  |"
    )
    assert first in text
    assert (
        "40 updates on mine.npz, evaluated in worlds:worlds/Point-v0; mean ± standard deviation "
        "over 2 seeds." in text
    )
    assert "+HER" in shown
    assert Path("out/ablation.png").read_bytes().startswith(b"\x89PNG")
    before = {
        path: path.stat().st_mtime_ns for path in Path("out").glob("*/checkpoint.safetensors")
    }
    assert len(before) == 2
    assert goat(*OWN, *BRIEF, "--out", "out") == 0
    assert capsys.readouterr().out.count("already trained") == 2
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert Path("out/ablation.md").read_text() == text, "the same episodes, the same numbers"
    told = ("--environment-args", '{"ends": true}', "--horizon", "4")
    assert goat(*OWN, *told, *BRIEF, "--out", "out") == 0
    where = "worlds:worlds/Point-v0 (ends=true, horizon=4)"
    assert f"evaluated in {where}; mean" in Path("out/ablation.md").read_text()
    rows = pq.read_table("out/gcsl/episodes.parquet").column("path").to_pylist()
    assert max(map(len, rows[-10:])) == 2 * 5
    capsys.readouterr()
    assert goat(*OWN, "--seeds", "3", "--updates", "40", "--out", "out") == 2
    assert "has another configuration (differs in seeds)" in capsys.readouterr().err


def test_one_seed_has_no_deviation() -> None:
    ablate.publish(
        [ablate.Rung(1, Column("BC", "bc"), np.array([0.5]), np.array([3.0]))], Path("out"), "one"
    )
    assert "| BC | bc | 0.500 |  |  |  | 3.0 |" in Path("out/ablation.md").read_text()
    (rung,) = numbers("out")
    assert (rung["success_std"], rung["return_std"]) == ("", "")


def test_interrupted_it_goes_on_to_the_same_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert goat(*OWN, *BRIEF, "--out", "whole") == 0
    append = Run._append_metrics

    def press_ctrl_c(run: Run, chunk: Chunk, seeds: tuple[int, ...]) -> None:
        append(run, chunk, seeds)
        if run.folder.name == "gcsl":
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "_append_metrics", press_ctrl_c)
        capsys.readouterr()
        assert goat(*OWN, *BRIEF, "--out", "out") == 130
    assert "stopped at update 20 of 40; rerun the command to resume" in capsys.readouterr().err
    assert not Path("out/ablation.md").exists()
    assert goat(*OWN, *BRIEF, "--out", "out") == 0
    assert "resuming from update 20 of 40" in capsys.readouterr().out
    for name in ("ablation.md", "ablation.csv", "ablation.png", "gcsl/metrics.csv"):
        assert Path("out", name).read_bytes() == Path("whole", name).read_bytes()


def test_on_all_tasks_of_a_group() -> None:
    assert goat("--group", GROUP, *BRIEF, "--out", "out") == 0
    rows = pq.read_table("out/bc/episodes.parquet").to_pylist()
    of_tasks = {
        task: np.mean([row["return"] for row in rows if row["task"] == task])
        for task in ("R10", "R20")
    }
    assert len(rows) == 2 * 2 * 20
    assert float(numbers("out")[0]["return"]) == pytest.approx(
        np.mean(list(of_tasks.values())), abs=1e-4
    )
    assert f"40 updates on {GROUP}, evaluated on Expert 10" in Path("out/ablation.md").read_text()
    assert [rung["rung"] for rung in numbers("out")] == ["BC", "+HER", "+difference", "+symmetry"]
    chosen = {
        name: Run(Path("out", name)).config().hyperparameters
        for name in ("gcsl", "gcsl-difference", "gcsl-difference-symmetry")
    }
    inputs = [each["architecture.inputs"] for each in chosen.values()]
    assert inputs == ["absolute", "difference", "difference"]
    declared = declared_symmetry("declared", tasks.get(GROUP))
    assert [each["symmetry"] for each in chosen.values()] == ["", "", declared]


def rungs_above(problem: Problem, symmetry: str | None = None) -> list[tuple[str, str, object]]:
    ladder = ablate.Ablate(out=Path("out"), symmetry=symmetry)._ladder(problem)
    return [(rung.label, rung.inputs, rung.overrides.get("symmetry")) for rung in ladder[2:]]


def test_the_two_rungs_above_are_those_that_a_problem_has() -> None:
    Path("mirror.toml").write_text("[[reflection]]\nobservation = { 1 = 0.0 }\n")
    text = declared_symmetry("mirror.toml", None)
    assert rungs_above(open_problem(None, Path("mine.npz"), 1.0)) == []
    alone = rungs_above(open_problem(None, Path("mine.npz"), 1.0), "mirror.toml")
    assert alone == [("+symmetry", "absolute", text)]
    places = np.zeros((1, 3, 2))
    seen = without_group(make_episodes(places, places, places[:, 1:], places[:, 0]), 1.0, None)
    assert rungs_above(seen) == [("+difference", "difference", None)]
    both = [("+difference", "difference", None), ("+symmetry", "difference", text)]
    assert rungs_above(seen, "mirror.toml") == both


def test_a_rung_that_diverges_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train = Run.train

    def diverge(run: Run, *given: object, **named: object) -> object:
        if run.folder.name == "bc":
            raise Diverged("training diverged: policy_loss of seed 0 is not finite at update 3")
        return train(run, *given, **named)

    monkeypatch.setattr(Run, "train", diverge)
    assert goat(*OWN, *BRIEF, "--out", "out") == 1
    assert capsys.readouterr().err.startswith("goat: BC: training diverged")
    assert [(rung["rung"], rung["increment"]) for rung in numbers("out")] == [("+HER", "")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            OWN[:2],
            "in your own environment (--environment ID and --goal-threshold DISTANCE) or on all "
            "tasks of a task group",
        ),
        ((*OWN, "--group", GROUP), "choose where to evaluate"),
        (("--group", GROUP, "--episodes", "5"), "use --episodes only with --environment"),
        (
            ("--environment", "worlds:worlds/Point-v0", "--goal-threshold", "1"),
            "specify your dataset with --data FILE",
        ),
        (
            ("--data", "mine.npz", "--environment", "worlds:worlds/Point-v0"),
            "your own data needs --goal-threshold",
        ),
        ((*OWN[:5], "worlds:worlds/Large-v0"), "does not fit: its observation has shape (3,)"),
        ((*OWN[:5], "worlds:worlds/Nothing-v0"), "unknown environment"),
        ((*OWN[:-1], "0"), "episodes must be at least 1"),
        ((*OWN, "--horizon", "0"), "horizon must be at least 1"),
        (("--group", GROUP, "--success", "flag"), "name it with --environment"),
        (("--data", "none.npz", *OWN[2:]), "no such file: none.npz"),
    ],
)
def test_refused_before_anything_is_trained(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert goat(*words, *BRIEF, "--out", "out") == 2
    text = capsys.readouterr().err.strip()
    assert message in text
    assert "\n" not in text
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([0.1, 0.2, 0.9], [0.2, 0.3, 1.0], "held"),  # the same seeds: what differs is the rung
        ([0.1, 0.2, 0.9], [0.2, 0.3, 0.8], "undecided"),
        ([0.2, 0.3, 1.0], [0.1, 0.2, 0.9], "not held"),
        ([0.3] * 3, [0.1 + 0.2] * 3, "undecided"),  # an error of rounding
        ([0.1], [0.9], "undecided"),
    ],
)
def test_verdicts_on_increments(before: list[float], after: list[float], expected: str) -> None:
    rungs = [
        ablate.Rung(place, Column("any", "any"), np.array(values), np.array(values))
        for place, values in enumerate((before, after), start=1)
    ]
    added = ablate.increments(rungs)[1]
    assert ablate.verdict(rungs[1], added) == expected


def test_increments_and_bars() -> None:
    successes = {1: [0.0, 0.2], 2: [0.5, 0.5], 4: [1.0, 0.8]}
    rungs = [
        ablate.Rung(place, Column(f"+{place}", "any"), np.array(s), np.array(s))
        for place, s in successes.items()
    ]
    first, second, last = ablate.increments(rungs)
    assert (first, last) == (None, None), "over the rung before, where it was evaluated"
    # Seed by seed 0.5 and 0.3: a standard error of 0.1, and Student's 12.706 for two seeds.
    assert dataclasses.astuple(second) == pytest.approx((0.4, -0.8706, 1.6706), abs=1e-4)
    assert ablate.verdict(rungs[1], second) == "undecided"
    ablate.publish(rungs, Path("out"), "two of three")
    text = Path("out/ablation.md").read_text()
    assert "| +2 | any | 0.500 ± 0.000 | +0.400 | -0.871 to 1.671 | undecided | 0.5 ± 0.0 |" in text
    assert numbers("out")[1]["increment_low"] == "-0.8706"
    (axis,) = figures.ladder({rung.column.label: rung.success for rung in rungs}, "success").axes
    assert [patch.get_height() for patch in axis.patches] == pytest.approx([0.1, 0.5, 0.9])
    assert [label.get_text() for label in axis.get_xticklabels()] == [
        "+1\n0.10",
        "+2\n0.50",
        "+4\n0.90",
    ]
