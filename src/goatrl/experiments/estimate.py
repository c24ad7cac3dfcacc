"""About how long a plan takes. Rates are those of benchmarks/README.md, corrected by what the last
suites took on this machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from goatrl.disk.files import cache_folder, locked, write_text
from goatrl.experiments.finetuning import PlannedCurve
from goatrl.experiments.grid import COMPILED_AHEAD
from goatrl.experiments.packing import Together, batches
from goatrl.experiments.planning import PlannedCell
from goatrl.types import Algorithm, GoatError, Spec

FLOPS_PER_WEIGHT = (
    12  # of an update, per sample: the passes with gradients take six, the others two each
)
CORE_RATE, GPU_RATE = 75e9, 120e12  # floating-point operations per second
GPU_LATENCY = 306e-6  # seconds per update, however small it is
COMPILATION, GPU_COMPILATION = 8.0, 14.0  # seconds per program
ROBOT_STEPS = 600.0  # simulated per core and second
SHORTEST = 5.0  # seconds of a kind of work; what is shorter is start-up and says little of rates


def duration(seconds: float) -> str:
    """A time as one says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


@dataclasses.dataclass(frozen=True)
class Expected:
    """Seconds for each kind of work, named as in reports of progress."""

    compiling: float
    training: float
    evaluating: float

    @property
    def whole(self) -> float:
        """On a machine with a GPU, cells are evaluated while others train."""
        if _on_cpu():
            return self.compiling + self.training + self.evaluating
        return max(self.compiling + self.training, self.evaluating)


def seconds(planned: Sequence[PlannedCell]) -> Expected:
    """Of all that is missing, as this machine does it."""
    ratios = _ratios()
    by_rates = dataclasses.asdict(_by_rates(planned))
    return Expected(**{what: ratios.get(what, 1.0) * value for what, value in by_rates.items()})


def _by_rates(planned: Sequence[PlannedCell]) -> Expected:
    missing = [cell for cell in planned if cell.missing]
    to_train = batches(cell for cell in missing if not cell.trained)
    return Expected(
        len(to_train) * _compilation(),
        sum(map(_training, to_train)),
        sum(map(_evaluating, missing)),
    )


def compilation() -> float:
    """Seconds of one program, as this machine compiles it."""
    return _ratios().get("compiling", 1.0) * _compilation()


def order(waiting: list[Together]) -> list[Together]:
    """What soon gives the cores much to simulate comes first, where they wait for a GPU. A program
    that trains for less time than it takes to compile comes after one that hides its compilation.
    """
    if _on_cpu():
        return waiting
    hidden_by = _compilation() / COMPILED_AHEAD  # seconds of training that hide a compilation

    def urgency(job: tuple[float, Together]) -> float:
        training, cells = job
        return (_compilation() + training) / (1.0 + sum(map(_evaluating, cells)))

    left = sorted(((_training(cells), cells) for cells in waiting), key=urgency)
    ordered, ahead = [], 0.0
    while left:
        first = next((job for job in left if job[0] >= hidden_by), left[0])
        training, cells = job = left[0] if ahead >= hidden_by else first
        left.remove(job)
        ordered.append(cells)
        # no more programs are compiled ahead than this, however long one trains
        ahead = min(max(ahead - hidden_by, 0.0) + training, _compilation())
    return ordered


def learn(planned: Sequence[PlannedCell], measured: Mapping[str, float], busy: float) -> None:
    """Remember what a plan took on this machine: the seconds of each kind of work, and those in
    which any was under way.
    """
    # On a CPU the expected times are added up, so that time in which two kinds share it is shared
    # out.
    share = busy / sum(measured.values()) if _on_cpu() and busy else 1.0
    # A cache that cannot be written, or a dataset that is gone by now, costs a better estimate, and
    # no suite its end.
    with contextlib.suppress(GoatError):
        found = {
            what: share * measured[what] / expected
            for what, expected in dataclasses.asdict(_by_rates(planned)).items()
            if min(expected, measured.get(what, 0.0)) >= SHORTEST
        }
        if not found:
            return
        file = _file()
        with locked(file.parent):
            known = _known()
            known[_machine()] = _ratios() | found
            write_text(file, json.dumps(known, indent=1) + "\n")


def _file() -> Path:
    return cache_folder("estimates") / "ratios.json"


def _machine() -> str:
    return f"{jax.local_devices()[0].device_kind}, {_cores()} cores"


def _known() -> dict[str, Any]:
    """Machine → kind of work → how many times longer it took than by the rates above."""
    try:
        found = json.loads(_file().read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _ratios() -> dict[str, float]:
    found = _known().get(_machine())
    return {
        what: float(ratio)
        for what, ratio in (found.items() if isinstance(found, dict) else ())
        if isinstance(ratio, int | float) and 0 < ratio < math.inf
    }


def _on_cpu() -> bool:
    return jax.default_backend() == "cpu"


def _cores() -> int:
    return os.cpu_count() or 1


def _compilation() -> float:
    return COMPILATION if _on_cpu() else GPU_COMPILATION


def _training(together: Sequence[PlannedCell]) -> float:
    config, members = together[0].config, sum(len(cell.missing) for cell in together)
    return _updating(together[0].algorithm, config.spec, config.updates, config.batch_size, members)


def _updating(
    algorithm: Algorithm, spec: Spec, updates: int, batch_size: int, members: int
) -> float:
    state = jax.eval_shape(lambda: algorithm.init(jax.random.key(0), spec))
    weights = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(state.params))
    work = FLOPS_PER_WEIGHT * weights * batch_size * updates * members
    if _on_cpu():
        return work / (CORE_RATE * _cores())
    return work / GPU_RATE + GPU_LATENCY * updates


def _evaluating(cell: PlannedCell) -> float:
    if not cell.group.family.simulated:
        return 0.0
    episodes = sum(task.episodes for task in cell.tasks) * len(cell.missing)
    return _simulating(episodes * cell.config.spec.horizon)


def _simulating(steps: int) -> float:
    return steps / (ROBOT_STEPS * _cores())


def finetuning_seconds(planned: Sequence[PlannedCurve]) -> float:
    """Of curves that are not recorded: training offline, once for each group and algorithm, then
    acting, updates and evaluating.
    """
    offline = {
        (cell.group.name, cell.offline.algorithm): cell.offline
        for cell in planned
        if cell.offline is not None
    }
    seconds = _compilation() * (len(offline) + len(planned))
    seconds += sum(
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
