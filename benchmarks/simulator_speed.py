"""How fast the batched simulator is, as ratios within one run.

Every figure times the same robots in the same episodes, resets included: towards the object first,
then at random, so that contacts occur.

    python benchmarks/simulator_speed.py [--families push slide] [--robots 128] [--threads 2]
    python benchmarks/simulator_speed.py --families --judge push-left-right
    python benchmarks/simulator_speed.py --families --judge reach-left-right push-left-right
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import gymnasium
import jax
import mujoco
import numpy as np

from goatrl import algorithms, tasks
from goatrl.evaluation.episodes import evaluate
from goatrl.experiments.grid import EVALUATED_AT_ONCE
from goatrl.learn.parameters import stack
from goatrl.robots.mujoco import PIECE, MujocoFamily, export, simulate_elsewhere
from goatrl.robots.workers import the_same
from goatrl.robots.workers import workers as processes
from goatrl.tasks import Task, TaskGroup
from goatrl.training.offline import Members, act, init, prune_to_policy
from goatrl.types import TrainState

STEPS = 49
APPROACH = 15
GROUPS = {group.family.name: group.name for group in tasks.robots()}  # one of each robot
FAMILIES = tasks.families()


def actions_with_contact(family: str, starts: np.ndarray, seed: int = 0) -> np.ndarray:
    """(STEPS, robots, action_dim): towards the object, then at random."""
    simulator = FAMILIES[family].simulator(len(starts))
    observations, _ = simulator.reset(starts)
    actions = np.random.default_rng(seed).uniform(
        -1, 1, (STEPS, len(starts), tasks.get(GROUPS[family]).spec.action_dim)
    )
    for step in range(STEPS):
        if simulator.robot.start_dim and step < APPROACH:
            actions[step, :, :3] = np.clip(10 * (observations[:, 3:6] - observations[:, :3]), -1, 1)
        observations, _ = simulator.step(actions[step])
    simulator.close()
    return actions


def batched(family: str, starts: np.ndarray, actions: np.ndarray, threads: int) -> float:
    """Robot steps per second of the batched simulator."""
    simulator = FAMILIES[family].simulator(len(starts), threads)
    begun = time.perf_counter()
    simulator.reset(starts)
    for row in actions:
        simulator.step(row)
    seconds = time.perf_counter() - begun
    simulator.close()
    return actions[..., 0].size / seconds


def seconds_in_mj_step(run: Callable[[], object]) -> float:
    """How much of `run` is mj_step."""
    seconds = 0.0
    step = mujoco.mj_step

    def timed(*arguments: object) -> None:
        nonlocal seconds
        begun = time.perf_counter()
        step(*arguments)
        seconds += time.perf_counter() - begun

    mujoco.mj_step = timed
    try:
        run()
    finally:
        mujoco.mj_step = step
    return seconds


def bare(family: str, starts: np.ndarray, actions: np.ndarray) -> float:
    """Steps per second of mj_step alone on one thread, along the same trajectories."""
    simulator = FAMILIES[family].simulator(len(starts), 1)
    simulator.reset(starts)

    def run() -> None:
        for row in actions:
            simulator.step(row)

    return actions[..., 0].size / seconds_in_mj_step(run)


def library_starts(family: str, count: int) -> np.ndarray:
    """Where the library's environment puts the object for seeds 0, 1, …, so that all contestants
    run the same trajectories.
    """
    robot = FAMILIES[family].robot
    if not robot.start_dim:
        return np.zeros((count, 0))
    starts = []
    for seed in range(count):
        robot.environment.reset(seed=seed)
        starts.append(robot.environment.data.joint("object0:joint").qpos[:2].copy())
    return np.array(starts)


def gymnasium_loop(family: str, actions: np.ndarray) -> float:
    """Steps per second of one Gymnasium environment, episode after episode."""
    environment = gymnasium.make(registered(family))
    begun = time.perf_counter()
    for episode in range(actions.shape[1]):
        environment.reset(seed=episode)
        for row in actions:
            environment.step(row[episode])
    return actions[..., 0].size / (time.perf_counter() - begun)


def vectorised(family: str, actions: np.ndarray, workers: int, mode: str) -> float:
    """Steps per second of Gymnasium's vector environment, "sync" or "async", episode after episode
    in every worker.
    """
    environments = gymnasium.make_vec(registered(family), num_envs=workers, vectorization_mode=mode)
    begun = time.perf_counter()
    for first in range(0, actions.shape[1], workers):
        environments.reset(seed=list(range(first, first + workers)))
        for row in actions:
            environments.step(row[first : first + workers])
    seconds = time.perf_counter() - begun
    environments.close()
    return actions[..., 0].size / seconds


def registered(family: str) -> str:
    """The library's environment with the dynamics of the recordings, as gymnasium.make gives it."""
    name = f"library/{family}-v0"
    if name not in gymnasium.registry:
        gymnasium.register(
            name,
            entry_point=partial(FAMILIES[family].make_environment, prune=False),
            max_episode_steps=STEPS + 1,
        )
    return name


