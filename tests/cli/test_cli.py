"""The command line as a user meets it: help with examples, one-line errors, exit codes, files."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import json
import pickle
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure

import goatrl
from goatrl import algorithms, tasks
from goatrl import data as datasets
from goatrl.episodes import make_episodes
from goatrl.evaluation.episodes import OnProgress, evaluate
from goatrl.experiments import grid, records
from goatrl.experiments.experiment import experiments
from goatrl.report import goal_figures
from goatrl.tasks import Task, TaskGroup
from goatrl.training.offline import Chunk, Diverged, Members
from goatrl.types import Episodes, TrainState
from helpers import error_line, goat, own_algorithms

pytestmark = pytest.mark.usefixtures("few_percentiles")

COMMANDS = [
    ["list"],
    ["data", "make"],
    ["data", "convert"],
    ["data", "info"],
    ["train"],
    ["evaluate"],
    ["compare"],
    ["sweep"],
    ["finetune"],
    ["bench"],
    ["figure", "trajectories"],
    ["figure", "bars"],
    ["figure", "aggregate"],
    ["figure", "coverage"],
    ["figure", "finetune"],
    ["figure", "density"],
    ["figure", "regions"],
    ["report"],
    ["view"],
    ["expert", "train"],
]
GROUP = "pointreach-non-expert-10"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_an_example(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        goat(*command, "--help")
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert f"goat {' '.join(command)}" in shown.split("Example", 1)[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["data"],
        ["train"],
        ["train", "goat", "--gruop", "x"],
        ["bench", "pointreach", "--seeds", "many"],
    ],
)
def test_bad_usage_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        goat(*arguments)
    assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian", "goat"], "unknown command 'trian'; did you mean train"),
        (
            ["train", "gaot", "--group", GROUP, "--out", "run"],
            "unknown algorithm 'gaot'; did you mean goat",
        ),
        (
            ["train", "goat", "--group", "pointreach-expert10", "--out", "run"],
            "did you mean pointreach-expert-10",
        ),
        (["train", "goat", "--out", "run"], "specify a task group with --group"),
        (
            ["train", "goat", "--group", GROUP, "--out", "run", "--set", "uncertainty.v=1"],
            "did you mean uncertainty.w",
        ),
        (
            ["train", "goat", "--group", GROUP, "--out", "run", "--set", "w=1"],
            "did you mean uncertainty.w or",
        ),
        (
            ["train", "goat", "--group", GROUP, "--out", "run", "--set", "uncertainty.w"],
            "write NAME=VALUE",
        ),
        (
            ["train", "goat", "--group", GROUP, "--out", "run", "--set", "uncertainty.w=big"],
            "must be a float, not 'big'",
        ),
        (["train", "goat", "--group", GROUP, "--out", "run", "--seeds", "0"], "at least one"),
        (
            ["train", "goat", "--group", GROUP, "--out", "run", "--updates", "7"],
            "multiple of target_period (4), not 7",
        ),
        (["train", "./no_such.py", "--group", GROUP, "--out", "run"], "no such file: no_such.py"),
        (
            ["train", "goat", "--data", "none.npz", "--goal-threshold", "1", "--out", "run"],
            "no such file: none.npz",
        ),
        (["evaluate", "nowhere"], "nowhere is not a run"),
        (["bench", "pointreech"], "unknown suite 'pointreech'; did you mean pointreach"),
        (["bench"], "specify a suite"),
        (["bench", "pointreach", "paper"], "pointreach and paper cannot run together"),
        (["bench", "training-time", "paper"], "training-time and paper cannot run together"),
        (["bench", "pointreach", "--algorithms", "goat", "cql"], "did you mean cql_her"),
        (["bench", "pointreach", "--data", "x=y.pkl"], "unknown group of pointreach 'x'"),
        (
            ["data", "make", "pointreach-expert", "--out", "x.npz"],
            "did you mean pointreach-expert-10",
        ),
        (["data", "make", GROUP, "--out", "x.csv"], "name a file that ends in .npz"),
        (["data", "info", "pointreach-expert"], "did you mean pointreach-expert-10"),
        (
            ["figure", "bars", "nowhere", "--out", "x.png"],
            "no records of suite pointreach in nowhere",
        ),
        (
            ["figure", "aggregate", "nowhere", "--out", "x.png"],
            "no records of suite paper in nowhere",
        ),
        (
            ["figure", "coverage", "nowhere", "--out", "x.png"],
            "no records of suite paper in nowhere",
        ),
        (
            ["figure", "coverage", "x", "--group", "push-left", "--out", "x.png"],
            "did you mean push-left-right",
        ),
        (["report", "nowhere"], "no such folder: nowhere"),
        (["report"], "specify a folder of records or runs"),
        (
            ["report", "."],
            "no records in . or its subfolders; create some with `goat bench`",
        ),
    ],
)
def test_errors_are_one_helpful_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert goat(*arguments) == 2
    assert message in error_line(capsys)
    assert not Path("run", "checkpoint.safetensors").exists()


def test_a_traceback_only_with_debug(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Exception, match="unknown suite"):
        goat("bench", "nothing", "--debug")
    assert capsys.readouterr().err == ""


def test_bad_files_are_one_helpful_line(
    capsys: pytest.CaptureFixture[str], odd_episodes: Episodes
) -> None:
    Path("empty.npz").write_bytes(b"")
    Path("empty.pkl").write_bytes(b"")
    datasets.save(odd_episodes, Path("good.npz"))
    Path("cut.npz").write_bytes(Path("good.npz").read_bytes()[:300])
    arrays = dict(np.load("good.npz"))
    np.savez("nan.npz", **(arrays | {"actions": arrays["actions"] * np.nan}))
    np.savez("shapes.npz", **(arrays | {"actions": arrays["actions"][:, :-1]}))
    Path("crafted.pkl").write_bytes(b"cos\nsystem\n(S'touch executed'\ntR.")
    for name, message in {
        "empty.npz": "damaged",
        "empty.pkl": "is empty",
        "cut.npz": "damaged",
        "nan.npz": "not finite",
        "shapes.npz": "one more observation than actions",
        "crafted.pkl": "refused: it contains the name 'os.system'",
    }.items():
        assert goat("train", "bc", "--data", name, "--goal-threshold", "1", "--out", "run") == 2
        assert message in error_line(capsys)
    assert not Path("executed").exists()


def test_list_names_everything_on_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert goat("list") == 0
    shown = capsys.readouterr().out
    names = (*algorithms.entries(), *tasks.groups(), *experiments())
    assert set(names) <= set(shown.split())
    lines = shown.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("kind", "known", "about"),
    [
        ("algorithms", "gofar_binary_exp_relabel", "GOAT(tau)"),
        ("groups", "pointreach-imbalanced-non-expert-10", "R10, R20"),
        ("suites", "pointreach-cql-alpha", "9 × 11 cells"),
    ],
)
def test_list_says_what_they_are(
    kind: str, known: str, about: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert goat("list", kind) == 0
    shown = capsys.readouterr().out
    assert known in shown
    assert about in shown
    others = {"algorithms": algorithms.entries(), "groups": tasks.groups()}
    assert [name for name, each in others.items() if set(each) <= set(shown.split())] == (
        [kind] if kind in others else []
    )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert goat("--version") == 0
    assert capsys.readouterr().out == f"goat {goatrl.__version__}\n"


@pytest.mark.parametrize("command", [["train", "bc"], ["data", "make"], ["bench", "paper"]])
def test_flags_have_no_opposite(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        goat(*command, "--help")
    shown = capsys.readouterr().out
    assert "--yes" in shown or "--all" in shown
    assert "--no-" not in shown
    with pytest.raises(SystemExit):
        goat(*command, "--out", "x", "--no-yes")
    assert "--no-yes" in capsys.readouterr().err


def test_from_data_to_figure(capsys: pytest.CaptureFixture[str]) -> None:
    """Make data, train on the file, evaluate, draw: the files that each step promises are there."""
    assert goat("data", "make", GROUP, "--out", "mine.npz") == 0
    assert goat("data", "info", "mine.npz", "--figure", "mine.svg") == 0
    train = [
        "train",
        "goat",
        "--group",
        GROUP,
        "--data",
        "mine.npz",
        "--seeds",
        "2",
        "--updates",
        "40",
        "--batch-size",
        "16",
    ]
    assert (
        goat(*train, "--out", "run", "--set", "uncertainty.w=1.5", "--set", "q_ensemble.size=3")
        == 0
    )
    assert goat("evaluate", "run") == 0
    rows = pq.read_table("run/episodes.parquet")
    assert rows.num_rows == 2 * 2 * 20  # tasks × seeds × goals
    assert goat("evaluate", "run", "--tasks", "r20") == 0
    assert pq.read_table("run/episodes.parquet").num_rows == rows.num_rows, (
        "the other task's episodes stay"
    )
    assert goat("figure", "density", "run", "--out", "density.png") == 0
    assert goat("figure", "trajectories", "run", "--task", "r20", "--out", "paths.png") == 0
    assert goat("figure", "uncertainty", "run", "--out", "uncertainty.png") == 0
    assert Path("uncertainty.csv").read_text().count("\n") == 1 + 2 * 10
    assert all(
        Path(name).stat().st_size > 1000
        for name in ("mine.svg", "density.png", "paths.png", "uncertainty.png")
    )
    capsys.readouterr()
    assert goat("figure", "density", "run", "--out", "density.png", "--seed", "9") == 2
    assert "no seed 9; it has 0, 1" in error_line(capsys)


def test_bench_skips_what_is_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    bench = [
        "bench",
        "pointreach",
        "--groups",
        GROUP,
        "--seeds",
        "2",
        "--updates",
        "8",
        "--out",
        "out",
    ]
    assert goat(*bench, "--algorithms", "bc", "gcsl") == 0
    shown = capsys.readouterr().out
    assert "2 cells of 2 seeds, 2 to run" in shown
    assert "run the whole suite to check its 5 claims, such as: " in " ".join(shown.split())
    before = {path: path.stat().st_mtime_ns for path in Path("out").glob("*.parquet")}
    assert len(before) == 2
    assert goat(*bench, "--algorithms", "bc", "gcsl", "wgcsl") == 0
    assert "3 cells of 2 seeds, 1 to run" in capsys.readouterr().out
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    assert "0.29 ± 0.06" in Path("out/pointreach/success.md").read_text(), (
        "the paper's number stands beside ours"
    )
    assert Path("out/pointreach/table.csv").read_text().count("\n") == 1 + 2 * 2 * 3
    capsys.readouterr()
    assert goat(*bench[:-3], "12", "--out", "out") == 2
    assert "another configuration (differs in updates)" in error_line(capsys)
    bench[bench.index("--seeds") + 1] = "3"
    assert goat(*bench, "--algorithms", "bc") == 0
    assert "1 cell of 3 seeds, 1 to run" in capsys.readouterr().out
    assert len(list(Path("out").glob("*.parquet"))) == 3, "a cell grows by seeds, in its own file"
    counts = {
        row["algorithm"]: row["seeds"]
        for row in csv.DictReader(Path("out/pointreach/table.csv").read_text().splitlines())
    }
    assert counts == {"WGCSL": "2", "GCSL": "2", "Goal BC": "3"}, (
        "the table shows all that is recorded"
    )
    for figure in ("trajectories", "bars"):
        assert goat("figure", figure, "out", "--out", f"{figure}.png") == 0
        assert Path(f"{figure}.png").stat().st_size > 5000
    assert (
        goat(
            "figure",
            "aggregate",
            "out",
            "--suite",
            "pointreach",
            "--metric",
            "return",
            "--out",
            "aggregate.png",
        )
        == 0
    )
    assert Path("aggregate.png").stat().st_size > 5000
    capsys.readouterr()
    assert goat("figure", "coverage", "out", "--suite", "pointreach", "--out", "x.png") == 2
    assert "have no coverage maps" in error_line(capsys)
    assert goat("report", "out") == 0
    shown = capsys.readouterr().out
    assert re.search(r"wrote report.html \(0.\d MB\)", shown)
    assert (
        "goat bench pointreach --groups pointreach-non-expert-10" in Path("report.html").read_text()
    )


def test_a_coverage_figure_has_the_columns_that_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    robots = Path(__file__).parents[2] / "results" / "robots"
    for name in ("bc", "gcsl"):
        (record,) = robots.glob(f"push-left-right--{name}--*.parquet")
        shutil.copy(record, tmp_path)
    drawn: list[list[str]] = []

    def coverage(rows: dict[str, dict[str, object]], columns: Sequence[str]) -> Figure:
        drawn.append(list(columns))
        return Figure()

    monkeypatch.setattr(goal_figures, "coverage", coverage)
    command = ("figure", "coverage", str(tmp_path), "--out", str(tmp_path / "x.png"))
    assert goat(*command) == 0
    assert goat(*command, "--columns", "BC") == 0
    assert drawn == [["GCSL", "BC"], ["BC"]]
    assert goat(*command, "--columns", "GCS") == 2
    assert "unknown column with maps 'GCS'; did you mean GCSL?" in error_line(capsys)


def test_an_additional_column_belongs_to_one_suite(capsys: pytest.CaptureFixture[str]) -> None:
    assert goat("bench", "ablation-value", "ablation-rnd", "--algorithms", "bc", "--out", "b") == 2
    assert "bc would be an additional column of ablation-value" in capsys.readouterr().err


def test_bench_runs_several_suites_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["--groups", GROUP, "--algorithms", "cql_her", "--seeds", "1", "--updates", "8"]
    suites = ["pointreach", "pointreach-cql-alpha"]
    assert goat("bench", *suites, *line, "--out", "out") == 0
    shown = capsys.readouterr().out
    assert "pointreach: 1 cell of 1 seed, 1 to run" in shown
    assert "pointreach-cql-alpha: 5 cells of 1 seed, 5 to run" in shown
    assert shown.count("expected to take") == shown.count("took ") == 1
    assert len(list(Path("out").glob("*.parquet"))) == 5, "one of six is shared"
    for suite, algorithm in zip(suites, ("CQL+HER", "alpha=1"), strict=True):
        assert algorithm in Path("out", suite, "success.md").read_text()
    (told,) = map(json.loads, Path("out/time.jsonl").read_text().splitlines())
    assert (told["suites"], told["cells"]) == (suites, 5)


def test_bench_trains_a_sweep_together(capsys: pytest.CaptureFixture[str]) -> None:
    bench = [
        "bench",
        "pointreach-cql-alpha",
        "--groups",
        "pointreach-expert-10",
        "--seeds",
        "1",
        "--updates",
        "4",
        "--out",
        "out",
    ]
    assert goat(*bench) == 0
    shown = capsys.readouterr().out
    assert "5 cells of 1 seed, 5 to run" in shown
    assert "pointreach-cql-alpha: success, 1 seed\n" in shown, (
        "of one seed there is no deviation to announce"
    )
    tables = [pq.read_table(path) for path in Path("out").glob("*.parquet")]
    assert len(tables) == 5
    finals = [tuple(table.column("final_distance").to_pylist()) for table in tables]
    assert all(one != other for one, other in itertools.combinations(finals, 2)), (
        "each α trains its own agent"
    )


def test_an_algorithm_in_one_file() -> None:
    Path("mine.py").write_text(
        "from goatrl.algorithms import register\n"
        "from goatrl.learn.agent import weighted_regression\n\n\n"
        "@register('Mine')\n"
        "def mine_alone(s):\n"
        "    '''Imitation.'''\n"
        "    return weighted_regression(s)\n"
    )
    assert (
        goat(
            "train", "./mine.py", "--group", GROUP, "--seeds", "1", "--updates", "8", "--out", "run"
        )
        == 0
    )
    assert goat("evaluate", "run") == 0
    bench = [
        "bench",
        "pointreach",
        "--groups",
        GROUP,
        "--seeds",
        "1",
        "--updates",
        "8",
        "--out",
        "out",
    ]
    assert goat(*bench, "--algorithms", "bc", "./mine.py") == 0
    assert "| Goal BC | Mine |" in Path("out/pointreach/success.md").read_text(), (
        "a further column of the table"
    )
    Path("none.py").write_text("x = 1\n")
    assert goat("train", "./none.py", "--group", GROUP, "--out", "other") == 2


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x = (\n", "line 1: SyntaxError"),
        ("\n\nnonsense\n", "line 3: NameError: name 'nonsense' is not defined"),
        (
            "from goatrl.algorithms import register\n\n@register('X')\ndef faulty(s):\n    'X.'\n "
            "   return nonsense\n",
            "line 6: NameError",
        ),
        (
            "from goatrl.algorithms import register\nfrom goatrl.learn.agent import "
            "weighted_regression\n\n@register('X')\ndef faulty(s):\n    'X.'\n    return "
            "weighted_regression(s, abs)\n",
            "<built-in function abs> is not a weight: it must be an object of a @pytree class",
        ),
        (
            "from goatrl.algorithms import register\n\n@register('X')\ndef faulty(s):\n    'X.'\n"
            "    return 3\n",
            "what faulty returns has no sampler, target_period, init, update, update_target, act",
        ),
        (
            "from goatrl.algorithms import register\nfrom goatrl.learn.agent import Agent, "
            "weighted_regression\nfrom goatrl.types import pytree\n\n\n@pytree\n"
            "class Own(Agent):\n    def act(self, state, observation, goal):\n"
            "        return observation + goal[:, :1, :]\n\n\n@register('X')\ndef faulty(s):\n"
            "    'X.'\n    plain = weighted_regression(s)\n"
            "    return Own(plain.policy, None, target_period=4)\n",
            "line 9: IndexError: Too many indices",
        ),
    ],
)
def test_a_fault_in_the_users_file_is_one_line(
    body: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("faulty.py").write_text(body)
    with own_algorithms():
        assert goat("train", "./faulty.py", "--group", GROUP, "--out", "run") == 2
        assert message in error_line(capsys)
        assert not Path("run").exists()
        bench = ("pointreach", "--groups", GROUP, "--algorithms", "./faulty.py", "--out", "out")
        assert goat("bench", *bench) == 2
        assert message in error_line(capsys)


def test_weights_without_a_value_part_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("blind.py").write_text(
        "from goatrl.algorithms import register\n"
        "from goatrl.learn.agent import weighted_regression\n"
        "from goatrl.learn.weights import ExpAdvantage\n\n\n"
        "@register('Blind')\n"
        "def blind(s):\n"
        "    'Weights from nowhere.'\n"
        "    return weighted_regression(s, ExpAdvantage())\n"
    )
    assert goat("train", "./blind.py", "--group", GROUP, "--out", "run") == 2
    assert "ExpAdvantage needs a value part" in error_line(capsys)


def test_a_run_is_not_mistaken_for_a_suites_records(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        goat("train", "bc", "--group", GROUP, "--seeds", "1", "--updates", "8", "--out", "run") == 0
    )
    assert goat("evaluate", "run") == 0
    assert "±" not in capsys.readouterr().out, "of one seed"
    assert goat("figure", "bars", "run", "--out", "x.png") == 2
    assert "run is a run, not a folder of records" in error_line(capsys)


def test_actions_that_no_policy_can_produce_are_pointed_out(
    odd_episodes: Episodes, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = Episodes(
        odd_episodes.observations,
        odd_episodes.achieved,
        5 * np.asarray(odd_episodes.actions),
        odd_episodes.goals,
    )
    datasets.save(wide, "wide.npz")
    train = [
        "train",
        "bc",
        "--data",
        "wide.npz",
        "--goal-threshold",
        "1",
        "--seeds",
        "1",
        "--updates",
        "20",
        "--out",
        "run",
    ]
    assert goat(*train) == 0
    shown = capsys.readouterr().out
    assert "actions are scaled to [-1, 1] from" in shown
    assert "their own range, since no bounds are declared" in " ".join(shown.split())
    assert "load_policy('run')" in shown
    assert goat(*train) == 0
    assert "already trained" in capsys.readouterr().out


def test_what_is_seen_of_own_data_and_what_nobody_checked_is_pointed_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rng = np.random.default_rng(0)
    seen, actions = rng.normal(size=(8, 6, 5)), rng.uniform(-1, 1, (8, 5, 2))
    datasets.save(make_episodes(seen, seen[..., 3:], actions, seen[:, -1, 3:]), "arm.npz")
    Path("mirror.toml").write_text("[[reflection]]\nobservation = { 0 = 0.0 }\n")
    train = ["train", "bc", "--data", "arm.npz", "--goal-threshold", "1", "--seeds", "1"]
    few = ["--updates", "20", "--set", "architecture.hidden=4"]
    assert goat(*train, *few, "--out", "plain") == 0
    assert "note: " not in capsys.readouterr().out
    heights = ["--inputs", "upright-frame", "--set", "architecture.vertical=1"]
    places = ["--set", "architecture.positions=0,1", "--symmetry", "mirror.toml"]
    assert goat(*train, *few, *heights, *places, "--out", "run") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "note: upright-frame inputs; the achieved goal is columns 3, 4, other places are 0, 1 "
        "(architecture.positions), heights are numbers 1 of a goal"
    ) in shown
    assert "`goat data symmetry arm.npz --symmetry mirror.toml` does" in shown
    difference = ["--inputs", "difference", "--set", "architecture.vertical=1"]
    assert goat(*train, *few, *difference, "--out", "other") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "note: architecture.vertical has no effect with difference inputs" in shown
    assert "note: difference inputs; the achieved goal is columns 3, 4 " in shown
    group = ["train", "bc", "--group", GROUP, "--seeds", "1", "--symmetry", "mirror.toml"]
    assert goat(*group, *few, "--out", "group") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"`goat data symmetry {GROUP} --symmetry mirror.toml` does" in shown


def test_a_suite_in_which_all_diverges_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def diverge(chunk, seeds) -> None:
        raise Diverged("training diverged: policy_loss of seed 0 is not finite at update 3")

    monkeypatch.setattr(Chunk, "check_finite", diverge)
    bench = [
        "bench",
        "pointreach",
        "--groups",
        GROUP,
        "--algorithms",
        "bc",
        "--seeds",
        "1",
        "--updates",
        "8",
        "--out",
        "out",
    ]
    assert goat(*bench) == 1
    assert "Goal BC on Non-Expert 10: training diverged" in error_line(capsys)


def test_the_authors_file_of_push_in_place_of_our_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the shape of push_right_5000.pkl in their repository: one array each, the goal at
    every step.
    """
    generator = np.random.default_rng(0)
    goals = generator.normal(size=(6, 1, 3)).repeat(49, axis=1)
    shapes = {"o": (6, 50, 25), "ag": (6, 50, 3), "u": (6, 49, 4)}
    arrays = {name: generator.uniform(-1, 1, shape) for name, shape in shapes.items()} | {
        "g": goals
    }
    file = tmp_path / "push_right_5000.pkl"
    file.write_bytes(pickle.dumps(arrays))

    def few_episodes(
        members: Members,
        state: TrainState,
        group: TaskGroup,
        tasks: Sequence[Task],
        on_progress: OnProgress,
    ) -> pa.Table:
        return evaluate(
            members,
            state,
            group,
            [dataclasses.replace(task, episodes=2) for task in tasks],
            on_progress,
        )

    monkeypatch.setattr(grid, "evaluate", few_episodes)
    chosen = ("--groups", "push-left-right", "--algorithms", "bc", "--seeds", 1, "--updates", 20)
    assert (
        goat("bench", "paper", *chosen, "--data", f"push-left-right={file}", "--out", "theirs") == 0
    )
    (cell,) = records.read_all(Path("theirs"))
    assert cell.config.checksum == datasets.load(file).checksum()
    assert set(cell.column("task")) == {
        "Right2Right",
        "Right2Left",
        "Left2Right",
        "Left2Left",
        "Coverage",
    }


def test_a_suites_columns_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert goat("list", "pointreach-cql-alpha") == 0
    text = capsys.readouterr().out
    assert "alpha=0.1" in text
    assert "cql_penalty.alpha=0.1" in text.replace(" ", "")
    assert "pointreach-non-expert-50" in text
    assert goat("list", "frontier-hidden") == 0
    text = capsys.readouterr().out
    assert "inputs=bounded-frame" in text
    assert "symmetry=rotation" in text
    assert goat("list", "newer-reference") == 0
    assert "batch_size=256" in capsys.readouterr().out
    assert goat("list", "ogbench-cube") == 0
    text = capsys.readouterr().out
    assert "on ogbench-cube\n" in text, "the suite"
    assert "goat data make ogbench-cube\n" in text, "and the group of that name"


def test_a_groups_tasks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert goat("list", "slide-near-far-hidden") == 0
    text = capsys.readouterr().out
    assert ["Hidden", "OOD", "200"] in [
        line.replace("│", " ").split() for line in text.splitlines()
    ]
    assert "goat data make slide-near-far\n" in text
    assert goat("list", "pointreach-expert-10") == 0
    assert "data make" not in capsys.readouterr().out
