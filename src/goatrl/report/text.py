"""Text of records inside of other texts: a label may come from anybody, and stays a label."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import TextIO

# What begins a formula in a spreadsheet, but for a sign before a single word or number, such as
# "+HER" and "-0.5", which computes nothing.
_FORMULA = re.compile(r"(?![+-][\w.]+(e-\d+)?$)[=+\-@\t\r]")


def in_markdown(text: str) -> str:
    """Text in a cell of a table: no markup, no further cell, no further line."""
    return re.sub(r"[\\`|<>\[\]]", r"\\\g<0>", " ".join(text.split()))


def in_csv(text: str) -> str:
    """Text in a field: a spreadsheet shows it, and computes nothing."""
    return f"'{text}" if _FORMULA.match(text) else text


class Csv:
    """Rows of a CSV file."""

    def __init__(self, file: TextIO) -> None:
        self._writer = csv.writer(file, lineterminator="\n")

    def writerow(self, fields: Sequence[object]) -> None:
        self._writer.writerow([in_csv(each) if isinstance(each, str) else each for each in fields])
