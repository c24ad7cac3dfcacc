"""What many tests build: networks, records, curves, timings, and the command line as typed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest

from goatrl import algorithms, cli, tasks
from goatrl.algorithms import registry
from goatrl.data.problems import Problem, open_problem
from goatrl.disk import checkpoint
from goatrl.evaluation.episodes import SCHEMA
from goatrl.experiments import timing
from goatrl.experiments.curves import Curve
from goatrl.experiments.records import Cell, CellConfig, Training
from goatrl.learn.networks import MLP
from goatrl.learn.parameters import described
from goatrl.learn.weights import PercentileSelection
from goatrl.runs.offline import Run, configure
from goatrl.types import Batch, Spec, TrainState, pytree

ROOT = Path(__file__).parents[1]


@contextmanager
def own_algorithms() -> Iterator[None]:
    """What a file registers in here is forgotten afterwards."""
    before = dict(registry._ENTRIES)
    try:
        yield
    finally:
        registry._ENTRIES.clear()
        registry._ENTRIES.update(before)


@pytree
class AsItIs:
    """A normaliser that changes nothing, not even what lies far out."""

    def observation(self, x: jax.Array) -> jax.Array:
        return x

    def goal(self, x: jax.Array) -> jax.Array:
        return x


def acting(**params: jax.Array) -> TrainState:
    """The state of agents that only act, on inputs as they are; leading axis: members."""
    return TrainState(None, params, None, None, None, AsItIs())


def network(*layers, activation: str = "relu") -> MLP:
    """A network of these layers: (weights, biases) each."""
    pairs = [
        {"w": jnp.asarray(w, jnp.float32), "b": jnp.asarray(b, jnp.float32)} for w, b in layers
    ]
    return MLP(tuple(pairs), activation)


def linear(*weights: float, bias: float = 0.0, activation: str = "relu") -> MLP:
    """A network of one layer: weights · inputs + bias."""
    return network(([[weight] for weight in weights], [bias]), activation=activation)


def make_batch(**arrays) -> Batch:
    """A batch of these arrays. Policy goals are value goals, unless given."""
    reward = arrays["reward"]
    others = {
        "next_achieved": jnp.zeros_like(arrays["achieved"]),
        "policy_goal": arrays["goal"],
        "mask": jnp.ones_like(reward) - reward,
    }
    return Batch(**(others | arrays))


def ensemble(*members):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *members)


def made_by_hand(group: str, rows: list[dict], seeds: tuple[int, ...], label: str = "GOAT") -> Cell:
    """A record of the PointReach suite with these episodes."""
    config = CellConfig(group, "any", "", {}, Spec(2, 2, 2, 49, 1.0), "data", "tasks", 1, 1)
    training = Training(seeds, {"device": "none", "jax": "0"}, len(seeds), 1.0)
    return Cell("pointreach", label, config, (training,), pa.Table.from_pylist(rows, schema=SCHEMA))


def walks(group: str, reached: int, seeds: tuple[int, ...], returned: int) -> list[dict]:
    """Rows of an agent that walks straight to the first `reached` goals of each task of PointReach,
    and half-way to the others.
    """
    rows = []
    for task in tasks.get(group).tasks:
        for seed in seeds:
            for episode, goal in enumerate(task.evaluation()[1]):
                share = np.linspace(0.0, 1.0 if episode < reached else 0.5, 6)
                place = {
                    "start": [0.0, 0.0],
                    "goal": goal.tolist(),
                    "path": (share[:, None] * goal).ravel().tolist(),
                }
                outcome = {"success": episode < reached, "return": returned, "final_distance": 0.0}
                which = {"task": task.name, "split": task.split, "seed": seed, "episode": episode}
                rows.append(place | outcome | which)
    return rows


def point_episodes(successes: Mapping[str, Sequence[Sequence[int]]], goal: float = 5.0) -> pa.Table:
    """Episodes, of each task for each seed, that end at the goal or not, with ten steps there if
    they do.
    """
    found = []
    for task, of_seeds in successes.items():
        for seed, episodes in enumerate(of_seeds):
            for episode, success in enumerate(episodes):
                found.append(
                    {
                        "task": task,
                        "split": {"R10": "mixed", "R20": "ood"}.get(task),
                        "seed": seed,
                        "episode": episode,
                        "success": bool(success),
                        "return": 10 * success,
                        "final_distance": 0.0,
                        "start": [0.0, 0.0],
                        "goal": [goal, float(episode)],
                        "path": None,
                    }
                )
    return pa.Table.from_pylist(found, schema=SCHEMA)


def made_run(
    folder: Path,
    table: pa.Table,
    algorithm: str = "wgcsl",
    group: str = "pointreach-expert-10",
    step: int = 0,
    problem: Problem | None = None,
    **changes,
) -> Run:
    """A run as `goat train` and `goat evaluate` leave it, without what training takes."""
    seeds = tuple(sorted(set(table.column("seed").to_pylist())))
    run = Run(folder)
    config = configure(algorithm, problem or open_problem(group, None), seeds=seeds, **changes)
    run.write_config(config)
    if step:
        checkpoint.save(run.checkpoint_path, {"any": np.zeros(1)}, {"step": step})
    run.write_episodes(table, tasks.get(group), step)
    return run


def made_curve(
    label: str,
    success: np.ndarray,
    suite: str = "finetune-ddpg",
    group: str = "push-left-right",
    every: int = 9_800,
) -> Curve:
    """A record of fine-tuning with these rates: (seeds, evaluations)."""
    seeds, evaluations = success.shape
    origin = {
        "algorithm": label.lower(),
        "label": label,
        "group": group,
        "data": "0" * 64,
        "updates": 40_000,
    }
    config = {
        "from": "random" if label == "random" else {**origin, "checkpoint": "1" * 64},
        "by": "ddpg_her" if suite == "finetune-ddpg" else "own",
        "hyperparameters": {"learning_rate": 0.0005},
        "group": group,
        "evaluation": "2" * 64,
        "seeds": list(range(seeds)),
        "episodes": 4_000,
        "schedule": {"episodes": 8, "updates": 160},
        "evaluate_every": 25,
        "evaluated_episodes": 100,
    }
    versions = {stage: {"goatrl": "0.1.0", "device": "none"} for stage in ("offline", "online")}
    return Curve(
        suite,
        group,
        label,
        config,
        versions,
        tuple(range(seeds)),
        every * np.arange(evaluations),
        success,
    )


def made_timing(
    label: str,
    chunks: tuple[float, ...],
    interval: int = 800,
    updates: int = 40_000,
    seeds: int = 5,
) -> timing.Timing:
    """A record of the time that an algorithm trains."""
    name = next((column.algorithm for column in timing.COLUMNS if column.label == label), None)
    numbers = (
        {}
        if name is None
        else described(algorithms.get(name).build(timing.GROUP.settings))["hyperparameters"]
    )
    source = "3" * 64 if name is None else ""  # the user's own
    config = timing.Config(
        name or label.lower(),
        source,
        numbers,
        timing.GROUP.name,
        timing.EPISODES,
        seeds,
        updates,
        512,
    )
    return timing.Timing(
        label, config, {"goatrl": "0.1.0", "device": jax.devices()[0].device_kind}, interval, chunks
    )


def learning(
    start: float, end: float, half: float, seeds: int = 5, evaluations: int = 21, seed: int = 0
) -> np.ndarray:
    """Rates of agents that learn, with the noise of 100 episodes: half of the way is done after
    `half` evaluations.
    """
    rng = np.random.default_rng(seed)
    course = start + (end - start) * (1 - 0.5 ** (np.arange(evaluations) / half))
    rates = np.clip(
        course + rng.normal(0, 0.05, (seeds, 1)) * np.linspace(1, 0.4, evaluations), 0, 1
    )
    return rng.binomial(100, rates) / 100


def keep_few_advantages(patch: pytest.MonkeyPatch) -> None:
    """Percentiles are of the last 1,000 values, not of 50,000: in programs that are not optimised
    these would take ten times as long as the rest of an update. It is for tests that compare
    agents with each other, whatever they have learned.
    """
    usual = PercentileSelection.__init__.__defaults__
    assert usual.count(50_000) == 1
    fewer = tuple(1_000 if each == 50_000 else each for each in usual)
    patch.setattr(PercentileSelection.__init__, "__defaults__", fewer)


def goat(*arguments: object) -> int:
    """The command line, as typed."""
    return cli.main([str(argument) for argument in arguments])


def error_line(capsys: pytest.CaptureFixture[str]) -> str:
    text = capsys.readouterr().err.strip()
    assert text.startswith("goat: ")
    assert "\n" not in text, "an error is one line"
    return text


NAMES = ("observations", "achieved", "actions", "goals")


def arrays(count: int = 3, horizon: int = 4) -> dict[str, np.ndarray]:
    """Valid arrays in which every dimension is different: observation 5, goal 2, action 1."""
    rng = np.random.default_rng(1)
    return {
        "observations": rng.normal(size=(count, horizon + 1, 5)),
        "achieved": rng.normal(size=(count, horizon + 1, 2)),
        "actions": rng.normal(size=(count, horizon, 1)),
        "goals": rng.normal(size=(count, 2)),
    }
