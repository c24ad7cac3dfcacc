"""How fast goatrl is beside other libraries, at the same sizes, as ratios within one run.

    pip install -c constraints.txt -e '.[peers]'
    python benchmarks/peers.py [--rounds 5] [--out peers.json]

Sizes are those of Push: 5,000 episodes of 49 actions, observation 25, goal 3, action 4, batch 512,
networks of 3 × 256. Every library may use all cores, but SyncVectorEnv and a loop over episodes
use one.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium.spaces import Box, Dict
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

import simulator_speed
import update_speed
from goatrl import tasks
from goatrl.evaluation.episodes import evaluate
from goatrl.learn import normalize
from goatrl.types import Episodes, reached

PEERS = {"torch": "torch", "d3rlpy": "d3rlpy", "stable_baselines3": "stable-baselines3"}
CORES = len(os.sched_getaffinity(0))
UPDATES = 100  # of one turn
DISTURBED = 1.5  # slowest by fastest round; on an idle machine it is at most 1.3
LAYERS = [256, 256, 256]
EPISODES = 200  # that a policy is evaluated in
ROBOTS = -(-64 // CORES) * CORES  # as many for every worker
FAMILY, GROUP, THRESHOLD = "push", "push-left-right", 0.05
MS, RATE = "ms/update", "steps/s"

Contestant = Callable[[], float]  # runs once; milliseconds per update or steps per second


@dataclass(frozen=True)
class Pair:
    """What is compared: the names of two contestants."""

    name: str
    ours: str
    theirs: str
    unit: str


@dataclass(frozen=True)
class Row:
    name: str
    ours: float
    theirs: float
    unit: str
    ratio: float  # how many times as fast ours is
    spread: tuple[float, float]  # of all rounds, the lowest and the highest ratio


PAIRS = (
    Pair("IQL: d3rlpy, 2 critics, ours 1", "iql_her", "d3rlpy, 2 critics", MS),
    Pair("IQL: d3rlpy, 1 critic", "iql_her", "d3rlpy, 1 critic", MS),
    Pair("IQL: d3rlpy, update alone", "iql_her", "d3rlpy, update alone", MS),
    Pair("DDPG+HER: stable-baselines3", "ddpg_her", "stable-baselines3", MS),
    Pair("simulation: SyncVectorEnv", "simulator", "SyncVectorEnv", RATE),
    Pair("simulation: AsyncVectorEnv", "simulator", "AsyncVectorEnv", RATE),
    Pair("evaluation: loop over episodes", "evaluation", "loop over episodes", RATE),
)


def compare(pairs: Sequence[Pair], measured: Mapping[str, Sequence[float]]) -> list[Row]:
    """Medians of all rounds, and how many times as fast ours is."""
    rows = []
    for pair in pairs:
        ours, theirs = np.array(measured[pair.ours]), np.array(measured[pair.theirs])
        ratios = theirs / ours if pair.unit == MS else ours / theirs
        rows.append(
            Row(
                pair.name,
                float(np.median(ours)),
                float(np.median(theirs)),
                pair.unit,
                float(np.median(ratios)),
                (float(ratios.min()), float(ratios.max())),
            )
        )
    return rows


def take_turns(contestants: Mapping[str, Contestant], rounds: int) -> dict[str, list[float]]:
    """What else the machine does meets all of them."""
    measured: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            measured[name].append(run())
    return measured


def per_update(run: Callable[[], object]) -> Contestant:
    """Milliseconds per update, of a function that makes `UPDATES` of them."""
    run()  # compiles, allocates

    def turn() -> float:
        begun = time.perf_counter()
        run()
        return 1e3 * (time.perf_counter() - begun) / UPDATES

    return turn


def updates(episodes: Episodes) -> dict[str, Contestant]:
    """Ours, with sampling, relabelling and normalisation of inputs."""
    names = "iql_her", "ddpg_her"
    runs = [update_speed.trainer(episodes, 1, UPDATES, name) for name in names]
    return {
        name: per_update(lambda run=run: jax.block_until_ready(run()))
        for name, run in zip(names, runs, strict=True)
    }


def d3rlpy_updates(episodes: Episodes) -> dict[str, Contestant]:
    """What its `fit` does for every update (a batch from the replay buffer, then `update`), and
    `update` alone. It has no relabelling: goals are part of the observations. It compiles on CUDA
    only (`compile_graph` has no effect on a CPU).
    """
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    from d3rlpy.algos import IQLConfig
    from d3rlpy.dataset import Episode, create_infinite_replay_buffer
    from d3rlpy.models import VectorEncoderFactory

    goals = np.repeat(np.asarray(episodes.goals)[:, None], episodes.horizon + 1, axis=1)
    seen = np.concatenate([episodes.observations, goals], axis=-1)
    rewards = reached(np.asarray(episodes.achieved), goals, THRESHOLD)
    # As many actions as observations: one more, which is in no transition.
    actions = np.pad(np.asarray(episodes.actions), ((0, 0), (0, 1), (0, 0)))
    buffer = create_infinite_replay_buffer(
        [
            Episode(seen[i], actions[i], rewards[i, :, None].astype(np.float32), terminated=False)
            for i in range(episodes.count)
        ]
    )

    def algorithm(critics: int) -> Any:
        networks = {
            f"{part}_encoder_factory": VectorEncoderFactory(LAYERS)
            for part in ("actor", "critic", "value")
        }
        config = IQLConfig(batch_size=update_speed.BATCH, n_critics=critics, **networks)
        algorithm = config.create(device="cpu")
        algorithm.create_impl(seen.shape[-1:], actions.shape[-1])
        return algorithm

    def fit(algorithm: Any) -> None:
        for _ in range(UPDATES):
            algorithm.update(buffer.sample_transition_batch(update_speed.BATCH))

    def update(algorithm: Any, batch: Any) -> None:
        for _ in range(UPDATES):
            algorithm.update(batch)

    one, two = algorithm(1), algorithm(2)
    batch = buffer.sample_transition_batch(update_speed.BATCH)
    return {
        "d3rlpy, 2 critics": per_update(lambda: fit(two)),
        "d3rlpy, 1 critic": per_update(lambda: fit(one)),
        "d3rlpy, update alone": per_update(lambda: update(one, batch)),
    }


class Goals(gymnasium.Env):
    """Shapes and rewards of the episodes, which is all that a replay buffer asks for."""

    observation_space = Dict(
        {
            "observation": Box(-np.inf, np.inf, (update_speed.OBSERVATION,), np.float32),
            "achieved_goal": Box(-np.inf, np.inf, (update_speed.GOAL,), np.float32),
            "desired_goal": Box(-np.inf, np.inf, (update_speed.GOAL,), np.float32),
        }
    )
    action_space = Box(-1, 1, (update_speed.ACTION,), np.float32)

    def compute_reward(self, achieved: np.ndarray, goal: np.ndarray, _: object) -> np.ndarray:
        return reached(achieved, goal, THRESHOLD)


def stable_baselines3_updates(episodes: Episodes) -> dict[str, Contestant]:
    """Its `train`, which draws a batch from the replay buffer for every update. Four of five goals
    are relabelled, as ours are.
    """
    from stable_baselines3 import DDPG, HerReplayBuffer
    from stable_baselines3.common.logger import Logger

    model = DDPG(
        "MultiInputPolicy",
        Goals(),
        buffer_size=episodes.count * episodes.horizon,
        replay_buffer_class=HerReplayBuffer,
        policy_kwargs={"net_arch": LAYERS},
        device="cpu",
    )
    model.set_logger(Logger(None, []))
    for seen, following, action, last in transitions(episodes):
        model.replay_buffer.add(seen, following, action, np.zeros(1), np.array([last]), [{}])
    return {"stable-baselines3": per_update(lambda: model.train(UPDATES, update_speed.BATCH))}


def transitions(episodes: Episodes) -> Iterator[tuple[dict, dict, np.ndarray, bool]]:
    observations, achieved, actions, goals = (
        np.asarray(array)
        for array in (episodes.observations, episodes.achieved, episodes.actions, episodes.goals)
    )
    for episode in range(episodes.count):
        seen = [
            {
                "observation": observations[episode, step],
                "achieved_goal": achieved[episode, step],
                "desired_goal": goals[episode],
            }
            for step in range(episodes.horizon + 1)
        ]
        for step in range(episodes.horizon):
            last = step == episodes.horizon - 1
            yield seen[step], seen[step + 1], actions[episode, step], last


def simulators() -> dict[str, Contestant]:
    """The same robots with the same actions, resets included."""
    starts = simulator_speed.library_starts(FAMILY, ROBOTS)
    actions = simulator_speed.actions_with_contact(FAMILY, starts)
    return {
        "simulator": lambda: simulator_speed.batched(FAMILY, starts, actions, CORES),
        "SyncVectorEnv": lambda: simulator_speed.vectorised(FAMILY, actions, CORES, "sync"),
        "AsyncVectorEnv": lambda: simulator_speed.vectorised(FAMILY, actions, CORES, "async"),
    }


def evaluations() -> dict[str, Contestant]:
    """A policy of GOAT's size, untrained, in as many episodes of as many steps. Those of the loop
    start where the library puts the object, which makes a step neither cheaper nor dearer.
    """
    group = tasks.get(GROUP)
    members, state, *_ = simulator_speed.untrained(group, 1)
    task = replace(group.tasks[0], episodes=EPISODES)
    steps = task.episodes * group.spec.horizon
    agent = jax.tree.map(lambda leaf: leaf[0], state)
    policy = jax.jit(lambda seen, goal: normalize.act(members[0][0], agent, seen[None], goal[None]))
    environment = gymnasium.make(simulator_speed.registered(FAMILY))

    def evaluated() -> float:
        begun = time.perf_counter()
        evaluate(members, state, group, [task])
        return steps / (time.perf_counter() - begun)

    def looped() -> float:
        begun = time.perf_counter()
        for episode in range(task.episodes):
            seen, _ = environment.reset(seed=episode)
            for _ in range(group.spec.horizon):
                action = np.asarray(policy(seen["observation"], seen["desired_goal"]))[0]
                seen, *_ = environment.step(action)
        return steps / (time.perf_counter() - begun)

    evaluated()  # starts processes, which load robots and compile policies
    return {"evaluation": evaluated, "loop over episodes": looped}


def check_peers() -> None:
    for module, package in PEERS.items():
        if importlib.util.find_spec(module) is None:
            raise SystemExit(f"{package} is not installed; run: pip install 'goatrl[peers]'")


def table(rows: Sequence[Row]) -> Table:
    shown = Table("", "ours", "theirs", "", "ratio", "of rounds", box=SIMPLE)
    for row in rows:
        digits = 1 if row.unit == MS else 0
        ours, theirs = (f"{value:,.{digits}f}" for value in (row.ours, row.theirs))
        spread = f"{row.spread[0]:.2f}–{row.spread[1]:.2f}"
        shown.add_row(row.name, ours, theirs, row.unit, f"{row.ratio:.2f}", spread)
    for column in shown.columns[1:3]:
        column.justify = "right"
    return shown


def disturbed(measured: Mapping[str, Sequence[float]]) -> list[str]:
    """Contestants whose rounds disagree. On a busy machine torch's threads wait for each other, and
    an update takes ten times as long.
    """
    return [name for name, rounds in measured.items() if max(rounds) > DISTURBED * min(rounds)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="turns that each contestant takes")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write JSON")
    given = parser.parse_args(arguments)
    check_peers()
    warnings.simplefilter("ignore")  # Gymnasium's advice about environments
    import torch

    torch.set_num_threads(CORES)
    episodes = update_speed.dataset()
    contestants = (
        updates(episodes)
        | d3rlpy_updates(episodes)
        | stable_baselines3_updates(episodes)
        | simulators()
        | evaluations()
    )
    measured = take_turns(contestants, given.rounds)
    rows = compare(PAIRS, measured)
    Console().print(table(rows))
    if names := disturbed(measured):
        print(
            f"The machine was busy, rounds differ: {', '.join(names)}. Run again when it is idle."
        )
    if given.out:
        packages = "jax", "gymnasium", "mujoco", *PEERS.values()
        report = {
            "cores": CORES,
            "versions": {name: importlib.metadata.version(name) for name in packages},
            "rows": [asdict(row) for row in rows],
            "rounds": measured,
        }
        given.out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
