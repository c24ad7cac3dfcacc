"""Files are data: a run's folder or a file of agents executes nothing, whatever it says. Users name
their own algorithm.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from goatrl import algorithms, tasks
from goatrl import data as datasets
from goatrl.algorithms import registry
from goatrl.disk import checkpoint
from goatrl.episodes import make_episodes
from goatrl.experiments.loading import load_policy
from goatrl.experiments.records import CellConfig, Training
from goatrl.learn.parameters import override
from goatrl.robots import Finetuning
from goatrl.runs.folder import RunFolder
from goatrl.runs.offline import Run
from goatrl.types import GoatError, Settings
from helpers import error_line, goat

pytestmark = pytest.mark.usefixtures("few_percentiles")

POINT = "pointreach-expert-10"
REACH = "reach-left-right"
MARKER = Path("executed")
OWN = Path("careful.py")
TEXT = (
    "from pathlib import Path\n"
    "from goatrl.algorithms import register\n"
    "from goatrl.learn.agent import weighted_regression\n\n\n"
    f"Path('{MARKER}').touch()\n\n\n"
    "@register('Careful')\n"
    "def careful_imitation(s):\n"
    "    '''Imitation.'''\n"
    "    return weighted_regression(s)\n"
)
SHORT = ["--seeds", 1, "--updates", 8]
NAME_IT = "specify its file with --algorithm FILE (in Python: load_policy(path, algorithm=FILE))"


@pytest.fixture(autouse=True)
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_ENTRIES", {})
    monkeypatch.chdir(tmp_path)
    new_process()
    OWN.write_text(TEXT)


BUILT_IN = {name: entry for name, entry in algorithms.entries().items() if not entry.source}


def new_process() -> None:
    """Forget what the user has named, and that it was executed."""
    registry._ENTRIES.clear()
    registry._ENTRIES.update(BUILT_IN)
    MARKER.unlink(missing_ok=True)


def digest() -> str:
    return hashlib.sha256(OWN.read_bytes()).hexdigest()


def train(group: str = POINT, *more: object) -> None:
    assert goat("train", f"./{OWN}", "--group", group, *SHORT, "--out", "run", *more) == 0
    assert MARKER.exists()
    new_process()


def assert_refused(
    what: Path, message: str, capsys: pytest.CaptureFixture[str], *option: object
) -> None:
    """Every way to open a run says the same, in one line, and executes nothing: not even a file
    that `option` names, if it is another one.
    """
    commands: list[list[object]] = [
        ["view", REACH, "--task", "Right", "--run", what, "--out", "x.gif"],
        ["export", what, "--out", "x.onnx"],
    ]
    if what.is_dir():
        commands += [["evaluate", what]]
        if "checksum" in RunFolder(what).about():
            commands += [
                ["finetune", what, "--out", "tuned"],
                ["figure", "trajectories", what, "--out", "x.png"],
            ]
            commands += [
                ["figure", kind, what, "--out", "x.png"] for kind in ("density", "uncertainty")
            ]
    capsys.readouterr()
    for command in commands:
        assert goat(*command, *option) == 2, command
        assert message in error_line(capsys), command
    with pytest.raises(GoatError) as caught:
        load_policy(what, algorithm=OWN if option else None)
    assert message in str(caught.value)
    assert not MARKER.exists()


def test_a_run_of_ones_own_algorithm_needs_its_file(capsys: pytest.CaptureFixture[str]) -> None:
    train()
    stored = json.loads(Path("run/config.json").read_text())["config"]
    assert (stored["algorithm"], stored["source"]) == ("careful_imitation", digest())
    assert_refused(
        Path("run"),
        f"run was trained with your own algorithm 'careful_imitation'; {NAME_IT}",
        capsys,
    )
    assert goat("evaluate", "run", "--algorithm", OWN) == 0
    assert "Careful on Expert 10" in capsys.readouterr().out
    assert goat("figure", "trajectories", "run", "--algorithm", OWN, "--out", "x.png") == 0
    new_process()
    act = load_policy("run", algorithm=OWN)
    assert act(np.zeros(2), np.ones(2)).shape == (2,)


def test_a_file_that_has_changed_since_training_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train()
    OWN.write_text(TEXT + "# edited\n")
    message = (
        "'careful_imitation' (careful.py is a different file or has changed since training: "
        "its SHA-256 differs)"
    )
    assert_refused(Path("run"), message, capsys, "--algorithm", OWN)
    assert goat("train", f"./{OWN}", "--group", POINT, *SHORT, "--out", "run") == 2
    assert "run has another configuration (differs in source; your algorithm's file" in error_line(
        capsys
    )
    OWN.write_text(TEXT)
    assert goat("train", f"./{OWN}", "--group", POINT, *SHORT, "--out", "run") == 0
    assert "already trained" in capsys.readouterr().out
    assert goat("evaluate", "run") == 0, "named in this process"


def test_training_says_how_its_run_is_opened(capsys: pytest.CaptureFixture[str]) -> None:
    assert goat("train", f"./{OWN}", "--group", POINT, *SHORT, "--out", "run") == 0
    assert f"evaluate it: goat evaluate run --algorithm {OWN}" in capsys.readouterr().out


@pytest.mark.parametrize("source", [True, False], ids=["with a source", "without"])
def test_a_path_in_a_config_is_only_text(source: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """As earlier versions wrote it, or as somebody did by hand."""
    train()
    path = Path("run/config.json")
    stored = json.loads(path.read_text())
    stored["config"] |= {"algorithm": str(OWN.resolve())} | ({} if source else {"source": ""})
    path.write_text(json.dumps(stored))
    assert_refused(
        Path("run"),
        f"run was trained with your own algorithm '{OWN.resolve()}'; {NAME_IT}",
        capsys,
    )
    # The SHA-256 says which one it is, wherever it lies now.
    assert goat("evaluate", "run", "--algorithm", OWN) == (0 if source else 2)


def test_another_algorithm_under_the_name_of_a_run_is_not_taken_for_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train()
    path = Path("run/config.json")
    stored = json.loads(path.read_text())
    stored["config"]["source"] = ""  # as if it had been registered without a file
    path.write_text(json.dumps(stored))
    assert goat("evaluate", "run") == 2
    assert "unknown algorithm 'careful_imitation'" in error_line(capsys)
    assert_refused(Path("run"), "careful.py is a different file", capsys, "--algorithm", OWN)


def test_fine_tuning_by_ones_own_algorithm(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = Finetuning(5, batch_size=8, round=4, evaluate_every=2, evaluated_episodes=4)
    monkeypatch.setitem(vars(tasks.get(REACH).family), "finetuning", recipe)
    generator = np.random.default_rng(0)
    achieved = 1.0 + 0.1 * generator.normal(size=(5, 11, 3))
    observations = np.concatenate([achieved, generator.normal(size=(5, 11, 7))], axis=-1)
    datasets.save(
        make_episodes(
            observations, achieved, generator.uniform(-1, 1, (5, 10, 4)), achieved[:, -1]
        ),
        "mine.npz",
    )
    assert (
        goat(
            "train",
            OWN,
            "--group",
            REACH,
            "--data",
            "mine.npz",
            "--seeds",
            1,
            "--updates",
            40,
            "--out",
            "run",
        )
        == 0
    )
    new_process()
    assert (
        goat("finetune", "run", "--by", "own", "--algorithm", OWN, "--episodes", 4, "--out", "own")
        == 0
    )
    assert f"goat evaluate own --algorithm {OWN}" in capsys.readouterr().out
    origin = json.loads(Path("own/config.json").read_text())["config"]["from"]
    assert (origin["algorithm"], origin["label"], origin["source"]) == (
        "careful_imitation",
        "Careful",
        digest(),
    )
    new_process()
    assert_refused(
        Path("own"),
        f"own was trained with your own algorithm 'careful_imitation'; {NAME_IT}",
        capsys,
    )
    assert load_policy("own", algorithm=OWN)(np.zeros(10), np.zeros(3)).shape == (4,)
    new_process()
    stored = json.loads(Path("own/config.json").read_text())
    stored["config"]["from"] |= {"algorithm": str(OWN.resolve()), "source": ""}
    Path("own/config.json").write_text(json.dumps(stored))
    assert_refused(
        Path("own"),
        f"own was trained with your own algorithm '{OWN.resolve()}'; {NAME_IT}",
        capsys,
    )
    # Agents that go on by DDPG+HER are DDPG+HER's: whatever they came from plays no part.
    assert goat("finetune", "run", "--algorithm", OWN, "--episodes", 4, "--out", "ddpg") == 0
    new_process()
    assert load_policy("ddpg")(np.zeros(10), np.zeros(3)).shape == (4,)
    assert not MARKER.exists()


def test_agents_of_a_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    bench = [
        "bench",
        "pointreach",
        "--groups",
        POINT,
        "--algorithms",
        f"./{OWN}",
        *SHORT,
        "--out",
        "out",
    ]
    assert goat(*bench) == 0
    new_process()
    (file,) = Path("out/agents").iterdir()
    assert_refused(
        file,
        f"{file} was trained with your own algorithm 'careful_imitation'; {NAME_IT}",
        capsys,
    )
    assert load_policy(file, algorithm=OWN)(np.zeros(2), np.ones(2)).shape == (2,)
    new_process()
    capsys.readouterr()
    assert goat(*bench) == 0, "the same command again, in another process"
    assert "1 cell of 1 seed, 0 to run" in capsys.readouterr().out
    OWN.write_text(TEXT + "# edited\n")
    assert goat(*bench) == 2
    assert "another configuration (differs in source; your algorithm's file" in error_line(capsys)


@pytest.mark.parametrize("source", ["", "0" * 64])
def test_crafted_agents_of_a_benchmark(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = CellConfig(POINT, f"./{OWN}", source, {}, tasks.get(POINT).spec, "data", "tasks", 8, 8)
    about = {
        "config": dataclasses.asdict(config),
        "training": dataclasses.asdict(Training((0,), {}, 1, 1.0)),
    }
    checkpoint.save(Path("crafted.safetensors"), {"step": np.zeros(1)}, about)
    assert_refused(
        Path("crafted.safetensors"),
        f"was trained with your own algorithm './{OWN}'; {NAME_IT}",
        capsys,
    )


def test_what_is_hashed_is_what_is_executed() -> None:
    first = algorithms.resolve(str(OWN))
    assert algorithms.get("careful_imitation") == first == algorithms.load_file(OWN.resolve()), (
        "executed once"
    )
    OWN.write_text(TEXT.replace("Careful", "More careful"))
    second = algorithms.resolve(str(OWN))
    assert (second.label, second.source) == ("More careful", digest())
    assert first.source != second.source
    OWN.write_text("nonsense")
    with pytest.raises(GoatError, match=r"careful.py, line 1: NameError"):
        algorithms.resolve(str(OWN))
    assert algorithms.get("careful_imitation") == second, "a faulty file changes nothing"


PART = """
from goatrl.algorithms import register
from goatrl.learn.agent import weighted_regression
from goatrl.learn.values import QEnsemble
from goatrl.learn.weights import ExpAdvantage
from goatrl.types import pytree


