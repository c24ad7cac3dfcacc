"""goat data info, check and symmetry: what is in a dataset, and what is wrong with it"""

import dataclasses
from pathlib import Path
from typing import Annotated

import numpy as np
from rich.markup import escape
from rich.table import Table
from tyro.conf import arg

from goatrl import data as datasets
from goatrl import tasks
from goatrl.cli.console import console, out_of_range
from goatrl.cli.datasets import Dataset, group_of, known_path, open_dataset
from goatrl.data import check, minari
from goatrl.data.problems import declared_symmetry
from goatrl.learn import symmetry
from goatrl.learn.symmetry import Map, Rotation
from goatrl.report import data_figures, figures
from goatrl.tasks import TaskGroup
from goatrl.training import symmetry_check
from goatrl.training.symmetry_check import Checked
from goatrl.types import Episodes, GoatError, reached


@dataclasses.dataclass(frozen=True)
class DataInfo:
    """Describe a dataset (a file, a Minari dataset or a task group's own) and plot it.

    Example:
      goat data info pointreach-expert-10 --figure expert.png
    """

    data: Dataset
    """A dataset file, minari:ID or a task group."""
    figure: Path | None = None
    """Also plot the trajectories to this file (.png, .svg, .pdf)."""
    group: Annotated[str | None, arg(metavar="GROUP")] = None
    """For a file: the task group that it belongs to, which defines success."""
    yes: bool = False
    """Make the dataset without asking if it is missing."""

    def run(self) -> None:
        episodes = open_dataset(self.data, self.yes)
        group = group_of(self.data, self.group)
        if group is not None:
            group.check_fits(episodes.spec(group.spec.goal_threshold), self.data)
        own = None if self.data in tasks.groups() else datasets.goal_threshold(self.data)
        table = Table(title=escape(self.data), title_justify="left", show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")  # a checksum is shown whole
        for name, value in describe(episodes, group, own).items():
            table.add_row(name, value)
        if self.data not in tasks.groups():
            bounds = datasets.action_bounds(self.data, episodes)
            undeclared = "none declared; numbers within [-1, 1] are taken as they are"
            table.add_row("action bounds", undeclared if bounds is None else escape(str(bounds)))
        console.print(table)
        if self.figure is not None:
            figures.save(data_figures.dataset(episodes, self.data, group), self.figure)
            console.print(f"wrote {self.figure}")


@dataclasses.dataclass(frozen=True)
class DataCheck:
    """Say what is wrong or suspicious in a dataset before you train on it: goals that are never
    reached, padding, actions out of range, and more. Exits with 1 if nothing can be trained on it.

    Examples:
      goat data check mine.npz --goal-threshold 0.5
      goat data check minari:me/mine-v0 --figure check.png
      goat data check push-left-right
    """

    data: Dataset
    """A dataset file, minari:ID or a task group."""
    goal_threshold: Annotated[float | None, arg(metavar="DISTANCE")] = None
    """The distance within which a goal counts as reached. Task groups have their own, and so may
    datasets that goatrl wrote.
    """
    figure: Path | None = None
    """Also plot lengths, distances to goals and actions to this file (.png, .svg, .pdf)."""
    group: Annotated[str | None, arg(metavar="GROUP")] = None
    """For a file: the task group that it belongs to."""
    yes: bool = False
    """Make the dataset without asking if it is missing."""

    def run(self) -> None:
        own = self.data in tasks.groups()
        group = group_of(self.data, self.group)
        if minari.is_id(self.data):
            minari.require(self.data.removeprefix(minari.PREFIX))
        elif not own and not known_path(self.data).is_file():
            raise GoatError(f"no such file: {self.data}")
        try:
            episodes = open_dataset(self.data, self.yes)
            bounds = None if group is not None else datasets.action_bounds(self.data, episodes)
            if group is not None:
                group.check_fits(episodes.spec(group.spec.goal_threshold), self.data)
        except GoatError as error:
            raise Untrainable(str(error)) from None
        threshold = self.goal_threshold
        if threshold is None and group is not None:
            threshold = group.spec.goal_threshold
        elif threshold is None:
            threshold = datasets.goal_threshold(self.data)
        found = check.check(episodes, threshold, bounds)
        actions = len(episodes.steps()[0])
        console.print(f"{self.data}: {episodes.count:,} episodes, {actions:,} actions")
        for each in found:
            mark = "[red]✗[/red]" if each.fatal else "[yellow]![/yellow]"
            line = escape(f"{each.what}; {each.advice}")
            console.print(f"{mark} {line}", highlight=False, soft_wrap=True, markup=True)
        if not found:
            console.print("nothing suspicious")
        if threshold is None:
            console.print("add --goal-threshold to check success as well")
        if self.figure is not None:
            drawn = data_figures.checked(episodes, self.data, threshold, bounds, found)
            figures.save(drawn, self.figure)
            console.print(f"wrote {self.figure}")
        if any(each.fatal for each in found):
            raise Untrainable(f"nothing can be learned from {self.data}")


class Untrainable(GoatError):
    """Data that agents cannot be trained on."""

    exit_code = 1


def describe(
    episodes: Episodes, group: TaskGroup | None, own_threshold: float | None = None
) -> dict[str, str]:
    """What is in a dataset. With a goal threshold (the group's or its own), also how often it
    succeeds; with a group, also how much of the group's tasks it covers.
    """
    episode, step = episodes.steps()
    achieved, goals = np.asarray(episodes.achieved), np.asarray(episodes.goals)
    actions = np.asarray(episodes.actions)[episodes.at(episode, step)]
    ended = 0 if episodes.terminated is None else int(np.sum(episodes.terminated))
    facts = {
        "episodes": str(episodes.count) + (f", {ended} ended by termination" if ended else ""),
        "actions per episode": lengths(episodes),
        "observation / goal / action": " / ".join(
            str(array.shape[-1])
            for array in (episodes.observations, episodes.goals, episodes.actions)
        ),
        "action range": f"{actions.min():.3g} … {actions.max():.3g}",
        "achieved goals": ranges(achieved),
        "desired goals": ranges(goals),
    }
    threshold = own_threshold if group is None else group.spec.goal_threshold
    if threshold is not None:
        after, desired = achieved[episodes.at(episode, step + 1)], episodes.desired(episode, step)
        met = reached(after, np.asarray(desired), threshold)
        at_end = met[step == episodes.length(episode) - 1]
        last, steps = 100 * at_end.mean(), met.sum() / episodes.count
        facts["goal threshold"] = f"{threshold:g}"
        facts["desired goal reached"] = (
            f"{last:.1f} % of episodes at the last step, {steps:.1f} steps per episode"
        )
    if group is not None:
        kept = np.mean([group.kept(path[None])[0] for path in episodes.paths()])
        facts["inside the seen region"] = f"{100 * kept:.1f} % of episodes"
        for task in group.tasks:
            seen = coverage(achieved, task.evaluation()[1], group.spec.goal_threshold)
            facts[f"goals of {task.name} ever achieved"] = f"{100 * seen:.0f} %"
    facts["SHA-256"] = episodes.checksum()
    note = out_of_range(episodes)
    return facts | ({"note": note} if note else {})


def lengths(episodes: Episodes) -> str:
    if episodes.lengths is None:
        return str(episodes.horizon)
    taken = np.asarray(episodes.lengths)
    return f"{taken.min()} … {taken.max()}, {taken.sum()} in all"


def ranges(points: np.ndarray) -> str:
    """The range of every coordinate, or of all together if there are more than four."""
    flat = points.reshape(-1, points.shape[-1])
    if flat.shape[1] > 4:
        return f"{flat.min():.3g} … {flat.max():.3g} ({flat.shape[1]} coordinates)"
    return ", ".join(
        f"{low:.3g} … {high:.3g}" for low, high in zip(flat.min(0), flat.max(0), strict=True)
    )


def coverage(achieved: np.ndarray, goals: np.ndarray, threshold: float) -> float:
    """The share of goals that any step of any episode comes within the threshold of."""
    from scipy.spatial import KDTree  # which every start of the program would wait for

    tree = KDTree(achieved.reshape(-1, achieved.shape[-1]))
    return float((tree.query(goals)[0] <= threshold).mean())


@dataclasses.dataclass(frozen=True)
class DataSymmetry:
    """Check a declared symmetry on data, before you train with it (`goat train --symmetry`). A
    small model of the dynamics is fitted on half of the episodes; where the symmetry holds, it
    predicts the others about as well when they are seen through the symmetry.

    Examples:
      goat data symmetry push-left-right
      goat data symmetry mine.npz --symmetry mirror.toml
    """

    data: Dataset
    """A dataset file, minari:ID or a task group."""
    symmetry: Annotated[str, arg(metavar="FILE")] = "declared"
    """The TOML file that declares it, or `declared` for that of the group's robot."""
    group: Annotated[str | None, arg(metavar="GROUP")] = None
    """For a file: the task group that it belongs to."""
    yes: bool = False
    """Make the dataset without asking if it is missing."""

    def run(self) -> None:
        episodes = open_dataset(self.data, self.yes)
        group = group_of(self.data, self.group)
        spec = episodes.spec(1.0)
        maps = symmetry.read(declared_symmetry(self.symmetry, group), spec)
        if not maps:
            raise GoatError(f"{self.symmetry} declares no reflection, translation or rotation")
        broken = []
        for number, each in enumerate(maps, start=1):
            title = f"{each.kind} {number} of {len(maps)}" if len(maps) > 1 else each.kind
            with console.status(f"{title}: fitting a model of the dynamics"):
                found = symmetry_check.check(episodes, each)
            show_check(title, each, found)
            if not found.holds:
                broken.append(title)
        if broken:
            raise BrokenSymmetry(f"{' and '.join(broken)} does not hold on {self.data}")


class BrokenSymmetry(GoatError):
    """Data do not agree with what is declared of them."""

    exit_code = 1


def show_check(title: str, chosen: Map, found: Checked) -> None:
    """One row per column of the observation; those that break are named below."""
    table = Table(title=escape(f"{title}, {found.rows} transitions"), title_justify="left")
    for heading in ("column", "becomes", "error", "seen through it", "ratio", ""):
        table.add_column(heading, justify="left" if heading in ("becomes", "") else "right")
    for column, ratio in enumerate(found.ratio):
        verdict = "breaks" if column in found.broken else "" if found.telling[column] else "no say"
        errors = (f"{each[column]:.2f}" for each in (found.original, found.image))
        table.add_row(str(column), _image(chosen, column), *errors, f"{ratio:.2f}", verdict)
    console.print(table)
    explained, limit = symmetry_check.EXPLAINED, symmetry_check.LIMIT
    console.print(
        "errors are shares of a column's mean change; the model has no say where it explains less "
        f"than {100 * explained:.0f} % of it",
        highlight=False,
    )
    if found.holds:
        console.print(
            f"{title} holds: no error grows by more than {limit:g} where the model has a say"
        )
        return
    if found.familiar < symmetry_check.STRANGE:
        console.print(
            f"{title} makes transitions that look like none in the data, but for "
            f"{100 * found.familiar:.0f} %: do its columns agree with each other?"
        )
    if found.contradicted:
        columns = ", ".join(map(str, found.contradicted))
        console.print(
            f"{title} makes columns {columns} contradict each other: it breaks a relation that all "
            "observations of the data obey, such as a distance being the difference of two places"
        )
    if len(found.broken):
        columns = ", ".join(map(str, found.broken))
        console.print(f"{title} breaks column {columns} of the observation")
    for space, column in found.suspects[:3]:
        console.print(
            f"  it would fit better with the other sign of column {column} of the {space}"
        )


def _image(chosen: Map, column: int) -> str:
    """What a map makes of a column, as one writes it."""
    source = f"x{chosen.order[column]}"
    total = chosen.offset["observation"][column]
    if chosen.sign["observation"][column] < 0:
        return f"{total:g} − {source}" if total else f"−{source}"
    if chosen.direction["observation"][column]:
        return f"{source} + d"
    if isinstance(chosen, Rotation) and chosen.turn["observation"][column]:
        return f"turned with x{chosen.partner['observation'][column]}"
    return source
