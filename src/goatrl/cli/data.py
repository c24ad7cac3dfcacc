"""goat data"""

import dataclasses
from pathlib import Path
from typing import Annotated

from rich.markup import escape
from tyro.conf import Positional, arg

from goatrl import data as datasets
from goatrl import tasks
from goatrl.cli import executors
from goatrl.cli.console import command, console
from goatrl.cli.datasets import (
    Dataset,
    collecting,
    ensure,
    known_path,
    make_with_progress,
    open_dataset,
)
from goatrl.cli.inspection import DataCheck, DataInfo, DataSymmetry
from goatrl.data import cache, experts, minari
from goatrl.data.problems import open_problem
from goatrl.data.trajectories import goal_from_columns
from goatrl.disk.files import remove
from goatrl.tasks import TaskGroup
from goatrl.types import ActionBounds, Episodes, GoatError


@dataclasses.dataclass(frozen=True)
class DataMake:
    """Make the datasets of task groups. Robot datasets are stored in the cache, where all commands
    find them. To resume after Ctrl-C, rerun the same command.

    Examples:
      goat data make push-left-right
      goat data make --all
      goat data make --all --executor ray --address auto
      goat data make pointreach-non-expert-10 --out my.npz
      goat data make push-left-right --expert runs/push-expert --out my.npz
    """

    groups: Positional[tuple[str, ...]] = ()
    """Task groups from `goat list`."""
    all: bool = False
    """Make the datasets of all robot groups in the paper, which takes an hour on two cores."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """Write one dataset to this file (.npz) instead of the cache."""
    seed: int = 0
    """A different seed gives a different dataset of the same kind. Requires --out."""
    expert: Annotated[Path | None, arg(metavar="FOLDER")] = None
    """Collect with an expert of your own, from a folder of `goat expert train`, instead of the one
    that ships with goatrl. Requires --out.
    """
    threads: Annotated[int | None, arg(metavar="N")] = None
    """Simulate in this process, with N threads. If omitted, every core has a process of its own.
    The data is the same.
    """
    executor: executors.Name = "local"
    address: executors.Address = None

    def run(self) -> None:
        if self.threads is not None and self.executor != "local":
            raise GoatError("--threads are those of this process; omit it, or --executor")
        with executors.executing(self.executor, self.address):
            self._run()

    def _run(self) -> None:
        chosen = [tasks.get(name) for name in self.groups]
        chosen += [group for group in tasks.robots() if self.all and group not in chosen]
        if not chosen:
            raise GoatError("specify task groups (see `goat list`) or --all")
        if self.out is not None:
            if len(chosen) > 1:
                raise GoatError("--out takes only one dataset; specify a single task group")
            self._into_file(chosen[0], self.out)
            return
        if self.seed or self.expert is not None:
            raise GoatError(
                "the cache only holds datasets collected by goatrl's own experts with seed 0; add "
                "--out FILE to use --seed or --expert"
            )
        for group in chosen:
            if group.made is None:
                raise GoatError(
                    f"{group.name} is generated when needed, not cached; to save it, add --out FILE"
                )
            if cache.cached(group).exists():
                cache.tidy(group)
                console.print(f"already made: {cache.cached(group)}")
            else:
                make_with_progress(group, self.threads)

    def _into_file(self, group: TaskGroup, out: Path) -> None:
        if group.collection is None and self.expert is not None:
            raise GoatError(f"{group.name} is not collected by an expert; omit --expert")
        if group.made is None and group.cut_from is None:
            write_dataset(datasets.make(group, self.seed), out)
            return
        datasets.check_name(out)  # it will take minutes
        expert = None if self.expert is None else experts.of_run(self.expert, group.family)
        partial = out.with_suffix(".partial.npz")
        with cache.claimed_file(out):
            with collecting(cache.source(group)) as show:
                episodes = cache.make(
                    group,
                    self.seed,
                    expert=expert,
                    partial=partial,
                    threads=self.threads,
                    on_progress=show,
                )
            write_dataset(episodes, out)
            remove(partial)


@dataclasses.dataclass(frozen=True)
class DataVerify:
    """Compare the checksums of datasets with those listed in goatrl.

    Examples:
      goat data verify
      goat data verify push-left-right
    """

    groups: Positional[tuple[str, ...]] = ()
    """Task groups from `goat list`; all that have been made if omitted."""

    def run(self) -> None:
        made = [
            group.name
            for group in tasks.groups().values()
            if group.script is not None or cache.cached(cache.source(group)).exists()
        ]
        differing = []
        for name in self.groups or made:
            checksum, listed = (
                cache.of_group(tasks.get(name)).checksum(),
                cache.checksums().get(name),
            )
            verdict = (
                "not listed" if listed is None else "same" if checksum == listed else "differs"
            )
            color = {"not listed": "yellow", "same": "green", "differs": "red"}[verdict]
            console.print(
                f"[{color}]{verdict}[/{color}] {escape(name)} {checksum}",
                highlight=False,
                soft_wrap=True,
                markup=True,
            )
            if verdict == "differs":
                differing.append(name)
        if differing:
            raise DifferentData(
                f"checksum differs from ours: {', '.join(differing)}; delete it and make it again"
            )


class DifferentData(GoatError):
    """A dataset whose checksum differs from the one that the package lists."""

    exit_code = 1


@dataclasses.dataclass(frozen=True)
class DataConvert:
    """Convert a dataset (npz, OGBench's npz, Parquet, robomimic's HDF5, Minari) to npz or to
    Minari's format. From a pickle, only plain arrays are read; nothing in it is executed.

    Examples:
      goat data convert buffer.pkl --out buffer.npz
      goat data convert push-left-right --out minari:goatrl/push-left-right-v0
      goat data convert mine.npz --goal-threshold 0.5 --out minari:me/mine-v0
      goat data convert minari:me/mine-v0 --out mine.npz
      goat data convert pointmaze-medium-navigate-v0.npz --goal-columns 0 1 --out maze.npz
    """

    source: Dataset
    """A dataset file, minari:ID or a task group."""
    out: Annotated[str, arg(metavar="TARGET")]
    """FILE.npz or minari:ID."""
    goal_columns: Annotated[tuple[int, ...], arg(metavar="N")] = ()
    """The columns of an observation (from 0) that are what it achieves as a goal; the goal of an
    episode is then what it achieves at its end. For data without goals, such as OGBench's.
    """
    goal_threshold: Annotated[float | None, arg(metavar="DISTANCE")] = None
    """The distance within which a goal counts as reached, to be kept with the dataset; it
    determines Minari's rewards. Task groups have their own.
    """
    group: Annotated[str | None, arg(metavar="GROUP")] = None
    """For Minari: the task group that a file belongs to, which provides the threshold and the
    environments.
    """
    description: Annotated[str | None, arg(metavar="TEXT")] = None
    """For Minari: a description of the dataset."""
    author: Annotated[str | None, arg(metavar="NAME")] = None
    """For Minari: the author of the dataset."""
    yes: bool = False
    """Make the dataset of a task group without asking if it is missing."""

    def run(self) -> None:
        own = self.source in tasks.groups()
        if not minari.is_id(self.out):
            raw = open_dataset(self.source, self.yes)
            bounds = None if own else datasets.action_bounds(self.source, raw)
            threshold = self.goal_threshold
            if self.goal_columns:
                raw = goal_from_columns(raw, self.goal_columns)
            elif threshold is None and not own:
                threshold = datasets.goal_threshold(self.source)
            write_dataset(raw, Path(self.out), bounds, threshold)
            return
        if self.goal_columns:
            raise GoatError(
                "--goal-columns writes a file; convert it to Minari's format afterwards"
            )
        if own and self.group is not None:
            raise GoatError(f"{self.source} is itself a task group; use --group only with files")
        if own:
            ensure([self.source], self.yes)
        problem = open_problem(
            self.source if own else self.group,
            None if own else known_path(self.source),
            self.goal_threshold,
        )
        about = minari.describe(tasks.get(self.source)) if own else {}
        given = {"description": self.description, "author": self.author}
        new = minari.export(
            problem.recorded,
            self.out.removeprefix(minari.PREFIX),
            goal_threshold=problem.spec.goal_threshold,
            group=problem.group,
            action_bounds=problem.action_bounds,
            **about | {name: text for name, text in given.items() if text is not None},
        )
        console.print(written(problem.recorded, self.out) if new else f"already exists: {self.out}")


def write_dataset(
    episodes: Episodes,
    out: Path,
    bounds: ActionBounds | None = None,
    threshold: float | None = None,
) -> None:
    datasets.save(episodes, out, bounds, threshold)
    console.print(written(episodes, str(out)))


def written(episodes: Episodes, where: str) -> str:
    return f"wrote {where}: {episodes.count} episodes, SHA-256 {episodes.checksum()[:12]}…"


Data = (
    Annotated[DataMake, command("make", DataMake)]
    | Annotated[DataVerify, command("verify", DataVerify)]
    | Annotated[DataConvert, command("convert", DataConvert)]
    | Annotated[DataInfo, command("info", DataInfo)]
    | Annotated[DataCheck, command("check", DataCheck)]
    | Annotated[DataSymmetry, command("symmetry", DataSymmetry)]
)
