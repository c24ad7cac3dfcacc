"""goat bench"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from rich.markup import escape
from tyro.conf import Positional, arg

from goatrl.cli import executors
from goatrl.cli.console import console, dataset_files, plural
from goatrl.cli.datasets import ensure
from goatrl.cli.live_table import LiveTable, live
from goatrl.disk.files import locked, write_text
from goatrl.experiments import experiment, kinds, spent  # noqa: F401 (they register themselves)
from goatrl.experiments.claims import Outcome, Verdict
from goatrl.experiments.columns import names_of
from goatrl.experiments.experiment import (
    Executor,
    Experiment,
    Planned,
    Progress,
    Request,
)
from goatrl.experiments.spent import Breakdown, Spent
from goatrl.report import kinds as shown  # noqa: F401 (they register themselves)
from goatrl.report import presentation
from goatrl.runs.folder import Interrupted
from goatrl.training.offline import Diverged
from goatrl.types import GoatError


@dataclasses.dataclass(frozen=True)
class Bench:
    """Run experiments of the paper and compare the results with the published numbers. Cells that
    are already recorded are not run again; a cell that several suites share is run once.

    Examples:
      goat bench pointreach
      goat bench ablation-value ablation-rnd
      goat bench pointreach --groups pointreach-expert-10 --algorithms goat bc --seeds 3
      goat bench frontier --groups slide-left-right --algorithms goat_tau "frame, mirror"
      goat bench pointreach --data pointreach-expert-10=clean.pkl --out results/theirs
      goat bench finetune-ddpg --groups push-left-right
      goat bench training-time
      goat bench paper --executor ray --address auto
    """

    suites: Annotated[Positional[tuple[str, ...]], arg(metavar="SUITE [SUITE ...]")]
    """Suites from `goat list`. Several must keep their records in the same folder."""
    out: Annotated[Path | None, arg(metavar="FOLDER")] = None
    """The folder for records and tables. If omitted, bench/robots, bench/pointreach, bench/ogbench,
    bench/finetune or bench/training-time, depending on the suite. Suites that have cells in common
    can share a folder.
    """
    groups: tuple[str, ...] = ()
    """Run only these task groups."""
    algorithms: tuple[str, ...] = ()
    """Run only the columns of these algorithms, or with these headings. An algorithm that is not in
    the suite (a name or a file) becomes an additional column.
    """
    seeds: int = 5
    """Number of seeds (0, 1, …). Recorded seeds are not trained again."""
    data: tuple[str, ...] = ()
    """GROUP=FILE: a dataset file or minari:ID to use instead of the group's own. Several can be
    given.
    """
    updates: Annotated[int | None, arg(metavar="N")] = None
    """Number of updates, for a quick trial; the group's if omitted."""
    episodes: Annotated[int | None, arg(metavar="N")] = None
    """Number of episodes per seed (fine-tuning suites only)."""

    yes: bool = False
    """Make missing datasets without asking."""
    executor: executors.Name = "local"
    address: executors.Address = None

    def run(self) -> None:
        chosen = _compatible(self.suites)
        request = Request(
            seeds=self.seeds,
            groups=self.groups,
            algorithms=self.algorithms,
            data=dataset_files(self.data),
            updates=self.updates,
            episodes=self.episodes,
            executor="" if self.executor == "local" else self.executor,
        )
        for each in chosen:
            request.check(each)
            known = names_of(each.columns)
            if len(chosen) > 1 and (added := [n for n in self.algorithms if n not in known]):
                raise GoatError(
                    f"{', '.join(added)} would be an additional column of {each.name}, which "
                    "belongs to one suite; run one suite per command"
                )
        with executors.executing(self.executor, self.address) as executor:
            self._run(chosen, request, executor)

    def _run(self, chosen: Sequence[Experiment], request: Request, executor: Executor) -> None:
        first = chosen[0]
        folder = Path("bench") / first.home if self.out is None else self.out
        plans = [
            each.plan(folder, request, lambda groups: ensure(groups, self.yes)) for each in chosen
        ]
        for each, planned in zip(chosen, plans, strict=True):
            missing = sum(bool(cell.missing) for cell in planned)
            console.print(
                f"{each.name}: {plural(len(planned), each.unit)} of {plural(self.seeds, 'seed')}, "
                f"{missing} to run, records in {folder}"
            )
        wanted, jobs = experiment.together(chosen, plans)
        for note in first.notes(wanted):
            console.print(note)
        listener = Spent()
        with live(LiveTable(wanted, first.brief)) as table:

            def show(progress: Progress) -> None:
                listener.show(progress)
                table.show(progress)

            try:
                failures = executor.run(jobs, folder, show)
            except KeyboardInterrupt:
                raise Interrupted(
                    f"stopped; finished work is saved in {folder}; rerun the command to resume"
                ) from None
        taken = Breakdown.of(listener)
        for each, planned in zip(chosen, plans, strict=True):
            with locked(folder):  # tables of two commands are never older than their records
                publish(each, folder, planned)
        if jobs:
            for line in taken.lines():
                console.print(line, highlight=False, soft_wrap=True)
            spent.record(folder, {"executor": self.executor, **taken.to_json(jobs)})
        if failures:
            raise Diverged("; ".join(failures))


def _compatible(names: Sequence[str]) -> list[Experiment]:
    """Suites that can run in one command: of one kind, with records in one folder."""
    if not names:
        raise GoatError("specify a suite; `goat list` names them")
    first, *others = chosen = [experiment.get(name) for name in dict.fromkeys(names)]
    for other in others:
        if (other.kind, other.home) != (first.kind, first.home):
            raise GoatError(
                f"{first.name} and {other.name} cannot run together, as records of one go to "
                f"bench/{first.home}, of the other to bench/{other.home}; use two commands"
            )
    return chosen


def publish(chosen: Experiment, folder: Path, planned: Sequence[Planned]) -> None:
    """Print the tables and verdicts on all of an experiment's records in a folder, and write them
    beside the records.
    """
    published = presentation.get(chosen.kind).publish(chosen, folder, planned)
    if published is None:  # all have diverged
        return
    for each in published.shown:
        console.print(each, highlight=False, markup=True)
    print_verdicts(published.verdicts)
    for note in published.notes:
        console.print(note, highlight=False, markup=True)
    for name, text in published.files.items():
        write_text(folder / name, text)
    by_folder: dict[Path, list[str]] = {}
    for name in published.files:
        by_folder.setdefault((folder / name).parent, []).append(Path(name).name)
    for where, names in by_folder.items():
        console.print(f"wrote {', '.join(names)} to {where}", soft_wrap=True)


def print_verdicts(verdicts: Sequence[Verdict]) -> None:
    """Print the verdict on each claim; those with missing cells are counted."""
    colors = {Outcome.HELD: "green", Outcome.UNDECIDED: "yellow", Outcome.NOT_HELD: "red"}
    for verdict in verdicts:
        if verdict.outcome in colors:
            mark = f"[{colors[verdict.outcome]}]{verdict.outcome}[/{colors[verdict.outcome]}]"
            console.print(
                f"{mark}: {escape(f'{verdict.claim} ({verdict.evidence})')}",
                highlight=False,
                markup=True,
            )
    unchecked = sum(verdict.outcome == Outcome.NOT_CHECKED for verdict in verdicts)
    if unchecked == len(verdicts) and verdicts:
        console.print(
            f"run the whole suite to check its {plural(unchecked, 'claim')}, such as: "
            f"{verdicts[0].claim}"
        )
    elif unchecked:
        console.print(
            f"{unchecked} of {plural(len(verdicts), 'claim')} were not checked: they need cells "
            "that were not run"
        )
