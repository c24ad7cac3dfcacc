"""Trained agents, wherever they lie: in the folder of any run, or in a file that a
benchmark kept.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from goatrl import algorithms
from goatrl.experiments import agents as benchmark
from goatrl.runs import expert_training, finetune
from goatrl.runs.folder import Agents, RunFolder
from goatrl.runs.offline import Run
from goatrl.runs.online import OnlineRun
from goatrl.types import GoatError


def load_policy(
    path: Path | str, seed: int = 0, *, algorithm: Path | str | None = None
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A trained agent as a function: act(observation, goal) → action in [-1, 1], for one pair or
    for a batch of them.

    `algorithm` is the Python file of an algorithm of your own, which is executed; nothing in a
    run's folder ever is.
    """
    if algorithm is not None:
        algorithms.load_file(algorithm)
    return load(Path(path)).policy(seed)


def load(path: Path) -> Agents:
    """All agents of a run's folder, or of a file that `goat bench` kept. Those of the user's own
    algorithm need its file loaded.
    """
    return benchmark.read(path) if path.is_file() else of_run(path)


def of_run(folder: Path) -> Agents:
    """All agents of a run of `goat train`, `goat finetune` or `goat expert train`."""
    about = RunFolder(folder).about()
    try:
        if "by" in about:
            return finetune.agents(OnlineRun(folder))
        if "expert" in about:
            return expert_training.agents(OnlineRun(folder))
    except KeyError as error:
        raise GoatError(
            f"{folder} is of another version of goatrl: its config.json has no {error}; make it "
            "again"
        ) from error
    if "checksum" in about:
        return Run(folder).agents()
    raise GoatError(
        f"{folder} is no run; name a folder of `goat train`, `goat finetune` or `goat expert train`"
    )
