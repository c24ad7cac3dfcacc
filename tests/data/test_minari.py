"""Minari datasets: what goes out comes back, anybody can read it, and nothing half-written
is left.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import goatrl
from goatrl import data as datasets
from goatrl import tasks
from goatrl.data import minari
from goatrl.data.problems import open_problem
from goatrl.episodes import make_episodes
from goatrl.learn.samplers import reached
from goatrl.runs.offline import Run, configure
from goatrl.types import Episodes, GoatError
from helpers import goat

GROUP = "pointreach-non-expert-10"
REACH = tasks.get("reach-left-right")
NAMES = ("observations", "achieved", "actions", "goals")


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Minari's folder of datasets, for this test only."""
    folder = tmp_path / "root"
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


def everything(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def metadata(root: Path, name: str) -> dict:
    return json.loads((root / name / "data" / "metadata.json").read_text())


def of_reach() -> Episodes:
    """Any numbers with the dimensions of the robot's task."""
    rng = np.random.default_rng(0)
    return make_episodes(
        rng.normal(size=(2, 6, 10)),
        rng.normal(size=(2, 6, 3)),
        rng.uniform(-1, 1, (2, 5, 4)),
        np.ones((2, 3)),
    )


def foreign(
    name: str,
    lengths: tuple[int, ...] = (3, 3),
    keys: tuple[str, ...] = minari.KEYS,
    moving: bool = False,
) -> None:
    """A dataset as others record it: doubles, further entries, infos."""
    from gymnasium.spaces import Box, Dict
    from minari import __version__
    from minari.data_collector import EpisodeBuffer
    from minari.dataset.minari_storage import MinariStorage
    from minari.storage.datasets_root_dir import get_dataset_path

    folder = get_dataset_path(name)
    folder.mkdir(parents=True)
    space = Dict({key: Box(-np.inf, np.inf, (2,), np.float64) for key in (*keys, "further")})
    storage = MinariStorage.new(folder / "data", space, Box(-1.0, 1.0, (1,), np.float32))
    storage.update_metadata({"dataset_id": name, "minari_version": __version__})
    for number, length in enumerate(lengths):
        values = {key: np.full((length + 1, 2), 0.1 * number) for key in space.spaces}
        if moving and number == 1:
            values["desired_goal"][-1] = 7.0
        never = np.zeros(length, bool)
        storage.update_episodes(
            [
                EpisodeBuffer(
                    None, None, None, values, np.zeros((length, 1)), never * 1.0, never, never
                )
            ]
        )


def test_a_dataset_comes_back_bit_for_bit(odd_episodes: Episodes) -> None:
    strange = np.array(odd_episodes.actions)
    strange[0, 0] = [
        -0.0,
        np.finfo(np.float32).tiny / 8,
    ]  # a sign and a denormal that arithmetic could lose
    episodes = dataclasses.replace(odd_episodes, actions=strange)
    assert minari.export(episodes, "me/odd-v0", goal_threshold=0.5)
    for loaded in (
        minari.load("me/odd-v0"),
        datasets.load("minari:me/odd-v0"),
        datasets.load(Path("minari:me/odd-v0")),
    ):
        for name in NAMES:
            ours, theirs = np.asarray(getattr(episodes, name)), getattr(loaded, name)
            assert (theirs.dtype, theirs.shape) == (ours.dtype, ours.shape)
            assert theirs.tobytes() == ours.tobytes()


def test_the_reward_is_that_of_what_an_action_achieves(odd_episodes: Episodes) -> None:
    achieved = np.array([[[0.0], [1.0], [3.0], [2.5]]])  # at the goal, 1 away, 1 away, 0.5 away
    achieved = np.concatenate([achieved, achieved - 1.0])  # 1 away, at the goal, 2 away, 1.5 away
    episodes = make_episodes(achieved, achieved, np.zeros((2, 3, 1)), [[2.0], [0.0]])
    np.testing.assert_array_equal(minari.rewards(episodes, 1.0), [[1, 1, 1], [1, 0, 0]])
    np.testing.assert_array_equal(minari.rewards(episodes, 0.5), [[0, 0, 1], [1, 0, 0]])
    trained_on = reached(
        odd_episodes.achieved[:, 1:],
        np.repeat(np.asarray(odd_episodes.goals)[:, None], 7, axis=1),
        2.0,
    )
    np.testing.assert_array_equal(minari.rewards(odd_episodes, 2.0), trained_on)
    assert 0 < trained_on.mean() < 1


def test_minari_sees_spaces_steps_and_namespace(odd_episodes: Episodes) -> None:
    import minari as library
    from minari.namespace import list_local_namespaces

    minari.export(odd_episodes, "me/robots/odd-v3", goal_threshold=2.0)
    assert list(library.list_local_datasets()) == ["me/robots/odd-v3"]
    assert list_local_namespaces() == ["me", "me/robots"]
    dataset = library.load_dataset("me/robots/odd-v3")
    assert (dataset.total_episodes, dataset.total_steps) == (4, 28)
    for number, episode in enumerate(dataset.iterate_episodes()):
        assert repr(episode)
        for step in range(8):
            assert dataset.observation_space.contains(
                {key: episode.observations[key][step] for key in minari.KEYS}
            )
        assert all(dataset.action_space.contains(action) for action in episode.actions)
        np.testing.assert_array_equal(
            episode.observations["desired_goal"],
            np.repeat(odd_episodes.goals[number : number + 1], 8, 0),
        )
        np.testing.assert_array_equal(episode.rewards, minari.rewards(odd_episodes, 2.0)[number])
        assert not episode.terminations.any()
        assert episode.truncations.tolist() == 6 * [False] + [True]
    assert (dataset.action_space.low, dataset.action_space.high) == (
        pytest.approx(-1),
        pytest.approx(1),
    )


def test_the_action_space_is_as_wide_as_the_actions(odd_episodes: Episodes) -> None:
    import minari as library

    wide = dataclasses.replace(odd_episodes, actions=3 * np.asarray(odd_episodes.actions))
    minari.export(wide, "wide-v0", goal_threshold=2.0)
    dataset = library.load_dataset("wide-v0")
    assert all(dataset.action_space.contains(action) for action in dataset[0].actions)
    assert minari.load("wide-v0").checksum() == wide.checksum()


def test_metadata_of_own_data(root: Path, odd_episodes: Episodes) -> None:
    minari.export(
        odd_episodes,
        "me/odd-v0",
        goal_threshold=0.5,
        description="Odd.",
        author="Me",
        algorithm="by hand",
    )
    about = metadata(root, "me/odd-v0")
    expected = {
        "dataset_id": "me/odd-v0",
        "description": "Odd.",
        "author": ["Me"],
        "algorithm_name": "by hand",
        "goal_threshold": 0.5,
        "episodes_sha256": odd_episodes.checksum(),
        "goatrl_version": goatrl.__version__,
        "total_episodes": 4,
    }
    assert {key: about[key] for key in expected} == expected
    assert not {"env_spec", "eval_env_spec", "requirements"} & about.keys()


@pytest.mark.parametrize("name", tasks.groups())
def test_every_group_describes_its_dataset(name: str) -> None:
    group = tasks.get(name)
    about = minari.describe(group)
    assert about.keys() == {"description", "author", "algorithm"}
    assert group.label in about["description"]


def test_a_robot_dataset_brings_its_environments() -> None:
    import minari as library

    minari.export(of_reach(), "goatrl/reach-v0", goal_threshold=0.05, group=REACH)
    dataset = library.load_dataset("goatrl/reach-v0")
    for judging, task in ((False, "Right"), (True, "Left")):
        environment = dataset.recover_environment(eval_env=judging)
        assert environment.unwrapped.task.name == task
        observation, _ = environment.reset(seed=0)
        assert {key: value.shape for key, value in observation.items()} == {
            key: space.shape for key, space in dataset.observation_space.spaces.items()
        }
        environment.close()


def test_minari_alone_reads_an_export(root: Path) -> None:
    """Nothing of goatrl is needed, also where environments are named."""
    episodes = of_reach()
    minari.export(
        episodes, "goatrl/reach-v0", goal_threshold=2.0, group=REACH, **minari.describe(REACH)
    )
    code = (
        "import sys\n"
        "ours = 'goatrl jax optax scipy pyarrow safetensors matplotlib mujoco gymnasium_robotics "
        "imageio tyro'\n"
        "sys.modules.update(dict.fromkeys(ours.split()))\n"
        "import minari\n"
        "dataset = minari.load_dataset('goatrl/reach-v0')\n"
        "episodes = list(dataset.iterate_episodes())\n"
        "print(dataset.env_spec.id, len(episodes), *(float(episode.actions.sum()) for episode in "
        "episodes))\n"
    )
    # Warnings are errors here too, as in all tests.
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    sums = [float(actions.sum()) for actions in np.asarray(episodes.actions)]
    assert ended.stdout.split() == ["goatrl/ReachRight-v0", "2", *map(str, sums)]


def test_an_id_is_never_overwritten(root: Path, odd_episodes: Episodes) -> None:
    assert minari.export(odd_episodes, "me/odd-v0", goal_threshold=0.5)
    before = {path: (root / path).stat().st_mtime_ns for path in everything(root)}
    assert not minari.export(
        odd_episodes, "me/odd-v0", goal_threshold=0.5, description="The same in other words."
    )
    for episodes, threshold in ((of_reach(), 0.5), (odd_episodes, 0.6)):
        with pytest.raises(
            GoatError,
            match=r"me/odd-v0 already exists with different episodes or goal threshold; .*minari "
            r"delete",
        ):
            minari.export(episodes, "me/odd-v0", goal_threshold=threshold)
    assert {path: (root / path).stat().st_mtime_ns for path in everything(root)} == before
    (root / "me/odd-v0/data/main_data.hdf5").write_bytes(b"damaged")
    with pytest.raises(GoatError, match="already exists with different episodes"):
        minari.export(odd_episodes, "me/odd-v0", goal_threshold=0.5)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError, OSError, RuntimeError])
