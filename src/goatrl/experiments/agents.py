"""The agents behind a record: on disk as soon as they are trained, so that evaluating can be taken
up again, and for watching them.
"""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

from goatrl import algorithms
from goatrl.disk import checkpoint
from goatrl.disk.identity import Identity
from goatrl.experiments.records import CELL, CellConfig, Training
from goatrl.runs.folder import Agents, check_seeds, expected
from goatrl.runs.offline import composition
from goatrl.training.offline import Members, prune_to_policy
from goatrl.types import GoatError, TrainState


def path(folder: Path, config: CellConfig, seeds: tuple[int, ...]) -> Path:
    runs = [
        [number for _, number in run]
        for _, run in itertools.groupby(enumerate(seeds), lambda pair: pair[1] - pair[0])
    ]
    text = "+".join(
        f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs
    )  # a file's name holds 255 letters
    return folder / "agents" / f"{config.path(folder).stem}--seeds-{text}.safetensors"


def save(folder: Path, config: CellConfig, training: Training, agents: TrainState) -> None:
    """Keep trained agents, as `prune_to_policy` leaves them."""
    about = {**config.identity.to_json(), "training": dataclasses.asdict(training)}
    checkpoint.save(path(folder, config, training.seeds), agents, about)


def load(file: Path, members: Members, config: CellConfig) -> tuple[Training, TrainState]:
    config_of(file).identity.require(config.identity, str(file))
    like = expected(file, members, config.spec)
    return _training(file), checkpoint.restore(
        file, prune_to_policy(members[0][0], config.spec, like)
    )


def read(file: Path) -> Agents:
    """All agents of a file, with what they were trained for."""
    config = config_of(file)
    entry = algorithms.recorded(config.algorithm, config.source, file)
    algorithm = composition(entry, config.group, config.hyperparameters)
    members = [(algorithm, seed) for seed in _training(file).seeds]
    _, state = load(file, members, config)
    return Agents(file, entry.label, members, state, config.spec, config.group)


def config_of(file: Path) -> CellConfig:
    """What the agents of a file were trained with."""
    described = checkpoint.describe(file)
    if "config" not in described:
        raise GoatError(
            f"{file} does not contain agents of a benchmark; look in the folder `agents` beside "
            "its records"
        )
    try:
        return CellConfig.from_identity(Identity.from_json(described, CELL, file))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(file, error) from error


def _training(file: Path) -> Training:
    try:
        training = Training.from_json(checkpoint.describe(file).get("training"))
    except ValueError as error:
        raise _damaged(file, error) from error
    try:
        check_seeds(training.seeds)
    except GoatError as error:
        raise _damaged(file, error) from None
    return training


def _damaged(file: Path, error: Exception) -> GoatError:
    return GoatError(
        f"{file} is damaged or was written by another version of goatrl ({error}); "
        "delete it and rerun the suite"
    )
