"""How far a command is: a bar in a terminal, lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated

from tyro.conf import arg

from goatrl.cli.console import console, losses, progress_bar
from goatrl.experiments import estimate
from goatrl.runs.trackers import Kind, Listener

Log = Annotated[
    tuple[Kind, ...],
    arg(
        help="Also report losses to TensorBoard (event files in OUT/tensorboard), MLflow or "
        "Weights & Biases, whose client must be installed."
    ),
]
# A line in a log is due after so much of the work, if it took a while, or after so many seconds.
EVERY_SHARE, SHORTEST, EVERY_SECONDS = 0.02, 2.0, 30.0

Describe = Callable[[Mapping[str, float]], str]  # metrics in a few words


class Bar:
    """A progress bar."""

    def __init__(
        self, title: str, done: int, total: int | None, unit: str, first: str, describe: Describe
    ):
        self.total, self.describe = total, describe
        self.progress = progress_bar()
        self.bar = self.progress.add_task(title, total=total, completed=done, losses=first)
        self.progress.start()

    def report(self, step: int, metrics: Mapping[str, float]) -> None:
        self.progress.update(
            self.bar, completed=step, total=self.total, losses=self.describe(metrics)
        )

    def close(self) -> None:
        self.progress.stop()


class Pace:
    """When the next line of a log is due: at the end, and before after some of the work or some
    time; `at_first` also after the first report.
    """

    def __init__(self, share: float = EVERY_SHARE, at_first: bool = True) -> None:
        self.share = share
        self.last = None if at_first else (0, time.monotonic())

    def due(self, done: int, total: int) -> bool:
        now = time.monotonic()
        if self.last is not None and done < total:
            before, at = self.last
            enough = SHORTEST if done - before >= self.share * total else EVERY_SECONDS
            if now - at < enough:
                return False
        self.last = done, now
        return True


class Lines:
    """A line at a time, written at once."""

    def __init__(
        self, title: str, done: int, total: int | None, unit: str, first: str, describe: Describe
    ):
        self.title, self.total, self.unit, self.describe = title, total, unit, describe
        self.pace = Pace()
        self.begun: tuple[int, float] | None = None
        if first:
            self._print(first)

    def report(self, step: int, metrics: Mapping[str, float]) -> None:
        left = self._left(step)
        assert self.total is not None
        if self.pace.due(step, self.total):
            share = f"{100 * step // self.total} %"
            done = f"{step:,} of {self.total:,} {self.unit} ({share})" if self.unit else share
            words = (done, self.describe(metrics), left)
            self._print(", ".join(word for word in words if word))

    def _left(self, step: int) -> str:
        """The time to the end at the rate since the first report, before which was compiled."""
        now = time.monotonic()
        assert self.total is not None
        if self.begun is None or self.begun[0] == step:
            self.begun = self.begun or (step, now)
            return ""
        first, at = self.begun
        if step == self.total:
            return ""
        return f"{estimate.duration((now - at) / (step - first) * (self.total - step))} left"

    def _print(self, text: str) -> None:
        console.print(f"{self.title}: {text}", highlight=False, soft_wrap=True)

    def close(self) -> None:
        pass


@contextmanager
def shown(
    title: str,
    done: int = 0,
    total: int | None = None,
    unit: str = "",
    first: str = "",
    describe: Describe = losses,
    hidden: bool = False,
) -> Iterator[Bar | Lines]:
    """What shows progress here; its `total` may be set later. Without a unit, a log shows the share
    alone. What is done at once has no bar.
    """
    kind = Bar if console.is_terminal and not hidden else Lines
    display = kind(title, done, total, unit, first, describe)
    try:
        yield display
    finally:
        display.close()


def usual() -> str:
    """How long a program compiles here."""
    return estimate.duration(estimate.compilation())


@contextmanager
def training_bar(
    title: str,
    step: int,
    total: int,
    trackers: Sequence[Listener] = (),
    describe: Describe = losses,
    unit: str = "updates",
) -> Iterator[Callable[[int, Mapping[str, float]], None]]:
    """Progress of a training, and the function that moves it. Trackers are told the same."""
    first = f"compiling, about {usual()}"
    with shown(title, step, total, unit, first, describe) as display:

        def report(step: int, metrics: Mapping[str, float]) -> None:
            for listener in (display, *trackers):
                listener.report(step, metrics)

        yield report
