"""What the reports of all kinds of records share."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path

from goatrl.experiments.claims import Verdict
from goatrl.report.presentation import Json


def claims(verdicts: Sequence[Verdict]) -> str:
    """A list in Markdown."""
    return "## Claims\n\n" + "".join(
        f"- **{v.outcome}**: {v.claim} ({v.evidence})\n" for v in verdicts
    )


def merged_versions(found: Iterable[Mapping[str, str]]) -> dict[str, list[str]]:
    """Name → all versions that something was made with."""
    merged: dict[str, set[str]] = {}
    for each in found:
        for name, version in each.items():
            merged.setdefault(name, set()).add(version)
    return {name: sorted(versions) for name, versions in merged.items()}


def as_typed(algorithm: str, source: str) -> str:
    """An algorithm on the command line; FILE.py stands for the user's own file, which records do
    not hold.
    """
    return "FILE.py" if source else shlex.quote(algorithm)


def experiment_name(folder: Path, suite: str) -> str:
    """The suite's name, with that of its folder unless it begins like that."""
    where = folder.resolve().name
    return suite if suite.startswith(where) else f"{where} {suite}"


# Pictures and clips: ending → media type, and where the file says that it is one.
MEDIA = {
    ".png": ("image/png", slice(0, 8), b"\x89PNG\r\n\x1a\n"),
    ".mp4": ("video/mp4", slice(4, 8), b"ftyp"),
}


def is_media(path: Path) -> bool:
    """Whether a file beside records is a picture or a clip that may be embedded. No symbolic link
    is: it could name any file of whoever opens the records.
    """
    if path.suffix not in MEDIA or any(each.is_symlink() for each in (path, path.parent)):
        return False
    if not path.is_file():
        return False
    _, where, mark = MEDIA[path.suffix]
    with path.open("rb") as file:
        return file.read(where.stop)[where] == mark


def media_key(path: Path) -> str:
    """A picture or clip in the page's data."""
    return f"{path.parents[1].name}/{path.name}"


def page_part(name: str) -> str:
    """A file of which the page is made."""
    return (resources.files("goatrl") / "report" / "page" / name).read_text(encoding="utf-8")


def shown_metric(metric: str, full: float, decimals: int) -> Json:
    """How the page shows numbers of success, in percent, or of return, in steps at the goal.

    Args:
        metric: "success" or "return".
        full: The most that a number can be.
        decimals: Of the numbers as they are stored.
    """
    times = 100 if metric == "success" and full == 1 else 1
    return {
        "title": metric.capitalize(),
        "unit": "%" if metric == "success" else "steps",
        "full": full,
        "times": times,  # what a stored number is multiplied by
        "decimals": decimals - (2 if times == 100 else 0),
    }


def rounded(value: float | None, decimals: int) -> float | None:
    """As it is shown; JSON knows no nan."""
    return None if value is None or not math.isfinite(value) else round(value, decimals)


def span(counts: Iterable[int]) -> str:
    low, *rest = sorted(set(counts))
    return f"{low} to {rest[-1]}" if rest else f"{low}"
