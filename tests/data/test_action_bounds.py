"""Actions of any bounds: agents learn them in [-1, 1] and act in the units of the data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

import goatrl
from goatrl import data as datasets
from goatrl import tasks
from goatrl.data import minari
from goatrl.data.problems import (
    Problem,
    declared_symmetry,
    open_problem,
    own_bounds,
    without_group,
)
from goatrl.episodes import make_episodes
from goatrl.report import goal_figures
from goatrl.runs import finetune
from goatrl.runs.offline import Run, RunConfig, configure
from goatrl.types import ActionBounds, Episodes, GoatError
from helpers import error_line, goat

pytestmark = pytest.mark.usefixtures("few_percentiles")

WIDE = ActionBounds((0.0, -2.0), (4.0, 2.0))
QUICK = {"updates": 20, "batch_size": 8, "set": {"architecture.hidden": (8,)}, "seeds": 1}


def made(actions: list[list[list[float]]]) -> Episodes:
    """A point that its actions move, whatever their units."""
    steps = [np.concatenate([np.zeros((1, 2)), np.cumsum(each, axis=0)]) for each in actions]
    return make_episodes(
        steps, steps, [np.array(each) for each in actions], [[1.0, 2.0]] * len(actions)
    )


def wide() -> Episodes:
    return made([[[0.0, -2.0], [4.0, 2.0]], [[2.0, 0.0], [3.0, 1.0], [1.0, -1.0]]])


SCALED = [[-1.0, -1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.5, 0.5], [-0.5, -0.5], [0.0, 0.0]]


def test_bounds_become_one_and_back() -> None:
    actions = np.array([[0.0, 2.0], [4.0, -2.0], [2.0, 0.0], [3.0, 1.0]])
    scaled = WIDE.scaled(actions)
    np.testing.assert_array_equal(scaled, [[-1, 1], [1, -1], [0, 0], [0.5, 0.5]])
    np.testing.assert_array_equal(WIDE.restored(scaled), actions)
    assert ActionBounds.of([-1, -1], [1, 1]).native
    assert not WIDE.native


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ([0.0, 0.0], [1.0, 0.0], "every lower action bound must be below its upper one"),
        ([0.0], [1.0, 2.0], "every lower action bound must be below its upper one"),
        ([0.0, np.nan], [1.0, 2.0], "must be finite"),
        ([0.0, 0.0], [1.0, np.inf], "must be finite"),
    ],
)
def test_bounds_that_are_none_are_refused(low: list, high: list, message: str) -> None:
    with pytest.raises(GoatError, match=message):
        ActionBounds.of(low, high)


def problem(episodes: Episodes, **more) -> Problem:
    parts = ("observations", "achieved", "actions", "goals", "lengths")
    given = episodes.arrays()
    if episodes.lengths is not None:
        ends = np.cumsum(np.asarray(episodes.lengths) + 1)[:-1]
        rows = {name: np.split(given[name], ends) for name in parts[:3]}
        rows["actions"] = [each[:-1] for each in rows["actions"]]
        given |= rows
    given.pop("lengths", None)
    return goatrl.make_dataset(**given, goal_threshold=0.5, **more)


def test_declared_bounds_scale_the_data() -> None:
    scaled = problem(wide(), action_bounds=([0, -2], [4, 2]))
    assert (scaled.action_bounds, scaled.bounds_declared) == (WIDE, True)
    np.testing.assert_array_equal(scaled.episodes.actions, SCALED)
    np.testing.assert_array_equal(scaled.episodes.observations, wide().observations)
    one = problem(wide(), action_bounds=(-5.0, 5.0))
    assert one.action_bounds == ActionBounds((-5.0, -5.0), (5.0, 5.0))
    with pytest.raises(GoatError, match="bounds for 3 numbers of an action, but actions have 2"):
        without_group(wide(), 0.5, ActionBounds((0.0,) * 3, (1.0,) * 3))


def test_without_declared_bounds_it_is_the_range_of_the_actions() -> None:
    own = problem(made([[[0.5, 3.0], [-0.5, 5.0]], [[0.0, 3.0]]]))
    # the first dimension lies in [-1, 1] as it is
    assert own.action_bounds == ActionBounds((-1.0, 3.0), (1.0, 5.0))
    assert not own.bounds_declared
    constant = problem(made([[[0.0, 3.0], [0.0, 3.0]], [[0.0, 3.0]]]))
    assert constant.action_bounds == ActionBounds((-1.0, 2.0), (1.0, 4.0))


def test_a_few_outliers_scale_nothing() -> None:
    """Five among five hundred numbers of a dimension say nothing about its bounds; six may."""
    actions = np.zeros((2, 250, 2))
    actions[0, :5] = 10.0
    assert problem(made(actions.tolist())).action_bounds is None
    actions[0, 5, 0] = 10.0
    assert problem(made(actions.tolist())).action_bounds == ActionBounds((0.0, -1.0), (10.0, 1.0))


def test_actions_in_range_are_as_they_were(odd_episodes: Episodes, tmp_path: Path) -> None:
    datasets.save(odd_episodes, tmp_path / "a.npz")
    for same in (problem(odd_episodes), open_problem(None, tmp_path / "a.npz", 0.5)):
        assert same.action_bounds is None
        assert same.episodes.checksum() == odd_episodes.checksum()
        config = configure("bc", same, updates=20)
        assert "action_bounds" not in config.identity.about
        assert RunConfig.from_json(dict(config.identity.about)) == config


def test_a_file_declares_its_bounds(tmp_path: Path) -> None:
    path = tmp_path / "wide.npz"
    datasets.save(wide(), path, WIDE)
    opened = open_problem(None, path, 0.5)
    assert (opened.action_bounds, opened.bounds_declared) == (WIDE, True)
    np.testing.assert_array_equal(opened.episodes.actions, SCALED)
    assert datasets.load(path).checksum() == wide().checksum()
    np.savez(tmp_path / "b.npz", **wide().arrays(), action_low="a", action_high="b")
    with pytest.raises(GoatError, match="action_low and action_high are no arrays of numbers"):
        open_problem(None, tmp_path / "b.npz", 0.5)


def test_minaris_action_space_declares_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "root"))
    monkeypatch.chdir(tmp_path)
    datasets.save(wide(), "wide.npz", WIDE)
    convert = ("data", "convert", "wide.npz", "--goal-threshold", 0.5, "--out", "minari:me/wide-v0")
    assert goat(*convert) == 0
    assert minari.load("me/wide-v0").checksum() == wide().checksum()
    opened = open_problem(None, Path("minari:me/wide-v0"))
    assert opened.action_bounds == WIDE
    np.testing.assert_array_equal(opened.episodes.actions, SCALED)
    assert goat("data", "convert", "minari:me/wide-v0", "--out", "back.npz") == 0
    assert open_problem(None, Path("back.npz"), 0.5).action_bounds == WIDE
    narrow = made([[[0.5, 0.5]], [[-0.5, 0.5], [1.0, 0.0]]])
    minari.export(narrow, "me/narrow-v0", goal_threshold=0.5, action_bounds=WIDE)
    assert open_problem(None, Path("minari:me/narrow-v0")).action_bounds == WIDE, "as declared"


def test_the_scale_travels_with_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    datasets.save(wide(), "wide.npz", WIDE)
    train = ["train", "bc", "--data", "wide.npz", "--goal-threshold", 0.5, "--seeds", 1]
    train += ["--updates", 40, "--batch-size", 8, "--set", "architecture.hidden=8", "--out", "run"]
    assert goat(*train) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "actions are scaled to [-1, 1] from (0, -2) to (4, 2), as declared" in shown
    stored = json.loads(Path("run/config.json").read_text())["config"]
    assert stored["action_bounds"] == {"low": [0.0, -2.0], "high": [4.0, 2.0]}
    assert Run(Path("run")).problem().action_bounds == WIDE
    assert goat(*train) == 0
    assert "already trained" in capsys.readouterr().out
    agents = goatrl.load_agents("run")
    assert agents.action_bounds == WIDE
    pairs = np.random.default_rng(0).normal(size=(2, 50, 2))
    actions = goatrl.load_policy("run")(*pairs)
    assert (actions >= [0.0, -2.0]).all()
    assert (actions <= [4.0, 2.0]).all()
    assert actions[:, 0].min() > 0.5, "these agents learned actions around 2"
    datasets.save(wide(), "wide.npz", ActionBounds((0.0, -3.0), (4.0, 3.0)))
    assert goat(*train) == 2
    assert "action_bounds" in error_line(capsys)


def test_paths_are_drawn_in_the_units_of_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = goatrl.train("bc", problem(wide()), out=tmp_path / "run", **QUICK)
    drawn: list[pa.Table] = []
    draw = goal_figures.paths_in_environment

    def noted(table: pa.Table, threshold: float) -> Figure:
        drawn.append(table)
        return draw(table, threshold)

    monkeypatch.setattr(goal_figures, "paths_in_environment", noted)
    where = ("--environment", "worlds:worlds/Point-v0", "--episodes", 2)
    out = ("--out", tmp_path / "paths.svg")
    assert goat("figure", "trajectories", tmp_path / "run", *where, *out) == 0
    (paths,) = drawn
    assert paths.equals(goatrl.evaluate(agents, environment="worlds/Point-v0", count=2))


def test_robots_take_no_other_bounds(tmp_path: Path) -> None:
    agents = goatrl.train("bc", problem(wide()), out=tmp_path / "run", **QUICK)
    with pytest.raises(GoatError, match=r"does not fit pointreach-expert-10: its data has actions"):
        goatrl.evaluate(agents, "pointreach-expert-10")
    reach = tasks.get("reach-left-right")
    sizes = (reach.spec.observation_dim, reach.spec.goal_dim, reach.spec.action_dim)
    steps, places, actions = (np.ones((2, 3, size)) for size in sizes)
    large = goatrl.make_dataset(steps, places, 3 * actions[:, :-1], places[:, 0], goal_threshold=1)
    goatrl.train("bc", large, out=tmp_path / "reach", **QUICK)
    with pytest.raises(GoatError, match="does not fit reach-left-right: its data has actions"):
        finetune.plan(Run(tmp_path / "reach"), where="reach-left-right")


def test_declared_bounds_of_one_are_bounds(tmp_path: Path) -> None:
    """Actions a little beyond them are not scaled by their own range."""
    episodes = made([[[0.5, -1.0], [1.02, 0.3]], [[1.02, 0.1], [0.2, 0.9]]])
    datasets.save(episodes, tmp_path / "unit.npz", ActionBounds((-1.0, -1.0), (1.0, 1.0)))
    found = open_problem(None, tmp_path / "unit.npz", 0.5)
    assert found.action_bounds is None
    assert found.episodes.checksum() == episodes.checksum()
    assert problem(episodes).action_bounds is not None, "without a declaration, by their range"


def test_one_dimension_is_scaled_though_the_others_hide_it() -> None:
    actions = np.zeros((100, 24))
    actions[:19, -1] = 40.0  # 0.8 % of all components
    bounds = own_bounds(actions)
    assert bounds is not None
    assert bounds.low == (*[-1.0] * 23, 0.0)
    assert bounds.high == (*[1.0] * 23, 40.0)
    actions[1:, -1] = 0.0  # a single outlier
    assert own_bounds(actions) is None


def test_bounds_between_which_nothing_can_be_told_are_refused() -> None:
    with pytest.raises(GoatError, match="too near to each other or too large"):
        without_group(wide(), 0.5, ActionBounds((-1e-320,) * 2, (1e-320,) * 2))


def test_a_symmetry_is_declared_in_the_units_of_the_data(tmp_path: Path) -> None:
    """Of actions from -2 to 6, the mirror at 0 is the one at -1 of those in [-1, 1]."""
    file = tmp_path / "mirror.toml"
    file.write_text("[[reflection]]\nobservation = { 0 = 0.0 }\naction = { 0 = 0.0 }\n")
    bounds = ActionBounds((-2.0, -1.0), (6.0, 1.0))
    (found,) = json.loads(declared_symmetry(file, None, bounds))["reflection"]
    assert found == {"observation": {"0": 0.0}, "action": {"0": -1.0}}
    raw = np.array([[1.5, 0.0]])
    mirrored = bounds.scaled(raw * [-1, 1])
    np.testing.assert_allclose(-1.0 - bounds.scaled(raw)[:, 0], mirrored[:, 0])
    (same,) = json.loads(declared_symmetry(file, None))["reflection"]
    assert same["action"] == {"0": 0.0}


def test_actions_of_different_units_are_not_turned(tmp_path: Path) -> None:
    file = tmp_path / "turn.toml"
    file.write_text("[[rotation]]\naction = { vectors = [[0, 1]] }\nby = [-0.1, 0.1]\n")
    alike = declared_symmetry(file, None, ActionBounds((-2.0, -2.0), (2.0, 2.0)))
    assert alike == declared_symmetry(file, None)
    for low, high in (((-2.0, -1.0), (2.0, 1.0)), ((0.0, 0.0), (2.0, 2.0))):
        with pytest.raises(GoatError, match="whose bounds are the same, −b and b"):
            declared_symmetry(file, None, ActionBounds(low, high))
    # Nor is the second of two, after one that turns no action.
    other = "[[rotation]]\ngoal = { vectors = [[0, 1]] }\nby = [-0.1, 0.1]\n"
    file.write_text(other + file.read_text())
    with pytest.raises(GoatError, match="whose bounds are the same, −b and b"):
        declared_symmetry(file, None, ActionBounds((-2.0, -1.0), (2.0, 1.0)))


@pytest.mark.parametrize("turned", ["{ angles = [0] }", "{ places = [[0, 1]] }"])
def test_places_and_angles_of_scaled_actions_are_not_turned(turned: str, tmp_path: Path) -> None:
    file = tmp_path / "turn.toml"
    file.write_text(f"[[rotation]]\naction = {turned}\naround = [0.5, 0.5]\nby = [-0.1, 0.1]\n")
    assert declared_symmetry(file, None)
    with pytest.raises(GoatError, match="not places or angles"):
        declared_symmetry(file, None, ActionBounds((-2.0, -2.0), (2.0, 2.0)))


def test_minari_keeps_what_was_declared_and_what_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    rng = np.random.default_rng(0)
    actions = rng.uniform(-0.5, 0.5, (20, 10, 2))
    small = made(actions.tolist())
    actions[0, 0, 0] = 50.0
    outlier = made(actions.tolist())
    declared = ActionBounds((-3.0,) * 2, (3.0,) * 2)
    for name, episodes, bounds in (("small", small, declared), ("outlier", outlier, None)):
        minari.export(episodes, f"me/{name}-v0", goal_threshold=0.5, action_bounds=bounds)
        found = open_problem(None, Path(f"minari:me/{name}-v0"))
        assert found.action_bounds == bounds


def test_a_file_of_other_bounds_does_not_fit_a_group(tmp_path: Path) -> None:
    group = "pointreach-non-expert-10"
    own = datasets.of_group(tasks.get(group))
    datasets.save(own, tmp_path / "wide.npz", ActionBounds((-3.0,) * 2, (3.0,) * 2))
    with pytest.raises(GoatError, match="it declares other bounds of actions than -1 and 1"):
        open_problem(group, tmp_path / "wide.npz")


def test_bounds_are_saved_as_they_are_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    episodes, path = made([[[0.3, -0.1]], [[0.1, 0.2]]]), tmp_path / "metres.npz"
    datasets.save(episodes, path, (-0.3, [0.3, 0.4]))
    assert datasets.action_bounds(path, episodes) == ActionBounds((-0.3, -0.3), (0.3, 0.4))
    assert goat("data", "info", path) == 0
    assert "[-0.3, 0.3], [-0.3, 0.4]" in capsys.readouterr().out
    with np.load(path) as file:
        half = {name: file[name] for name in file if name != "action_high"}
    np.savez(path, **half)
    with pytest.raises(GoatError, match="it has only one of action_low and action_high"):
        open_problem(None, path, 0.5)
