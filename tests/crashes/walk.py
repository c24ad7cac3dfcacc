"""Every step of a command, with every fault: what it leaves, and where the next start ends."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path

from crashes.commands import COMMANDS, content, copied, goat, unreadable
from crashes.layer import ERRORS, FAULTS, Layer, Stopped, under


@dataclasses.dataclass(frozen=True)
class Point:
    """A step of a command, and what happens there."""

    command: str
    step: int
    fault: str


@dataclasses.dataclass
class Found:
    """What was wrong at some points."""

    visited: int = 0
    corrupt: list[str] = dataclasses.field(default_factory=list)
    lost: list[str] = dataclasses.field(default_factory=list)
    different: list[str] = dataclasses.field(default_factory=list)
    untold: list[str] = dataclasses.field(default_factory=list)  # no error of one line

    def __str__(self) -> str:
        return (
            f"{self.visited} fault points visited: {len(self.corrupt)} corrupt files, "
            f"{len(self.lost)} lost, {len(self.different)} differing results, "
            f"{len(self.untold)} errors of more than a line"
        )

    @property
    def problems(self) -> list[str]:
        return [*self.corrupt, *self.lost, *self.different, *self.untold]


class Walk:
    """A command, as it is without faults; then with them."""

    def __init__(self, command: str, folder: Path) -> None:
        self.command, self.folder = command, folder
        self.words, before = COMMANDS[command]
        self.base = folder / "base"
        self.base.mkdir(parents=True)
        for words in before:
            self._goat(self.base, words)
        whole = copied(self.base, folder / "whole")
        with under(Layer()) as layer:
            self._goat(whole)
        self.steps, self.expected = layer.steps, content(whole)

    def _goat(self, folder: Path, words: Iterable[str] | None = None) -> None:
        code, said = goat([*(self.words if words is None else words)], folder)
        assert code == 0, said

    def points(self) -> Iterator[Point]:
        for step in range(1, self.steps + 1):
            for fault in FAULTS:
                yield Point(self.command, step, fault)

    def visit(self, point: Point, found: Found) -> None:
        folder = copied(self.base, self.folder / "faulty")
        layer = Layer(point.step, point.fault)
        try:
            with under(layer):
                code, said = goat(self.words, folder)
            if point.fault in ERRORS and code and not said.splitlines()[-1].startswith("goat: "):
                found.untold.append(f"{point}: {said}")
        except Stopped:
            pass
        except Exception as error:
            found.untold.append(f"{point}: {error!r}")
        found.visited += 1
        found.corrupt += [f"{point}: {each}" for each in unreadable(folder)]
        found.lost += [f"{point}: {each}" for each in layer.lost()]
        code, said = goat(self.words, folder)
        after = content(folder)
        if code or after != self.expected:
            names = {*after, *self.expected}
            wrong = sorted(n for n in names if after.get(n) != self.expected.get(n))
            found.different.append(f"{point}: {code}, {wrong}, {said[-300:] if code else ''}")
