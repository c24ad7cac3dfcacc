"""Reports of a training for TensorBoard, MLflow or Weights & Biases, by their own clients if these
are installed.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from goatrl.types import GoatError

Kind = Literal["tensorboard", "mlflow", "wandb"]


class Listener(Protocol):
    """Is told how a training goes: a progress bar, a log, a tracker."""

    def report(self, step: int, metrics: Mapping[str, float]) -> None:
        """So many updates or rounds are done; the metrics are means since the last report."""

    def close(self) -> None:
        """There will be no more reports."""


class TensorBoard:
    """Event files in the run's folder: `tensorboard --logdir RUN` shows them."""

    def __init__(self, client: Any, folder: Path, about: Mapping[str, Any]) -> None:
        self.writer = client.Writer(str(folder / "tensorboard"))

    def report(self, step: int, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


class MLflow:
    """A run named after the folder, where MLFLOW_TRACKING_URI says, otherwise beside it."""

    def __init__(self, client: Any, folder: Path, about: Mapping[str, Any]) -> None:
        self.client = client
        client.start_run(run_name=str(folder))
        client.log_params(about)

    def report(self, step: int, metrics: Mapping[str, float]) -> None:
        self.client.log_metrics(dict(metrics), step=step)

    def close(self) -> None:
        self.client.end_run()


class WandB:
    """A run named after the folder, in the project goatrl unless WANDB_PROJECT names another."""

    def __init__(self, client: Any, folder: Path, about: Mapping[str, Any]) -> None:
        project = os.environ.get("WANDB_PROJECT", "goatrl")
        self.run = client.init(project=project, name=str(folder), config=dict(about))

    def report(self, step: int, metrics: Mapping[str, float]) -> None:
        self.run.log(dict(metrics), step=step)

    def close(self) -> None:
        self.run.finish()


# The module that each needs, and the package to install for it.
CLIENTS: dict[str, tuple[Any, str, str]] = {
    "tensorboard": (TensorBoard, "tensorboard.summary", "tensorboard"),
    "mlflow": (MLflow, "mlflow", "mlflow"),
    "wandb": (WandB, "wandb", "wandb"),
}
assert set(CLIENTS) == set(get_args(Kind))


def check(kinds: Sequence[Kind]) -> None:
    """Refuse a tracker whose client is not installed, before anything is trained."""
    for kind in kinds:
        _client(kind)


@contextmanager
def opened(
    kinds: Sequence[Kind], folder: Path, about: Mapping[str, Any]
) -> Iterator[list[Listener]]:
    """Trackers for the run in a folder; `about` are its settings. What fails in one is one line."""
    trackers: list[Listener] = []
    with ExitStack() as stack:
        for kind in dict.fromkeys(kinds):
            client = _client(kind)
            with _blamed(kind):
                tracker = _Careful(kind, CLIENTS[kind][0](client, folder, about))
            stack.callback(tracker.close)
            trackers.append(tracker)
        yield trackers


class _Careful:
    """A tracker whose errors name it."""

    def __init__(self, kind: Kind, tracker: Listener) -> None:
        self.kind, self.tracker = kind, tracker

    def report(self, step: int, metrics: Mapping[str, float]) -> None:
        with _blamed(self.kind):
            self.tracker.report(step, metrics)

    def close(self) -> None:
        with _blamed(self.kind):
            self.tracker.close()


def _client(kind: Kind) -> Any:
    _, module, package = CLIENTS[kind]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise GoatError(
            f"--log {kind} needs a package that is missing ({error}); run `pip install {package}`"
        ) from None


@contextmanager
def _blamed(kind: Kind) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        text = " ".join(str(error).split())
        raise GoatError(
            f"{kind} failed ({type(error).__name__}: {text}); rerun the command to resume, without "
            f"--log {kind} if it fails again"
        ) from error
