"""The command line: parse, call, print."""

from __future__ import annotations

import dataclasses
import inspect
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from tyro.conf import Positional, arg, subcommand

from goatrl import algorithms, tasks
from goatrl import data as datasets
from goatrl.benchmark import records, runner, statements, suites
from goatrl.data import point
from goatrl.data.storage import write_atomically
from goatrl.evaluate import evaluate
from goatrl.learn.networks import policy_action
from goatrl.learn.parameters import hyperparameters
from goatrl.report import figures, tables
from goatrl.runs import Interrupted, Run, configure, open_problem
from goatrl.train import Diverged
from goatrl.types import Episodes, GoatError, Settings

console = Console()


def command(name: str, kind: type) -> Any:
    """A subcommand whose --help shows the whole docstring, examples included."""
    return subcommand(name, description=inspect.cleandoc(kind.__doc__ or ""))


def pairs(texts: Sequence[str], what: str) -> dict[str, str]:
    """NAME=VALUE arguments as a dictionary."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise GoatError(f"'{text}' is not {what}")
        found[name] = value
    return found


@contextmanager
def progress_bar() -> Iterator[Progress]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("[dim]{task.fields[losses]}[/dim]"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=console) as progress:
        yield progress


def losses(metrics: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.3g}" for name, value in metrics.items() if name.endswith("loss"))


@dataclasses.dataclass(frozen=True)
class List:
    """Show algorithms, task groups and suites, or all numbers of one algorithm.

    Examples:
      goat list
      goat list goat
    """

    algorithm: Positional[str | None] = None
    """An algorithm whose hyper-parameters are shown (the names that --set takes)."""

    def run(self) -> None:
        if self.algorithm is not None:
            entry = algorithms.get(self.algorithm)
            table = Table(title=f"{entry.name}: {entry.summary}", title_justify="left")
            table.add_column("hyper-parameter")
            table.add_column("value", justify="right")
            for name, value in hyperparameters(entry.build(Settings())).items():
                table.add_row(name, str(value))
            console.print(table)
            return
        for title, rows in (
            ("Algorithms", [(e.name, e.label, e.summary) for e in sorted(algorithms.entries().values(), key=lambda e: e.name)]),
            ("Task groups", [(g.name, g.label, ", ".join(t.name for t in g.tasks)) for g in tasks.groups().values()]),
            ("Suites", [(s.name, f"{len(s.groups)} × {len(s.columns)} cells", s.summary) for s in suites.SUITES]),
        ):
            table = Table(title=title, title_justify="left", show_header=False)
            for row in rows:
                table.add_row(*row)
            console.print(table)


@dataclasses.dataclass(frozen=True)
class DataMake:
    """Make the dataset of a task group.

    Example:
      goat data make pointreach-non-expert-10 --out my.npz
    """

    group: Positional[str]
    out: Path
    """Where to write it (.npz)."""
    seed: int = 0

    def run(self) -> None:
        write_dataset(point.make(tasks.get(self.group).name, self.seed), self.out)


@dataclasses.dataclass(frozen=True)
class DataImport:
    """Turn one of the authors' pickle files into npz. Only plain arrays are read; nothing in the file is executed.

    Example:
      goat data import buffer.pkl --out buffer.npz
    """

    file: Positional[Path]
    out: Path
    """Where to write it (.npz)."""

    def run(self) -> None:
        write_dataset(datasets.load(self.file), self.out)


def write_dataset(episodes: Episodes, out: Path) -> None:
    if out.suffix != ".npz":
        raise GoatError(f"datasets are written as .npz, not {out.name}")
    datasets.save(episodes, out)
    console.print(f"wrote {out}: {episodes.count} episodes, SHA-256 {episodes.checksum()[:12]}…")


@dataclasses.dataclass(frozen=True)
class DataInfo:
    """Describe a dataset, a file or a task group's own, and draw it.

    Example:
      goat data info pointreach-expert-10 --figure expert.png
    """

    data: Positional[str]
    figure: Path | None = None
    """Also draw where it goes (.png, .svg, .pdf)."""

    def run(self) -> None:
        episodes = point.make(self.data) if self.data in tasks.groups() else datasets.load(known_path(self.data))
        table = Table(title=self.data, title_justify="left", show_header=False)
        for name, value in describe(episodes).items():
            table.add_row(name, value)
        console.print(table)
        if self.figure is not None:
            figures.save(figures.dataset(episodes, self.data), self.figure)
            console.print(f"wrote {self.figure}")


def known_path(text: str) -> Path:
    """A file, or the error for something that is neither a file nor a group."""
    if not Path(text).exists() and not Path(text).suffix:
        tasks.get(text)
    return Path(text)


def describe(episodes: Episodes) -> dict[str, str]:
    actions = np.asarray(episodes.actions)
    outside = int((np.abs(actions) > 1.0).sum())
    facts = {
        "episodes": str(episodes.count),
        "actions per episode": str(episodes.horizon),
        "observation / goal / action": " / ".join(
            str(array.shape[-1]) for array in (episodes.observations, episodes.goals, episodes.actions)
        ),
        "action range": f"{actions.min():.3g} … {actions.max():.3g}",
        "achieved goals": f"{episodes.achieved.min():.3g} … {episodes.achieved.max():.3g}",
        "SHA-256": episodes.checksum(),
    }
    if outside:
        facts["note"] = f"{outside} of {actions.size} action components lie outside [-1, 1], which no policy here can produce"
    return facts


Data = (
    Annotated[DataMake, command("make", DataMake)] | Annotated[DataImport, command("import", DataImport)] | Annotated[DataInfo, command("info", DataInfo)]
)


@dataclasses.dataclass(frozen=True)
class DataCommand:
    """Make, import and look at datasets."""

    command: tyro.conf.OmitSubcommandPrefixes[Data]

    def run(self) -> None:
        self.command.run()


@dataclasses.dataclass(frozen=True)
class Train:
    """Train an algorithm with several seeds at once. The same command again resumes an interrupted run exactly.

    Examples:
      goat train goat --group pointreach-non-expert-10 --out runs/goat
      goat train goat --group pointreach-non-expert-10 --out runs/w1 --set uncertainty.w=1.0
      goat train wgcsl --data mine.npz --goal-threshold 0.05 --out runs/mine
      goat train ./my_algorithm.py --group pointreach-expert-10 --out runs/my
    """

    algorithm: Positional[str]
    """A name from `goat list`, or a Python file that registers one algorithm."""
    out: Path
    """The run's folder."""
    group: str | None = None
    """The task group whose dataset, settings and tasks are used."""
    data: Path | None = None
    """A dataset file (.npz or one of the authors' .pkl) instead of the group's own."""
    goal_threshold: float | None = None
    """How near counts as reached; needed for your own data without a group."""
    seeds: int = 5
    """How many seeds train together (0, 1, …)."""
    set: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """NAME=VALUE of a hyper-parameter (see `goat list ALGORITHM`); may be repeated."""
    updates: int | None = None
    """Number of updates, if not the group's."""
    batch_size: int | None = None
    """Batch size, if not the group's."""

    def run(self) -> None:
        problem = open_problem(self.group, self.data, self.goal_threshold)
        config = configure(
            self.algorithm,
            problem,
            data=self.data,
            overrides=pairs(self.set, "a setting: write NAME=VALUE, for example uncertainty.w=1.5"),
            seeds=tuple(range(self.seeds)),
            updates=self.updates,
            batch_size=self.batch_size,
        )
        run = Run(self.out)
        with progress_bar() as progress:
            task = progress.add_task(f"{self.algorithm}, {self.seeds} seeds", total=config.updates, losses="compiling")
            run.train(
                config, problem, on_report=lambda step, metrics: progress.update(task, completed=step, losses=losses(metrics))
            )
        console.print(f"trained: {run.checkpoint_path}")
        if problem.group is not None:
            console.print(f"judge it: goat evaluate {self.out}")


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Judge a trained run on its tasks; every episode becomes a row of RUN/episodes.parquet.

    Examples:
      goat evaluate runs/goat
      goat evaluate runs/goat --tasks R20
    """

    folder: Positional[Path]
    tasks: tuple[str, ...] = ()
    """Only these tasks."""
    group: str | None = None
    """The task group to judge on, for a run that was trained on your own data."""

    def run(self) -> None:
        run = Run(self.folder)
        problem = run.problem()
        group = tasks.get(self.group) if self.group is not None else problem.group
        if group is None:
            raise GoatError(f"{self.folder} was trained without a task group; say which tasks with --group")
        members, state = run.restore(problem)
        table = evaluate(members, state, group, [group.task(name) for name in self.tasks] or None)
        run.write_episodes(table)
        shown = Table(title=f"{run.config().algorithm} on {group.label}", title_justify="left")
        for heading in ("task", "split", "success", "return", "episodes"):
            shown.add_column(heading, justify="left" if heading in ("task", "split") else "right")
        for task in dict.fromkeys(table.column("task").to_pylist()):
            rows = table.filter(np.asarray(table.column("task").to_pylist()) == task)
            success = rows.column("success").to_numpy(zero_copy_only=False).astype(float).reshape(len(members), -1).mean(1)
            returns = rows.column("return").to_numpy().astype(float).reshape(len(members), -1).mean(1)
            split = rows.column("split")[0].as_py()
            numbers = [f"{values.mean():.2f} ± {values.std():.2f}" for values in (success, returns)]
            shown.add_row(task, split, *numbers, str(rows.num_rows))
        console.print(shown)
        console.print(f"wrote {run.episodes_path}")


@dataclasses.dataclass(frozen=True)
class Bench:
    """Run a suite of the paper beside its numbers. What is already recorded is not run again.

    Examples:
      goat bench pointreach
      goat bench pointreach --groups pointreach-expert-10 --algorithms goat bc --seeds 3
      goat bench pointreach --data pointreach-expert-10=clean.pkl --out results/theirs
    """

    suite: Positional[str]
    out: Path | None = None
    """Where records and tables go; results/SUITE if not given."""
    groups: tuple[str, ...] = ()
    """Only these task groups."""
    algorithms: tuple[str, ...] = ()
    """Only these algorithms."""
    seeds: int = 5
    data: tuple[str, ...] = ()
    """GROUP=FILE: a dataset file (.npz, .pkl) in place of the group's own; may name several."""
    updates: int | None = None
    """Number of updates, if not the group's (for a quick look)."""

    def run(self) -> None:
        suite = suites.get(self.suite)
        folder = Path("results") / suite.name if self.out is None else self.out
        files = {name: Path(file) for name, file in pairs(self.data, "a dataset: write GROUP=FILE").items()}
        planned = runner.plan(
            suite, seeds=self.seeds, groups=self.groups, algorithm_names=self.algorithms, data=files, updates=self.updates
        )
        missing = sum(records.read(folder, cell.config) is None for cell in planned)
        console.print(f"{suite.name}: {len(planned)} cells of {self.seeds} seeds, {missing} to run, records in {folder}")
        with progress_bar() as progress:
            bars: dict[str, Any] = {}

            def show(label: str, step: int, updates: int, metrics: Mapping[str, float]) -> None:
                if label not in bars:
                    bars[label] = progress.add_task(label, total=updates, losses="compiling")
                else:
                    progress.update(bars[label], completed=step, losses=losses(metrics))

            runner.run(planned, folder, show)
        publish(suite, runner.collect(planned, folder), folder)


