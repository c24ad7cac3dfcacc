"""goat data"""

import dataclasses
from pathlib import Path
from typing import Annotated

import numpy as np
from rich.table import Table
from tyro.conf import Positional

from goatrl import data as datasets
from goatrl import tasks
from goatrl.cli.console import command, console, out_of_range
from goatrl.report import figures
from goatrl.types import Episodes


@dataclasses.dataclass(frozen=True)
class DataMake:
    """Make the dataset of a task group.

    Example:
      goat data make pointreach-non-expert-10 --out my.npz
    """

    group: Positional[str]
    """A task group from `goat list`."""
    out: Path
    """Where to write it (.npz)."""
    seed: int = 0
    """Another seed draws another dataset of the same kind."""

    def run(self) -> None:
        write_dataset(datasets.make(tasks.get(self.group), self.seed), self.out)


@dataclasses.dataclass(frozen=True)
class DataImport:
    """Turn one of the authors' pickle files into npz. Only plain arrays are read; nothing in the file is executed.

    Example:
      goat data import buffer.pkl --out buffer.npz
    """

    file: Positional[Path]
    """The pickle."""
    out: Path
    """Where to write it (.npz)."""

    def run(self) -> None:
        write_dataset(datasets.load(self.file), self.out)


def write_dataset(episodes: Episodes, out: Path) -> None:
    datasets.save(episodes, out)
    console.print(f"wrote {out}: {episodes.count} episodes, SHA-256 {episodes.checksum()[:12]}…")


@dataclasses.dataclass(frozen=True)
class DataInfo:
    """Describe a dataset, a file or a task group's own, and draw it.

    Example:
      goat data info pointreach-expert-10 --figure expert.png
    """

    data: Positional[str]
    """A file (.npz, .pkl) or a task group."""
    figure: Path | None = None
    """Also draw where it goes (.png, .svg, .pdf)."""

    def run(self) -> None:
        episodes = datasets.make(tasks.get(self.data)) if self.data in tasks.groups() else datasets.load(known_path(self.data))
        table = Table(title=self.data, title_justify="left", show_header=False)
        for name, value in describe(episodes).items():
            table.add_row(name, value)
        console.print(table)
        if self.figure is not None:
            figures.save(figures.dataset(episodes, self.data), self.figure)
            console.print(f"wrote {self.figure}")


def known_path(text: str) -> Path:
    """A file, or the error for something that is neither a file nor a group."""
    if not Path(text).exists() and not Path(text).suffix:
        tasks.get(text)
    return Path(text)


def describe(episodes: Episodes) -> dict[str, str]:
    actions = np.asarray(episodes.actions)
    facts = {
        "episodes": str(episodes.count),
        "actions per episode": str(episodes.horizon),
        "observation / goal / action": " / ".join(
            str(array.shape[-1]) for array in (episodes.observations, episodes.goals, episodes.actions)
        ),
        "action range": f"{actions.min():.3g} … {actions.max():.3g}",
        "achieved goals": f"{episodes.achieved.min():.3g} … {episodes.achieved.max():.3g}",
        "SHA-256": episodes.checksum(),
    }
    note = out_of_range(episodes)
    return facts | ({"note": note} if note else {})


Data = (
    Annotated[DataMake, command("make", DataMake)]
    | Annotated[DataImport, command("import", DataImport)]
    | Annotated[DataInfo, command("info", DataInfo)]
)
