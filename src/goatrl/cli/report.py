"""goat report"""

import dataclasses
from pathlib import Path

from tyro.conf import Positional

from goatrl.cli.console import console
from goatrl.disk.files import write_atomically
from goatrl.report import webpage


@dataclasses.dataclass(frozen=True)
class Report:
    """Make one HTML file of all records in a folder: tables, plots and maps beside the paper's
    numbers, to open anywhere.

    Pictures and clips in the folder `media` beside the records are put into it: GROUP--dataset.png,
    GROUP--ALGORITHM--uncertainty.png (of `goat figure uncertainty`), GROUP--ALGORITHM--TASK.mp4.

    Examples:
      goat report results
      goat report bench/robots --out paper.html
    """

    folder: Positional[Path]
    """A folder of records, or a folder of such folders."""
    out: Path = Path("report.html")
    """The page (.html)."""

    def run(self) -> None:
        html = webpage.page(self.folder).encode()
        write_atomically(self.out, lambda file: file.write(html))
        console.print(f"wrote {self.out} ({len(html) / 1e6:.1f} MB); open it in a browser")
