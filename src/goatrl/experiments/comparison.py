"""Runs of `goat train` beside each other: what differs between them, and how they did on the
episodes that all were evaluated on.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import os
import shlex
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from goatrl.disk.identity import Identity
from goatrl.disk.reading import json_of
from goatrl.experiments import statistics
from goatrl.experiments.statistics import Block, Interval, Scores
from goatrl.runs.offline import Run
from goatrl.types import ActionBounds, GoatError

METRICS = ("success", "return")
SPLITS = {"iid": "IID", "mixed": "mixed", "ood": "OOD"}  # in the order of the table
# What follows from something else that is shown, or decides nothing.
CONSEQUENCES = {
    "architecture.achieved": "architecture.inputs",
    "architecture.positions": "architecture.inputs",
}
HEADINGS = {
    "checksum": "data",
    "source": "file",
    "architecture.inputs": "inputs",
    "action_bounds": "action bounds",
}
NAMES = ("algorithm", "group", "data", "file")
LONGEST = 24  # letters of a value


@dataclasses.dataclass(frozen=True, eq=False)
class EvaluatedRun:
    """A run with its evaluated episodes."""

    name: str
    identity: Identity
    episodes: pa.Table

    @property
    def about(self) -> Mapping[str, Any]:
        return self.identity.about

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self.episodes.column("seed").to_pylist()))


@dataclasses.dataclass(frozen=True)
class Place:
    """Where runs are compared: the tasks of a split, or an environment."""

    title: str
    tasks: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Result:
    """How a run did in one place. An interval of a single seed has no width."""

    success: Interval
    returns: Interval
    improvement: Interval | None  # chance that a seed beats one of the first run; none of its own

    def of(self, metric: str) -> Interval:
        return self.success if metric == "success" else self.returns


@dataclasses.dataclass(frozen=True)
class Row:
    """One run of a comparison."""

    name: str
    differs: Mapping[str, str]  # its values of all that differs
    seeds: int
    fewest: int  # seeds of this run or of the first one: a single one says nothing of its spread
    places: Mapping[str, Result]  # by title
    tasks: Mapping[str, Result]  # by name
    overall: Result  # over all tasks


@dataclasses.dataclass(frozen=True)
class Comparison:
    columns: tuple[str, ...]  # the names of what differs
    places: tuple[Place, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]  # what was left out, one line each
    episodes: int  # of all runs together
    horizon: int  # the highest return

    def label(self, row: Row) -> str:
        """A run by what differs, or by its name where that does not tell."""
        labels = [self._label(each) for each in self.rows]
        return self._label(row) if len(set(labels)) == len(labels) else row.name

    def _label(self, row: Row) -> str:
        """The names of algorithms, groups and files speak for themselves."""
        short = short_names(self.columns)
        return ", ".join(
            value if name in NAMES else f"{short[name]} {value}"
            for name, value in row.differs.items()
            if value
        )


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Hyper-parameters without the name of their part, where that leaves no doubt."""
    lasts = Counter(name.rpartition(".")[2] for name in names)
    return {name: last if lasts[last := name.rpartition(".")[2]] == 1 else name for name in names}


def read(folder: Path) -> EvaluatedRun:
    """A run with the episodes that its agents, as they are saved now, were evaluated on."""
    run = Run(folder)
    identity = run.identity()
    if "checksum" not in identity.about:
        raise GoatError(f"{folder} is not a run of `goat train`; only such runs can be compared")
    if not run.episodes_path.exists():
        raise GoatError(
            f"{folder} is not evaluated yet; run: goat evaluate {shlex.quote(str(folder))}"
        )
    run.recorded()  # refused if it says nothing that could be compared
    episodes, about = run.read_episodes()
    step = run.step()
    if about.get("step", step) != step:
        raise GoatError(
            f"{folder} was evaluated at update {about['step']}, but is trained to {step} by now; "
            f"run: goat evaluate {shlex.quote(str(folder))}"
        )
    # Of a run that was stopped, the updates that it has.
    so_far = dataclasses.replace(identity, about={**identity.about, "updates": step})
    return EvaluatedRun(os.path.normpath(folder), so_far, episodes)


def compare(runs: Sequence[EvaluatedRun]) -> Comparison:
    """All runs on the episodes that they share, each also with the first."""
    names = [run.name for run in runs]
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise GoatError(f"{twice[0]} is named twice")
    found = [_by_task(run) for run in runs]
    shared, notes = _shared(runs, found)
    splits = found[0]
    places = _places({task: splits[task].split for task in shared})
    first: dict[str, Scores] | None = None
    rows, columns = [], differences(runs)
    for run, tasks in zip(runs, found, strict=True):
        scores = {metric: _scores(run, tasks, shared, metric) for metric in METRICS}
        first = first or scores
        rows.append(_row(run, _values(columns, run, runs), scores, first, places))
    horizon = max(int(run.about["spec"]["horizon"]) for run in runs)
    count = sum(len(run.seeds) for run in runs) * sum(map(len, shared.values()))
    return Comparison(tuple(columns), tuple(places), tuple(rows), notes, count, horizon)


