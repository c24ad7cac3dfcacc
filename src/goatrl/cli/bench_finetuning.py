"""goat bench of the suites of fine-tuning"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import jax
from rich.progress import Progress as Bars
from rich.progress import TaskID

from goatrl.cli.console import console, duration, losses, plural, progress_bar
from goatrl.cli.datasets import ensure
from goatrl.disk.files import write_text
from goatrl.experiments import curves, estimate, finetuning, grid
from goatrl.experiments.claims import Verdict
from goatrl.experiments.finetuning import Planned, Progress, Suite
from goatrl.report import finetuning as tuning
from goatrl.runs.folder import Interrupted


def run(
    suite: Suite,
    folder: Path,
    *,
    groups: Sequence[str],
    algorithms: Sequence[str],
    seeds: int,
    data: Mapping[str, Path],
    updates: int | None,
    episodes: int,
    yes: bool,
) -> tuple[list[Verdict], list[str]]:
    """Run what is missing, and publish all that the folder holds. Returns verdicts, and what
    diverged.
    """
    columns = grid.choose_columns(suite.columns, algorithms)
    planned = finetuning.plan(
        suite,
        folder,
        seeds=seeds,
        groups=groups,
        columns=columns,
        data=data,
        updates=updates,
        episodes=episodes,
        prepare=lambda missing: ensure(missing, yes),
    )
    missing = [cell for cell in planned if cell.recorded is None]
    console.print(
        f"{suite.name}: {plural(len(planned), 'curve')} of {plural(seeds, 'seed')}, "
        f"{len(missing)} to run, records in {folder}"
    )
    if missing:
        whole = duration(estimate.finetuning_seconds(missing))
        console.print(
            f"expected to take about {whole} here ({plural(episodes, 'episode')} of each seed "
            f"after training offline, {_device()})"
        )
    with progress_bar() as bars:
        try:
            failures = finetuning.run(planned, folder, Screen(bars).show)
        except KeyboardInterrupt:
            raise Interrupted(
                f"stopped; what is trained and recorded is in {folder}, and the same command goes "
                "on"
            ) from None
    return publish(suite, folder), failures


def _device() -> str:
    return jax.devices()[0].device_kind


class Screen:
    """A bar for what is being done; a line for every curve that is ready."""

    def __init__(self, bars: Bars) -> None:
        self.bars = bars
        self.rows: dict[tuple[Planned, str], TaskID] = {}
        self.started = time.monotonic()

    def show(self, progress: Progress) -> None:
        place, done = (progress.cell, progress.what), progress.done
        if place not in self.rows:
            self.rows[place] = self.bars.add_task(
                progress.title, total=progress.total, completed=done, losses="compiling"
            )
        self.bars.update(
            self.rows[place],
            completed=done,
            visible=done < progress.total,
            refresh=done == progress.total,
        )
        if progress.success or progress.losses:
            success = ", ".join(
                f"{name} {100 * rate:.0f} %" for name, rate in progress.success.items()
            )
            self.bars.update(self.rows[place], losses=success or losses(progress.losses))
        if progress.recorded is not None:
            minutes, mean = (time.monotonic() - self.started) / 60, progress.recorded.mean
            numbers = f"{100 * mean[0]:.1f} % at first, {100 * curves.final(mean):.1f} % in the end"
            what = f"{progress.cell.group.name}, {progress.cell.label}"
            console.print(f"{minutes:6.1f} min  {what}: {numbers}", highlight=False, markup=False)


def publish(suite: Suite, folder: Path) -> list[Verdict]:
    """Print the table of all that a folder holds of a suite, and write it beside the records.
    Returns the verdicts.
    """
    recorded = curves.read_all(folder)
    found, random = suite.order(recorded), curves.references(recorded)
    verdicts = finetuning.check(suite, recorded)
    if found:  # none, if all have diverged
        standings = curves.standings(found, random)
        console.print(
            f"\n[bold]{suite.name}: success without noise[/bold], mean over seeds \\[95 % "
            "interval]\n"
        )
        console.print(tuning.terminal(standings))
        write_text(folder / f"{suite.name}.md", tuning.markdown(suite, standings, verdicts))
        write_text(folder / f"{suite.name}.csv", tuning.comma_separated(found, standings))
        console.print(f"wrote {suite.name}.md and {suite.name}.csv to {folder}")
        console.print(
            f"draw the curves: goat figure finetune {folder} --suite {suite.name} --out curves.pdf",
            highlight=False,
        )
    return verdicts
