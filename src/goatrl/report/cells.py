"""How a grid of cells is shown: tables in the terminal and in files, sections of the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.markup import escape

from goatrl import tasks
from goatrl.data.problems import open_problem
from goatrl.experiments import statistics, suites
from goatrl.experiments.experiment import Experiment
from goatrl.experiments.planning import PlannedCell
from goatrl.experiments.records import Cell
from goatrl.experiments.statistics import Average
from goatrl.report import data_figures, figures, tables
from goatrl.report.cells_page import METRICS, describe, experiments
from goatrl.report.presentation import Json, Published
from goatrl.report.shared import span

script = ""  # page.js draws its sections


def publish(
    experiment: Experiment, folder: Path, planned: Sequence[PlannedCell]
) -> Published | None:
    """Tables and verdicts of all that a folder holds of a suite; pictures of datasets beside
    them.
    """
    _draw_datasets(planned, folder)
    suite, cells = suites.get(experiment.name), experiment.read(folder)
    if not cells:
        return None
    by_metric = {metric: tables.entries(suite, cells, metric) for metric in METRICS}
    averages = {metric: statistics.averages(suite, cells, metric) for metric in METRICS}
    over_splits = [average for average in averages["success"] if not average.group]
    files = {
        **{f"{metric}.md": tables.markdown(table) for metric, table in by_metric.items()},
        **{
            f"{metric}.tex": tables.latex(table, averages[metric])
            for metric, table in by_metric.items()
        },
        "table.csv": tables.to_csv(by_metric),
        "averages.md": tables.averages_markdown(averages, suite.decimals),
    }
    shown: list[RenderableType] = []
    for metric, table in by_metric.items():
        shown.append(f"\n[bold]{suite.name}: {metric}[/bold], {_over_seeds(cells)}\n")
        decimals = 1 if suite.percent or metric == "return" else 2
        first, *others = tables.terminal_parts(table, decimals)
        shown += [first, *(each for part in others for each in ("", part))]
    shown += [
        f"\n[bold]{suite.name}: success[/bold], averages over tasks (IQM: mean of the middle half)",
        "intervals are over seeds, a single one has none; episodes: standard error that is due to "
        "their number alone\n",
        tables.averages_terminal(over_splits, suite.decimals),
        *_beside_the_paper(cells, by_metric["success"], over_splits),
    ]
    made = sorted(
        {
            " ".join((t.versions["device"], "jax", t.versions["jax"]))
            for cell in cells
            for t in cell.trainings
        }
    )
    return Published(
        shown,
        {f"{suite.name}/{name}": text for name, text in files.items()},
        experiment.claims(cells),
        (f"[dim]trained on {', '.join(made)}[/dim]",),
    )


def _over_seeds(cells: Sequence[Cell]) -> str:
    counts = sorted({len(cell.seeds) for cell in cells})
    if counts == [1]:
        return "1 seed"
    over = f"{span(counts)} seeds" + (" (table.csv has each)" if len(counts) > 1 else "")
    return f"mean ± standard deviation over {over}"


def _beside_the_paper(
    cells: Sequence[Cell], table: Sequence[tables.Entry], averages: Sequence[Average]
) -> list[str]:
    lines = []
    other = sorted(
        {
            cell.config.updates
            for cell in cells
            if cell.config.updates not in (0, tasks.get(cell.config.group).settings.updates)
        }
    )
    if other:
        lines.append(f"note: trained for {', '.join(map(str, other))} updates, unlike in the paper")
    close = tables.agreement(table)
    if close is not None:
        lines.append(
            f"against the paper, success in {close.cells} cells: mean absolute difference "
            f"{close.mean_absolute_difference:.3f}, "
            f"rank correlation {close.rank_correlation:.3f}; further than two of its standard "
            f"deviations: {len(close.far)}"
        )
        for entry in close.far:
            theirs, places = entry.paper or (0.0, 0.0), entry.decimals
            numbers = (
                f"{entry.mean:.{places}f}, paper {theirs[0]:.{places}f} ± {theirs[1]:.{places}f}"
            )
            lines.append(escape(f"  {entry.dataset}, {entry.task}, {entry.column}: {numbers}"))
    order = tables.order_agreement(averages, "ood")
    if order is not None:
        lines.append(
            f"rank correlation of the OOD averages of {order[0]} algorithms with the paper's: "
            f"{order[1]:.3f}"
        )
    return lines


def _draw_datasets(planned: Sequence[PlannedCell], folder: Path) -> None:
    """A picture of each robot dataset beside the records, for the page, which opens no dataset."""
    trained_on = {cell.group.name: (cell.group, cell.data) for cell in planned if cell.missing}
    for group, data in trained_on.values():
        path = folder / "media" / f"{group.name}--dataset.png"
        if group.family.simulated and not path.exists():
            episodes = open_problem(group.name, data).episodes
            title = f"{group.label}: {episodes.count:,} episodes"
            figures.save(data_figures.dataset(episodes, title, group), path)


def sections(folders: Sequence[Path]) -> list[Json]:
    return [describe(each) for each in experiments(folders)]