# What differs


def differences(runs: Sequence[EvaluatedRun]) -> dict[str, str]:
    """Heading → name, of all that differs between any two runs.

    The numbers with which one algorithm differs from another are part of it, unless the user has
    set one that both have. How many seeds a run has stands beside its results, and when it reported
    its losses decides nothing.
    """
    names: dict[str, None] = {}
    for one, other in itertools.combinations(runs, 2):
        same_algorithm = one.about["algorithm"] == other.about["algorithm"]
        for name in one.identity.diff(other.identity):
            kind, _, inner = name.partition(".")
            if kind == "action_bounds":  # both ends in one column
                names[kind] = None
            elif kind != "hyperparameters":
                names[name] = None
            elif same_algorithm or _was_set(inner, one, other):
                names[inner] = None
    for name in ("interval", "seeds"):
        names.pop(name, None)
    shown = [name for name in _in_order(names) if CONSEQUENCES.get(name) not in names]
    return {HEADINGS.get(name, name.removeprefix("spec.")): name for name in shown}


def _was_set(name: str, *runs: EvaluatedRun) -> bool:
    return all(name in run.about["hyperparameters"] for run in runs) and any(
        name in run.about["overrides"] for run in runs
    )


def _in_order(names: Iterable[str]) -> list[str]:
    """What is trained, on what, how, how long."""
    first, last = ("algorithm", "source", "group", "checksum"), ("updates", "batch_size")
    rank = {name: place for place, name in enumerate((*first, "", *last))}
    return sorted(names, key=lambda name: rank.get(name, len(first)))


def _values(columns: Mapping[str, str], run: EvaluatedRun, runs: Sequence[EvaluatedRun]) -> dict:
    return {heading: _value(name, run, runs) for heading, name in columns.items()}


def _value(name: str, run: EvaluatedRun, runs: Sequence[EvaluatedRun]) -> str:
    about = run.about
    if name == "checksum":
        return _dataset(run, runs)
    if name == "source":
        return str(about["source"])[:8]
    if name == "symmetry":
        return _symmetry(run, runs)
    if name == "action_bounds":
        bounds = about.get(name)
        return str(ActionBounds(**bounds) if bounds else ActionBounds.native_of(1))
    if name.startswith("revision of "):
        return str(about["revisions"].get(name.removeprefix("revision of "), ""))
    kind, _, inner = name.partition(".")
    if kind == "spec":
        return _text(about["spec"].get(inner))
    numbers = about["hyperparameters"]
    return _text(numbers[name]) if name in numbers else _text(about.get(name, ""))


def _dataset(run: EvaluatedRun, runs: Sequence[EvaluatedRun]) -> str:
    """The name of its file, with its checksum where another dataset has the same name."""
    name = _file(run)
    clash = {each.about["checksum"] for each in runs if _file(each) == name}
    return name if len(clash) == 1 else f"{name} {run.about['checksum'][:8]}"


def _symmetry(run: EvaluatedRun, runs: Sequence[EvaluatedRun]) -> str:
    """The kinds of its maps, with a checksum where another symmetry has the same ones."""
    own, kinds = _declared(run), _kinds(run)
    clash = {_declared(each) for each in runs if _kinds(each) == kinds}
    checksum = hashlib.sha256(own.encode()).hexdigest()[:8]
    return kinds if len(clash) == 1 else f"{kinds} {checksum}"


def _kinds(run: EvaluatedRun) -> str:
    try:
        return ", ".join(json_of(_declared(run) or "{}"))
    except ValueError:
        return "unreadable"


def _declared(run: EvaluatedRun) -> str:
    return str(run.about["hyperparameters"].get("symmetry", ""))


def _file(run: EvaluatedRun) -> str:
    return Path(run.about["data"]).name if run.about["data"] else str(run.about["group"])


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "x".join(map(str, value))
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value).lower() if value is None or isinstance(value, bool) else str(value)
    return textwrap.shorten(text, LONGEST, placeholder="…")


# What they did


@dataclasses.dataclass(frozen=True, eq=False)
class _Task:
    """The episodes of a run on one task."""

    split: str | None
    rule: tuple[Any, ...]  # what else decides success there
    rows: pa.Table
    seeds: tuple[int, ...]

    def starts_and_goals(self) -> dict[int, np.ndarray]:
        """Episode → its start and goal, which are the same for all seeds."""
        columns = (self.rows.column(name).to_pylist() for name in ("episode", "start", "goal"))
        return {
            episode: np.array([*start, *goal])
            for episode, start, goal in zip(*columns, strict=True)
        }

    def values(self, metric: str, episodes: Sequence[int]) -> np.ndarray:
        """(seeds, episodes)"""
        columns = (self.rows.column(name).to_pylist() for name in ("seed", "episode", metric))
        at = {(seed, episode): value for seed, episode, value in zip(*columns, strict=True)}
        return np.array([[at[seed, e] for e in episodes] for seed in self.seeds], float)


