"""What all experiments have in common, whatever they measure: a plan, jobs, records, claims.

An experiment is data with a name. `plan` says which records are wanted and which are missing, `run`
makes those, `read` reads them, `claims` are functions of them. How records are shown, as tables
and on the page, is told in `goatrl.report.presentation`, under the same kind.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from goatrl.experiments.claims import Verdict
from goatrl.experiments.columns import Column
from goatrl.robots.workers import Lost
from goatrl.tasks import TaskGroup
from goatrl.training.offline import Diverged
from goatrl.types import GoatError, unknown

OPTIONS = ("groups", "data", "episodes", "executor")  # that not every experiment takes
Prepare = Callable[[Sequence[str]], None]  # told the groups whose own datasets will be opened


@dataclasses.dataclass(frozen=True)
class Request:
    """What the user asks of an experiment; what is empty is left to it."""

    seeds: int = 5
    groups: Sequence[str] = ()
    algorithms: Sequence[str] = ()
    data: Mapping[str, Path] = dataclasses.field(default_factory=dict)
    updates: int | None = None
    episodes: int | None = None
    executor: str = ""

    def check(self, experiment: Experiment) -> None:
        """Refuse, by their names, options that the experiment does not take."""
        given = [name for name in OPTIONS if getattr(self, name)]
        if wrong := [f"--{name}" for name in given if name not in experiment.options]:
            raise GoatError(f"{experiment.name} does not take {' and '.join(wrong)}; omit it")


@dataclasses.dataclass(frozen=True)
class Job:
    """The seeds of a record that are to be made, described by words and numbers that JSON can hold:
    any process that knows the experiment, its algorithms and datasets can make them.
    """

    experiment: str
    label: str
    seeds: tuple[int, ...]
    about: Mapping[str, Any]  # what the experiment needs to make them

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Job:
        return cls(**{**stored, "seeds": tuple(stored["seeds"])})


class Planned(Protocol):
    """A record that is wanted."""

    @property
    def label(self) -> str: ...

    @property
    def group(self) -> TaskGroup: ...

    @property
    def recorded(self) -> Any | None:
        """What its folder holds of it."""

    @property
    def missing(self) -> tuple[int, ...]:
        """Seeds that are not recorded."""


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far something is that some records wait for."""

    cells: Sequence[Planned]
    what: str  # "training", for example
    done: int
    total: int
    losses: Mapping[str, float] = dataclasses.field(default_factory=dict)
    success: Mapping[str, float] = dataclasses.field(default_factory=dict)
    recorded: Any | None = None  # the one record that is ready now
    diverged: bool = False
    lost: bool = False  # with the processes that worked on it

    @property
    def title(self) -> str:
        return f"{self.what} {title(self.cells)}"


OnProgress = Callable[[Progress], None]


@contextmanager
def reported_if_failed(
    cells: Sequence[Planned], what: str, total: int, on_progress: OnProgress
) -> Iterator[None]:
    """Work that diverges or is lost is over, too: whoever listens learns it."""
    try:
        yield
    except (Diverged, Lost) as error:
        diverged, lost = isinstance(error, Diverged), isinstance(error, Lost)
        on_progress(Progress(cells, what, total, total, diverged=diverged, lost=lost))
        raise


def title(cells: Sequence[Planned]) -> str:
    labels = _few(dict.fromkeys(cell.label for cell in cells))
    return f"{labels} on {_few(dict.fromkeys(cell.group.label for cell in cells))}"


def _few(names: Iterable[str]) -> str:
    first, *others = names
    return ", ".join([first, *others]) if len(others) < 2 else f"{first} and {len(others)} more"