def test_an_interrupted_export_leaves_nothing(
    root: Path, odd_episodes: Episodes, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    whole = minari._buffers

    def interrupted(*arguments):
        yield next(whole(*arguments))
        assert [path for path in everything(root) if path.endswith("hdf5")], "it has begun to write"
        raise kind

    monkeypatch.setattr(minari, "_buffers", interrupted)
    with pytest.raises(GoatError if kind in (OSError, RuntimeError) else kind):
        minari.export(odd_episodes, "me/odd-v0", goal_threshold=0.5)
    assert everything(root) == []


def test_a_write_that_fails_silently_is_noticed(
    root: Path, odd_episodes: Episodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = minari._buffers

    def lossy(*arguments):
        for buffer in whole(*arguments):
            yield dataclasses.replace(buffer, actions=np.zeros_like(buffer.actions))

    monkeypatch.setattr(minari, "_buffers", lossy)
    with pytest.raises(GoatError, match=r"cannot write .*me/odd-v0: it reads back differently"):
        minari.export(odd_episodes, "me/odd-v0", goal_threshold=0.5)
    assert everything(root) == []


def test_a_full_disk_is_noticed_before(
    root: Path, odd_episodes: Episodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**6, 10**6 - 10**5, 10**5)
    )
    with pytest.raises(GoatError, match=r"cannot write .*me/odd-v0: no space left on the disk"):
        minari.export(odd_episodes, "me/odd-v0", goal_threshold=0.5)
    assert everything(root) == []


def test_another_process_that_was_faster_is_not_overwritten(
    root: Path, odd_episodes: Episodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faster(name: str) -> None:
        (root / name / "data").mkdir(parents=True)
        (root / name / "data" / "theirs").touch()

    monkeypatch.setattr(minari, "_make_namespace", faster)
    with pytest.raises(GoatError, match=f"cannot write .*: {os.strerror(errno.ENOTEMPTY)}"):
        minari.export(odd_episodes, "me/odd-v0", goal_threshold=0.5)
    assert everything(root) == ["me", "me/odd-v0", "me/odd-v0/data", "me/odd-v0/data/theirs"]


@pytest.mark.parametrize(
    "name",
    ["", "odd", "me/odd", "../odd-v0", "/tmp/odd-v0", "me/../odd-v0", "me/odd-v", "me/o d-v0"],
)
def test_an_id_has_a_form(root: Path, odd_episodes: Episodes, name: str) -> None:
    with pytest.raises(GoatError, match="is not a Minari id; write NAMESPACE/NAME-v0"):
        minari.export(odd_episodes, name, goal_threshold=0.5)
    with pytest.raises(GoatError, match="is not a Minari id; write NAMESPACE/NAME-v0"):
        minari.load(name)
    assert not root.exists()


@pytest.mark.parametrize("threshold", [0.0, -1.0, np.nan, np.inf])
def test_a_threshold_is_positive(odd_episodes: Episodes, threshold: float) -> None:
    with pytest.raises(GoatError, match="must be a positive number"):
        minari.export(odd_episodes, "me/odd-v0", goal_threshold=threshold)


def test_the_threshold_of_a_dataset(odd_episodes: Episodes) -> None:
    minari.export(odd_episodes, "me/odd-v0", goal_threshold=0.25)
    foreign("others/plain-v0")
    assert (minari.goal_threshold("me/odd-v0"), minari.goal_threshold("others/plain-v0")) == (
        0.25,
        None,
    )


def test_training_takes_the_threshold_of_a_dataset_unless_another_is_given(
    odd_episodes: Episodes,
) -> None:
    minari.export(odd_episodes, "me/odd-v0", goal_threshold=0.25)
    foreign("others/plain-v0")
    mine = Path("minari:me/odd-v0")
    assert open_problem(None, mine).spec.goal_threshold == 0.25
    assert open_problem(None, mine, 2.0).spec.goal_threshold == 2.0
    with pytest.raises(GoatError, match="needs --goal-threshold"):
        open_problem(None, Path("minari:others/plain-v0"))


def test_datasets_of_others_are_read() -> None:
    foreign("others/reach-v1")
    loaded = datasets.load("minari:others/reach-v1")
    assert (loaded.count, loaded.horizon) == (2, 3)
    assert np.asarray(loaded.goals).dtype == np.float32
    np.testing.assert_allclose(loaded.goals, [[0.0, 0.0], [0.1, 0.1]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"keys": ("observation",)},
            "it is not goal-conditioned: .*vectors observation, achieved_goal, desired_goal",
        ),
        ({"lengths": ()}, "it has no episodes"),
    ],
)
def test_what_goatrl_cannot_learn_from_is_refused(given: dict, message: str) -> None:
    foreign("others/reach-v1", **given)
    with pytest.raises(GoatError, match=f"^minari:others/reach-v1: {message}"):
        minari.load("others/reach-v1")


