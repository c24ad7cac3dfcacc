"""Runs on disk: nothing is lost or half-written, whatever happens."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pyarrow.parquet as pq
import pytest

from goatrl import data as datasets
from goatrl import tasks
from goatrl.data.problems import open_problem
from goatrl.disk import checkpoint
from goatrl.evaluation.episodes import evaluate
from goatrl.experiments.loading import load_policy
from goatrl.learn import normalize
from goatrl.runs import offline as runs_offline
from goatrl.runs.folder import Interrupted
from goatrl.runs.offline import Run, configure, programs, train_together
from goatrl.training import memory, offline
from goatrl.training.offline import Diverged
from goatrl.types import Episodes, GoatError

pytestmark = pytest.mark.usefixtures("few_percentiles")

GROUP = "pointreach-expert-10"


def settings(**changes):
    return {"seeds": (0, 1), "updates": 24, "batch_size": 16, "interval": 8, **changes}


def bytes_of(path: Path) -> dict[str, bytes]:
    from safetensors.numpy import load_file

    return {name: array.tobytes() for name, array in load_file(path).items()}


def finish(folder: Path, **changes) -> Run:
    problem = open_problem(GROUP, None)
    run = Run(folder)
    run.train(configure("wgcsl", problem, **settings(**changes)), problem)
    return run


def test_a_run_leaves_config_metrics_and_checkpoint(tmp_path: Path) -> None:
    run = finish(tmp_path / "run")
    stored = json.loads(run.config_path.read_text())
    assert stored["config"]["hyperparameters"]["exp_advantage.beta"] == 2.0
    assert stored["versions"]["jax"] == jax.__version__
    lines = run.metrics_path.read_text().splitlines()
    assert lines[0].startswith("step,seed,")
    assert [line.split(",")[:2] for line in lines[1:]] == [
        [str(s), str(m)] for s in (8, 16, 24) for m in (0, 1)
    ]
    assert run.step() == 24
    assert {path.name for path in run.folder.iterdir()} == {
        "config.json",
        "metrics.csv",
        "checkpoint.safetensors",
    }


def test_an_interrupted_run_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    whole = finish(tmp_path / "whole")
    problem = open_problem(GROUP, None)
    config = configure("wgcsl", problem, **settings())
    run = Run(tmp_path / "interrupted")

    def press_ctrl_c(step: int, metrics) -> None:
        if step == 8:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match="stopped at update 8 of 24"):
        run.train(config, problem, on_report=press_ctrl_c)
    assert run.step() == 8
    run.train(config, problem)
    assert bytes_of(run.checkpoint_path) == bytes_of(whole.checkpoint_path)
    assert run.metrics_path.read_text() == whole.metrics_path.read_text()


def test_metrics_after_the_checkpoint_are_written_once(tmp_path: Path) -> None:
    """Killed between a report and its checkpoint: the report is computed again, not doubled."""
    problem = open_problem(GROUP, None)
    config = configure("wgcsl", problem, **settings())
    run = Run(tmp_path / "run")

    class Killed(BaseException):
        pass

    def die(step: int, metrics) -> None:
        if step == 16:
            raise Killed

    with pytest.raises(Killed):
        run.train(config, problem, on_report=die, checkpoint_seconds=0.0)
    assert run.step() == 8
    assert run.metrics_path.read_text().splitlines()[-1].startswith("16,")
    run.train(config, problem)
    assert run.metrics_path.read_text() == finish(tmp_path / "whole").metrics_path.read_text()


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    run = finish(tmp_path / "run")
    before = run.checkpoint_path.stat().st_mtime_ns
    finish(tmp_path / "run")
    assert run.checkpoint_path.stat().st_mtime_ns == before


def test_another_configuration_never_takes_the_folder(tmp_path: Path) -> None:
    finish(tmp_path / "run")
    with pytest.raises(GoatError, match=r"has another configuration \(differs in seeds\)"):
        finish(tmp_path / "run", seeds=(0,))


SMALL = {"architecture.hidden": "8,8"}


@pytest.mark.parametrize("name", ["wgcsl", "goat", "wgcsl_adsw"])
def test_a_longer_run_is_that_of_so_many_updates(tmp_path: Path, name: str) -> None:
    """Whatever was reported when: 24 is no multiple of the interval of 72, nor 72 of 20."""
    problem = open_problem(GROUP, None)

    def trained(folder: str, updates: int, interval: int) -> Run:
        changes = {"updates": updates, "interval": interval, "overrides": SMALL}
        run = Run(tmp_path / folder)
        run.train(configure(name, problem, **settings(**changes)), problem)
        return run

    whole = trained("whole", 72, 16)
    trained("longer", 24, 8)
    longer = trained("longer", 72, 20)
    assert bytes_of(longer.checkpoint_path) == bytes_of(whole.checkpoint_path)
    assert (longer.step(), longer.config().updates, longer.unfinished()) == (72, 72, "")
    assert longer.identity().diff(whole.identity()) == ["interval"]
    steps = [line.split(",")[0] for line in longer.metrics_path.read_text().splitlines()[1::2]]
    assert steps == ["8", "16", "24", "44", "64", "72"]


def test_what_is_trained_is_not_taken_back(tmp_path: Path) -> None:
    run = finish(tmp_path / "run")
    before = run.config_path.read_bytes()
    with pytest.raises(
        GoatError, match="already trained to update 24, further than 16; give --updates 24 or more"
    ):
        finish(tmp_path / "run", updates=16)
    with pytest.raises(GoatError, match=r"differs in updates, batch_size\)"):
        finish(tmp_path / "run", updates=48, batch_size=8)
    assert run.config_path.read_bytes() == before


def test_a_run_that_stopped_may_end_earlier_than_planned(tmp_path: Path) -> None:
    problem = open_problem(GROUP, None)

    def press_ctrl_c(step: int, metrics) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    run = Run(tmp_path / "run")
    with pytest.raises(Interrupted, match="stopped at update 8 of 24"):
        run.train(configure("wgcsl", problem, **settings()), problem, on_report=press_ctrl_c)
    finish(tmp_path / "run", updates=16)
    whole = finish(tmp_path / "whole", updates=16)
    assert bytes_of(run.checkpoint_path) == bytes_of(whole.checkpoint_path)
    assert run.config() == whole.config()


def several(folder: Path, problem, rates: tuple[str, ...], **changes):
    """Runs that differ in a float, and one that differs in a shape."""
    varied = [{**SMALL, "learning_rate": rate} for rate in rates]
    configs = [
        configure("wgcsl", problem, **settings(overrides=each, **changes))
        for each in (*varied, {"architecture.hidden": "4"})
    ]
    return [(Run(folder / str(place)), config) for place, config in enumerate(configs)]


@pytest.mark.parametrize(("beside", "sizes"), [(True, [3, 1]), (False, [1, 1, 1, 1])])
def test_runs_beside_each_other_are_what_each_is_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool, sizes: list[int]
) -> None:
    """Where agents are few: XLA rounds otherwise with many."""
    monkeypatch.setattr(runs_offline, "side_by_side", lambda: beside)
    problem = open_problem(GROUP, None)
    together = several(tmp_path / "together", problem, ("0.001", "0.002", "0.0005"))
    found = programs(together, problem)
    assert [len(each) for each in found] == sizes
    for each in found:
        train_together(each, problem)
    assert programs(together, problem) == []
    for run, config in together:
        alone = Run(tmp_path / "alone" / run.folder.name)
        alone.train(config, problem)
        assert bytes_of(run.checkpoint_path) == bytes_of(alone.checkpoint_path)
        assert run.metrics_path.read_bytes() == alone.metrics_path.read_bytes()
        assert run.config_path.read_bytes() == alone.config_path.read_bytes()


def test_programs_are_even_and_no_larger_than_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_offline, "side_by_side", lambda: True)
    problem = open_problem(GROUP, None)
    runs = several(tmp_path, problem, ("0.1", "0.2", "0.3", "0.4", "0.5"))

    def sizes() -> list[int]:
        return [len(each) for each in programs(runs, problem)]

    for most, expected in ((30, [5, 1]), (9, [3, 2, 1]), (4, [2, 2, 1, 1]), (1, [1] * 6)):
        monkeypatch.setattr(memory, "MOST_MEMBERS", most)
        assert sizes() == expected
    monkeypatch.setattr(memory, "MOST_MEMBERS", 30)
    member = memory.of_member(runs[0][1].members()[0][0], problem.spec)
    enough = memory.of_arrays(problem.episodes) + 7 * member
    monkeypatch.setattr(memory, "available", lambda: enough)
    assert sizes() == [3, 2, 1], "seven agents fit, which are three runs of two"


def test_runs_saved_at_different_updates_train_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while their checkpoints were written: the first is ahead."""
    monkeypatch.setattr(runs_offline, "side_by_side", lambda: True)
    problem = open_problem(GROUP, None)
    runs = several(tmp_path / "killed", problem, ("0.001", "0.002"))[:2]
    whole = several(tmp_path / "whole", problem, ("0.001", "0.002"))[:2]
    train_together(whole, problem)

    class Killed(BaseException):
        pass

    save = Run._save

    def die(run: Run, state, step: int) -> None:
        if (run.folder.name, step) == ("1", 16):
            raise Killed
        save(run, state, step)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "_save", die)
        with pytest.raises(Killed):
            train_together(runs, problem, checkpoint_seconds=0.0)
    assert [run.step() for run, _ in runs] == [16, 8]
    found = programs(runs, problem)
    assert [len(each) for each in found] == [1, 1]
    for each in found:
        train_together(each, problem)
    for (run, _), (other, _) in zip(runs, whole, strict=True):
        assert bytes_of(run.checkpoint_path) == bytes_of(other.checkpoint_path)
        assert run.metrics_path.read_bytes() == other.metrics_path.read_bytes()