class Experiment(Protocol):
    @property
    def kind(self) -> str:
        """By which it is presented."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    @property
    def groups(self) -> Sequence[str]: ...

    @property
    def columns(self) -> Sequence[Column]: ...

    @property
    def home(self) -> str:
        """The folder below `bench` that its records go to if no other one is named."""

    @property
    def unit(self) -> str:
        """What a record is called."""

    @property
    def options(self) -> Collection[str]:
        """Those of `OPTIONS` that it takes."""

    def plan(self, folder: Path, request: Request, prepare: Prepare) -> Sequence[Any]:
        """All records that are wanted, each a `Planned`."""

    def notes(self, planned: Sequence[Any]) -> Sequence[str]:
        """What there is to say before anything runs, such as how long it may take. Some may be
        planned by others of its kind that run together with it.
        """

    def job(self, planned: Any) -> Job:
        """What is missing of a record, as a description."""

    def ready(self, job: Job) -> Any:
        """A description as a `Planned` again, in whichever process."""

    def run(self, planned: Sequence[Any], folder: Path, on_progress: OnProgress) -> list[str]:
        """Make what is missing, also of others of its kind. Returns what diverged or was lost,
        which stops nothing else.
        """

    def brief(self, record: Any) -> str:
        """A record in a few figures."""

    def read(self, folder: Path) -> Sequence[Any]:
        """The records of a folder that it is about, or is compared with."""

    def claims(self, found: Sequence[Any]) -> list[Verdict]:
        """What the paper concludes, checked from records alone."""


class OfSuite:
    """An experiment that a suite describes: by its name, on its groups, with its columns."""

    suite: Any

    @property
    def name(self) -> str:
        return str(self.suite.name)

    @property
    def summary(self) -> str:
        return str(self.suite.summary)

    @property
    def groups(self) -> Sequence[str]:
        return tuple(self.suite.groups)

    @property
    def columns(self) -> Sequence[Column]:
        return tuple(self.suite.columns)


def together(
    experiments: Sequence[Experiment], plans: Sequence[Sequence[Any]]
) -> tuple[list[Any], list[Job]]:
    """All that some experiments have planned, and the jobs for what is missing. What several of
    them miss is there once, as the first of them calls it.
    """
    wanted: list[Any] = []
    jobs: dict[str, Job] = {}
    for each, planned in zip(experiments, plans, strict=True):
        for cell in planned:
            if cell.missing:
                job = each.job(cell)
                described = json.dumps([job.about, job.seeds], sort_keys=True)
                if described in jobs:
                    continue
                jobs[described] = job
            wanted.append(cell)
    return wanted, list(jobs.values())


class Executor(Protocol):
    def run(self, jobs: Sequence[Job], folder: Path, on_progress: OnProgress) -> list[str]:
        """Make what jobs describe, each recorded in the folder as soon as it is done. Returns what
        diverged.
        """


class LocalExecutor:
    """All jobs in this process, those of a kind together, as it shares the process out between
    device and cores.
    """

    def run(self, jobs: Sequence[Job], folder: Path, on_progress: OnProgress) -> list[str]:
        return run_jobs(jobs, folder, on_progress)


def run_jobs(
    jobs: Sequence[Job],
    folder: Path,
    on_progress: OnProgress,
    placed: Callable[[Any], Experiment] = lambda experiment: experiment,
) -> list[str]:
    """Make what jobs describe, those of a kind together, by experiments that `placed` may have told
    where to do so.
    """
    by_kind: dict[str, list[Job]] = {}
    for job in jobs:
        by_kind.setdefault(get(job.experiment).kind, []).append(job)
    failures = []
    for mine in by_kind.values():
        planned = [get(job.experiment).ready(job) for job in mine]
        failures += placed(get(mine[0].experiment)).run(planned, folder, on_progress)
    return failures


_EXPERIMENTS: dict[str, Experiment] = {}


def register(experiment: Experiment) -> None:
    """Make an experiment known to `goat bench` and `goat list` under its name."""
    if experiment.name in _EXPERIMENTS:
        raise GoatError(
            f"an experiment named '{experiment.name}' already exists; choose another name"
        )
    _EXPERIMENTS[experiment.name] = experiment


def experiments() -> dict[str, Experiment]:
    return dict(_EXPERIMENTS)


def get(name: str) -> Experiment:
    if name not in _EXPERIMENTS:
        raise unknown("suite", name, _EXPERIMENTS)
    return _EXPERIMENTS[name]