def test_episodes_may_differ_in_length() -> None:
    foreign("others/reach-v1", lengths=(3, 1, 5))
    loaded = minari.load("others/reach-v1")
    assert (loaded.count, loaded.horizon) == (3, 5)
    np.testing.assert_array_equal(loaded.lengths, [3, 1, 5])
    np.testing.assert_allclose(loaded.goals, [[0.0, 0.0], [0.1, 0.1], [0.2, 0.2]])


def test_the_goal_that_the_last_observation_shows_is_nobodys() -> None:
    """No action follows it."""
    foreign("others/reach-v1", moving=True)
    np.testing.assert_allclose(minari.load("others/reach-v1").goals, [[0.0, 0.0], [0.1, 0.1]])


def various() -> Episodes:
    """Of different lengths, with goals that change, some ended by their environment."""
    rng = np.random.default_rng(0)
    lengths = (2, 1, 4)
    return make_episodes(
        [rng.normal(size=(length + 1, 3)) for length in lengths],
        [rng.normal(size=(length + 1, 2)) for length in lengths],
        [rng.uniform(-1, 1, (length, 1)) for length in lengths],
        [rng.normal(size=(length, 2)) for length in lengths],
        terminated=[False, True, False],
    )


def test_lengths_goals_and_ends_come_back() -> None:
    import minari as library

    episodes = various()
    assert minari.export(episodes, "me/various-v0", goal_threshold=0.5)
    assert minari.load("me/various-v0").checksum() == episodes.checksum()
    stored = list(library.load_dataset("me/various-v0").iterate_episodes())
    assert [len(each.actions) for each in stored] == [2, 1, 4]
    assert [each.terminations.tolist() for each in stored] == [2 * [False], [True], 4 * [False]]
    assert [each.truncations.tolist() for each in stored] == [
        [False, True],
        [False],
        3 * [False] + [True],
    ]
    for n, each in enumerate(stored):
        now = np.asarray(episodes.desired(np.full(len(each.actions), n), np.arange(len(each))))
        after = each.observations["achieved_goal"][1:]
        expected = np.linalg.norm(after - now, axis=-1) <= 0.5
        np.testing.assert_array_equal(each.rewards, expected)


