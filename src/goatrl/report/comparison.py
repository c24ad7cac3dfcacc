"""A comparison of runs as a table, and what the page shows of runs."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from goatrl.experiments import comparison
from goatrl.experiments.comparison import (
    METRICS,
    Comparison,
    EvaluatedRun,
    Result,
    Row,
    short_names,
)
from goatrl.experiments.statistics import Interval
from goatrl.report.presentation import Json
from goatrl.report.shared import page_part, rounded, shown_metric, span
from goatrl.report.tables import natural_width, plain
from goatrl.report.text import Csv
from goatrl.runs.folder import RunFolder
from goatrl.types import GoatError

DECIMALS = {"success": 2, "return": 1}


def terminal(found: Comparison, width: int) -> list[Table]:
    """A row for each run, intervals below their means. What differs is a table of its own where
    both together are too wide.
    """
    whole = _numbers_of(found, found.columns)
    if not found.columns or natural_width(whole) <= width:
        return [whole]
    return [_what_differs(found), _numbers_of(found, ())]


def _what_differs(found: Comparison) -> Table:
    drawn = plain()
    drawn.add_column("", overflow="fold")
    for row in found.rows:
        drawn.add_column(escape(row.name), overflow="fold", justify="right")
    for name in found.columns:
        drawn.add_row(escape(name), *(escape(row.differs[name]) for row in found.rows))
    return drawn


def _numbers_of(found: Comparison, columns: Sequence[str]) -> Table:
    drawn = plain()
    drawn.add_column("run", overflow="fold")
    for heading in short_names(columns).values():
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
        named = [escape(row.name), *(escape(row.differs[name]) for name in columns)]
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
    """In long form, a row for each run and place: first splits and environments, then the tasks of
    splits, then all tasks together.
    """
    names = [f"{metric}{end}" for metric in METRICS for end in ("", "_low", "_high")]
    better = [f"better{end}" for end in ("", "_low", "_high")]
    buffer = io.StringIO()
    writer = Csv(buffer)
    writer.writerow(["run", *found.columns, "seeds", "tasks", *names, *better])
    for row in found.rows:
        differs = [row.differs[name] for name in found.columns]
        for over, result in _over(row):
            numbers = [n for metric in METRICS for n in _fields(result.of(metric), row.seeds)]
            chance = _fields(result.improvement, row.fewest)
            writer.writerow([row.name, *differs, row.seeds, over, *numbers, *chance])
    return buffer.getvalue()


def _over(row: Row) -> Iterable[tuple[str, Result]]:
    yield from {**row.places, **row.tasks}.items()  # an environment is a place and a task
    yield "all", row.overall


def _fields(sure: Interval | None, seeds: int) -> list[str]:
    """A number with the ends of its interval; a single seed has none."""
    if sure is None:
        return ["", "", ""]
    ends = ["", ""] if seeds < 2 else [f"{sure.low:.4f}", f"{sure.high:.4f}"]
    return [f"{sure.value:.4f}", *ends]


# The page

script = page_part("runs.js")
LONGEST = 18  # letters of a label beside a chart


def sections(folders: Sequence[Path]) -> list[Json]:
    """The runs of `goat train` among some folders that are evaluated: those of a folder that were
    evaluated on the same tasks beside each other. One that cannot be read is left out, with a note;
    if none can be, that is the error.
    """
    found: dict[tuple[Path, frozenset[Any]], list[EvaluatedRun]] = {}
    left_out: dict[Path, list[str]] = {}
    for folder in folders:
        run, parent = RunFolder(folder), folder.resolve().parent
        try:
            if run.episodes_path.exists() and "checksum" in run.about():
                read = comparison.read(folder)
                found.setdefault((parent, comparison.rules(read)), []).append(read)
        except GoatError as error:
            left_out.setdefault(parent, []).append(f"left out: {error}")
            unread = error
    if left_out and not found:
        raise unread
    parents, described = Counter(parent for parent, _ in found), []
    names = Counter(parent.name for parent in parents)
    for (parent, rules), runs in found.items():
        where = parent.name if names[parent.name] == 1 else str(parent)
        tasks = ", ".join(sorted(name for name, _ in rules))
        on = f" on {tasks}" if parents[parent] > 1 else ""
        about = describe(f"runs in {where}{on}", comparison.compare(runs))
        described.append({**about, "notes": [*about["notes"], *left_out.get(parent, ())]})
    return _with_names_of_their_own(described)


def _with_names_of_their_own(sections: Sequence[Json]) -> list[Json]:
    """Sections of the same name, of tasks whose episodes end differently, are numbered."""
    seen: Counter[str] = Counter()
    named = []
    for each in sections:
        seen[each["name"]] += 1
        number = seen[each["name"]]
        named.append({**each, "name": f"{each['name']} ({number})"} if number > 1 else each)
    return named


def describe(name: str, found: Comparison) -> Json:
    """All that the page shows of runs beside each other."""
    labels = _labels(found)
    full = {"success": 1, "return": found.horizon}
    return {
        "kind": "runs",
        "name": name,
        "about": key(found),
        "notes": found.notes,
        "episodes": found.episodes,
        "algorithms": labels,
        "seeds": span(row.seeds for row in found.rows),
        "metrics": {
            metric: shown_metric(metric, full[metric], DECIMALS[metric]) for metric in METRICS
        },
        "columns": found.columns,
        "places": [place.title for place in found.places],
        "rows": [_page_row(found, *each) for each in zip(labels, found.rows, strict=True)],
        "groups": [],
        "verdicts": [],
    }


def _labels(found: Comparison) -> list[str]:
    """What runs are called beside charts: by what differs, by their folders, or else by number."""
    folders = [Path(row.name).name for row in found.rows]
    for labels in ([found.label(row) for row in found.rows], folders):
        if max(map(len, labels)) <= LONGEST and len(set(labels)) == len(labels):
            return labels
    return [f"run {place}" for place, _ in enumerate(found.rows, start=1)]


def _page_row(found: Comparison, label: str, row: Row) -> Json:
    chance = row.overall.improvement
    return {
        "label": label,
        "name": row.name,
        "differs": [row.differs[name] for name in found.columns],
        "seeds": row.seeds,
        "places": {
            title: {metric: _numbers(result.of(metric), DECIMALS[metric]) for metric in METRICS}
            for title, result in row.places.items()
        },
        "better": None if chance is None else _numbers(chance, 2),
    }


def _numbers(sure: Interval, decimals: int) -> Json:
    numbers = {"value": sure.value, "low": sure.low, "high": sure.high}
    return {name: rounded(value, decimals) for name, value in numbers.items()}
