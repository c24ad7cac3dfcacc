"""Whether two folders of records differ, task by task: Welch's test over seeds.

    python benchmarks/precision.py results/half-precision/single results/half-precision/half

By default the agents of `results/half-precision`: passes without gradient in single precision, and
in half precision by the fused kernel.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import stats

from goatrl import tasks
from goatrl.experiments import records

HOME = Path(__file__).parents[1] / "results/half-precision"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folders", nargs="*", type=Path, default=[HOME / "single", HOME / "half"], metavar="FOLDER"
    )
    first, second = (
        {(cell.config.group, cell.label): cell for cell in records.read_all(folder)}
        for folder in parser.parse_args(arguments).folders
    )
    print(f"{'':38}{'':>5}{'first':>14}{'second':>14}   difference [95 %]        p")
    averages = []  # over the unseen tasks of all cells, for each seed
    for place in sorted(first.keys() & second.keys()):
        for task in tasks.get(place[0]).tasks:
            a, b = (100 * each[place].per_seed("success", task.name) for each in (first, second))
            if 0 in (np.ptp(a), np.ptp(b)):
                continue  # all seeds always succeed: no spread to compare with
            test = stats.ttest_ind(b, a, equal_var=False)
            low, high = test.confidence_interval()
            print(
                f"{place[0]:16}{place[1]:11}{task.name:11}{task.split:>5}"
                f"{a.mean():8.1f} ± {a.std(ddof=1):3.1f}{b.mean():8.1f} ± {b.std(ddof=1):3.1f}"
                f"   {b.mean() - a.mean():+5.1f} [{low:+5.1f}, {high:+5.1f}]   {test.pvalue:.2f}"
            )
            if task.split == "ood":
                averages.append((a, b))
    a, b = (np.mean(each, axis=0) for each in zip(*averages, strict=True))
    test = stats.ttest_ind(b, a, equal_var=False)
    low, high = test.confidence_interval()
    print(
        f"all {len(averages)} unseen tasks: {a.mean():.1f} and {b.mean():.1f}, difference "
        f"{b.mean() - a.mean():+.1f} [{low:+.1f}, {high:+.1f}], p {test.pvalue:.2f}"
    )


if __name__ == "__main__":
    main()
