"""goat train, goat evaluate"""

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
from rich.markup import escape
from rich.table import Table
from tyro.conf import Positional, UseAppendAction, arg

from goatrl import algorithms, tasks
from goatrl.cli.console import (
    OwnAlgorithm,
    about_actions,
    console,
    load_own,
    pairs,
    plural,
)
from goatrl.cli.datasets import ensure
from goatrl.cli.environments import (
    EnvironmentArgs,
    Horizon,
    SuccessRule,
    Timeout,
    environment_of,
)
from goatrl.cli.progress import Log, shown, training_bar
from goatrl.data.problems import Problem, open_problem
from goatrl.evaluation import environments
from goatrl.evaluation.episodes import evaluate
from goatrl.evaluation.summary import per_task
from goatrl.evaluation.worlds import Environment
from goatrl.experiments import loading
from goatrl.learn.networks import WITH_HEIGHTS
from goatrl.report import tables
from goatrl.runs import trackers
from goatrl.runs.folder import Agents, RunFolder
from goatrl.runs.offline import Run, RunConfig, configure
from goatrl.tasks import Task, TaskGroup
from goatrl.types import ActionBounds, GoatError, Spec


@dataclasses.dataclass(frozen=True)
class TrainingOptions:
    """What is trained, on what and how long."""

    algorithm: Annotated[Positional[str], arg(metavar="ALGORITHM")]
    """A name from `goat list`, or a Python file that registers one algorithm."""
    out: Path
    """The folder for the run."""
    group: Annotated[str | None, arg(metavar="GROUP")] = None
    """The task group that provides the dataset, settings and tasks."""
    data: Annotated[Path | None, arg(metavar="FILE")] = None
    """A dataset file or minari:ID, instead of the group's own dataset."""
    goal_threshold: Annotated[float | None, arg(metavar="DISTANCE")] = None
    """The distance within which a goal counts as reached. Required for your own data without a
    group, unless it declares its own.
    """
    seeds: int = 5
    """Number of seeds (0, 1, …), trained together."""
    set: UseAppendAction[tuple[str, ...]] = ()
    """NAME=VALUE: set a hyper-parameter (see `goat list ALGORITHM`). Can be repeated."""
    inputs: Literal["absolute", "difference", "goal-frame", "upright-frame", "bounded-frame"] = (
        "absolute"
    )
    """What networks see of an observation s and a goal g: both, s and g − φ(s), where φ(s) is the
    achieved goal, or s and g as seen from φ(s), without heights, with them, or with them in the
    range of the data.
    """
    symmetry: Annotated[str | None, arg(metavar="FILE")] = None
    """A TOML file that declares symmetries of the problem, with which training augments the data,
    or the word `declared` for those of the group's robot.
    """
    updates: Annotated[int | None, arg(metavar="N")] = None
    """Number of updates; the group's if omitted."""
    batch_size: Annotated[int | None, arg(metavar="N")] = None
    """Batch size; the group's if omitted."""

    yes: bool = False
    """Make the group's dataset without asking if it is missing."""

    def open(self) -> tuple[algorithms.Entry, Problem]:
        """The algorithm and the dataset. A misspelt name is refused before a dataset is made."""
        entry = algorithms.resolve(self.algorithm)
        if self.group is not None and self.data is None:
            ensure([self.group], self.yes)
        return entry, open_problem(self.group, self.data, self.goal_threshold)

    def configure(
        self, entry: algorithms.Entry, problem: Problem, settings: Mapping[str, str]
    ) -> RunConfig:
        """The run that has these hyper-parameters set."""
        return configure(
            entry.name,
            problem,
            data=self.data,
            overrides={
                **problem.seen_as(self.inputs),
                **problem.mapped_by(self.symmetry),
                **settings,
            },
            seeds=tuple(range(self.seeds)),
            updates=self.updates,
            batch_size=self.batch_size,
        )

    def settings(self) -> dict[str, str]:
        return pairs(self.set, "a setting: write NAME=VALUE, for example uncertainty.w=1.5")


