"""Looking at robots: pictures show what is there and change nothing; clips hold every step and the
verdict.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import subprocess
import sys
from pathlib import Path

import gymnasium
import imageio.v3 as imageio
import mujoco
import numpy as np
import pytest
from imageio_ffmpeg import get_ffmpeg_exe
from PIL import Image

import goatrl.sim.gym
from goatrl import cli, tasks
from goatrl import data as datasets
from goatrl.cli.view import View
from goatrl.data.problems import open_problem
from goatrl.disk import checkpoint
from goatrl.episodes import make_episodes
from goatrl.experiments import agents as benchmark
from goatrl.experiments.records import CellConfig, Training
from goatrl.learn.parameters import hyperparameters
from goatrl.report import video
from goatrl.robots.physics.camera import Camera, off_screen
from goatrl.robots.reach import REACH as ROBOT
from goatrl.runs.offline import Run, configure
from goatrl.training.offline import init, prune_to_policy
from goatrl.types import GoatError

ONE_OF_EACH = ["ReachFar", "PushNear2Far", "PickHigh", "SlideFar", "HandReachFar"]
REACH = tasks.get("reach-left-right")


@pytest.fixture(scope="module")
def egl() -> None:
    try:
        off_screen().free()
    except GoatError as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def small_and_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goatrl.sim.gym, "PICTURE_SIZE", 48)
    monkeypatch.chdir(tmp_path)


def checksum(model: mujoco.MjModel) -> str:
    buffer = np.zeros(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return hashlib.sha256(buffer).hexdigest()


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_looking_changes_nothing(name: str, egl: None) -> None:
    """PickAndPlace and the hand above all: they observe positions that are a little old; a careless
    picture would renew them.
    """
    seen, unseen = (
        gymnasium.make(f"goatrl/{name}-v0", render_mode=mode).unwrapped
        for mode in ("rgb_array", None)
    )
    model, state = seen._simulator.robot.model, seen._simulator.states[0]
    before = checksum(model)
    for env in (seen, unseen):
        env.reset(seed=0)
        env.action_space.seed(0)
    for _ in range(8):
        held = copy.copy(state)
        picture = seen.render()
        for array in ("qpos", "qvel", "qacc_warmstart", "xpos", "site_xpos", "cdof", "ctrl"):
            assert np.array_equal(getattr(state, array), getattr(held, array)), array
        assert picture.shape == (48, 48, 3)
        assert picture.std() > 10, "an empty picture"
        assert unseen.render() is None
        action = seen.action_space.sample()
        one, other = seen.step(action), unseen.step(action)
        assert all(np.array_equal(one[0][part], other[0][part]) for part in one[0])
    assert checksum(model) == before
    seen.close()
    unseen.close()


def test_the_goal_is_drawn_where_it_is(egl: None) -> None:
    robot = ROBOT.robot
    state = mujoco.MjData(robot.model)
    robot.reset(state, np.zeros(0))
    camera = Camera(robot, 96)

    def red_column(goal: list[float]) -> float:
        red, green, blue = np.moveaxis(camera.draw(state, np.array(goal)).astype(int), -1, 0)
        return float(np.nonzero((red > 150) & (green < 80) & (blue < 80))[1].mean())

    assert (
        red_column([1.4, 0.95, 0.5]) > red_column([1.4, 0.75, 0.5]) + 10
    )  # larger y is the tasks' "right"
    camera.close()
    camera.close()


def test_without_egl_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(mujoco, "egl", raising=False)
    monkeypatch.setitem(sys.modules, "mujoco.egl", None)
    with pytest.raises(GoatError, match="apt-get install libegl1 libgl1-mesa-dri") as refused:
        Camera(ROBOT.robot, 48)
    assert "\n" not in str(refused.value)


def towards(observations: np.ndarray, goals: np.ndarray) -> np.ndarray:
    """Reaches half of the goals: the others are mirrored."""
    aim = goals - observations[:, :3]
    aim[1::2] *= -1
    return np.concatenate([np.clip(10 * aim, -1, 1), np.zeros((len(goals), 1))], axis=1)


def test_borders_tell_success(egl: None) -> None:
    group = dataclasses.replace(REACH, spec=dataclasses.replace(REACH.spec, horizon=12))
    steps: list[int] = []
    frames = video.record(
        towards, group, group.task("Left"), "Reach", 3, 40, lambda: steps.append(1)
    )
    assert len(frames) == 13 + video.VERDICT_FRAMES
    assert len(steps) == 14
    top, second = video.CAPTION_HEIGHT, video.GAP + 40 + video.GAP
    corners = [(top, video.GAP), (top, second), (top + 40 + video.GAP, video.GAP)]
    verdicts = [tuple(int(part) for part in frames[-1][corner]) for corner in corners]
    assert verdicts == [video.MET, video.MISSED, video.MET]
    assert all(tuple(frames[12][corner]) not in (video.MET, video.MISSED) for corner in corners)
    assert frames[0][: video.CAPTION_HEIGHT].min() < 100, "no caption"


def decoded(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """All frames of a film; imageio's own reader leaves its pipes open."""
    command = [
        get_ffmpeg_exe(),
        "-v",
        "error",
        "-i",
        path,
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
        "-",
    ]
    return np.frombuffer(
        subprocess.run(command, capture_output=True, check=True).stdout, np.uint8
    ).reshape(-1, *shape)


