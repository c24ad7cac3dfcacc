"""The package from Python, as `import goatrl` offers it."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goatrl
from goatrl import data as datasets
from goatrl.data.problems import Problem
from goatrl.runs.offline import Run, configure
from goatrl.types import GoatError
from helpers import ROOT, goat

pytestmark = pytest.mark.usefixtures("few_percentiles")

QUICK = {"updates": 8, "set": {"architecture.hidden": (8,)}}


@pytest.fixture(scope="module")
def data() -> Problem:
    return goatrl.load_dataset("pointreach-expert-10")


def test_everything_public_is_documented() -> None:
    for name in goatrl.__all__:
        thing = getattr(goatrl, name)
        assert thing.__doc__, name
        if inspect.isfunction(thing):
            takes = [each for each in inspect.signature(thing).parameters if each != "self"]
            for each in takes:
                assert re.search(rf"^ +{each}: ", thing.__doc__, re.MULTILINE), f"{name}: {each}"
            assert "Returns:" in thing.__doc__, name


def test_everything_public_is_on_the_reference_page() -> None:
    page = (ROOT / "docs" / "reference.md").read_text()
    entries = re.findall(r"^::: goatrl\.(\w+)$", page, re.MULTILINE)
    assert sorted(entries) == sorted(goatrl.__all__)


def test_agents_of_a_script_are_those_of_a_folder(data: Problem, tmp_path: Path) -> None:
    memory = goatrl.train("bc", data, seeds=(3, 5), **QUICK)
    folder = goatrl.train("bc", data, seeds=(3, 5), out=tmp_path / "run", **QUICK)
    loaded = goatrl.load_agents(tmp_path / "run")
    pair = np.zeros(2), np.array([3.0, 4.0])
    actions = [agents.policy(5)(*pair) for agents in (memory, folder, loaded)]
    actions.append(goatrl.load_policy(tmp_path / "run", 5)(*pair))
    for action in actions:
        np.testing.assert_array_equal(action, actions[0])
    assert [seed for _, seed in memory.members] == [3, 5]


def test_a_run_resumes(data: Problem, tmp_path: Path) -> None:
    steps: list[int] = []
    for _ in range(2):
        goatrl.train(
            "bc", data, seeds=1, out=tmp_path, on_report=lambda step, _: steps.append(step), **QUICK
        )
    assert steps == [4, 8], "the second call finds it done"


def test_only_some_tasks(data: Problem) -> None:
    episodes = goatrl.evaluate(goatrl.train("bc", data, seeds=2, **QUICK), only=["R20"])
    assert set(episodes.column("task").to_pylist()) == {"R20"}
    heading, _, line = goatrl.tabulate(episodes).splitlines()
    assert heading.startswith("| task | split | success")
    assert re.fullmatch(r"\| R20 \| ood \| [\d.]+ ± [\d.]+ \| [\d.]+ ± [\d.]+ \| 40 \|", line)


def test_a_file_or_arrays_of_ones_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(3, 5, 2))
    arrays = {"observations": seen, "achieved": seen, "goals": seen[:, -1]}
    arrays["actions"] = rng.uniform(-1, 1, (3, 4, 2))
    made = goatrl.make_dataset(**arrays, goal_threshold=0.5)
    np.savez(tmp_path / "mine.npz", **arrays)
    loaded = goatrl.load_dataset(tmp_path / "mine.npz", goal_threshold=0.5)
    assert made.spec == loaded.spec
    assert made.episodes.checksum() == loaded.episodes.checksum()
    agents = goatrl.train("gcsl", made, seeds=1, updates=20, set={"architecture.hidden": (8,)})
    with pytest.raises(GoatError, match="specify a group or an environment"):
        goatrl.evaluate(agents)


@pytest.mark.parametrize(
    ("largest", "bounds"),
    [
        (1.0, None),
        (0.3, (-0.3, [0.3, 0.4])),  # declared
        (3.0, None),  # scaled by their own range
        (1.2, (-1, 1)),  # declared, so that those beyond scale nothing
    ],
)
def test_a_dataset_is_saved_as_it_was_given(
    largest: float, bounds: tuple[Any, Any] | None, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    actions = [rng.uniform(-largest, largest, (length, 2)) for length in (3, 1, 5)]
    seen = [rng.normal(size=(len(each) + 1, 4)) for each in actions]
    achieved, goals = [each[:, :2] for each in seen], rng.normal(size=(3, 2))
    made = goatrl.make_dataset(
        seen, achieved, actions, goals, goal_threshold=0.1, action_bounds=bounds
    )
    file = goatrl.save_dataset(made, tmp_path / "mine.npz")
    loaded = goatrl.load_dataset(file)
    assert (loaded.spec, loaded.action_bounds) == (made.spec, made.action_bounds)
    assert loaded.episodes.checksum() == made.episodes.checksum(), "bit for bit"
    assert configure("bc", loaded).identity == configure("bc", made).identity
    stored = np.concatenate(actions).astype(np.float32)
    np.testing.assert_array_equal(
        datasets.load(file).actions[loaded.episodes.at(*loaded.episodes.steps())], stored
    )
    again = goatrl.save_dataset(loaded, tmp_path / "again.npz")
    with np.load(file) as one, np.load(again) as other:
        assert {name: array.tolist() for name, array in one.items()} == {
            name: array.tolist() for name, array in other.items()
        }


def test_a_run_names_the_checksum_that_data_info_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(3, 5, 2))
    actions = rng.uniform(-3, 3, (3, 4, 2))
    made = goatrl.make_dataset(seen, seen, actions, seen[:, -1], goal_threshold=0.5)
    assert made.action_bounds is not None
    file = goatrl.save_dataset(made, tmp_path / "mine.npz")
    assert goat("data", "info", file) == 0
    checksum = configure("bc", made).checksum
    assert checksum in re.sub(r"[\s│]", "", capsys.readouterr().out)


def test_symmetries_are_those_of_the_command_line(data: Problem, tmp_path: Path) -> None:
    mirror, run = tmp_path / "mirror.toml", tmp_path / "run"
    mirror.write_text(
        "[[reflection]]\nobservation = { 1 = 0.0 }\ngoal = { 1 = 0.0 }\naction = { 1 = 0.0 }\n"
    )
    goatrl.train("bc", data, seeds=1, symmetry=mirror, out=run, **QUICK)
    train = ("train", "bc", "--group", "pointreach-expert-10", "--seeds", 1, "--out", run)
    quick = ("--updates", 8, "--set", "architecture.hidden=8", "--symmetry", mirror)
    assert goat(*train, *quick) == 0, "the same run"
    assert json.loads(str(Run(run).config().hyperparameters["symmetry"])) == {
        "reflection": [{space: {"1": 0.0} for space in ("observation", "goal", "action")}]
    }
    alone = dataclasses.replace(data, group=None)
    with pytest.raises(GoatError, match=r"in declard \('declared' is the robot's own\): "):
        goatrl.train("bc", alone, symmetry="declard", **QUICK)
    with pytest.raises(GoatError, match="no symmetry is declared"):
        goatrl.train("bc", alone, symmetry="declared", **QUICK)


def test_what_is_evaluated_can_be_compared(
    data: Problem, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("bc", "gcsl"):
        agents = goatrl.train(name, data, seeds=2, out=tmp_path / name, **QUICK)
        table = goatrl.evaluate(agents, only=["R20"])
        kept, _ = Run(tmp_path / name).read_episodes()
        assert kept.equals(table)
    assert goat("compare", tmp_path / "bc", tmp_path / "gcsl") == 0
    assert "OOD" in capsys.readouterr().out
    (tmp_path / "gcsl/episodes.parquet").write_text("damaged")
    with pytest.warns(UserWarning, match="the episodes are not kept: .* is damaged"):
        assert goatrl.evaluate(agents, only=["R20"]).equals(table)
    before = sorted(tmp_path.iterdir())
    goatrl.evaluate(goatrl.train("bc", data, seeds=1, **QUICK), only=["R20"])
    assert sorted(tmp_path.iterdir()) == before, "what has no folder leaves nothing"


def test_what_is_misspelt_is_refused(data: Problem) -> None:
    with pytest.raises(GoatError, match="did you mean goat"):
        goatrl.train("gaot", data)
    with pytest.raises(GoatError, match="unknown hyper-parameter"):
        goatrl.train("bc", data, set={"learning_rat": 1.0})
    with pytest.raises(GoatError, match="goal threshold"):
        goatrl.load_dataset("no-such-file.npz", goal_threshold=-1.0)
