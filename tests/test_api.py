"""The package from Python, as `import goatrl` offers it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import goatrl
from goatrl.data.problems import Problem
from goatrl.types import GoatError
from helpers import ROOT

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


def test_what_is_misspelt_is_refused(data: Problem) -> None:
    with pytest.raises(GoatError, match="did you mean goat"):
        goatrl.train("gaot", data)
    with pytest.raises(GoatError, match="unknown hyper-parameter"):
        goatrl.train("bc", data, set={"learning_rat": 1.0})
    with pytest.raises(GoatError, match="goal threshold"):
        goatrl.load_dataset("no-such-file.npz", goal_threshold=-1.0)
