"""About how long a plan takes. Rates are those of benchmarks/README.md; the first cells of a run
soon know better.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import jax

from goatrl.experiments.finetuning import PlannedCurve
from goatrl.experiments.grid import PlannedCell, Together, batches
from goatrl.types import Algorithm, Spec

FLOPS_PER_WEIGHT = (
    12  # of an update, per sample: the passes with gradients take six, the others two each
)
CORE_RATE, GPU_RATE = 75e9, 40e12  # floating-point operations per second
GPU_LATENCY = 100e-6  # seconds per update, however small it is
COMPILATION, GPU_COMPILATION = 8.0, 25.0  # seconds
ROBOT_STEPS = 600.0  # simulated per core and second


def duration(seconds: float) -> str:
    """A time as one says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


def seconds(planned: Sequence[PlannedCell]) -> tuple[float, float]:
    """Training and evaluating of all that is missing. On a machine with a GPU the two overlap."""
    missing = batches(planned)
    return sum(map(_training, missing)), sum(
        _evaluating(cell) for cells in missing for cell in cells
    )


def order(waiting: list[Together]) -> list[Together]:
    """What soon gives the cores much to simulate comes first, where they wait for a GPU."""
    if jax.default_backend() == "cpu":
        return waiting
    return sorted(
        waiting, key=lambda cells: _training(cells) / (1.0 + sum(map(_evaluating, cells)))
    )


def _training(together: Sequence[PlannedCell]) -> float:
    config, members = together[0].config, sum(len(cell.missing) for cell in together)
    return _updating(together[0].algorithm, config.spec, config.updates, config.batch_size, members)


def _updating(
    algorithm: Algorithm, spec: Spec, updates: int, batch_size: int, members: int
) -> float:
    state = jax.eval_shape(lambda: algorithm.init(jax.random.key(0), spec))
    weights = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(state.params))
    work = FLOPS_PER_WEIGHT * weights * batch_size * updates * members
    if jax.default_backend() == "cpu":
        return COMPILATION + work / (CORE_RATE * (os.cpu_count() or 1))
    return GPU_COMPILATION + work / GPU_RATE + GPU_LATENCY * updates


def _evaluating(cell: PlannedCell) -> float:
    if not cell.group.family.simulated:
        return 0.0
    episodes = sum(task.episodes for task in cell.tasks) * len(cell.missing)
    return _simulating(episodes * cell.config.spec.horizon)


def _simulating(steps: int) -> float:
    return steps / (ROBOT_STEPS * (os.cpu_count() or 1))


def finetuning_seconds(planned: Sequence[PlannedCurve]) -> float:
    """Of curves that are not recorded: training offline, once for each group and algorithm, then
    acting, updates and evaluating.
    """
    offline = {
        (cell.group.name, cell.offline.algorithm): cell.offline
        for cell in planned
        if cell.offline is not None
    }
    seconds = sum(
        _updating(
            config.members()[0][0],
            config.spec,
            config.updates,
            config.batch_size,
            len(config.seeds),
        )
        for config in offline.values()
    )
    for cell in planned:
        schedule, members = cell.about["schedule"], len(cell.seeds)
        rounds = cell.episodes // schedule["episodes"]
        evaluated = (1 + -(-rounds // cell.about["evaluate_every"])) * cell.about[
            "evaluated_episodes"
        ]
        seconds += _updating(
            cell.agent(),
            cell.group.spec,
            rounds * schedule["updates"],
            schedule["batch_size"],
            members,
        )
        seconds += _simulating(members * (cell.episodes + evaluated) * cell.group.spec.horizon)
    return seconds
