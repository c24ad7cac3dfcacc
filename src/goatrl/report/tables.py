"""Tables from records, beside the paper's numbers: mean ± standard deviation over seeds, and
averages over tasks.
"""

from __future__ import annotations

import dataclasses
import io
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table

from goatrl import tasks
from goatrl.evaluation.uncertainty import Ranking
from goatrl.experiments import paper
from goatrl.experiments.records import Cell
from goatrl.experiments.statistics import Average, ceiling, rank_correlation
from goatrl.experiments.suites import Suite
from goatrl.report.text import Csv, in_markdown

WIDTH = 80  # columns of a terminal
HEADING = 20  # of these, at which a heading goes on in the next line
LABEL = 14  # that a label has at least, however narrow the terminal
SPLITS = {"iid": "IID tasks", "ood": "OOD tasks", "all": "all tasks"}


@dataclasses.dataclass(frozen=True)
class Entry:
    """One number of a table with the paper's beside it, where the paper has one."""

    dataset: str
    task: str
    column: str
    mean: float
    std: float  # nan for a single seed
    seeds: int
    paper: tuple[float, float] | None
    decimals: int = 2  # as many as the paper prints
    ceiling: bool = False  # of the expert, which no other is ranked with

    @property
    def far(self) -> bool:
        """More than two of the paper's standard deviations away from it (beyond the rounding of its
        numbers).
        """
        return (
            self.paper is not None
            and abs(self.mean - self.paper[0]) > 2 * self.paper[1] + 0.5 * 10**-self.decimals + 1e-9
        )


def entries(suite: Suite, cells: Sequence[Cell], metric: str) -> list[Entry]:
    """All numbers of one metric."""
    published = paper.results(suite.paper[metric], metric) if metric in suite.paper else {}
    scale, decimals, highest = suite.scale(metric), suite.decimals, ceiling(cells)
    found = []
    for cell in cells:
        group = tasks.get(cell.config.group)
        for task in group.tasks:
            values = scale * cell.per_seed(metric, task.name)
            beside = published.get((group.paper_label, task.name, cell.label))
            mean, std = float(values.mean()), deviation(values)
            about = (len(values), beside, decimals, cell.label == highest)
            found.append(Entry(group.label, task.name, cell.label, mean, std, *about))
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
    far = tuple(entry for entry in beside if entry.far)
    return Agreement(
        len(beside),
        float(np.abs(ours - theirs).mean()),
        rank_correlation(ours.tolist(), theirs.tolist()),
        far,
    )


def order_agreement(averages: Sequence[Average], split: str) -> tuple[int, float] | None:
    """How many algorithms the paper has as well, and the rank correlation of their averages; None
    for fewer than three.
    """
    beside = [each for each in averages if each.split == split and not each.group]
    pairs = [(each.mean, each.paper) for each in beside if each.paper is not None]
    if len(pairs) < 3:
        return None
    return len(pairs), rank_correlation(*map(list, zip(*pairs, strict=True)))


def _grid(
    table: Sequence[Entry],
) -> tuple[list[str], list[tuple[str, str]], dict[tuple[str, str, str], Entry]]:
    columns = list(dict.fromkeys(entry.column for entry in table))
    rows = list(dict.fromkeys((entry.dataset, entry.task) for entry in table))
    return columns, rows, {(entry.dataset, entry.task, entry.column): entry for entry in table}


def deviation(values: np.ndarray) -> float:
    """The standard deviation over seeds, divided by their number as the paper does; nan for one,
    which has no spread.
    """
    return float(values.std()) if len(values) > 1 else math.nan


def number(mean: float, std: float, decimals: int) -> str:
    """Mean ± standard deviation, or the mean alone where the deviation is not known."""
    return (
        f"{mean:.{decimals}f}" if math.isnan(std) else f"{mean:.{decimals}f} ± {std:.{decimals}f}"
    )