def publish(suite: suites.Suite, found: Sequence[tuple[runner.Planned, records.Cell]], folder: Path) -> None:
    """Print a suite's tables and verdicts, and write them beside the records."""
    cells = [(planned.column.label, cell) for planned, cell in found]
    by_metric = {metric: tables.entries(suite, cells, metric) for metric in ("success", "return")}
    for metric, table in by_metric.items():
        console.print(tables.terminal(table, f"{suite.name}: {metric}, mean ± standard deviation over seeds"))
        write_text(folder / f"{metric}.md", tables.markdown(table))
    write_text(folder / "table.csv", tables.comma_separated(by_metric))
    close = tables.agreement(by_metric["success"])
    if close is not None:
        console.print(
            f"against the paper, success in {close.cells} cells: mean absolute difference "
            f"{close.mean_absolute_difference:.3f}, rank correlation {close.rank_correlation:.3f}, "
            f"{len(close.far)} cells further than two of its standard deviations"
        )
        for entry in close.far:
            theirs = entry.paper or (0.0, 0.0)
            console.print(f"  {entry.dataset}, {entry.task}, {entry.column}: {entry.mean:.2f}, paper {theirs[0]:.2f} ± {theirs[1]:.2f}")
    if suite.statements:
        verdicts = statements.check({(cell.config.group, label): cell for label, cell in cells})
        for verdict in verdicts:
            mark = {True: "[green]held[/green]", False: "[red]not held[/red]", None: "[dim]not checked[/dim]"}[verdict.held]
            console.print(f"{mark}: {verdict.claim} ({verdict.evidence})", highlight=False)
    console.print(f"wrote {folder}/success.md, return.md and table.csv")


