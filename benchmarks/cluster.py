"""What a Ray cluster costs per job, and how far more nodes would help.

python benchmarks/cluster.py [--figure docs/figures/cluster.png]

Measures calls, pieces of robot episodes and trainings on 1, 2 and 4 nodes of one CPU each, all on
this machine, beside the local executor. Then schedules the trainings of all robot records in
results/robots (their measured seconds) and the evaluation of their cells (seconds of pieces as
measured here) on 8, 64 and 512 nodes, each of one GPU and 16 cores.
"""

from __future__ import annotations

import os

os.environ["NPROC"] = "1"  # one core for each process, as on the nodes; JAX reads it once

import argparse
import dataclasses
import heapq
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np

from goatrl import algorithms, tasks
from goatrl.disk.compiled import keep_compiled_programs
from goatrl.experiments import cluster, experiment, records
from goatrl.experiments.cluster import CPUS_PER_CELL, RayExecutor
from goatrl.experiments.estimate import GPU_COMPILATION
from goatrl.experiments.experiment import Executor, LocalExecutor, Request
from goatrl.experiments.grid import EVALUATED_AT_ONCE
from goatrl.experiments.records import Cell
from goatrl.learn.parameters import stack
from goatrl.report.figures import save
from goatrl.robots.mujoco import LEAST, ROWS, export, simulate_elsewhere
from goatrl.robots.workers import Pool, Workers
from goatrl.training.offline import act

ROOT = Path(__file__).parents[1]
CORES = len(os.sched_getaffinity(0))
MEASURED, SIMULATED = (1, 2, 4), (1, 8, 64, 512)  # nodes
CALLS, UPDATES = 300, 40
TRAINED = ("bc", "wgcsl")
GROUPS = ("pointreach-expert-10", "pointreach-non-expert-10")
NODE_CORES, NETWORK = 16, 1.25e9  # of a simulated node: cores, bytes per second