def test_stale_first_goals_are_mended() -> None:
    """As where the environment goes on after a success: the first goal is the previous episode's.
    The third episode's first goal is a goal of its own.
    """
    old, new = np.array([1.0, 1.0]), np.array([2.0, 2.0])
    own = np.array([5.0, 5.0])
    shown = [np.stack([old] * 3), np.stack([old, new, new]), np.stack([own, old, old])]
    before = [None, shown[0][-1], shown[1][-1]]
    mended = [
        each if last is None else minari._mended(each, last)
        for each, last in zip(shown, before, strict=True)
    ]
    np.testing.assert_array_equal(mended[0], shown[0])
    np.testing.assert_array_equal(mended[1], np.stack([new] * 3))
    np.testing.assert_array_equal(mended[2], shown[2])


def test_a_dataset_that_declares_too_much_is_refused(root: Path, odd_episodes: Episodes) -> None:
    import h5py

    minari.export(odd_episodes, "me/odd-v0", goal_threshold=0.5)
    with h5py.File(root / "me/odd-v0/data/main_data.hdf5", "a") as file:
        del file["episode_0/actions"]
        file.create_dataset("episode_0/actions", (2**45, 2), "f4", chunks=(1, 2))  # holds nothing
    with pytest.raises(
        GoatError, match=r"it declares 2\.62e\+05 GiB, more than half of this machine's memory"
    ):
        minari.load("me/odd-v0")