def terminal_parts(table: Sequence[Entry], decimals: int = 2) -> list[Table]:
    """The table in parts of as many columns as fit a terminal."""
    parts: list[list[str]] = [[]]
    drawn: list[Table] = []
    for column in dict.fromkeys(entry.column for entry in table):
        wider = terminal([e for e in table if e.column in (*parts[-1], column)], decimals)
        if drawn and natural_width(wider) > WIDTH:
            parts.append([column])
            drawn.append(terminal([e for e in table if e.column == column], decimals))
        else:
            parts[-1].append(column)
            drawn[-1:] = [wider]
    return drawn


def plain(title: str | None = None, gap: int = 1) -> Table:
    """A table without a frame, with so many spaces between its columns."""
    return Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, gap, 0, 0),
    )


def natural_width(drawn: Table) -> int:
    """Of a table none of whose lines is folded."""
    console = Console(width=1_000)
    return Measurement.get(console, console.options, drawn).maximum


def terminal(table: Sequence[Entry], decimals: int = 2) -> Table:
    """Ours in the first line of each cell, the paper's below it."""
    columns, rows, at = _grid(table)
    drawn = plain()
    drawn.add_column("", overflow="fold")
    for column in columns:
        drawn.add_column(escape(column), justify="right", max_width=HEADING)
    for dataset, task in rows:
        found = [at.get((dataset, task, column)) for column in columns]
        beside = any(entry is not None and entry.paper is not None for entry in found)
        texts = []
        for entry in found:
            pairs = ((entry.mean, entry.std), entry.paper) if entry is not None else (None, None)
            ours, theirs = (
                "" if pair is None else number(*pair, decimals).replace(" ", "") for pair in pairs
            )
            texts.append(f"{ours}\n[dim]{theirs}[/dim]" if beside else ours)
        drawn.add_row(
            f"{dataset} {task}" + ("\n[dim]  paper[/dim]" if beside else ""),
            *texts,
            end_section=True,
        )
    return drawn


