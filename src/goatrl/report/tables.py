"""Tables from records: mean ± standard deviation over seeds, beside the paper's numbers."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Mapping, Sequence

import numpy as np
from rich import box
from rich.table import Table
from scipy import stats

from goatrl import tasks
from goatrl.benchmark import paper
from goatrl.benchmark.records import Cell
from goatrl.benchmark.suites import Suite


@dataclasses.dataclass(frozen=True)
class Entry:
    """One number of a table with the paper's beside it, where the paper has one."""

    dataset: str
    task: str
    column: str
    mean: float
    std: float
    seeds: int
    paper: tuple[float, float] | None
    decimals: int = 2  # as many as the paper prints

    @property
    def far(self) -> bool:
        """More than two of the paper's standard deviations away from it (beyond the rounding of its numbers)."""
        return self.paper is not None and abs(self.mean - self.paper[0]) > 2 * self.paper[1] + 0.5 * 10**-self.decimals


def entries(suite: Suite, cells: Sequence[Cell], metric: str) -> list[Entry]:
    """All numbers of one metric."""
    published = paper.results(suite.paper[metric], metric) if metric in suite.paper else {}
    scale = 100.0 if suite.percent and metric == "success" else 1.0
    decimals = 1 if suite.percent else 2
    found = []
    for cell in cells:
        group = tasks.get(cell.config.group)
        for task in group.tasks:
            values = scale * cell.per_seed(metric, task.name)
            beside = published.get((group.label, task.name, cell.label))
            mean, std = float(values.mean()), float(values.std())
            found.append(Entry(group.label, task.name, cell.label, mean, std, len(values), beside, decimals))
    return found


@dataclasses.dataclass(frozen=True)
class Agreement:
    """How close a table is to the paper's."""

    cells: int
    mean_absolute_difference: float
    rank_correlation: float
    far: tuple[Entry, ...]  # more than two of the paper's standard deviations away


def agreement(table: Sequence[Entry]) -> Agreement | None:
    beside = [entry for entry in table if entry.paper is not None]
    if len(beside) < 2:
        return None
    ours = np.array([entry.mean for entry in beside])
    theirs = np.array([entry.paper[0] for entry in beside if entry.paper is not None])
    correlation = float(stats.spearmanr(ours, theirs).statistic) if len(set(ours)) > 1 and len(set(theirs)) > 1 else float("nan")
    far = tuple(entry for entry in beside if entry.far)
    return Agreement(len(beside), float(np.abs(ours - theirs).mean()), correlation, far)


def _grid(table: Sequence[Entry]) -> tuple[list[str], list[tuple[str, str]], dict[tuple[str, str, str], Entry]]:
    columns = list(dict.fromkeys(entry.column for entry in table))
    rows = list(dict.fromkeys((entry.dataset, entry.task) for entry in table))
    return columns, rows, {(entry.dataset, entry.task, entry.column): entry for entry in table}


def _number(mean: float, std: float, decimals: int) -> str:
    return f"{mean:.{decimals}f} ± {std:.{decimals}f}"


def columns_at_a_time(table: Sequence[Entry], most: int) -> list[list[Entry]]:
    """The table in parts that are narrow enough for a terminal."""
    columns = list(dict.fromkeys(entry.column for entry in table))
    parts = [columns[first : first + most] for first in range(0, len(columns), most)]
    return [[entry for entry in table if entry.column in part] for part in parts]


def terminal(table: Sequence[Entry], decimals: int = 2) -> Table:
    """Ours in the first line of each cell, the paper's below it; narrow enough for 80 columns."""
    columns, rows, at = _grid(table)
    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    drawn.add_column("", no_wrap=True)
    for column in columns:
        drawn.add_column(column, justify="right", no_wrap=True)
    for dataset, task in rows:
        found = [at.get((dataset, task, column)) for column in columns]
        beside = any(entry is not None and entry.paper is not None for entry in found)
        texts = []
        for entry in found:
            ours = "" if entry is None else f"{entry.mean:.{decimals}f}±{entry.std:.{decimals}f}"
            theirs = "" if entry is None or entry.paper is None else f"{entry.paper[0]:.{decimals}f}±{entry.paper[1]:.{decimals}f}"
            texts.append(f"{ours}\n[dim]{theirs}[/dim]" if beside else ours)
        drawn.add_row(f"{dataset}\n{task} [dim](paper)[/dim]" if beside else f"{dataset} {task}", *texts, end_section=True)
    return drawn


def markdown(table: Sequence[Entry]) -> str:
    """The same as Markdown: ours, and the paper's in brackets."""
    columns, rows, at = _grid(table)
    lines = [f"| dataset | goals | {' | '.join(columns)} |", f"|---|---|{'---:|' * len(columns)}"]
    for dataset, task in rows:
        texts = []
        for column in columns:
            entry = at.get((dataset, task, column))
            text = "" if entry is None else _number(entry.mean, entry.std, entry.decimals)
            if entry is not None and entry.paper is not None:
                text += f" ({_number(*entry.paper, entry.decimals)})"
            texts.append(text)
        lines.append(f"| {dataset} | {task} | {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


def comma_separated(tables: Mapping[str, Sequence[Entry]]) -> str:
    """All metrics in long form, one number a row."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["metric", "dataset", "goals", "algorithm", "mean", "std", "seeds", "paper_mean", "paper_std"])
    for metric, table in tables.items():
        for e in table:
            beside = ("", "") if e.paper is None else e.paper
            writer.writerow([metric, e.dataset, e.task, e.column, f"{e.mean:.4f}", f"{e.std:.4f}", e.seeds, *beside])
    return buffer.getvalue()
