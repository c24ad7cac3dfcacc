"""The paper's two experiments on online fine-tuning as data, and what runs them.

FOLDER/offline/GROUP--ALGORITHM/       agents trained on the group's data, shared by both suites
       SUITE/GROUP--LABEL/             how they went on (`goatrl.runs.online.OnlineRun`)
       SUITE--GROUP--LABEL.parquet     the record: all that tables and figures need
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from goatrl import algorithms, tasks
from goatrl.data.problems import open_problem
from goatrl.disk import checkpoint
from goatrl.experiments import curves, records
from goatrl.experiments.claims import Evaluated, Outcome, Verdict, above, evaluated, verdict
from goatrl.experiments.columns import Column
from goatrl.experiments.curves import RANDOM, Curve
from goatrl.experiments.experiment import OnProgress, Progress, reported_if_failed
from goatrl.robots.workers import Lost
from goatrl.runs import finetune
from goatrl.runs.offline import Run, RunConfig, configure
from goatrl.runs.online import OnlinePlan, OnlineRun
from goatrl.tasks import TaskGroup
from goatrl.training.offline import Diverged
from goatrl.types import Algorithm, unknown

FASTER = (
    "GOAT's initialisation reaches the random initialisation's final success in fewer "
    "environment steps"
)
MOST = (
    "most agents trained offline get to where random networks end in fewer environment steps "
    "than these"
)
LEADS = "GOAT has the highest success over the whole run"
HIGHEST = "GOAT ends higher than all others that go on by their own algorithm"
OFF_POLICY = "DDPG+HER gives every agent a higher success over the whole run than its own algorithm"


@dataclasses.dataclass(frozen=True)
class FinetuningSuite:
    name: str
    summary: str
    by: str  # how agents go on: by ddpg_her, or by their own algorithm
    columns: tuple[Column, ...]
    claims: tuple[str, ...]
    groups: tuple[str, ...] = ("push-left-right", "pick-left-right")

    def order(self, found: Iterable[Curve]) -> list[Curve]:
        """The suite's own among some curves, by group, in the order of its columns; then the user's
        own columns.
        """
        places = {column.label: place for place, column in enumerate(self.columns)}
        mine = [curve for curve in found if curve.suite == self.name and curve.group in self.groups]
        return sorted(
            mine,
            key=lambda c: (self.groups.index(c.group), places.get(c.label, len(places)), c.label),
        )


GOAT, WGCSL, CQL = Column("GOAT", "goat"), Column("WGCSL", "wgcsl"), Column("CQL+HER", "cql_her")
MARWIL, GCSL = Column("MARWIL+HER", "marwil_her"), Column("GCSL", "gcsl")
SUITES = {
    suite.name: suite
    for suite in (
        FinetuningSuite(
            "finetune-ddpg",
            "Agents trained offline, and random networks, go on online by DDPG+HER (the paper "
            "shows a figure, no numbers).",
            by="ddpg_her",
            columns=(GOAT, WGCSL, CQL, MARWIL, GCSL, Column(RANDOM, RANDOM)),
            claims=(FASTER, MOST, LEADS),
        ),
        FinetuningSuite(
            "finetune-own",
            "Agents trained offline go on online, each by its own algorithm (appendix; the paper "
            "shows a figure, no numbers).",
            by="own",
            columns=(GOAT, WGCSL, MARWIL, GCSL),
            claims=(FASTER, HIGHEST, OFF_POLICY),
        ),
    )
}


@dataclasses.dataclass(frozen=True, eq=False)
class PlannedCurve:
    """A curve that is wanted, and the record of it, if there is one."""

    suite: FinetuningSuite
    label: str
    group: TaskGroup
    offline: RunConfig | None  # none for random networks, and for what is recorded
    about: Mapping[
        str, Any
    ]  # all that decides it, but the checksum of a checkpoint that may not be there yet
    recorded: Curve | None

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(self.about["seeds"])

    @property
    def missing(self) -> tuple[int, ...]:
        return () if self.recorded else self.seeds

    @property
    def episodes(self) -> int:
        return int(self.about["episodes"])

    def agent(self) -> Algorithm:
        """As it begins: of its own algorithm, or random networks."""
        members = self.random_plan().members if self.offline is None else self.offline.members()
        return members[0][0]

    def random_plan(self) -> OnlinePlan:
        return finetune.random_plan(self.group.name, self.seeds, self.episodes)


def plan(
    suite: FinetuningSuite,
    folder: Path,
    *,
    seeds: int,
    groups: Sequence[str] = (),
    columns: Sequence[Column] = (),
    data: Mapping[str, Path] | None = None,
    updates: int | None = None,
    episodes: int = finetune.EPISODES,
    prepare: Callable[[Sequence[str]], None] = lambda groups: None,
) -> list[PlannedCurve]:
    """All curves of a suite, in its order, after the choice of groups and columns.

    `prepare` is told the groups whose own datasets will be opened, before they are; where all
    curves are recorded none is.
    """
    data, chosen, columns = data or {}, groups or suite.groups, columns or suite.columns
    for name in (*groups, *data):
        if name not in suite.groups:
            raise unknown(f"group of {suite.name}", name, suite.groups)
    present = {
        (curve.group, curve.label): curve
        for curve in curves.read_all(folder)
        if curve.suite == suite.name
    }
    trained = [column for column in columns if column.algorithm != RANDOM]
    opened = [
        name
        for name in chosen
        if any(name in data or (name, column.label) not in present for column in trained)
    ]
    prepare([name for name in opened if name not in data])
    planned = []
    for name in chosen:
        problem = open_problem(name, data.get(name)) if name in opened else None
        for column in columns:
            offline = None
            if column.algorithm == RANDOM:
                about = finetune.random_plan(name, range(seeds), episodes).about
            elif problem is None:
                about = _asked_for(present[name, column.label], seeds, updates, episodes)
            else:
                offline = configure(
                    column.algorithm,
                    problem,
                    data=data.get(name),
                    seeds=tuple(range(seeds)),
                    updates=updates,
                )
                about = finetune.describe(offline, suite.by, episodes)
            about = json.loads(json.dumps(about))  # as records hold it
            recorded = present.get((name, column.label))
            if recorded is not None:
                episodes_of = recorded.config["episodes"]
                hint = "" if episodes_of == episodes else f"add --episodes {episodes_of}, or "
                recorded.identity.require(
                    curves.identity(about),
                    f"{column.label} on {name} in {folder}",
                    f"{hint}choose another --out",
                )
            planned.append(
                PlannedCurve(suite, column.label, tasks.get(name), offline, about, recorded)
            )
    return planned


def _asked_for(recorded: Curve, seeds: int, updates: int | None, episodes: int) -> dict[str, Any]:
    """A recorded curve's configuration as far as it can be known without its dataset: with the
    numbers that are asked for.
    """
    stored = dict(recorded.config)
    origin = stored["from"] if updates is None else stored["from"] | {"updates": updates}
    revisions = {name: algorithms.get(name).revision for name in stored["revisions"]}
    asked_for = {"seeds": list(range(seeds)), "episodes": episodes, "revisions": revisions}
    return stored | {"from": origin} | asked_for


def run(planned: Iterable[PlannedCurve], folder: Path, on_progress: OnProgress) -> list[str]:
    """Make what is not recorded, one curve after the other. Returns what diverged or was lost,
    which stops no other curve.
    """
    failures = []
    for cell in planned:
        if cell.recorded is None:
            try:
                _run(cell, folder, on_progress)
            except (Diverged, Lost) as error:
                failures.append(f"{cell.label} on {cell.group.label}: {error}")
    return failures


def _run(cell: PlannedCurve, folder: Path, on_progress: OnProgress) -> None:
    made_with = {}
    if cell.offline is None:
        online_plan = cell.random_plan()
    else:
        trained = _trained(cell, folder, on_progress)
        made_with["offline"] = checkpoint.describe(trained.checkpoint_path)["versions"]
        online_plan = finetune.plan(trained, cell.suite.by, episodes=cell.episodes)
    online = OnlineRun(
        folder / cell.suite.name / f"{cell.group.name}--{records.file_name(cell.label)}"
    )
    _go_on(cell, online, online_plan, on_progress)
    made_with["online"] = checkpoint.describe(online.checkpoint_path)["versions"]
    found = online.curves()
    steps = [step for step, _ in found[cell.seeds[0]]]
    success = np.array([[evaluated for _, evaluated in found[seed]] for seed in cell.seeds])
    config = json.loads(json.dumps(online_plan.about))
    curve = Curve(
        cell.suite.name,
        cell.group.name,
        cell.label,
        config,
        made_with,
        cell.seeds,
        np.array(steps),
        success,
    )
    curves.write(folder, curve)
    on_progress(
        Progress([cell], "fine-tuning", online_plan.rounds, online_plan.rounds, recorded=curve)
    )


def _trained(cell: PlannedCurve, folder: Path, on_progress: OnProgress) -> Run:
    """The run of `goat train` that the agents come from, after training what is missing of it."""
    assert cell.offline is not None
    total = cell.offline.updates
    trained = Run(folder / "offline" / f"{cell.group.name}--{cell.offline.algorithm}")
    trained.prepare(cell.offline)
    if trained.step() < total:
        on_progress(Progress([cell], "training", trained.step(), total))
        with reported_if_failed([cell], "training", total, on_progress):
            trained.train(
                cell.offline,
                trained.problem(),
                lambda step, losses: on_progress(Progress([cell], "training", step, total, losses)),
            )
    return trained


def _go_on(
    cell: PlannedCurve, online: OnlineRun, plan: OnlinePlan, on_progress: OnProgress
) -> None:
    online.prepare(plan)
    on_progress(Progress([cell], "fine-tuning", online.rounds(), plan.rounds))
    latest: dict[str, float] = {}
    with reported_if_failed([cell], "fine-tuning", plan.rounds, on_progress):
        for report in online.train(plan):
            told = {"exploring": report.explored, "without noise": report.evaluated}
            latest |= {name: success for name, success in told.items() if success is not None}
            losses, success = report.losses, dict(latest)
            on_progress(Progress([cell], "fine-tuning", report.round, plan.rounds, losses, success))


Here = Mapping[str, Mapping[str, Curve]]  # suite → label → curve, in one group
FromCurves = tuple[
    Evaluated, Sequence[Curve]
]  # what became of a claim, and the curves that decided it
UNKNOWN: FromCurves = (Outcome.NOT_CHECKED, "not all of its curves are recorded"), ()


def check(suite: FinetuningSuite, recorded: Sequence[Curve]) -> list[Verdict]:
    """Every claim of a suite for each of its groups, from records alone: its own, and what it
    is compared with.
    """
    random, verdicts = curves.references(recorded), []
    found = {each.name: each.order(recorded) for each in SUITES.values()}
    for claim in suite.claims:
        for group in suite.groups:
            here = {
                name: {curve.label: curve for curve in mine if curve.group == group}
                for name, mine in found.items()
            }
            found_out, used = _EVALUATORS[claim](suite, here, random.get(group)) or UNKNOWN
            verdicts.append(
                verdict(
                    f"{tasks.get(group).label}: {claim}",
                    found_out,
                    (len(curve.seeds) for curve in used),
                )
            )
    return verdicts


def _of_all(suite: FinetuningSuite, here: Here) -> dict[str, Curve] | None:
    """The curves of all agents of a suite that were trained offline, if all are recorded and can be
    compared.
    """
    mine = [
        here[suite.name].get(column.label) for column in suite.columns if column.label != RANDOM
    ]
    found = {
        curve.label: curve
        for curve in mine
        if curve is not None and mine[0] is not None and curve.comparable(mine[0])
    }
    return found if len(found) == len(mine) else None


def _faster_than_random(
    suite: FinetuningSuite, here: Here, random: Curve | None
) -> FromCurves | None:
    goat = here[suite.name].get("GOAT")
    if goat is None or random is None or not goat.comparable(random):
        return None
    ours, theirs = (curves.steps_to(each, random) for each in (goat, random))
    level = (
        f"random ends at {100 * curves.final(random.mean):.1f} %, GOAT at "
        f"{100 * curves.final(goat.mean):.1f} %"
    )
    when = ", ".join(
        f"{name} {curves.span(curves.interval(steps))}"
        for name, steps in (("GOAT", ours), (RANDOM, theirs))
    )
    return evaluated(ours < theirs, f"{level}; environment steps to get there: {when}"), (
        goat,
        random,
    )


def _most_are_faster(suite: FinetuningSuite, here: Here, random: Curve | None) -> FromCurves | None:
    mine = _of_all(suite, here)
    if mine is None or random is None or not mine["GOAT"].comparable(random):
        return None
    steps = {
        label: curves.steps_to(each, random) for label, each in {**mine, RANDOM: random}.items()
    }
    faster = np.sum([steps[label] < steps[RANDOM] for label in mine], axis=0)
    numbers = ", ".join(
        f"{label} {curves.span(curves.interval(values))}" for label, values in steps.items()
    )
    return evaluated(faster > len(mine) / 2, f"environment steps: {numbers}"), (
        *mine.values(),
        random,
    )


def _ends_highest(suite: FinetuningSuite, here: Here, random: Curve | None) -> FromCurves | None:
    return _goat_leads(_of_all(suite, here), curves.final)


def _highest_overall(suite: FinetuningSuite, here: Here, random: Curve | None) -> FromCurves | None:
    return _goat_leads(_of_all(suite, here), curves.overall)


def _goat_leads(
    mine: Mapping[str, Curve] | None, measure: Callable[[np.ndarray], np.ndarray]
) -> FromCurves | None:
    if mine is None or len(mine) == 1:  # nobody to lead
        return None
    rates = {label: measure(curves.with_resamples(curve)) for label, curve in mine.items()}
    higher = {
        label: above(rates["GOAT"], values) for label, values in rates.items() if label != "GOAT"
    }
    numbers = ", ".join(f"{label} {_percent(values)}" for label, values in rates.items())
    each = ", ".join(f"{label} in {100 * true[1:].mean():.0f} %" for label, true in higher.items())
    return evaluated(np.all(list(higher.values()), axis=0), f"{numbers}; above {each}"), tuple(
        mine.values()
    )


def _better_by_ddpg(suite: FinetuningSuite, here: Here, random: Curve | None) -> FromCurves | None:
    mine, by_ddpg = _of_all(suite, here), here["finetune-ddpg"]
    if mine is None or not all(
        label in by_ddpg and by_ddpg[label].comparable(curve) for label, curve in mine.items()
    ):
        return None
    pairs = {label: (by_ddpg[label], curve) for label, curve in mine.items()}
    rates = {
        label: [curves.overall(curves.with_resamples(each)) for each in pair]
        for label, pair in pairs.items()
    }
    numbers = ", ".join(
        f"{label} {_percent(ddpg)} and {_percent(own)}" for label, (ddpg, own) in rates.items()
    )
    found = evaluated(
        np.all([above(*pair) for pair in rates.values()], axis=0),
        f"by DDPG+HER and by its own: {numbers}",
    )
    return found, [curve for pair in pairs.values() for curve in pair]


def _percent(rates: np.ndarray) -> str:
    """A rate with its interval, from the mean curve and its resamples."""
    sure = curves.interval(rates)
    return f"{100 * sure.value:.1f} % [{100 * sure.low:.1f}–{100 * sure.high:.1f}]"


_EVALUATORS: Mapping[str, Callable[[FinetuningSuite, Here, Curve | None], FromCurves | None]] = {
    FASTER: _faster_than_random,
    MOST: _most_are_faster,
    LEADS: _highest_overall,
    HIGHEST: _ends_highest,
    OFF_POLICY: _better_by_ddpg,
}
