"""goat report"""

import dataclasses
from pathlib import Path

from tyro.conf import Positional

from goatrl.cli.console import console
from goatrl.disk.files import write_atomically
from goatrl.report import webpage
from goatrl.types import GoatError


@dataclasses.dataclass(frozen=True)
class Report:
    """Put all records of a folder on one self-contained HTML page, with tables, plots, maps and the
    paper's numbers. Evaluated runs of `goat train` and `goat sweep` are compared on it.

    Images and clips in the folder `media` beside the records are embedded: GROUP--dataset.png,
    GROUP--ALGORITHM--uncertainty.png (from `goat figure uncertainty`), GROUP--ALGORITHM--TASK.mp4.

    Examples:
      goat report results
      goat report bench/robots --out paper.html
      goat report bench/robots runs
    """

    folders: Positional[tuple[Path, ...]]
    """Folders of records, runs, or folders that contain such folders."""
    out: Path = Path("report.html")
    """The HTML file to write."""

    def run(self) -> None:
        if not self.folders:
            raise GoatError("specify a folder of records or runs")
        html = webpage.page(*self.folders).encode()
        write_atomically(self.out, lambda file: file.write(html))
        console.print(f"wrote {self.out} ({len(html) / 1e6:.1f} MB); open it in a browser")
