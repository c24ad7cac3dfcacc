"""goat bench training-time"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.progress import TaskID

from goatrl.cli.console import console, plural, progress_bar
from goatrl.disk.files import write_text
from goatrl.experiments import grid, timing
from goatrl.experiments.claims import Verdict
from goatrl.report import timing as times
from goatrl.runs.folder import Interrupted


def run(
    folder: Path, *, algorithms: Sequence[str], seeds: int, updates: int | None
) -> list[Verdict]:
    """Measure what is missing, and publish all that the folder holds. Returns verdicts."""
    planned = timing.plan(
        folder, grid.choose_columns(timing.SUITE.columns, algorithms), seeds=seeds, updates=updates
    )
    missing, wanted = (
        sum(each.recorded is None for each in planned),
        plural(len(planned), "algorithm"),
    )
    console.print(
        f"{timing.SUITE.name}: {wanted} of {plural(seeds, 'seed')}, {missing} to run, records in "
        f"{folder}"
    )
    with progress_bar() as bars:
        rows: dict[str, TaskID] = {}

        def show(each: timing.Planned, done: int) -> None:
            label = each.label
            if label not in rows:
                rows[label] = bars.add_task(
                    escape(label), total=1 + timing.CHUNKS, losses="compiling"
                )
            bars.update(
                rows[label],
                completed=done,
                visible=done <= timing.CHUNKS,
                losses="measuring" if done else "compiling",
            )

        try:
            timing.run(planned, folder, show)
        except KeyboardInterrupt:
            raise Interrupted(
                f"stopped; what is measured is in {folder}, and the same command goes on"
            ) from None
    return publish(folder)


def publish(folder: Path) -> list[Verdict]:
    """Print the table of all that a folder holds, and write it beside the records. Returns the
    verdicts.
    """
    found = timing.read_all(folder)
    verdicts = timing.check(found)
    console.print(f"\n[bold]{timing.SUITE.name}[/bold]: {times.heading(found)}\n", highlight=False)
    console.print(times.terminal(found))
    write_text(folder / f"{timing.SUITE.name}.md", times.markdown(found, verdicts))
    write_text(folder / f"{timing.SUITE.name}.csv", times.comma_separated(found))
    console.print(f"wrote {timing.SUITE.name}.md and {timing.SUITE.name}.csv to {folder}")
    return verdicts