def test_one_that_diverges_does_not_stop_the_others(tmp_path: Path) -> None:
    problem = open_problem(GROUP, None)
    runs = several(tmp_path / "together", problem, ("1e30", "0.001"))[:2]
    told = []
    with pytest.raises(
        Diverged, match=r"of seed \d is not finite at update 2; nothing was saved in .*/0$"
    ):
        train_together(runs, problem, lambda step, losses: told.append(losses))
    assert [run.step() for run, _ in runs] == [0, 24]
    assert np.isfinite([value for losses in told for value in losses.values()]).all()
    alone = Run(tmp_path / "alone")
    alone.train(runs[1][1], problem)
    assert bytes_of(runs[1][0].checkpoint_path) == bytes_of(alone.checkpoint_path)


def test_a_folder_in_which_nothing_was_saved_can_be_taken(tmp_path: Path) -> None:
    """A command that failed before its first report, such as one with a faulty algorithm."""
    problem = open_problem(GROUP, None)
    Run(tmp_path / "run").prepare(configure("gcsl", problem, **settings()))
    run = finish(tmp_path / "run")
    assert run.config().algorithm == "wgcsl"


def test_divergence_keeps_the_last_good_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = open_problem(GROUP, None)
    config = configure("wgcsl", problem, **settings())
    original = offline.Chunk.check_finite

    def diverge_late(chunk, seeds) -> None:
        if chunk.step == 24:
            broken = chunk.metrics["policy_loss"].copy()
            broken[1, 3] = np.nan
            chunk.metrics["policy_loss"] = broken
        original(chunk, seeds)

    monkeypatch.setattr(offline.Chunk, "check_finite", diverge_late)
    run = Run(tmp_path / "run")
    with pytest.raises(
        Diverged,
        match="policy_loss of seed 1 is not finite at update 20; the state at update 16 is saved",
    ):
        run.train(config, problem)
    assert run.step() == 16
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(run.restore()[1].params))


