"""Loads trained agents from the folder of any run, or from a file that a benchmark saved."""

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
        path: the folder of a run, or a file of agents saved by `goat bench`.
        seed: the seed of the agent.
        algorithm: the Python file of your own algorithm, if it was trained with one. The file is
            executed; nothing in a run's folder ever is.

    Returns:
        act(observation, goal) → action in [-1, 1], or within the bounds of its data's actions if
        they are others, for one pair or for a batch of them:
        (B, observation_dim), (B, goal_dim) → (B, action_dim).
    """
    return load(path, algorithm=algorithm).policy(seed)


def load(path: Path | str, *, algorithm: Path | str | None = None) -> Agents:
    """Load all agents of a run's folder, or of a file saved by `goat bench`.

    Args:
        path: the folder or the file.
        algorithm: the Python file of your own algorithm, if they were trained with one. The file is
            executed; nothing in a run's folder ever is.

    Returns:
        The agents as they were last saved, for use with `evaluate`.
    """
    path = Path(path)
    if algorithm is not None:
        name_own(algorithm, path)
    return benchmark.read(path) if path.is_file() else of_run(path)


def name_own(algorithm: Path | str, path: Path) -> None:
    """Execute the user's own file for what was trained with it, a run or a file of agents. Its
    SHA-256 is compared first. What was trained with an algorithm of the package needs no file.
    """
    trained = _trained_with(path)
    if trained is None or trained[1] or trained[0] not in algorithms.entries():
        algorithms.load_file(algorithm, trained)


def _trained_with(path: Path) -> tuple[str, str, object] | None:
    """The name and SHA-256 of the algorithm that a folder or file says it was trained with; none of
    a folder that is no run.
    """
    if path.is_file():
        config = benchmark.config_of(path)
        name, source = config.algorithm, config.source
    elif (path / "config.json").exists():
        about = RunFolder(path).about()
        origin = about.get("from")
        found = origin if isinstance(origin, dict) else about
        name, source = str(found.get("algorithm", "")), str(found.get("source", ""))
    else:
        return None
    return name, source, path


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
    except ValueError as error:
        raise GoatError(
            f"{folder} is damaged or was written by another version of goatrl ({error}); make it "
            "again"
        ) from error
    if "checksum" in about:
        return Run(folder).agents()
    raise GoatError(
        f"{folder} is not a run; specify a folder of `goat train`, `goat finetune` or `goat expert "
        "train`"
    )
