"""Curves of fine-tuning: one small Parquet file for each, and all that is said of them, from such
files alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from goatrl.disk.identity import Identity
from goatrl.disk.reading import typed
from goatrl.experiments import records
from goatrl.experiments.statistics import LEVEL, RESAMPLES, Interval, drawn_seeds
from goatrl.runs.folder import BESIDE as OF_RUNS

RANDOM = "random"  # the label of networks that were not trained before
LAST = 3  # evaluations whose mean is the final success
NEVER = float("inf")
SCHEMA = pa.schema(
    [
        ("suite", pa.string()),
        ("group", pa.string()),
        ("label", pa.string()),
        ("seed", pa.int64()),
        ("steps", pa.int64()),  # in the environment, of this seed
        ("success", pa.float64()),
    ]
)
# What decides a curve is known before its agents are trained: all but their checkpoint.
BESIDE = (*OF_RUNS, "from.checkpoint")


@dataclasses.dataclass(frozen=True, eq=False)
class Curve:
    """How often an initialisation succeeds without noise while it is fine-tuned."""

    suite: str
    group: str
    label: str
    config: Mapping[str, Any]  # all that decides it, and what came of that
    versions: Mapping[str, Mapping[str, str]]  # of what it was made with, offline and online
    seeds: tuple[int, ...]
    steps: np.ndarray  # (evaluations,)
    success: np.ndarray  # (seeds, evaluations)

    @property
    def identity(self) -> Identity:
        return identity(self.config)

    @property
    def mean(self) -> np.ndarray:
        return self.success.mean(axis=0)

    def comparable(self, other: Curve) -> bool:
        """Whether both were evaluated at the same steps of the same tasks."""
        same = self.group == other.group and self.config.get("evaluation") == other.config.get(
            "evaluation"
        )
        return same and np.array_equal(self.steps, other.steps)


def identity(config: Mapping[str, Any]) -> Identity:
    return Identity(records.CURVE, config, BESIDE)


def path(folder: Path, suite: str, group: str, label: str) -> Path:
    return folder / f"{suite}--{group}--{records.file_name(label)}.parquet"


def write(folder: Path, curve: Curve) -> None:
    rows = curve.success.size
    columns = {
        "suite": [curve.suite] * rows,
        "group": [curve.group] * rows,
        "label": [curve.label] * rows,
        "seed": np.repeat(curve.seeds, len(curve.steps)),
        "steps": np.tile(curve.steps, len(curve.seeds)),
        "success": curve.success.ravel(),
    }
    records.write_table(
        path(folder, curve.suite, curve.group, curve.label),
        pa.table(columns, SCHEMA),
        curve.identity,
        {"versions": curve.versions},
    )


def read_all(folder: Path) -> list[Curve]:
    return [_read_file(path) for path in records.files(folder, records.CURVE)]


def _read_file(path: Path) -> Curve:
    with records.opened(path, records.CURVE, BESIDE) as (identity, about, table):
        rows = table.to_pydict()
        ((suite, group, label),) = set(
            zip(rows["suite"], rows["group"], rows["label"], strict=True)
        )
        at = dict(zip(zip(rows["seed"], rows["steps"], strict=True), rows["success"], strict=True))
        seeds, steps = sorted(set(rows["seed"])), sorted(set(rows["steps"]))
        success = np.array([[at[seed, step] for step in steps] for seed in seeds])
        return Curve(
            suite,
            group,
            label,
            identity.about,
            typed(dict[str, dict[str, str]], about["versions"]),
            tuple(seeds),
            np.array(steps),
            success,
        )


# Statistics


def resampled(curve: Curve) -> np.ndarray:
    """Mean curves over seeds that are drawn with replacement, always the same ones: (resamples,
    evaluations).
    """
    drawn = drawn_seeds(len(curve.seeds), RESAMPLES, 0, curve.suite, curve.group, curve.label)
    return np.asarray(curve.success[drawn].mean(axis=1))


def with_resamples(curve: Curve) -> np.ndarray:
    """The mean curve, then those of all resamples: (1 + resamples, evaluations)."""
    return np.concatenate([curve.mean[None], resampled(curve)])


def bounds(drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % interval over resamples, the first axis. Always between values that were drawn,
    which may be infinite.
    """
    low, high = np.quantile(
        drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0, method="inverted_cdf"
    )
    return low, high


def final(success: np.ndarray) -> np.ndarray:
    """The mean of the last evaluations, never of the one before the first episode:
    (…, evaluations) → (…).
    """
    first = max(success.shape[-1] - LAST, min(1, success.shape[-1] - 1))
    return np.asarray(success[..., first:].mean(axis=-1))


def overall(success: np.ndarray) -> np.ndarray:
    """The mean over the whole run, of all evaluations: (…, evaluations) → (…)."""
    return np.asarray(success.mean(axis=-1))


def first_reached(steps: np.ndarray, success: np.ndarray, level: np.ndarray | float) -> np.ndarray:
    """The steps of the first evaluation that is as high as a level, or infinity: (…, evaluations),
    (…) → (…).
    """
    high = success >= np.asarray(level)[..., None] - 1e-9
    return np.where(high.any(axis=-1), steps[high.argmax(axis=-1)], NEVER)


@dataclasses.dataclass(frozen=True)
class CurveSummary:
    """One initialisation in one group."""

    group: str
    label: str
    seeds: tuple[int, ...]
    start: Interval  # success before the first episode, from 0 to 1
    final: Interval
    level: float | None  # the final success of random networks, if it is known
    steps: Interval | None  # of the mean curve up to that level; infinite where it is not reached
    each: tuple[float, ...]  # the same of every seed's own curve


def references(curves: Iterable[Curve]) -> dict[str, Curve]:
    """Group → the curve of random networks."""
    return {curve.group: curve for curve in curves if curve.label == RANDOM}


def summaries(curves: Sequence[Curve], random: Mapping[str, Curve]) -> list[CurveSummary]:
    """Of every curve: where it starts and ends, and when it is as high as random networks are in
    the end.
    """
    return [_summary(curve, _reference(curve, random)) for curve in curves]


def _reference(curve: Curve, random: Mapping[str, Curve]) -> Curve | None:
    found = random.get(curve.group)
    return found if found is not None and curve.comparable(found) else None


def _summary(curve: Curve, random: Curve | None) -> CurveSummary:
    drawn = with_resamples(curve)
    start, end = interval(drawn[:, 0]), interval(final(drawn))
    if random is None:
        return CurveSummary(curve.group, curve.label, curve.seeds, start, end, None, None, ())
    level = float(final(random.mean))
    steps = interval(steps_to(curve, random))
    each = tuple(first_reached(curve.steps, curve.success, level).tolist())
    return CurveSummary(curve.group, curve.label, curve.seeds, start, end, level, steps, each)


def steps_to(curve: Curve, random: Curve) -> np.ndarray:
    """Steps to where random networks end: of the mean curve, then in every resample, where the
    level is resampled as well.
    """
    return first_reached(curve.steps, with_resamples(curve), final(with_resamples(random)))


def interval(values: np.ndarray) -> Interval:
    """Of a value and its resamples: (1 + resamples,)."""
    low, high = bounds(values[1:])
    return Interval(float(values[0]), float(low), float(high))


def count(steps: float) -> str:
    return "never" if steps == NEVER else f"{steps:,.0f}"


def span(steps: Interval) -> str:
    """Steps with their interval, in words."""
    return f"{count(steps.value)} [{count(steps.low)}–{count(steps.high)}]"
