"""A Ray cluster: cells train on its GPUs, robots are simulated on its CPUs.

The process that asks for all this, the driver, plans, evaluates and records as it does alone. What
it sends is plain: descriptions of jobs, datasets as arrays, the text of a user's algorithm. What
comes back are files of agents and trajectories, and nobody but the driver writes to its folder.
Ray runs what a lost node or process had in hand once more, `RETRIES` times at most.
"""

from __future__ import annotations

import dataclasses
import os
import socket
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import goatrl
from goatrl import algorithms, tasks
from goatrl.data.problems import Problem
from goatrl.disk.compiled import keep_compiled_programs
from goatrl.disk.files import write_atomically
from goatrl.episodes import make_episodes
from goatrl.experiments import experiment
from goatrl.experiments.experiment import Job, OnProgress, Progress, run_jobs
from goatrl.experiments.grid import EVALUATED_AT_ONCE, HERE, Outcome
from goatrl.experiments.kinds.grid import Grid
from goatrl.experiments.packing import Open, Together
from goatrl.experiments.planning import PlannedCell
from goatrl.robots.workers import ENVIRONMENT, Lost, simulating_on
from goatrl.training import memory
from goatrl.types import GoatError

RETRIES = 3
LEAST_SHARE = 0.25  # of a GPU: more programs at once would wait for each other
CPUS_PER_CELL = 32  # that is evaluated; a cell has some hundred pieces (benchmarks/cluster.py)
POLL_SECONDS = 0.5  # between looks at what nodes tell of their progress
CONNECT_SECONDS = 10.0
LOCAL = "local"  # the address of a cluster that is this machine, for as long as it is needed
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_task_oom_retries": str(RETRIES),  # without bound, unless told
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # it would warn of what will be so anyway
}


def load_package() -> Any:
    for name, value in SETTINGS.items():  # it reads them when it is imported
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise GoatError(
            "a cluster needs the package ray: run `pip install 'goatrl[ray]'`"
        ) from None
    return ray


