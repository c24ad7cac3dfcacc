"""goat sweep and goat compare: every combination is a run like any other."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from goatrl import data as datasets
from goatrl.episodes import make_episodes
from goatrl.report import webpage
from goatrl.runs import offline, sweep
from goatrl.runs.offline import Run
from goatrl.training.offline import Chunk
from goatrl.types import GoatError
from helpers import error_line, goat
from worlds import HORIZON, THRESHOLD

pytestmark = pytest.mark.usefixtures("few_percentiles")

GROUP = "pointreach-non-expert-10"
BRIEF = ("--group", GROUP, "--seeds", 2, "--updates", 40, "--batch-size", 16)
SMALL = ("--set", "architecture.hidden=[8,8]")
W = ("--set", "uncertainty.w=0.5,1,2")
NAMES = ["uncertainty.w=0.5", "uncertainty.w=1.0", "uncertainty.w=2.0"]
FILES = ["checkpoint.safetensors", "config.json", "episodes.parquet", "metrics.csv"]


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def modified(folder: str) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in Path(folder).glob("*/*")}


@pytest.fixture(params=["side by side", "one by one"])
def beside(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """As on a GPU, and as on a processor."""
    chosen = request.param == "side by side"
    monkeypatch.setattr(offline, "side_by_side", lambda: chosen)
    return chosen


def test_a_sweep_compiles_once_and_is_a_run_for_every_value(
    beside: bool, compilations: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert goat("sweep", "goat", *BRIEF, *SMALL, *W, "--out", "w") == 0
    assert compilations.count("run_chunk") == 1
    printed = capsys.readouterr().out
    last = "3 runs, 2 seeds (1 of 1)" if beside else f"{NAMES[2]}, 2 seeds (3 of 3)"
    assert last in printed
    assert [path.name for path in sorted(Path("w").iterdir())] == NAMES
    for name in NAMES:
        assert [path.name for path in sorted(Path("w", name).iterdir())] == FILES
    alone = ("--set", "architecture.hidden=8,8", "--set", "uncertainty.w=1")
    assert goat("train", "goat", *BRIEF, *alone, "--out", "alone") == 0
    assert goat("evaluate", "alone") == 0
    mine, other = Run(Path("w", NAMES[1])), Run(Path("alone"))
    assert mine.identity().digest() == other.identity().digest()
    assert mine.checkpoint_path.read_bytes() == other.checkpoint_path.read_bytes()
    assert mine.metrics_path.read_bytes() == other.metrics_path.read_bytes()
    assert mine.read_episodes()[0].equals(other.read_episodes()[0])
    before = modified("w")
    capsys.readouterr()
    assert goat("sweep", "goat", *BRIEF, *SMALL, *W, "--out", "w") == 0
    again = capsys.readouterr().out
    assert "already trained: 3 of 3 runs" in again
    assert modified("w") == before, "what is finished is neither trained nor evaluated again"
    assert again.split("\n", 1)[1] in printed, "the same table"
    assert goat("compare", *(f"w/{name}" for name in NAMES), "--csv", "w.csv") == 0
    assert capsys.readouterr().out.removesuffix("wrote w.csv\n") in again


def test_a_static_number_has_a_program_for_each_value(
    beside: bool, compilations: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = ("--set", "architecture.hidden=[8,8],[4]", "--set", "discount=0.9,0.98")
    assert goat("sweep", "wgcsl", *BRIEF, *sizes, "--out", "sizes") == 0
    assert compilations.count("run_chunk") == 2
    assert ("2 runs, 2 seeds (2 of 2)" in capsys.readouterr().out) == beside
    assert [path.name for path in sorted(Path("sizes").iterdir())] == [
        "architecture.hidden=4--discount=0.9",
        "architecture.hidden=4--discount=0.98",
        "architecture.hidden=8x8--discount=0.9",
        "architecture.hidden=8x8--discount=0.98",
    ]


def test_interrupted_it_goes_on_to_the_same_agents(
    beside: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("sweep", "wgcsl", *BRIEF, *SMALL, "--set", "discount=0.9,0.98", "--out")
    assert goat(*arguments, "whole") == 0
    append = Run._append_metrics

    def press_ctrl_c(run: Run, chunk: Chunk, seeds: tuple[int, ...]) -> None:
        append(run, chunk, seeds)
        if (run.folder.name, chunk.step) == ("discount=0.98", 8):
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "_append_metrics", press_ctrl_c)
        assert goat(*arguments, "cut") == 130
    assert "stopped at update 8 of 40; rerun the command to resume" in capsys.readouterr().err
    assert {run.name: Run(run).step() for run in Path("cut").iterdir()} == {
        "discount=0.9": 8 if beside else 40,
        "discount=0.98": 8,
    }
    assert goat(*arguments, "cut") == 0
    resumed = "resuming 2 runs" if beside else "resuming 1 run"
    assert f"{resumed} from update 8 of 40" in capsys.readouterr().out
    for run in Path("whole").iterdir():
        for name in FILES:
            assert Path("cut", run.name, name).read_bytes() == (run / name).read_bytes()
    longer = [80 if word == 40 else word for word in arguments]
    assert goat(*longer, "cut") == 0, "and further, if asked to"
    assert Run(Path("cut/discount=0.9")).step() == 80


@pytest.mark.filterwarnings("ignore:.*Using the latest versioned environment:UserWarning")
def test_in_an_environment_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    actions = np.random.default_rng(0).uniform(-1, 1, (20, HORIZON, 2))
    achieved = np.concatenate([np.zeros((20, 1, 2)), actions.cumsum(axis=1)], axis=1)
    datasets.save(make_episodes(achieved, achieved, actions, achieved[:, -1]), "mine.npz")
    own = ("--data", "mine.npz", "--goal-threshold", THRESHOLD, *BRIEF[2:], *SMALL)
    varied = ("--set", "discount=0.9,0.98", "--out", "own")
    assert goat("sweep", "wgcsl", *own, *varied) == 0
    assert "--environment ID, then compare them: goat compare own/*" in shown(capsys)
    where = ("--environment", "worlds:worlds/Point-v0", "--episodes", 5)
    assert goat("sweep", "wgcsl", *own, *varied, *where) == 0
    assert "already trained: 2 of 2 runs" in shown(capsys)
    before = modified("own")
    assert goat("sweep", "wgcsl", *own, *varied, *where) == 0
    assert modified("own") == before
    latest = ("--environment", "worlds:worlds/Point", "--episodes", 5)  # which is Point-v0
    assert goat("sweep", "wgcsl", *own, *varied, *latest) == 0
    assert modified("own") == before
    assert goat("sweep", "wgcsl", *own, *varied, *where[:-1], 6) == 0
    assert Run(Path("own/discount=0.9")).read_episodes()[0].num_rows == 2 * 6
    assert goat("sweep", "wgcsl", *own, *varied, "--episodes", 6) == 2
    assert "add one" in error_line(capsys)


def test_one_that_diverges_is_named_and_the_others_are_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rates = ("--set", "learning_rate=1e30,0.001", "--out", "rates")
    assert goat("sweep", "wgcsl", *BRIEF, *SMALL, *rates) == 1
    told = capsys.readouterr()
    assert "training diverged" in told.err
    assert "nothing was saved in rates/learning_rate=1e+30" in told.err
    assert "rates/learning_rate=0.001" in told.out.replace("\n", "").replace(" ", "")
    assert not Path("rates/learning_rate=1e+30/episodes.parquet").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", ["1"]),
        ("0.5,1", ["0.5", "1"]),
        ("[8,8], [4]", ["[8,8]", "[4]"]),
        ("(8,8)", ["(8,8)"]),
        ("relu,tanh", ["relu", "tanh"]),
    ],
)
def test_values_between_commas(text: str, expected: list[str]) -> None:
    assert sweep.values(text) == expected


def test_the_last_setting_changes_fastest() -> None:
    assert sweep.combinations({"a": "1,2", "b": "x", "c": "3,4"}) == [
        {"a": "1", "b": "x", "c": "3"},
        {"a": "1", "b": "x", "c": "4"},
        {"a": "2", "b": "x", "c": "3"},
        {"a": "2", "b": "x", "c": "4"},
    ]
    assert sweep.combinations({}) == [{}]
    with pytest.raises(GoatError, match="a=1, has an empty value; write a=A,B,C"):
        sweep.combinations({"a": "1,"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["architecture.hidden=8,8"], 'write it in brackets: "architecture.hidden=[8,8],[16,16]"'),
        (["discount=0.9,0.90"], "discount=0.9 is there twice; give every value once"),
        (["discount=0.9,much"], "hyper-parameter discount must be a float, not 'much'"),
        (["discont=0.9,0.98"], "unknown hyper-parameter 'discont'"),
        (["discount"], "is not a setting: write NAME=VALUE"),
        (["target_period=3,4"], "updates must be a positive multiple of target_period (3)"),
    ],
)
def test_refused_before_anything_is_trained(
    settings: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for each in settings for word in ("--set", each)]
    assert goat("sweep", "wgcsl", *BRIEF, *words, "--out", "out") == 2
    assert message in error_line(capsys)
    assert not Path("out").exists()


def test_compare_needs_two_evaluated_runs(capsys: pytest.CaptureFixture[str]) -> None:
    small = ("--set", "architecture.hidden=8,8")
    assert goat("train", "bc", *BRIEF, *small, "--out", "bc") == 0
    assert goat("compare", "bc") == 2
    assert error_line(capsys) == "goat: specify at least two runs to compare"
    assert goat("compare", "bc", "gcsl") == 2
    assert error_line(capsys) == "goat: bc is not evaluated yet; run: goat evaluate bc"


def test_runs_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert goat("sweep", "wgcsl", *BRIEF, *SMALL, "--set", "discount=0.9,0.98", "--out", "s") == 0
    for place in (("s",), ("s/discount=0.9", "s/discount=0.98"), (".",)):
        assert goat("report", *place, "--out", "page.html") == 0
        text = Path("page.html").read_text()
        assert '"kind":"runs","name":"runs in s"' in text
        assert '"name":"s/discount=0.98","differs":["0.98"],"seeds":2' in text
    Path("s/discount=0.9/episodes.parquet").unlink()
    assert '"name":"s/discount=0.9"' not in webpage.page(Path("s")), "it is not evaluated"
    Path("s/discount=0.98/episodes.parquet").unlink()
    capsys.readouterr()
    assert goat("report", "s") == 2
    assert "or runs with `goat train` and `goat evaluate`" in error_line(capsys)