def test_a_full_disk_keeps_the_earlier_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = open_problem(GROUP, None)
    config = configure("wgcsl", problem, **settings())
    run = Run(tmp_path / "run")
    written = []

    def fill_the_disk(state, step) -> None:
        if step == 16:
            monkeypatch.setattr(os, "fsync", no_space)
        written.append(step)
        checkpoint.save(run.checkpoint_path, state, {"step": step})

    def no_space(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run, "_save", fill_the_disk)
    with pytest.raises(
        GoatError, match=r"cannot write .*checkpoint.safetensors: no space left on the disk"
    ):
        run.train(config, problem, checkpoint_seconds=0.0)
    assert written == [8, 16]
    assert run.step() == 8
    assert not [path for path in run.folder.iterdir() if path.name.startswith(".")]


def test_a_dataset_that_does_not_fit_the_checkpoint_is_refused(
    tmp_path: Path, odd_episodes: Episodes
) -> None:
    run = finish(tmp_path / "run")
    other = odd_episodes.spec(1.0)
    like = jax.eval_shape(lambda: offline.init(run.config().members(), other))
    with pytest.raises(GoatError, match=r"does not fit: .* has shape .* need"):
        checkpoint.restore(run.checkpoint_path, like)
    file = tmp_path / "odd.npz"
    datasets.save(odd_episodes, file)
    problem = open_problem(None, file, 1.0)
    config = configure("wgcsl", problem, data=file, **settings(updates=40, interval=20))
    with pytest.raises(GoatError, match=r"another configuration \(differs in .*checksum, spec"):
        run.train(config, problem)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"updates": 50}, "updates must be a positive multiple"),
        ({"batch_size": 0}, "batch size must be at least 1"),
        ({"overrides": {"target_period": 0}}, "target_period must be at least 1"),
        ({"seeds": (1, 1)}, "no seed twice"),
    ],
)
def test_a_bad_setting_leaves_no_folder_behind(tmp_path: Path, changes: dict, message: str) -> None:
    with pytest.raises(GoatError, match=message):
        finish(tmp_path / "run", **changes)
    assert not (tmp_path / "run").exists()


