"""Where the time of a benchmark goes, from what it reports of its progress."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import threading
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import jax

from goatrl.disk.files import locked, write_text
from goatrl.experiments.estimate import duration
from goatrl.experiments.experiment import Job, Progress
from goatrl.training import memory

FILE = "time.jsonl"
SIMULATED = "evaluating"  # the cores do it; whatever else is reported keeps the device busy


class Spent:
    """Listens to progress, from whichever thread. A piece of work lasts from its first report to
    the one that says that all of it is done.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._began = clock, clock()
        self._under_way: dict[str, float] = {}  # title → when it was first reported
        self._pieces: list[tuple[str, float, float]] = []  # kind of work, from, to
        self._lock = threading.Lock()

    def show(self, progress: Progress) -> None:
        with self._lock:
            now = self._clock()
            begun = self._under_way.setdefault(progress.title, now)
            if progress.done >= progress.total:
                del self._under_way[progress.title]
                self._pieces.append((progress.what, begun, now))

    @property
    def whole(self) -> float:
        return self._clock() - self._began

    @property
    def kinds(self) -> list[str]:
        """Of work, in the order in which they were first done."""
        return list(dict.fromkeys(what for what, _, _ in self._pieces))

    def seconds(self, kinds: Collection[str]) -> float:
        """During which at least one piece of work of these kinds was under way."""
        found, end = 0.0, self._began
        for begun, ended in sorted((a, b) for what, a, b in self._pieces if what in kinds):
            found += max(ended - max(begun, end), 0.0)
            end = max(end, ended)
        return found


@dataclasses.dataclass(frozen=True)
class Breakdown:
    """How long a benchmark took, and how much of it each kind of work."""

    seconds: float
    kinds: dict[str, float]  # several can be under way at the same time
    other: float  # during which none was
    device_idle: float
    cores_idle: float
    peak_bytes: int | None  # of the device's memory, if it counts them

    @classmethod
    def of(cls, spent: Spent) -> Breakdown:
        whole, kinds = spent.whole, spent.kinds
        return cls(
            whole,
            {what: spent.seconds([what]) for what in kinds},
            whole - spent.seconds(kinds),
            whole - spent.seconds([what for what in kinds if what != SIMULATED]),
            whole - spent.seconds([SIMULATED]),
            memory.counted().get("peak_bytes_in_use"),
        )

    def lines(self) -> list[str]:
        """For people. Where device and cores are two things, also how long each had nothing to
        do.
        """
        parts = ", ".join(f"{what} {duration(seconds)}" for what, seconds in self.kinds.items())
        overlap = sum(self.kinds.values()) + self.other - self.seconds
        together = " (partly at the same time)" if overlap > 1 else ""
        found = [f"took {duration(self.seconds)}: {parts}{together}, other {duration(self.other)}"]
        if self.peak_bytes is not None:
            memory = f"used at most {self.peak_bytes / 2**30:.1f} GiB of memory"
            found.append(f"the device was idle for {duration(self.device_idle)} and {memory}")
            if SIMULATED in self.kinds:
                found[-1] += f"; the cores were idle for {duration(self.cores_idle)}"
        return found

    def to_json(self, jobs: Sequence[Job]) -> dict[str, Any]:
        started = datetime.datetime.now().astimezone() - datetime.timedelta(seconds=self.seconds)
        parts = {
            **self.kinds,
            "other": self.other,
            "device_idle": self.device_idle,
            "cores_idle": self.cores_idle,
        }
        return {
            "started": started.isoformat(timespec="seconds"),
            "device": jax.local_devices()[0].device_kind,
            "cores": os.cpu_count(),
            "suites": list(dict.fromkeys(job.experiment for job in jobs)),
            "cells": len(jobs),
            "members": sum(len(job.seeds) for job in jobs),
            "seconds": round(self.seconds, 2),
            **{what: round(seconds, 2) for what, seconds in parts.items()},
            "peak_bytes": self.peak_bytes,
        }


def record(folder: Path, about: dict[str, Any]) -> None:
    """A line more in the folder's file of times."""
    path = folder / FILE
    with locked(folder):
        before = path.read_text() if path.exists() else ""
        write_text(path, f"{before}{json.dumps(about, ensure_ascii=False)}\n")
