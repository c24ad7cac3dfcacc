"""A comparison of runs as a table, and what the page shows of runs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from rich import box
from rich.markup import escape
from rich.table import Table

from goatrl.experiments.comparison import METRICS, Comparison, Result, Row, short_names
from goatrl.experiments.statistics import Interval
from goatrl.report.shared import span

DECIMALS = {"success": 2, "return": 1}


def terminal(found: Comparison) -> Table:
    """A row for each run, intervals below their means."""
    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    drawn.add_column("run", overflow="fold")
    for heading in short_names(found.columns).values():
        drawn.add_column(escape(heading), overflow="fold")
    unequal = len({row.seeds for row in found.rows}) > 1
    if unequal:
        drawn.add_column("seeds", justify="right", no_wrap=True)
    for place in found.places:
        for metric in METRICS:
            heading = escape(place.title).replace(" ", "\n")
            drawn.add_column(f"{metric}\n{heading}", justify="right", no_wrap=True)
    drawn.add_column("P(better\nthan\nfirst)", justify="right", no_wrap=True)
    for row in found.rows:
        numbers = [
            _two_lines(row.places[place.title].of(metric), DECIMALS[metric], row.seeds)
            for place in found.places
            for metric in METRICS
        ]
        chance = row.overall.improvement
        better = "" if chance is None else _two_lines(chance, 2, row.fewest)
        named = [escape(row.name), *(escape(row.differs[name]) for name in found.columns)]
        drawn.add_row(*named, *([str(row.seeds)] if unequal else ()), *numbers, better)
    return drawn


def _two_lines(sure: Interval, decimals: int, seeds: int) -> str:
    mean, low, high = (f"{each:.{decimals}f}" for each in (sure.value, sure.low, sure.high))
    return mean if seeds < 2 else f"{mean}\n[dim]{low}–{high}[/dim]"


def key(found: Comparison) -> str:
    """How to read the table."""
    seeds = span(row.seeds for row in found.rows)
    spread = "" if seeds == "1" else ", below it its 95 % interval"
    return (
        f"mean over tasks{spread}, {seeds} seed{'s' * (seeds != '1')}; P(better than first): the "
        "chance that a seed has more success than one of the first run, over all tasks"
    )


def to_csv(found: Comparison) -> str:
    """In long form, a row for each run and place: first splits and environments, then tasks, then
    all tasks together.
    """
    names = [f"{metric}{end}" for metric in METRICS for end in ("", "_low", "_high")]
    better = [f"better{end}" for end in ("", "_low", "_high")]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["run", *found.columns, "seeds", "tasks", *names, *better])
    for row in found.rows:
        differs = [row.differs[name] for name in found.columns]
        for over, result in _over(row):
            numbers = [n for metric in METRICS for n in _fields(result.of(metric), row.seeds)]
            chance = _fields(result.improvement, row.fewest)
            writer.writerow([row.name, *differs, row.seeds, over, *numbers, *chance])
    return buffer.getvalue()


def _over(row: Row) -> Iterable[tuple[str, Result]]:
    yield from row.places.items()
    yield from row.tasks.items()
    yield "all", row.overall


def _fields(sure: Interval | None, seeds: int) -> list[str]:
    """A number with the ends of its interval; a single seed has none."""
    if sure is None:
        return ["", "", ""]
    ends = ["", ""] if seeds < 2 else [f"{sure.low:.4f}", f"{sure.high:.4f}"]
    return [f"{sure.value:.4f}", *ends]