def test_metrics_cut_short_by_a_full_disk_do_not_stop_the_next_try(tmp_path: Path) -> None:
    for torn in ("", "step,se"):
        folder = tmp_path / f"run{len(torn)}"
        problem = open_problem(GROUP, None)
        run = Run(folder)
        run.prepare(configure("wgcsl", problem, **settings()))
        run.metrics_path.write_text(torn)
        finish(folder)
        assert run.metrics_path.read_text().startswith("step,seed,")


def test_tasks_evaluated_one_by_one_stay_together(tmp_path: Path) -> None:
    run = finish(tmp_path / "run")
    group = tasks.get(GROUP)
    members, state = run.restore()
    for name in ("R10", "R20", "R10"):
        run.write_episodes(evaluate(members, state, group, [group.task(name)]), group, step=24)
    evaluated = pq.read_table(run.episodes_path).column("task").to_pylist()
    assert sorted(set(evaluated)) == ["R10", "R20"]
    assert len(evaluated) == 2 * 2 * 20
    run.write_episodes(evaluate(members, state, group, [group.task("R20")]), group, step=28)
    assert set(pq.read_table(run.episodes_path).column("task").to_pylist()) == {"R20"}, (
        "of another step, so not beside"
    )


def test_a_run_goes_on_when_its_data_has_moved(tmp_path: Path) -> None:
    first, second = tmp_path / "a.npz", tmp_path / "b.npz"
    for file in (first, second):
        datasets.save(open_problem(GROUP, None).episodes, file)
    configs = [
        configure("wgcsl", open_problem(GROUP, file), data=file, **settings())
        for file in (first, second)
    ]
    assert configs[0] != configs[1]
    for config in configs:
        Run(tmp_path / "run").prepare(config)


