"""What is said about a dataset."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from goatrl import cli
from goatrl import data as datasets
from goatrl.cli.inspection import describe
from goatrl.episodes import make_episodes
from goatrl.training import symmetry_check


def test_what_is_said_about_episodes_of_different_lengths() -> None:
    """The first never meets its goal. The second meets its first goal at once, and its second one
    at its end.
    """
    paths = [[[0.0], [1.0]], [[5.0], [6.0], [7.0], [8.0]]]
    goals = [[[3.0]], [[6.0], [8.0], [8.0]]]
    actions = [[[-0.5]], [[-0.5], [0.5], [0.25]]]
    arrays = [[np.array(each) for each in part] for part in (paths, paths, actions, goals)]
    episodes = make_episodes(*arrays, terminated=[True, False])
    facts = describe(episodes, None, 0.1)
    assert facts["episodes"] == "2, 1 ended by termination"
    assert facts["actions per episode"] == "1 … 3, 4 in all"
    assert facts["action range"] == "-0.5 … 0.5"
    assert facts["desired goal reached"] == (
        "50.0 % of episodes at the last step, 1.0 steps per episode"
    )


@pytest.mark.parametrize(("plane", "code"), [(0.0, 0), (1.0, 1)])
def test_planes_that_contradict_each_other_are_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    plane: float,
    code: int,
) -> None:
    """A point, a block that it never meets, and the way from the one to the other."""
    monkeypatch.setattr(symmetry_check, "UPDATES", 20)
    monkeypatch.setattr(symmetry_check, "EXPLAINED", -9.0)  # how good the model is, is no matter
    monkeypatch.setattr(symmetry_check, "LIMIT", 9.0)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (40, 10, 1))
    point = np.concatenate([np.zeros((40, 1, 1)), actions.cumsum(axis=1)], axis=1)
    block = np.broadcast_to(rng.uniform(-3, 3, (40, 1, 1)), point.shape)
    seen = np.concatenate([point, block, block - point], axis=-1)
    mine = make_episodes(seen, point, actions, point[:, -1])
    datasets.save(mine, tmp_path / "mine.npz")
    (tmp_path / "mirror.toml").write_text(
        f"[[reflection]]\nobservation = {{ 0 = 0.0, 1 = {plane}, 2 = 0.0 }}\n"
        "goal = { 0 = 0.0 }\naction = { 0 = 0.0 }\n"
    )
    files = [str(tmp_path / "mine.npz"), "--symmetry", str(tmp_path / "mirror.toml")]
    assert cli.main(["data", "symmetry", *files]) == code
    told = " ".join("".join(capsys.readouterr()).split())
    assert ("reflection makes columns 0, 1, 2 contradict each other" in told) == bool(code)
    assert "breaks column" not in told
