"""The agents behind a record: on disk as soon as they are trained, so that judging can be taken up again, and for watching them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax

from goatrl import algorithms, checkpoint
from goatrl.benchmark.records import CellConfig, Training
from goatrl.learn import normalize
from goatrl.learn.parameters import override
from goatrl.problems import settings_of
from goatrl.train import Members, init
from goatrl.types import Algorithm, GoatError, TrainState


def path(folder: Path, config: CellConfig, seeds: tuple[int, ...]) -> Path:
    return folder / "agents" / f"{config.path(folder).stem}--seeds-{'-'.join(map(str, seeds))}.safetensors"


def save(folder: Path, config: CellConfig, training: Training, agents: TrainState) -> None:
    """Keep trained agents, without what only further training would need."""
    about = {"config": dataclasses.asdict(config), "training": dataclasses.asdict(training)}
    checkpoint.save(path(folder, config, training.seeds), dataclasses.replace(agents, optimizer=()), about)


def load(file: Path, members: Members, config: CellConfig) -> tuple[Training, TrainState]:
    like = jax.eval_shape(lambda: dataclasses.replace(init(members, config.spec, normalize.identity(config.spec)), optimizer=()))
    return _training(file), checkpoint.restore(file, like)


def one(file: Path, seed: int) -> tuple[CellConfig, Algorithm, TrainState]:
    """One agent of a file, with what it was trained for."""
    described = checkpoint.describe(file)
    if "config" not in described:
        raise GoatError(f"{file} holds no agents of a benchmark; those lie in the folder `agents` beside its records")
    config = CellConfig.from_json(described["config"])
    seeds = _training(file).seeds
    if seed not in seeds:
        raise GoatError(f"{file} has no seed {seed}; it has {', '.join(map(str, seeds))}")
    algorithm = override(algorithms.get(config.algorithm).build(settings_of(config.group)), config.hyperparameters)
    _, agents = load(file, [(algorithm, each) for each in seeds], config)
    place = seeds.index(seed)
    return config, algorithm, jax.tree.map(lambda leaf: leaf[place], agents)


def _training(file: Path) -> Training:
    return Training.from_json(checkpoint.describe(file)["training"])
