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
    """A trained agent as a function.

    Args:
        path: the folder of a run, or a file of agents that `goat bench` kept.
        seed: which of its agents.
        algorithm: the Python file of an algorithm of your own. It is executed; nothing in a run's
            folder ever is.

    Returns:
        act(observation, goal) → action in [-1, 1], for one pair or for a batch of them:
        (B, observation_dim), (B, goal_dim) → (B, action_dim).
    """
    if algorithm is not None:
        algorithms.load_file(algorithm)
    return load(Path(path)).policy(seed)


def load(path: Path | str) -> Agents:
    """All agents of a run's folder, or of a file that `goat bench` kept.

    Args:
        path: the folder or the file. Agents of an algorithm of your own need its file loaded
            before, as `load_policy` and `train` do.

    Returns:
        The agents as they were last saved; `evaluate` takes them.
    """
    path = Path(path)
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
            f"{folder} was written by another version of goatrl (its config.json has no {error}); "
            "make it again"
        ) from error
    if "checksum" in about:
        return Run(folder).agents()
    raise GoatError(
        f"{folder} is not a run; specify a folder of `goat train`, `goat finetune` or `goat expert "
        "train`"
    )