@dataclasses.dataclass(frozen=True)
class Train(TrainingOptions):
    """Train an algorithm with several seeds at once. To resume an interrupted run, rerun the same
    command; the result is the same as without the interruption. With more --updates it goes on to
    them.

    Examples:
      goat train goat --group pointreach-non-expert-10 --out runs/goat
      goat train goat --group pointreach-non-expert-10 --out runs/w1 --set uncertainty.w=1.0
      goat train goat --group push-left-right --out runs/difference --inputs difference
      goat train wgcsl --data mine.npz --goal-threshold 0.05 --out runs/mine
      goat train ./my_algorithm.py --group pointreach-expert-10 --out runs/my
    """

    log: Log = ()

    def run(self) -> None:
        trackers.check(self.log)
        entry, problem = self.open()
        config = self.configure(entry, problem, self.settings())
        run = Run(self.out)
        run.prepare(config)
        note_actions(problem)
        note_symmetry(self.symmetry, self.data or self.group)
        if problem.group is None:
            note_inputs(config.hyperparameters)
        if train_with_progress(
            run, config, problem, f"{self.algorithm}, {plural(self.seeds, 'seed')}", self.log
        ):
            console.print(f"trained: {run.checkpoint_path}")
        option = own_option(entry)
        argument = f", algorithm='{entry.file}'" if entry.source else ""
        if problem.group is not None:
            console.print(
                f"evaluate it: goat evaluate {shlex.quote(str(self.out))}{option}", highlight=False
            )
        else:
            console.print(
                f"evaluate it in your environment: goat evaluate {shlex.quote(str(self.out))}"
                f"{option} --environment ID",
                highlight=False,
            )
            console.print(
                "use it: from goatrl import load_policy; act = "
                f"load_policy('{self.out}'{argument})",
                highlight=False,
            )


def own_option(entry: algorithms.Entry) -> str:
    """How commands are told of the user's own algorithm."""
    return f" --algorithm {entry.file}" if entry.source else ""


def note_actions(problem: Problem) -> None:
    """Print a note on what becomes of actions, if there is one."""
    note = about_actions(problem)
    if note:
        console.print(f"note: {note}", highlight=False)


def note_symmetry(symmetry: str | None, data: Path | str | None) -> None:
    """Print how to check a symmetry that the user declares: training with a wrong one looks like
    any other.
    """
    if symmetry not in (None, "declared"):
        files = f"{shlex.quote(str(data))} --symmetry {shlex.quote(str(symmetry))}"
        console.print(
            f"note: training does not check the symmetry; `goat data symmetry {files}` does",
            highlight=False,
            soft_wrap=True,
        )


def note_inputs(hyperparameters: Mapping[str, Any]) -> None:
    """Print which columns of a user's own data are seen relative to others, if any are."""
    inputs = hyperparameters.get("architecture.inputs", "absolute")
    used = {"positions": inputs.endswith("-frame"), "vertical": inputs in WITH_HEIGHTS}
    for name in (f"architecture.{name}" for name, has in used.items() if not has):
        if hyperparameters.get(name):
            console.print(f"note: {name} has no effect with {inputs} inputs", highlight=False)
    if inputs == "absolute":
        return

    def columns(name: str) -> str:
        return ", ".join(map(str, hyperparameters[f"architecture.{name}"] or ())) or "none"

    note = f"note: {inputs} inputs; the achieved goal is columns {columns('achieved')}"
    if used["positions"]:
        note += f", other places are {columns('positions')} (architecture.positions)"
    if used["vertical"]:
        note += f", heights are numbers {columns('vertical')} of a goal"
    console.print(note, highlight=False, soft_wrap=True)


