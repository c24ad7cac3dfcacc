"""Tables of fine-tuning, and what the page shows of it."""

from __future__ import annotations

import dataclasses
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from goatrl import tasks
from goatrl.data.cache import checksums
from goatrl.experiments import curves, finetuning
from goatrl.experiments.claims import Verdict
from goatrl.experiments.curves import Curve, CurveSummary
from goatrl.experiments.experiment import Experiment as AnyExperiment
from goatrl.experiments.experiment import Planned
from goatrl.experiments.finetuning import FinetuningSuite
from goatrl.experiments.statistics import Interval, in_order
from goatrl.report.presentation import Json, Published
from goatrl.report.shared import as_typed, claims, experiment_name, merged_versions, page_part, span
from goatrl.report.tables import plain
from goatrl.report.text import Csv, in_markdown
from goatrl.runs import finetune
from goatrl.tasks import TaskGroup

HEADINGS = ("at first\n(%)", "in the end\n(%)", "steps to where\nrandom ends", "seeds\nthere")
# Places in the palette of figures and page: the same algorithm has the same colour in both suites,
# random networks are grey.
TONES = {"GOAT": 0, "WGCSL": 1, "CQL+HER": 2, "MARWIL+HER": 4, "GCSL": 5, curves.RANDOM: 3}


def tones(labels: Iterable[str]) -> dict[str, int]:
    """Label → place in the palette; the user's own columns come after the paper's."""
    found = list(dict.fromkeys(labels))
    others = [label for label in found if label not in TONES]
    return {
        label: TONES[label] if label in TONES else len(TONES) + others.index(label)
        for label in found
    }


def _by_group(summaries: Sequence[CurveSummary]) -> dict[str, list[CurveSummary]]:
    found: dict[str, list[CurveSummary]] = {}
    for each in summaries:
        found.setdefault(each.group, []).append(each)
    return found


def _where_random_ends(rows: Sequence[CurveSummary]) -> str:
    level = next((each.level for each in rows if each.level is not None), None)
    return "random is not recorded" if level is None else f"random ends at {100 * level:.1f} %"


def _texts(each: CurveSummary) -> list[str]:
    there = sum(steps != curves.NEVER for steps in each.each)
    sure = (
        f" [{100 * each.final.low:.1f}–{100 * each.final.high:.1f}]" if len(each.seeds) > 1 else ""
    )  # one seed has no spread
    return [
        f"{100 * each.start.value:.1f}",
        f"{100 * each.final.value:.1f}{sure}",
        "–" if each.steps is None else curves.span(each.steps),
        "–" if each.steps is None else f"{there} of {len(each.seeds)}",
    ]


def terminal(summaries: Sequence[CurveSummary]) -> Table:
    """Narrow enough for 80 columns."""
    drawn = plain()
    drawn.add_column("", no_wrap=True)
    for heading in HEADINGS:
        drawn.add_column(heading, justify="right", no_wrap=True)
    for group, rows in _by_group(summaries).items():
        drawn.add_row(
            f"[bold]{tasks.get(group).label}[/bold]",
            "",
            "",
            f"[dim]{_where_random_ends(rows)}[/dim]",
            "",
        )
        for place, each in enumerate(rows, start=1):
            drawn.add_row(
                *map(escape, (f"  {each.label}", *_texts(each))), end_section=place == len(rows)
            )
    return drawn


def markdown(
    suite: FinetuningSuite, summaries: Sequence[CurveSummary], verdicts: Sequence[Verdict]
) -> str:
    """A table for each group, and the claims."""
    parts = [
        f"# {suite.name}\n\n{suite.summary} Success without noise in all tasks of the group, mean "
        "over seeds [95 % bootstrap "
        f"interval]. The end: mean of the last {curves.LAST} evaluations. Steps: in the "
        "environment, of one seed, up to the first "
        "evaluation that is as high as random networks are in the end.\n"
    ]
    for group, rows in _by_group(summaries).items():
        lines = [f"## {tasks.get(group).label}: {_where_random_ends(rows)}\n"]
        lines += [
            f"| initialisation | {' | '.join(HEADINGS)} |".replace("\n", " "),
            f"|---|{'---:|' * len(HEADINGS)}",
        ]
        lines += [f"| {in_markdown(each.label)} | {' | '.join(_texts(each))} |" for each in rows]
        parts.append("\n".join(lines) + "\n")
    parts.append(claims(verdicts))
    return "\n".join(parts)