def timed(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


@contextmanager
def nodes(count: int) -> Iterator[RayExecutor]:
    """A cluster on this machine, of so many nodes with one CPU each."""
    cluster.load_package()
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        for _ in range(count):
            made.add_node(num_cpus=1)
        with cluster.connected(made.address) as executor:
            yield executor
    finally:
        made.shutdown()


def calls(pool: Pool) -> float:
    """Seconds per call that does nothing, after the processes have started."""
    for warm in [pool.submit(time.sleep, 1.0) for _ in range(pool.count)]:
        warm.result()

    def all_of_them() -> None:
        for each in [pool.submit(len, "") for _ in range(CALLS)]:
            each.result()

    return timed(all_of_them) / CALLS


def trainings(executor: Executor) -> tuple[float, int]:
    """Seconds of some small cells, from plan to records, and how many they are."""
    chosen = experiment.get("pointreach")
    with tempfile.TemporaryDirectory() as folder:
        request = Request(seeds=1, algorithms=TRAINED, updates=UPDATES, groups=GROUPS)
        planned = chosen.plan(Path(folder), request, lambda groups: None)
        jobs = [chosen.job(each) for each in planned]
        return timed(lambda: executor.run(jobs, Path(folder), lambda progress: None)), len(jobs)


@dataclasses.dataclass(frozen=True)
class PieceTime:
    """Seconds of a piece of episodes: those of the first one of a cell in a process, in which its
    policy is compiled, and of an episode.
    """

    compiling: float
    episode: float

    def of(self, episodes: int, first: float) -> float:
        """On average, if that share of all pieces are the first ones of their process."""
        return first * self.compiling + self.episode * episodes


def piece_time(group: str, episodes: int = 20) -> PieceTime:
    chosen = tasks.get(group)
    agent = algorithms.get("goat").build(chosen.settings)
    state = jax.tree.map(lambda leaf: leaf[None], agent.init(jax.random.key(0), chosen.spec))
    agents = stack([agent]), state
    program = export(act, agents, chosen.spec)
    leaves = list(map(np.asarray, jax.tree.leaves(agents)))
    starts, goals = (each[:episodes] for each in chosen.tasks[0].evaluation())

    def piece() -> None:
        goals32 = goals.astype(np.float32)
        simulate_elsewhere(chosen.family, program, leaves, starts, goals32, chosen.spec.horizon)

    first, *later = (timed(piece) for _ in range(4))
    return PieceTime(
        max(first - statistics.median(later), 0.0), statistics.median(later) / episodes
    )


def record_seconds(cell: Cell) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return timed(lambda: records.add(Path(folder), cell))


@dataclasses.dataclass(frozen=True)
class Work:
    """A benchmark to schedule: programs that train, each with the cells that wait for it."""

    programs: Sequence[tuple[float, Sequence[Cell]]]  # seconds
    pieces: Mapping[str, PieceTime]  # by family
    call: float  # the driver's seconds for a piece
    record: float  # and for a cell

    def times(self, factor: int) -> Work:
        return dataclasses.replace(self, programs=list(self.programs) * factor)


@dataclasses.dataclass(frozen=True)
class Scheduled:
    seconds: float
    bounds: Mapping[str, float]  # what it takes at least, if all else were free

    @property
    def efficiency(self) -> float:
        """The share of the busiest kind of device's time that is used."""
        return max(self.bounds["GPUs"], self.bounds["cores"]) / self.seconds

    @property
    def saturated(self) -> str:
        return max(self.bounds, key=lambda name: self.bounds[name])


def dataset_bytes(group: str) -> int:
    chosen = tasks.get(group)
    assert chosen.collection is not None
    spec = chosen.spec
    step = 4 * (spec.observation_dim + spec.goal_dim + spec.action_dim)
    return chosen.collection.episodes * (spec.horizon + 1) * step


def schedule(work: Work, count: int) -> Scheduled:
    """List scheduling, as the executor does it: a program goes to the first GPU that is free; what
    it has trained is evaluated in turn, a few cells at once, in pieces on the first free cores.
    """
    cores = NODE_CORES * count
    gpus, free, slots = (
        [0.0] * count,
        [0.0] * cores,
        [0.0] * max(EVALUATED_AT_ONCE, cores // CPUS_PER_CELL),
    )
    gpu_work = core_work = driver = sent = longest = 0.0
    waiting = []
    for number, (seconds, cells) in enumerate(work.programs):
        done = heapq.heappop(gpus) + GPU_COMPILATION + seconds
        heapq.heappush(gpus, done)
        gpu_work += GPU_COMPILATION + seconds
        waiting += [(done, number, cell) for cell in cells]
        sent += sum(dataset_bytes(name) for name in {cell.config.group for cell in cells})
        longest = max(longest, GPU_COMPILATION + seconds)
    end, clock = max(gpus), 0.0  # the clock of the driver, which submits one piece after the other
    for done, _, cell in sorted(waiting, key=lambda each: each[:2]):
        episodes = cell.episodes.num_rows
        share = min(ROWS, max(LEAST, math.ceil(episodes / cores)))
        pieces = math.ceil(episodes / share)
        seconds = work.pieces[tasks.get(cell.config.group).family.name].of(
            share, min(1.0, cores / pieces)
        )
        begun = max(done, heapq.heappop(slots))
        last = begun
        for _ in range(pieces):
            clock = max(clock, begun) + work.call
            core = max(heapq.heappop(free), clock)
            heapq.heappush(free, core + seconds)
            last = max(last, core + seconds)
        heapq.heappush(slots, last + work.record)
        core_work += pieces * seconds
        driver += pieces * work.call
        end = max(end, last + work.record)
    bounds = {
        "GPUs": gpu_work / count,
        "cores": core_work / cores,
        "longest program": longest,
        "driver": driver,
        "records": work.record * len(waiting),
        "network": sent / NETWORK,
    }
    return Scheduled(end, bounds)


def recorded_work(pieces: Mapping[str, PieceTime], call: float, record: float) -> Work:
    """All robot records that were trained on one H200, in the programs that trained them."""
    programs: dict[tuple[float, int], list[Cell]] = {}
    for cell in records.read_all(ROOT / "results" / "robots"):
        for training in cell.trainings:
            if training.members and training.seconds and "H200" in training.versions["device"]:
                mine = np.isin(cell.column("seed"), training.seeds)
                part = dataclasses.replace(
                    cell, trainings=(training,), episodes=cell.episodes.filter(mine)
                )
                programs.setdefault((training.seconds, training.members), []).append(part)
    return Work(
        [(seconds, cells) for (seconds, _), cells in programs.items()], pieces, call, record
    )


def draw(found: Mapping[str, Mapping[int, Scheduled]], path: Path) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 3.4), layout="constrained")
    colors = {
        "GPUs": "C0",
        "cores": "C1",
        "longest program": "C2",
        "driver": "C3",
        "records": "C4",
        "network": "C5",
    }
    titles = list(found)
    for axis, title in zip(axes, titles, strict=True):
        counts = list(found[title])
        for name, color in colors.items():
            bound = [each.bounds[name] for each in found[title].values()]
            axis.plot(counts, bound, "--", color=color, linewidth=1.0, label=f"{name} alone")
        seconds = [each.seconds for each in found[title].values()]
        axis.plot(counts, seconds, "o-", color="black", label="whole benchmark")
        for count, each in found[title].items():
            axis.annotate(
                f"{100 * each.efficiency:.0f} %",
                (count, each.seconds),
                (0, 6),
                textcoords="offset points",
                ha="center",
                fontsize=8,
            )
        axis.set(xscale="log", yscale="log", title=title, xlabel="nodes (1 GPU, 16 cores)")
        axis.set_xticks(counts, [str(count) for count in counts])
        axis.minorticks_off()
        axis.margins(y=0.12)
        axis.grid(color="0.9")
    axes[0].set_ylabel("seconds")
    figure.legend(*axes[1].get_legend_handles_labels(), fontsize=8, loc="outside right upper")
    save(figure, path)