@pytree
class Mild(ExpAdvantage):
    share: float = 0.5


@register("Mild")
def mild_goat(settings):
    '''With a part of its own.'''
    return weighted_regression(settings, Mild(), value=QEnsemble(1))
"""


def test_a_users_file_is_compiled_as_plain_python() -> None:
    """Not with the future statements of the module that executes it: annotations are types there,
    and numbers stay numbers.
    """
    Path("mild.py").write_text(PART)
    built = algorithms.load_file("mild.py").build(Settings())
    (weight,) = override(built, {"mild.share": "0.25"}).policy.weights
    assert type(weight).__annotations__["share"] is float
    assert weight.share == 0.25


def test_a_file_that_ends_the_program_leaves_nothing_registered() -> None:
    OWN.write_text(f"{TEXT}\n\nraise SystemExit\n")
    before = set(algorithms.entries())
    with pytest.raises(SystemExit):
        algorithms.load_file(OWN)
    assert set(algorithms.entries()) == before


def test_names_are_no_paths() -> None:
    with pytest.raises(GoatError, match="is a file, and files are executed only by `resolve`"):
        algorithms.get(str(OWN))
    assert not MARKER.exists()


def test_a_run_keeps_to_its_own_version_of_a_file() -> None:
    train()
    algorithms.load_file(OWN)
    config = Run(Path("run")).config()
    OWN.write_text(TEXT + "# edited\n")
    algorithms.load_file(OWN)
    with pytest.raises(GoatError, match="has changed since training"):
        config.members()
