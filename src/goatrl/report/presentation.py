"""How each kind of record is shown: one rule for all, and a registry by kind.

A presentation turns the records of a folder into tables and claims (`publish`), and into sections
of the page (`sections`): JSON objects with a `kind`, which the page's script draws by the functions
that it has registered for that kind (`KINDS` in page.js). `script` is where such functions come
from, if page.js does not bring them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from rich.console import RenderableType

from goatrl.experiments.claims import Verdict
from goatrl.types import unknown

Json = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Published:
    """What a terminal shows of an experiment, and what is written beside its records."""

    shown: Sequence[RenderableType]
    files: Mapping[str, str]  # path below the folder → text
    verdicts: Sequence[Verdict]
    notes: Sequence[str] = ()  # after the verdicts


class OnPage(Protocol):
    @property
    def script(self) -> str:
        """What draws its sections."""

    def sections(self, folders: Sequence[Path]) -> list[Json]:
        """All that the page shows of what these folders hold of this kind."""


class Presentation(OnPage, Protocol):
    def publish(self, experiment: Any, folder: Path, planned: Sequence[Any]) -> Published | None:
        """Tables and verdicts of all that a folder holds of an experiment; None if that is
        nothing.
        """


_PRESENTATIONS: dict[str, Presentation] = {}


def register(kind: str, presentation: Presentation) -> None:
    _PRESENTATIONS[kind] = presentation


def presentations() -> dict[str, Presentation]:
    return dict(_PRESENTATIONS)


def get(kind: str) -> Presentation:
    if kind not in _PRESENTATIONS:
        raise unknown("kind of experiment", kind, _PRESENTATIONS)
    return _PRESENTATIONS[kind]
