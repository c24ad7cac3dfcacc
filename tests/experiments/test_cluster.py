"""A Ray cluster makes the records that this process makes, bit for bit, whatever becomes of its
nodes.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import pytest

import goatrl
from goatrl import algorithms, tasks
from goatrl import data as datasets
from goatrl.data import cache, collect
from goatrl.evaluation.episodes import evaluate
from goatrl.experiments import cluster, experiment, grid, planning, records, suites
from goatrl.experiments.cluster import RayExecutor, connected
from goatrl.experiments.experiment import LocalExecutor, Progress, Request
from goatrl.robots import mujoco, workers
from goatrl.robots.mujoco import simulate_elsewhere
from goatrl.robots.workers import Lost
from goatrl.types import GoatError
from helpers import ROOT, error_line, goat, own_algorithms

pytest.importorskip("ray")
import ray
from ray._private.state import available_resources_per_node
from ray.cluster_utils import Cluster

# Nodes are forked from this process, which has used JAX by then.
pytestmark = pytest.mark.filterwarnings(r"ignore:os.fork\(\) was called:RuntimeWarning")
POINT = "pointreach-non-expert-10"
TWO = ("pointreach-expert-10", POINT)
# Nodes compile as the tests do: other optimisations would round differently.
SETTINGS = {
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".pytest_cache" / "xla"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(Path(__file__).parent)]),
}
OWN = '''
import os
from goatrl.algorithms import register
from goatrl.learn.agent import weighted_regression
if os.path.exists({flag!r}):
    with open({flag!r}, "a") as file:
        file.write("x")
    os._exit(1)
@register("Mine")
def travelling(settings):
    """Mine."""
    return weighted_regression(settings)
'''


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """A head that computes nothing, and two nodes of one CPU each."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        cluster.load_package()
        # A node counts as lost after five seconds, not after half a minute.
        soon = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000}
        found = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "_system_config": soon}
        )
        for _ in range(2):
            found.add_node(num_cpus=1)
        yield found
        found.shutdown()


@pytest.fixture(scope="module")
def executor(nodes: Cluster) -> Iterator[RayExecutor]:
    with connected(nodes.address) as found:
        yield found


def jobs_of(folder: Path, request: Request) -> list[experiment.Job]:
    chosen = experiment.get("pointreach")
    return [chosen.job(each) for each in chosen.plan(folder, request, lambda groups: None)]


def assert_same(folder: Path, expected: Path) -> None:
    """All that a record says but how long it took."""
    mine, theirs = records.read_all(folder), records.read_all(expected)
    assert [cell.config for cell in mine] == [cell.config for cell in theirs]
    for one, other in zip(mine, theirs, strict=True):
        assert one.seeds == other.seeds
        assert one.episodes.equals(other.episodes)
        for first, second in zip(one.trainings, other.trainings, strict=True):
            assert dataclasses.replace(first, seconds=0) == dataclasses.replace(second, seconds=0)
    names = [sorted(path.name for path in each.glob("agents/*")) for each in (folder, expected)]
    assert names[0] == names[1]


def test_records_are_those_of_the_local_executor(executor: RayExecutor, tmp_path: Path) -> None:
    """Also of an algorithm of the user's own, whose file the nodes do not have."""
    told: list[Progress] = []
    file = tmp_path / "mine.py"
    file.write_text(OWN.format(flag=str(tmp_path / "no such file")))
    with own_algorithms():
        request = Request(seeds=2, algorithms=("bc", str(file)), updates=8, groups=(POINT,))
        jobs = jobs_of(tmp_path, request)
        assert LocalExecutor().run(jobs, tmp_path / "local", lambda progress: None) == []
        file.unlink()
        assert executor.run(jobs, tmp_path / "ray", told.append) == []
    assert_same(tmp_path / "ray", tmp_path / "local")
    assert {cell.label for cell in records.read_all(tmp_path / "ray")} == {"Goal BC", "Mine"}
    seen = {(each.what, each.done) for each in told}
    assert {("compiling", 0), ("compiling", 1), ("training", 4), ("training", 8)} <= seen
    assert sum(each.recorded is not None for each in told) == 2
    assert not any(path.suffix == ".tmp" for path in (tmp_path / "ray").rglob("*"))


