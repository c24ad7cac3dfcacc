"""goat data"""

import dataclasses
from pathlib import Path
from typing import Annotated

import numpy as np
from rich.table import Table
from tyro.conf import Positional, arg

from goatrl import data as datasets
from goatrl import tasks
from goatrl.cli.console import command, console, out_of_range
from goatrl.cli.datasets import ensure, make_with_progress
from goatrl.data import making
from goatrl.report import figures
from goatrl.types import Episodes, GoatError


@dataclasses.dataclass(frozen=True)
class DataMake:
    """Make datasets of task groups. The robots' are kept in the cache, where all commands find them; an interruption loses little.

    Examples:
      goat data make push-left-right
      goat data make --all
      goat data make pointreach-non-expert-10 --out my.npz
    """

    groups: Positional[tuple[str, ...]] = ()
    """Task groups from `goat list`."""
    all: bool = False
    """All robot groups: an hour on two cores."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """Write one dataset into this file (.npz) instead of the cache."""
    seed: int = 0
    """Another seed draws another dataset of the same kind; only with --out."""
    threads: Annotated[int | None, arg(metavar="N")] = None
    """How many simulate, if not as many as there are cores; the dataset is the same."""

    def run(self) -> None:
        chosen = [tasks.get(name) for name in self.groups]
        chosen += [group for group in tasks.groups().values() if self.all and group.collection is not None and group not in chosen]
        if not chosen:
            raise GoatError("name task groups, or say --all; see `goat list`")
        if self.out is not None:
            if len(chosen) > 1:
                raise GoatError("--out takes one dataset")
            write_dataset(datasets.make(chosen[0], self.seed, threads=self.threads), self.out)
            return
        if self.seed:
            raise GoatError("the cache holds the datasets of seed 0; name a file for another one with --out")
        for group in chosen:
            if group.collection is None:
                raise GoatError(f"{group.name} is made whenever it is needed; name a file for it with --out")
            if making.cached(group).exists():
                console.print(f"already made: {making.cached(group)}")
            else:
                make_with_progress(group, self.threads)


@dataclasses.dataclass(frozen=True)
class DataVerify:
    """Compare datasets with the checksums that goatrl lists: those of the cache, or of these groups.

    Example:
      goat data verify
      goat data verify push-left-right
    """

    groups: Positional[tuple[str, ...]] = ()
    """Task groups from `goat list`; all that are made, if none is named."""

    def run(self) -> None:
        made = [group.name for group in tasks.groups().values() if group.collection is None or making.cached(group).exists()]
        differing = []
        for name in self.groups or made:
            checksum, listed = making.of_group(tasks.get(name)).checksum(), making.checksums().get(name)
            same = checksum == listed
            console.print(f"{'[green]same[/green]' if same else '[red]differs[/red]'} {name} {checksum}", highlight=False)
            if not same:
                differing.append(name)
        if differing:
            raise DifferentData(f"not the listed dataset: {', '.join(differing)}; delete it and make it again")


class DifferentData(GoatError):
    """A dataset that is not the one that the package lists."""

    exit_code = 1


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
    yes: bool = False
    """Make the dataset if it is missing, without asking."""

    def run(self) -> None:
        if self.data in tasks.groups():
            ensure([self.data], self.yes)
            episodes = datasets.of_group(tasks.get(self.data))
        else:
            episodes = datasets.load(known_path(self.data))
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
    | Annotated[DataVerify, command("verify", DataVerify)]
    | Annotated[DataImport, command("import", DataImport)]
    | Annotated[DataInfo, command("info", DataInfo)]
)