def to_csv(found: Sequence[Curve], summaries: Sequence[CurveSummary]) -> str:
    """One row for each mean curve, with intervals, and one for each seed. Steps are empty where the
    level is not reached.
    """
    buffer = io.StringIO()
    writer = Csv(buffer)
    sure = [f"{name}{end}" for name in ("start", "final", "steps") for end in ("", "_low", "_high")]
    writer.writerow(["group", "label", "seed", *sure, "random_final"])
    for curve, each in zip(found, summaries, strict=True):
        level = "" if each.level is None else f"{each.level:.4f}"
        steps = (
            ["", "", ""]
            if each.steps is None
            else [_steps(value) for value in dataclasses.astuple(each.steps)]
        )
        rates = [
            f"{value:.4f}"
            for interval in (each.start, each.final)
            for value in dataclasses.astuple(interval)
        ]
        writer.writerow([curve.group, curve.label, "mean", *rates, *steps, level])
        for place, seed in enumerate(curve.seeds):
            start, end = (
                f"{curve.success[place, 0]:.4f}",
                f"{curves.final(curve.success[place]):.4f}",
            )
            reached = _steps(each.each[place]) if each.each else ""
            writer.writerow(
                [curve.group, curve.label, seed, start, "", "", end, "", "", reached, "", "", level]
            )
    return buffer.getvalue()


def _steps(value: float) -> str:
    return "" if value == curves.NEVER else f"{value:.0f}"


def publish(
    experiment: AnyExperiment, folder: Path, planned: Sequence[Planned]
) -> Published | None:
    recorded = experiment.read(folder)
    suite = finetuning.SUITES[experiment.name]
    found, verdicts = suite.order(recorded), experiment.claims(recorded)
    if not found:
        return None
    summaries = curves.summaries(found, curves.references(recorded))
    heading = "success without noise[/bold], mean over seeds \\[95 % interval]"
    return Published(
        (f"\n[bold]{suite.name}: {heading}\n", terminal(summaries)),
        {
            f"{suite.name}.md": markdown(suite, summaries, verdicts),
            f"{suite.name}.csv": to_csv(found, summaries),
        },
        verdicts,
        (f"draw the curves: goat figure finetune {folder} --suite {suite.name} --out curves.pdf",),
    )


# The page

script = page_part("finetune.js")


def sections(folders: Sequence[Path]) -> list[Json]:
    return [describe(each) for folder in folders for each in experiments(folder)]


@dataclasses.dataclass(frozen=True, eq=False)
class Experiment:
    """What one folder holds of one suite of fine-tuning."""

    name: str
    suite: FinetuningSuite
    curves: Sequence[Curve]
    recorded: Sequence[
        Curve
    ]  # all of the folder, whichever suite they are of: what it is compared with

    @property
    def labels(self) -> list[str]:
        return in_order(self.suite.columns, (curve.label for curve in self.curves))

    @property
    def groups(self) -> list[TaskGroup]:
        return [tasks.get(name) for name in dict.fromkeys(curve.group for curve in self.curves)]


def experiments(folder: Path) -> list[Experiment]:
    """Of one folder of records, in the order of the suites."""
    found = curves.read_all(folder)
    made = [(suite, suite.order(found)) for suite in finetuning.SUITES.values()]
    return [
        Experiment(experiment_name(folder, suite.name), suite, mine, found)
        for suite, mine in made
        if mine
    ]


def describe(experiment: Experiment) -> Json:
    """All that the page shows of it."""
    suite, found = experiment.suite, experiment.curves
    return {
        "kind": "finetune",
        "name": experiment.name,
        "suite": suite.name,
        "about": suite.summary,
        "datasets": len(suite.groups),
        "algorithms": experiment.labels,
        "tones": tones(experiment.labels),
        "random": curves.RANDOM,
        "last": curves.LAST,
        "seeds": span(len(curve.seeds) for curve in found),
        "steps": int(sum(len(curve.seeds) * curve.steps[-1] for curve in found)),
        "episodes": sum(curve.success.size * curve.config["evaluated_episodes"] for curve in found),
        "verdicts": [
            dataclasses.asdict(verdict) for verdict in finetuning.check(suite, experiment.recorded)
        ],
        "groups": [_group(experiment, group) for group in experiment.groups],
        "reproduction": _reproduction(experiment),
    }


