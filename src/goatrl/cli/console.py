"""What all commands share: the console, progress, NAME=VALUE arguments."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from tyro.conf import arg, subcommand

from goatrl.data.problems import Problem
from goatrl.experiments import loading
from goatrl.types import Episodes, GoatError


class Terminal(Console):
    """Prints text as it is: the names of files may look like markup. Where text has some, say
    markup=True; the cells of tables do.
    """

    def print(self, *objects: Any, markup: bool | None = None, **options: Any) -> None:
        plain = all(isinstance(each, str) for each in objects)
        super().print(*objects, markup=False if plain and markup is None else markup, **options)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # Rich would end the program here


console = Terminal()

OwnAlgorithm = Annotated[
    Path | None,
    arg(
        metavar="FILE",
        help="The Python file of your own algorithm, if the run was trained with one. The file is "
        "executed.",
    ),
]


def command(name: str, kind: type) -> Any:
    """A subcommand whose --help shows the whole docstring, examples included."""
    return subcommand(name, description=inspect.cleandoc(kind.__doc__ or ""))


def load_own(algorithm: Path | None, trained: Path) -> None:
    """Register the user's own algorithm, if they name its file and it is that of what was trained,
    which can then be opened.
    """
    if algorithm is not None:
        loading.name_own(algorithm, trained)


def plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def out_of_range(episodes: Episodes) -> str | None:
    """A note on actions that no policy here can produce, if there are any."""
    actions = np.abs(np.asarray(episodes.actions)[episodes.at(*episodes.steps())])
    outside = int((actions > 1.0).sum())
    if not outside:
        return None
    return (
        f"{outside} of {actions.size} action components lie outside [-1, 1] (up to "
        f"{actions.max():.3g}); agents only act within that range"
    )


def about_actions(problem: Problem) -> str | None:
    """A note on actions that agents cannot take as they are, if there are any."""
    bounds = problem.action_bounds
    if bounds is None:
        return out_of_range(problem.episodes)
    ends = " to ".join(_short_numbers(each) for each in (bounds.low, bounds.high))
    how = (
        "as declared"
        if problem.bounds_declared
        else "their own range, since no bounds are declared"
    )
    return f"actions are scaled to [-1, 1] from {ends}, {how}; agents scale theirs back"


def _short_numbers(numbers: Sequence[float]) -> str:
    if len(set(numbers)) == 1:
        return f"{numbers[0]:.4g}"
    return f"({', '.join(f'{each:.4g}' for each in numbers)})"


def pairs(texts: Sequence[str], what: str) -> dict[str, str]:
    """NAME=VALUE arguments as a dictionary."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise GoatError(f"'{text}' is not {what}")
        found[name] = value
    return found


def dataset_files(texts: Sequence[str]) -> dict[str, Path]:
    """GROUP=FILE arguments as a dictionary."""
    return {name: Path(file) for name, file in pairs(texts, "a dataset: write GROUP=FILE").items()}


def progress_bar() -> Progress:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=10),
        TaskProgressColumn(),
        TextColumn("[dim]{task.fields[losses]}[/dim]"),
        TimeRemainingColumn(elapsed_when_finished=True, compact=True),
    )
    return Progress(*columns, console=console)


def losses(metrics: Mapping[str, float]) -> str:
    """The losses among the metrics, short enough for a progress bar."""
    return " ".join(
        f"{name.removesuffix('_loss')} {value:.2g}"
        for name, value in metrics.items()
        if name.endswith("_loss")
    )