def write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda file: file.write(text.encode()))


def suite_cells(suite: suites.Suite, folder: Path) -> list[tuple[str, records.Cell]]:
    """The records of a folder that belong to a suite, with their column labels. A cell recorded twice is refused."""
    labels = {}
    for column in suite.columns:
        changes = tuple(sorted(column.overrides.items()))
        labels[column.algorithm, changes] = column.label
    names = {name for column in suite.columns for name in column.overrides}
    found: dict[tuple[str, str], records.Cell] = {}
    for cell in records.read_all(folder):
        changes = tuple(sorted((n, float(v)) for n, v in cell.config.hyperparameters.items() if n in names and v is not None))
        label = labels.get((cell.config.algorithm, changes))
        if label is None or cell.config.group not in suite.groups:
            continue
        if (cell.config.group, label) in found:
            raise GoatError(f"{folder} holds two records of {label} on {cell.config.group}; keep one configuration per folder")
        found[cell.config.group, label] = cell
    order = {column.label: place for place, column in enumerate(suite.columns)}
    ranked = sorted(found.items(), key=lambda item: (suite.groups.index(item[0][0]), order[item[0][1]]))
    return [(label, cell) for (_, label), cell in ranked]


@dataclasses.dataclass(frozen=True)
class FigureTrajectories:
    """Draw the paths of each agent with its dataset and goals: the paper's first figure.

    Example:
      goat figure trajectories results/pointreach --out trajectories.png
    """

    folder: Positional[Path]
    out: Path
    task: str = "R10"
    suite: str = "pointreach"
    data: tuple[str, ...] = ()
    """GROUP=FILE: the dataset files that the records were made with, if not the groups' own."""

    def run(self) -> None:
        suite = suites.get(self.suite)
        files = {name: Path(file) for name, file in pairs(self.data, "a dataset: write GROUP=FILE").items()}
        cells = suite_cells(suite, self.folder)
        rows: dict[str, tuple[Episodes, dict[str, records.Cell]]] = {}
        for label, cell in cells:
            group = tasks.get(cell.config.group)
            episodes = open_problem(group.name, files.get(group.name)).episodes
            if episodes.checksum() != cell.config.checksum:
                raise GoatError(f"the records were made with another {group.name}; name its file with --data {group.name}=FILE")
            rows.setdefault(group.label, (episodes, {}))[1][label] = cell
        present = [column.label for column in suite.columns if any(column.label == label for label, _ in cells)]
        bound = tasks.get(cells[0][1].config.group).task(self.task).bound if cells else 0.0
        if not cells:
            raise GoatError(f"no records of suite {suite.name} in {self.folder}")
        figures.save(figures.trajectories(rows, tasks.get(cells[0][1].config.group).task(self.task).name, bound, present), self.out)
        console.print(f"wrote {self.out}")