def markdown(table: Sequence[Entry]) -> str:
    """The same as Markdown: ours, and the paper's in brackets."""
    columns, rows, at = _grid(table)
    lines = [
        f"| dataset | goals | {' | '.join(map(in_markdown, columns))} |",
        f"|---|---|{'---:|' * len(columns)}",
    ]
    for dataset, task in rows:
        texts = []
        for column in columns:
            entry = at.get((dataset, task, column))
            text = "" if entry is None else number(entry.mean, entry.std, entry.decimals)
            if entry is not None and entry.paper is not None:
                text += f" ({number(*entry.paper, entry.decimals)})"
            texts.append(text)
        lines.append(f"| {dataset} | {task} | {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


def to_csv(tables: Mapping[str, Sequence[Entry]]) -> str:
    """All metrics in long form, one number a row; the deviation of a single seed is left empty."""
    buffer = io.StringIO()
    writer = Csv(buffer)
    writer.writerow(
        [
            "metric",
            "dataset",
            "goals",
            "algorithm",
            "mean",
            "std",
            "seeds",
            "paper_mean",
            "paper_std",
        ]
    )
    for metric, table in tables.items():
        for e in table:
            beside = ("", "") if e.paper is None else e.paper
            std = "" if math.isnan(e.std) else f"{e.std:.4f}"
            writer.writerow(
                [metric, e.dataset, e.task, e.column, f"{e.mean:.4f}", std, e.seeds, *beside]
            )
    return buffer.getvalue()


def _over(average: Average) -> str:
    """What it is an average over, and of how many tasks if not of all."""
    if average.group:
        return average.group
    return (
        f"{SPLITS[average.split]} "
        f"({average.tasks if average.tasks == average.of else f'{average.tasks} of {average.of}'})"
    )


def _rows_of_averages(averages: Sequence[Average]) -> dict[str, dict[str, Average]]:
    """The groups or split averaged over → column → average."""
    rows: dict[str, dict[str, Average]] = {}
    for average in sorted(
        averages, key=lambda each: (not each.group, list(SPLITS).index(each.split))
    ):
        rows.setdefault(_over(average), {})[average.label] = average
    return rows


def averages_terminal(averages: Sequence[Average], decimals: int = 2) -> Table:
    """Row by row the algorithms' averages with their intervals; narrow enough for 80 columns."""
    drawn = plain(gap=2)
    drawn.add_column("", overflow="fold", min_width=LABEL)
    shares = any(each.share is not None for each in averages)
    columns = ("mean", "95 % interval", "episodes", "IQM", "paper")
    for column in (*columns, "of expert") if shares else columns:
        drawn.add_column(column, justify="right", no_wrap=True)
    for over, row in _rows_of_averages(averages).items():
        drawn.add_row(f"[bold]{over}[/bold]")
        for place, (label, each) in enumerate(row.items(), start=1):
            mean, low, high, noise, middle, beside = (
                "" if number is None else f"{number:.{decimals}f}"
                for number in (
                    each.mean,
                    each.interval.low,
                    each.interval.high,
                    each.episode_noise,
                    each.iqm,
                    each.paper,
                )
            )
            numbers: tuple[str, ...] = (
                mean,
                f"{low} to {high}",
                f"±{noise}",
                middle,
                f"[dim]{beside}[/dim]",
            )
            if shares:
                numbers += ("" if each.share is None else f"{each.share:.0f} %",)
            indented = Padding(escape(label), (0, 0, 0, 2))
            drawn.add_row(indented, *numbers, end_section=place == len(row))
    return drawn


def averages_markdown(by_metric: Mapping[str, Sequence[Average]], decimals: int = 2) -> str:
    """A table for each metric: groups, then splits; ours with its interval, the paper's in
    brackets, and the noise of episodes.
    """
    parts = [
        "Averages over tasks, [95 % bootstrap interval over seeds; a single one has no spread], "
        "(the paper's over the same tasks), "
        "and the standard error that is due to the number of evaluation episodes alone, as if "
        "their goals were drawn again (those "
        "of PointReach are fixed).\n"
    ]
    if any(each.share is not None for each in by_metric.get("success", ())):
        parts[0] += (
            "The expert collected the data and has seen the whole space; its success is the "
            "ceiling, of which each algorithm's share is given.\n"
        )
    for metric, averages in by_metric.items():
        columns = list(dict.fromkeys(average.label for average in averages))
        lines = [
            f"## {metric}\n",
            f"| average over | {' | '.join(map(in_markdown, columns))} |",
            f"|---|{'---:|' * len(columns)}",
        ]
        for over, row in _rows_of_averages(averages).items():
            texts = [_average(row[column], decimals) if column in row else "" for column in columns]
            lines.append(f"| {over} | {' | '.join(texts)} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _average(average: Average, decimals: int) -> str:
    sure = f"[{average.interval.low:.{decimals}f}, {average.interval.high:.{decimals}f}]"
    beside = "" if average.paper is None else f" ({average.paper:.{decimals}f})"
    share = "" if average.share is None else f", {average.share:.0f} % of the expert's"
    return (
        f"{average.mean:.{decimals}f} {sure}{beside}, episodes "
        f"±{average.episode_noise:.{decimals}f}{share}"
    )


@dataclasses.dataclass(frozen=True)
class _Typeset:
    """A number of a LaTeX table, with the paper's below it."""

    mean: float
    ours: str
    theirs: str
    ranked: bool = True


def ranking(rankings: Sequence[Ranking], seeds: Sequence[int]) -> str:
    """Portions of samples ranked by uncertainty weight, one a row."""
    lines = ["seed,portion,weight,supervised_loss,state_goal_distance"]
    for seed, each in zip(seeds, rankings, strict=True):
        numbers = zip(each.weight, each.loss, each.distance, strict=True)
        lines += [
            f"{seed},{place},{w:.5f},{loss:.6g},{far:.6g}"
            for place, (w, loss, far) in enumerate(numbers, start=1)
        ]
    return "\n".join(lines) + "\n"


def latex(
    table: Sequence[Entry], averages: Sequence[Average] = (), beside_paper: bool = True
) -> str:
    """A tabular in the paper's layout, for the package booktabs: the best of each row bold, the
    second underlined (none where several are best).

    Under each group stands its average and at the end the averages over splits, if they are given.
    """
    columns, rows, at = _grid(table)
    decimals, unranked = table[0].decimals, {each.column for each in table if each.ceiling}
    blocks: dict[str, dict[str, list[_Typeset | None]]] = {}
    for dataset, task in rows:
        blocks.setdefault(dataset, {})[task] = [
            _typeset_entry(at.get((dataset, task, column))) for column in columns
        ]
    for over, row in _rows_of_averages(averages).items():
        block, title = (over, "Average") if over in blocks else ("Average", over)
        blocks.setdefault(block, {})[title] = [
            _typeset_average(row.get(column), decimals, column not in unranked)
            for column in columns
        ]
    lines = [" & ".join(["Task Group", "Task", *map(_escaped, columns)]) + r" \\"]
    for block, found in blocks.items():
        lines.append(r"\midrule")
        for place, (title, numbers) in enumerate(found.items()):
            heading = ["" if place else _escaped(block), _escaped(title)]
            lines.extend(_typeset_row(heading, numbers, decimals, beside_paper))
    return "\n".join(
        [
            rf"\begin{{tabular}}{{ll{'c' * len(columns)}}}",
            r"\toprule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _typeset_entry(entry: Entry | None) -> _Typeset | None:
    if entry is None:
        return None
    ours, theirs = (
        "" if pair is None else number(*pair, entry.decimals).replace(" ± ", r"$\pm$")
        for pair in ((entry.mean, entry.std), entry.paper)
    )
    return _Typeset(entry.mean, ours, theirs, not entry.ceiling)


def _typeset_average(average: Average | None, decimals: int, ranked: bool) -> _Typeset | None:
    if average is None:
        return None
    theirs = "" if average.paper is None else f"{average.paper:.{decimals}f}"
    return _Typeset(average.mean, f"{average.mean:.{decimals}f}", theirs, ranked)


def _typeset_row(
    heading: Sequence[str], found: Sequence[_Typeset | None], decimals: int, beside_paper: bool
) -> list[str]:
    # Compared as printed: numbers that read the same are equally good.
    ranked = [number for number in found if number is not None and number.ranked]
    printed = Counter(round(number.mean, decimals) for number in ranked)
    best = sorted(printed, reverse=True)
    several = bool(best) and printed[best[0]] > 1
    marks = dict(
        zip(
            best, [r"\textbf{%s}"] if several else [r"\textbf{%s}", r"\underline{%s}"], strict=False
        )
    )
    ours = [
        ""
        if n is None
        else (marks.get(round(n.mean, decimals), "%s") if n.ranked else "%s") % n.ours
        for n in found
    ]
    lines = [" & ".join([*heading, *ours]) + r" \\"]
    if beside_paper and any(number is not None and number.theirs for number in found):
        theirs = [
            "" if n is None or not n.theirs else rf"{{\scriptsize ({n.theirs})}}" for n in found
        ]
        lines.append(" & ".join(["", r"{\scriptsize (paper)}", *theirs]) + r" \\")
    return lines


def _escaped(text: str) -> str:
    """Text as LaTeX prints it; names of Greek letters become the letters."""
    plain = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    safe = re.sub(r"[\\~^&%$#_{}]", lambda found: plain.get(found[0], "\\" + found[0]), text)
    return re.sub(r"\b(alpha|beta|gamma|tau)\b", r"$\\\1$", safe)