def measure() -> tuple[dict[str, Any], float]:
    """Per job, in milliseconds; and the driver's seconds for a call."""
    report: dict[str, Any] = {}
    trainings(LocalExecutor())  # compiles
    alone, jobs = trainings(LocalExecutor())
    for count in MEASURED:
        pool = Workers(count)
        here = calls(pool)
        pool.close()
        with nodes(count) as executor:
            there = calls(executor)
            trainings(executor)  # every process reads its programs
            whole, _ = trainings(executor)
        used = min(count, CORES)
        report[f"{count} nodes"] = {
            "call, local ms": round(1e3 * here, 2),
            "call, Ray ms": round(1e3 * there, 2),
            "cells, local s": round(alone, 2),
            "cells, Ray s": round(whole, 2),
            "overhead per cell, core-seconds": round((whole * used - alone) / jobs, 3),
        }
    return report, there


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", type=Path)
    chosen = parser.parse_args(arguments)
    keep_compiled_programs()
    measured, call = measure()
    print(json.dumps(measured, indent=1), flush=True)
    some = {tasks.get(name).family.name: name for name in experiment.get("paper").groups}
    pieces = {family: piece_time(group) for family, group in some.items()}
    cell = records.read_all(ROOT / "results" / "robots")[0]
    work = recorded_work(pieces, call, record_seconds(cell))
    cells = sum(len(cells) for _, cells in work.programs)
    print(json.dumps({name: dataclasses.asdict(each) for name, each in pieces.items()}, indent=1))
    print(f"{len(work.programs)} programs, {cells} cells, a record takes {work.record:.3f} s")
    found = {
        "all robot records": {count: schedule(work, count) for count in SIMULATED},
        "20 times as many": {count: schedule(work.times(20), count) for count in SIMULATED},
    }
    for title, results in found.items():
        for count, each in results.items():
            bounds = {name: round(value, 1) for name, value in each.bounds.items()}
            print(
                f"{title}, {count:3} nodes: {each.seconds:8.0f} s, efficiency "
                f"{100 * each.efficiency:.0f} %, {each.saturated} first; {bounds}"
            )
    if chosen.figure is not None:
        draw(found, chosen.figure)


if __name__ == "__main__":
    main()
