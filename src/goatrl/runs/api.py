"""The package from Python, without the command line: data, training and evaluation in a call each.

data = goatrl.load_dataset("pointreach-non-expert-10")
agents = goatrl.train("goat", data, seeds=3)
print(goatrl.tabulate(goatrl.evaluate(agents)))
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from goatrl import algorithms, tasks
from goatrl.data import save
from goatrl.data.problems import Problem, open_problem, without_group
from goatrl.disk.compiled import keep_compiled_programs
from goatrl.episodes import make_episodes
from goatrl.evaluation import environments, episodes, worlds
from goatrl.learn.parameters import Number
from goatrl.runs.folder import Agents
from goatrl.runs.offline import OnReport, Run, configure
from goatrl.types import ActionBounds, GoatError


def load_dataset(source: Path | str, goal_threshold: float | None = None) -> Problem:
    """A dataset that agents can be trained on.

    Args:
        source: the name of a task group (its own dataset, tasks and settings), a file (such as
            .npz, OGBench's among them, .parquet or robomimic's .hdf5), or minari:ID.
        goal_threshold: the distance within which a goal counts as reached. Task groups have
            their own.

    Returns:
        The `episodes`, with their `spec`, `settings` and `group`.
    """
    if str(source) in tasks.groups():
        return open_problem(str(source), None, goal_threshold)
    return open_problem(None, Path(source), goal_threshold)


def make_dataset(
    observations: Any,
    achieved: Any,
    actions: Any,
    goals: Any,
    *,
    goal_threshold: float,
    terminated: Any = None,
    action_bounds: tuple[Any, Any] | None = None,
) -> Problem:
    """A dataset from arrays: N episodes of T actions each, or lists of N arrays if T differs.

    Args:
        observations: (N, T + 1, observation_dim).
        achieved: what each observation achieves in the space of goals, (N, T + 1, goal_dim).
        actions: (N, T, action_dim).
        goals: the desired goal of each episode, (N, goal_dim), or of each action,
            (N, T, goal_dim).
        goal_threshold: the distance within which a goal counts as reached.
        terminated: which episodes their environment ended, N flags, rather than time. No reward
            follows where that happened short of the goal.
        action_bounds: the lowest and the highest action. Actions are scaled from them to [-1, 1],
            or from their own range if more than 1 % exceed it; what agents do is scaled back.

    Returns:
        The episodes with their dimensions and the settings of most task groups.
    """
    made = make_episodes(observations, achieved, actions, goals, terminated=terminated)
    declared = None
    if action_bounds is not None:
        size = made.actions.shape[-1]
        declared = ActionBounds.of(*(np.broadcast_to(each, size) for each in action_bounds))
    return without_group(made, goal_threshold, declared)


def save_dataset(dataset: Problem, path: Path | str) -> Path:
    """Write a dataset to a file, for `load_dataset` and the command line: as it was given, with its
    goal threshold and, if they were declared, the bounds of its actions.

    Args:
        dataset: the result of `make_dataset` or `load_dataset`.
        path: a file that ends in .npz.

    Returns:
        The file.
    """
    bounds = dataset.action_bounds
    if bounds is None:  # so they are -1 and 1, if anything is declared
        bounds = ActionBounds.native_of(dataset.spec.action_dim)
    declared = bounds if dataset.bounds_declared else None
    save(dataset.recorded, path, declared, dataset.spec.goal_threshold)
    return Path(path)


def train(
    algorithm: Path | str,
    dataset: Problem,
    *,
    seeds: int | Sequence[int] = 5,
    updates: int | None = None,
    batch_size: int | None = None,
    set: Mapping[str, Number] | None = None,
    inputs: str = "absolute",
    symmetry: Path | str | None = None,
    out: Path | str | None = None,
    on_report: OnReport | None = None,
) -> Agents:
    """Train agents, all seeds at once.

    Args:
        algorithm: a registered name, or a Python file that registers one (it is executed).
        dataset: the result of `load_dataset` or `make_dataset`.
        seeds: the number of seeds (0, 1, …), or the seeds themselves.
        updates: number of updates. Defaults to the dataset's setting.
        batch_size: defaults to the dataset's setting.
        set: hyper-parameters by name, such as {"uncertainty.w": 1.0}.
        inputs: what networks see of an observation s and a goal g: "absolute" (both), "difference"
            (s and g − φ(s), where φ(s) is the achieved goal), "goal-frame" (s and g as seen from
            φ(s)), "upright-frame" (the same, but heights are kept) or "bounded-frame" (with heights
            that are brought back into the range of the data when an agent acts).
        symmetry: a TOML file that declares symmetries of the problem, with which training augments
            the data, or "declared" for those of the robot of the dataset's task group.
        out: a run folder like that of `goat train`; repeat the call to resume, with more `updates`
            to train longer. Without one, nothing is kept on disk.
        on_report: called regularly with the number of updates so far and the losses.

    Returns:
        The trained agents, one per seed; `agents.policy(seed)` is one agent as a function.
    """
    keep_compiled_programs()
    config = configure(
        algorithms.resolve(str(algorithm)).name,
        dataset,
        overrides={
            **dataset.seen_as(inputs),
            **dataset.mapped_by(symmetry),
            **(set or {}),
        },
        seeds=tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds),
        updates=updates,
        batch_size=batch_size,
    )
    report = on_report or (lambda step, losses: None)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Path(folder) / "agents" if out is None else Path(out))
        run.train(config, dataset, report)
        return run.agents()


def evaluate(
    agents: Agents,
    group: str | None = None,
    *,
    only: Sequence[str] = (),
    environment: str | None = None,
    environment_args: Mapping[str, Any] | None = None,
    horizon: int | None = None,
    success: worlds.Success = "threshold",
    count: int = environments.EPISODES,
    timeout: float = worlds.TIMEOUT,
) -> pa.Table:
    """Evaluate agents without exploration noise, all on the same starts and goals. If they lie in
    the folder of a run, the episodes are kept there, as `goat evaluate` does, for `goat compare`.

    Args:
        agents: the result of `train` or `load_agents`.
        group: the task group to evaluate on. Defaults to that of their dataset.
        only: names of tasks. Defaults to all tasks of the group.
        environment: a registered Gymnasium environment to use instead of tasks. MODULE:ID imports
            the module first.
        environment_args: arguments of the environment's constructor.
        horizon: the most actions of an episode in the environment. Defaults to as many as in the
            data; the environment may end an episode earlier.
        success: what counts as success in the environment at the last step: "threshold" (a goal
            within the goal threshold) or "flag" (its own info["success"] or info["is_success"]).
        count: number of episodes per agent in the environment.
        timeout: seconds that a reset or a step of the environment may take before it is stopped;
            only in the main thread.

    Returns:
        One row per episode and agent: task, split, seed, episode, success, return, final distance,
        start, goal and, if it is short, the path.
    """
    keep_compiled_programs()
    members, state = agents.members, agents.state
    if environment is not None:
        where = worlds.Environment(environment, environment_args or {}, horizon, success, timeout)
        bounds = agents.action_bounds
        environments.check(where, agents.spec, count, bounds)
        table = environments.evaluate(
            members, state, agents.spec, where, count, action_bounds=bounds
        )
        _keep(agents, table, None)
        return table
    name = group or agents.group
    if name is None:
        raise GoatError(
            "these agents were trained without a task group; specify a group or an environment"
        )
    known = tasks.get(name)
    agents.check_fits(known, agents.label)
    chosen = [known.task(each) for each in only] or None
    table = episodes.evaluate(members, state, known, chosen)
    _keep(agents, table, known)
    return table


def _keep(agents: Agents, table: pa.Table, group: tasks.TaskGroup | None) -> None:
    """In the folder of the run, if there is one. A folder that cannot be written loses no table."""
    try:
        agents.record(table, group)
    except GoatError as error:
        warnings.warn(f"the episodes are not kept: {error}", stacklevel=3)
