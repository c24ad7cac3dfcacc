"""goat list"""

import dataclasses

from rich.table import Table
from tyro.conf import Positional

from goatrl import algorithms, tasks
from goatrl.cli.console import console
from goatrl.data.problems import settings_of
from goatrl.experiments import kinds  # noqa: F401 (they register themselves)
from goatrl.experiments.experiment import experiments
from goatrl.learn.parameters import hyperparameters


@dataclasses.dataclass(frozen=True)
class List:
    """List algorithms, task groups and suites, or all hyper-parameters of one algorithm.

    Examples:
      goat list
      goat list goat --group pointreach-expert-10
    """

    algorithm: Positional[str | None] = None
    """Show the hyper-parameters of this algorithm, under the names that --set takes."""
    group: str | None = None
    """Show the values for this task group."""

    def run(self) -> None:
        if self.algorithm is not None:
            entry = algorithms.resolve(self.algorithm)
            table = Table(title=f"{entry.name}: {entry.summary}", title_justify="left")
            table.add_column("hyper-parameter")
            table.add_column("value", justify="right")
            for name, value in hyperparameters(entry.build(settings_of(self.group))).items():
                table.add_row(name, str(value))
            console.print(table)
            return
        for title, rows in (
            (
                "Algorithms",
                [
                    (e.name, e.label, e.summary)
                    for e in sorted(algorithms.entries().values(), key=lambda e: e.name)
                ],
            ),
            (
                "Task groups",
                [
                    (g.name, g.label, ", ".join(t.name for t in g.tasks))
                    for g in tasks.groups().values()
                ],
            ),
            (
                "Suites",
                [
                    (s.name, f"{len(s.groups)} × {len(s.columns)} cells", s.summary)
                    for s in experiments().values()
                ],
            ),
        ):
            table = Table(title=title, title_justify="left", show_header=False)
            table.add_column(no_wrap=True)  # names that users type are never truncated
            for row in rows:
                table.add_row(*row)
            console.print(table)
