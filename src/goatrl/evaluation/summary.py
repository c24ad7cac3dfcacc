"""Raw episodes in a few numbers: for each task, means over its episodes seed by seed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa


@dataclasses.dataclass(frozen=True, eq=False)
class TaskSummary:
    """The results of agents on one task. Arrays have one number per seed."""

    task: str
    split: str | None  # none in an environment of the user's own
    success: np.ndarray  # share of episodes within the goal threshold at the final step
    returns: np.ndarray  # mean number of steps within the goal threshold
    episodes: int  # of all seeds together


def per_seed(episodes: pa.Table, metric: str) -> np.ndarray:
    """Mean of a metric over the episodes of each seed, in the order in which seeds appear: (S,)."""
    seeds = episodes.column("seed").to_numpy()
    values = np.asarray(episodes.column(metric).to_pylist(), float)
    return np.array([values[seeds == seed].mean() for seed in dict.fromkeys(seeds.tolist())])


def per_task(episodes: pa.Table) -> list[TaskSummary]:
    """A summary of each task, in the order in which tasks appear."""
    names = np.asarray(episodes.column("task").to_pylist())
    found = []
    for task in dict.fromkeys(names.tolist()):
        rows = episodes.filter(names == task)
        success, returns = per_seed(rows, "success"), per_seed(rows, "return")
        split = rows.column("split")[0].as_py()
        found.append(TaskSummary(task, split, success, returns, rows.num_rows))
    return found


def tabulate(episodes: pa.Table) -> str:
    """A table in Markdown of what `evaluate` returned.

    Args:
        episodes: one row per episode.

    Returns:
        One line per task: its success and return, mean ± standard deviation over seeds.
    """
    lines = ["| task | split | success | return | episodes |", "|---|---|---:|---:|---:|"]
    for each in per_task(episodes):
        numbers = " | ".join(_mean_and_spread(values) for values in (each.success, each.returns))
        lines.append(f"| {each.task} | {each.split or ''} | {numbers} | {each.episodes} |")
    return "\n".join(lines)


def _mean_and_spread(values: np.ndarray) -> str:
    spread = f" ± {values.std():.2f}" if len(values) > 1 else ""
    return f"{values.mean():.2f}{spread}"
