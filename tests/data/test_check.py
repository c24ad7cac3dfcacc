"""`goat data check`: a line for everything that is made wrong on purpose, and none for what is
right.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goatrl import data as datasets
from goatrl.data import check
from goatrl.episodes import make_episodes
from goatrl.types import ActionBounds, Episodes
from helpers import error_line, goat

COUNT, HORIZON = 40, 12


def arrays() -> dict[str, Any]:
    """Nothing is wrong with these: a point that walks, in half of the episodes to its goal."""
    rng = np.random.default_rng(0)
    actions = rng.uniform(-0.9, 0.9, (COUNT, HORIZON, 2))
    achieved = np.concatenate([np.zeros((COUNT, 1, 2)), actions.cumsum(axis=1)], axis=1)
    observations = np.concatenate([achieved, rng.normal(size=(COUNT, HORIZON + 1, 1))], axis=-1)
    goals = achieved[:, -1] + np.where(np.arange(COUNT) % 2, 1.0, 0.1)[:, None]
    return {"observations": observations, "achieved": achieved, "actions": actions, "goals": goals}


def found(
    given: dict[str, Any] | Episodes,
    threshold: float | None = 0.5,
    bounds: ActionBounds | None = None,
) -> list[check.Finding]:
    episodes = given if isinstance(given, Episodes) else make_episodes(**given)
    return check.check(episodes, threshold, bounds)


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert found(arrays()) == []
    assert found(arrays(), None) == []


def goals_in_other_units(given: dict) -> None:
    given["goals"] = 1000 * given["goals"] + 500


def one_threshold_for_all(given: dict) -> None:
    given["goals"] = given["achieved"][:, -1]
    for name in ("observations", "achieved"):
        given[name] = 0.001 * given[name]
    given["goals"] = 0.001 * given["goals"]


def goals_that_one_episode_meets(given: dict) -> None:
    given["goals"] = given["achieved"][:, -1] + np.where(np.arange(COUNT) == 7, 0.1, 3.0)[:, None]


def shifted_goals(given: dict) -> None:
    given["goals"] = np.roll(given["achieved"][:, -1], 1, axis=0)


def stale_first_goals(given: dict) -> None:
    goals = np.repeat(given["goals"][:, None], HORIZON, axis=1)
    goals[1:, 0] = given["goals"][:-1]
    given["goals"] = goals


def padding(given: dict) -> None:
    """Three steps that repeat the last, in ten episodes."""
    for name in ("observations", "achieved"):
        given[name][:10, -3:] = given[name][:10, -4:-3]
    given["actions"][:10, -3:] = 0.0


def short_episodes(given: dict) -> None:
    ends = [1] * 7 + [HORIZON] * (COUNT - 7)
    for name, extra in (("observations", 1), ("achieved", 1), ("actions", 0)):
        given[name] = [part[: end + extra] for part, end in zip(given[name], ends, strict=True)]


def wide_actions(given: dict) -> None:
    given["actions"][0, :5, 0] = 2.5


def saturated_actions(given: dict) -> None:
    given["actions"] = np.sign(given["actions"])


def constant_columns(given: dict) -> None:
    given["observations"][..., 2] = 4.0
    given["actions"][..., 1] = 0.0


def nothing_achieved(given: dict) -> None:
    given["achieved"] = np.zeros_like(given["achieved"])
    given["goals"] = np.zeros_like(given["goals"])


@pytest.mark.parametrize(
    ("mistake", "lines"),
    [
        (
            goals_in_other_units,
            ["no action ever leads to within 0.5", "40 of 40 desired goals lie"],
        ),
        (one_threshold_for_all, ["every action leads to within 0.5 of its goal"]),
        (goals_that_one_episode_meets, ["1 of 40 episodes ever meet their goal"]),
        (
            shifted_goals,
            ["100 % of episodes end at the goal of the next episode, 5 % at their own"],
        ),
        (stale_first_goals, ["39 of 40 episodes begin with the goal of the episode before"]),
        (padding, ["10 of 40 episodes end in repeated frames, 30 in all"]),
        (short_episodes, ["7 of 40 episodes have a single action"]),
        (wide_actions, ["5 of 960 action components lie outside [-1, 1], up to 2.5"]),
        (saturated_actions, ["960 of 960 action components lie at their bounds"]),
        (
            constant_columns,
            ["column 2 of the observations never varied", "column 1 of the actions never varied"],
        ),
        (nothing_achieved, ["what is achieved never changes", "every action leads to within"]),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_each_mistake_has_its_line(mistake: Callable[[dict], None], lines: list[str]) -> None:
    given = arrays()
    mistake(given)
    told = [each.what for each in found(given)]
    assert len(told) == len(lines), told
    for line, expected in zip(told, lines, strict=True):
        assert line.startswith(expected)
    assert found(given)[0].fatal == (mistake is nothing_achieved)


def test_actions_are_compared_with_declared_bounds() -> None:
    given = arrays()
    given["actions"] = 2.0 * given["actions"]
    assert not found(given, bounds=ActionBounds((-2.0, -2.0), (2.0, 2.0)))
    (line,) = found(given, bounds=ActionBounds((-2.0, -1.0), (2.0, 1.0)))
    outside = int((np.abs(np.float32(given["actions"][..., 1])) > 1.002).sum())
    assert line.what == f"{outside} of 960 action components lie outside of the declared bounds"


def test_what_no_action_follows_is_no_frame_to_compare() -> None:
    """The last frame of an episode and the first of the next are equal here."""
    given = arrays()
    short_episodes(given)
    given["observations"][1][0] = given["observations"][0][-1]
    episodes = make_episodes(**given)
    assert check.repeated(episodes).tolist() == [0] * COUNT


def test_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    given = arrays()
    datasets.save(make_episodes(**given), "right.npz")
    assert goat("data", "check", "right.npz", "--goal-threshold", 0.5) == 0
    assert "40 episodes, 480 actions" in (shown := capsys.readouterr().out)
    assert "nothing suspicious" in shown
    padding(given)
    wide_actions(given)
    datasets.save(make_episodes(**given), "wrong.npz")
    assert goat("data", "check", "wrong.npz", "--figure", "wrong.png") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:4] for line in lines[1:3]] == ["! 10", "! 5 "]
    assert "add --goal-threshold to check success as well" in lines
    assert Path("wrong.png").stat().st_size > 10_000
    assert goat("data", "check", "pointreach-expert-10") == 0
    assert "10 episodes, 490 actions" in capsys.readouterr().out


def test_what_cannot_be_trained_on_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    given = arrays()
    given["goals"][3:5, 1] = np.nan
    np.savez("nan.npz", **given)
    assert goat("data", "check", "nan.npz") == 1
    assert re.search(
        r"nan\.npz: goals contains 2 values that are not finite .*\(3, 1\)", error_line(capsys)
    )
    Path("damaged.npz").write_bytes(b"PK")
    assert goat("data", "check", "damaged.npz") == 1
    assert "damaged.npz is damaged" in error_line(capsys)
    given = arrays()
    nothing_achieved(given)
    datasets.save(make_episodes(**given), "still.npz")
    assert goat("data", "check", "still.npz") == 1
    assert "nothing can be learned from still.npz" in error_line(capsys)
    datasets.save(make_episodes(**arrays()), "right.npz")
    assert goat("data", "check", "right.npz", "--group", "push-left-right") == 1
    assert "does not fit push-left-right" in error_line(capsys)
    assert goat("data", "check", "none.npz") == 2
    assert "no such file" in error_line(capsys)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "root"))
    assert goat("data", "check", "minari:me/none-v0") == 2
    assert "no Minari dataset 'me/none-v0' on this machine" in error_line(capsys)


def test_actions_at_a_limit_that_nobody_declared() -> None:
    given = arrays()
    given["actions"] = np.clip(given["actions"], -0.3, 0.3)
    (finding,) = [each for each in found(given, None) if "limit" in each.advice]
    assert re.search(r"action components are 0\.3 or -0\.3, and none is larger", finding.what)
    declared = ActionBounds((-0.3,) * 2, (0.3,) * 2)
    assert not [each for each in found(given, None, declared) if "limit" in each.advice]
    given["actions"] *= 0.5 / 0.3
    given["actions"][0, 0, 0] = 0.9  # a single larger one
    assert not [each for each in found(given, None) if "limit" in each.advice]
