"""goat bench"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import jax
from rich.markup import escape
from tyro.conf import Positional, arg

from goatrl import tasks
from goatrl.cli import bench_finetuning, bench_timing
from goatrl.cli.console import console, dataset_files, duration, plural
from goatrl.cli.datasets import ensure
from goatrl.cli.live_table import Board, live
from goatrl.data.cache import checksums
from goatrl.disk.files import write_text
from goatrl.experiments import (
    claims,
    estimate,
    finetuning,
    grid,
    records,
    statistics,
    suites,
    timing,
)
from goatrl.experiments.claims import Outcome, Verdict
from goatrl.report import data_figures, figures, tables
from goatrl.report.shared import span
from goatrl.runs import finetune
from goatrl.runs.folder import Interrupted
from goatrl.training.offline import Diverged
from goatrl.types import GoatError, unknown


@dataclasses.dataclass(frozen=True)
class Bench:
    """Run a suite of the paper beside its numbers. What is already recorded is not run again.

    Examples:
      goat bench pointreach
      goat bench pointreach --groups pointreach-expert-10 --algorithms goat bc --seeds 3
      goat bench pointreach --data pointreach-expert-10=clean.pkl --out results/theirs
      goat bench finetune-ddpg --groups push-left-right
      goat bench training-time
    """

    suite: Positional[str]
    """A name from `goat list`."""
    out: Annotated[Path | None, arg(metavar="FOLDER")] = None
    """Where records and tables go; bench/robots, bench/pointreach, bench/finetune or
    bench/training-time if not given. Suites that share cells may share a folder.
    """
    groups: tuple[str, ...] = ()
    """Only these task groups."""
    algorithms: tuple[str, ...] = ()
    """Only these algorithms; one that the suite does not have (a name or a file) becomes a further
    column.
    """
    seeds: int = 5
    """How many seeds (0, 1, …); seeds that are recorded are not trained again."""
    data: tuple[str, ...] = ()
    """GROUP=FILE: a dataset (.npz, .pkl, minari:ID) in place of the group's own; may name several.
    """
    updates: Annotated[int | None, arg(metavar="N")] = None
    """Number of updates, if not the group's (for a quick look)."""
    episodes: Annotated[int | None, arg(metavar="N")] = None
    """Number of episodes that each seed is fine-tuned for (suites of fine-tuning only)."""

    yes: bool = False
    """Make datasets that are missing, without asking."""

    def run(self) -> None:
        names = [*finetuning.SUITES, timing.SUITE.name, *(suite.name for suite in suites.SUITES)]
        if self.suite not in names:
            raise unknown("suite", self.suite, names)
        if self.episodes is not None and self.suite not in finetuning.SUITES:
            raise GoatError(
                f"--episodes is for {' and '.join(finetuning.SUITES)}, which train online; "
                f"{self.suite} does not"
            )
        if self.suite in finetuning.SUITES:
            self._finetune(finetuning.SUITES[self.suite])
        elif self.suite == timing.SUITE.name:
            self._time()
        else:
            self._bench(suites.get(self.suite))

    def _finetune(self, suite: finetuning.Suite) -> None:
        verdicts, failures = bench_finetuning.run(
            suite,
            finetuning.HOME if self.out is None else self.out,
            groups=self.groups,
            algorithms=self.algorithms,
            seeds=self.seeds,
            data=dataset_files(self.data),
            updates=self.updates,
            episodes=finetune.EPISODES if self.episodes is None else self.episodes,
            yes=self.yes,
        )
        print_verdicts(verdicts)
        if failures:
            raise Diverged("; ".join(failures))

    def _time(self) -> None:
        if self.groups or self.data:
            raise GoatError(
                f"{self.suite} is of {timing.SUITE.groups[0]}, on no dataset; leave out --groups "
                "and --data"
            )
        folder = timing.HOME if self.out is None else self.out
        print_verdicts(
            bench_timing.run(
                folder, algorithms=self.algorithms, seeds=self.seeds, updates=self.updates
            )
        )

    def _bench(self, suite: suites.Suite) -> None:
        folder = Path("bench") / suite.home if self.out is None else self.out
        files = dataset_files(self.data)
        planned = grid.plan(
            suite,
            folder,
            seeds=self.seeds,
            groups=self.groups,
            algorithm_names=self.algorithms,
            data=files,
            updates=self.updates,
            prepare=lambda groups: ensure(groups, self.yes),
        )
        reprinted = {
            cell.group.name: cell.config.checksum for cell in planned if cell.problem is None
        }
        others = sorted(
            name
            for name, checksum in reprinted.items()
            if checksum != checksums().get(name, checksum)
        )
        if others:
            console.print(
                f"note: the records on {', '.join(others)} are of agents trained on other data "
                "than goatrl makes"
            )
        missing = sum(bool(cell.missing) for cell in planned)
        console.print(
            f"{suite.name}: {plural(len(planned), 'cell')} of {plural(self.seeds, 'seed')}, "
            f"{missing} to run, records in {folder}"
        )
        if missing:
            training, judging = estimate.seconds(planned)
            whole = duration(
                training + judging if jax.default_backend() == "cpu" else max(training, judging)
            )
            console.print(
                f"expected to take about {whole} here (training {duration(training)}, judging "
                f"{duration(judging)})"
            )
        with live(Board(planned, suite.percent)) as board:
            try:
                failures = grid.run(suite, planned, folder, board.show)
            except KeyboardInterrupt:
                raise Interrupted(
                    f"stopped; what is trained and judged is in {folder}, and the same command "
                    "goes on"
                ) from None
        cells = grid.suite_cells(suite, folder)
        draw_datasets(planned, folder)
        if cells:  # none, if all have diverged
            publish(suite, cells, folder)
        if failures:
            raise Diverged("; ".join(failures))