@dataclasses.dataclass(frozen=True)
class FigureBars:
    """Draw success rates as bars, with the paper's numbers marked.

    Example:
      goat figure bars results/pointreach --out bars.svg
    """

    folder: Positional[Path]
    out: Path
    suite: str = "pointreach"

    def run(self) -> None:
        suite = suites.get(self.suite)
        cells = suite_cells(suite, self.folder)
        if not cells:
            raise GoatError(f"no records of suite {suite.name} in {self.folder}")
        figures.save(figures.bars(tables.entries(suite, cells, "success")), self.out)
        console.print(f"wrote {self.out}")


@dataclasses.dataclass(frozen=True)
class FigureDensity:
    """Draw 1/std of a run's value ensemble over goals (appendix "Uncertainty and Density").

    Example:
      goat figure density runs/goat --out density.png
    """

    folder: Positional[Path]
    out: Path
    seed: int = 0

    def run(self) -> None:
        run = Run(self.folder)
        problem = run.problem()
        members, state = run.restore(problem)
        config = run.config()
        if self.seed not in config.seeds:
            raise GoatError(f"{self.folder} has no seed {self.seed}; it has {', '.join(map(str, config.seeds))}")
        value = getattr(members[0][0], "value", None)
        if value is None or getattr(value, "size", 1) < 2 or problem.spec.goal_dim != 2:
            raise GoatError(f"{self.folder} has no ensemble of values over two-dimensional goals; train goat on PointReach")
        grid = np.arange(-10.0, 11.0)
        goals = jnp.asarray(np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2), jnp.float32)
        mine = jax.tree.map(lambda leaf: leaf[config.seeds.index(self.seed)], state)
        goal, start = mine.normalizer.goal(goals), mine.normalizer.observation(jnp.zeros_like(goals))
        values = value.values(mine.params["value"], start, goal, policy_action(mine.params["policy"], start, goal))
        spread = np.asarray(jnp.std(values, axis=0)).reshape(len(grid), len(grid))
        figures.save(figures.density(grid, spread, problem.episodes), self.out)
        console.print(f"wrote {self.out}")