@contextmanager
def connected(address: str) -> Iterator[RayExecutor]:
    """A cluster, on which whatever is simulated meanwhile is simulated."""
    ray = load_package()
    try:
        _check_reached(address)
        ray.init(
            address,
            include_dashboard=False if address == LOCAL else None,
            log_to_driver=False,
            logging_level="ERROR",
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise GoatError(
            f"no Ray cluster at {address} ({str(error).splitlines()[0]}); start one with `ray "
            "start --head`, or omit --address to use this machine"
        ) from error
    try:
        cluster = RayExecutor(ray)
        with simulating_on(cluster):
            yield cluster
    finally:
        ray.shutdown()


def _check_reached(address: str) -> None:
    """Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()


@dataclasses.dataclass(frozen=True)
class Piece:
    """A call under way on the cluster."""

    ray: Any
    reference: Any

    def result(self) -> Any:
        try:
            succeeded, found = self.ray.get(self.reference)
        except self.ray.exceptions.RayTaskError:
            raise  # a mistake in the code, which would be the same everywhere
        except self.ray.exceptions.RayError as error:
            raise Lost(
                f"given up after {RETRIES} retries, as nodes or processes were lost "
                f"({type(error).__name__}); rerun the command to resume"
            ) from error
        if not succeeded:
            raise found
        return found

    def cancel(self) -> None:
        """Nothing: it ends by itself, or with the driver. Ray 2.60 aborts the driver if a task is
        cancelled just when it ends.
        """


class RayExecutor:
    """Executes jobs, trains cells (`grid.Trainer`) and simulates (`workers.Pool`) on a cluster."""

    def __init__(self, ray: Any) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.ray = ray
        here = ray.get_runtime_context().get_node_id()
        on_this_node = NodeAffinitySchedulingStrategy(here, soft=False)
        self.listener = (
            ray.remote(Listener)
            .options(num_cpus=0, max_restarts=-1, scheduling_strategy=on_this_node)
            .remote()
        )
        self._call = ray.remote(call)

    def run(self, jobs: Sequence[Job], folder: Path, on_progress: OnProgress) -> list[str]:
        return run_jobs(jobs, folder, on_progress, lambda chosen: chosen.on(self))

    @property
    def nodes(self) -> int:
        return sum(node["Alive"] for node in self.ray.nodes())

    @property
    def count(self) -> int:
        """Its CPUs, as nodes come and go."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    @property
    def evaluated_at_once(self) -> int:
        return max(EVALUATED_AT_ONCE, self.count // CPUS_PER_CELL)

    @property
    def gpus(self) -> float:
        return float(self.ray.cluster_resources().get("GPU", 0))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Piece:
        return self._submit({"num_cpus": 1}, ENVIRONMENT, function, *arguments)

    def _submit(
        self,
        asked: Mapping[str, float],
        environment: Mapping[str, str],
        function: Callable[..., Any],
        *arguments: Any,
    ) -> Piece:
        remote = self._call.options(
            **asked, max_retries=RETRIES, runtime_env={"env_vars": environment}
        )
        return Piece(self.ray, remote.remote(goatrl.__version__, function, *arguments))

    def share(self, value: Any) -> Any:
        return self.ray.put(value)

    def train(
        self, waiting: Iterator[Together], folder: Path, opened: Open, report: OnProgress
    ) -> Generator[Outcome, None, None]:
        """All at once, as far as the cluster has room. Progress comes from all nodes."""
        datasets: dict[tuple[str, Path | None], Any] = {}  # in the object store, each once
        running: dict[int, tuple[Together, Piece]] = {}
        for number, cells in enumerate(waiting):
            places = {cell.config.group: cell.data for cell in cells}
            for place in places.items():
                if place not in datasets:
                    datasets[place] = self.share(opened(*place).episodes.arrays())
            mine = {place[0]: datasets[place] for place in places.items()}
            running[number] = cells, self._start(number, cells, mine)
        while running:
            references = {piece.reference: number for number, (_, piece) in running.items()}
            ready, _ = self.ray.wait(list(references), timeout=POLL_SECONDS)
            self._report(running, report)
            for number in (references[each] for each in ready):
                cells, piece = running.pop(number)
                yield cells, _kept(cells, piece, folder, report)

    def _start(self, number: int, cells: Together, datasets: Mapping[str, Any]) -> Piece:
        members = sum(len(cell.missing) for cell in cells)
        asked = {"num_gpus": gpu_share(members), "num_cpus": 0} if self.gpus else {"num_cpus": 1}
        # Of a GPU that several share, nobody takes all memory before it is needed.
        environment = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"} if self.gpus else ENVIRONMENT
        described = [Grid(cell.suite).job(cell).to_json() for cell in cells]
        return self._submit(
            asked,
            environment,
            train_elsewhere,
            number,
            described,
            sources(cells),
            self.listener,
            list(datasets),
            *datasets.values(),
        )

    def _report(self, running: Mapping[int, tuple[Together, Piece]], report: OnProgress) -> None:
        with suppress(self.ray.exceptions.RayActorError):  # it comes back
            for number, about in self.ray.get(self.listener.heard.remote()):
                if number in running:
                    report(Progress(running[number][0], **about))


def _kept(cells: Together, piece: Piece, folder: Path, report: OnProgress) -> GoatError | None:
    """Keep the agents that came back, or say why there are none."""
    try:
        files, diverged = piece.result()
    except GoatError as error:
        report(Progress(cells, "training", 1, 1, lost=True))
        return error
    for name, content in files.items():
        write_atomically(folder / "agents" / name, lambda file, it=content: file.write(it))  # type: ignore[misc]
    return diverged


def gpu_share(members: int) -> float:
    """What a training asks for: as much of a GPU as it fills."""
    return min(1.0, max(LEAST_SHARE, members / memory.MOST_MEMBERS))


def sources(cells: Iterable[PlannedCell]) -> dict[str, bytes]:
    """The files of users' algorithms, as they were when they were loaded here."""
    known = (
        algorithms.recorded(cell.config.algorithm, cell.config.source, cell.label) for cell in cells
    )
    return {entry.file: entry.content for entry in known if entry.source}


class Listener:
    """What nodes tell of their progress, until the driver asks."""

    def __init__(self) -> None:
        self._told: list[tuple[int, dict[str, Any]]] = []

    def tell(self, number: int, about: dict[str, Any]) -> None:
        self._told.append((number, about))

    def heard(self) -> list[tuple[int, dict[str, Any]]]:
        found, self._told = self._told, []
        return found


def call(version: str, function: Callable[..., Any], *arguments: Any) -> tuple[bool, Any]:
    """What a node does: like `workers.serve`, errors that users can fix come back as they are."""
    try:
        if version != goatrl.__version__:
            raise GoatError(
                f"a node of the cluster has goatrl {goatrl.__version__}, and this machine "
                f"{version}; install the same everywhere"
            )
        return True, function(*arguments)
    except GoatError as error:
        return False, GoatError(str(error))  # whatever else another kind consists of


def train_elsewhere(
    number: int,
    described: Sequence[Mapping[str, Any]],
    sources: Mapping[str, bytes],
    listener: Any,
    groups: Sequence[str],
    *datasets: Mapping[str, Any],
) -> tuple[dict[str, bytes], GoatError | None]:
    """Train some cells on a node, as this process would. Returns the files of their agents."""
    ray = load_package()
    keep_compiled_programs()
    for file, content in sources.items():
        algorithms.load_content(Path(file), content)
    cells = [experiment.get(job.experiment).ready(job) for job in map(Job.from_json, described)]
    problems = {
        name: Problem(make_episodes(**arrays), cells[0].config.spec, group.settings, group)
        for name, arrays in zip(groups, datasets, strict=True)
        for group in [tasks.get(name)]
    }

    def report(progress: Progress) -> None:
        about = dataclasses.asdict(dataclasses.replace(progress, cells=()))
        del about["cells"]
        ray.get(listener.tell.remote(number, about))  # before the result, not after it

    with tempfile.TemporaryDirectory() as folder:
        waiting = iter([cells])
        ((_, diverged),) = HERE.train(
            waiting, Path(folder), lambda group, data: problems[group], report
        )
        return {
            file.name: file.read_bytes() for file in Path(folder).glob("agents/*.safetensors")
        }, diverged