def _group(experiment: Experiment, group: TaskGroup) -> Json:
    mine = [curve for curve in experiment.curves if curve.group == group.name]
    summaries = curves.summaries(mine, curves.references(experiment.recorded))
    level = next((each.level for each in summaries if each.level is not None), None)
    return {
        "name": group.name,
        "label": group.label,
        "tasks": [{"name": task.name, "split": task.split} for task in group.tasks],
        "level": None if level is None else round(100 * level, 1),
        "rows": [_row(curve, each) for curve, each in zip(mine, summaries, strict=True)],
        "settings": _settings(mine),
    }


def _row(curve: Curve, summary: CurveSummary) -> Json:
    low, high = curves.bounds(curves.resampled(curve))
    return {
        "label": curve.label,
        "seeds": curve.seeds,
        "steps": curve.steps.tolist(),
        **{
            name: _percent(line)
            for name, line in (("mean", curve.mean), ("low", low), ("high", high))
        },
        "start": _rate(summary.start),
        "final": _rate(summary.final),
        "reached": None
        if summary.steps is None
        else {name: _whole(v) for name, v in dataclasses.asdict(summary.steps).items()},
        "each": [_whole(steps) for steps in summary.each],
    }


def _percent(values: np.ndarray) -> list[float]:
    return (100 * values).round(1).tolist()


def _rate(interval: Interval) -> Json:
    return {name: round(100 * value, 1) for name, value in dataclasses.asdict(interval).items()}


def _whole(steps: float) -> int | None:
    """Steps; None for never, which JSON does not know."""
    return int(steps) if math.isfinite(steps) else None


# Reproduction


def _flat(config: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """A configuration, line by line."""
    found: dict[str, str] = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}.")
        elif value != "":
            found[before + name] = (
                ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            )
    return found


def _settings(mine: Sequence[Curve]) -> list[Json]:
    rows: dict[str, dict[str, str]] = {}
    for curve in mine:
        for name, value in _flat({**curve.config, "made with": curve.versions}).items():
            rows.setdefault(name, {})[curve.label] = value
    return [{"name": name, "of": of} for name, of in rows.items()]


def _reproduction(experiment: Experiment) -> Json:
    datasets = []
    for group in experiment.groups:
        mine = [curve.config for curve in experiment.curves if curve.group == group.name]
        files = sorted(
            {config["from"]["data"] for config in mine if config["from"] != curves.RANDOM}
        )
        datasets.append(
            {
                "group": group.name,
                "dataset": files,
                "listed": files == [checksums().get(group.name)],
                "evaluation": sorted({config["evaluation"] for config in mine}),
            }
        )
    made_with = merged_versions(
        stage for curve in experiment.curves for stage in curve.versions.values()
    )
    return {"command": command(experiment), "datasets": datasets, "versions": made_with}


def command(experiment: Experiment) -> str:
    """What gives these records again; FILE stands for what records do not hold."""
    suite = experiment.suite
    configs = [(curve.group, curve.config) for curve in experiment.curves]
    trained = [
        (group, config["from"]) for group, config in configs if config["from"] != curves.RANDOM
    ]
    words = ["goat", "bench", suite.name]
    if len(experiment.groups) < len(suite.groups):
        words += ["--groups", *(group.name for group in experiment.groups)]
    if experiment.labels != [column.label for column in suite.columns]:
        random = {"algorithm": curves.RANDOM}
        named = [
            random if config["from"] == curves.RANDOM else config["from"] for _, config in configs
        ]
        words += [
            "--algorithms",
            *dict.fromkeys(as_typed(each["algorithm"], each.get("source", "")) for each in named),
        ]
    words += ["--seeds", str(max(len(config["seeds"]) for _, config in configs))]
    updates = sorted(
        {
            origin["updates"]
            for group, origin in trained
            if origin["updates"] != tasks.get(group).settings.updates
        }
    )
    episodes = sorted(
        {config["episodes"] for _, config in configs if config["episodes"] != finetune.EPISODES}
    )
    words += [word for each in updates for word in ("--updates", str(each))]
    words += [word for each in episodes for word in ("--episodes", str(each))]
    other = dict.fromkeys(
        group
        for group, origin in trained
        if origin["data"] != checksums().get(group, origin["data"])
    )
    return " ".join([*words, *(["--data", *(f"{name}=FILE" for name in other)] if other else [])])
