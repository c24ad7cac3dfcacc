"""goat list"""

import dataclasses
import textwrap

from rich.table import Table
from rich.text import Text
from tyro.conf import Positional

from goatrl import algorithms, tasks
from goatrl.cli.console import console
from goatrl.data import cache
from goatrl.data.problems import settings_of
from goatrl.experiments import kinds  # noqa: F401 (they register themselves)
from goatrl.experiments.experiment import Experiment, experiments
from goatrl.learn.parameters import hyperparameters
from goatrl.tasks import TaskGroup


@dataclasses.dataclass(frozen=True)
class List:
    """List algorithms, task groups and suites, the columns of one suite, the tasks of one group, or
    all hyper-parameters of one algorithm.

    Examples:
      goat list
      goat list algorithms
      goat list frontier
      goat list goat --group pointreach-expert-10
    """

    what: Positional[str | None] = None
    """algorithms, groups or suites, to list them with what they are; a suite, to show its columns;
    a task group, to show its tasks; or an algorithm, to show its hyper-parameters under the names
    that --set takes. The names of all if omitted.
    """
    group: str | None = None
    """Show the values for this task group."""

    def run(self) -> None:
        if self.what is None:
            self._names()
        elif self.what in KINDS:
            table = Table(title=TITLES[self.what], title_justify="left", show_header=False)
            table.add_column(no_wrap=True)  # names that users type are never truncated
            for row in KINDS[self.what]():
                table.add_row(*row)
            console.print(table)
        else:
            suite, group = experiments().get(self.what), tasks.groups().get(self.what)
            if suite is not None:
                self._columns(suite)
            if group is not None:  # some have the name of a suite
                self._tasks(group)
            if suite is None and group is None:
                self._numbers(self.what)

    def _names(self) -> None:
        for kind, title in TITLES.items():
            names = "  ".join(row[0] for row in KINDS[kind]())
            text = textwrap.fill(
                f"{title}:  {names}",
                min(console.width, 100),
                subsequent_indent="  ",
                break_on_hyphens=False,
                break_long_words=False,
            )
            shown = Text(text)
            shown.stylize("bold", 0, len(title) + 1)
            console.print(shown, soft_wrap=True)
        console.print("more about them: goat list algorithms | groups | suites | NAME")

    def _columns(self, suite: Experiment) -> None:
        table = Table(title=f"{suite.name}: {suite.summary}", title_justify="left")
        for heading in ("column", "algorithm", "what differs from it"):
            table.add_column(heading, overflow="fold")
        for column in suite.columns:
            differs = [f"{name}={value}" for name, value in column.overrides.items()]
            differs += [f"inputs={column.inputs}"] if column.inputs != "absolute" else []
            differs += [f"symmetry={each}" for each in column.symmetry]
            differs += [] if column.batch_size is None else [f"batch_size={column.batch_size}"]
            table.add_row(column.label, column.algorithm, ", ".join(differs))
        console.print(table)
        console.print(f"on {', '.join(suite.groups)}")

    def _tasks(self, group: TaskGroup) -> None:
        table = Table(title=f"{group.name}: {group.label}", title_justify="left")
        table.add_column("task")
        table.add_column("goals", justify="right")
        table.add_column("episodes", justify="right")
        for task in group.tasks:
            table.add_row(task.name, task.split.upper(), str(task.episodes))
        console.print(table)
        if group.script is None:
            console.print(f"its dataset: goat data make {cache.source(group).name}")

    def _numbers(self, algorithm: str) -> None:
        entry = algorithms.resolve(algorithm)
        table = Table(title=f"{entry.name}: {entry.summary}", title_justify="left")
        table.add_column("hyper-parameter")
        table.add_column("value", justify="right")
        for name, value in hyperparameters(entry.build(settings_of(self.group))).items():
            table.add_row(name, str(value))
        console.print(table)


Row = tuple[str, str, str]


def _algorithms() -> list[Row]:
    entries = sorted(algorithms.entries().values(), key=lambda entry: entry.name)
    return [(entry.name, entry.label, entry.summary) for entry in entries]


def _groups() -> list[Row]:
    return [
        (group.name, group.label, ", ".join(task.name for task in group.tasks))
        for group in tasks.groups().values()
    ]


def _suites() -> list[Row]:
    return [
        (suite.name, f"{len(suite.groups)} × {len(suite.columns)} cells", suite.summary)
        for suite in experiments().values()
    ]


KINDS = {"algorithms": _algorithms, "groups": _groups, "suites": _suites}
TITLES = {"algorithms": "Algorithms", "groups": "Task groups", "suites": "Suites"}