def to_the_goal(seen: dict[str, np.ndarray]) -> np.ndarray:
    towards = seen["desired_goal"] - seen["achieved_goal"] - 0.3 * seen["observation"][2:]
    return np.clip(4 * towards, -1, 1).astype(np.float32)


def collected(
    name: str,
    episodes: int,
    callback=None,
    environment="PointMaze_Open-v3",
    act=to_the_goal,
    max_episode_steps=80,
    **settings,
):
    """A small dataset of a maze, as Minari's own collector records it: whether its episodes were
    terminated, and what Minari reads.
    """
    import gymnasium
    import gymnasium_robotics
    import minari as library

    gymnasium.register_envs(gymnasium_robotics)
    maze = gymnasium.make(environment, max_episode_steps=max_episode_steps, **settings)
    more = {} if callback is None else {"step_data_callback": callback}
    collector = library.DataCollector(maze, **more)
    ends: list[bool] = []
    seen, _ = collector.reset(seed=0)
    while len(ends) < episodes:
        seen, _, terminated, truncated, info = collector.step(act(seen))
        if terminated or truncated or (callback is not None and info["success"]):
            ends.append(terminated)
            if callback is None:
                seen, _ = collector.reset(seed=len(ends))
    about = dict.fromkeys(("algorithm_name", "author", "code_permalink", "author_email"), "none")
    recorded = collector._tmp_dir
    made = collector.create_dataset(name, description="none", eval_env=maze.spec, **about)
    collector.close()
    for folder in (recorded, collector._tmp_dir):
        folder.cleanup()  # or its finaliser warns
    return ends, list(made.iterate_episodes())