Figures = (
    Annotated[FigureTrajectories, command("trajectories", FigureTrajectories)]
    | Annotated[FigureBars, command("bars", FigureBars)]
    | Annotated[FigureDensity, command("density", FigureDensity)]
)


@dataclasses.dataclass(frozen=True)
class FigureCommand:
    """Draw figures from records and runs, as PNG, SVG or PDF."""

    command: tyro.conf.OmitSubcommandPrefixes[Figures]

    def run(self) -> None:
        self.command.run()


Command = (
    Annotated[List, command("list", List)]
    | Annotated[DataCommand, command("data", DataCommand)]
    | Annotated[Train, command("train", Train)]
    | Annotated[Evaluate, command("evaluate", Evaluate)]
    | Annotated[Bench, command("bench", Bench)]
    | Annotated[FigureCommand, command("figure", FigureCommand)]
)


@dataclasses.dataclass(frozen=True)
class Goat:
    """Offline goal-conditioned reinforcement learning that generalises to goals its data never showed."""

    command: tyro.conf.OmitSubcommandPrefixes[Command]
    debug: Annotated[bool, arg(help="Show the traceback of an error.")] = False


def keep_compiled_programs() -> None:
    """The second run of a command does not compile again."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "goatrl" / "xla"
    jax.config.update("jax_compilation_cache_dir", str(cache))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0, 1 (a run failed), 2 (bad usage) or 130 (interrupted)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    try:
        parsed = tyro.cli(Goat, prog="goat", args=[text for text in given if text != "--debug"])
        keep_compiled_programs()
        parsed.command.run()
    except KeyboardInterrupt:
        print("goat: interrupted", file=sys.stderr)
        return 130
    except GoatError as error:
        if debug:
            raise
        print(f"goat: {error}", file=sys.stderr)
        return 130 if isinstance(error, Interrupted) else 1 if isinstance(error, Diverged) else 2
    return 0
