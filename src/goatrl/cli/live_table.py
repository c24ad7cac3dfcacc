"""What `goat bench` shows while it runs: a table with every planned cell, above progress bars for
the work under way.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Group as Stacked
from rich.live import Live
from rich.markup import escape
from rich.progress import Progress as Bars
from rich.progress import TaskID
from rich.table import Table
from rich.text import Text

from goatrl import tasks
from goatrl.cli.console import console, losses, progress_bar
from goatrl.cli.progress import Pace, usual
from goatrl.experiments.experiment import Planned, Progress


class LiveTable:
    """The state of a plan. In a log, where nothing can be redrawn, one line per finished cell, and
    now and then one for what is under way.
    """

    def __init__(self, planned: Sequence[Planned], brief: Callable[[Any], str]) -> None:
        self.labels = list(dict.fromkeys(cell.label for cell in planned))
        self.groups = list(dict.fromkeys(cell.group.name for cell in planned))
        self.brief = brief
        self.texts = {(cell.group.name, cell.label): Text("·", "dim") for cell in planned}
        for cell in planned:
            if cell.recorded is not None and not cell.missing:
                self.texts[cell.group.name, cell.label] = self._numbers(cell.recorded)
        self.bars: Bars = progress_bar()
        self.rows: dict[str, TaskID] = {}
        self.paces: dict[str, Pace] = {}
        self.started = time.monotonic()
        self.lock = threading.Lock()  # training and evaluation report from different threads

    def show(self, progress: Progress) -> None:
        with self.lock:
            self._bar(progress)
            self._line(progress)
            for cell in progress.cells:
                place = cell.group.name, cell.label
                if progress.recorded is not None:
                    self.texts[place] = self._numbers(progress.recorded)
                    self._print(f"{cell.group.name}, {cell.label}: {self.texts[place].plain}")
                else:
                    self.texts[place] = self._state(progress)

    def _line(self, progress: Progress) -> None:
        if progress.done == progress.total:
            self.paces.pop(progress.title, None)
            return
        pace = self.paces.setdefault(progress.title, Pace(share=1.0, at_first=False))
        if pace.due(progress.done, progress.total):
            share = f"{100 * progress.done // progress.total} %"
            self._print(", ".join(filter(None, (progress.title, share, losses(progress.losses)))))

    def _print(self, text: str) -> None:
        if not console.is_terminal:
            minutes = (time.monotonic() - self.started) / 60
            console.print(f"{minutes:6.1f} min  {text}", soft_wrap=True)

    @staticmethod
    def _state(progress: Progress) -> Text:
        if progress.diverged:
            return Text("diverged", "red")
        if progress.lost:
            return Text("lost", "red")
        if progress.what == "compiling":  # its bar says so: the word would widen every column
            return Text("·", "yellow")
        share = 100 * progress.done // max(progress.total, 1)
        return Text(f"{share} %", "yellow" if progress.what == "training" else "cyan")

    def _bar(self, progress: Progress) -> None:
        if progress.title not in self.rows:
            total = progress.total if progress.total > 1 else None  # nothing to show a share of
            told = f"about {usual()}" if progress.what == "compiling" else "starting"
            self.rows[progress.title] = self.bars.add_task(progress.title, total=total, losses=told)
        row = self.rows[progress.title]
        if progress.done:
            told = ", ".join(f"{name} {100 * x:.0f} %" for name, x in progress.success.items())
            self.bars.update(
                row,
                completed=progress.done,
                total=progress.total,
                losses=told or losses(progress.losses),
            )
        if progress.done == progress.total:
            self.bars.remove_task(row)
            del self.rows[progress.title]  # others may have the same title later

    def _numbers(self, record: Any) -> Text:
        return Text(self.brief(record), "green")

    def __rich__(self) -> Stacked:
        """Algorithms down, groups across: eleven by nine fit 80 columns."""
        table = Table(box=None, padding=(0, 1, 0, 0))
        table.add_column("")
        for name in self.groups:
            table.add_column(
                tasks.get(name).label.replace(" ", "\n").replace("-", "-\n"),
                justify="right",
                no_wrap=True,
            )
        for label in self.labels:
            table.add_row(
                escape(label), *(self.texts.get((name, label), Text("")) for name in self.groups)
            )
        return Stacked(table, self.bars)


@contextmanager
def live(table: LiveTable) -> Iterator[LiveTable]:
    if not console.is_terminal:
        yield table
        return
    with Live(table, console=console, refresh_per_second=4):
        yield table