def test_a_maze_that_ends_at_success_is_read() -> None:
    ends, stored = collected("mazes/small-v0", 4, continuing_task=False)
    assert any(ends)
    loaded = minari.load("mazes/small-v0")
    np.testing.assert_array_equal(loaded.terminated, ends)
    np.testing.assert_array_equal(loaded.lengths, [len(each.actions) for each in stored])
    assert len(set(np.asarray(loaded.lengths))) > 1
    assert loaded.goals.shape == (4, 2)
    for path, each in zip(loaded.paths(), stored, strict=True):
        np.testing.assert_array_equal(path, each.observations["achieved_goal"].astype(np.float32))
    last = np.stack([path[-1] for path in loaded.paths()])
    np.testing.assert_array_equal(np.linalg.norm(last - loaded.goals, axis=-1) <= 0.45, ends)


def test_an_ant_in_a_maze_is_read_checked_and_trained_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its place is not part of what it observes."""
    rng = np.random.default_rng(0)
    _, stored = collected(
        "mazes/ant-v0",
        3,
        environment="AntMaze_UMaze-v5",
        act=lambda seen: rng.uniform(-1, 1, 8).astype(np.float32),
        max_episode_steps=12,
    )
    loaded = minari.load("mazes/ant-v0")
    for episode, each in enumerate(stored):
        for name, key in (("observations", "observation"), ("achieved", "achieved_goal")):
            wanted = each.observations[key].astype(np.float32)
            np.testing.assert_array_equal(getattr(loaded, name)[episode], wanted)
        np.testing.assert_array_equal(loaded.actions[episode], each.actions)
        np.testing.assert_allclose(loaded.goals[episode], each.observations["desired_goal"][-1])
    own = ("minari:mazes/ant-v0", "--goal-threshold", 0.45)
    assert goat("data", "check", *own) == 0
    assert "3 episodes, 36 actions" in capsys.readouterr().out
    quick = ("--seeds", 1, "--updates", 20, "--set", "architecture.hidden=8", "--out", "run")
    assert goat("train", "bc", "--data", *own, *quick) == 0


def test_a_maze_that_goes_on_after_success_gets_the_goals_it_was_after() -> None:
    """The layout of D4RL's point mazes: an episode is cut at every success, and the first
    observation of the next one still shows the old goal.
    """
    from minari import StepDataCallback

    class CutAtSuccess(StepDataCallback):
        def __call__(self, env, **given):
            step = super().__call__(env, **given)
            step["truncated"] = step["truncated"] or bool(given["info"].get("success"))
            return step

    _, stored = collected("mazes/on-v0", 4, CutAtSuccess, continuing_task=True, reset_target=True)
    shown = [each.observations["desired_goal"] for each in stored]
    wrong = [n for n, goals in enumerate(shown) if not np.array_equal(goals[0], goals[-1])]
    assert wrong, "Minari's collector has changed: nothing is to be mended"
    loaded = minari.load("mazes/on-v0")
    np.testing.assert_array_equal(loaded.goals, [goals[-1].astype(np.float32) for goals in shown])


def test_an_unknown_id_says_how_to_get_it() -> None:
    with pytest.raises(
        GoatError,
        match="no Minari dataset 'D4RL/antmaze/umaze-v1' on this machine; download it with `minari "
        "download D",
    ):
        minari.load("D4RL/antmaze/umaze-v1")
    foreign("others/reach-v1")
    with pytest.raises(
        GoatError,
        match=r"did you mean others/reach-v1\? or download it with `minari download "
        r"others/reach-v0`",
    ):
        minari.load("others/reach-v0")


def test_a_dataset_makes_no_environment(root: Path, odd_episodes: Episodes) -> None:
    """Minari makes the environment that a dataset without spaces names: any callable of
    any module.
    """
    minari.export(odd_episodes, "me/odd-v0", goal_threshold=0.5)
    path = root / "me/odd-v0" / "data" / "metadata.json"
    about = json.loads(path.read_text())
    spec = {
        "id": "Odd-v0",
        "entry_point": "os:mkdir",
        "kwargs": {"path": "executed"},
        "additional_wrappers": [],
    }
    crafted = {key: value for key, value in about.items() if key != "action_space"} | {
        "env_spec": json.dumps(spec)
    }
    path.write_text(json.dumps(crafted))
    with pytest.raises(GoatError, match="goatrl does not create environments that a file names"):
        minari.load("me/odd-v0")
    with pytest.raises(GoatError, match="goatrl does not create environments that a file names"):
        minari.goal_threshold("me/odd-v0")
    assert not Path("executed").exists()


@pytest.mark.parametrize("damaged", ["main_data.hdf5", "metadata.json"])
def test_a_damaged_dataset_is_one_line(root: Path, odd_episodes: Episodes, damaged: str) -> None:
    minari.export(odd_episodes, "me/odd-v0", goal_threshold=0.5)
    (root / "me/odd-v0/data" / damaged).write_bytes(b"{\n")
    with pytest.raises(GoatError, match=r"^minari:me/odd-v0 cannot be read \(\w+: .+\)$"):
        minari.load("me/odd-v0")


def test_a_folder_that_cannot_be_made_is_named(
    odd_episodes: Episodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "file" / "below"))
    with pytest.raises(
        GoatError, match=r"cannot create Minari's folder .*file.*: .*; set MINARI_DATASETS_PATH"
    ):
        minari.export(odd_episodes, "me/odd-v0", goal_threshold=0.5)


@pytest.mark.parametrize("missing", ["minari", "h5py"])
def test_without_minari_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(GoatError, match=r"pip install 'minari\[hdf5\]'"):
        datasets.load("minari:me/odd-v0")


def test_minari_is_not_imported_before_it_is_needed() -> None:
    """Neither is SciPy: every start of the program, and of each process that simulates, would wait
    for both.
    """
    code = "import sys, goatrl.cli; print(*({'minari', 'h5py', 'scipy.stats'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr


def test_from_a_group_to_minari_and_back(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"minari:goatrl/{GROUP}-v0"
    own = open_problem(GROUP, None).episodes.checksum()
    assert goat("data", "convert", GROUP, "--out", name) == 0
    assert f"wrote {name}: 10 episodes, SHA-256 {own[:12]}" in " ".join(
        capsys.readouterr().out.split()
    )
    about = metadata(root, f"goatrl/{GROUP}-v0")
    assert (about["author"], about["algorithm_name"], about["goal_threshold"]) == (
        ["goatrl"],
        "scripted",
        1.0,
    )
    assert goat("data", "convert", GROUP, "--out", name) == 0
    assert "already exists" in capsys.readouterr().out
    assert goat("data", "info", name) == 0
    shown = capsys.readouterr().out
    assert own[:30] in shown
    assert re.search(r"goal threshold +│ 1 ", shown)
    assert "desired goal reached" in shown
    assert goat("data", "convert", name, "--out", "back.npz") == 0
    assert datasets.load("back.npz").checksum() == own
    assert datasets.goal_threshold("back.npz") == 1.0, "Minari's metadata has it"
    assert goat("data", "convert", "back.npz", "--goal-threshold", 2, "--out", "other.npz") == 0
    assert datasets.goal_threshold("other.npz") == 2.0
    assert goat("data", "convert", "back.npz", "--goal-columns", 0, "--out", "x.npz") == 0
    assert datasets.goal_threshold("x.npz") is None, "other goals"


def test_from_a_file_to_minari(
    root: Path, odd_episodes: Episodes, capsys: pytest.CaptureFixture[str]
) -> None:
    datasets.save(odd_episodes, "mine.npz")
    convert = ["data", "convert", "mine.npz", "--out", "minari:me/mine-v0"]
    assert goat(*convert) == 2
    assert "needs --goal-threshold" in capsys.readouterr().err
    assert goat(*convert, "--goal-threshold", "0.5", "--author", "Me", "--description", "Odd.") == 0
    about = metadata(root, "me/mine-v0")
    assert (about["author"], about["description"], about["goal_threshold"]) == (["Me"], "Odd.", 0.5)
    datasets.save(of_reach(), "reach.npz")
    assert (
        goat("data", "convert", "reach.npz", "--group", REACH.name, "--out", "minari:me/reach-v0")
        == 0
    )
    about = metadata(root, "me/reach-v0")
    assert about["goal_threshold"] == 0.05
    assert json.loads(about["env_spec"])["id"] == "goatrl/ReachRight-v0"
    assert "author" not in about


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data", "info", "minari:me/none-v0"], "`minari download me/none-v0`"),
        (["data", "convert", GROUP, "--out", "minari:me"], "'me' is not a Minari id"),
        (["data", "convert", GROUP, "--out", "data.csv"], "name a file that ends in .npz"),
        (
            ["data", "convert", GROUP, "--group", GROUP, "--out", "minari:me/x-v0"],
            "use --group only with files",
        ),
        (
            ["data", "convert", "pointreach-expert", "--out", "x.npz"],
            "did you mean pointreach-expert-10",
        ),
        (
            ["train", "bc", "--data", "minari:me/none-v0", "--group", GROUP, "--out", "run"],
            "`minari download me/none-v0`",
        ),
    ],
)
def test_errors_are_one_helpful_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert goat(*arguments) == 2
    text = capsys.readouterr().err.strip()
    assert message in text
    assert "\n" not in text


def test_training_on_a_minari_dataset(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = f"minari:goatrl/{GROUP}-v0"
    assert goat("data", "convert", GROUP, "--out", name) == 0
    run = tmp_path / "run"
    train = [
        "train",
        "bc",
        "--group",
        GROUP,
        "--data",
        name,
        "--seeds",
        "1",
        "--batch-size",
        "16",
        "--updates",
        "8",
        "--out",
        run,
    ]
    assert goat(*train) == 0
    assert Run(run).config().data == name
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert goat(*train) == 0
    assert "already trained" in capsys.readouterr().out
    assert goat("evaluate", run) == 0
    assert Run(run).problem().episodes.checksum() == open_problem(GROUP, None).episodes.checksum()
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
    assert goat(*bench, "--data", f"{GROUP}={name}") == 0


def test_a_run_names_its_data_for_every_folder(tmp_path: Path) -> None:
    assert (
        datasets.location("minari:me/odd-v0")
        == datasets.location(Path("minari:me/odd-v0"))
        == "minari:me/odd-v0"
    )
    assert datasets.location("mine.npz") == str(tmp_path / "mine.npz")
    problem = open_problem(GROUP, None)
    assert configure("bc", problem, data=Path("mine.npz"), updates=8).data == str(
        tmp_path / "mine.npz"
    )
