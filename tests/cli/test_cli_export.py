"""goat export, as typed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from goatrl.experiments.loading import load_policy
from helpers import ROOT, error_line, goat, own_algorithms

pytestmark = pytest.mark.usefixtures("few_percentiles")

QUICK = ("--updates", 8, "--set", "architecture.hidden=16,16")
POINT = "pointreach-expert-10"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "run"
    assert goat("train", "gcsl", "--group", POINT, "--seeds", 2, *QUICK, "--out", folder) == 0
    return folder


def test_a_policy_and_its_card_lie_in_the_run(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert goat("export", run, "--seed", 1) == 0
    shown = capsys.readouterr().out
    found = re.search(r"on 10,000 random inputs: (\d\.\de-\d\d) \(onnxruntime\)", shown)
    assert found
    assert float(found[1]) < 1e-5
    path = run / "policy_seed_1.onnx"
    session = onnxruntime.InferenceSession(path)
    pair = {"observation": np.float32([[1.0, 2.0]]), "goal": np.float32([[9.0, -9.0]])}
    (action,) = session.run(None, pair)
    np.testing.assert_allclose(action, load_policy(run, 1)(*pair.values()), atol=1e-5)
    card = path.with_name("policy_seed_1.onnx.md").read_text()
    assert card.startswith("# Agent card: GCSL, seed 1\n")
    assert f"largest difference from JAX on 10,000 random inputs: {found[1]}" in card
    assert goat("train", "gcsl", "--group", POINT, "--seeds", 2, *QUICK, "--out", run) == 0
    assert "already trained" in capsys.readouterr().out, "the run is what it was"


def test_another_format_and_place(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new" / "policy.py"
    assert goat("export", run, "--format", "numpy", "--out", path) == 0
    assert sorted(each.name for each in path.parent.iterdir()) == ["policy.py", "policy.py.md"]
    assert "(NumPy)" in capsys.readouterr().out
    assert goat("export", run, "--format", "numpy") == 0
    assert (run / "policy_seed_0.py").read_bytes() == path.read_bytes()


def test_an_algorithm_of_ones_own(tmp_path: Path) -> None:
    file, run = ROOT / "examples" / "relay.py", tmp_path / "run"
    with own_algorithms():
        train = ("train", file, "--group", POINT, "--seeds", 1, *QUICK, "--out", run)
        assert goat(*train) == 0
        assert goat("export", run, "--algorithm", file) == 0
    card = (run / "policy_seed_0.onnx.md").read_text()
    assert "| algorithm | Relay (`relay` revision 1) |" in card
    assert re.search(r"\| its file \| SHA-256 `[0-9a-f]{64}` \|", card)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seed", 7], "has no seed 7; it has 0, 1"),
        (["--out", "policy.py"], "ends in .onnx (or use the format numpy)"),
        (["--out", "policy.bin"], "cannot write policy.bin: name a file that ends in .onnx"),
    ],
)
def test_a_mistake_is_one_line(
    options: list,
    message: str,
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    before = sorted(run.iterdir())
    assert goat("export", run, *options) == 2
    assert message in error_line(capsys)
    assert not list(tmp_path.iterdir())
    assert sorted(run.iterdir()) == before


def test_a_run_that_was_cut_short_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert goat("train", "bc", "--group", POINT, "--seeds", 1, *QUICK, "--out", tmp_path) == 0
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"updates": 8', '"updates": 800'))
    capsys.readouterr()
    assert goat("export", tmp_path, "--format", "numpy") == 0
    stopped = "stopped at update 8 of 800; resume it with `goat train`"
    assert stopped in " ".join(capsys.readouterr().out.split())
    assert f"| updates | 8 ({stopped}) |" in (tmp_path / "policy_seed_0.py.md").read_text()


def test_what_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert goat("export", tmp_path / "nothing") == 2
    assert "is not a run: it has no config.json" in error_line(capsys)
    assert not list(tmp_path.iterdir())