def train_with_progress(
    run: Run,
    config: RunConfig,
    problem: Problem,
    title: str,
    log: Sequence[trackers.Kind] = (),
) -> bool:
    """Train to the end, or resume and train to the end, and show progress. False if there was
    nothing left to do.
    """
    if run.step() == config.updates:
        console.print(f"already trained: {run.checkpoint_path}")
        return False
    if run.step():
        console.print(f"resuming from update {run.step()} of {config.updates}")
    about = {"algorithm": config.algorithm, "group": config.group, **config.hyperparameters}
    with (
        trackers.opened(log, run.folder, about) as listeners,
        training_bar(title, run.step(), config.updates, listeners) as report,
    ):
        run.train(config, problem, on_report=report)
    return True


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Evaluate trained or fine-tuned agents on tasks or in your own environment. Every episode
    becomes a row of RUN/episodes.parquet.

    Any Gymnasium environment works whose observations are a dictionary of observation,
    achieved_goal and desired_goal. Episodes are seeded, so all agents are evaluated on the same
    starts and goals. They are as long as the longest in the data, or as --horizon says, unless the
    environment ends them earlier. Agents act in the units of their data. If that has actions in
    [-1, 1] and the action space has other bounds, actions are rescaled to them. Success is the
    share of episodes within the goal threshold at the final step, or with --success flag the share
    of which the environment itself says so then. The return is the number of such steps.

    Examples:
      goat evaluate runs/goat
      goat evaluate runs/goat --tasks R20
      goat evaluate runs/reach --group reach-left-right
      goat evaluate runs/mine --environment my_module:MyWorld-v0
      goat evaluate runs/maze --environment gymnasium_robotics:PointMaze_UMaze-v3
        --environment-args '{"continuing_task": false}' --success flag
      goat evaluate runs/push-online
      goat evaluate runs/my --algorithm my_algorithm.py
    """

    folder: Positional[Path]
    """The folder of a `goat train`, `goat finetune` or `goat expert train` run."""
    tasks: tuple[str, ...] = ()
    """Evaluate only on these tasks."""
    group: Annotated[str | None, arg(metavar="GROUP")] = None
    """The task group to evaluate on; the run's if omitted."""
    environment: Annotated[str | None, arg(metavar="ID")] = None
    """Evaluate in this registered Gymnasium environment instead. MODULE:ID first imports the module
    that registers it, which may be in the current folder.
    """
    environment_args: EnvironmentArgs = None
    horizon: Horizon = None
    success: SuccessRule = "threshold"
    timeout: Timeout = None
    episodes: Annotated[int | None, arg(metavar="N")] = None
    """Number of episodes in the environment; 100 if omitted."""
    algorithm: OwnAlgorithm = None

    def run(self) -> None:
        load_own(self.algorithm, self.folder)
        trained = loading.of_run(self.folder)
        if self.environment is not None and (self.group is not None or self.tasks):
            raise GoatError(
                "evaluate either in an --environment or on the --tasks of a --group, not both"
            )
        named = environment_of(
            self.environment, self.environment_args, self.horizon, self.success, self.timeout
        )
        where = self._group(trained) if named is None else named
        check_place(where, trained.spec, self.episodes, trained.action_bounds)
        if trained.unfinished:
            console.print(f"{self.folder} {trained.unfinished}")
        table = evaluate_agents(trained, where, self.tasks, self.episodes)
        name = where.label if isinstance(where, TaskGroup) else where.id
        results = Table(title=escape(f"{trained.label} on {name}"), title_justify="left")
        for heading in ("task", "split", "success", "return", "episodes"):
            results.add_column(heading, justify="left" if heading in ("task", "split") else "right")
        for each in per_task(table):
            found = (each.success, each.returns)
            numbers = [
                tables.number(values.mean(), tables.deviation(values), 2) for values in found
            ]
            results.add_row(each.task, each.split, *numbers, str(each.episodes))
        console.print(results)
        console.print(f"wrote {RunFolder(self.folder).episodes_path}")

    def _group(self, trained: Agents) -> TaskGroup:
        name = self.group or trained.group
        if name is None:
            raise GoatError(
                f"{self.folder} was trained without a task group; specify --group or --environment"
            )
        group = tasks.get(name)
        trained.check_fits(group, str(self.folder))
        return group


def check_place(
    where: TaskGroup | Environment, spec: Spec, episodes: int | None, bounds: ActionBounds | None
) -> None:
    """Refuse an environment in which agents cannot be evaluated. Otherwise print a note on how it
    takes actions, if there is one.
    """
    if isinstance(where, TaskGroup):
        if episodes is not None:
            raise GoatError(
                "tasks have a fixed number of episodes; use --episodes only with --environment"
            )
        return
    count = environments.EPISODES if episodes is None else episodes
    note = environments.check(where, spec, count, bounds)
    if note:
        console.print(f"note: {note}", highlight=False)


def evaluate_agents(
    trained: Agents,
    where: TaskGroup | Environment,
    only: Sequence[str] = (),
    episodes: int | None = None,
) -> pa.Table:
    """Evaluate all agents of a run on a group's tasks or in an environment. Every episode becomes a
    row of the run's records.
    """
    members, state = trained.members, trained.state
    at_once = isinstance(where, TaskGroup) and not where.family.simulated
    with shown(f"evaluating {plural(len(members), 'seed')}", hidden=at_once) as progress:

        def show(done: int, total: int) -> None:
            progress.total = total
            progress.report(done, {})

        if isinstance(where, TaskGroup):
            chosen: list[Task] = [where.task(name) for name in only]
            table = evaluate(members, state, where, chosen or None, show)
        else:
            count = environments.EPISODES if episodes is None else episodes
            table = environments.evaluate(
                members, state, trained.spec, where, count, show, trained.action_bounds
            )
    trained.record(table, where if isinstance(where, TaskGroup) else None)
    return table