def test_robots_are_evaluated_on_the_nodes(
    executor: RayExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tasks.get("reach-left-right")
    few = [dataclasses.replace(task, episodes=3) for task in group.tasks]
    agent = algorithms.get("bc").build(group.settings)
    members = [(agent, 0)]
    state = jax.tree.map(lambda leaf: leaf[None], agent.init(jax.random.key(0), group.spec))
    here = evaluate(members, state, group, few)
    monkeypatch.setattr(mujoco, "LARGEST", 0)
    monkeypatch.setattr(mujoco, "LEAST", 1)
    pieces: list[tuple[int, int]] = []
    there = evaluate(members, state, group, few, on_progress=lambda *done: pieces.append(done))
    assert pieces[-1] == (2, 2), "one for each CPU"
    assert there.equals(here)


def test_data_is_the_same_wherever_it_is_collected(
    executor: RayExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "WAVE", 4)
    group = tasks.get("reach-left-right")
    assert group.collection is not None
    group = dataclasses.replace(group, collection=dataclasses.replace(group.collection, episodes=9))
    here, there = cache.make(group, threads=1), cache.make(group)
    assert here.checksum() == there.checksum()


def test_what_is_lost_again_and_again_is_named_and_stops_no_other_cell(
    executor: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "RETRIES", 1)
    told: list[Progress] = []
    flag, file = tmp_path / "flag", tmp_path / "deadly.py"
    file.write_text(OWN.format(flag=str(flag)))
    with own_algorithms():
        request = Request(seeds=1, algorithms=("bc", str(file)), updates=4, groups=(POINT,))
        jobs = jobs_of(tmp_path, request)
        flag.touch()  # from now on it ends every process that loads it
        (failure,) = executor.run(jobs, tmp_path / "out", told.append)
    assert failure.startswith("Mine on Non-Expert 10: given up after 1 retries")
    assert flag.read_text() == "xxxx", "twice with the other cell, and twice by itself"
    assert [cell.label for cell in records.read_all(tmp_path / "out")] == ["Goal BC"]
    assert [[cell.label for cell in each.cells] for each in told if each.lost] == [
        ["Goal BC", "Mine"],
        ["Mine"],
    ]


def test_a_piece_that_is_lost_or_refused_says_so(
    executor: RayExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "RETRIES", 0)
    with pytest.raises(Lost, match="WorkerCrashedError"):
        executor.submit(os._exit, 1).result()
    with pytest.raises(GoatError, match="unknown task group 'nowhere'"):
        executor.submit(tasks.get, "nowhere").result()
    monkeypatch.setattr(goatrl, "__version__", "0.0")
    with pytest.raises(GoatError, match=r"has goatrl .* this machine 0\.0; install the same"):
        executor.submit(len, "ab").result()


def test_more_is_evaluated_at_once_where_more_is_simulated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for cpus in (2, 64, 1024):
        monkeypatch.setattr(RayExecutor, "count", cpus)
        found.append(RayExecutor.__new__(RayExecutor).evaluated_at_once)
    assert found == [grid.EVALUATED_AT_ONCE, grid.EVALUATED_AT_ONCE, 32]


def test_a_training_asks_for_as_much_of_a_gpu_as_it_fills() -> None:
    assert [cluster.gpu_share(members) for members in (1, 5, 15, 30, 60)] == [
        0.25,
        0.25,
        0.5,
        1.0,
        1.0,
    ]


def test_errors_are_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert goat("bench", "pointreach", "--address", "auto", "--out", tmp_path) == 2
    assert "add --executor ray" in error_line(capsys)
    assert goat("bench", "finetune-ddpg", "--executor", "ray", "--out", tmp_path) == 2
    assert "finetune-ddpg does not take --executor" in error_line(capsys)
    assert goat("data", "make", "--all", "--executor", "ray", "--threads", 2) == 2
    assert "omit it, or --executor" in error_line(capsys)
    line = ("--executor", "ray", "--address", "127.0.0.1:1")
    assert goat("bench", "pointreach", *line, "--out", tmp_path) == 2
    assert "no Ray cluster at 127.0.0.1:1" in error_line(capsys)
    monkeypatch.setitem(sys.modules, "ray", None)
    assert goat("bench", "pointreach", "--executor", "ray", "--out", tmp_path) == 2
    assert "pip install 'goatrl[ray]'" in error_line(capsys)


@pytest.fixture
def four(nodes: Cluster, executor: RayExecutor) -> Cluster:
    """The same with four nodes that compute, also if a test before has killed some."""
    while executor.count < 4:
        nodes.add_node(num_cpus=1)
        nodes.wait_for_nodes()
    return nodes


def long_jobs(folder: Path) -> list[experiment.Job]:
    """Four that train apart, for some seconds each."""
    names = ("bc", "wgcsl")
    return jobs_of(folder, Request(seeds=1, algorithms=names, updates=1_200, groups=TWO))


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("expected")
    assert LocalExecutor().run(long_jobs(folder), folder, lambda progress: None) == []
    return folder


def busy(nodes: Cluster) -> list[Any]:
    """The nodes whose CPU is in use."""
    free = {name for name, each in available_resources_per_node().items() if each.get("CPU")}
    return [node for node in nodes.worker_nodes if node.node_id not in free]


def kill(nodes: Cluster, node: Any) -> None:
    """Without a word to the others."""
    nodes.remove_node(node, allow_graceful=False)


@pytest.mark.cluster
def test_a_node_killed_in_training_costs_no_record(
    four: Cluster, executor: RayExecutor, tmp_path: Path, expected: Path
) -> None:
    under_way: dict[str, list[int]] = {}  # title → its reports

    def watch(progress: Progress) -> None:
        if progress.what == "training":
            under_way.setdefault(progress.title, []).append(progress.done)
            training = [done for done in under_way.values() if 0 < done[-1] < progress.total]
            nodes = busy(four)
            if len(training) == len(nodes) > 0 and not killed:  # none of them compiles
                killed.append(True)
                kill(four, nodes[0])

    killed: list[bool] = []
    assert executor.run(long_jobs(tmp_path), tmp_path, watch) == []
    assert killed, "at some time all nodes that do anything train"
    restarted = [done for done in under_way.values() if done != sorted(done)]
    assert len(restarted) == 1, "the node's job began again, and no other"
    assert_same(tmp_path, expected)


@pytest.mark.cluster
def test_a_node_killed_in_evaluation_costs_no_record(
    four: Cluster, executor: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, data = "reach-left-right", tmp_path / "few.npz"
    known = tasks.get(group)
    assert known.collection is not None
    few = dataclasses.replace(known.collection, episodes=8)
    datasets.save(cache.make(dataclasses.replace(known, collection=few), threads=1), data)
    request = {"seeds": 1, "groups": [group], "algorithm_names": ["bc"], "updates": 5}
    (planned,) = planning.plan(suites.get("paper"), tmp_path, **request, data={group: data})
    short = [dataclasses.replace(task, episodes=240) for task in planned.group.tasks]
    planned = dataclasses.replace(planned, tasks=tuple(short))
    log = tmp_path / "begun"
    log.touch()
    monkeypatch.setattr(mujoco, "simulate_elsewhere", functools.partial(logged, log))

    def kill_the_first() -> str:
        """The node that begins the first piece, which takes it seconds."""
        while not (lines := log.read_text().splitlines()):
            time.sleep(0.01)
        piece, name = lines[0].split()
        kill(four, next(node for node in four.worker_nodes if node.node_id == name))
        return piece

    with ThreadPoolExecutor(1) as killer:
        killed = killer.submit(kill_the_first)
        assert grid.run([planned], tmp_path / "ray", lambda progress: None, trainer=executor) == []
    begun = [line.split()[0] for line in log.read_text().splitlines()]
    episodes = sum(task.episodes for task in planned.tasks)
    assert len(set(begun)) == math.ceil(episodes / mujoco.PIECE)
    assert begun.count(killed.result()) == 2, "it was simulated once more"
    workers._ELSEWHERE.clear()
    try:
        assert grid.run([planned], tmp_path / "local", lambda progress: None) == []
    finally:
        workers._ELSEWHERE.append(executor)
    assert_same(tmp_path / "ray", tmp_path / "local")


def logged(log: Path, *arguments: Any) -> Any:
    """A piece, after a line that says which one it is, and on which node."""
    node = ray.get_runtime_context().get_node_id() if ray.is_initialized() else "none"
    with log.open("a") as file:
        file.write(f"{arguments[4].tobytes().hex()[:40]} {node}\n")
    return simulate_elsewhere(*arguments)


@pytest.mark.cluster
def test_a_driver_that_is_killed_goes_on_from_what_is_on_disk(
    four: Cluster, tmp_path: Path, expected: Path
) -> None:
    words = ["bench", "pointreach", "--groups", *TWO, "--seeds", "1", "--updates", "1200"]
    words += ["--algorithms", "bc", "wgcsl", "--out", str(tmp_path)]
    line = [sys.executable, "-m", "goatrl", *words, "--executor", "ray", "--address", four.address]
    env = {**os.environ, **SETTINGS}
    driver = subprocess.Popen(line, env=env, stdout=subprocess.DEVNULL)
    while not (kept := list(tmp_path.glob("agents/*.safetensors"))):
        assert driver.poll() is None, "it is killed before it ends"
        time.sleep(0.01)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    before = {file: file.stat().st_mtime_ns for file in kept}
    subprocess.run(line, env=env, stdout=subprocess.DEVNULL, check=True)
    assert {file: file.stat().st_mtime_ns for file in kept} == before, "they are not trained again"
    assert_same(tmp_path, expected)