def draw_datasets(planned: Sequence[grid.Planned], folder: Path) -> None:
    """A picture of each robot dataset beside the records, for the report, which does not open
    datasets.
    """
    for group, problem in {
        cell.group.name: (cell.group, cell.problem) for cell in planned
    }.values():
        path = folder / "media" / f"{group.name}--dataset.png"
        if problem is not None and group.family.simulated and not path.exists():
            title = f"{group.label}: {problem.episodes.count:,} episodes"
            figures.save(data_figures.dataset(problem.episodes, title, group), path)


def publish(suite: suites.Suite, cells: Sequence[records.Cell], folder: Path) -> None:
    """Print the tables and verdicts of all that a folder holds of a suite, and write them beside
    the records.
    """
    by_metric = {metric: tables.entries(suite, cells, metric) for metric in ("success", "return")}
    averages = {metric: statistics.averages(suite, cells, metric) for metric in by_metric}
    written = folder / suite.name
    counts = sorted({len(cell.seeds) for cell in cells})
    over = (
        plural(counts[0], "seed")
        if len(counts) == 1
        else f"{span(counts)} seeds (table.csv has each)"
    )
    shown = "1 seed" if counts == [1] else f"mean ± standard deviation over {over}"
    for metric, table in by_metric.items():
        console.print(f"\n[bold]{suite.name}: {metric}[/bold], {shown}\n")
        for part in tables.columns_at_a_time(table, 5 if suite.percent else 6):
            console.print(
                tables.terminal(part, decimals=1 if suite.percent or metric == "return" else 2)
            )
        write_text(written / f"{metric}.md", tables.markdown(table))
        write_text(written / f"{metric}.tex", tables.latex(table, averages[metric]))
    write_text(written / "table.csv", tables.comma_separated(by_metric))
    write_text(written / "averages.md", tables.averages_markdown(averages, suite.decimals))
    console.print(
        f"\n[bold]{suite.name}: success[/bold], averages over tasks (IQM: mean of the middle half)"
    )
    console.print(
        "intervals are over seeds, a single one has none; episodes: standard error that is due to "
        "their number alone\n"
    )
    over_splits = [average for average in averages["success"] if not average.group]
    console.print(tables.averages_terminal(over_splits, suite.decimals))
    other = sorted(
        {
            cell.config.updates
            for cell in cells
            if cell.config.updates != tasks.get(cell.config.group).settings.updates
        }
    )
    if other:
        console.print(
            f"note: trained with {', '.join(map(str, other))} updates, not the paper's number"
        )
    close = tables.agreement(by_metric["success"])
    if close is not None:
        console.print(
            f"against the paper, success in {close.cells} cells: mean absolute difference "
            f"{close.mean_absolute_difference:.3f}, "
            f"rank correlation {close.rank_correlation:.3f}; further than two of its standard "
            f"deviations: {len(close.far)}"
        )
        for entry in close.far:
            theirs = entry.paper or (0.0, 0.0)
            places = entry.decimals
            numbers = (
                f"{entry.mean:.{places}f}, paper {theirs[0]:.{places}f} ± {theirs[1]:.{places}f}"
            )
            console.print(f"  {entry.dataset}, {entry.task}, {entry.column}: {numbers}")
    order = tables.order_agreement(over_splits, "ood")
    if order is not None:
        console.print(
            f"rank correlation of the OOD averages of {order[0]} algorithms with the paper's: "
            f"{order[1]:.3f}"
        )
    print_verdicts(claims.check(suite, cells))
    made = sorted(
        {
            " ".join((t.versions["device"], "jax", t.versions["jax"]))
            for cell in cells
            for t in cell.trainings
        }
    )
    console.print(f"[dim]trained on {', '.join(made)}[/dim]", highlight=False)
    console.print(f"wrote success and return (.md, .tex), averages.md and table.csv to {written}")


def print_verdicts(verdicts: Sequence[Verdict]) -> None:
    """Each conclusion of the paper with what became of it; those whose cells are not all recorded
    only by their number.
    """
    colors = {Outcome.HELD: "green", Outcome.UNDECIDED: "yellow", Outcome.NOT_HELD: "red"}
    for verdict in verdicts:
        if verdict.outcome in colors:
            mark = f"[{colors[verdict.outcome]}]{verdict.outcome}[/{colors[verdict.outcome]}]"
            console.print(
                f"{mark}: {escape(f'{verdict.claim} ({verdict.evidence})')}", highlight=False
            )
    unchecked = sum(verdict.outcome == Outcome.NOT_CHECKED for verdict in verdicts)
    if unchecked:
        console.print(
            f"{unchecked} of the paper's {len(verdicts)} conclusions not checked: they need cells "
            "that were not run"
        )