def test_view_writes_both_kinds(egl: None) -> None:
    arguments = [
        "view",
        "hand-near-far",
        "--task",
        "far",
        "--episodes",
        "2",
        "--size",
        "33",
        "--out",
    ]
    assert cli.main([*arguments, "clip.mp4", "new/clip.gif"]) == 0
    horizon = tasks.get("hand-near-far").spec.horizon
    count = horizon + 1 + video.VERDICT_FRAMES
    with Image.open("new/clip.gif") as still:  # equal frames become one that lasts longer
        lasts = []
        for number in range(still.n_frames):
            still.seek(number)
            lasts.append(still.info["duration"])
    assert horizon + 1 < len(lasts) <= count
    assert sum(lasts) == 40 * count
    gif = imageio.imread("new/clip.gif")
    film = decoded(Path("clip.mp4"), gif.shape[1:])
    assert len(film) == count
    for frames in (film, gif):
        inside = frames[:, video.CAPTION_HEIGHT :]
        assert (inside.reshape(len(frames), -1).std(axis=1) > 10).all(), "an empty frame"
        assert np.abs(inside[0].astype(int) - inside[horizon].astype(int)).max() > 50, (
            "nothing moves"
        )
    first = Path("new/clip.gif").read_bytes()
    assert cli.main([*arguments, "again.gif"]) == 0
    assert Path("again.gif").read_bytes() == first
    assert sorted(path.name for path in Path().rglob("*.*")) == [
        "again.gif",
        "clip.gif",
        "clip.mp4",
    ]


def test_a_run_can_act() -> None:
    rng = np.random.default_rng(0)
    shapes = [(4, 50, 10), (4, 50, 3), (4, 49, 4), (4, 3)]
    datasets.save(make_episodes(*(rng.uniform(-1, 1, shape) for shape in shapes)), "mine.npz")
    config = configure("bc", open_problem(REACH.name, Path("mine.npz")), data=Path("mine.npz"))
    run = Run(Path("run"))
    run.prepare(config)
    checkpoint.save(
        run.checkpoint_path,
        init(config.members(), config.spec),
        {"step": 0},
    )
    name, policy = View(REACH.name, "left", (Path("clip.mp4"),), run.folder).actor(REACH)
    assert name == "BC"
    assert policy(np.zeros((2, 10)), np.ones((2, 3))).shape == (2, 4)
    members = [(config.members()[0][0], seed) for seed in (3, 5)]
    kept = CellConfig(
        "reach-left-right", "bc", "", hyperparameters(members[0][0]), config.spec, "", "", 8, 8
    )
    state = init(members, config.spec)
    acting = prune_to_policy(members[0][0], config.spec, state)
    benchmark.save(Path("b"), kept, Training((3, 5), {}, 2, 1.0), acting)
    (file,) = Path("b/agents").iterdir()
    name, policy = View(REACH.name, "left", (Path("clip.mp4"),), file, seed=5).actor(REACH)
    assert name == "BC"
    assert policy(np.zeros((2, 10)), np.ones((2, 3))).shape == (2, 4)
    push = tasks.get("push-left-right")
    with pytest.raises(GoatError, match="run does not fit push-left-right"):
        View(push.name, "left2left", (Path("clip.mp4"),), run.folder).actor(push)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["pointreach-expert-10", "--task", "R10", "--out", "a.mp4"],
            "draw its paths with `goat figure trajectories`",
        ),
        (
            ["push-left-right", "--out", "a.mp4"],
            "--task: push-left-right has Right2Right, Right2Left, Left2Right, Left2Left",
        ),
        (["push-left-right", "--task", "Left", "--out", "a.mp4"], "did you mean Left2Left"),
        (
            ["push-left-right", "--task", "Left2Left", "--out", "a.mp4", "a.avi"],
            "cannot write a.avi: name a file that ends in .mp4 or .gif",
        ),
        (["push-left-right", "--task", "Left2Left", "--out"], "specify the clip with --out"),
        (
            ["push-left-right", "--task", "Left2Left", "--out", "a.mp4", "--episodes", "0"],
            "between 1 and 36, not 0",
        ),
        (
            ["push-left-right", "--task", "Left2Left", "--out", "a.mp4", "--size", "5000"],
            "between 32 and 1024 pixels, not 5000",
        ),
        (
            ["push-left-right", "--task", "Left2Left", "--out", "a.mp4", "--run", "none"],
            "none is not a run",
        ),
    ],
)
def test_mistakes_get_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["view", *arguments]) == 2
    shown = capsys.readouterr().err.strip()
    assert message in shown
    assert "\n" not in shown
    assert not list(Path().iterdir())


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["view", "--help"])
    assert "goat view push-left-right" in capsys.readouterr().out
