"""Metrics of a run as CSV, appended while it trains; the first column counts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from goatrl.disk import files


def append(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Add rows, after the header if the file is new."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    if not path.exists():
        writer.writerow(header)
    writer.writerows(rows)
    files.append(path, buffer.getvalue())


def truncate(path: Path, last: int, first_columns: str) -> None:
    """Drop what was reported after `last`, the number of a checkpoint: it will be computed
    again.
    """
    if not path.exists():
        return
    # A row without an end is half a row, and half a number may be another number.
    header, *rows = path.read_text().rpartition("\n")[0].split("\n")
    if not header.startswith(first_columns):  # the disk was full before the first line was whole
        files.remove(path)
        return
    kept = [row for row in rows if row.split(",")[0].isdigit() and int(row.split(",")[0]) <= last]
    files.write_text(path, "\n".join([header, *kept]) + "\n")
