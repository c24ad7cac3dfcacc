"""Metrics of a run as CSV, appended while it trains; the first column counts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from goatrl.disk.files import WriteError, write_text


def append(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Add rows, after the header if the file is new."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    if not path.exists():
        writer.writerow(header)
    writer.writerows(rows)
    try:
        with path.open("a") as file:
            file.write(buffer.getvalue())
    except OSError as error:
        raise WriteError(path, error) from error


def truncate(path: Path, last: int, first_columns: str) -> None:
    """Drop what was reported after `last`, the number of a checkpoint: it will be computed
    again.
    """
    if not path.exists():
        return
    header, *rows = path.read_text().splitlines() or [""]
    if not header.startswith(first_columns):  # the disk was full before the first line was whole
        path.unlink()
        return
    kept = [row for row in rows if row.split(",")[0].isdigit() and int(row.split(",")[0]) <= last]
    write_text(path, "\n".join([header, *kept]) + "\n")
