"""goat compare"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from goatrl.cli.console import console
from goatrl.disk.files import write_text
from goatrl.experiments import comparison
from goatrl.report import comparison as shown
from goatrl.report import figures
from goatrl.types import GoatError


@dataclasses.dataclass(frozen=True)
class Compare:
    """Compare runs of `goat train` in one table: what differs between them, success and return with
    95 % intervals, and how likely each is better than the first.

    Runs must be evaluated (`goat evaluate`), on the same tasks or in the same environment.

    Examples:
      goat compare runs/goat runs/w1
      goat compare runs/* --csv runs.csv --figure runs.png
    """

    runs: Positional[tuple[Path, ...]]
    """The folders of the runs; the others are compared with the first."""
    csv: Annotated[Path | None, arg(metavar="FILE")] = None
    """Write all numbers to this file, also those of every task."""
    figure: Annotated[Path | None, arg(metavar="FILE")] = None
    """Draw the comparison into this file (.png, .svg or .pdf)."""

    def run(self) -> None:
        if len(self.runs) < 2:
            raise GoatError("specify at least two runs to compare")
        found = show_comparison(self.runs)
        if self.csv is not None:
            write_text(self.csv, shown.to_csv(found))
            console.print(f"wrote {self.csv}")
        if self.figure is not None:
            figures.save(figures.comparison(found), self.figure)
            console.print(f"wrote {self.figure}")


def show_comparison(folders: Sequence[Path]) -> comparison.Comparison:
    """Print the table of some runs."""
    found = comparison.compare([comparison.read(folder) for folder in folders])
    for note in found.notes:
        console.print(f"note: {note}", highlight=False)
    for drawn in shown.terminal(found, console.width):
        console.print(drawn)
    console.print(shown.key(found), style="dim", highlight=False)
    return found