def measure(
    family: str, count: int, threads: Sequence[int], workers: int, repeats: int
) -> dict[str, float]:
    starts = library_starts(family, count)
    actions = actions_with_contact(family, starts)
    contestants = {
        "bare mj_step": lambda: bare(family, starts, actions),
        "1 thread": lambda: batched(family, starts, actions, 1),
    }
    contestants |= {
        f"{n} threads": lambda n=n: batched(family, starts, actions, n) for n in threads if n > 1
    }
    if workers:
        contestants["gymnasium loop"] = lambda: gymnasium_loop(family, actions)
        contestants[f"AsyncVectorEnv with {workers} workers"] = lambda: vectorised(
            family, actions, workers, "async"
        )
    # All contestants in turn, several times: what else the machine does meets all of them.
    rates = [{name: run() for name, run in contestants.items()} for _ in range(repeats)]
    rate = {name: float(np.median([each[name] for each in rates])) for name in contestants}
    ours = f"{threads[-1]} threads"
    ratios = {"1 thread / bare mj_step": rate["1 thread"] / rate["bare mj_step"]}
    ratios |= {
        f"{ours} / {name}": rate[ours] / rate[name]
        for name in contestants
        if name not in ("bare mj_step", ours)
    }
    return {f"{name}, steps/s": round(value, 1) for name, value in rate.items()} | {
        n: round(v, 3) for n, v in ratios.items()
    }


class Cell(NamedTuple):
    """What `evaluate` takes."""

    members: Members
    state: TrainState
    group: TaskGroup
    tasks: Sequence[Task]


def untrained(group: TaskGroup, seeds: int) -> Cell:
    """GOAT before its first update, on all that agents are run on."""
    members = [(algorithms.get("goat").build(group.settings), seed) for seed in range(seeds)]
    state = init(members, group.spec)
    return Cell(members, state, group, group.evaluated())


def judge(cells: Sequence[Cell]) -> float:
    """Seconds until all are evaluated, in one queue as in a benchmark."""
    begun = time.perf_counter()
    with ThreadPoolExecutor(EVALUATED_AT_ONCE) as evaluator:
        list(evaluator.map(lambda cell: evaluate(*cell), cells))
    return time.perf_counter() - begun


def bare_judge(cells: Sequence[Cell]) -> float:
    """Seconds that mj_step takes of it, if all processes are always busy with nothing else."""
    pieces = [processes().submit(bare_piece, *piece) for cell in cells for piece in split(cell)]
    return sum(piece.result() for piece in pieces) / processes().count


def split(cell: Cell) -> Iterator[tuple[object, ...]]:
    """The pieces that evaluation consists of: arguments of `simulate_elsewhere`."""
    members, state, group, tasks = cell
    drawn = [task.evaluation() for task in tasks]
    starts, goals = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    policies = prune_to_policy(members[0][0], group.spec, state)
    agents = stack([algorithm for algorithm, _ in members]), policies
    for member in range(len(members)):
        alone = jax.tree.map(lambda leaf, m=member: leaf[m : m + 1], agents)
        policy = export(act, alone, group.spec), list(map(np.asarray, jax.tree.leaves(alone)))
        for first in range(0, len(goals), PIECE):
            at = slice(first, first + PIECE)
            aims = goals[at].astype(np.float32)
            yield group.family, *policy, starts[at], aims, group.spec.horizon


def bare_piece(family: MujocoFamily, *piece: object) -> float:
    family = the_same(family)
    _ = family.robot  # making it takes some steps, which do not count
    return seconds_in_mj_step(partial(simulate_elsewhere, family, *piece))


def judging(groups: Sequence[TaskGroup], seeds: int, repeats: int) -> dict[str, float]:
    """Steps per second of judging, beside those of bare mj_step in as many processes along the same
    trajectories.
    """
    cells = [untrained(group, seeds) for group in groups]
    # First a few episodes, with which processes start, load robots and compile policies.
    judge([cell._replace(tasks=[replace(cell.tasks[0], episodes=PIECE)]) for cell in cells])
    judged, bare = np.median([(judge(cells), bare_judge(cells)) for _ in range(repeats)], axis=0)
    steps = seeds * sum(task.episodes * g.spec.horizon for g in groups for task in g.evaluated())
    return {
        "cores": processes().count,
        "steps": steps,
        "judging, steps/s": round(steps / judged, 1),
        "bare mj_step, steps/s": round(steps / bare, 1),
        "judging / bare mj_step": round(bare / judged, 3),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--families", nargs="*", default=list(GROUPS), choices=list(GROUPS))
    parser.add_argument("--robots", type=int, default=128)
    parser.add_argument("--threads", type=int, nargs="+", default=[len(os.sched_getaffinity(0))])
    parser.add_argument(
        "--workers",
        type=int,
        default=2,
        help="of AsyncVectorEnv; 0 leaves both Gymnasium loops out",
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--judge",
        metavar="GROUP",
        nargs="+",
        default=[],
        help="also judge five agents on the tasks of these groups, all in one queue",
    )
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # Gymnasium's advice about environments
    if chosen.judge:
        report = judging([tasks.get(name) for name in chosen.judge], 5, chosen.repeats)
        print(json.dumps({f"judging {', '.join(chosen.judge)}": report}, indent=2), flush=True)
    for family in chosen.families:
        report = measure(family, chosen.robots, chosen.threads, chosen.workers, chosen.repeats)
        print(json.dumps({family: report}, indent=2), flush=True)


if __name__ == "__main__":
    import simulator_speed  # by this name, other processes can import what they are to call

    simulator_speed.main()