def rules(run: EvaluatedRun) -> frozenset[tuple[str, tuple[Any, ...]]]:
    """On what a run was evaluated: runs of the same are compared on all of it."""
    return frozenset((name, task.rule) for name, task in _by_task(run).items())


def _by_task(run: EvaluatedRun) -> dict[str, _Task]:
    names = np.asarray(run.episodes.column("task").to_pylist())
    spec = run.about["spec"]
    found = {}
    for name in dict.fromkeys(names.tolist()):
        rows = run.episodes.filter(names == name)
        split = rows.column("split")[0].as_py()
        # Tasks bring their own threshold and horizon; in an environment they are the data's, but
        # for what its name says otherwise (`Environment.settings`).
        threshold = None if "success=flag" in name else spec["goal_threshold"]
        rule = () if split else (threshold, None if "horizon=" in name else spec["horizon"])
        found[name] = _Task(split, rule, rows, run.seeds)
    return found


def _shared(
    runs: Sequence[EvaluatedRun], found: Sequence[Mapping[str, _Task]]
) -> tuple[dict[str, list[int]], tuple[str, ...]]:
    """Task → the episodes that all runs have there; and what is left out, in one line."""
    shared = {}
    for name, task in found[0].items():
        if not all(name in tasks and tasks[name].rule == task.rule for tasks in found):
            continue
        meant = [tasks[name].starts_and_goals() for tasks in found]
        common = [
            episode
            for episode, pair in meant[0].items()
            if all(episode in other and _same(pair, other[episode]) for other in meant)
        ]
        if common:
            shared[name] = common
    known = list(dict.fromkeys(name for tasks in found for name in tasks))
    if not shared:
        raise GoatError(
            f"{_listed([run.name for run in runs])} share no evaluated episodes; evaluate them on "
            "the same tasks or in the same environment with `goat evaluate`"
        )
    left = [name for name in known if name not in shared]
    part = [
        name
        for name, episodes in shared.items()
        if any(len(tasks[name].starts_and_goals()) > len(episodes) for tasks in found)
    ]
    notes = []
    if left:
        notes.append(f"compared only on what all share: without {_listed(left)}")
    if part:
        notes.append(f"compared only on the episodes that all share of {_listed(part)}")
    return shared, tuple(notes)


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-4, atol=1e-6))


def _listed(names: Sequence[str], most: int = 4) -> str:
    more = [f"{len(names) - most} more"] if len(names) > most else []
    return ", ".join([*names[:most], *more])


def _places(splits: Mapping[str, str | None]) -> list[Place]:
    """Split by split, then the environments. Where a place is one task, it is named."""
    places = []
    for split, label in SPLITS.items():
        tasks = tuple(task for task, of in splits.items() if of == split)
        if tasks:
            title = f"{label} ({tasks[0]})" if len(tasks) == 1 else f"{label} ({len(tasks)} tasks)"
            places.append(Place(title, tasks))
    return places + [Place(task, (task,)) for task, of in splits.items() if of not in SPLITS]


def _scores(
    run: EvaluatedRun, tasks: Mapping[str, _Task], shared: Mapping[str, Sequence[int]], metric: str
) -> Scores:
    """One stratum: all tasks see the same agents."""
    episodes = {name: tasks[name].values(metric, mine) for name, mine in shared.items()}
    return Scores(run.name, (Block("", run.seeds, episodes),))


def _row(
    run: EvaluatedRun,
    differs: Mapping[str, str],
    scores: Mapping[str, Scores],
    first: Mapping[str, Scores],
    places: Sequence[Place],
) -> Row:
    def result(tasks: Sequence[str]) -> Result:
        mine, theirs = ({m: _only(of[m], tasks) for m in METRICS} for of in (scores, first))
        success, returns = (
            statistics.interval(mine[metric], statistics.average) for metric in METRICS
        )
        if scores is first:
            return Result(success, returns, None)
        better = statistics.improvement_interval(mine["success"], theirs["success"])
        return Result(success, returns, better)

    every = [task for place in places for task in place.tasks]
    seeds = [len(of["success"].blocks[0].seeds) for of in (scores, first)]
    return Row(
        run.name,
        differs,
        seeds[0],
        min(seeds),
        {place.title: result(place.tasks) for place in places},
        {task: result([task]) for task in every},
        result(every),
    )


def _only(scores: Scores, tasks: Sequence[str]) -> Scores:
    (block,) = scores.blocks
    kept = {task: block.episodes[task] for task in tasks}
    return Scores(scores.label, (dataclasses.replace(block, episodes=kept),))