def test_a_changed_dataset_is_noticed(tmp_path: Path) -> None:
    episodes = open_problem(GROUP, None).episodes
    file = tmp_path / "mine.npz"
    datasets.save(episodes, file)
    problem = open_problem(None, file, 1.0)
    run = Run(tmp_path / "run")
    run.train(configure("gcsl", problem, data=file, **settings(updates=20, interval=20)), problem)
    changed = np.asarray(episodes.actions).copy()
    changed[0, 0, 0] += 0.5
    datasets.save(Episodes(episodes.observations, episodes.achieved, changed, episodes.goals), file)
    with pytest.raises(GoatError, match="has changed since training"):
        run.problem()


@pytest.mark.parametrize("damage", ["empty", "truncated", "garbage"])
def test_a_damaged_checkpoint_is_one_clear_line(tmp_path: Path, damage: str) -> None:
    run = finish(tmp_path / "run")
    content = run.checkpoint_path.read_bytes()
    run.checkpoint_path.write_bytes(
        {"empty": b"", "truncated": content[: len(content) // 2], "garbage": b"\xff" * 100}[damage]
    )
    with pytest.raises(GoatError, match="is damaged or not a checkpoint") as caught:
        run.restore()
    assert "\n" not in str(caught.value)


def test_own_data_needs_a_threshold_and_fitting_dimensions(
    tmp_path: Path, odd_episodes: Episodes
) -> None:
    file = tmp_path / "mine.npz"
    datasets.save(odd_episodes, file)
    with pytest.raises(GoatError, match="--goal-threshold"):
        open_problem(None, file)
    with pytest.raises(GoatError, match="does not fit pointreach-expert-10"):
        open_problem(GROUP, file)
    assert open_problem(None, file, 0.5).spec.goal_dim == 3


def test_ctrl_c_in_a_real_process(tmp_path: Path) -> None:
    """The whole command, killed as a user would: exit code 130, one line, a checkpoint that goes
    on.
    """
    command = [
        sys.executable,
        "-m",
        "goatrl",
        "train",
        "gcsl",
        "--group",
        GROUP,
        "--seeds",
        "1",
        "--out",
        str(tmp_path / "run"),
    ]
    process = subprocess.Popen(
        [*command, "--updates", "20000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while (
        not (tmp_path / "run" / "metrics.csv").exists()
        and time.monotonic() < deadline
        and process.poll() is None
    ):
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert errors.strip().splitlines()[-1].startswith("goat: stopped at update ")
    step = checkpoint.describe(tmp_path / "run" / "checkpoint.safetensors")["step"]
    assert 0 < step < 20000


def test_a_trained_agent_is_a_function(tmp_path: Path) -> None:
    run = finish(tmp_path / "run")
    members, state = run.restore()
    second = jax.tree.map(lambda leaf: leaf[1], state)
    observations, goals = (
        np.array([[0.0, 0.0], [3.0, 1.0]], np.float32),
        np.array([[5.0, 5.0], [-4.0, 2.0]], np.float32),
    )
    expected = np.asarray(normalize.act(members[1][0], second, observations, goals))
    act = load_policy(run.folder, seed=1)
    np.testing.assert_allclose(act(observations, goals), expected, rtol=1e-5)
    np.testing.assert_allclose(act([3.0, 1.0], [-4.0, 2.0]), expected[1], rtol=1e-5)
    with pytest.raises(GoatError, match="an observation needs 2 numbers and a goal 2"):
        act(np.zeros(3), np.zeros(2))
    with pytest.raises(GoatError, match="no seed 5; it has 0, 1"):
        load_policy(str(run.folder), seed=5)
